"""What hosts of Chat Completions ask back: the plain reasoning of every message that called tools, while the model thinks."""

from __future__ import annotations

from collections.abc import Iterator

from bardo.simulators.fields import Fields, at, rows, text
from bardo.simulators.incoming import Incoming
from bardo.simulators.refusal import Refusal

_DEEPSEEK = "The `reasoning_content` in the thinking mode must be passed back to the API."
_MOONSHOT = "thinking is enabled but reasoning_content is missing in assistant tool call message at index {place}"


def check_deepseek(incoming: Incoming) -> None:
    """Refuse a call without the field; it may be empty. Source: api-docs.deepseek.com, Thinking mode."""
    body = incoming.fields
    if at(body, "thinking.type") == "disabled" or body.get("reasoning_effort") == "none":
        return
    if any(not isinstance(message.get("reasoning_content"), str) for _, message in _calling(body)):
        raise Refusal("bad_value", _DEEPSEEK)


def check_moonshot(incoming: Incoming) -> None:
    """Refuse a call without the field, or with nothing in it. Source: issues that quote the refusal, as of 2026-06."""
    body = incoming.fields
    if at(body, "thinking.type") == "disabled" or text(body.get("model")).startswith("moonshot-v1"):
        return
    for index, message in _calling(body):
        if not text(message.get("reasoning_content")):
            raise Refusal("bad_value", _MOONSHOT.format(place=index))


def _calling(body: Fields) -> Iterator[tuple[int, Fields]]:
    for index, message in enumerate(rows(body.get("messages"))):
        if message.get("role") == "assistant" and rows(message.get("tool_calls")):
            yield index, message

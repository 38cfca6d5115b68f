"""`reasoning_details` as OpenRouter hands them on, and the upstream's refusal of what is not its own.

Only the vendor behind a model can read its state, so the vendor's error comes back inside OpenRouter's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from bardo.simulators import marks
from bardo.simulators.fields import Fields, at, rows, text
from bardo.simulators.incoming import Incoming
from bardo.simulators.providers import gemini_signatures
from bardo.simulators.refusal import Refusal

_FORMATS = {
    "anthropic": "anthropic-claude-v1",
    "openai": "openai-responses-v1",
    "x-ai": "xai-responses-v1",
    "google": "google-gemini-v1",
}
_EXPECTED = "Expected `thinking` or `redacted_thinking`, but found `tool_use`."


class UpstreamRefusal(Refusal):
    """What the vendor said: `host` is its name at OpenRouter."""

    def __init__(self, host: str, message: str) -> None:
        super().__init__("bad_value", message)
        self.host = host


def seal_detail(shape: str, model: str, reasoning: str, shown: str, *, size: int) -> str:
    """Return the state of a detail; a signature is bound to the words beside it."""
    bound = {"model": model, "said": marks.fingerprint(reasoning), "shown": marks.fingerprint(shown)}
    return marks.encode_base64(marks.sign(f"openrouter/{shape}", bound, size=size, head=b"\x12"))


def check(incoming: Incoming) -> None:
    """Refuse details that the vendor of the model cannot read, and tool calls whose details it misses."""
    body = incoming.fields
    maker = text(body.get("model")).partition("/")[0]
    for index, message in enumerate(rows(body.get("messages"))):
        details = rows(message.get("reasoning_details"))
        for detail in details:
            _check_detail(maker, index, detail)
        if rows(message.get("tool_calls")) and not any("data" in one or "signature" in one for one in details):
            _check_call(body, maker, index, message)


def _check_detail(maker: str, index: int, detail: Fields) -> None:
    held = text(detail.get("signature")) or text(detail.get("data"))
    shape = _FORMATS.get(maker)
    if maker == "google" and held in gemini_signatures.WAIVERS:
        return
    if shape is None or (not held and maker != "anthropic"):
        return
    bound = marks.verify(f"openrouter/{shape}", marks.decode_base64(held), head=b"\x12")
    shown = marks.fingerprint(text(detail.get("text")))
    if bound is None or (maker == "anthropic" and "text" in detail and bound["shown"] != shown):
        raise _refusal(maker, index)


def _refusal(maker: str, index: int) -> UpstreamRefusal:
    return {
        "anthropic": UpstreamRefusal(
            "Anthropic", f"messages.{index}.content.0: Invalid `signature` in `thinking` block"
        ),
        "google": UpstreamRefusal("Google AI Studio", "Corrupted thought signature."),
    }.get(maker, UpstreamRefusal(maker, "The encrypted content could not be verified."))


def _check_call(body: Fields, maker: str, index: int, message: Fields) -> None:
    reasoning = at(body, "reasoning")
    thinks = isinstance(reasoning, dict) and reasoning.get("enabled") is not False and reasoning.get("effort") != "none"
    if maker == "anthropic" and thinks and index >= _last_call(body) and _answers_a_tool(body):
        raise UpstreamRefusal("Anthropic", f"messages.{index}.content.0.type: {_EXPECTED}")
    if maker == "google" and gemini_signatures.signs_always(text(body.get("model"))) and index > _last_question(body):
        name = text(at(rows(message.get("tool_calls"))[0], "function.name"))
        raise UpstreamRefusal("Google AI Studio", gemini_signatures.missing(name, index + 1).message)


def _last_call(body: Fields) -> int:
    return max(index for index, one in _messages(body) if rows(one.get("tool_calls")))


def _answers_a_tool(body: Fields) -> bool:
    return rows(body.get("messages"))[-1].get("role") == "tool"


def _last_question(body: Fields) -> int:
    return max((index for index, one in _messages(body) if one.get("role") == "user"), default=-1)


def _messages(body: Fields) -> Iterator[tuple[int, Fields]]:
    yield from enumerate(rows(body.get("messages")))


def error_body(refusal: Refusal) -> Fields:
    """Encode a refusal: the vendor's own stands inside, as text."""
    if not isinstance(refusal, UpstreamRefusal):
        return {"error": {"message": refusal.message, "code": refusal.status}}
    raw = json.dumps({"error": {"message": refusal.message, "type": "invalid_request_error"}})
    metadata: Fields = {"raw": raw, "provider_name": refusal.host}
    return {"error": {"message": "Provider returned error", "code": refusal.status, "metadata": metadata}}

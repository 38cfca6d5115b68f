"""System messages for servers that take one of them, at the beginning: the rows with `one_system`.

The chat templates of Qwen3.5 and later raise "System message must be at the beginning." for any other (vllm-project/vllm#41114, 2026-11).
Codex sends `instructions` and items of the role `developer`, Claude Code system messages between the turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import islice, repeat, takewhile
from operator import itemgetter
from typing import Any

from bardo.dialects.losses import Losses
from bardo.dialects.openai_chat.constants import DEVELOPER

Wire = dict[str, Any]
SYSTEM = "system"
_ROLE = itemgetter("role")


def has_later_system(messages: Any) -> bool:
    """Whether a body's messages, each of them an object, have one of the system behind the first."""
    if not isinstance(messages, list):
        return False
    roles = [*islice(map(dict.get, messages, repeat("role")), 1, None)]
    return SYSTEM in roles or DEVELOPER in roles


def with_one_system(written: Sequence[Wire], new: Sequence[Wire], losses: Losses) -> list[Wire]:
    """Return the messages `written` before, which this function returned, and `new` ones: none that it is given is changed.

    System messages at the beginning become one, and later ones messages of the user, which is reported.
    """
    begin, rest = written, new
    if not written or _is_system(written[-1]):
        # What was written before is one system message, or nothing.
        systems = [*written, *takewhile(_is_system, new)]
        begin, rest = _joined(systems, losses), new[len(systems) - len(written) :]
    return [*begin, *(_as_user(rest, losses) if SYSTEM in map(_ROLE, rest) else rest)]


def _is_system(message: Wire) -> bool:
    return bool(message["role"] == SYSTEM)


def _as_user(messages: Iterable[Wire], losses: Losses) -> Iterable[Wire]:
    for message in messages:
        if not _is_system(message):
            yield message
        elif message["content"]:
            why = "chat templates of this server's models refuse a system message that is not at the beginning"
            losses.lose("messages.role", SYSTEM, why, sent="user")
            yield {**message, "role": "user"}


def _joined(systems: Sequence[Wire], losses: Losses) -> Sequence[Wire]:
    if len(systems) < 2:
        return systems
    fields: Wire = {}
    for message in systems:
        for name, value in message.items():
            if name != "content" and fields.setdefault(name, value) != value:
                why = "the system messages at the beginning are sent as one"
                losses.lose(f"messages.{name}", value, why, sent=fields[name], key="joined")
    return [{**fields, "content": reduce(_with_paragraph, map(itemgetter("content"), systems))}]


def _with_paragraph(before: Any, after: Any) -> Any:
    """Return two contents as one, with a blank line between: templates put nothing between the parts of a content."""
    if not before or not after:
        return before or after
    if isinstance(before, str) and isinstance(after, str):
        return f"{before}\n\n{after}"
    first, *others = parts_of_content(after)
    if first.get("type") == "text":
        return [*parts_of_content(before), {**first, "text": f"\n\n{first['text']}"}, *others]
    return [*parts_of_content(before), first, *others]


def parts_of_content(content: Any) -> list[Wire]:
    """Return a message's content as a list of parts; none of an empty one."""
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []

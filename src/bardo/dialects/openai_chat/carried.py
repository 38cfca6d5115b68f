"""What a choice says that bardo has no word for: carried under flat names, and written back.

A field of the message or delta is called `message.<name>`, one of its log probabilities `logprobs.<name>`, anything else as on the wire.
In a stream each value is reported once, and lists are pieces that are joined.
"""

from __future__ import annotations

from typing import Any

from bardo.dialects.openai_chat.extra import decode_states, merge_extra

_READ_OF_CHOICE = frozenset({"index", "delta", "message", "finish_reason", "error", "usage"})
_TYPES_READ: dict[str, tuple[type, ...]] = {
    "role": (object,),
    "content": (object,),
    "reasoning_content": (str,),
    "reasoning": (str,),
    "reasoning_details": (list, str),
    "thinking_blocks": (list,),
    "tool_calls": (list,),
    "function_call": (dict,),
    "refusal": (str,),
    "content_blocks": (list,),
}


class CarriedFields:
    """Collects such fields of one choice, and tells what is new."""

    def __init__(self) -> None:
        self._latest: dict[str, Any] = {}

    def changes(self, choice: dict[str, Any], delta: dict[str, Any]) -> dict[str, Any]:
        """Return what this choice object adds."""
        new: dict[str, Any] = {}
        for name, value in _flat(choice, delta):
            if value is None or (self._latest.get(name) == value and not (isinstance(value, list) and value)):
                continue
            new[name] = self._latest[name] = value
        return new


def _flat(choice: dict[str, Any], delta: dict[str, Any]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in choice.items():
        if name == "logprobs" and isinstance(value, dict):
            found += ((f"logprobs.{part}", held) for part, held in value.items())
        elif name == "logprobs" and value is not None:
            # OpenRouter's sum of them: OpenAI's library takes whatever stands here for an object.
            found.append(("logprobs.value", value))
        elif name not in _READ_OF_CHOICE:
            found.append((name, value))
    for name, value in delta.items():
        if name == "extra_content":
            found.append(("message.extra_content", decode_states(value)[1] or None))
        elif name == "audio" and isinstance(value, dict):
            # Sound and its transcript come in pieces.
            found.append(("message.audio", [value]))
        elif not isinstance(value, _TYPES_READ.get(name, ())):
            found.append((f"message.{name}", value))
    return found


def unflatten(fields: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what was carried of a choice as (fields of its message, fields of the choice)."""
    message: dict[str, Any] = {}
    choice: dict[str, Any] = {}
    logprobs: dict[str, Any] = {}
    for name, value in fields.items():
        head, dot, rest = name.partition(".")
        if head == "message" and dot:
            message[rest] = _join_text(value) if rest == "audio" else value
        elif head == "logprobs" and dot:
            logprobs[rest] = value
        else:
            choice[name] = value
    return message, {**choice, "logprobs": logprobs} if logprobs else choice


def add_carried(message: dict[str, Any], carried: dict[str, Any]) -> dict[str, Any]:
    """Return a message with its carried fields; opaque state already in its `extra_content` stays."""
    own, more = message.get("extra_content"), carried.get("extra_content")
    merged = {**message, **carried}
    if own and isinstance(more, dict):
        merged["extra_content"] = merge_extra(own, more)
    return merged


def _join_text(pieces: Any) -> Any:
    if not isinstance(pieces, list):
        return pieces
    whole: dict[str, Any] = {}
    for piece in pieces:
        for name, value in piece.items() if isinstance(piece, dict) else ():
            held = whole.get(name)
            grows = name in ("data", "transcript") and isinstance(held, str) and isinstance(value, str)
            whole[name] = held + value if grows else value
    return whole

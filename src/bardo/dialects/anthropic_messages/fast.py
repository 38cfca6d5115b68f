"""A whole message that holds only text and thinking, read in one go into typed structs.

Anything that is not listed here, or of another type, makes a message that is read field by field.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bardo.dialects.anthropic_messages.usage import decode_usage
from bardo.dialects.anthropic_messages.wire import FORMAT, NAME, REASONS, SIGNED_BLOCKS
from bardo.dialects.shared.blocks import add_states
from bardo.dialects.shared.bounded_json import SLICED_BYTES, has_few_brackets
from bardo.values.events import (
    ContentChunk,
    Degraded,
    Event,
    Finish,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    UsageUpdate,
)


class _Text(msgspec.Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    text: str
    citations: None = None


class _Thinking(msgspec.Struct, tag_field="type", tag="thinking", forbid_unknown_fields=True, gc=False):
    thinking: str
    signature: str | None = None


class _Message(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["message"]
    content: Annotated[list[_Text | _Thinking], Meta(min_length=1)]
    stop_reason: Literal[tuple(REASONS)]  # type: ignore[valid-type]
    id: str = ""
    role: str = ""
    model: str = ""
    stop_sequence: str | None = None
    usage: dict[str, Any] | None = None
    stop_details: Any = None
    container: Any = None
    context_management: Any = None


_CARRIED = ("stop_details", "container", "context_management")
_decode_whole = msgspec.json.Decoder(_Message).decode


def read_plain(data: bytes, *, excludes_reasoning: bool | None) -> list[Event] | None:
    """Return the events of a message that is text and thinking, those that reading it field by field gives; None for any other.

    What is read here, any strict reader of JSON can read. `excludes_reasoning` is the provider's fact about reasoning tokens.
    """
    if len(data) >= SLICED_BYTES:
        return None
    try:
        message = _decode_whole(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    if not has_few_brackets(data):
        return None
    events: list[Event] = [ReplyStart(id=message.id, model=message.model)]
    if message.usage is not None:
        usage, doubts = decode_usage(message.usage, excludes_reasoning=excludes_reasoning)
        events += (UsageUpdate(usage), *map(Degraded, doubts))
    fields = {name: value for name in _CARRIED if (value := getattr(message, name)) is not None}
    if fields:
        events.append(ReplyFields(NAME, fields))
    for number, block in enumerate(message.content):
        events += _thinking(number, block) if isinstance(block, _Thinking) else (ContentChunk(number, block.text),)
    word = message.stop_reason
    return [*events, Finish(REASONS[word], word, message.stop_sequence or None)]


def _thinking(number: int, block: _Thinking) -> list[Event]:
    events: list[Event] = [ThinkStart(number, FORMAT)]
    if block.thinking:
        events.append(ThinkChunk(number, block.thinking))
    add_states(number, SIGNED_BLOCKS.decode_signature(block.signature or ""), events)
    events.append(ThinkEnd(number))
    return events

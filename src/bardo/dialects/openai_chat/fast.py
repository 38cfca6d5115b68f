"""A frame of a stream that holds text or thinking of one choice, its end or its usage, and nothing else, read in one go into typed structs.

Most frames are such: the first of a reply, the first piece of its text, its end. A frame with anything that is not listed here, or of
another type, is read field by field.

A whole reply that is one choice of text and nothing else, read in one go into typed structs.

Most whole replies are such. Anything that is not listed here, or of another type, makes a reply that is read field by field.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bardo.dialects.openai_chat.usage import decode_usage
from bardo.dialects.openai_chat.wire import NAME, decode_finish
from bardo.dialects.shared.bounded_json import SLICED_BYTES, has_few_brackets
from bardo.values.events import ContentChunk, Degraded, Event, Finish, ReplyFields, ReplyStart, UsageUpdate

_Nothing = Annotated[list[Any], Meta(max_length=0)] | None
_Word = str | None | UnsetType


class PlainDelta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What a delta adds."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    role: str | None = None
    refusal: Literal["", None] = None
    tool_calls: _Nothing = None
    function_call: None = None


class PlainChoice(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A choice: its delta, and the reason that it ended."""

    delta: PlainDelta
    index: Literal[0] = 0
    finish_reason: str | None = None
    logprobs: None = None
    stop_reason: None = None
    matched_stop: None = None
    token_ids: None = None


class PlainFrame(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One frame. `obfuscation` and `p` are random filler."""

    choices: Annotated[list[PlainChoice], Meta(max_length=1)]
    id: str = ""
    object: str = ""
    created: Annotated[int, Meta(gt=-(1 << 53), lt=1 << 53)] | None = None
    model: str = ""
    usage: dict[str, Any] | None = None
    system_fingerprint: _Word = UNSET
    service_tier: _Word = UNSET
    provider: _Word = UNSET
    obfuscation: str | None = None
    p: str | None = None

    @property
    def filler(self) -> bool:
        """Whether the frame holds random filler."""
        return self.obfuscation is not None or self.p is not None

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the reply that bardo has no word for."""
        values = _values_of_reply(self)
        if values == _NONE_OF_REPLY:
            return {}
        return {name: value for name, value in zip(_OF_REPLY, values, strict=True) if value is not UNSET}


TEXTS = ("content", "reasoning_content", "reasoning")
"""The fields of a delta that hold text."""
_OF_REPLY = ("system_fingerprint", "service_tier", "provider")
_values_of_reply = attrgetter(*_OF_REPLY)
_NONE_OF_REPLY = (UNSET,) * len(_OF_REPLY)
_decode = msgspec.json.Decoder(PlainFrame).decode


def read_plain_frame(data: bytes) -> PlainFrame | None:
    """Return a frame that is plain, None for any other. What is read here, any strict reader of JSON can read."""
    if len(data) >= SLICED_BYTES:
        return None
    try:
        frame = _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if frame.usage is not None and not has_few_brackets(data):
        return None
    return frame


_NothingWhole = Annotated[list[Any], Meta(max_length=0)] | None


class _Message(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    content: Annotated[str, Meta(min_length=1)]
    role: str = ""
    refusal: Literal["", None] = None
    reasoning: Literal["", None] = None
    reasoning_content: Literal["", None] = None
    tool_calls: _NothingWhole = None
    function_call: None = None
    audio: None = None
    annotations: list[Any] | None = None
    name: Any = None


class _Choice(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    message: _Message
    finish_reason: Annotated[str, Meta(min_length=1)]
    index: Literal[0] = 0
    logprobs: None = None
    stop_reason: Any = None
    matched_stop: Any = None
    token_ids: Any = None
    seed: Any = None
    native_finish_reason: Any = None
    content_filter_results: Any = None


class _Reply(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    choices: Annotated[list[_Choice], Meta(min_length=1, max_length=1)]
    id: str = ""
    object: str = ""
    created: Annotated[int, Meta(gt=-(1 << 53), lt=1 << 53)] | None = None
    model: str = ""
    usage: dict[str, Any] | None = None
    system_fingerprint: Any | UnsetType = UNSET
    service_tier: Any | UnsetType = UNSET
    prompt_logprobs: Any | UnsetType = UNSET
    prompt_token_ids: Any | UnsetType = UNSET
    kv_transfer_params: Any | UnsetType = UNSET
    provider: Any | UnsetType = UNSET
    base_resp: Any | UnsetType = UNSET
    prompt_filter_results: Any | UnsetType = UNSET


_OF_WHOLE_REPLY = tuple(
    name for name in _Reply.__struct_fields__ if name not in ("choices", "id", "object", "created", "model", "usage")
)
_OF_CHOICE = tuple(
    name for name in _Choice.__struct_fields__ if name not in ("message", "finish_reason", "index", "logprobs")
)
_values_of_whole_reply, _values_of_choice = attrgetter(*_OF_WHOLE_REPLY), attrgetter(*_OF_CHOICE)
_NONE_OF_WHOLE_REPLY, _NONE_OF_CHOICE = (UNSET,) * len(_OF_WHOLE_REPLY), (None,) * len(_OF_CHOICE)
_decode_whole = msgspec.json.Decoder(_Reply).decode


def read_plain(data: bytes, *, excludes_reasoning: bool | None) -> list[Event] | None:
    """Return the events of a reply that is one choice of text, those that reading it field by field gives; None for any other.

    What is read here, any strict reader of JSON can read. `excludes_reasoning` is the provider's fact about reasoning tokens.
    """
    if len(data) >= SLICED_BYTES:
        return None
    try:
        reply = _decode_whole(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not has_few_brackets(data):
        return None
    choice = reply.choices[0]
    message, reason = choice.message, choice.finish_reason
    events: list[Event] = [
        ReplyStart(id=reply.id, model=reply.model, created=reply.created),
        ContentChunk(0, message.content),
    ]
    if said := _fields_of_choice(choice):
        events.append(ReplyFields(NAME, said, 0))
    events.append(Finish(decode_finish(reason, calls=False), reason))
    values = _values_of_whole_reply(reply)
    if values != _NONE_OF_WHOLE_REPLY:
        fields = {name: value for name, value in zip(_OF_WHOLE_REPLY, values, strict=True) if value is not UNSET}
        events.append(ReplyFields(NAME, fields))
    if reply.usage:
        tier = None if reply.service_tier is UNSET else reply.service_tier
        usage, doubts = decode_usage(reply.usage, excludes_reasoning=excludes_reasoning, tier=tier)
        events += (UsageUpdate(usage), *map(Degraded, doubts))
    return events


def _fields_of_choice(choice: _Choice) -> dict[str, Any]:
    """Return what a choice says beside its text and why it ended; most say nothing."""
    values, message = _values_of_choice(choice), choice.message
    said: dict[str, Any] = {}
    if values != _NONE_OF_CHOICE:
        said = {name: value for name, value in zip(_OF_CHOICE, values, strict=True) if value is not None}
    if message.annotations is not None:
        said["message.annotations"] = message.annotations
    if message.name is not None:
        said["message.name"] = message.name
    return said

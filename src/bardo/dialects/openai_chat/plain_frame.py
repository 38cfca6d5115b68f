"""A frame of a stream that holds text or thinking of one choice, its end or its usage, and nothing else, read in one go into typed structs.

Most frames are such: the first of a reply, the first piece of its text, its end. A frame with anything that is not listed here, or of
another type, is read field by field.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bardo.dialects.bounded_json import SLICED_BYTES, has_few_brackets

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

"""The frames a stream mostly consists of, decoded into typed structs."""

from __future__ import annotations

import msgspec


# Fields nobody knows make these fail, so that the generic way can carry them.
class _Piece(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    text: str | None = None
    thinking: str | None = None


class _Arguments(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    arguments: str


class _Call(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    function: _Arguments


class _ContentMessage(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    content: _Piece


class _PlanMessage(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    tool_plan: str


class _CallMessage(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    tool_calls: _Call


class _ContentDelta(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    message: _ContentMessage


class _PlanDelta(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    message: _PlanMessage


class _CallDelta(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    message: _CallMessage


class ContentFrame(msgspec.Struct, tag_field="type", tag="content-delta", gc=False, forbid_unknown_fields=True):
    """A piece of text or of thinking."""

    index: int
    delta: _ContentDelta


class PlanFrame(msgspec.Struct, tag_field="type", tag="tool-plan-delta", gc=False, forbid_unknown_fields=True):
    """A piece of the plan."""

    delta: _PlanDelta


class CallFrame(msgspec.Struct, tag_field="type", tag="tool-call-delta", gc=False, forbid_unknown_fields=True):
    """A piece of a call's arguments."""

    index: int
    delta: _CallDelta


decode_delta = msgspec.json.Decoder(ContentFrame | PlanFrame | CallFrame).decode

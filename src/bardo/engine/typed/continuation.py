"""A further reply to the same request, as the continuation of the one before it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    OpaqueState,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
    UsageUpdate,
)
from bardo.values.usage import Usage, UsageDetails

_IN_BLOCKS = frozenset(
    {ThinkStart, ThinkChunk, ThinkEnd, ContentChunk, RefusalChunk, ToolCallStart, ToolCallChunk, ToolCallEnd}
)
_STATE_OF_BLOCKS = frozenset({UnknownContent, BlockFields, OpaqueState})
_OF_ONE_TURN = _STATE_OF_BLOCKS | {ReplyStart, ReplyFields}


class Continuation:
    """Makes a further reply the continuation of an earlier one: its blocks follow, and its tokens are added.

    Its thinking keeps no opaque state, which belongs to another turn than the one the client will send back, unless it `keeps_state`:
    then both replies are parts of that turn.
    """

    def __init__(self, first_block: int, spent: Usage, *, keeps_state: bool = False) -> None:
        self._first = first_block
        self._spent = spent
        self._renumbered = _IN_BLOCKS | _STATE_OF_BLOCKS if keeps_state else _IN_BLOCKS
        self._dropped = _OF_ONE_TURN - self._renumbered

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on, renumbered."""
        kind = type(item)
        if kind in self._renumbered:
            return (msgspec.structs.replace(item, block=item.block + self._first),)  # type: ignore[union-attr]
        if kind is UsageUpdate:
            return (UsageUpdate(added(self._spent, item.usage)),)  # type: ignore[union-attr]
        return () if kind in self._dropped else (item,)

    def finish(self) -> Sequence[Event]:
        """Nothing is held."""
        return ()


_COUNTS = (
    "input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cached_input_tokens",
    "cache_write_tokens",
    "cost_usd",
)


def added(spent: Usage, usage: Usage) -> Usage:
    """Return the tokens of two replies. What only one of them reported is at least that; what neither did stays unknown."""
    counts = {name: _sum(getattr(spent, name), getattr(usage, name)) for name in _COUNTS}
    details = _added_details(spent.details, usage.details)
    return msgspec.structs.replace(usage, **counts, details=details, raw=_raws(spent, usage))


def _added_details(spent: UsageDetails | None, details: UsageDetails | None) -> UsageDetails | None:
    if spent is None or details is None:
        return details or spent
    counts = {
        name: _sum(getattr(spent, name), getattr(details, name))
        for name in UsageDetails.__struct_fields__
        if name != "service_tier"
    }
    return msgspec.structs.replace(details, **counts)


def _sum(one: float | None, other: float | None) -> float | None:
    return one if other is None else other if one is None else one + other


def _raws(spent: Usage, usage: Usage) -> dict[str, object]:
    before = spent.raw["attempts"] if isinstance(spent.raw, dict) and "attempts" in spent.raw else [spent.raw]
    return {"attempts": [*before, usage.raw]}

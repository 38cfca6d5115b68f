"""Sums of calls by day and by who was asked, kept beside the rows: a month of a million calls is read in an instant.

They are written in the transaction of the rows, so they are the sum of the rows however a process ends. A day is one of UTC, by the time
at which a call began.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from bardo.adapters.stores.log.row import LARGEST_COUNT, LONGEST_NAME, mended_text
from bardo.values.usage import Cause

SECONDS_PER_DAY = 86_400
LAST_DAY = 2**31 - 1
CAUSES: tuple[Cause, ...] = get_args(Cause)


class RollupKey(NamedTuple):
    """The common values of calls that are summed. `day` counts days since 1970; a text that a call does not have is empty."""

    day: int
    provider: str
    model: str
    key_id: str
    subsystem: str
    operation: str


class CallSums(msgspec.Struct, gc=False, kw_only=True):
    """Sums over some calls.

    A sum is over the calls that reported the number, and the `*_known` counts say how many did. `cost_nanos` and `parts` are of calls whose
    cost is known; `partial_nanos` is the known part of the others. `reported_nanos` and `computed_nanos` are of the `compared` calls, for
    which both the provider and the price rows tell the cost. `estimated_calls` rest on an estimate of what was read and written, and
    `estimated_nanos` is their part of `cost_nanos`; of `thinking_estimated` calls only the share of the thinking is estimated.
    """

    calls: int = 0
    failed: int = 0
    seconds: float = 0.0
    input_tokens: int = 0
    input_known: int = 0
    output_tokens: int = 0
    output_known: int = 0
    reasoning_tokens: int = 0
    reasoning_known: int = 0
    cached_input_tokens: int = 0
    cached_known: int = 0
    cache_write_tokens: int = 0
    written_known: int = 0
    cost_nanos: int = 0
    cost_known: int = 0
    partial_nanos: int = 0
    compared: int = 0
    reported_nanos: int = 0
    computed_nanos: int = 0
    saved_nanos: int = 0
    saved_known: int = 0
    parts: dict[str, int] = {}
    estimated_calls: int = 0
    estimated_nanos: int = 0
    thinking_estimated: int = 0

    def take(self, row: Any) -> None:
        """Add one call: a LogRow, or a stored row with its fields."""
        self.calls += 1
        self.failed += row.outcome != "ok"
        self.seconds += row.seconds
        self._take_tokens(row)
        # What the provider's cache saved follows from the tokens, also where something else of the call has no known price.
        if row.cache_saved_nanos is not None:
            self.saved_known += 1
            self.saved_nanos += row.cache_saved_nanos
        self._take_cost(row)
        if is_estimated(row):
            self.estimated_calls += 1
            self.estimated_nanos += row.cost_nanos or 0
        elif row.tokens_approx:
            self.thinking_estimated += 1

    def _take_cost(self, row: Any) -> None:
        if row.cost_nanos is None:
            if row.cost_parts:
                self.partial_nanos += sum(row.cost_parts.values())
            return
        self.cost_known += 1
        self.cost_nanos += row.cost_nanos
        if row.cost_parts:
            parts = self.parts
            for cause, nanos in row.cost_parts.items():
                parts[cause] = parts.get(cause, 0) + nanos
        if row.reported_cost_nanos is not None and row.computed_cost_nanos is not None:
            self.compared += 1
            self.reported_nanos += row.reported_cost_nanos
            self.computed_nanos += row.computed_cost_nanos

    def _take_tokens(self, row: Any) -> None:
        if row.input_tokens is not None:
            self.input_known += 1
            self.input_tokens += row.input_tokens
        if row.output_tokens is not None:
            self.output_known += 1
            self.output_tokens += row.output_tokens
        if row.reasoning_tokens is not None:
            self.reasoning_known += 1
            self.reasoning_tokens += row.reasoning_tokens
        if row.cached_input_tokens is not None:
            self.cached_known += 1
            self.cached_input_tokens += row.cached_input_tokens
        if row.cache_write_tokens is not None:
            self.written_known += 1
            self.cache_write_tokens += row.cache_write_tokens

    def add(self, other: CallSums) -> None:
        """Add the sums of other calls."""
        for name in SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for cause, nanos in other.parts.items():
            self.parts[cause] = self.parts.get(cause, 0) + nanos


SUMS = tuple(name for name in CallSums.__struct_fields__ if name != "parts")
"""The sums that are not by cause."""
ADDED_SUMS = ("estimated_calls", "estimated_nanos", "thinking_estimated")
"""Those of them that a later form added."""


def is_estimated(row: Any) -> bool:
    """Return whether tokens and cost of a call rest on an estimate: a reply of it did not come to its end.

    A whole reply that does not tell how much of it was thinking costs what its provider counted: that is exact.
    """
    if row.tokens_approx and row.outcome != "ok":
        return True
    attempts = row.attempt_records or ()
    return any(entry.get("tokens_approx") if isinstance(entry, dict) else entry.tokens_approx for entry in attempts)


Dimension = Literal["day", "provider", "model", "key", "subsystem", "operation", "session", "agent", "repository"]
"""The labels by which costs can be grouped. A key is an account of the gateway."""
LABELS: tuple[Dimension, ...] = ("session", "agent", "repository")
"""Those that clients name, of which there may be as many as calls: no sums of days are kept by them, they are read from the calls."""
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)


class CostGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of the calls that have something in common: `of` has the day as its number, and texts that are empty where there is none."""

    of: dict[Dimension, int | str]
    sums: CallSums


def day_of(time: float) -> int:
    """Return the day of a Unix time, counted from 1970, in UTC."""
    return math.floor(max(-LAST_DAY, min(time / SECONDS_PER_DAY, LAST_DAY)))


def roll_up(rows: Iterable[Any]) -> dict[RollupKey, CallSums]:
    """Return the sums of rows by what they have in common: each is a LogRow, or has its fields."""
    groups: dict[tuple[int, str, str, str, str, str], CallSums] = {}
    day, begins, ends = 0, math.inf, math.inf
    for row in rows:
        # Rows come in the order of time, so that most are of the day of the one before.
        if not begins <= row.started_at < ends:
            day = day_of(row.started_at)
            begins, ends = day * SECONDS_PER_DAY, (day + 1) * SECONDS_PER_DAY
        key = (day, row.provider, row.model, row.key_id or "", row.subsystem or "", row.operation)
        sums = groups.get(key)
        if sums is None:
            sums = groups[key] = CallSums()
        sums.take(row)
    return {RollupKey(*key): sums for key, sums in groups.items()}


def part_column(cause: str) -> str:
    """Return the name of the column of a cause."""
    return f"{cause}_part_nanos"


def column_values(key: RollupKey, sums: CallSums) -> dict[str, int | float | str]:
    """Return the column values of a group."""
    texts = {name: mended_text(text, LONGEST_NAME) for name, text in zip(key._fields[1:], key[1:], strict=True)}
    numbers = {name: _bounded(getattr(sums, name)) for name in SUMS if name not in ADDED_SUMS}
    parts = {part_column(cause): _bounded(sums.parts.get(cause, 0)) for cause in CAUSES}
    added = {name: _bounded(getattr(sums, name)) for name in ADDED_SUMS}
    return {"group_id": group_id(key.day, texts), "day": key.day, **texts, **numbers, **parts, **added}


def group_id(day: int, texts: Mapping[str, str]) -> str:
    """Return the id of a group: its texts together can be longer than what a database keeps in an index."""
    # No text in the log holds the separator: it is mended.
    key = "\0".join([str(day), *(texts[name] for name in RollupKey._fields[1:])])
    return hashlib.blake2b(key.encode(), digest_size=16).hexdigest()


def _bounded(number: int | float) -> int | float:
    return max(-LARGEST_COUNT, min(number, LARGEST_COUNT))

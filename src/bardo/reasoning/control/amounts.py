"""How much thinking: levels, tokens, and the one table between them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bardo.values.request import EFFORTS, Effort

HEADROOM = 1024
"""Tokens of the output limit that are left to the answer where a budget would take all."""
DEFAULT_OUTPUT = 8192
"""The room for an answer where a limit must be sent and the caller named none; thinking comes on top."""


class PortableBudgets(msgspec.Struct, frozen=True, kw_only=True):
    """What each level is worth in tokens: what is asked for, not what a model will use."""

    minimal: int = 1024
    low: int = 2048
    medium: int = 8192
    high: int = 32_768
    xhigh: int = 49_152
    max: int = 65_536

    def tokens(self, effort: Effort) -> int:
        """Return the tokens of a level."""
        tokens: int = getattr(self, effort)
        return tokens

    def level(self, tokens: int) -> Effort:
        """Return the nearest level; of two that are as near, the higher."""
        return min(reversed(EFFORTS), key=lambda effort: abs(self.tokens(effort) - tokens))


PORTABLE = PortableBudgets()


def ladder(efforts: Sequence[str]) -> tuple[Effort, ...]:
    """Return those of a model's words that are levels, in rising order."""
    return tuple(effort for effort in EFFORTS if effort in efforts)


def nearest_level(wanted: Effort, offered: Sequence[Effort]) -> Effort:
    """Choose the closest level not above `wanted`, or the lowest there is."""
    rank = EFFORTS.index(wanted)
    ranked = sorted(offered, key=EFFORTS.index)
    return max((one for one in ranked if EFFORTS.index(one) <= rank), key=EFFORTS.index, default=ranked[0])


def nearest_tokens(wanted: int, *, least: int, most: int | None, room: int | None, headroom: int) -> int | None:
    """Return the nearest budget from `least` to `most` that leaves the answer its headroom within `room`.

    A model's least goes before the headroom; None where not even that is below `room`. Where the room is small, the headroom is half of
    it.
    """
    highest = wanted if most is None else min(wanted, most)
    if room is not None:
        highest = min(highest, room - max(1, min(headroom, room // 2)))
    sent = max(least, highest)
    return sent if room is None or sent < room else None

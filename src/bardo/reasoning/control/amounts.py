"""How much thinking: levels, tokens, and the one table between them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bardo.values.request import EFFORTS, Effort

HEADROOM = 1024
"""Tokens of the output limit that are left to the answer where a budget would take all."""
DEFAULT_OUTPUT = 8192
"""The room for an answer where a limit must be sent and the caller named none; thinking comes on top."""


class PortableBudgets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


def nearest_level(requested: Effort, offered: Sequence[Effort]) -> Effort:
    """Choose the closest level not above `requested`, or the lowest there is."""
    rank = EFFORTS.index(requested)
    ranked = sorted(offered, key=EFFORTS.index)
    return max((one for one in ranked if EFFORTS.index(one) <= rank), key=EFFORTS.index, default=ranked[0])


def answer_room(limit: int, headroom: int = HEADROOM) -> int:
    """Return how much of an output limit a budget leaves to the answer: `headroom`, or half of a limit that is smaller than twice that."""
    return max(1, min(headroom, limit // 2))


def nearest_tokens(requested: int, *, least: int, most: int | None, room: int | None, headroom: int) -> int | None:
    """Return the nearest budget from `least` to `most` that leaves the answer its room within the output limit `room`.

    A model's least goes before the answer's room as long as a quarter of the limit is left; None where it is not.
    """
    highest = requested if most is None else min(requested, most)
    if room is None:
        return max(least, highest)
    sent = max(least, min(highest, room - answer_room(room, headroom)))
    return sent if sent <= room - answer_room(room, headroom) or 4 * (room - sent) >= room else None

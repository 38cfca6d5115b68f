"""Where a text has something that speaks for an instruction, and how much that weighs beside what stands near it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bardo.catalog.layer_rows import Role

NEAR = 700
"""Characters in which what was matched belongs together."""
_STEP = 60
_ALONE = 0.3
"""The part of its weight that counts where somebody is spoken to and told nothing, or is told something and nobody is spoken to."""
_MOST_FOLLOWS = 1.4


class Match(NamedTuple):
    """A match of one rule, and where it stands."""

    name: str
    weight: float
    role: Role
    start: int
    end: int


class Group(NamedTuple):
    """Matches that stand near each other, and how much they weigh together; 1 is enough."""

    weight: float
    matches: tuple[Match, ...]


def heaviest(matches: Sequence[Match]) -> Group:
    """Return the matches near each other that weigh most."""
    return max(groups(matches), key=lambda one: one.weight, default=Group(0.0, ()))


def groups(matches: Sequence[Match]) -> list[Group]:
    """Return what the matches near each other weigh, for the first of them and then for those that begin some way behind it."""
    found = sorted(matches, key=lambda one: one.start)
    made: list[Group] = []
    until, last = 0, -_STEP
    for place, first in enumerate(found):
        if first.start < last + _STEP:
            continue
        last = first.start
        while until < len(found) and found[until].start <= first.start + NEAR:
            until += 1
        made.append(weighed(found[place:until]))
    return made


def weighed(matches: Sequence[Match]) -> Group:
    """Return matches with what they weigh: each rule once, and who is addressed counts in full only with what follows."""
    by_name: dict[str, Match] = {}
    for one in matches:
        if one.name not in by_name or by_name[one.name].weight < one.weight:
            by_name[one.name] = one
    kinds: dict[Role, list[float]] = {"sign": [], "addressed": [], "follows": []}
    for one in by_name.values():
        kinds[one.role].append(one.weight)
    addressed, follows = max(kinds["addressed"], default=0.0), min(_MOST_FOLLOWS, sum(kinds["follows"]))
    together = addressed + follows if addressed and follows else _ALONE * (addressed + follows)
    return Group(sum(kinds["sign"]) + together, tuple(by_name.values()))

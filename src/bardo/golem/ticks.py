"""Which tools a tick is done with, by the kind of work that it is (003, "Tool pruning (Layer 5 detail)")."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches

from bardo.catalog.matching import matches_any
from bardo.golem.rows import tick_rows
from bardo.values.errors import InvalidRequest

OwnTools = Mapping[str, Sequence[str]]
"""Globs of the names of an agent's own tools, by the kinds of ticks."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_NO_LETTER = re.compile(r"[^a-z]")


def tick_kinds() -> tuple[str, ...]:
    """Return the kinds of work that a tick may be."""
    return tuple(row.name for row in tick_rows().kind)


def kind_of_tick(said: str) -> str:
    """Return the kind that a tick says, however it is spelled: `TradeExecution`, `trade-execution`.

    Raises InvalidRequest for a kind that no row has.
    """
    spelled = {_NO_LETTER.sub("", name): name for name in tick_kinds()}
    plain = _NO_LETTER.sub("", said.lower())
    if plain in spelled:
        return spelled[plain]
    near = get_close_matches(plain, spelled, n=1)
    hint = f"did you mean {spelled[near[0]]!r}?" if near else f"kinds of ticks: {', '.join(tick_kinds())}"
    raise InvalidRequest(f"no kind of tick is called {said[:100]!r}", hint=hint, param="bardo.tick.type")


def tools_of_tick(
    kind: str, names: Sequence[str], *, stay: Collection[str] = (), own: OwnTools | None = None
) -> list[str]:
    """Return which of the tools with these names a kind of tick is done with, sorted: no more than `most` of the rows.

    Those that `stay` go first, then those of the kind, then those of no kind, which may be of use in any; within each by name. Where `own`
    has the kind, its globs alone say what is of it.
    """
    own = own or {}
    of_kind = {name: _kinds_of(name, own) for name in names}
    ranked = sorted(
        {name for name, kinds in of_kind.items() if name in stay or kind in kinds or (not kinds and kind not in own)},
        key=lambda name: (name not in stay, kind not in of_kind[name], name),
    )
    staying = sum(name in stay for name in ranked)
    return sorted(ranked[: max(tick_rows().most, staying)])


def _kinds_of(name: str, own: OwnTools) -> set[str]:
    """Return the kinds of ticks that a tool belongs to."""
    words = {word.lower() for word in _WORD.findall(name)}
    words |= {word.removesuffix("s") for word in words}
    return {
        row.name
        for row in tick_rows().kind
        if (matches_any(name, tuple(own[row.name])) if row.name in own else not words.isdisjoint(row.tools))
    }

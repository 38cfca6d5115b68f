"""Which of the replies that were kept each message of a history was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bardo.reasoning.replay.kept import Kept
from bardo.reasoning.replay.keys import TurnKeys


def assigned(turns: Sequence[TurnKeys], found: Mapping[str, Kept]) -> dict[int, Kept]:
    """Return the kept reply of each message, by its place; each reply is one message at most.

    A message is known by its state, by what it says behind its conversation, or by calls with globally unique ids. Where these lead to
    different replies, it is none of them.
    """
    found = {key: kept for key, kept in found.items() if kept.parts}
    made: dict[int, Kept] = {}
    used: set[int] = set()
    for by_conversation in (True, False):
        for turn in turns:
            if turn.place in made:
                continue
            keys = _by_conversation(turn) if by_conversation else (turn.calls,)
            kept = next((one for some in keys if (one := _only(some, found, used)) is not None), None)
            if kept is not None:
                made[turn.place] = kept
                used.add(id(kept))
    return made


def _by_conversation(turn: TurnKeys) -> tuple[Iterable[str], ...]:
    return (turn.states, (turn.exact,), (turn.unnamed,) if turn.unnamed else ())


def _only(keys: Iterable[str], found: Mapping[str, Kept], used: set[int]) -> Kept | None:
    """Return the one reply that all of these keys lead to, so far as they lead anywhere."""
    candidates = {id(kept): kept for key in keys if (kept := found.get(key)) is not None}
    only = next(iter(candidates.values())) if len(candidates) == 1 else None
    return None if only is None or id(only) in used else only

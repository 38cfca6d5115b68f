"""Which earlier state of a caller a provider's account has refused: it is left out of the next turns, so that they are refused no more.

What is remembered of one caller is never looked at for another. It ends after a day, and with the process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping

from bardo.catalog.replay import Reader
from bardo.reasoning.replay.keys import digest

Refused = Mapping[str, Collection[str]]
"""The data of the states that each reader has refused, by `name_of` the reader."""
_SECONDS = 86_400.0
_MOST_CALLERS = 2_000
_MOST_STATES = 500


def name_of(reader: Reader) -> str:
    """Return what a refusal holds for: a configured provider with its account, whatever model is asked."""
    return f"{reader.provider}\0{reader.account}"


class Refusers:
    """Remembers, by caller, the states that were refused: the newest of each caller, and those of the newest callers."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._callers: OrderedDict[str, OrderedDict[tuple[str, str], float]] = OrderedDict()

    def note(self, caller: str, reader: str, states: Collection[str]) -> None:
        """Take that a reader refused states of a caller, and answered once they were left out."""
        held = self._callers.setdefault(caller, OrderedDict())
        self._callers.move_to_end(caller)
        until = self._clock() + _SECONDS
        for state in states:
            place = reader, digest(state)
            held[place] = until
            held.move_to_end(place)
        while len(held) > _MOST_STATES:
            held.popitem(last=False)
        while len(self._callers) > _MOST_CALLERS:
            self._callers.popitem(last=False)

    def among(self, caller: str, states: Collection[str]) -> Refused:
        """Return which of these states of a caller were refused, and by whom."""
        held = self._callers.get(caller)
        if not held:
            return {}
        now, found = self._clock(), dict[str, set[str]]()
        by_digest = {digest(state): state for state in states}
        for (reader, place), until in held.items():
            if until > now and place in by_digest:
                found.setdefault(reader, set()).add(by_digest[place])
        return found

    @property
    def empty(self) -> bool:
        """Whether nothing was refused."""
        return not self._callers

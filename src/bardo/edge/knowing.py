"""What is known of models' thinking while the program runs: an operator's rows, what servers said, and what refusals taught.

Planning asks here from memory, and waits for nobody.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bardo.catalog.matching import matches_any
from bardo.catalog.models import Facts, ModelRow
from bardo.edge.introspect import Introspector, log_override
from bardo.engine.knowledge import control_target
from bardo.engine.reading import SeenStart
from bardo.engine.route import Target
from bardo.reasoning.control import ControlTarget, Known, Layer, RouteFact, know
from bardo.reasoning.starting import SWITCHES, toggles_thinking

DAYS_TO_REMEMBER = 1
"""A refusal may have been a mistake of the provider's, and models change."""
_MOST_KEPT = 4096


class Knowing:
    """The layers over the catalog, for each target. `rows` are the operator's; `clock` gives Unix time."""

    def __init__(
        self,
        rows: Sequence[ModelRow] = (),
        *,
        introspector: Introspector | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._rows = tuple((row, Layer("operator", row, row.source or "bardo.toml")) for row in rows)
        self._introspector = introspector
        self._clock = clock
        self._learned: dict[ControlTarget, RouteFact] = {}
        self._known: dict[ControlTarget, tuple[tuple[Layer, ...], Known]] = {}
        self._starts: dict[tuple[ControlTarget, str, bool], SeenStart] = {}
        self._told: set[ControlTarget] = set()

    def layers(self, target: Target) -> tuple[Layer, ...]:
        """Return what is said of a target now, the operator's word first."""
        own = [layer for row, layer in self._rows if _speaks_of(row, target)]
        live = self._introspector.layers(target) if self._introspector is not None else ()
        learned = self._fact(target)
        if own and live:
            self._tell(target, live[0].facts, own[0].facts)
        return (*own, *((learned.layer,) if learned is not None else ()), *live)

    def known(self, target: Target) -> Known:
        """Return all that is known of a target; it is worked out anew only where something new was said."""
        place = control_target(target)
        layers = self.layers(target)
        if not layers:
            return know(place)
        kept = self._known.get(place)
        if kept is not None and kept[0] == layers:
            return kept[1]
        found = know(place, layers)
        if len(self._known) >= _MOST_KEPT:
            self._known.clear()
        self._known[place] = (layers, found)
        return found

    def rendered(self, target: Target, toggles: Mapping[str, Any]) -> bool | None:
        """Return whether the prompt that the server renders with template arguments opens the thinking; None where it was not seen."""
        live = self._introspector.facts(target.provider, target.model) if self._introspector is not None else None
        if live is None or not toggles:
            return None if live is None else live.starts_inside
        understood = (live.switch,) if live.switch else SWITCHES
        thinks = toggles_thinking(toggles)
        if thinks is None or not all(name in understood for name in toggles):
            return None
        return live.starts_inside_on if thinks else live.starts_inside_off

    def seen_start(self, target: Target, off: bool) -> SeenStart | None:
        """Return how earlier replies of a target began, to requests that asked for no thinking (`off`) or to others."""
        seen = self._starts.get((control_target(target), target.provider.base_url, off))
        if seen is not None or self._introspector is None:
            return seen
        live = self._introspector.facts(target.provider, target.model)
        # llama-server says "none" whatever its flag: it is the default of a request, not what the server does.
        separates = live is not None and live.text_format not in (None, "none")
        return "separated" if separates else None

    def learn_start(self, target: Target, off: bool, seen: SeenStart | None) -> None:
        """Keep how a reply began; None: what was seen before holds no more."""
        key = (control_target(target), target.provider.base_url, off)
        if seen is None:
            self._starts.pop(key, None)
        elif self._starts.get(key) != seen:
            if len(self._starts) >= _MOST_KEPT:
                self._starts.clear()
            self._starts[key] = seen

    def learn(self, fact: RouteFact) -> None:
        """Keep what a refusal taught."""
        if len(self._learned) >= _MOST_KEPT:
            self._learned.clear()
        self._learned[fact.target] = fact

    def today(self) -> datetime.date:
        """Return the date, in UTC."""
        return datetime.datetime.fromtimestamp(self._clock(), datetime.UTC).date()

    def _fact(self, target: Target) -> RouteFact | None:
        place = control_target(target)
        fact = self._learned.get(place)
        if fact is not None and (self.today() - fact.date).days > DAYS_TO_REMEMBER:
            del self._learned[place]
            return None
        return fact

    def _tell(self, target: Target, live: Facts, override: Facts) -> None:
        """Note once where an operator goes against a server."""
        place = control_target(target)
        if place not in self._told and len(self._told) < _MOST_KEPT:
            self._told.add(place)
            log_override(target, live, override)


def _speaks_of(row: ModelRow, target: Target) -> bool:
    if row.provider not in ("*", target.provider.id, target.provider.row.id):
        return False
    return matches_any(target.model.lower(), map(str.lower, row.match))

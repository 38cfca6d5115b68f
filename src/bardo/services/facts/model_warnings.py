"""What an operator is warned of, once for each model in use: that nothing is known of its thinking, and that it shuts down."""

from __future__ import annotations

import logging

from bardo.engine.attempt import Attempt
from bardo.engine.knowledge import Knowledge, PlaceName, place_name
from bardo.routing.profiles import LOCKED

_MOST_WARNED = 1000
"""Clients choose the names of models, so the log may not grow with them."""

_log = logging.getLogger("bardo.control")


class ModelWarnings:
    """Warns of what is asked."""

    def __init__(self) -> None:
        self._unclassified: set[PlaceName] = set()
        self._used: set[PlaceName] = set()

    def note(self, attempt: Attempt, knowledge: Knowledge) -> None:
        """Take an attempt that is about to be sent."""
        place = place_name(attempt.target)
        if place not in self._used and len(self._used) < _MOST_WARNED:
            self._used.add(place)
            _warn_of_shutdown(attempt, knowledge)
        plan = attempt.control
        if plan is not None and plan.unclassified:
            self._warn_of_unclassified(place, plan.form, plan.like)
        for lost in attempt.degraded:
            if lost.why == LOCKED:
                about = {"field": lost.what, "provider": attempt.target.provider.id, "model": attempt.target.model}
                _log.warning("%s was asked for otherwise: %s", lost.what, LOCKED, extra=about)

    def _warn_of_unclassified(self, place: PlaceName, form: str, like: str) -> None:
        """Warn of a model whose thinking is asked for in a form that is only assumed."""
        if place in self._unclassified or len(self._unclassified) >= _MOST_WARNED:
            return
        self._unclassified.add(place)
        provider, _, model = place
        _log.warning(
            "nothing is known of %r at %s: %sits thinking is asked for in the form %s; `bardo probe` finds out more",
            model,
            provider,
            f"it is taken to be like {like}, and " if like else "",
            form,
            extra={"provider": provider, "model": model, "form": form, "like": like},
        )


def _warn_of_shutdown(attempt: Attempt, knowledge: Knowledge) -> None:
    """Warn of a model whose provider has named the day on which it shuts down."""
    day = knowledge.of(attempt.target).known.facts.shutdown
    if day is None:
        return
    provider, model = attempt.target.provider.place, attempt.target.model
    when = "was to shut down" if day <= knowledge.today else "shuts down"
    about = {"provider": provider, "model": model, "shutdown": day.isoformat()}
    _log.warning("%r at %s %s on %s: move to another model", model, provider, when, day, extra=about)

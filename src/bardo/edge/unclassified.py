"""A line in the operator's log for each model that nobody has said anything of: its thinking is asked for on an assumption."""

from __future__ import annotations

import logging

from bardo.engine.exchange import Attempt

# Clients choose the names of models, so neither the memory nor the log may grow with them.
MOST_NOTED = 1000

_log = logging.getLogger("bardo.control")


class UnclassifiedModels:
    """Warns once of each model at each provider."""

    def __init__(self) -> None:
        self._noted: set[tuple[str, str]] = set()

    def see(self, attempt: Attempt) -> None:
        """Warn where the attempt asks for thinking in a form that nothing but the provider's kind speaks for."""
        plan = attempt.control
        if plan is None or not plan.unclassified:
            return
        place = (attempt.target.provider.id, attempt.target.model)
        if place in self._noted or len(self._noted) >= MOST_NOTED:
            return
        self._noted.add(place)
        provider, model = place
        _log.warning(
            "nothing is known of %r at %s: its thinking is asked for in the form %s; `bardo probe` finds out more",
            model,
            provider,
            plan.form,
            extra={"provider": provider, "model": model, "form": plan.form},
        )


OF_THIS_PROCESS = UnclassifiedModels()

"""Days of UTC, with which budgets and the figures of a day begin anew."""

from __future__ import annotations

import time

from support.patience import PATIENCE

_DAY = 86_400.0


def stay_in_one_day() -> None:
    """Wait for the next day where this one ends sooner than a test may take that counts calls of one day."""
    left = _DAY - time.time() % _DAY
    if left < PATIENCE:
        time.sleep(left + 0.01)

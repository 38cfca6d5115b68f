"""Intervals of measured shares."""

from __future__ import annotations

import math

_Z = 1.959964
"""The 97.5 % point of the normal distribution."""


def wilson(successes: float, rows: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927); 0 to 1 where there are no rows."""
    if rows <= 0:
        return 0.0, 1.0
    share, square = successes / rows, _Z * _Z
    middle = share + square / (2 * rows)
    half = _Z * math.sqrt(share * (1 - share) / rows + square / (4 * rows * rows))
    whole = 1 + square / rows
    # Rounding may leave a share of 0 or 1 just outside.
    return max(0.0, min(share, (middle - half) / whole)), min(1.0, max(share, (middle + half) / whole))

"""What bardo changed or could not honour, told to the caller."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec


class Degradation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One difference between what was asked (or received) and what was sent on.

    `what` names the field or feature, `why` is one clause for a person. `asked` and `sent` are plain values.
    """

    what: str
    asked: Any = None
    sent: Any = None
    why: str = ""


def distinct(degraded: Iterable[Degradation]) -> tuple[Degradation, ...]:
    """Return each difference once, in order."""
    kept: list[Degradation] = []
    for degradation in degraded:
        if degradation not in kept:
            kept.append(degradation)
    return tuple(kept)

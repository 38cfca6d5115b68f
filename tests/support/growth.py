"""How much more processor time a larger input takes than a smaller one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Input = TypeVar("Input")


# Work that takes less is repeated, so that a processor shared with others is not taken for growth.
_ENOUGH_SECONDS = 0.02
_MOST_TRIES = 20


def growth(work: Callable[[Input], object], small: Input, large: Input) -> float:
    """Return the processor time of `large` over that of `small`, each the best of at least two tries, and of more where they are short."""
    return _seconds(work, large) / max(_seconds(work, small), 1e-4)


def _seconds(work: Callable[[Input], object], given: Input) -> float:
    taken = [_once(work, given), _once(work, given)]
    while sum(taken) < _ENOUGH_SECONDS and len(taken) < _MOST_TRIES:
        taken.append(_once(work, given))
    return min(taken)


def _once(work: Callable[[Input], object], given: Input) -> float:
    begin = time.process_time()
    work(given)
    return time.process_time() - begin

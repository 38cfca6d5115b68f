"""How much more processor time a larger input takes than a smaller one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Input = TypeVar("Input")

# Short work is repeated more often, because other programs on the same processor disturb it more.
_ENOUGH_SECONDS = 0.02
_FEWEST_TRIES = 3
_MOST_TRIES = 20


def growth(work: Callable[[Input], object], small: Input, large: Input) -> float:
    """Return the processor time that this thread needs for `large`, divided by its time for `small`.

    Each is the shortest of several tries. The two are measured in turn, so that a change of the processor's speed concerns both, and other
    threads of the process, such as those of simulators, do not count.
    """
    small_seconds: list[float] = []
    large_seconds: list[float] = []
    while len(small_seconds) < _FEWEST_TRIES or (
        sum(small_seconds) < _ENOUGH_SECONDS and len(small_seconds) < _MOST_TRIES
    ):
        small_seconds.append(_seconds(work, small))
        large_seconds.append(_seconds(work, large))
    return min(large_seconds) / max(min(small_seconds), 1e-4)


def _seconds(work: Callable[[Input], object], given: Input) -> float:
    begin = time.thread_time()
    work(given)
    return time.thread_time() - begin

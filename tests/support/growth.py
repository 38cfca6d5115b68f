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
# Only work that grows too much is tried so often: what disturbs it is gone in one of the tries.
_MOST_TRIES_OF_A_FAILURE = 60
_LONGEST_FAILURE = 60.0


def check_growth(work: Callable[[Input], object], small: Input, large: Input, *, below: float) -> None:
    """Check that this thread needs less than `below` times the processor time for `large` that it needs for `small`.

    Each is the shortest of several tries, and of more tries where it is not below. The two are measured in turn, so that a change of the
    processor's speed concerns both, and other threads of the process, such as those of simulators, do not count.
    """
    small_seconds: list[float] = []
    large_seconds: list[float] = []
    while True:
        small_seconds.append(_seconds(work, small))
        large_seconds.append(_seconds(work, large))
        tries, spent = len(small_seconds), sum(small_seconds)
        if tries < _FEWEST_TRIES or (spent < _ENOUGH_SECONDS and tries < _MOST_TRIES):
            continue
        growth = min(large_seconds) / max(min(small_seconds), 1e-4)
        if growth < below:
            return
        given_up = tries >= _MOST_TRIES_OF_A_FAILURE or sum(large_seconds) > _LONGEST_FAILURE
        assert not given_up, f"it takes {growth:.1f} times as long, and not less than {below:g} times"


def _seconds(work: Callable[[Input], object], given: Input) -> float:
    begin = time.thread_time()
    work(given)
    return time.thread_time() - begin

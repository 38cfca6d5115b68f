"""How much more processor time a larger input takes than a smaller one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Input = TypeVar("Input")


def growth(work: Callable[[Input], object], small: Input, large: Input, *, tries: int = 2) -> float:
    """Return the processor time of `large` over that of `small`, each the best of `tries`."""
    return _seconds(work, large, tries) / max(_seconds(work, small, tries), 1e-4)


def _seconds(work: Callable[[Input], object], given: Input, tries: int) -> float:
    return min(_once(work, given) for _ in range(tries))


def _once(work: Callable[[Input], object], given: Input) -> float:
    begin = time.process_time()
    work(given)
    return time.process_time() - begin

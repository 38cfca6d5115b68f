"""The processor time that the layers of one long request may take together: a short request takes next to none."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from time import thread_time_ns
from typing import TypeVar

from bardo.adapters.long_work import without_collection
from bardo.context.effects import CHECK
from bardo.context.effects import TooMuchWork as TooMuchWork

Result = TypeVar("Result")

LEFT_OUT = "left_out"
"""The receipt's text for a layer without time left."""


class WorkBudget:
    """Counts the processor time of work at one request, of which there may be `seconds`."""

    __slots__ = ("_most", "_spent", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._most = seconds * 1e9
        self._spent = 0

    def check(self) -> None:
        """Raise TooMuchWork where it is used up."""
        if self._spent >= self._most:
            raise TooMuchWork

    def run(self, work: Callable[[], Result]) -> Result:
        """Return what `work` gives, done as long work is, and count the time that it took in this thread.

        Raises what it raises, and TooMuchWork where it looks at its time and none is left.
        """
        began = thread_time_ns()

        def check() -> None:
            if self._spent + thread_time_ns() - began >= self._most:
                raise TooMuchWork

        looks = CHECK.set(check)
        try:
            return without_collection(work)
        finally:
            CHECK.reset(looks)
            self._spent += thread_time_ns() - began


CURRENT: ContextVar[WorkBudget | None] = ContextVar("work_of_layers", default=None)
"""The budget of the request on which a layer works, or None if its work is not counted. A thread has that of who waits for it."""


def run_counted(work: Callable[[], Result]) -> Result:
    """Return what `work` gives; its time is counted where a layer waits for it. Raises what it raises."""
    budget = CURRENT.get()
    return without_collection(work) if budget is None else budget.run(work)

"""The time that work at a text is given: whoever works for long looks between its parts whether some is left."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar


class TooMuchWork(Exception):
    """The layers of a request have used the time that they have."""


CHECK: ContextVar[Callable[[], None] | None] = ContextVar("check_of_given_time", default=None)
"""Raises TooMuchWork where no time is left; None where the time is not counted."""


def check_time() -> None:
    """Raise TooMuchWork where the running work has used the time that it was given."""
    check = CHECK.get()
    if check is not None:
        check()

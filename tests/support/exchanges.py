"""Exchanges in tests: answer an attempt, and get what that taught beside the next attempt."""

from __future__ import annotations

from bardo.engine.attempt import Attempt
from bardo.engine.exchange import Exchange
from bardo.engine.knowledge import Lesson
from bardo.values.errors import BardoError


def begin(exchange: Exchange) -> Attempt:
    """Return the first attempt."""
    first = next(exchange)
    assert isinstance(first, Attempt)
    return first


def answer(exchange: Exchange, failure: BardoError | None) -> tuple[Attempt, list[Lesson]]:
    """Return the attempt after one that failed, and what the failure taught. Raises StopIteration where there is none."""
    item, lessons = exchange.send(failure), []
    while not isinstance(item, Attempt):
        lessons.append(item)
        item = next(exchange)
    return item, lessons

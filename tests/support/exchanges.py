"""Exchanges in tests: answer an attempt, and get what the next attempt will teach once it is answered; and take that as calls do."""

from __future__ import annotations

from bardo.planning.attempt import Attempt
from bardo.planning.exchange import Exchange
from bardo.planning.knowledge import Lesson
from bardo.services.facts.model_facts import ModelFacts
from bardo.values.errors import BardoError
from bardo.values.request import Request
from bardo.values.wire import WireRequest


def begin(exchange: Exchange) -> Attempt:
    """Return the first attempt."""
    return next(exchange)


def answer(exchange: Exchange, failure: BardoError | None) -> tuple[Attempt, list[Lesson]]:
    """Return the attempt after one that failed, and what its answer will prove. Raises StopIteration where there is none."""
    attempt = exchange.send(failure)
    return attempt, list(attempt.teaches)


def learn(facts: ModelFacts, lesson: Lesson, request: Request, tenant: str = "") -> None:
    """Take that an attempt was answered that proves the lesson."""
    wire = WireRequest(path="", body=b"{}")
    facts.note_answered(Attempt(target=lesson.target, wire=wire, teaches=(lesson,)), tenant, request)

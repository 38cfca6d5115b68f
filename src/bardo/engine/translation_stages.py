"""The stages of a reply that is written anew for a client of another dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

from bardo.engine.attempt import Attempt
from bardo.engine.citations import citations_between
from bardo.engine.cited_pages import cited_pages
from bardo.engine.foreign_content import ForeignContent
from bardo.engine.log_probabilities import logprobs_between
from bardo.engine.refusal_details import refusal_stages
from bardo.reasoning.replay import Origins
from bardo.streams.stage import Stage
from bardo.values.events import Event
from bardo.values.request import Request


def stages_of_translation(attempt: Attempt, request: Request, *, forward: bool) -> list[Stage[Event, Event]]:
    """Return the stages of the reply to an attempt: one whose bytes are forwarded has none."""
    if forward:
        return []
    row, client = attempt.target.provider.row, request.dialect
    asks_more = bool(request.extra)
    stages: list[Stage[Event, Event]] = []
    for make in _makers(row.dialect, client, row.quirks.cited_pages, attempt.target.model, asks_more=asks_more):
        stages += make()
    stages.append(ForeignContent(client))
    if attempt.origin is not None:
        stages.append(Origins(attempt.origin))
    return stages


@lru_cache(maxsize=256)
def _makers(
    source: str, client: str, paths: tuple[str, ...], model: str, *, asks_more: bool
) -> tuple[Callable[[], Sequence[Stage[Event, Event]]], ...]:
    """Return what makes the stages between two dialects, which differ with each reply; without what makes none."""
    makers: list[Callable[[], Sequence[Stage[Event, Event]]]] = [
        partial(cited_pages, source, client, paths),
        partial(citations_between, source, client, model),
        partial(refusal_stages, source, client),
    ]
    if asks_more:
        makers.insert(2, partial(logprobs_between, source, client))
    return tuple([make for make in makers if make()])

"""The stages of a reply that is written anew for a client of another dialect."""

from __future__ import annotations

from bardo.engine.citations import citations_between
from bardo.engine.cited_pages import cited_pages
from bardo.engine.foreign_content import ForeignContent
from bardo.engine.log_probabilities import logprobs_between
from bardo.engine.planning import Attempt
from bardo.engine.refusal_details import refusal_stages
from bardo.reasoning.replay import Origins
from bardo.streams.stage import Stage
from bardo.values.events import Event
from bardo.values.request import Request


def stages_of_translation(attempt: Attempt, request: Request, *, forward: bool) -> list[Stage[Event, Event]]:
    """Return the stages of the reply to an attempt: one whose bytes are forwarded has none."""
    if forward:
        return []
    stamps = [] if attempt.origin is None else [Origins(attempt.origin)]
    row, client = attempt.target.provider.row, request.dialect
    return [
        *cited_pages(row.dialect, client, row.quirks.cited_pages),
        *citations_between(row.dialect, client, attempt.target.model),
        *(logprobs_between(row.dialect, client) if request.extra else ()),
        *refusal_stages(row.dialect, client),
        ForeignContent(client),
        *stamps,
    ]

"""Order the candidates of a call by what was learned of earlier ones: the strategy `learned`.

Only candidates that meet every requirement are chosen among; the others stand behind them as they would by score.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import msgspec

from bardo.catalog.routing_rows import CallSize
from bardo.routing.candidates import NO_CONDITIONS, Candidates, Conditions
from bardo.routing.learned.clusters import Share
from bardo.routing.learned.router import OTHER_ROUTES, LearnedRouter, Pending
from bardo.routing.resolver import Choice
from bardo.routing.scorer import choices_by_score
from bardo.values.request import Intent, Request

MOST_COMPARED = 16
"""How many candidates are chosen among: the first by score."""


class LearnedCall(msgspec.Struct, frozen=True, kw_only=True):
    """What a learned choice needs beside the call: the router, the request's id, the Unix time, and the workload or subsystem.

    `shares` are the clusters of the prompt, or None if they are to be found with the router's embedding.
    """

    router: LearnedRouter
    request_id: str
    at: float
    route: str = OTHER_ROUTES
    shares: tuple[Share, ...] | None = None


def learned_order(
    request: Request,
    candidates: Candidates,
    intent: Intent,
    call: LearnedCall,
    *,
    size: CallSize,
    conditions: Conditions = NO_CONDITIONS,
) -> tuple[Sequence[Choice], Pending | None]:
    """Return who is asked, first to last, and the choice that is learned from, or None if at most one meets the requirements."""
    found = list(islice(choices_by_score(candidates, intent, conditions), MOST_COMPARED))
    able = {name_of(one): one for one in found if not one.relaxed}
    if len(able) < 2:
        return found, None
    pending = call.router.choose(
        prompt_of(request),
        {name: one.candidate.cost(size, diem=intent.diem_available) for name, one in able.items()},
        request_id=call.request_id,
        at=call.at,
        route=call.route,
        cost_sensitivity=intent.cost_sensitivity,
        shares=call.shares,
    )
    ordered = [able[name] for name in pending.choice.order]
    return [*ordered, *(one for one in found if one.relaxed)], pending


def name_of(choice: Choice) -> str:
    """Return the name by which a candidate is known to the table: provider/model."""
    return f"{choice.candidate.provider}/{choice.candidate.model}"


def prompt_of(request: Request) -> str:
    """Return the text of the last message of the user that has one; empty where none has."""
    texts = (message.text for message in reversed(request.messages) if message.role == "user")
    return next((text for text in texts if text), "")

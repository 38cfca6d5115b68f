"""The first attempt of a call that is like an earlier one: what was planned then is taken over, and only what is said is written anew.

Like it is a call of the same shape and the same fields, which names the same targets, while the same is known of them. Calls
of plain text alone are looked up: what is planned of tools, schemas, pictures and a history depends on what stands in them.
`tests/engine/test_repeated_attempts.py` holds each to the attempt that is planned anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from bardo.dialects import dialect
from bardo.dialects.base import Dialect
from bardo.engine.exchange import Exchange, attempts
from bardo.engine.forwarded_body import body_as_it_came
from bardo.engine.knowledge import Knowledge
from bardo.engine.planning import Attempt, with_own_headers
from bardo.engine.request_shape import Place, shape_of
from bardo.engine.route import RouteRecord, Target
from bardo.engine.shape_plan import ShapePlan, plan_shape
from bardo.reasoning.replay import Recalled
from bardo.values.blocks import TextBlock
from bardo.values.errors import BardoError
from bardo.values.request import Message, Request

_ASKED = ("user", "system")


class _Kept(NamedTuple):
    """The attempt of an earlier call, without what was said in it, and the plan of its shape."""

    attempt: Attempt
    planned: ShapePlan
    language: Dialect


class CallPlan:
    """The attempts of one call at `targets`. `find` takes the first over from an earlier call, and `keep` keeps it for the next."""

    __slots__ = ("_may_forward", "_place", "_recalled", "_request", "_route", "knowledge", "targets")

    def __init__(
        self,
        request: Request,
        targets: Sequence[Target],
        knowledge: Knowledge,
        recalled: Recalled,
        *,
        may_forward: bool,
        route: RouteRecord | None,
    ) -> None:
        self.targets, self.knowledge = targets, knowledge
        self._request, self._recalled, self._may_forward, self._route = request, recalled, may_forward, route
        self._place: Place | None = None

    def exchange(self) -> Exchange:
        """Return all attempts of the call, planned now."""
        return self.attempts(self._request, self.targets)

    def attempts(self, request: Request, targets: Sequence[Target]) -> Exchange:
        """Return the attempts at some of the targets for the request with what was lost before."""
        return attempts(
            request,
            targets,
            knowledge=self.knowledge,
            recalled=self._recalled,
            may_forward=self._may_forward,
            route=self._route,
        )

    def find(self) -> Attempt | None:
        """Return the first attempt, with all that is known now; None where there is none like it."""
        knowledge, recalled, request = self.knowledge, self._recalled, self._request
        if self._route is not None or knowledge.search is not None or knowledge.caching is not None or not self.targets:
            return None
        if recalled.found or recalled.degraded or not _is_plain(request):
            return None
        shape, target = shape_of(request), self.targets[0]
        if shape is None:
            return None
        names = None if request.body is None else tuple(request.body)
        self._place = target.provider.place, target.model, shape, names, self._may_forward
        kept: _Kept | None = knowledge.plans.find(self._place, target, knowledge)
        return None if kept is None else _again(kept, request)

    def keep(self, attempt: Attempt) -> None:
        """Keep the first attempt, which `find` did not find, where nothing of it depends on what was said."""
        place, request = self._place, self._request
        if place is None or attempt.target.provider.row.searches_per_day is not None:
            return
        told = attempt.ask or attempt.kept_budget or attempt.search or attempt.caching or attempt.answer
        bound = attempt.origin is not None and attempt.origin.prefix
        if told or bound or attempt.request is not request:
            return
        target, language = attempt.target, dialect(attempt.target.provider.row.dialect)
        facts = self.knowledge.of(target)
        planned = plan_shape(_at(request, target), target, facts, self.knowledge)
        reasoning = planned.controlled.request.reasoning
        if facts.refused_fields or (attempt.forward and (planned.thinking or (reasoning and reasoning.raw_fields))):
            return
        empty = msgspec.structs.replace(attempt.wire, body=b"", headers={})
        bare = msgspec.structs.replace(attempt, request=None, written=None, wire=empty)
        kept = _Kept(bare, planned, language)
        # Whether what is taken over is what was planned shows at the call at hand.
        if _again(kept, request) == attempt:
            self.knowledge.plans.keep(place, self.targets[0], self.knowledge, kept)


def _is_plain(request: Request) -> bool:
    """Whether a request holds nothing but what a user and the operator say in text."""
    if request.tools or request.output_format is not None or request.degraded or request.options.profile is not None:
        return False
    return all(map(_is_text, request.messages))


def _is_text(message: Message) -> bool:
    if message.role not in _ASKED or message.carried is not None or len(message.blocks) != 1:
        return False
    block = message.blocks[0]
    return type(block) is TextBlock and not block.opaque and block.carried is None


def _at(request: Request, target: Target) -> Request:
    return request if request.model == target.model else msgspec.structs.replace(request, model=target.model)


def _again(kept: _Kept, request: Request) -> Attempt | None:
    """Return the attempt for a request; None where it loses something else, or its body must change."""
    attempt, language = kept.attempt, kept.language
    row, asked = attempt.target.provider.row, _at(request, attempt.target)
    if not attempt.forward:
        return _written(kept, request, asked)
    if language.mends(asked, row):
        return None
    wire = with_own_headers(body_as_it_came(asked, language, asks_usage=attempt.withhold_usage), asked, row.dialect)
    return msgspec.structs.replace(attempt, request=request, wire=wire)


def _written(kept: _Kept, request: Request, asked: Request) -> Attempt | None:
    """Return the attempt at a target whose body is written in its own dialect."""
    attempt, planned, language = kept.attempt, kept.planned, kept.language
    row = attempt.target.provider.row
    try:
        written, lost = planned.controlled.with_content(asked)
        wire = language.encode_request(written, row)
    except BardoError:
        return None
    if lost or wire.degraded != attempt.wire.degraded:
        return None
    wire = with_own_headers(wire, asked, row.dialect)
    return msgspec.structs.replace(attempt, request=request, wire=wire, written=written)

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
from bardo.engine.written_texts import WrittenTexts, written_texts
from bardo.reasoning.replay import Recalled
from bardo.values.blocks import TextBlock
from bardo.values.errors import BardoError
from bardo.values.request import Request
from bardo.values.wire import WireRequest

_ASKED = ("user", "system")
_MOST_MESSAGES = 16


class _Kept(NamedTuple):
    """The attempt of an earlier call, without what was said in it, and the plan of its shape."""

    attempt: Attempt
    planned: ShapePlan
    language: Dialect
    texts: WrittenTexts | None = None
    """The body without its texts, where it was written in the dialect of the target and not in the client's."""


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
        roles = None if recalled.found or recalled.degraded else _roles_of(request)
        shape = None if roles is None else shape_of(request)
        if shape is None:
            return None
        target = self.targets[0]
        names = None if request.body is None else tuple(request.body)
        self._place = target.provider.place, target.model, shape, names, roles, self._may_forward
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
        kept = _Kept(bare, planned, language, _texts_of(attempt, language))
        # Whether what is taken over is what was planned shows at the call at hand.
        if _again(kept, request) == attempt:
            self.knowledge.plans.keep(place, self.targets[0], self.knowledge, kept)


def _roles_of(request: Request) -> tuple[str, ...] | None:
    """Return the roles of a request that holds nothing but what a user and the operator say in a few texts; None for any other."""
    if request.tools or request.output_format is not None or request.degraded or request.options.profile is not None:
        return None
    if len(request.messages) > _MOST_MESSAGES:
        return None
    roles = []
    for message in request.messages:
        if message.role not in _ASKED or message.carried is not None or len(message.blocks) != 1:
            return None
        block = message.blocks[0]
        if type(block) is not TextBlock or block.opaque or block.carried is not None:
            return None
        roles.append(message.role)
    return tuple(roles)


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
        body = None if kept.texts is None else kept.texts.body(request)
        wire = language.encode_request(written, row) if body is None else _with_body(attempt.wire, body)
    except BardoError:
        return None
    if lost or wire.degraded != attempt.wire.degraded:
        return None
    wire = with_own_headers(wire, asked, row.dialect)
    return msgspec.structs.replace(attempt, request=request, wire=wire, written=written)


def _with_body(wire: WireRequest, body: bytes) -> WireRequest:
    return WireRequest(path=wire.path, body=body, degraded=wire.degraded)


def _texts_of(attempt: Attempt, language: Dialect) -> WrittenTexts | None:
    """Return the body of an attempt without its texts; None where what is written of a text depends on how the client wrote it."""
    written, row = attempt.written, attempt.target.provider.row
    if written is None or attempt.request is None or written.dialect == row.dialect:
        return None
    if written.messages is not attempt.request.messages:
        return None
    return written_texts(written, attempt.wire, lambda one: language.encode_request(one, row))

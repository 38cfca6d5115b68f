"""The first attempt of a call that is like an earlier one: what was planned then is taken over, and only what is said is written anew.

Like it is a call of the same shape and the same fields, which names the same targets, while the same is known of them. What a history may
change is looked at in each turn, and tools are those that came before. Calls whose answers have a schema are planned.
`tests/engine/test_repeated_attempts.py` holds each to the attempt that is planned anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from bardo.catalog.request_shapes import shape_at
from bardo.dialects import dialect
from bardo.dialects.shared.dialect import Dialect
from bardo.dialects.shared.repeated_tools import REPEATED_TOOLS
from bardo.dialects.shared.same_bytes import has_plain_form
from bardo.engine.attempt import Attempt
from bardo.engine.controlling import dialects_of
from bardo.engine.exchange import Exchange, attempts
from bardo.engine.forwarded_body import body_as_it_came, may_be_sent_on
from bardo.engine.knowledge import Knowledge
from bardo.engine.losses import refuse_losses
from bardo.engine.planning import as_functions, restored_at, with_own_headers
from bardo.engine.request_shape import Place, shape_of
from bardo.engine.route import RouteRecord, Target
from bardo.engine.shape_plan import ShapePlan, plan_shape
from bardo.engine.tool_names import with_written_names
from bardo.engine.tool_schemas import with_written_schemas, written_tool_schemas
from bardo.engine.written_texts import WrittenTexts, written_texts
from bardo.reasoning.replay import Recalled
from bardo.values.blocks import TextBlock
from bardo.values.errors import BardoError
from bardo.values.request import Request, Tool
from bardo.values.wire import WireRequest

_ASKED = ("user", "system")
_MOST_MESSAGES = 16


class _EarlierAttempt(NamedTuple):
    """The attempt of an earlier call, without what was said in it, and the plan of its shape."""

    attempt: Attempt
    planned: ShapePlan
    language: Dialect
    tools: tuple[Tool, ...] | None = None
    """The tools of a turn of a conversation; None for a call of a few plain texts."""
    texts: WrittenTexts | None = None
    """The body without its texts, where it was written anew."""


class CallPlan:
    """The attempts of one call at `targets`. `find` takes the first over from an earlier call, and `keep` keeps it for the next."""

    __slots__ = ("_may_forward", "_place", "_recalled", "_roles", "_route", "knowledge", "request", "targets")

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
        self.request, self._recalled, self._may_forward, self._route = request, recalled, may_forward, route
        self._place: Place | None = None
        self._roles: tuple[str, ...] | None = None
        """Those of a call of a few plain texts; None for a turn of a conversation, and a call with tools."""

    def exchange(self) -> Exchange:
        """Return all attempts of the call, planned now."""
        return self.attempts(self.request, self.targets)

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
        recalled, request = self._recalled, self.request
        if (
            self._route is not None
            or request.output_format is not None
            or request.degraded
            or recalled.degraded
            or recalled.refused
        ):
            return None
        target, roles = self.targets[0], None if recalled.found else _roles_of(request)
        if roles is None and not _may_be_a_turn(request, target):
            return None
        shape = shape_of(request)
        if shape is None:
            return None
        names = None if request.body is None else tuple(request.body)
        self._roles, content = roles, id(request.tools) if roles is None else roles
        self._place = target.provider.place, target.model, shape, names, content, self._may_forward
        knowledge = self.knowledge
        kept: _EarlierAttempt | None = knowledge.plans.find(self._place, target, knowledge)
        if kept is None:
            return None
        return _again(kept, request) if roles is not None else self._next_turn(kept)

    def keep(self, attempt: Attempt) -> None:
        """Keep the first attempt, which `find` did not find, where nothing of it depends on what was said."""
        place, request, knowledge = self._place, self.request, self.knowledge
        if place is None or attempt.target.provider.row.searches_per_day is not None or request.options.search_limits:
            return
        if knowledge.search is not None or knowledge.caching is not None or request.options.profile is not None:
            return
        told = attempt.ask or attempt.kept_budget or attempt.search or attempt.caching or attempt.answer
        is_turn = self._roles is None
        bound = not is_turn and attempt.origin is not None and attempt.origin.prefix
        if told or bound or attempt.tool_names or attempt.tool_forms or attempt.request is not request:
            return
        target, language = attempt.target, dialect(attempt.target.provider.row.dialect)
        facts = knowledge.of(target)
        planned = plan_shape(_at(request, target), target, facts, knowledge)
        reasoning = planned.controlled.request.reasoning
        says_thinking = planned.thinking or (reasoning and reasoning.raw_fields)
        if facts.refused_fields or (attempt.forward and not is_turn and says_thinking):
            return
        empty = msgspec.structs.replace(attempt.wire, body=b"", headers={})
        bare = msgspec.structs.replace(attempt, request=None, written=None, wire=empty)
        tools, texts = (request.tools, None) if is_turn else (None, _texts_of(attempt, language))
        kept = _EarlierAttempt(bare, planned, language, tools, texts)
        # Whether what is taken over is what was planned shows at the call at hand.
        again = self._next_turn(kept) if is_turn else _again(kept, request)
        if again == attempt:
            knowledge.plans.keep(place, self.targets[0], knowledge, kept)

    def _next_turn(self, kept: _EarlierAttempt) -> Attempt | None:
        """Return the attempt for the turn at hand; None where it must be planned."""
        if kept.tools is not self.request.tools:
            return None
        return _next_turn(kept, self.request, self._recalled, self.knowledge)


def _may_be_a_turn(request: Request, target: Target) -> bool:
    """Whether the attempt of a turn may be that of an earlier one: its tools came before, and its provider has one endpoint."""
    return len(target.provider.endpoints) == 1 and (not request.tools or REPEATED_TOOLS.of(request.tools) is not None)


def _roles_of(request: Request) -> tuple[str, ...] | None:
    """Return the roles of a request that holds nothing but what a user and the operator say in a few texts; None for any other."""
    if request.tools or len(request.messages) > _MOST_MESSAGES:
        return None
    roles = []
    for message in request.messages:
        if message.role not in _ASKED or message.carried is not None or len(message.blocks) != 1:
            return None
        block = message.blocks[0]
        if type(block) is not TextBlock or block.opaque or block.carried is not None:
            return None
        if not block.text or block.text.isspace():
            return None  # Where it is left out decides which endpoint loses least.
        roles.append(message.role)
    return tuple(roles)


def _at(request: Request, target: Target) -> Request:
    return request if request.model == target.model else msgspec.structs.replace(request, model=target.model)


def _again(kept: _EarlierAttempt, request: Request) -> Attempt | None:
    """Return the attempt for a request; None where it loses something else, or its body must change."""
    attempt, language = kept.attempt, kept.language
    row, asked = attempt.target.provider.row, _at(request, attempt.target)
    if not attempt.forward:
        wire, written = _written(kept, asked)
        return None if wire is None else msgspec.structs.replace(attempt, request=request, wire=wire, written=written)
    if language.mends(asked, row):
        return None
    wire = with_own_headers(body_as_it_came(asked, language, asks_usage=attempt.withhold_usage), asked, row.dialect)
    return msgspec.structs.replace(attempt, request=request, wire=wire)


def _next_turn(kept: _EarlierAttempt, request: Request, recalled: Recalled, knowledge: Knowledge) -> Attempt | None:
    """Return the attempt for a turn of a conversation, or a call with tools; None where its history changes more than its body."""
    attempt, planned, target = kept.attempt, kept.planned, kept.attempt.target
    row, asked = target.provider.row, _at(request, target)
    restored, origin = restored_at(request, target, recalled)
    same = restored.request is request and not restored.degraded and restored.ask is None
    if not same or as_functions(request, row, may_forward=True)[0] is not request:
        return None
    wire, written = (_sent_on(kept, asked), None) if attempt.forward else _written(kept, asked)
    if wire is None:
        return None
    reported = (*planned.controlled.degraded, *attempt.wire.degraded)
    if reported or asked.extra:
        try:
            spoken = dialects_of(target, knowledge.of(target))
            refuse_losses(asked, row.id, spoken, reported, choice=request.tool_choice)
        except BardoError:
            return None
    return msgspec.structs.replace(attempt, request=request, wire=wire, written=written, origin=origin)


def _sent_on(kept: _EarlierAttempt, asked: Request) -> WireRequest | None:
    """Return a client's own body as it is sent on; None where it must change. Its tools may be, as those of the earlier call."""
    attempt, row = kept.attempt, kept.attempt.target.provider.row
    if not may_be_sent_on(kept.planned, asked, row):
        return None
    wire = body_as_it_came(asked, kept.language, asks_usage=attempt.withhold_usage)
    return with_own_headers(wire, asked, row.dialect)


def _written(kept: _EarlierAttempt, asked: Request) -> tuple[WireRequest | None, Request]:
    """Return a request as it is written in the dialect of its target, and what that is made from; no wire where it loses other things."""
    before, controlled, language = kept.attempt.wire, kept.planned.controlled, kept.language
    row = kept.attempt.target.provider.row
    body, texts = None, kept.texts
    if texts is not None and (asked.dialect != row.dialect or has_plain_form(asked)):
        body = texts.body(asked)
    if body is not None:
        # Of plain texts the target takes all messages as they are: those of this body were.
        wire = WireRequest(path=before.path, body=body, degraded=before.degraded)
        return with_own_headers(wire, asked, row.dialect), controlled.settled(asked)
    try:
        shape = shape_at(row, asked.model)
        asked = with_written_schemas(asked, written_tool_schemas(asked.tools, shape))
        written, lost = controlled.with_content(asked)
        written = with_written_names(written, None, shape.tool_names)
        wire = language.encode_request(written, row)
    except BardoError:
        return None, asked
    same = not lost and wire.degraded == before.degraded
    return (with_own_headers(wire, asked, row.dialect) if same else None), written


def _texts_of(attempt: Attempt, language: Dialect) -> WrittenTexts | None:
    """Return the body of an attempt without its texts; None where what is written of a text depends on how the client wrote it."""
    written, row = attempt.written, attempt.target.provider.row
    if written is None or attempt.request is None or written.messages is not attempt.request.messages:
        return None
    if written.dialect == row.dialect and not has_plain_form(written):
        return None
    return written_texts(written, attempt.wire, lambda one: language.encode_request(one, row))

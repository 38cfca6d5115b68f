"""What providers' refusals taught: the list that an operator sees, or a caller's own, and how lessons are forgotten."""

from __future__ import annotations

from bardo.surfaces.gateway.answer import Answer
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.http import Receive, Scope
from bardo.surfaces.gateway.own_replies import LessonsReply, PurgedReply
from bardo.surfaces.gateway.route_tables import Route
from bardo.surfaces.gateway.tenants import caller_of
from bardo.values.errors import Forbidden, NotStored

_LONGEST = 200


def sees_lessons_of(context: GatewayContext, scope: Scope) -> str | None:
    """Return whose lessons a request may see: those of all (None) for an operator, and where the gateway asks for no keys."""
    caller = caller_of(scope)
    sees_all = context.accounts is None or (caller.account is not None and caller.account.operator)
    return None if sees_all else caller.tenant


async def list_lessons(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer which lessons hold in this process, the newest first."""
    own = sees_lessons_of(context, scope)
    lessons = [one for one in context.runner.facts.lessons.all() if own in (None, one.caller)]
    await answer.json(LessonsReply(data=tuple(lessons)))


async def forget_lessons(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Forget one lesson, or all of them. Raises Forbidden for whoever is no operator, and NotStored for a lesson that is not there."""
    if sees_lessons_of(context, scope) is not None:
        raise Forbidden("lessons are forgotten by operators", hint="ask whoever runs this gateway")
    removed = context.runner.facts.lessons.forget(route.name)
    if route.name and not removed:
        hint = "GET /v1/bardo/lessons lists those that hold"
        raise NotStored(f"no lesson has the id {route.name[:_LONGEST]!r}", hint=hint)
    await answer.json(PurgedReply(removed=removed))

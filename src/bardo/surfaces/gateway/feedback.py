"""Feedback of clients on their calls."""

from __future__ import annotations

from bardo.dialects.shared.json_values import decode_object
from bardo.services.facts.feedback import read_feedback
from bardo.surfaces.gateway.answer import Answer
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.http import Receive, Scope
from bardo.surfaces.gateway.own_replies import FeedbackReply
from bardo.surfaces.gateway.route_tables import Route
from bardo.surfaces.gateway.tenants import caller_of
from bardo.values.errors import UnknownRoute


async def take_feedback(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Store what a client thinks of an answer. Raises InvalidRequest, and NotStored for a call that is not the client's."""
    taker = context.feedback
    if taker is None:
        hint = "turn the log on with enabled = true under [log] in bardo.toml"
        raise UnknownRoute("this gateway keeps no log, so that no feedback can be stored", hint=hint)
    feedback = read_feedback(decode_object(await context.body(scope, receive)), context.runner.clock())
    await taker.take(feedback, caller_of(scope).tenant)
    context.runner.routing.note_feedback(feedback.request_id, feedback.score)
    await answer.json(FeedbackReply(request_id=feedback.request_id, score=feedback.score))

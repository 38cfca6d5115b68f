"""Count the tokens of a request without having a model answer it, in Anthropic's, Gemini's and OpenAI's form."""

from __future__ import annotations

from bardo.dialects import dialect
from bardo.edge.unary_call import count_tokens as count
from bardo.engine.receipt import call_headers
from bardo.surfaces.gateway.answer import Answer, until_gone
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.http import Receive, Scope
from bardo.surfaces.gateway.request_options import with_header_options, with_headers
from bardo.surfaces.gateway.routes import Route
from bardo.surfaces.gateway.tenants import key_of


async def count_tokens(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer how many tokens a request has; an estimate says that it is one. Raises BardoError."""
    form = dialect(route.dialect).token_count
    assert form is not None, route.dialect
    request = form.decode_request(await context.body(scope, receive), route.arrival)
    request = with_headers(with_header_options(request, scope), scope)

    async def work() -> None:
        counted = await count(context.runner, request, client_key=key_of(scope))
        headers = call_headers(counted.request_id, counted.attempt.target, counted.result.degraded)
        await answer.whole(200, form.encode_reply(counted.result), headers)

    await until_gone(receive, work())

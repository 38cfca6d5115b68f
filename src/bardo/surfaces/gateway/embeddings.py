"""Make vectors of texts, in OpenAI's, Gemini's and Ollama's form, by every provider that makes any."""

from __future__ import annotations

import msgspec

from bardo.dialects import dialect
from bardo.edge.unary_call import UnaryAnswer, embed, embed_receipt
from bardo.engine.receipt import call_headers
from bardo.surfaces.gateway.answer import Answer, until_gone
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.http import Receive, Scope
from bardo.surfaces.gateway.request_options import header_options
from bardo.surfaces.gateway.routes import Route
from bardo.surfaces.gateway.tenants import key_of
from bardo.values.operations import Embeddings, EmbedRequest


async def embeddings(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer a request for vectors. Raises BardoError."""
    form = dialect(route.dialect).embeddings
    assert form is not None, route.dialect
    request = form.decode_request(await context.body(scope, receive), route.arrival)
    request = msgspec.structs.replace(request, options=header_options(request.options, scope))

    async def work() -> None:
        made = await embed(context.runner, request, client_key=key_of(scope))
        body = made.forwarded or form.encode_reply(_with_extension(made, request), request)
        headers = call_headers(made.request_id, made.attempt.target, made.result.degraded)
        await answer.whole(200, body, headers)

    await until_gone(receive, work())


def _with_extension(made: UnaryAnswer[Embeddings], request: EmbedRequest) -> Embeddings:
    """Return the vectors with the `bardo` object, where the client asked for one."""
    result, target = made.result, made.attempt.target
    if not request.options.include:
        return result
    fields = {
        "request_id": made.request_id,
        "provider": target.provider.id,
        "model": target.model,
        "cost_usd": result.usage.cost_usd,
        "degraded": msgspec.to_builtins(result.degraded),
    }
    if "receipt" in request.options.include:
        fields["receipt"] = embed_receipt(request, made.attempt, result)
    return msgspec.structs.replace(result, bardo=fields)

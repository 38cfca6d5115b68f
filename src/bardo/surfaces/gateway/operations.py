"""The operations of the gateway that generate no reply: its health, lists of models, counts of tokens, and vectors of texts."""

from __future__ import annotations

from urllib.parse import parse_qsl

import msgspec

from bardo.adapters.long_work import run_by_size, size_of_body
from bardo.call.unary import UnaryAnswer, embed, embed_receipt
from bardo.call.unary import count_tokens as count
from bardo.context.sessions import labelled
from bardo.dialects import dialect
from bardo.dialects.shared.dialect import ModelsForm
from bardo.replies.receipt import call_headers, cost_extension, cost_headers
from bardo.services.accounts.call_gate import permitted
from bardo.services.facts.directory import Placement
from bardo.services.facts.health_report import health_report
from bardo.services.facts.model_list import find_model, listed_models, with_claude_names
from bardo.surfaces.gateway.answer import Answer, run_until_disconnect
from bardo.surfaces.gateway.callers import caller_of, head_of, header_options, with_headers
from bardo.surfaces.gateway.compaction import read_summaries
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.http import Receive, Scope
from bardo.surfaces.gateway.own_endpoints import sees_lessons_of
from bardo.surfaces.gateway.own_replies import ReadyReply, RunningReply
from bardo.surfaces.gateway.routes import Route
from bardo.values.errors import Unavailable, UnknownRoute
from bardo.values.operations import Embeddings, EmbedRequest, ModelInfo


async def health(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer that the gateway runs."""
    await answer.json(RunningReply())


async def ready(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer that calls can be answered; who is asked for a key and gives none is not told the providers. Raises Unavailable."""
    providers = tuple(provider.id for provider in context.services.directory.providers)
    if not providers:
        raise Unavailable(
            "no provider is configured", hint="set a provider's key in the environment, or write a bardo.toml"
        )
    accounts = context.accounts
    if accounts is not None and accounts.failed:
        raise Unavailable("the database of keys cannot be reached", hint="look at the log of bardo")
    known = accounts is None or caller_of(scope).account is not None
    await answer.json(ReadyReply(providers=providers if known else ()))


async def provider_health(
    context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer
) -> None:
    """Answer how the providers, their keys and their models are, by the calls of this process."""
    await answer.json(health_report(context.services, caller=sees_lessons_of(context, scope)))


async def metrics(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer with the metrics of calls, as Prometheus reads them. Raises UnknownRoute where they are off."""
    telemetry = context.services.telemetry
    if telemetry is None or telemetry.metrics is None:
        raise UnknownRoute("this gateway counts no metrics", hint="set metrics = true under [telemetry] in bardo.toml")
    await answer.page(*telemetry.metrics.page())


async def models_for(context: GatewayContext, scope: Scope) -> list[ModelInfo]:
    """Return every model that the caller of a request can ask for."""
    models = await listed_models(context.services.directory)
    account = caller_of(scope).account
    if account is None or not account.models:
        return models
    return [model for model in models if account.may_ask(model.id, f"{model.provider}/{model.model or model.id}")]


async def check_may_ask(context: GatewayContext, scope: Scope, name: str) -> None:
    """Raise Forbidden for a model that the key of a request may not ask, and so is not told of; and UnknownModel."""
    directory, account = context.services.directory, caller_of(scope).account
    if account is None or account.may_ask(directory.meant(name)):
        return
    is_workload = directory.workload(name) is not None
    permitted(account, name, Placement(()) if is_workload else await directory.placement(name, asks=False))


async def list_models(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer with every model that can be asked for."""
    directory = context.services.directory
    models = await models_for(context, scope)
    form = _models_form(route)
    if form.keeps_claude:
        models = await with_claude_names(directory, models)
    query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    body, late = form.encode_list(models, query), directory.late
    if not late:
        await answer.whole(200, body, ())
        return
    # Every dialect's list is an object, and clients skip a field that they do not know.
    note = msgspec.json.encode({"bardo": {"missing": [{"provider": name, "why": why} for name, why in late.items()]}})
    await answer.whole(
        200,
        body[:-1] + b"," + note[1:],
        [("x-bardo-missing-lists", ", ".join(late).encode("ascii", "replace").decode())],
    )


async def show_model(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer with the model that the path names. Raises UnknownModel and Forbidden."""
    await check_may_ask(context, scope, route.arrival.model)
    model = await find_model(context.services.directory, route.arrival.model)
    await answer.whole(200, _models_form(route).encode_model(model), ())


def _models_form(route: Route) -> ModelsForm:
    form = dialect(route.dialect).models
    assert form is not None, route.dialect
    return form


async def count_tokens(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer how many tokens a request has; an estimate says that it is one. Raises BardoError."""
    form = dialect(route.dialect).token_count
    assert form is not None, route.dialect
    body = await context.body(scope, receive)
    caller = caller_of(scope)
    request = await run_by_size(size_of_body(body), lambda: form.decode_request(body, route.arrival))
    request = await read_summaries(context, request, route, caller.tenant)
    request = with_headers(request, scope)

    async def work() -> None:
        counted = await count(
            context.services,
            request,
            client_key=caller.key,
            tenant=caller.tenant,
            account=caller.account,
            login=caller.login,
        )
        headers = [
            *call_headers(counted.request_id, counted.attempt.target, counted.result.degraded),
            *cost_headers(counted.cost),
        ]
        await answer.whole(200, form.encode_reply(counted.result), headers)

    await run_until_disconnect(receive, work())


async def embeddings(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer a request for vectors. Raises BardoError."""
    form = dialect(route.dialect).embeddings
    assert form is not None, route.dialect
    body = await context.body(scope, receive)
    request = await run_by_size(size_of_body(body), lambda: form.decode_request(body, route.arrival))
    options = labelled(header_options(request.options, scope), head_of(scope).passed_on[1])
    request = msgspec.structs.replace(request, options=options)

    caller = caller_of(scope)

    async def work() -> None:
        made = await embed(
            context.services,
            request,
            client_key=caller.key,
            tenant=caller.tenant,
            account=caller.account,
            login=caller.login,
        )
        body = made.forwarded or form.encode_reply(_with_extension(made, request), request)
        headers = [*call_headers(made.request_id, made.attempt.target, made.result.degraded), *cost_headers(made.cost)]
        await answer.whole(200, body, headers)

    await run_until_disconnect(receive, work())


def _with_extension(made: UnaryAnswer[Embeddings], request: EmbedRequest) -> Embeddings:
    """Return the vectors with the `bardo` object, where the client asked for one."""
    result, target = made.result, made.attempt.target
    if not request.options.include:
        return result
    fields = {
        "request_id": made.request_id,
        "provider": target.provider.id,
        "model": target.model,
        **cost_extension(made.cost, made.attempts),
        "degraded": msgspec.to_builtins(result.degraded),
    }
    if "receipt" in request.options.include:
        fields["receipt"] = embed_receipt(request, made.attempt, result, made.layers)
    return msgspec.structs.replace(result, bardo=fields)

"""What Ollama's clients ask beside replies: whether the server is there, what a model can do, and that one be loaded."""

from __future__ import annotations

from typing import Any

from bardo._version import __version__
from bardo.call.services import Services
from bardo.dialects import dialect
from bardo.dialects.ollama.operations import EPOCH, details
from bardo.dialects.shared.json_values import decode_object, optional, required
from bardo.planning.route import Target
from bardo.reasoning.control import ResolvedFacts
from bardo.surfaces.gateway.answer import Answer
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.generate import answer_request, read_request
from bardo.surfaces.gateway.http import Receive, Scope
from bardo.surfaces.gateway.own_replies import VersionReply
from bardo.surfaces.gateway.routes import Route
from bardo.values.events import Finish
from bardo.values.request import Request
from bardo.values.response import Response

API_VERSION = "0.12.6"
"""The version of Ollama whose API is spoken: clients refuse to talk to older ones."""
_NEVER = (0, "0", "0s")
_OF_WORKLOADS = ["completion", "tools", "thinking"]
"""A workload leads each call to a model that can do what the call needs."""


async def root(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer that somebody is there: Ollama's clients look here first."""
    await answer.text("bardo is running")


async def version(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer with the version of the API that is spoken, and bardo's own."""
    await answer.json(VersionReply(version=API_VERSION, bardo=__version__))


async def loaded_models(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer which models are in memory: bardo itself runs none."""
    await answer.json({"models": []})


async def show_capabilities(
    context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer
) -> None:
    """Answer what is known of a model. Raises UnknownModel."""
    fields = decode_object(await context.body(scope, receive))
    # Older clients call it `name`.
    name = optional(fields, "model", str) or required(fields, "name" if fields.get("name") else "model", str)
    if context.services.directory.workload(name) is not None:
        await answer.json(_model_description(name, None, _OF_WORKLOADS))
        return
    target = (await context.services.directory.targets(name))[0]
    known = context.services.facts.of(target).known
    await answer.json(_model_description(name, known.found.maker, _capabilities(target, known)))


def _model_description(name: str, maker: str | None, capabilities: list[str]) -> dict[str, Any]:
    return {
        "modelfile": "",
        "parameters": "",
        "template": "",
        "details": details(maker),
        "model_info": {"general.basename": name},
        "capabilities": capabilities,
        "modified_at": EPOCH,
    }


def _capabilities(target: Target, known: ResolvedFacts) -> list[str]:
    """Return what a model can do, as far as it is known: whether it takes pictures is not."""
    embeds = target.provider.row.embeds(target.model)
    if embeds is not None and embeds.models:
        return ["embedding"]
    takes_tools = "tools" not in dialect(target.provider.row.dialect).declaration.lacks
    thinks = bool(set(known.control) - {"none"})
    return [
        "completion",
        *(["tools"] if takes_tools else []),
        *(["thinking"] if thinks else []),
        *(["embedding"] if embeds else []),
    ]


async def generate_or_load(
    context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer
) -> None:
    """Answer a request for a reply, or one without a question, which loads a model or lets it go. Raises BardoError."""
    request = await read_request(context, route, scope, receive)
    if request.messages or await _may_load(context.services, request):
        await answer_request(context, route, request, scope, receive, answer)
        return
    reason = "unload" if request.extra.get("keep_alive") in _NEVER else "load"
    response = Response(model=request.model, created=int(context.services.clock()), finish=Finish("stop", reason))
    body = dialect(route.dialect).encode_response(response, request)
    # Nothing is loaded anywhere else than on an Ollama server, and the client is told so.
    headers = [("X-Bardo-Degraded", reason)]
    if request.stream:
        await answer.start(headers, "application/x-ndjson")
        await answer.end(body + b"\n")
    else:
        await answer.whole(200, body, headers)


async def _may_load(services: Services, request: Request) -> bool:
    """Whether the model's first provider speaks the client's dialect, and so loads models. Raises UnknownModel."""
    if services.directory.workload(request.model) is not None:
        return False
    return (await services.directory.targets(request.model))[0].provider.row.dialect == request.dialect

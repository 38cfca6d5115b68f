"""What programs for local servers ask beside replies: whether the server is there, what a model can do, and that one be loaded.

They speak as Ollama does, or as LM Studio.
"""

from __future__ import annotations

from typing import Any

from bardo._version import __version__
from bardo.adapters.long_work import in_slices
from bardo.call.services import Services
from bardo.dialects import dialect
from bardo.dialects.ollama.operations import EPOCH, details
from bardo.dialects.shared.json_values import decode_object, optional, required
from bardo.planning.knowledge import TargetFacts
from bardo.planning.route import Target
from bardo.services.facts.model_list import find_model
from bardo.surfaces.gateway.answer import Answer
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.generate import answer_request, read_request
from bardo.surfaces.gateway.http import Receive, Scope
from bardo.surfaces.gateway.operations import check_may_ask, models_for
from bardo.surfaces.gateway.own_replies import VersionReply
from bardo.surfaces.gateway.routes import Route
from bardo.values.events import Finish
from bardo.values.operations import ModelInfo
from bardo.values.request import Request
from bardo.values.response import Response

API_VERSION = "0.12.6"
"""The version of Ollama whose API is spoken: clients refuse to talk to older ones."""
_NEVER = (0, "0", "0s")
# Continue sends a suffix where a template names it, and else a raw prompt (its core/llm/llms/Ollama.ts, read 2026-11).
_TEMPLATE = "{{ .Prompt }}{{ .Suffix }}"
_OF_WORKLOADS = ["completion", "tools", "thinking", "insert"]
"""A workload leads each call to a model that can do what the call needs."""
_LM_STUDIOS = {"tool_use": "tools", "vision": "vision"}
"""What LM Studio calls the abilities that it tells."""


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
    """Answer the facts about a model. Raises UnknownModel and Forbidden."""
    fields = decode_object(await context.body(scope, receive))
    # Older clients call it `name`.
    name = optional(fields, "model", str) or required(fields, "name" if fields.get("name") else "model", str)
    await check_may_ask(context, scope, name)
    if context.services.directory.workload(name) is not None:
        await answer.json(_model_description(name, None, _OF_WORKLOADS, None))
        return
    target = (await context.services.directory.targets(name))[0]
    facts = context.services.facts.of(target)
    capabilities = _capabilities(context.services, target, facts)
    await answer.json(_model_description(name, facts.known.found.maker, capabilities, facts.context))


def _model_description(name: str, maker: str | None, capabilities: list[str], tokens: int | None) -> dict[str, Any]:
    # Editors read the length of the context by the architecture's name, as the files of models have it; Continue reads it as a parameter.
    architecture = maker or "bardo"
    context = {} if tokens is None else {f"{architecture}.context_length": tokens}
    return {
        "modelfile": "",
        "parameters": "" if tokens is None else f"num_ctx {tokens}",
        "template": _TEMPLATE if "insert" in capabilities else "",
        "details": details(maker),
        "model_info": {"general.architecture": architecture, "general.basename": name, **context},
        "capabilities": capabilities,
        "modified_at": EPOCH,
    }


def _capabilities(services: Services, target: Target, facts: TargetFacts) -> list[str]:
    """Return what a model can do, as far as it is known. What is asked for a chat fills in texts, too."""
    embeds = target.provider.row.embeds(target.model)
    if embeds is not None and embeds.models:
        return ["embedding"]
    takes_tools = "tools" not in dialect(target.provider.row.dialect).declaration.lacks
    thinks = bool(set(facts.known.control) - {"none"})
    sees = "vision" in services.routing.candidate(target).features
    return [
        "completion",
        *(["vision"] if sees else []),
        *(["tools"] if takes_tools else []),
        *(["thinking"] if thinks else []),
        "insert",
        *(["embedding"] if embeds else []),
    ]


async def list_local_models(
    context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer
) -> None:
    """Answer with every model that the caller can ask for, as LM Studio lists those on its disk."""
    models = await models_for(context, scope)
    data = [_local_model(context.services, one) async for one in in_slices(models)]
    await answer.json({"object": "list", "data": data})


async def show_local_model(
    context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer
) -> None:
    """Answer with the model that the path names, as LM Studio does. Raises UnknownModel and Forbidden."""
    await check_may_ask(context, scope, route.arrival.model)
    model = await find_model(context.services.directory, route.arrival.model)
    await answer.json(_local_model(context.services, model))


def _local_model(services: Services, model: ModelInfo) -> dict[str, Any]:
    """Return what LM Studio says of a model. Nothing is known of its file; it answers at once, which is called `loaded`.

    Zed reads no list with a `compatibility_type` but LM Studio's two, and shows pictures to models that say `vision` (crates/lmstudio).
    """
    provider = next((one for one in services.directory.providers if one.id == model.provider), None)
    abilities, maker, tokens = _OF_WORKLOADS, "bardo", None
    if provider is not None:
        target = Target(provider=provider, model=model.model or model.id)
        facts = services.facts.of(target, asks=False)
        abilities, maker, tokens = (
            _capabilities(services, target, facts),
            facts.known.found.maker or provider.id,
            facts.context,
        )
    kind = "embeddings" if abilities == ["embedding"] else "vlm" if "vision" in abilities else "llm"
    return {
        "id": model.id,
        "object": "model",
        "type": kind,
        "publisher": maker,
        "arch": maker,
        "compatibility_type": "gguf",
        "quantization": "",
        "state": "loaded",
        **({} if tokens is None else {"max_context_length": tokens, "loaded_context_length": tokens}),
        "capabilities": [word for word, ability in _LM_STUDIOS.items() if ability in abilities],
    }


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

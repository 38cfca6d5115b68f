"""The OpenAPI document, put together from the routes, the words of each endpoint and the schemas of its bodies.

`GET /openapi.json` answers with it: it is made for the first request and kept as bytes with its entity tag. An endpoint without words fails
a test.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import msgspec

from bardo._version import __version__
from bardo.dialects.shared.options import INCLUDABLE, ON_IMPOSSIBLE, REASONING_WORDS
from bardo.services.facts.health_report import HealthReport
from bardo.surfaces.gateway.openapi.json_schema import (
    ANY,
    BOOLEAN,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    Schema,
    array,
    described,
    either,
    fields,
    just,
    one_of,
    or_null,
    ref,
    structure,
)
from bardo.surfaces.gateway.openapi.listing import ListedRoute, form_of, listed_routes, longest_name
from bardo.surfaces.gateway.openapi.schemas import (
    ERROR_HEADERS,
    OPTION_ENDPOINTS,
    OPTIONAL_BODIES,
    PLAIN,
    REPLIES,
    REPLY_HEADERS,
    REQUESTS,
    SSE,
    STREAMS,
    UPLOAD,
    header_components,
    parameter_components,
    parameters_of,
)
from bardo.surfaces.gateway.own_replies import (
    CacheReply,
    EpisodeReply,
    EpisodesReply,
    FeedbackReply,
    ForgottenReply,
    LessonsReply,
    PurgedReply,
    ReadyReply,
    RunningReply,
    UsageReply,
    VersionReply,
)
from bardo.values import errors
from bardo.values.attempts import AttemptRecord
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError
from bardo.values.inference_events import PublishedEvent
from bardo.values.profile import InferenceProfile
from bardo.values.request import EFFORTS, CacheOptions, Intent, StructuredOptions


class Description(NamedTuple):
    """What the document says of an endpoint. `group` is a key of GROUPS."""

    summary: str
    group: str
    description: str = ""


GROUPS = {
    "OpenAI": "Chat Completions, Responses with their conversations, completions, embeddings, models, files and batches.",
    "Anthropic": "Messages, counts of tokens, models and Message Batches.",
    "Gemini": "generateContent, Interactions, counts of tokens, embeddings and models.",
    "LM Studio": "The list of models as LM Studio has it; its other endpoints are those of OpenAI.",
    "Ollama": "Chat, generate, embeddings and models as an Ollama server has them.",
    "Cohere": "Cohere's v2 chat.",
    "Bedrock": "Converse and InvokeModel.",
    "bardo": "What only bardo has: feedback, usage of a key, kept replies, health and events.",
    "Operation": "Whether the gateway runs, its metrics, and this document.",
}
"""The groups of endpoints, in the order of the document."""

_MODEL_CALL = (
    "The model decides the provider. Fields that the provider lacks are reported in `X-Bardo-Degraded`, or refused."
)
_KEPT = "Only where the gateway keeps responses (`[responses]` in bardo.toml)."
_BATCHES = "Only where the gateway takes batches (`[batches]` in bardo.toml)."
_MEMORY = "Of the caller's own tenant. Only where the gateway keeps thinking (`[memory]` in bardo.toml)."

DESCRIPTIONS: dict[str, Description] = {
    "generate openai_chat": Description("Create a chat completion", "OpenAI", _MODEL_CALL),
    "respond openai_responses": Description("Create a response", "OpenAI", _MODEL_CALL),
    "generate anthropic_messages": Description("Create a message", "Anthropic", _MODEL_CALL),
    "generate gemini": Description("Generate content", "Gemini", _MODEL_CALL),
    "generate gemini_interactions": Description(
        "Create an interaction", "Gemini", f"{_MODEL_CALL} bardo stores no interactions."
    ),
    "generate cohere": Description("Create a chat", "Cohere", _MODEL_CALL),
    "generate bedrock_converse": Description("Converse", "Bedrock", _MODEL_CALL),
    "generate bedrock_invoke": Description(
        "Invoke a model", "Bedrock", f"{_MODEL_CALL} The body is that of the model's own family, which bardo tells by its fields."
    ),
    "generate_or_load ollama": Description(
        "Chat", "Ollama", f"{_MODEL_CALL} A request without messages loads a model at an Ollama server. Streamed unless `stream` is false."
    ),
    "generate_or_load ollama_generate": Description(
        "Complete a prompt", "Ollama", f"{_MODEL_CALL} A request without a prompt loads a model. Streamed unless `stream` is false."
    ),
    "complete": Description("Complete prompts", "OpenAI", f"{_MODEL_CALL} Each prompt is a call of its own."),
    "embed openai_chat": Description("Create embeddings", "OpenAI", "Vectors of texts."),
    "embed ollama embed": Description("Create embeddings", "Ollama", "Vectors of texts."),
    "embed ollama embeddings": Description("Create one embedding", "Ollama", "The vector of one text, by Ollama's older endpoint."),
    "embed gemini embedContent": Description("Embed a content", "Gemini", "The vector of one content."),
    "embed gemini batchEmbedContents": Description("Embed contents", "Gemini", "Vectors of several contents."),
    "count_tokens anthropic_messages": Description(
        "Count the tokens of a message", "Anthropic", "`bardo.tokens_approx` marks an estimate, where the provider counts none."
    ),
    "count_tokens bedrock_invoke": Description(
        "Count the tokens of a body", "Bedrock", "Of InvokeModel in base64, or of Converse. `bardo.tokens_approx` marks an estimate."
    ),
    "count_tokens openai_responses": Description(
        "Count the tokens of a response's input", "OpenAI", "`bardo.tokens_approx` marks an estimate, where the provider counts none."
    ),
    "count_tokens gemini": Description(
        "Count tokens", "Gemini", "`bardo.tokens_approx` marks an estimate, where the provider counts none."
    ),
    "models openai_chat": Description(
        "List models",
        "OpenAI",
        "Three libraries ask here: the answer has Anthropic's form with the header `anthropic-version`, Gemini's with `x-goog-api-key` or "
        "`x-goog-api-client`, else OpenAI's. In Anthropic's form each model also has a name that begins with `claude` or `anthropic`, "
        "which Claude Code shows.",
    ),
    "models bedrock_invoke": Description(
        "List inference profiles", "Bedrock", "Every model that can be asked for, as AWS lists what may be invoked."
    ),
    "model bedrock_invoke": Description("Describe an inference profile", "Bedrock", "The name may hold slashes."),
    "models gemini": Description("List models", "Gemini", "Every model that can be asked for, by the names to ask by."),
    "models ollama": Description("List models", "Ollama", "Every model that can be asked for, by the names to ask by."),
    "model openai_chat": Description(
        "Describe a model", "OpenAI", "In the form that the headers of the client tell, as the list of models. The name may hold slashes."
    ),
    "model gemini": Description("Describe a model", "Gemini", "The name may hold slashes."),
    "show_capabilities": Description("Show what a model can do", "Ollama", "What bardo knows of a model, in Ollama's form."),
    "list_local_models": Description("List models", "LM Studio", "As LM Studio lists those on its disk, with their contexts."),
    "show_local_model": Description("Show a model", "LM Studio", "One of them."),
    "loaded_models": Description("List loaded models", "Ollama", "Always empty: bardo runs no models itself."),
    "version": Description("Show the version", "Ollama", "Ollama's clients refuse to talk to older versions."),
    "root": Description("Say that somebody is there", "Operation", "A line of text, which Ollama's clients look for."),
    "compact": Description(
        "Compact a conversation",
        "OpenAI",
        "What the user said, and an item that stands for all of the conversation: only this gateway reads it, and only from the same key.",
    ),
    "show_response": Description("Show a kept response", "OpenAI", _KEPT),
    "delete_response": Description("Forget a kept response", "OpenAI", _KEPT),
    "list_input": Description("List the input items of a kept response", "OpenAI", _KEPT),
    "create_conversation": Description("Begin a conversation", "OpenAI", _KEPT),
    "show_conversation": Description("Show a conversation", "OpenAI", _KEPT),
    "update_conversation": Description("Change the metadata of a conversation", "OpenAI", _KEPT),
    "delete_conversation": Description("Forget a conversation", "OpenAI", _KEPT),
    "list_items": Description("List the items of a conversation", "OpenAI", _KEPT),
    "add_items": Description("Add items to a conversation", "OpenAI", _KEPT),
    "show_item": Description("Show an item of a conversation", "OpenAI", _KEPT),
    "delete_item": Description("Forget an item of a conversation", "OpenAI", _KEPT),
    "upload_file": Description("Upload a file for a batch", "OpenAI", _BATCHES),
    "list_files": Description("List files", "OpenAI", _BATCHES),
    "show_file": Description("Show a file", "OpenAI", _BATCHES),
    "delete_file": Description("Delete a file", "OpenAI", _BATCHES),
    "read_file": Description("Read a file", "OpenAI", _BATCHES),
    "create_batch": Description("Create a batch", "OpenAI", _BATCHES),
    "list_batches": Description("List batches", "OpenAI", _BATCHES),
    "show_batch": Description("Show a batch", "OpenAI", _BATCHES),
    "cancel_batch": Description("Cancel a batch", "OpenAI", _BATCHES),
    "create_message_batch": Description("Create a message batch", "Anthropic", _BATCHES),
    "list_message_batches": Description("List message batches", "Anthropic", _BATCHES),
    "show_message_batch": Description("Show a message batch", "Anthropic", _BATCHES),
    "delete_message_batch": Description("Delete a message batch", "Anthropic", _BATCHES),
    "cancel_message_batch": Description("Cancel a message batch", "Anthropic", _BATCHES),
    "read_message_batch": Description("Read the results of a message batch", "Anthropic", _BATCHES),
    "feedback": Description(
        "Say what an answer was worth", "bardo", "One of `thumbs` and `score`. Only where the gateway keeps a log (`[log]` in bardo.toml)."
    ),
    "usage": Description("Show what the key has used", "bardo", "Only where the gateway asks for keys."),
    "show_cache": Description("Show how many replies are kept", "bardo", "Only where a pipeline profile keeps replies; of the caller."),
    "purge_cache": Description("Remove kept replies", "bardo", "Of the caller only: all, or those of a tag or a model."),
    "search_memory": Description("Search past thinking", "bardo", _MEMORY),
    "show_episode": Description("Show the thinking of a call", "bardo", _MEMORY),
    "forget_episode": Description("Forget the thinking of a call", "bardo", f"The log loses what was said in the call. {_MEMORY}"),
    "provider_health": Description(
        "Show the health of providers", "bardo", "Providers, their keys and their models, by the calls of this process."
    ),
    "list_lessons": Description("List what refusals taught", "bardo", "Of this process; an operator's key sees those of all callers."),
    "forget_lessons": Description("Forget all that refusals taught", "bardo", "Operators only."),
    "forget_lesson": Description("Forget a lesson", "bardo", "Operators only."),
    "events": Description(
        "Follow what happens",
        "bardo",
        "Server-sent events, until the client leaves. `event: missed` says that some were missed. A key sees the events of its own calls.",
    ),
    "metrics": Description("Show metrics", "Operation", "For Prometheus; only where `[telemetry]` of bardo.toml counts metrics."),
    "health": Description("Say that the gateway runs", "Operation", "Needs no key."),
    "ready": Description(
        "Say that calls can be answered", "Operation", "The ids of the providers that are configured, or why no call can be answered."
    ),
    "openapi": Description("Show this document", "Operation", "With an entity tag: a client that has the document gets 304."),
}  # fmt: skip
"""The words by the form of a route, by its endpoint and dialect, or by its endpoint alone."""


def description_of(form: str) -> Description:
    """Return the words of a form. Raises KeyError where nobody has written any."""
    if name := longest_name(form, DESCRIPTIONS):
        return DESCRIPTIONS[name]
    raise KeyError(f"DESCRIPTIONS of openapi/document.py has no words for {form!r}")


_OPENAI = fields(
    "error",
    error=fields(
        *("message", "type", "param", "code"), message=STRING, type=STRING, param=or_null(STRING), code=or_null(STRING)
    ),
    bardo=OBJECT,
)
_ANTHROPIC = fields(
    *("type", "error"),
    type=just("error"),
    error=fields("type", "message", type=STRING, message=STRING, code=STRING, param=STRING, details=OBJECT),
    request_id=STRING,
    bardo=OBJECT,
)
_GEMINI = fields(
    "error",
    error=fields("code", "message", "status", code=INTEGER, message=STRING, status=STRING, details=array(OBJECT)),
    bardo=OBJECT,
)
_INTERACTIONS = fields("error", error=fields("code", "message", code=STRING, message=STRING), bardo=OBJECT)
_OLLAMA = fields("error", error=STRING, code=STRING, bardo=OBJECT)
_COHERE = fields("message", message=STRING, code=STRING, param=STRING, bardo=OBJECT)
_BEDROCK = fields("message", "__type", message=STRING, __type=STRING, code=STRING, bardo=OBJECT)

ERROR_BODIES: dict[str, Schema] = {
    "openai_chat": _OPENAI,
    "openai_responses": _OPENAI,
    "anthropic_messages": _ANTHROPIC,
    "gemini": _GEMINI,
    "gemini_interactions": _INTERACTIONS,
    "ollama": _OLLAMA,
    "ollama_generate": _OLLAMA,
    "cohere": _COHERE,
    "bedrock_converse": _BEDROCK,
    "bedrock_invoke": _BEDROCK,
}
"""The body of an error by the dialect of the route."""


def error_classes() -> list[type[BardoError]]:
    """Return the errors that a client may get, in the order of their statuses."""
    found = {one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, BardoError)}
    return sorted(_leaves(found), key=lambda one: (one.status, one.__name__))


def _leaves(found: set[type[BardoError]]) -> Iterator[type[BardoError]]:
    for one in found:
        if one not in (errors.BardoError, errors.CallerError, errors.OperatorError, errors.ProviderError):
            yield one


def code_of(kind: type[BardoError]) -> str:
    """Return what `X-Bardo-Error` says of an error of a class."""
    return kind.__new__(kind).code


def statuses_text() -> str:
    """Return the statuses with the codes of their errors, as a table in Markdown."""
    by_status: dict[int, list[str]] = {}
    for one in error_classes():
        by_status.setdefault(one.status, []).append(f"`{code_of(one)}`")
    rows = [f"| {status} | {', '.join(codes)} |" for status, codes in by_status.items()]
    return "\n".join(("| status | `X-Bardo-Error` |", "|---|---|", *rows))


OWN_REPLIES: dict[str, type[msgspec.Struct]] = {
    "health": RunningReply,
    "ready": ReadyReply,
    "version": VersionReply,
    "feedback": FeedbackReply,
    "usage": UsageReply,
    "show_cache": CacheReply,
    "purge_cache": PurgedReply,
    "search_memory": EpisodesReply,
    "show_episode": EpisodeReply,
    "forget_episode": ForgottenReply,
    "provider_health": HealthReport,
    "list_lessons": LessonsReply,
    "forget_lessons": PurgedReply,
    "forget_lesson": PurgedReply,
}
"""The types of bardo's own replies, by endpoint."""

_TYPES = (
    *OWN_REPLIES.values(),
    *(PublishedEvent, Degradation, AttemptRecord, Intent, InferenceProfile, CacheOptions, StructuredOptions),
)
_SECONDS: Schema = {"type": "number", "exclusiveMinimum": 0}
_NUMBER_OR_NULL = or_null(NUMBER)
_OPTIONS: dict[str, Schema] = {
    "include": described(array(one_of(*INCLUDABLE)), "What is put into the reply."),
    "reasoning": described(
        either(one_of("off", "auto", *EFFORTS, *REASONING_WORDS), {"type": "integer", "minimum": 0}),
        "How the model should think: off, auto, a level, or a number of tokens; or how thinking is shown.",
    ),
    "on_impossible": described(one_of(*ON_IMPOSSIBLE), "What becomes of `off` where the model always thinks."),
    "structured": ref("StructuredOptions"),
    "allow_loss": described(array(STRING), "Losses that are reported instead of refused; `*` is all."),
    "intent": ref("Intent"),
    "profile": ref("InferenceProfile"),
    "private": described(BOOLEAN, "Only providers that keep nothing of a call may be asked."),
    "vitality": {"type": "number", "minimum": 0, "maximum": 1},
    "tick": described(
        OBJECT, "The tick of an agent: signals by their names, and `type`, `cycle`, `sustainability` and `diem`."
    ),
    "deadline_seconds": _SECONDS,
    "allow_stale": _SECONDS,
    "verify": described(STRING, "A second model that is asked whether it agrees, as `provider/model`."),
    "pipeline": described(STRING, "The profile whose layers work on the call, or `off`."),
    "layers": described({"type": "object", "additionalProperties": BOOLEAN}, "Turns single layers on and off."),
    "session": described(STRING, "The conversation that the call belongs to."),
    "agent": described(STRING, "The program that asks."),
    "repository": described(STRING, "The repository that the call is about."),
    "cache": ref("CacheOptions"),
}
_COST = fields(
    *("usd", "nanos", "parts", "source"),
    usd=_NUMBER_OR_NULL,
    nanos=or_null(INTEGER),
    parts=OBJECT,
    reported_usd=_NUMBER_OR_NULL,
    computed_usd=_NUMBER_OR_NULL,
    difference_usd=_NUMBER_OR_NULL,
    saved_usd=_NUMBER_OR_NULL,
    source=or_null(STRING),
)
_BARDO_REPLY = fields(
    request_id=STRING,
    provider=STRING,
    model=STRING,
    cost_usd=_NUMBER_OR_NULL,
    cost=_COST,
    attempts=array(ref("AttemptRecord")),
    degraded=array(ref("Degradation")),
    reasoning_chain=fields("visibility", "content", visibility=STRING, content=ANY, steps=array(OBJECT)),
    receipt=described(OBJECT, "What was asked for, sent and observed of the model's thinking."),
    structured=or_null(OBJECT),
    route=or_null(OBJECT),
)
_BATCH_FIGURES = fields(
    cost_usd=_NUMBER_OR_NULL, cost_nanos=or_null(INTEGER), priced_items=INTEGER, items={"type": "object"}
)


def own_schemas() -> dict[str, Any]:
    """Return the components of all that is bardo's own."""
    _, components = msgspec.json.schema_components(_TYPES, ref_template="#/components/schemas/{name}")
    found = {name: _in_plain_lines(schema) for name, schema in components.items()}
    found["BardoOptions"] = described(
        or_null(structure(_OPTIONS) | {"additionalProperties": False}), "What a request asks of bardo itself."
    )
    found["BardoReply"] = described(_BARDO_REPLY, "What bardo tells of a call, where the request asked for something.")
    found["BatchFigures"] = described(_BATCH_FIGURES, "What bardo tells of a batch.")
    found["MissedEvent"] = described(OBJECT, "Some events were missed: how many is not known.")
    return found


def _in_plain_lines(schema: Schema) -> Schema:
    """Return a schema of a type whose description is its docstring without the indentation of the source."""
    return {**schema, "description": inspect.cleandoc(schema["description"])} if "description" in schema else schema


_JSON = "application/json"
_OPEN = ("health",)
_SECURITY: list[dict[str, list[str]]] = [
    {"bearer": []},
    {"x_api_key": []},
    {"x_goog_api_key": []},
    {"api_key": []},
    {"key_in_query": []},
    {},
]
_ABOUT = """What a gateway of this version answers. Each dialect is the API of the servers it is named after: here stands what bardo reads
and writes of it, and other fields go to the provider and come from it as they are.

A path is served with HEAD wherever it is with GET. `x-also-at` names a second path of the same endpoint. Errors have the form of
the endpoint's dialect; beside a provider's own status, which may be any of 400 to 599, a client may get:

"""


@cache
def openapi_bytes() -> tuple[bytes, str]:
    """Return the document as JSON, and its entity tag."""
    body = msgspec.json.encode(openapi_document())
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def openapi_document() -> dict[str, Any]:
    """Return the document. Raises KeyError for a route without words or schemas."""
    paths: dict[str, dict[str, Any]] = {}
    for route in listed_routes():
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "bardo",
            "version": __version__,
            "description": _ABOUT + statuses_text(),
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "security": _SECURITY,
        "tags": [{"name": name, "description": description} for name, description in GROUPS.items()],
        "paths": paths,
        "components": _components(),
    }


def _operation(route: ListedRoute) -> dict[str, Any]:
    form = form_of(route.route)
    description = description_of(form)
    asks_model = route.route.endpoint in OPTION_ENDPOINTS
    success: dict[str, Any] = {"description": "The answer.", "content": _content(route, form)}
    if asks_model:
        success["headers"] = {name: ref(name, "headers") for name in REPLY_HEADERS}
    found = {"200": success}
    if route.route.endpoint == "openapi":
        found["304"] = {"description": "The client has the document."}
    error = ref("Error.by_client" if route.route.by_client else f"Error.{route.route.dialect}", "responses")
    operation: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": description.summary,
        "tags": [description.group],
        "responses": {**found, "4XX": error, "5XX": error},
    }
    if description.description:
        operation["description"] = description.description
    if parameters := parameters_of(route):
        operation["parameters"] = parameters
    if body := _request_body(route, form):
        operation["requestBody"] = body
    if route.versionless:
        operation["x-also-at"] = route.versionless
    if route.route.endpoint in _OPEN:
        operation["security"] = []
    return operation


def _operation_id(route: ListedRoute) -> str:
    description = re.findall(r"[A-Za-z0-9]+", route.path.replace("openapi.json", "openapi"))
    return "_".join((route.method.lower(), *(description or ("root",))))


def component_name(form: str, kind: str) -> str:
    """Return what the schema of a form is called: `generate openai_chat` and `request` make `GenerateOpenaiChatRequest`."""
    return "".join(f"{word[:1].upper()}{word[1:]}" for word in re.split(r"[ _]", f"{form} {kind}"))


def _request_body(route: ListedRoute, form: str) -> dict[str, Any] | None:
    if route.method != "POST":
        return None
    if route.route.endpoint == "upload_file":
        return {"required": True, "content": {"multipart/form-data": {"schema": UPLOAD}}}
    name = longest_name(form, REQUESTS)
    if not name:
        # Nothing is read of the body of a request that cancels a batch.
        return None
    schema = ref(component_name(name, "request"))
    return {"required": route.route.endpoint not in OPTIONAL_BODIES, "content": {_JSON: {"schema": schema}}}


def _content(route: ListedRoute, form: str) -> dict[str, Any]:
    endpoint = route.route.endpoint
    if endpoint == "events":
        return {SSE: _streamed(either(ref("PublishedEvent"), ref("MissedEvent")))}
    if endpoint in PLAIN:
        return {PLAIN[endpoint]: {"schema": STRING}}
    if endpoint in OWN_REPLIES:
        return {_JSON: {"schema": ref(OWN_REPLIES[endpoint].__name__)}}
    name = longest_name(form, REPLIES)
    if not name:
        raise KeyError(f"OWN_REPLIES of openapi/document.py has no reply of {form!r}, nor has REPLIES of schemas.py")
    whole = ref(component_name(name, "reply"))
    streams = route.route.arrival.stream
    content: dict[str, Any] = {} if streams else {_JSON: {"schema": whole}}
    stream = STREAMS.get(name) if streams is not False else None
    if stream is not None:
        content[stream.content_type] = _streamed(ref(component_name(name, "event")) if stream.event else None)
        if stream.also_array:
            content[_JSON] = {"schema": array(ref(component_name(name, "event")))}
    return content


def _streamed(event: Schema | None) -> dict[str, Any]:
    """Return a streamed reply: OpenAPI 3.1 has no place for the schema of one event, so that it stands beside."""
    return {} if event is None else {"x-event-schema": event}


def _components() -> dict[str, Any]:
    requests = {component_name(name, "request"): schema for name, schema in REQUESTS.items()}
    replies = {component_name(name, "reply"): schema for name, schema in REPLIES.items()}
    events = {component_name(name, "event"): row.event for name, row in STREAMS.items() if row.event is not None}
    by_client = either(*(ERROR_BODIES[name] for name in ("openai_chat", "anthropic_messages", "gemini")))
    return {
        "schemas": {**own_schemas(), **requests, **replies, **events},
        "parameters": parameter_components(),
        "headers": header_components(),
        "responses": {
            "Error.by_client": _error(by_client),
            **{f"Error.{name}": _error(schema) for name, schema in ERROR_BODIES.items()},
        },
        "securitySchemes": {
            "bearer": {"type": "http", "scheme": "bearer", "description": "The key, as OpenAI's clients send it."},
            "x_api_key": {"type": "apiKey", "in": "header", "name": "x-api-key", "description": "As Anthropic's do."},
            "x_goog_api_key": {
                "type": "apiKey",
                "in": "header",
                "name": "x-goog-api-key",
                "description": "As Google's do.",
            },
            "api_key": {"type": "apiKey", "in": "header", "name": "api-key", "description": "As Azure's clients do."},
            "key_in_query": {"type": "apiKey", "in": "query", "name": "key", "description": "As Gemini's may."},
        },
    }


def _error(schema: Schema) -> dict[str, Any]:
    return {
        "description": "An error in the dialect's form.",
        "headers": {name: ref(name, "headers") for name in ERROR_HEADERS},
        "content": {_JSON: {"schema": schema}},
    }

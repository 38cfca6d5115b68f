"""The paths of the gateway, those of files and batches among them: the endpoint, dialect and method of each, and what the path itself says
of the request.
"""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import parse_qs

import msgspec

from bardo.dialects import DEFAULT_DIALECT
from bardo.surfaces.gateway.http import Scope, header
from bardo.values.errors import MethodNotAllowed, UnknownRoute
from bardo.values.wire import OF_CLOUD, Arrival

BatchEndpoint = Literal[
    "upload_file",
    "list_files",
    "show_file",
    "delete_file",
    "read_file",
    "create_batch",
    "list_batches",
    "show_batch",
    "cancel_batch",
    "create_message_batch",
    "list_message_batches",
    "show_message_batch",
    "delete_message_batch",
    "cancel_message_batch",
    "read_message_batch",
]
_PATH = re.compile(r"(?:/v1)?/(files|batches|messages/batches)(?:/([^/]+)(?:/(content|cancel|results))?)?/?")
BATCH_METHODS: dict[tuple[str, bool, str], dict[str, BatchEndpoint]] = {
    ("files", False, ""): {"GET": "list_files", "POST": "upload_file"},
    ("files", True, ""): {"GET": "show_file", "DELETE": "delete_file"},
    ("files", True, "content"): {"GET": "read_file"},
    ("batches", False, ""): {"GET": "list_batches", "POST": "create_batch"},
    ("batches", True, ""): {"GET": "show_batch"},
    ("batches", True, "cancel"): {"POST": "cancel_batch"},
    ("messages/batches", False, ""): {"GET": "list_message_batches", "POST": "create_message_batch"},
    ("messages/batches", True, ""): {"GET": "show_message_batch", "DELETE": "delete_message_batch"},
    ("messages/batches", True, "cancel"): {"POST": "cancel_message_batch"},
    ("messages/batches", True, "results"): {"GET": "read_message_batch"},
}


def batch_methods(path: str) -> tuple[dict[str, BatchEndpoint], str, str] | None:
    """Return the endpoint of each method at a path, the dialect there, and the id in the path, or None if the path is of nothing kept."""
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    collection, name, below = found[1], found[2] or "", found[3] or ""
    methods = BATCH_METHODS.get((collection, bool(name), below))
    if methods is None:
        return None
    return methods, "anthropic_messages" if collection.startswith("messages") else "openai_chat", name


Endpoint = Literal[
    "generate",
    "generate_or_load",
    "respond",
    "compact",
    "show_response",
    "delete_response",
    "list_input",
    "create_conversation",
    "show_conversation",
    "update_conversation",
    "delete_conversation",
    "list_items",
    "add_items",
    "show_item",
    "delete_item",
    "complete",
    "embed",
    "count_tokens",
    "models",
    "model",
    "show_capabilities",
    "loaded_models",
    "list_local_models",
    "show_local_model",
    "version",
    "root",
    "feedback",
    "usage",
    "show_cache",
    "purge_cache",
    "search_memory",
    "show_episode",
    "forget_episode",
    "provider_health",
    "list_lessons",
    "forget_lessons",
    "forget_lesson",
    "metrics",
    "events",
    "health",
    "ready",
    "panel",
    "openapi",
]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One endpoint of one dialect. `by_client`: the headers of a request may tell another dialect, by `CLIENT_HEADERS`.

    `name` is the id of the response or the conversation that a path holds, `item` that of an item in it.
    """

    endpoint: Endpoint | BatchEndpoint
    dialect: str = DEFAULT_DIALECT
    by_client: bool = False
    method: str = "POST"
    arrival: Arrival = Arrival()
    name: str = ""
    item: str = ""


FIXED_ROUTES: dict[str, Route] = {
    "/v1/chat/completions": Route(endpoint="generate", dialect="openai_chat"),
    "/v1/responses": Route(endpoint="respond", dialect="openai_responses"),
    "/v1/messages": Route(endpoint="generate", dialect="anthropic_messages"),
    "/v1/messages/count_tokens": Route(
        endpoint="count_tokens", dialect="anthropic_messages", arrival=Arrival(stream=False, counting=True)
    ),
    "/v1/responses/input_tokens": Route(
        endpoint="count_tokens", dialect="openai_responses", arrival=Arrival(stream=False, counting=True)
    ),
    "/v1/responses/compact": Route(endpoint="compact", dialect="openai_responses", arrival=Arrival(stream=False)),
    "/v1/conversations": Route(endpoint="create_conversation", dialect="openai_responses"),
    "/v1/completions": Route(endpoint="complete"),
    "/v1/embeddings": Route(endpoint="embed"),
    "/v1/interactions": Route(endpoint="generate", dialect="gemini_interactions"),
    "/v1/models": Route(endpoint="models", method="GET", by_client=True),
    "/v1beta/models": Route(endpoint="models", dialect="gemini", method="GET"),
    "/v1alpha/models": Route(endpoint="models", dialect="gemini", method="GET"),
    "/v1beta/interactions": Route(endpoint="generate", dialect="gemini_interactions"),
    "/v1alpha/interactions": Route(endpoint="generate", dialect="gemini_interactions"),
    "/v2/chat": Route(endpoint="generate", dialect="cohere"),
    "/api/chat": Route(endpoint="generate_or_load", dialect="ollama", arrival=Arrival(framing="ndjson")),
    "/api/generate": Route(endpoint="generate_or_load", dialect="ollama_generate", arrival=Arrival(framing="ndjson")),
    "/api/tags": Route(endpoint="models", dialect="ollama", method="GET"),
    "/api/show": Route(endpoint="show_capabilities", dialect="ollama"),
    "/api/ps": Route(endpoint="loaded_models", dialect="ollama", method="GET"),
    "/api/version": Route(endpoint="version", dialect="ollama", method="GET"),
    "/": Route(endpoint="root", method="GET"),
    "/api/hello": Route(endpoint="root", method="GET"),
    "/inference-profiles": Route(endpoint="models", dialect="bedrock_invoke", method="GET"),
    "/api/embed": Route(endpoint="embed", dialect="ollama", arrival=Arrival(endpoint="embed")),
    "/api/embeddings": Route(endpoint="embed", dialect="ollama", arrival=Arrival(endpoint="embeddings")),
    "/api/v0/models": Route(endpoint="list_local_models", method="GET"),
    "/api/v0/chat/completions": Route(endpoint="generate", dialect="openai_chat"),
    "/api/v0/completions": Route(endpoint="complete"),
    "/api/v0/embeddings": Route(endpoint="embed"),
    "/v1/bardo/feedback": Route(endpoint="feedback"),
    "/v1/bardo/usage": Route(endpoint="usage", method="GET"),
    "/v1/bardo/cache": Route(endpoint="show_cache", method="GET"),
    "/v1/bardo/cache/purge": Route(endpoint="purge_cache"),
    "/v1/bardo/memory": Route(endpoint="search_memory", method="GET"),
    "/v1/bardo/health": Route(endpoint="provider_health", method="GET"),
    "/v1/bardo/events": Route(endpoint="events", method="GET"),
    "/metrics": Route(endpoint="metrics", method="GET"),
    "/healthz": Route(endpoint="health", method="GET"),
    "/readyz": Route(endpoint="ready", method="GET"),
    "/openapi.json": Route(endpoint="openapi", method="GET"),
}
# Some programs put the version into the base URL and some leave it out.
VERSIONLESS_ROUTES = {
    path.removeprefix("/v1"): route for path, route in FIXED_ROUTES.items() if path.startswith("/v1/")
}
DIALECT_PATHS = (
    ("/v1/messages", "anthropic_messages"),
    ("/messages", "anthropic_messages"),
    ("/v1/responses", "openai_responses"),
    ("/responses", "openai_responses"),
    ("/v1/conversations", "openai_responses"),
    ("/conversations", "openai_responses"),
    ("/v1beta/interactions", "gemini_interactions"),
    ("/v1alpha/interactions", "gemini_interactions"),
    ("/v1/interactions", "gemini_interactions"),
    ("/v1beta", "gemini"),
    ("/v1alpha", "gemini"),
    ("/v2", "cohere"),
    ("/api/v0", "openai_chat"),
    ("/api", "ollama"),
    ("/model/", "bedrock_converse"),
    ("/inference-profiles", "bedrock_invoke"),
)
GEMINI_PREFIXES = ("/v1beta/models/", "/v1/models/", "/v1alpha/models/")
# The AI SDK leaves out `models/` before a name that holds a slash itself (@ai-sdk/google 4.0, 2026).
GEMINI_NAME_PATH = re.compile(r"/v1(?:beta|alpha)?/(?!publishers/|projects/)([^/]+/.+)")
# Google's SDKs ask so where they are told to use Vertex AI. A provider before the model's name stands in the place of the publisher.
VERTEX_PATH = re.compile(r"/v1(?:beta1|beta|alpha)?/(?:projects/[^/]+/locations/[^/]+/)?publishers/([^/]+)/models/(.+)")
# Claude Code leaves the version out where its base URL has none (code.claude.com, llm-gateway-protocol, 2026-11).
VERTEX_CLAUDE = "/publishers/anthropic/models/"
VERTEX_CLAUDE_PATH = re.compile(
    rf"(?:/v1(?:beta1|beta|alpha)?)?(?:/projects/[^/]+/locations/[^/]+)?{VERTEX_CLAUDE}(.+)"
)
VERTEX_CLAUDE_VERBS = {"rawPredict": False, "streamRawPredict": True}
"""Whether an answer of each verb is streamed."""
VERTEX_COUNT = "count-tokens"
"""What stands in the place of the model where Vertex AI is asked to count tokens."""
VERTEX_PUBLISHER = "google"
VERTEX_PREFIXES = tuple(
    f"/{version}/{place}publishers/{{publisher}}/models/"
    for version in ("v1", "v1beta1")
    for place in ("", "projects/{project}/locations/{location}/")
)
"""The paths of Vertex AI that Google's SDKs ask at, for the OpenAPI document; further versions lead to the same."""
BEDROCK_PREFIX = "/model/"
BEDROCK_OPERATIONS: dict[str, tuple[Endpoint, str, bool]] = {
    "converse": ("generate", "bedrock_converse", False),
    "converse-stream": ("generate", "bedrock_converse", True),
    "invoke": ("generate", "bedrock_invoke", False),
    "invoke-with-response-stream": ("generate", "bedrock_invoke", True),
    "count-tokens": ("count_tokens", "bedrock_invoke", False),
}
INTERACTION_PREFIXES = tuple(f"{path}/" for path in FIXED_ROUTES if path.endswith("/interactions"))
# What the gateway stores: by the collection and the shape of the path below it, the endpoint of each method.
STORED_PATH = re.compile(r"(?:/v1)?/(responses|conversations)/([^/]+)(?:/(input_items|items)(?:/([^/]+))?)?")
EPISODE_PATH = re.compile(r"(?:/v1)?/bardo/memory/([^/]+)")
EPISODE_METHODS: dict[str, Endpoint] = {"GET": "show_episode", "DELETE": "forget_episode"}
LESSON_PATH = re.compile(r"(?:/v1)?/bardo/lessons(?:/([^/]+))?")
LESSON_METHODS: dict[bool, dict[str, Endpoint]] = {
    False: {"GET": "list_lessons", "DELETE": "forget_lessons"},
    True: {"DELETE": "forget_lesson"},
}
"""By whether the path names a lesson."""
STORED_METHODS: dict[tuple[str, str, bool], dict[str, Endpoint]] = {
    ("responses", "", False): {"GET": "show_response", "DELETE": "delete_response"},
    ("responses", "input_items", False): {"GET": "list_input"},
    ("conversations", "", False): {
        "GET": "show_conversation",
        "POST": "update_conversation",
        "DELETE": "delete_conversation",
    },
    ("conversations", "items", False): {"GET": "list_items", "POST": "add_items"},
    ("conversations", "items", True): {"GET": "show_item", "DELETE": "delete_item"},
}
# Four libraries ask for models at one path; a header with a value tells only where it begins so.
CLIENT_HEADERS = (
    (b"x-goog-api-client", "", "gemini"),
    (b"x-goog-api-key", "", "gemini"),
    (b"anthropic-version", "", "anthropic_messages"),
    (b"x-fern-sdk-name", "cohere", "cohere"),
    (b"user-agent", "claude-cli/", "anthropic_messages"),
    (b"user-agent", "claude-code/", "anthropic_messages"),
)
GEMINI_VERBS: dict[str, Endpoint] = {
    "generateContent": "generate",
    "streamGenerateContent": "generate",
    "countTokens": "count_tokens",
    "embedContent": "embed",
    "batchEmbedContents": "embed",
}
MODEL_ROUTES = {
    "/v1/models/": Route(endpoint="model", method="GET", by_client=True),
    "/models/": Route(endpoint="model", method="GET", by_client=True),
    "/api/v0/models/": Route(endpoint="show_local_model", method="GET"),
    "/v1beta/models/": Route(endpoint="model", dialect="gemini", method="GET"),
    "/v1alpha/models/": Route(endpoint="model", dialect="gemini", method="GET"),
    "/inference-profiles/": Route(endpoint="model", dialect="bedrock_invoke", method="GET"),
}


_PANEL = "/panel"


def find_route(method: str, path: str, query: bytes) -> Route:
    """Return the route of a request, whose path has its escapes decoded. Raises UnknownRoute or MethodNotAllowed."""
    route = FIXED_ROUTES.get(path)
    if route is not None and route.method == method:
        return route
    # A model's id may end as a verb of Google's does; only a POST asks for the verb.
    own = _model(path) if method in ("GET", "HEAD") and ":" in path else None
    described = own if own is not None and own.by_client else None
    route = described or _route(path, query) or _stored_route(method, path) or _panel(method, path)
    # A POST whose path ends in a verb that no route has is of an unknown operation, and not of a model's description.
    if route is None and (method != "POST" or ":" not in path):
        route = _model(path)
    if route is None:
        raise _unknown(path)
    allowed = (route.method, "HEAD") if route.method == "GET" else (route.method,)
    if method not in allowed:
        raise MethodNotAllowed(f"{path} takes {route.method}, not {method}", allowed=allowed)
    return route


def for_client(route: Route, scope: Scope) -> Route:
    """Return a route that is `by_client` in the dialect of the client, where its headers tell which."""
    told = (name for mark, begin, name in CLIENT_HEADERS if (value := header(scope, mark)) and value.startswith(begin))
    return msgspec.structs.replace(route, dialect=next(told, route.dialect))


def dialect_of_path(path: str) -> str:
    """Return the dialect to answer an error in where no route was found, or only the beginning of a path is known."""
    route = _route(path, b"")
    if route is not None:
        return route.dialect
    if VERTEX_CLAUDE in path:
        return "anthropic_messages"
    return next((name for start, name in DIALECT_PATHS if path.startswith(start)), DEFAULT_DIALECT)


def _route(path: str, query: bytes) -> Route | None:
    fixed = FIXED_ROUTES.get(path) or VERSIONLESS_ROUTES.get(path)
    return fixed or _vertex_claude(path) or _gemini(path, query) or _bedrock(path)


def _unknown(path: str) -> UnknownRoute:
    """Return the error for a path without an endpoint."""
    if path.startswith(INTERACTION_PREFIXES):
        hint = "send the whole conversation as the input of a new interaction"
        return UnknownRoute("bardo stores no interactions: none can be read, cancelled or deleted later", hint=hint)
    return UnknownRoute(f"no endpoint at {path}", hint=f"try one of {', '.join(FIXED_ROUTES)}")


def _stored_route(method: str, path: str) -> Route | None:
    """Return the route of a stored object: a response, a conversation, a file or a batch. Raises MethodNotAllowed."""
    batch = batch_methods(path)
    if batch is not None:
        endpoints, dialect, name = batch
        if method not in endpoints:
            raise MethodNotAllowed(f"{path} takes {' and '.join(endpoints)}, not {method}", allowed=tuple(endpoints))
        return Route(endpoint=endpoints[method], dialect=dialect, method=method, name=name)
    own = EPISODE_PATH.fullmatch(path) or LESSON_PATH.fullmatch(path)
    if own is not None:
        own_methods = EPISODE_METHODS if own.re is EPISODE_PATH else LESSON_METHODS[own[1] is not None]
        if method not in own_methods:
            raise MethodNotAllowed(
                f"{path} takes {' and '.join(own_methods)}, not {method}", allowed=tuple(own_methods)
            )
        return Route(endpoint=own_methods[method], method=method, name=own[1] or "")
    found = STORED_PATH.fullmatch(path)
    if found is None:
        return None
    collection, below, item = found[1], found[3] or "", found[4] or ""
    methods = STORED_METHODS.get((collection, below, bool(item)))
    if methods is None:
        return None
    if method not in methods:
        raise MethodNotAllowed(f"{path} takes {' and '.join(methods)}, not {method}", allowed=tuple(methods))
    return Route(endpoint=methods[method], dialect="openai_responses", method=method, name=found[2], item=item)


def is_panel(path: str) -> bool:
    """Return whether a path is one of the panel's pages or files."""
    return path == _PANEL or path.startswith(f"{_PANEL}/")


def _panel(method: str, path: str) -> Route | None:
    """Return the route of a page of the panel: which methods it takes, the panel knows."""
    return Route(endpoint="panel", method="GET" if method == "HEAD" else method) if is_panel(path) else None


def _gemini(path: str, query: bytes) -> Route | None:
    model, colon, verb = _gemini_name(path).rpartition(":")
    endpoint = GEMINI_VERBS.get(verb)
    if not colon or endpoint is None:
        return None
    sse = parse_qs(query.decode("latin-1")).get("alt") == ["sse"]
    arrival = Arrival(
        model=model,
        stream=verb == "streamGenerateContent",
        framing="sse" if sse else "json_array",
        counting=endpoint == "count_tokens",
        endpoint=verb if endpoint == "embed" else "",
    )
    return Route(endpoint=endpoint, dialect="gemini", arrival=arrival)


def _gemini_name(path: str) -> str:
    """Return what a path of Google's API says behind `models/`, with the provider before it where a path of Vertex AI has one."""
    prefix = next((prefix for prefix in GEMINI_PREFIXES if path.startswith(prefix)), None)
    if prefix is not None:
        return path[len(prefix) :]
    found = VERTEX_PATH.fullmatch(path)
    if found is not None:
        return found[2] if found[1] == VERTEX_PUBLISHER else f"{found[1]}/{found[2]}"
    named = GEMINI_NAME_PATH.fullmatch(path)
    return named[1] if named is not None else ""


def _bedrock(path: str) -> Route | None:
    """Return the route of `/model/{model}/{operation}`; the ARN of an inference profile holds slashes itself."""
    if not path.startswith(BEDROCK_PREFIX):
        return None
    model, _, operation = path[len(BEDROCK_PREFIX) :].rpartition("/")
    found = BEDROCK_OPERATIONS.get(operation)
    if found is None or not model:
        return None
    endpoint, dialect, stream = found
    arrival = Arrival(model=model, stream=stream, framing="eventstream", counting=endpoint == "count_tokens")
    return Route(endpoint=endpoint, dialect=dialect, arrival=arrival)


def _vertex_claude(path: str) -> Route | None:
    """Return the route of Claude on Vertex AI: a body of Messages whose model and streaming stand in the path."""
    named, _, verb = path.rpartition(":")
    found = VERTEX_CLAUDE_PATH.fullmatch(named)
    if found is None or verb not in VERTEX_CLAUDE_VERBS:
        return None
    if found[1] == VERTEX_COUNT:
        counted = Arrival(stream=False, counting=True, endpoint=OF_CLOUD)
        return Route(endpoint="count_tokens", dialect="anthropic_messages", arrival=counted)
    arrival = Arrival(model=found[1], stream=VERTEX_CLAUDE_VERBS[verb], endpoint=OF_CLOUD)
    return Route(endpoint="generate", dialect="anthropic_messages", arrival=arrival)


def _model(path: str) -> Route | None:
    """Return the route of one model: its id may hold slashes."""
    prefix = next((start for start in MODEL_ROUTES if path.startswith(start)), "")
    model = path[len(prefix) :] if prefix else ""
    return msgspec.structs.replace(MODEL_ROUTES[prefix], arrival=Arrival(model=model)) if model else None

"""The paths of the gateway and what stands at each: endpoint, dialect and method. `routes.py` looks a request up here."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from bardo.dialects import DEFAULT_DIALECT
from bardo.surfaces.gateway.batch_routes import BatchEndpoint
from bardo.values.wire import Arrival

Endpoint = Literal[
    "generate",
    "generate_or_load",
    "respond",
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
    "/api/embed": Route(endpoint="embed", dialect="ollama", arrival=Arrival(endpoint="embed")),
    "/api/embeddings": Route(endpoint="embed", dialect="ollama", arrival=Arrival(endpoint="embeddings")),
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
    ("/api", "ollama"),
    ("/model/", "bedrock_converse"),
)
GEMINI_PREFIXES = ("/v1beta/models/", "/v1/models/", "/v1alpha/models/")
# The AI SDK leaves out `models/` before a name that holds a slash itself (@ai-sdk/google 4.0, 2026).
GEMINI_NAME_PATH = re.compile(r"/v1(?:beta|alpha)?/(?!publishers/|projects/)([^/]+/.+)")
# Google's SDKs ask so where they are told to use Vertex AI. A provider before the model's name stands in the place of the publisher.
VERTEX_PATH = re.compile(r"/v1(?:beta1|beta|alpha)?/(?:projects/[^/]+/locations/[^/]+/)?publishers/([^/]+)/models/(.+)")
VERTEX_PUBLISHER = "google"
VERTEX_PREFIXES = tuple(
    f"/{version}/{place}publishers/{{publisher}}/models/"
    for version in ("v1", "v1beta1")
    for place in ("", "projects/{project}/locations/{location}/")
)
"""The paths of Vertex AI that Google's SDKs ask at, for the OpenAPI document; further versions lead to the same."""
BEDROCK_PREFIX = "/model/"
BEDROCK_OPERATIONS: dict[str, tuple[str, bool]] = {
    "converse": ("bedrock_converse", False),
    "converse-stream": ("bedrock_converse", True),
    "invoke": ("bedrock_invoke", False),
    "invoke-with-response-stream": ("bedrock_invoke", True),
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
    "/v1beta/models/": Route(endpoint="model", dialect="gemini", method="GET"),
    "/v1alpha/models/": Route(endpoint="model", dialect="gemini", method="GET"),
}

"""Which path is which: the endpoint, its dialect, and what the path itself says."""

from __future__ import annotations

from typing import Literal
from urllib.parse import parse_qs, unquote

import msgspec

from bardo.values.errors import MethodNotAllowed, UnknownRoute
from bardo.values.wire import Arrival

Endpoint = Literal["generate", "models", "count_tokens", "health", "ready"]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One endpoint of one dialect."""

    endpoint: Endpoint
    dialect: str = "openai_chat"
    method: str = "POST"
    arrival: Arrival = Arrival()


_FIXED: dict[str, Route] = {
    "/v1/chat/completions": Route(endpoint="generate", dialect="openai_chat"),
    "/v1/responses": Route(endpoint="generate", dialect="openai_responses"),
    "/v1/messages": Route(endpoint="generate", dialect="anthropic_messages"),
    "/v1/messages/count_tokens": Route(endpoint="count_tokens", dialect="anthropic_messages"),
    "/v1/models": Route(endpoint="models", method="GET"),
    "/v1beta/models": Route(endpoint="models", dialect="gemini", method="GET"),
    "/healthz": Route(endpoint="health", method="GET"),
    "/readyz": Route(endpoint="ready", method="GET"),
}
# Some programs put the version into the base URL and some leave it out.
_SHORT = {path.removeprefix("/v1"): route for path, route in _FIXED.items() if path.startswith("/v1/")}
_DIALECT_PATHS = (
    ("/v1/messages", "anthropic_messages"),
    ("/messages", "anthropic_messages"),
    ("/v1/responses", "openai_responses"),
    ("/responses", "openai_responses"),
    ("/v1beta", "gemini"),
    ("/v1alpha", "gemini"),
)
_GEMINI = ("/v1beta/models/", "/v1/models/", "/v1alpha/models/")


def find_route(method: str, path: str, query: bytes) -> Route:
    """Return the route of a request. Raises UnknownRoute or MethodNotAllowed."""
    route = _FIXED.get(path) or _SHORT.get(path) or _gemini(path, query)
    if route is None:
        raise UnknownRoute(f"no endpoint at {path}", hint=f"try one of {', '.join(_FIXED)}")
    allowed = (route.method, "HEAD") if route.method == "GET" else (route.method,)
    if method not in allowed:
        raise MethodNotAllowed(f"{path} takes {route.method}, not {method}", allowed=allowed)
    return route


def dialect_of_path(path: str) -> str:
    """Return the dialect to answer an error in where no route was found, or only the beginning of a path is known."""
    route = _FIXED.get(path) or _SHORT.get(path) or _gemini(path, b"")
    if route is not None:
        return route.dialect
    return next((name for start, name in _DIALECT_PATHS if path.startswith(start)), "openai_chat")


def _gemini(path: str, query: bytes) -> Route | None:
    prefix = next((prefix for prefix in _GEMINI if path.startswith(prefix)), None)
    if prefix is None:
        return None
    model, colon, verb = unquote(path[len(prefix) :]).rpartition(":")
    if not colon or verb not in ("generateContent", "streamGenerateContent"):
        return None
    stream = verb == "streamGenerateContent"
    sse = parse_qs(query.decode("latin-1")).get("alt") == ["sse"]
    arrival = Arrival(model=model, stream=stream, framing="sse" if sse else "json_array")
    return Route(endpoint="generate", dialect="gemini", arrival=arrival)

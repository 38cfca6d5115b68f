"""Find the endpoint of a path, its dialect, and what the path itself says of the request."""

from __future__ import annotations

from urllib.parse import parse_qs

import msgspec

from bardo.dialects import DEFAULT_DIALECT
from bardo.surfaces.gateway.batch_routes import batch_methods
from bardo.surfaces.gateway.http import Scope, header
from bardo.surfaces.gateway.route_tables import (
    BEDROCK_OPERATIONS,
    BEDROCK_PREFIX,
    CLIENT_HEADERS,
    DIALECT_PATHS,
    EPISODE_METHODS,
    EPISODE_PATH,
    FIXED_ROUTES,
    GEMINI_NAME_PATH,
    GEMINI_PREFIXES,
    GEMINI_VERBS,
    INTERACTION_PREFIXES,
    LESSON_METHODS,
    LESSON_PATH,
    MODEL_ROUTES,
    STORED_METHODS,
    STORED_PATH,
    VERSIONLESS_ROUTES,
    VERTEX_PATH,
    VERTEX_PUBLISHER,
    Route,
)
from bardo.values.errors import MethodNotAllowed, UnknownRoute
from bardo.values.wire import Arrival

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
    return next((name for start, name in DIALECT_PATHS if path.startswith(start)), DEFAULT_DIALECT)


def _route(path: str, query: bytes) -> Route | None:
    return FIXED_ROUTES.get(path) or VERSIONLESS_ROUTES.get(path) or _gemini(path, query) or _bedrock(path)


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
    dialect, stream = found
    return Route(
        endpoint="generate", dialect=dialect, arrival=Arrival(model=model, stream=stream, framing="eventstream")
    )


def _model(path: str) -> Route | None:
    """Return the route of one model: its id may hold slashes."""
    prefix = next((start for start in MODEL_ROUTES if path.startswith(start)), "")
    model = path[len(prefix) :] if prefix else ""
    return msgspec.structs.replace(MODEL_ROUTES[prefix], arrival=Arrival(model=model)) if model else None

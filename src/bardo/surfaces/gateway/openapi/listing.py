"""Every path of the gateway as a template, with its method and its route: read from the tables by which requests find their routes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from bardo.surfaces.gateway.routes import (
    BATCH_METHODS,
    BEDROCK_OPERATIONS,
    EPISODE_METHODS,
    FIXED_ROUTES,
    GEMINI_PREFIXES,
    GEMINI_VERBS,
    LESSON_METHODS,
    MODEL_ROUTES,
    STORED_METHODS,
    VERSIONLESS_ROUTES,
    VERTEX_COUNT,
    VERTEX_PREFIXES,
    Route,
    find_route,
)
from bardo.values.wire import Arrival

_VERSION = "/v1"
PAGES = frozenset(("panel",))
"""The endpoints that serve pages for people, which the document leaves out."""


class ListedRoute(NamedTuple):
    """A path as a template, such as `/v1/files/{file_id}`, one of its methods, and the route of such a request.

    `versionless` is the same path without `/v1`, empty where that leads nowhere.
    """

    path: str
    method: str
    route: Route
    versionless: str = ""


def listed_routes() -> list[ListedRoute]:
    """Return every path and method that the gateway answers, pages for people left out."""
    return [*_routes_of_gateway(), *_routes_of_models()]


def _routes_of_gateway() -> Iterator[ListedRoute]:
    """Yield the routes whose paths are fixed, and those of what is stored here: responses, thinking, lessons and batches."""
    for path, route in FIXED_ROUTES.items():
        if route.endpoint in PAGES:
            continue
        shorter = path.removeprefix(_VERSION)
        yield ListedRoute(path, route.method, route, shorter if shorter in VERSIONLESS_ROUTES else "")
    for (collection, below, has_item), methods in STORED_METHODS.items():
        path = f"/{collection}/{{{collection[:-1]}_id}}" + (f"/{below}" if below else "")
        path += "/{item_id}" if has_item else ""
        for method, endpoint in methods.items():
            route = Route(endpoint=endpoint, dialect="openai_responses", method=method)
            yield ListedRoute(_VERSION + path, method, route, path)
    path = "/bardo/memory/{episode_id}"
    for method, endpoint in EPISODE_METHODS.items():
        yield ListedRoute(_VERSION + path, method, Route(endpoint=endpoint, method=method), path)
    for is_named, methods in LESSON_METHODS.items():
        path = "/bardo/lessons/{lesson_id}" if is_named else "/bardo/lessons"
        for method, endpoint in methods.items():
            yield ListedRoute(_VERSION + path, method, Route(endpoint=endpoint, method=method), path)
    for (collection, has_name, below), of_batches in BATCH_METHODS.items():
        is_anthropic = collection.startswith("messages")
        name = "message_batch" if is_anthropic else {"files": "file", "batches": "batch"}[collection]
        path = f"/{collection}" + (f"/{{{name}_id}}" if has_name else "") + (f"/{below}" if below else "")
        dialect = "anthropic_messages" if is_anthropic else "openai_chat"
        for method, of_batch in of_batches.items():
            yield ListedRoute(_VERSION + path, method, Route(endpoint=of_batch, dialect=dialect, method=method), path)


def _routes_of_models() -> Iterator[ListedRoute]:
    """Yield the routes whose paths name a model: in lists of models, and as Gemini, Vertex and Bedrock have them."""
    for prefix, route in MODEL_ROUTES.items():
        if prefix.startswith("/api/"):
            yield ListedRoute(f"{prefix}{{model}}", route.method, route)
        elif _VERSION + prefix not in MODEL_ROUTES:
            shorter = prefix.removeprefix(_VERSION)
            versionless = f"{shorter}{{model}}" if shorter in MODEL_ROUTES else ""
            yield ListedRoute(f"{prefix}{{model}}", route.method, route, versionless)
    for prefix in (*GEMINI_PREFIXES, *VERTEX_PREFIXES):
        for verb, endpoint in GEMINI_VERBS.items():
            arrival = Arrival(stream=verb == "streamGenerateContent", endpoint=verb if endpoint == "embed" else "")
            yield ListedRoute(
                f"{prefix}{{model}}:{verb}", "POST", Route(endpoint=endpoint, dialect="gemini", arrival=arrival)
            )
    place = "/projects/{project}/locations/{location}/publishers/anthropic/models/"
    for name in ("{model}:rawPredict", "{model}:streamRawPredict", f"{VERTEX_COUNT}:rawPredict"):
        route = find_route("POST", place + name, b"")
        yield ListedRoute(f"{_VERSION}{place}{name}", "POST", route, place + name)
    for operation, (endpoint, dialect, stream) in BEDROCK_OPERATIONS.items():
        route = Route(endpoint=endpoint, dialect=dialect, arrival=Arrival(stream=stream))
        yield ListedRoute(f"/model/{{model}}/{operation}", "POST", route)


def form_of(route: Route) -> str:
    """Return the name by which the form of a route's bodies is looked up: its endpoint and dialect, and which of several endpoints."""
    parts = (route.endpoint, route.dialect, route.arrival.endpoint)
    return " ".join(part for part in parts if part)


def longest_name(form: str, names: Collection[str]) -> str:
    """Return the longest beginning of a form that is among `names`, empty where none is: `embed ollama`, or `embed` alone."""
    parts = form.split()
    beginnings = (" ".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((one for one in beginnings if one in names), "")

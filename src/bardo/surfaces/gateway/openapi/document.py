"""The OpenAPI document, put together from the routes, the words and the schemas of each."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import Any

import msgspec

from bardo._version import __version__
from bardo.surfaces.gateway.openapi.descriptions import GROUPS, description_of
from bardo.surfaces.gateway.openapi.errors import ERROR_BODIES, statuses_text
from bardo.surfaces.gateway.openapi.json_schema import STRING, Schema, array, either, ref
from bardo.surfaces.gateway.openapi.listing import ListedRoute, form_of, listed_routes, longest_name
from bardo.surfaces.gateway.openapi.own_schemas import OWN_REPLIES, own_schemas
from bardo.surfaces.gateway.openapi.parameters import (
    ERROR_HEADERS,
    OPTION_ENDPOINTS,
    REPLY_HEADERS,
    header_components,
    parameter_components,
    parameters_of,
)
from bardo.surfaces.gateway.openapi.replies import PLAIN, REPLIES, SSE, STREAMS
from bardo.surfaces.gateway.openapi.requests import OPTIONAL_BODIES, REQUESTS, UPLOAD

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
    operation: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": description.summary,
        "tags": [description.group],
        "responses": _responses(route, form),
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


def _responses(route: ListedRoute, form: str) -> dict[str, Any]:
    asks_model = route.route.endpoint in OPTION_ENDPOINTS
    success: dict[str, Any] = {"description": "The answer.", "content": _content(route, form)}
    if asks_model:
        success["headers"] = {name: ref(name, "headers") for name in REPLY_HEADERS}
    found = {"200": success}
    if route.route.endpoint == "openapi":
        found["304"] = {"description": "The client has the document."}
    error = ref("Error.by_client" if route.route.by_client else f"Error.{route.route.dialect}", "responses")
    return {**found, "4XX": error, "5XX": error}


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
        raise KeyError(form)
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

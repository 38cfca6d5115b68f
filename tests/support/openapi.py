"""Compare answers of a gateway with its OpenAPI document: status, content type, headers, body, and each event of a stream."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import jsonschema_rs

from bardo.surfaces.gateway.openapi.document import openapi_bytes
from bardo.surfaces.gateway.openapi.listing import listed_routes
from support.talk import Answer

DOCUMENT: dict[str, Any] = json.loads(openapi_bytes()[0])
_NO_JSON = "[DONE]"


def operation_of(method: str, path: str) -> tuple[str, dict[str, Any]]:
    """Return the template and the operation of a request: paths without a parameter go first, and the longest templates."""
    bare = path.partition("?")[0]
    templates = sorted(DOCUMENT["paths"], key=lambda one: (one.count("{"), -len(one)))
    for template in templates:
        pattern = re.sub(r"\\\{\w+\\\}", "[^/]+" if "{model}" not in template else ".+", re.escape(template))
        if re.fullmatch(pattern, bare) and method.lower() in DOCUMENT["paths"][template]:
            return template, DOCUMENT["paths"][template][method.lower()]
    raise AssertionError(f"the document has no {method} {bare}")


def resolved(value: Mapping[str, Any]) -> Any:
    """Return what a reference leads to, or the value itself."""
    found: Any = value
    if "$ref" in value:
        found = DOCUMENT
        for part in value["$ref"].removeprefix("#/").split("/"):
            found = found[part]
    return found


@cache
def _validator(schema: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({**json.loads(schema), "components": DOCUMENT["components"]})


def problems(value: Any, schema: Mapping[str, Any]) -> list[str]:
    """Return what a value does not keep of a schema."""
    found = _validator(json.dumps(schema)).iter_errors(value)
    return [f"{'/'.join(map(str, one.instance_path))}: {one.message}"[:400] for one in found]


def check(method: str, path: str, answer: Answer) -> str:
    """Hold an answer against the document. Return the template of its path."""
    template, operation = operation_of(method, path)
    where = f"{method} {template} {answer.status}"
    row = operation["responses"].get(str(answer.status)) or operation["responses"].get(f"{answer.status // 100}XX")
    assert row is not None, f"{where}: the document has no such status"
    row = resolved(row)
    kind = answer.headers.get("content-type", "")
    content = {name.partition(";")[0]: media for name, media in row.get("content", {}).items()}
    media = content.get(kind.partition(";")[0])
    if content:
        assert media is not None, f"{where}: the document has no {kind}"
    known = {name.lower() for name in row.get("headers", {})}
    extra = [name for name in answer.headers if name.startswith("x-bardo-") and name not in known]
    assert extra in ([], ["x-bardo-request-id"]), f"{where}: the document has no headers {extra}"
    if media is not None:
        _check_body(where, kind, media, answer)
    return template


def _check_body(where: str, kind: str, media: Mapping[str, Any], answer: Answer) -> None:
    if kind.startswith("application/json"):
        assert problems(answer.json, media["schema"]) == [], f"{where}: {answer.text[:600]}"
    elif "x-event-schema" in media:
        values = events_of(kind, answer)
        assert values, f"{where}: no event"
        for value in values:
            assert problems(value, media["x-event-schema"]) == [], f"{where}: {value}"


def events_of(kind: str, answer: Answer) -> list[Any]:
    """Return the JSON of each event of a stream."""
    if kind.startswith("application/x-ndjson"):
        return [json.loads(line) for line in answer.text.splitlines() if line]
    return [payload for payload in answer.payloads if payload != _NO_JSON]


def documented() -> set[tuple[str, str]]:
    """Return every method and path of the document."""
    return {(one.method, one.path) for one in listed_routes()}

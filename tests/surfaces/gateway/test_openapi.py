"""The OpenAPI document has every route, with words and schemas, and is what the gateway serves."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import import_module
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from bardo.dialects.shared.control_fields import FIELDS
from bardo.dialects.shared.options import KEYS
from bardo.dialects.shared.structs import OTHERS
from bardo.surfaces.gateway.app import OPERATIONS
from bardo.surfaces.gateway.openapi.document import (
    DESCRIPTIONS,
    ERROR_BODIES,
    GROUPS,
    OWN_REPLIES,
    description_of,
    openapi_bytes,
    openapi_document,
)
from bardo.surfaces.gateway.openapi.listing import PAGES, ListedRoute, form_of, listed_routes, longest_name
from bardo.surfaces.gateway.openapi.schemas import DIALECT_FIELDS, PLAIN, QUERIES, REPLIES, REQUESTS, STREAMS
from bardo.surfaces.gateway.routes import FIXED_ROUTES, BatchEndpoint, Endpoint, Route, find_route
from support.gateway import house
from support.offenders import each_case
from support.openapi import DOCUMENT, check, problems
from support.talk import request

LISTED = listed_routes()


def test_every_endpoint_is_in_the_document() -> None:
    served = {*get_args(Endpoint), *get_args(BatchEndpoint), *OPERATIONS}
    listed = {one.route.endpoint for one in LISTED}
    missing = sorted(served - listed - PAGES)
    assert not missing, f"listed_routes() of surfaces/gateway/openapi/listing.py lists no path of {', '.join(missing)}"


def test_every_fixed_path_is_in_the_document() -> None:
    pages = {path for path, route in FIXED_ROUTES.items() if route.endpoint in PAGES}
    assert FIXED_ROUTES.keys() - pages <= DOCUMENT["paths"].keys()


@each_case("listed", LISTED, ids=lambda one: f"{one.method} {one.path}")
def test_a_listed_path_leads_to_its_route(listed: ListedRoute) -> None:
    for template in filter(None, (listed.path, listed.versionless)):
        path = re.sub(r"\{\w+\}", "a name", template)
        found = find_route(listed.method, path, b"")
        assert (found.endpoint, found.dialect) == (listed.route.endpoint, listed.route.dialect)
        assert found.arrival.stream == listed.route.arrival.stream
        assert form_of(found) == form_of(listed.route)


@each_case("listed", LISTED, ids=lambda one: f"{one.method} {one.path}")
def test_a_route_has_words(listed: ListedRoute) -> None:
    form = form_of(listed.route)
    assert longest_name(form, DESCRIPTIONS), (
        f"DESCRIPTIONS of surfaces/gateway/openapi/document.py has no text for `{form}`"
    )
    assert description_of(form).group in GROUPS


def test_a_new_route_without_words_has_no_document(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = ListedRoute("/v1/new", "GET", Route(endpoint="new", method="GET"))  # type: ignore[arg-type]
    monkeypatch.setattr("bardo.surfaces.gateway.openapi.document.listed_routes", lambda: [unknown])
    with pytest.raises(KeyError, match="new"):
        openapi_document()


def test_no_row_is_left_of_an_endpoint_that_is_gone() -> None:
    forms = [form_of(one.route) for one in LISTED]
    for table in (DESCRIPTIONS, REQUESTS, {**REPLIES, **OWN_REPLIES}, STREAMS, PLAIN):
        used = {longest_name(form, table) for form in forms}
        assert sorted(table.keys() - used) == []
    verbs = {one.path.rpartition(":")[2] for one in LISTED}
    assert QUERIES.keys() <= {one.route.endpoint for one in LISTED} | verbs
    assert ERROR_BODIES.keys() == {one.route.dialect for one in LISTED}


@each_case("dialect", DIALECT_FIELDS)
def test_a_field_that_the_document_takes_is_one_that_the_decoder_takes(dialect: str) -> None:
    wire = import_module(f"bardo.dialects.{dialect}.wire")
    struct = wire.CreateResponse if dialect == "openai_responses" else wire.Request
    types, names = get_type_hints(struct), {one.encode_name: one.name for one in msgspec.structs.fields(struct)}
    read = names.keys() - {"model", OTHERS} | (FIELDS if dialect in ("openai_chat", "openai_responses") else set())
    assert read - DIALECT_FIELDS[dialect].keys() == set()
    for name in names.keys() & DIALECT_FIELDS[dialect].keys() - {"bardo"}:
        for value in (None, True, 1, 1.5, "a", [], [1], ["a"]):
            try:
                msgspec.convert(value, types[names[name]])
            except msgspec.ValidationError:
                assert problems(value, DIALECT_FIELDS[dialect][name]), (name, value)


REPLY_STRUCTS = {
    "generate openai_chat": ("openai_chat", "Reply"),
    "respond openai_responses": ("openai_responses", "OutputResponse"),
    "generate anthropic_messages": ("anthropic_messages", "ReplyMessage"),
    "generate gemini": ("gemini", "Response"),
    "generate cohere": ("cohere", "Reply"),
    "generate bedrock_converse": ("bedrock_converse", "Reply"),
    "generate_or_load ollama": ("ollama", "Line"),
}


@each_case("form", REPLY_STRUCTS)
def test_a_field_of_a_reply_is_one_that_the_dialects_struct_has(form: str) -> None:
    dialect, name = REPLY_STRUCTS[form]
    struct = getattr(import_module(f"bardo.dialects.{dialect}.wire"), name)
    names = {one.encode_name for one in msgspec.structs.fields(struct)} | {struct.__struct_config__.tag_field}
    # What kind of object it is says nothing to who reads a response.
    assert REPLIES[form]["properties"].keys() - names <= {"bardo", "object"}


def test_the_bardo_object_has_every_key_and_no_other() -> None:
    (schema,) = [one for one in DOCUMENT["components"]["schemas"]["BardoOptions"]["anyOf"] if "properties" in one]
    assert sorted(schema["properties"]) == sorted(KEYS)
    assert schema["additionalProperties"] is False


def test_ids_are_told_apart_and_references_lead_somewhere() -> None:
    operations = [one for methods in DOCUMENT["paths"].values() for one in methods.values()]
    ids = [one["operationId"] for one in operations]
    assert len(ids) == len(set(ids))
    for reference in set(re.findall(r'"\$ref":"#/([^"]+)"', openapi_bytes()[0].decode())):
        found: Any = DOCUMENT
        for part in reference.split("/"):
            assert part in found, f"#/{reference} leads nowhere"
            found = found[part]


def test_the_document_is_valid() -> None:
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(DOCUMENT)


def test_a_wrong_answer_would_be_noticed() -> None:
    chat = {"$ref": "#/components/schemas/GenerateOpenaiChatReply"}
    assert problems({"id": "a", "object": "chat.completion", "model": "m", "choices": []}, chat) == []
    assert problems({"id": "a", "object": "chat.completion", "model": "m"}, chat)
    assert problems({"id": "a", "object": "chat", "model": "m", "choices": []}, chat)


def test_the_gateway_serves_it_once_to_those_who_have_it() -> None:
    with house() as running:
        first = request(running.address, "GET", "/openapi.json")
        check("GET", "/openapi.json", first)
        assert first.json == DOCUMENT
        tag = first.headers["etag"]
        for asked in (tag, f'"other", W/{tag}', "*"):
            again = request(running.address, "GET", "/openapi.json", headers={"if-none-match": asked})
            assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
        other = request(running.address, "GET", "/openapi.json", headers={"if-none-match": '"other"'})
        assert (other.status, other.body) == (200, first.body)
        head = request(running.address, "HEAD", "/openapi.json")
        assert (head.status, head.body, head.headers["content-length"]) == (200, b"", str(len(first.body)))


def test_a_gateway_does_not_load_it_before_it_is_asked_for() -> None:
    code = "import json, sys, bardo.surfaces.gateway.main; print(json.dumps([*sys.modules]))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = [name for name in json.loads(printed) if name.startswith("bardo.surfaces.gateway.openapi.")]
    assert not loaded

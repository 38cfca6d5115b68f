"""Each endpoint of the gateway is complete: an operation serves it, a path leads to it, and a page names it."""

from __future__ import annotations

from typing import get_args

import pytest

from bardo.dialects import CLIENT_FORMS, DIALECTS
from bardo.surfaces.gateway.app import OPERATIONS
from bardo.surfaces.gateway.routes import FIXED_ROUTES, VERSIONLESS_ROUTES, Endpoint, Route, find_route
from bardo.values.errors import MethodNotAllowed, UnknownRoute
from docs.test_examples import ROOT
from support.offenders import each_case

PAGE = "docs/reference/headers-and-extensions.md"
NAMED_IN_A_PAGE = (ROOT / PAGE).read_text(encoding="utf-8")
ROUTES = {**FIXED_ROUTES, **VERSIONLESS_ROUTES}
FOUND_BY_PATTERN = (
    ("GET", "/panel"),
    ("GET", "/v1/models/m"),
    ("GET", "/api/v0/models/m"),
    ("GET", "/v1/responses/r"),
    ("DELETE", "/v1/responses/r"),
    ("GET", "/v1/responses/r/input_items"),
    ("GET", "/v1/conversations/c"),
    ("POST", "/v1/conversations/c"),
    ("DELETE", "/v1/conversations/c"),
    ("GET", "/v1/conversations/c/items"),
    ("POST", "/v1/conversations/c/items"),
    ("GET", "/v1/conversations/c/items/i"),
    ("DELETE", "/v1/conversations/c/items/i"),
    ("GET", "/v1/bardo/memory/e"),
    ("DELETE", "/v1/bardo/memory/e"),
    ("GET", "/v1/bardo/lessons"),
    ("DELETE", "/v1/bardo/lessons"),
    ("DELETE", "/v1/bardo/lessons/l"),
)
"""Requests whose paths hold a name, for the endpoints that no fixed path leads to."""


@each_case("endpoint", get_args(Endpoint))
def test_an_operation_serves_each_endpoint(endpoint: Endpoint) -> None:
    assert endpoint in OPERATIONS, (
        f"nothing serves the endpoint `{endpoint}`: write a function `async def {endpoint}(context, route, scope, receive, answer)` in a "
        "file of src/bardo/surfaces/gateway/ and name it in OPERATIONS of app.py"
    )


@each_case("endpoint", get_args(Endpoint))
def test_a_path_leads_to_each_endpoint(endpoint: Endpoint) -> None:
    found = {route.endpoint for route in ROUTES.values()} | {
        find_route(method, path, b"").endpoint for method, path in FOUND_BY_PATTERN
    }
    assert endpoint in found, (
        f"no path leads to the endpoint `{endpoint}`: add one to FIXED_ROUTES of surfaces/gateway/routes.py"
    )


@each_case("path, route", ROUTES.items(), ids=list(ROUTES))
def test_a_path_takes_its_method_and_names_the_others_as_wrong(path: str, route: Route) -> None:
    assert route.endpoint in get_args(Endpoint), (
        f"`{route.endpoint}` of {path} is not in Endpoint of surfaces/gateway/routes.py"
    )
    assert route.dialect in {*DIALECTS, *CLIENT_FORMS}, f"there is no dialect `{route.dialect}`, which {path} speaks"
    assert find_route(route.method, path, b"") == route
    with pytest.raises(MethodNotAllowed):
        find_route("PATCH", path, b"")


@each_case("path", FIXED_ROUTES)
def test_a_page_names_each_path(path: str) -> None:
    assert any(f"{before}{path}`" in NAMED_IN_A_PAGE for before in ("`", " ")), (
        f"{PAGE} does not name {path}: add a row to its endpoints"
    )


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/v1beta1/publishers/google/models/m:generateContent", "m"),
        ("/v1/publishers/acme/models/m:generateContent", "acme/m"),
        ("/v1beta1/projects/p/locations/l/publishers/google/models/m:countTokens", "m"),
        ("/v1beta/models/acme/m:generateContent", "acme/m"),
    ],
)
def test_paths_of_googles_sdks_name_the_model(path: str, model: str) -> None:
    route = find_route("POST", path, b"")
    assert (route.dialect, route.arrival.model) == ("gemini", model)


@pytest.mark.parametrize("path", ["/v1/publishers/google/models/m", "/v1/publishers/models/m:generateContent"])
def test_other_paths_of_vertex_are_unknown(path: str) -> None:
    with pytest.raises(UnknownRoute):
        find_route("POST", path, b"")


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/v1beta/deepseek/m1:generateContent", "deepseek/m1"),
        ("/v1beta/openrouter/google/gemini-2.5-flash:streamGenerateContent", "openrouter/google/gemini-2.5-flash"),
        ("/v1beta/models/deepseek/m1:countTokens", "deepseek/m1"),
        ("/v1beta/publishers/google/models/gemini-2.5-flash:generateContent", "gemini-2.5-flash"),
    ],
)
def test_a_name_with_a_slash_may_stand_without_models_before_it(path: str, model: str) -> None:
    route = find_route("POST", path, b"")
    assert (route.dialect, route.arrival.model) == ("gemini", model)


@pytest.mark.parametrize("path", ["/v1beta/m1:generateContent", "/v1beta/deepseek/m1:tune"])
def test_a_path_without_a_known_verb_or_place_is_of_no_model(path: str) -> None:
    with pytest.raises(UnknownRoute):
        find_route("POST", path, b"")

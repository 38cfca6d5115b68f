"""A search that a provider runs itself is turned off in its own dialect where the budget is used up."""

from __future__ import annotations

from datetime import date
from typing import Any

import msgspec
import pytest

from bardo.dialects import dialect
from bardo.planning.hosted_search import SearchPolicy
from bardo.planning.knowledge import Knowledge
from bardo.planning.planner import draft_of
from bardo.planning.route import Provider, Target
from bardo.planning.search_budget import searches, within_budget
from bardo.surfaces.library.decoding import provider_row
from bardo.values.wire import Arrival, WireRequest

FUNCTION = {"type": "function", "name": "f"}
CASES: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    (
        "anthropic",
        "claude-sonnet-4-5",
        {"tools": [{"type": "web_search_20250305", "name": "web_search"}], "tool_choice": {"type": "any"}},
        {},
    ),
    (
        "openai",
        "gpt-5",
        {"tools": [FUNCTION, {"type": "web_search"}], "tool_choice": {"type": "web_search"}},
        {"tools": [FUNCTION]},
    ),
    (
        "openai",
        "gpt-5",
        {"tools": [{"type": "web_search"}, FUNCTION], "tool_choice": "auto"},
        {"tools": [FUNCTION], "tool_choice": "auto"},
    ),
    ("gemini", "gemini-2.5-flash", {"tools": [{"googleSearch": {}}]}, {}),
    ("openai-chat", "gpt-4o-search-preview", {"web_search_options": {}}, {}),
    (
        "venice",
        "m",
        {"venice_parameters": {"enable_web_search": "auto", "x": 1}},
        {"venice_parameters": {"enable_web_search": "off", "x": 1}},
    ),
]


def target(provider: str, model: str, most: int | None) -> Target:
    row = msgspec.structs.replace(provider_row(provider), searches_per_day=most)
    return Target(provider=Provider(id="p", row=row, base_url="https://p.example"), model=model)


@pytest.mark.parametrize(("provider", "model", "asked", "left"), CASES)
def test_only_the_search_is_taken_out(provider: str, model: str, asked: dict[str, Any], left: dict[str, Any]) -> None:
    wire = WireRequest(path="x", body=msgspec.json.encode({"k": 1, **asked}))
    there = target(provider, model, 5)
    assert searches(wire, there)
    assert within_budget(wire, there, 4) == (wire, ())
    without, lost = within_budget(wire, there, 5)
    assert msgspec.json.decode(without.body) == {"k": 1, **left}
    assert [one.what for one in lost] == ["tool web_search"]
    assert not searches(without, there)


@pytest.mark.parametrize(
    "body", [{}, {"tools": []}, {"tools": None}, {"tools": [FUNCTION]}, {"venice_parameters": "x"}]
)
@pytest.mark.parametrize("provider", ["anthropic", "openai", "gemini", "venice", "groq"])
def test_a_request_without_a_search_stays_as_it_is(provider: str, body: dict[str, Any]) -> None:
    wire = WireRequest(path="x", body=msgspec.json.encode(body))
    assert within_budget(wire, target(provider, "m", 0), 0) == (wire, ())
    assert not searches(wire, target(provider, "m", 0))


@pytest.mark.parametrize(
    ("name", "model", "own"),
    [("assistant", "gpt-4o-search-preview", True), ("my-search-preview", "gpt-5.4", False)],
)
def test_the_model_that_a_name_stands_for_decides_who_searches(name: str, model: str, own: bool) -> None:
    asked = {"model": name, "messages": [{"role": "user", "content": "Hi"}], "web_search_options": {}}
    request = dialect("openai_chat").decode_request(msgspec.json.encode(asked), Arrival())
    knowledge = Knowledge(today=date(2026, 11, 30), search=SearchPolicy(service="tavily"))
    assert (draft_of(request, target("openai-chat", model, None), knowledge).search is None) is own

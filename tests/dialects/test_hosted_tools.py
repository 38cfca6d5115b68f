"""A web search that one provider runs is that of another which runs one too, with its settings; elsewhere it is reported."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import bardo
from bardo.dialects import dialect
from bardo.surfaces.library.decoding import provider_row
from bardo.values.wire import Arrival, WireRequest

CHAT, RESPONSES, MESSAGES, GEMINI = "openai_chat", "openai_responses", "anthropic_messages", "gemini"
PLACE = {"city": "Wien", "country": "AT"}
ASKED: dict[str, dict[str, Any]] = {
    CHAT: {"web_search_options": {"user_location": {"type": "approximate", "approximate": PLACE}}},
    RESPONSES: {"tools": [{"type": "web_search_preview", "user_location": {"type": "approximate", **PLACE}}]},
    MESSAGES: {
        "tools": [
            {"type": "web_search_20260209", "name": "web_search", "user_location": {"type": "approximate", **PLACE}}
        ]
    },
    GEMINI: {"tools": [{"googleSearch": {}}]},
}
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"model": "m", "messages": [{"role": "user", "content": "Hi"}]},
    RESPONSES: {"model": "m", "input": "Hi"},
    MESSAGES: {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]},
    GEMINI: {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
}
FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


def sent(source: str, provider: str, model: str = "m", **fields: Any) -> tuple[WireRequest, dict[str, Any]]:
    row = provider_row(provider)
    body = msgspec.json.encode({**BODIES[source], **(fields or ASKED[source])})
    request = msgspec.structs.replace(dialect(source).decode_request(body, Arrival(model=model)), model=model)
    wire = dialect(row.dialect).encode_request(request, row)
    return wire, msgspec.json.decode(wire.body)


@pytest.mark.parametrize("source", [CHAT, RESPONSES, MESSAGES])
def test_a_search_goes_to_the_provider_that_runs_one_with_its_place(source: str) -> None:
    located = {"type": "approximate", **PLACE}
    if source != RESPONSES:
        wire, body = sent(source, "openai")
        assert body["tools"] == [{"type": "web_search", "user_location": located}]
        assert wire.degraded == ()
    if source != MESSAGES:
        wire, body = sent(source, "anthropic")
        assert body["tools"] == [{"type": "web_search_20250305", "name": "web_search", "user_location": located}]
        assert wire.degraded == ()
    wire, body = sent(source, "gemini")
    assert body["tools"] == [{"googleSearch": {}}]
    assert [one.what for one in wire.degraded] == ["user_location"]


@pytest.mark.parametrize(("provider", "tool"), [("openai", "web_search"), ("anthropic", "web_search_20250305")])
def test_geminis_search_goes_to_others(provider: str, tool: str) -> None:
    wire, body = sent(GEMINI, provider)
    assert [one["type"] for one in body["tools"]] == [tool]
    assert wire.degraded == ()


def test_a_search_is_an_option_of_chats_search_models() -> None:
    wire, body = sent(RESPONSES, "openai-chat", "gpt-4o-search-preview")
    assert body["web_search_options"] == ASKED[CHAT]["web_search_options"]
    assert "tools" not in body
    assert wire.degraded == ()
    wire, body = sent(RESPONSES, "openai-chat", "gpt-5")
    assert "web_search_options" not in body
    assert [one.what for one in wire.degraded] == ["tool web_search_preview"]


def test_settings_travel_or_are_reported() -> None:
    tool = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3, "allowed_domains": ["a.example"]}
    wire, body = sent(MESSAGES, "openai", tools=[tool])
    assert body["tools"] == [{"type": "web_search", "filters": {"allowed_domains": ["a.example"]}}]
    assert [(one.what, one.asked) for one in wire.degraded] == [("max_uses", 3)]


@pytest.mark.parametrize(("live", "lost"), [(False, ["external_web_access"]), (True, [])])
@pytest.mark.parametrize("provider", ["anthropic", "gemini"])
def test_a_search_that_was_to_read_stored_pages_only_is_reported(provider: str, live: bool, lost: list[str]) -> None:
    wire, _ = sent(RESPONSES, provider, tools=[{"type": "web_search", "external_web_access": live}])
    assert [one.what for one in wire.degraded] == lost


def test_a_search_that_a_provider_does_not_run_is_reported() -> None:
    wire, body = sent(CHAT, "bedrock")
    assert "web_search_options" in [one.what for one in wire.degraded]
    wire, body = sent(RESPONSES, "groq")
    assert "tools" not in body
    assert [one.what for one in wire.degraded] == ["tool web_search_preview"]


def test_gemini_gets_no_search_beside_functions() -> None:
    wire, body = sent(CHAT, "gemini", tools=[FUNCTION], web_search_options={})
    assert [*body["tools"][0]] == ["functionDeclarations"]
    assert [one.what for one in wire.degraded] == ["web_search_options"]


@pytest.mark.parametrize("source", ASKED)
def test_venice_gets_a_search_as_its_own_parameter(source: str) -> None:
    wire, body = sent(source, "venice")
    assert body["venice_parameters"] == {"enable_web_search": "auto"}
    assert not {"web_search_options", "tools", "tool_choice"} & body.keys()
    assert {one.what for one in wire.degraded} <= {"user_location"}


def test_a_search_that_must_be_made_is_one_at_venice_too() -> None:
    tool = {"type": "web_search_20250305", "name": "web_search"}
    for choice in ({"type": "any"}, {"type": "tool", "name": "web_search"}):
        wire, body = sent(MESSAGES, "venice", tools=[tool], tool_choice=choice)
        assert body["venice_parameters"] == {"enable_web_search": "on"}
        assert "tool_choice" not in body
        assert wire.degraded == ()
    named = {"name": "f", "input_schema": {"type": "object", "properties": {}}}
    _, body = sent(MESSAGES, "venice", tools=[tool, named], tool_choice={"type": "auto"})
    assert body["venice_parameters"] == {"enable_web_search": "auto"}
    assert [one["function"]["name"] for one in body["tools"]] == ["f"]


def test_the_callers_own_parameters_of_venice_stand() -> None:
    own = {"character_slug": "x", "include_venice_system_prompt": False, "enable_web_search": "off"}
    wire, body = sent(CHAT, "venice", venice_parameters=own)
    assert (body["venice_parameters"], wire.degraded) == (own, ())
    wire, body = sent(CHAT, "venice", venice_parameters=own, web_search_options={})
    assert body["venice_parameters"] == own
    assert "web_search_options" not in body
    wire, body = sent(CHAT, "groq", venice_parameters=own)
    assert body["venice_parameters"] == own


def test_a_setting_inside_the_object_that_names_a_tool_is_reported() -> None:
    span = {"startTime": "2026-01-01T00:00:00Z", "endTime": "2026-02-01T00:00:00Z"}
    wire, body = sent(GEMINI, "openai", tools=[{"googleSearch": {"timeRangeFilter": span}}])
    assert body["tools"] == [{"type": "web_search"}]
    assert [(one.what, one.asked) for one in wire.degraded] == [("timeRangeFilter", span)]


@pytest.mark.parametrize("model", ["gpt-4.1", "gpt-5.4"])
def test_a_chat_clients_search_goes_to_responses_where_chat_does_not_take_it(model: str) -> None:
    found = bardo.explain({**BODIES[CHAT], "model": model, "web_search_options": {}}, dialect=CHAT, provider="openai")
    assert (found.path, found.body["tools"], found.degraded) == ("/v1/responses", [{"type": "web_search"}], ())


def test_a_search_model_of_chat_stays_at_chat() -> None:
    asked = {**BODIES[CHAT], "model": "gpt-4o-search-preview", "web_search_options": {}}
    found = bardo.explain(asked, dialect=CHAT, provider="openai")
    assert (found.path, found.body["web_search_options"], found.degraded) == ("/v1/chat/completions", {}, ())


@pytest.mark.parametrize("provider", ["openai-chat", "bedrock"])
def test_a_search_of_chat_that_would_be_left_out_is_refused(provider: str) -> None:
    asked = {**BODIES[CHAT], "model": "gpt-4.1", "web_search_options": {}}
    with pytest.raises(bardo.Unsupported, match="web_search_options"):
        bardo.explain(asked, dialect=CHAT, provider=provider)
    found = bardo.explain({**asked, "bardo": {"allow_loss": ["web_search_options"]}}, dialect=CHAT, provider=provider)
    assert "web_search_options" not in found.body
    assert [one.what for one in found.degraded] == ["web_search_options"]

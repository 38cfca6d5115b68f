"""`bardo.explain`: what would be sent, and why, with nothing sent."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

import bardo
from bardo.adapters.config.settings import Settings, parse_settings
from bardo.catalog.load import builtin
from bardo.values.errors import InvalidRequest, UnknownModel, Unsupported
from bardo.values.secrets import HIDDEN
from support.offenders import each_case

pytestmark = pytest.mark.each_python

MESSAGES = [{"role": "user", "content": "What is 27 * 43?"}]
CLAUDE = {"model": "claude-opus-4-8", "messages": MESSAGES, "reasoning_effort": "low", "max_tokens": 4096}


@pytest.fixture(autouse=True)
def nobodys_house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without a configuration, and an environment without keys."""
    keys = {variable for row in builtin().providers for variable in row.key_variables}
    for variable in keys | {name for name in os.environ if name.startswith("BARDO_")}:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)


def chat(model: str, **further: Any) -> dict[str, Any]:
    return {"model": model, "messages": MESSAGES, **further}


def within(part: Any, whole: Any) -> bool:
    """Whether all of `part` stands in `whole`."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(within(value, whole.get(name)) for name, value in part.items())
    return bool(part == whole)


def test_the_exact_upstream_request_is_told_without_any_configuration() -> None:
    found = bardo.explain(CLAUDE, dialect="openai_chat", provider="anthropic")
    assert isinstance(found, bardo.Explanation)
    assert (found.url, found.path) == ("https://api.anthropic.com/v1/messages", "/v1/messages")
    assert found.body["thinking"]["type"] == "adaptive"
    assert found.body["output_config"] == {"effort": "low"}
    assert found.body["max_tokens"] == 4096
    assert json.loads(found.body_bytes) == found.body
    assert found.degraded == ()


def test_the_receipt_says_what_was_asked_what_is_sent_and_who_decided() -> None:
    receipt = bardo.explain(CLAUDE, provider="anthropic").receipt
    assert (receipt.intent, receipt.layer, receipt.reason, receipt.emitted_word) == ("low", "L2", "exact", "low")
    assert receipt.emitted["output_config"] == {"effort": "low"}
    assert (receipt["intent"], receipt["emitted"]) == (receipt.intent, receipt.emitted)
    assert dict(receipt).keys() >= {"intent", "emitted", "layer", "reason"}
    assert "verdict" not in receipt


def test_every_field_has_its_source_and_control_names_its_layer() -> None:
    found = bardo.explain(CLAUDE, provider="anthropic")
    sources = {one.path: one for one in found.fields}
    assert sources["messages"].reason == "as asked"
    assert (sources["output_config.effort"].layer, sources["output_config.effort"].reason) == (
        "L2",
        "thinking, asked low: exact",
    )
    assert {path.partition(".")[0] for path in sources} == set(found.body)


SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "a",
        "schema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
    },
}
LOOK = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
BY_SCHEMA = "asks for the answer in its schema"

SOURCES: dict[str, tuple[str, str, dict[str, Any], dict[str, str]]] = {
    "a format beside an effort and the caller's tools": (
        "anthropic",
        "claude-opus-4-8",
        {"response_format": SCHEMA, "tools": [LOOK], "reasoning_effort": "low"},
        {
            "tools": "as asked, written for anthropic_messages",
            "output_config.format": BY_SCHEMA,
            "output_config.effort": "thinking, asked low: exact",
        },
    ),
    "a tool of bardo's beside the caller's": (
        "anthropic",
        "claude-3-5-sonnet-20241022",
        {"response_format": SCHEMA, "tools": [LOOK]},
        {"tools[0]": "as asked", "tools[1]": BY_SCHEMA, "tool_choice.type": BY_SCHEMA},
    ),
    "words in the prompt": (
        "deepseek",
        "deepseek-chat",
        {"response_format": SCHEMA, "stream": True},
        {
            "messages[0]": BY_SCHEMA,
            "messages[1]": "as asked",
            "response_format.type": BY_SCHEMA,
            "stream": "as asked",
            "stream_options.include_usage": "bardo asks for usage, to count tokens",
        },
    ),
    "what is sent though nobody asked": (
        "openai",
        "gpt-5",
        {"temperature": 1},
        {"store": "sent unless the request says otherwise", "include": "sent unless the request says otherwise"},
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_field_comes_from_what_writes_it(name: str) -> None:
    provider, model, further, expected = SOURCES[name]
    sources = {one.path: one.reason for one in bardo.explain(chat(model, **further), provider=provider).fields}
    assert {path: sources.get(path) for path in expected} == expected


def test_a_limit_that_nobody_gave_says_why_it_is_there() -> None:
    found = bardo.explain(chat("claude-opus-4-8", reasoning_effort="low"), provider="anthropic")
    (limit,) = [one for one in found.fields if one.path == "max_tokens"]
    assert limit.reason.startswith("a limit is needed")
    assert limit.layer == "L2"


def test_what_cannot_be_said_is_told() -> None:
    found = bardo.explain(chat("gemini-2.5-pro", bardo={"reasoning": "off"}), provider="gemini")
    assert found.receipt.reason == "cannot be off"
    assert "reasoning" in {one.what for one in found.degraded}
    with pytest.raises(Unsupported, match="always thinks"):
        bardo.explain(chat("gemini-2.5-pro", bardo={"reasoning": "off", "on_impossible": "fail"}), provider="gemini")


@each_case("provider", [row.id for row in builtin().providers])
@each_case("asked", ["off", "high", 2048, None], ids=str)
def test_every_row_of_the_catalog_can_be_explained(provider: str, asked: Any) -> None:
    further = {} if asked is None else {"bardo": {"reasoning": asked}}
    found = bardo.explain(chat("some-model", **further), provider=provider)
    assert found.route.provider == provider
    assert found.path.startswith("/")
    assert within(found.receipt.emitted, found.body)
    assert msgspec.json.decode(msgspec.json.encode(found))["receipt"]["layer"] == found.receipt.layer


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        ("openai_chat", chat("deepseek-v4-flash")),
        ("openai_responses", {"model": "deepseek-v4-flash", "input": "x"}),
        ("anthropic_messages", {"model": "deepseek-v4-flash", "messages": MESSAGES, "max_tokens": 5}),
        ("gemini", {"model": "deepseek-v4-flash", "contents": [{"parts": [{"text": "x"}]}]}),
    ],
)
def test_a_request_may_be_in_any_dialect(dialect: str, body: dict[str, Any]) -> None:
    found = bardo.explain(body, dialect, "deepseek")
    assert found.body["model"] == "deepseek-v4-flash"
    assert found.body["messages"]


def test_the_model_goes_before_the_bodys_and_gemini_names_it_in_the_path() -> None:
    body = {"model": "gemini-2.5-flash", "contents": [{"parts": [{"text": "x"}]}]}
    found = bardo.explain(body, "gemini", "gemini", model="gemini-2.5-pro")
    assert found.path == "/v1beta/models/gemini-2.5-pro:generateContent"
    assert "model" not in found.body


TWO = """
[[providers]]
id = "first"
preset = "anthropic"
models = ["claude-opus-4-8"]
headers = { x-secret-token = "sesame", x-team = "red" }

[[providers]]
id = "second"
preset = "anthropic"
"""


def test_candidates_are_told_in_order_with_why() -> None:
    found = bardo.explain(CLAUDE, config=parse_settings(TWO))
    assert [(one.provider, one.why) for one in found.route.candidates] == [
        ("first", "its models in bardo.toml"),
        ("second", "the catalog: it serves models of such names"),
    ]
    assert (found.route.provider, found.route.model, found.route.dialect) == (
        "first",
        "claude-opus-4-8",
        "anthropic_messages",
    )


def test_a_provider_that_is_passed_over_says_why() -> None:
    asked = chat("glm-5.2", bardo={"reasoning": "off", "on_impossible": "reroute"})
    tables = """
        providers = [
            { id = "a", preset = "watsonx", base_url = "http://x", models = ["glm-5.2"] },
            { id = "b", preset = "zai", models = ["glm-5.2"] },
        ]
    """
    found = bardo.explain(asked, config=parse_settings(tables))
    assert found.route.provider == "b"
    assert "always thinks" in found.route.candidates[0].passed_over
    assert found.route.candidates[1].passed_over == ""


def test_headers_hold_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-recognisable")
    found = bardo.explain(CLAUDE, config=parse_settings(TWO))
    assert found.headers["anthropic-version"]
    assert (found.headers["x-secret-token"], found.headers["x-team"]) == (HIDDEN, "red")
    assert "sk-recognisable" not in str(found) + msgspec.json.encode(found).decode()
    assert found.key_variables == ("ANTHROPIC_API_KEY",)


def test_a_name_nobody_is_configured_for_means_the_catalogs_provider() -> None:
    found = bardo.explain(CLAUDE, config=Settings())
    assert found.route.provider == "anthropic"
    assert "catalog" in found.route.candidates[0].why
    assert bardo.explain(chat("openrouter/some/model"), config=Settings()).body["model"] == "some/model"


def test_how_the_reply_would_be_read_is_told() -> None:
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    found = bardo.explain(chat("Qwen/Qwen3-32B", tools=[tool]), provider="vllm")
    assert (found.reading.reasoning, found.forwarded) == ("qwen3", False)
    assert found.reading.tool_calls
    plain = bardo.explain(chat("deepseek-v4-flash"), provider="deepseek")
    assert (plain.reading.reasoning, plain.reading.tool_calls, plain.forwarded) == ("", "", True)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"dialect": "openai-chat"}, InvalidRequest, "openai_chat"),
        ({"provider": "antropic"}, InvalidRequest, "anthropic"),
        ({"model": "nobody-has-this"}, UnknownModel, "name the provider"),
    ],
)
def test_a_mistake_says_what_to_write(arguments: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error) as caught:
        bardo.explain({"messages": MESSAGES, "model": "claude-opus-4-8"}, **arguments)
    assert says in getattr(caught.value, "hint", "")


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="cannot be written as JSON"):
        bardo.explain({"model": "m", "messages": object()})


SCHEMA = {"type": "object", "properties": {"sum": {"type": "integer", "minimum": 0}}, "required": ["sum"]}
SHAPE = {"type": "json_schema", "json_schema": {"name": "result", "schema": SCHEMA}}


def test_how_an_answer_in_a_schema_is_asked_for_is_told() -> None:
    found = bardo.explain(chat("claude-sonnet-4-5", response_format=SHAPE), provider="anthropic")
    assert found.structured is not None
    assert (found.structured.name, found.structured.wanted) == ("result", "schema_enforced")
    assert found.structured.schema is not None
    assert msgspec.json.decode(msgspec.json.encode(found))["structured"]["mode"] == found.structured.mode
    assert bardo.explain(chat("claude-sonnet-4-5"), provider="anthropic").structured is None

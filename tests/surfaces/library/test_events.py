"""Inference events of a client's calls: the seven of the documents, with their payloads (003, "Profile events")."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import bardo
from bardo.adapters.config.settings import LogSettings, Settings
from bardo.simulators import Running, Script, Turn, running_many
from bardo.simulators.turns import Usage
from support.any_model import Simulator
from support.gateway import KEY_VARIABLE, entry, model_of

pytestmark = pytest.mark.each_python

# 003, "Profile events": the payload of each event.
PAYLOADS = {
    "inference:profile_applied": ("subsystem", "temperature", "reasoning_effort", "structured", "cached"),
    "inference:profile_degraded": ("subsystem", "degraded"),
    "inference:schema_validated": ("subsystem", "schema_name", "valid"),
    "inference:schema_fallback": ("subsystem", "schema_name"),
    "inference:reasoning_captured": ("subsystem", "reasoning_tokens", "content_tokens"),
    "inference:web_search_used": ("subsystem", "query", "results_count"),
    "inference:cache_stats": ("subsystem", "cached_tokens", "total_tokens", "savings_usd"),
}
EVENTS = (
    bardo.ProfileApplied,
    bardo.ProfileDegraded,
    bardo.SchemaValidated,
    bardo.SchemaFallback,
    bardo.ReasoningCaptured,
    bardo.WebSearchUsed,
    bardo.CacheStats,
)
PROFILE = {"temperature": 0.4, "min_p": 0.1, "reasoning_effort": "low", "web_search": True, "cache_control": True}


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Running]]:
    with pytest.MonkeyPatch.context() as patch, running_many(map(Simulator, ("anthropic", "deepseek"))) as running:
        patch.setenv(KEY_VARIABLE, "k")
        yield dict(running)


@pytest.fixture(scope="module")
def client(servers: dict[str, Running]) -> Iterator[bardo.Client]:
    entries = tuple(entry(Simulator(name), server.base_url) for name, server in servers.items())
    with bardo.Client(Settings(providers=entries, log=LogSettings(enabled=False))) as made:
        yield made


def events_of(client: bardo.Client, name: str, **options: Any) -> dict[str, dict[str, Any]]:
    with client.events() as events:
        client.respond("What is 27 * 43?", model=model_of(name), **options)
    found = [msgspec.to_builtins(one.event) for one in events]
    return {one.pop("event"): one for one in found}


def test_names_and_payloads_are_those_of_the_document() -> None:
    written = {kind.__struct_config__.tag: kind.__struct_fields__ for kind in EVENTS}
    assert written == PAYLOADS


def test_a_call_with_a_profile_tells_what_was_applied_and_lost(client: bardo.Client) -> None:
    found = events_of(client, "deepseek", profile=PROFILE)
    applied = found["inference:profile_applied"]
    assert (applied["temperature"], applied["structured"], applied["cached"]) == (0.4, False, True)
    assert "web_search -> unsupported" in found["inference:profile_degraded"]["degraded"]
    assert found["inference:web_search_used"]["results_count"] == 0


def test_thinking_that_can_be_read_is_told_with_its_tokens(client: bardo.Client) -> None:
    captured = events_of(client, "deepseek")["inference:reasoning_captured"]
    assert captured["reasoning_tokens"] > 0
    assert captured["content_tokens"] > 0


@pytest.mark.parametrize("name", ["anthropic", "deepseek"])
def test_an_answer_in_a_schema_is_told_with_its_judgement(client: bardo.Client, name: str) -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    with client.events() as events:
        try:
            client.respond("Answer.", model=model_of(name), response_type=schema)
            valid = True
        except bardo.UnusableAnswer:
            valid = False
    found = {type(one.event): one.event for one in events}
    judged = found[bardo.SchemaValidated]
    assert isinstance(judged, bardo.SchemaValidated)
    assert judged.valid is valid


def test_a_call_without_a_profile_tells_of_none(client: bardo.Client) -> None:
    assert not [name for name in events_of(client, "deepseek") if "profile" in name]


def test_events_name_the_call(client: bardo.Client) -> None:
    with client.events() as events:
        response = client.respond("Hello.", model=model_of("deepseek"), profile={"temperature": 0.1})
    assert {one.request_id for one in events} == {response.bardo["request_id"]}


@pytest.mark.parametrize(("read", "written"), [(400, 0), (0, 400)])
def test_what_a_cache_saved_is_what_the_receipt_says(read: int, written: int) -> None:
    usage = Usage(input_tokens=1000, answer_tokens=10, cached_input_tokens=read, cache_write_tokens=written)
    simulator = Simulator("anthropic", script=Script((Turn(text="1161", usage=usage),)))
    with simulator.running() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_VARIABLE, "k")
        settings = Settings(providers=(entry(simulator, server.base_url),), log=LogSettings(enabled=False))
        with bardo.Client(settings) as client:
            with client.events() as events:
                reply = client.respond("What is 27 * 43?", model=model_of("anthropic"))
            found = [one.event for one in events if isinstance(one.event, bardo.CacheStats)]
    saved = reply.bardo["cost"]["saved_usd"]
    assert [one.savings_usd for one in found] == [saved]
    # A write costs more than it saves.
    assert saved > 0 if read else saved < 0

"""Live facts over the catalog, and an operator's word over both: who says what, as of when, and who says otherwise."""

from __future__ import annotations

import asyncio
import datetime
import logging

import pytest

from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.adapters.net.keys import Keyring
from bardo.catalog.load import builtin
from bardo.catalog.models import Facts
from bardo.planning.route import Provider, Target
from bardo.reasoning.control import ControlTarget, Layer, plan_reasoning
from bardo.services.facts.introspect import FactsAnswer, Introspector, LiveFacts, layers_of, log_override, merge
from bardo.services.facts.introspect.layers import MergedFact
from bardo.values.request import ReasoningPolicy

AT = datetime.datetime(2026, 11, 22, 23, 59, tzinfo=datetime.UTC)


def provider(preset: str = "openrouter") -> Provider:
    row = builtin().provider(preset)
    assert row is not None
    return Provider(id="mine", row=row, base_url="http://127.0.0.1:9")


def said(facts: LiveFacts | None) -> FactsAnswer:
    return FactsAnswer(facts=facts, at=AT.timestamp(), adapter="openrouter")


def fact(merged_facts: tuple[MergedFact, ...], field: str) -> MergedFact:
    (found,) = [one for one in merged_facts if one.field == field]
    return found


LIVE = LiveFacts(control=("effort",), efforts=("low", "high"), off=True)


def test_the_servers_word_goes_before_the_catalogs_and_the_catalogs_is_shown_beside_it() -> None:
    merged = merge(provider(), "qwen/qwen3.6-27b", said(LIVE))
    control = fact(merged.facts, "control")
    assert (control.holds.layer, control.holds.value, control.holds.date) == ("L1", ("effort",), AT.date())
    assert [(one.layer, one.value) for one in control.against] == [("L2", ("budget", "toggle"))]
    assert fact(merged.facts, "off").against == ()
    assert [one.field for one in merged.disagreements] == ["control"]
    assert merged["efforts"] == ("low", "high")
    assert merged["nearest_off"] is None


def test_the_operators_word_goes_before_all() -> None:
    merged = merge(provider(), "qwen/qwen3.6-27b", said(LIVE), own=layers_of(None, Facts(off=False)))
    off = fact(merged.facts, "off")
    assert (off.holds.layer, off.holds.value) == ("operator", False)
    assert [one.layer for one in off.against] == ["L1", "L2"]


def test_of_an_unknown_model_only_an_assumption_is_left() -> None:
    merged = merge(provider(), "nobody/knows-this-one")
    assert {one.holds.layer for one in merged.facts} == {"L3"}
    assert merged.how == "unclassified"


def test_what_holds_is_what_is_sent() -> None:
    target = ControlTarget("openrouter", "openai_chat", "qwen/qwen3.6-27b")
    plan = plan_reasoning(ReasoningPolicy(mode="effort", effort="medium"), target, facts=layers_of(LIVE))
    assert plan.fields == {"reasoning": {"effort": "low"}}
    assert plan.layer == "L1"


def test_a_server_that_says_nothing_of_thinking_is_no_layer() -> None:
    assert layers_of(LiveFacts(context=4096, known_as="x")) == ()
    assert layers_of(None, Facts(off=True)) == (Layer("operator", Facts(off=True)),)


def test_an_override_that_goes_against_the_server_is_noted(caplog: pytest.LogCaptureFixture) -> None:
    target = Target(provider=provider(), model="m")
    with caplog.at_level(logging.WARNING, logger="bardo.introspection"):
        log_override(target, LIVE, Facts(off=True, default_effort="low"))
        assert caplog.records == []
        log_override(target, LIVE, Facts(off=False))
    (record,) = caplog.records
    assert vars(record)["fields"] == ["off"]
    assert (vars(record)["operator"], vars(record)["live"]) == ({"off": False}, {"off": True})


def test_layers_come_from_memory() -> None:
    body = b'{"capabilities": ["completion"]}'
    target = Target(provider=provider("ollama"), model="m")

    async def scenario(introspector: Introspector) -> None:
        assert introspector.layers(target) == ()
        await introspector.settle()
        (layer,) = introspector.layers(target)
        assert (layer.name, layer.facts.control) == ("L1", ("none",))

    transport = FakeTransport(lambda call: FakeReply(chunks=[body]))
    asyncio.run(scenario(Introspector(transport, Keyring({}))))
    assert len(transport.calls) == 1


def test_without_an_event_loop_nobody_is_asked() -> None:
    transport = FakeTransport(lambda call: FakeReply())
    assert Introspector(transport, Keyring({})).facts(provider("ollama"), "m") is None
    assert transport.calls == []

"""Python programs say what a call needs, and give feedback on its answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bardo
from bardo import Intent
from bardo.services.facts.call_routing import CallRouting
from bardo.values.errors import InvalidRequest, NotStored
from support.any_model import Simulator
from support.gateway import entry

pytestmark = pytest.mark.each_python

TABLE = """
[workloads.review]
model = "anthropic/claude-sonnet-4-5"
prefer = ["citations"]
cost_sensitivity = 0.9
profile = { temperature = 0.25 }
"""


@pytest.fixture
def client(tmp_path: Path) -> Iterator[bardo.Client]:
    deepseek, anthropic = Simulator("deepseek", models=["m"]), Simulator("anthropic", models=["claude-sonnet-4-5"])
    with deepseek.running() as first, anthropic.running() as second:
        keys = {"api_key_env": "HOME"}
        providers = (
            entry(deepseek, first.base_url, models=("m",), **keys),
            entry(anthropic, second.base_url, models=("claude-sonnet-4-5",), **keys),
        )
        settings = bardo.parse_settings(TABLE)
        log = bardo.LogSettings(path=str(tmp_path / "log.db"))
        changed = {name: getattr(settings, name) for name in settings.__struct_fields__} | {
            "providers": providers,
            "log": log,
        }
        with bardo.Client(bardo.Settings(**changed)) as made:
            yield made


def route_of(reply: Any) -> dict[str, Any]:
    route: dict[str, Any] = reply.bardo["receipt"]["route"]
    return route


def test_an_intent_finds_a_model(client: bardo.Client) -> None:
    reply = client.respond("Hello.", intent=Intent(require=("citations",)))
    assert route_of(reply)["provider"] == "anthropic"
    assert route_of(client.respond("Hello.", intent={"require": ["citations"]}))["provider"] == "anthropic"
    with client.stream("Hello.", intent=Intent(require=("citations",))) as stream:
        list(stream)
        assert route_of(stream.response())["provider"] == "anthropic"


def test_what_an_intent_leaves_at_its_default_is_the_workloads(client: bardo.Client) -> None:
    reply = client.respond("Hello.", model="bardo/review", intent=Intent(max_latency_ms=9000))
    intent = route_of(reply)["intent"]
    assert (intent["max_latency_ms"], intent["cost_sensitivity"], list(intent["prefer"])) == (9000, 0.9, ["citations"])
    said = {"cost_sensitivity": 0.5, "subsystem": "review"}
    assert route_of(client.respond("Hello.", intent=said))["intent"]["cost_sensitivity"] == 0.5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "no model is named"),
        ({"intent": Intent(require=("citation",))}, "did you mean citations"),
        ({"intent": Intent(cost_sensitivity=float("nan"))}, "at least 0"),
        ({"intent": Intent(subsystem="reviw")}, "did you mean bardo/review"),
        ({"intent": {"quality": "best"}}, "maximum"),
        ({"model": "bardo/auto", "profile": {"temprature": 1}}, "temperature"),
    ],
)
def test_a_mistake_is_named(client: bardo.Client, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        client.respond("Hello.", **options)
    assert said in str(caught.value)


def test_feedback_is_stored(client: bardo.Client, tmp_path: Path) -> None:
    reply = client.respond("Hello.", model="deepseek/m")
    assert reply.bardo is not None
    client.feedback(reply.bardo["request_id"], score=0.75, comment="good")
    connection = sqlite3.connect(tmp_path / "log.db")
    assert connection.execute("SELECT score, comment FROM inference_feedback").fetchall() == [(0.75, "good")]
    connection.close()
    with pytest.raises(NotStored):
        client.feedback("req_0", score=1)
    with pytest.raises(InvalidRequest, match="score"):
        client.feedback(reply.bardo["request_id"], score=2)


def test_feedback_teaches_learned_routing(client: bardo.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    learned: list[tuple[str, float]] = []
    monkeypatch.setattr(CallRouting, "note_feedback", lambda _, name, score: learned.append((name, score)))
    reply = client.respond("Hello.", model="deepseek/m")
    assert reply.bardo is not None
    client.feedback(reply.bardo["request_id"], score=0.25)
    assert learned == [(reply.bardo["request_id"], 0.25)]


def test_a_program_says_the_vitality_of_its_agent(client: bardo.Client) -> None:
    with pytest.raises(InvalidRequest, match="no agent is configured"):
        client.respond("Hello.", model="bardo/review", vitality=0.5)
    with pytest.raises(InvalidRequest) as refused:
        client.respond("Hello.", model="bardo/review", vitality=float("nan"))
    assert refused.value.param == "vitality"

"""What the vitality of an agent changes in calls of its subsystems, as a gateway's clients say it and read of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import openai
import pytest

from support.any_model import Simulator
from support.gateway import House, house
from support.sdk import openai_client

TABLE = """
[golem]
enabled = true

[workloads.guard]
model = "bardo/risk"

[workloads.stepped]
route = [{ models = ["gpt-oss*"], effort = "low", why = "it answers fast" }]
profile = { reasoning_effort = "high" }
"""
MESSAGES: list[Any] = [{"role": "user", "content": "What is 27 * 43?"}]


@pytest.fixture(scope="module")
def running() -> Iterator[House]:
    with house([Simulator("openrouter", models=["openai/gpt-oss-120b"])], toml=TABLE) as it:
        yield it


def respond(house: House, name: str, *, header: str = "", **said: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the body that reached the provider, and the receipt."""
    own: dict[str, Any] = {key: said.pop(key) for key in ("vitality", "profile", "intent") if key in said}
    with closing(openai_client(house.address)) as client:
        reply = client.chat.completions.create(
            model=name,
            messages=MESSAGES,
            extra_body={"bardo": {"include": ["receipt", "route"], **own}},
            extra_headers={"X-Bardo-Vitality": header} if header else {},
            **said,
        )
    told = reply.model_extra or {}
    return house.last("openrouter"), told["bardo"]


def changed(told: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return what is reported as changed by the vitality."""
    found = [one for one in told["degraded"] if one["why"].startswith("the agent's vitality is ")]
    return {one["what"]: (one["asked"], one["sent"]) for one in found}


@pytest.mark.parametrize("place", ["body", "header", "both"])
def test_pressure_changes_the_intent_the_reasoning_and_the_temperature(running: House, place: str) -> None:
    said: dict[str, Any] = {"vitality": 0.2} if place == "body" else {"vitality": 1} if place == "both" else {}
    body, told = respond(running, "bardo/dream_nrem", header="" if place == "body" else "0.2", **said)
    # 003: quality one step lower and 0.3 * pressure on top of the sensitivity; 000 §5: one level less; half of the way to 0.3.
    assert told["route"]["intent"]["quality"] == "medium"
    assert told["route"]["intent"]["cost_sensitivity"] == pytest.approx(0.74)
    assert told["route"]["vitality"] == 0.2
    assert body["temperature"] == pytest.approx(0.36)
    assert body["reasoning"]["effort"] == "low"
    assert changed(told) == {
        "intent.quality": ("high", "medium"),
        "intent.cost_sensitivity": (0.5, pytest.approx(0.74)),
        "reasoning_effort": ("medium", "low"),
        "temperature": (0.4, pytest.approx(0.36)),
    }


def test_calls_of_one_shape_with_other_vitalities_are_planned_apart(running: House) -> None:
    found = [respond(running, "bardo/dream_nrem", **said) for said in ({}, {"vitality": 0.05}, {"vitality": 1}, {})]
    assert [body["temperature"] for body, _ in found] == [0.4, pytest.approx(0.3525), 0.4, 0.4]
    efforts = [(body.get("reasoning") or {}).get("effort") for body, _ in found]
    assert efforts == ["medium", efforts[1], "medium", "medium"]
    assert efforts[1] != "medium"
    assert [bool(changed(told)) for _, told in found] == [False, True, False, False]


@pytest.mark.parametrize("name", ["risk", "death_reflect", "operator", "guard"])
def test_exempt_subsystems_and_workloads_made_of_them_stay_as_they_are(running: House, name: str) -> None:
    body, told = respond(running, f"bardo/{name}", vitality=0.01)
    before, _ = respond(running, f"bardo/{name}")
    assert not changed(told)
    assert body == before


def test_what_the_caller_says_goes_before_and_is_not_reported(running: House) -> None:
    body, told = respond(
        running,
        "bardo/dream_nrem",
        vitality=0.2,
        temperature=0.9,
        reasoning_effort="high",
        intent={"quality": "maximum"},
    )
    assert body["temperature"] == 0.9
    assert body["reasoning"]["effort"] == "high"
    assert set(changed(told)) == {"intent.cost_sensitivity"}
    body, told = respond(running, "bardo/dream_nrem", vitality=0.2, profile={"temperature": 0.8})
    assert body["temperature"] == 0.8
    assert set(changed(told)) == {"intent.quality", "intent.cost_sensitivity", "reasoning_effort"}


@pytest.mark.parametrize("name", ["openrouter/openai/gpt-oss-120b", "bardo/cheap"])
def test_a_call_of_no_subsystem_says_that_its_vitality_changes_nothing(running: House, name: str) -> None:
    _, told = respond(running, name, vitality=0.2)
    lost = [one for one in told["degraded"] if one["what"] == "vitality"]
    assert [one["why"] for one in lost] == ["only the subsystems of an agent change with its vitality"]


@pytest.mark.parametrize("said", [-0.1, 1.5, "low", True, "0.5"])
def test_a_vitality_that_is_none_is_refused_with_its_key(running: House, said: Any) -> None:
    with pytest.raises(openai.BadRequestError, match=r"bardo\.vitality") as refused:
        respond(running, "bardo/risk", vitality=said)
    assert refused.value.param == "bardo.vitality"


@pytest.mark.parametrize("said", ["nan", "inf", "-0.1", "1.01", "much"])
def test_a_header_that_is_no_vitality_is_refused_with_its_name(running: House, said: str) -> None:
    with pytest.raises(openai.BadRequestError, match="X-Bardo-Vitality"):
        respond(running, "bardo/risk", header=said)


@pytest.mark.parametrize("name", ["bardo/cheap", "openrouter/openai/gpt-oss-120b"])
def test_without_an_agent_the_setting_is_named(name: str) -> None:
    with (
        house([Simulator("openrouter", models=["openai/gpt-oss-120b"])]) as it,
        pytest.raises(openai.BadRequestError, match=r"enabled = true under \[golem\]") as refused,
    ):
        respond(it, name, vitality=0.5)
    assert refused.value.param == "bardo.vitality"


def test_the_effort_of_a_routes_step_is_asked_for(running: House) -> None:
    body, told = respond(running, "bardo/stepped")
    assert body["reasoning"]["effort"] == "low"
    lost = next(one for one in told["degraded"] if one["what"] == "reasoning_effort")
    assert (lost["asked"], lost["sent"], lost["why"]) == ("high", "low", "it answers fast")


@pytest.mark.parametrize("said", [{"reasoning_effort": "medium"}, {"profile": {"reasoning_effort": "medium"}}])
def test_the_callers_effort_goes_before_that_of_a_step(running: House, said: dict[str, Any]) -> None:
    body, told = respond(running, "bardo/stepped", **said)
    assert body["reasoning"]["effort"] == "medium"
    assert not [one for one in told["degraded"] if one["why"] == "it answers fast"]


def test_000_9_risk_without_claude_thinks_with_high_effort() -> None:
    with house([Simulator("openai_chat", models=["gpt-5.1"])], toml=TABLE) as it:
        with closing(openai_client(it.address)) as client:
            client.chat.completions.create(model="bardo/risk", messages=MESSAGES)
        assert it.last("openai_chat")["reasoning_effort"] == "high"


def test_vectors_say_that_vitality_changes_nothing() -> None:
    with house([Simulator("openai_chat", models=["text-embedding-3-small"])], toml=TABLE) as it:
        with closing(openai_client(it.address)) as client:
            raw = client.embeddings.with_raw_response.create(
                model="text-embedding-3-small", input="Hello.", extra_headers={"X-Bardo-Vitality": "0.2"}
            )
        assert "vitality" in raw.headers["x-bardo-degraded"].split(", ")

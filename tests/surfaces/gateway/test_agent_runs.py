"""An agent that says its tick, its subsystem and its vitality: tiers, budgets, temperatures, verification and escalation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from bardo.simulators import Script, Turn
from bardo.simulators.turns import Usage
from support.any_model import Simulator
from support.gateway import House, house
from support.sdk import openai_client
from support.talk import ask, request

TABLE = '[golem]\nenabled = true\nid = "g7"\n'
MESSAGES: list[Any] = [{"role": "user", "content": "Look at the pools."}]
CALM = '{"severity":"low","action":"observe","confidence":0.9,"rationale":"calm","signals":[],"escalate":false}'
ALARM = '{"severity":"high","action":"escalate","confidence":0.9,"rationale":"odd","signals":[],"escalate":true}'
PRICES = """
[[prices]]
provider = "{provider}"
match = ["claude-opus-4-6", "deepseek-r1-671b"]
input = 1000.0
output = 1000.0
[[prices]]
provider = "{provider}"
match = ["claude-haiku-4-5"]
input = 500.0
output = 500.0
"""
REPLAY = '{"episode_id":"e","lessons":[],"surprise_score":0.1,"counterfactuals":[],"arousal_delta":0.0}'
LAYER = '{"passed":true,"score":0.9,"detail":"fine"}'
LAYERS = ",".join(
    f'"{name}":{LAYER}'
    for name in ("hard_shields", "position_sizing", "adaptive_guardrails", "observation", "defi_threats")
)
RISK = f'{{"approved":true,"adjusted_size_usd":1.0,"layers":{{{LAYERS}}},"warnings":[],"reasoning":null}}'
LOW, HIGH = "claude-haiku-4-5", "claude-opus-4-6"


def says(preset: str, text: str, *models: str) -> Simulator:
    turn = Turn(text=text, usage=Usage(input_tokens=1000, answer_tokens=100))
    return Simulator(preset, script=Script(turns=(turn,)), models=list(models))


@pytest.fixture(scope="module")
def calm() -> Iterator[House]:
    with house([says("anthropic", CALM, LOW, HIGH)], toml=TABLE) as it:
        yield it


@pytest.fixture(scope="module")
def alarmed() -> Iterator[House]:
    with house([says("anthropic", ALARM, LOW, HIGH)], toml=TABLE) as it:
        yield it


def call(it: House, model: str, **bardo: Any) -> tuple[dict[str, Any], str, dict[str, str]]:
    """Return the `bardo` object of a whole reply, its text and its headers."""
    with closing(openai_client(it.address)) as client:
        asked = {"bardo": {"include": ["receipt"], **bardo}}
        raw = client.chat.completions.with_raw_response.create(model=model, messages=MESSAGES, extra_body=asked)
        body = json.loads(raw.text)
        headers = {name.lower(): value for name, value in raw.headers.items()}
        return body["bardo"], body["choices"][0]["message"]["content"], headers


def agent_of(bardo: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = bardo["receipt"]["route"]["agent"]
    return found


@pytest.mark.parametrize("tick", [{}, {"anomaly": 0.1}, {"signals": {"state_changed": False}}])
def test_a_quiet_tick_is_answered_without_a_model(calm: House, tick: dict[str, Any]) -> None:
    before = len(calm.arrived("anthropic"))
    bardo, text, headers = call(calm, "bardo/heartbeat", tick=tick, vitality=0.8)
    assert len(calm.arrived("anthropic")) == before
    assert json.loads(text)["action"] == "observe"
    assert agent_of(bardo)["tier"] == "T0"
    assert agent_of(bardo)["rules"] == []
    assert bardo["receipt"]["route"]["vitality"] == 0.8
    assert headers["x-bardo-provider"] == "bardo"
    assert bardo["cost"]["nanos"] == 0
    row = calm.log.row(bardo["request_id"])
    assert (row.subsystem, row.cost_nanos, row.outcome) == ("heartbeat_t0", 0, "ok")


def test_000_a_subsystem_has_its_pipeline_by_whatever_name_it_is_called() -> None:
    """000 §5: heartbeats of T1 are `fast`, those of T2 `standard`, and so is risk."""
    with house([says("anthropic", CALM, LOW, HIGH)], toml=f"{TABLE}pipelines = true\n") as it:
        for model, said, wanted in (
            ("bardo/heartbeat", {"tick": {"anomaly": 0.4}}, "fast"),
            ("bardo/heartbeat", {"tick": {"novelty": 0.9}}, "standard"),
            (f"anthropic/{LOW}", {"intent": {"subsystem": "heartbeat_t2"}}, "standard"),
            (f"anthropic/{LOW}", {}, None),
        ):
            bardo, _, _ = call(it, model, **said)
            row = it.log.row(bardo["request_id"])
            assert (None if row.pipeline is None else row.pipeline["profile"]) == wanted


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("client", ["openai_chat", "openai_responses", "anthropic_messages", "gemini", "ollama"])
def test_a_quiet_tick_is_answered_in_every_clients_dialect(calm: House, client: str, stream: bool) -> None:
    before = len(calm.arrived("anthropic"))
    answer = ask(calm.address, client, "bardo/heartbeat", stream=stream, headers={"X-Bardo-Tick": "quiet"})
    assert answer.status == 200
    assert b"observe" in answer.body
    assert answer.headers["x-bardo-route"].endswith("tier=T0")
    assert len(calm.arrived("anthropic")) == before


@pytest.mark.parametrize(
    ("tick", "tier", "rule"),
    [
        ({"anomaly": 0.4}, "T1", "moderate anomaly"),
        ({"state_changed": True}, "T1", "the state changed significantly"),
        ({"anomaly": 0.4, "conflict": True}, "T2", "conflicting signals"),
        ({"novelty": 0.9}, "T2", "novel situation"),
    ],
)
def test_a_tick_has_the_tier_that_its_rules_ask_for(calm: House, tick: dict[str, Any], tier: str, rule: str) -> None:
    bardo, _, headers = call(calm, "bardo/heartbeat", tick=tick)
    assert agent_of(bardo)["tier"] == tier
    assert [one["why"] for one in agent_of(bardo)["rules"]] == [rule]
    assert bardo["receipt"]["route"]["workload"] == f"heartbeat_{tier.lower()}"
    assert headers["x-bardo-model"] == (LOW if tier == "T1" else HIGH)
    assert calm.log.row(bardo["request_id"]).subsystem == f"heartbeat_{tier.lower()}"


def test_a_tick_goes_before_the_tier_that_a_name_says(calm: House) -> None:
    assert agent_of(call(calm, "bardo/heartbeat_t1", tick={"stakes": 0.9})[0])["tier"] == "T2"
    assert agent_of(call(calm, "bardo/heartbeat_t2", tick={})[0])["tier"] == "T0"


def test_the_header_says_a_tick_as_the_body_does(calm: House) -> None:
    answer = ask(calm.address, "openai_chat", "bardo/heartbeat", stream=False, headers={"X-Bardo-Tick": "anomaly=0.9"})
    assert answer.headers["x-bardo-route"].endswith("tier=T2")


def test_a_subsystem_that_is_no_heartbeat_passes_by_the_tiers(calm: House) -> None:
    before = len(calm.arrived("anthropic"))
    bardo, _, _ = call(calm, "bardo/operator", tick={})
    assert agent_of(bardo)["tier"] is None
    assert len(calm.arrived("anthropic")) == before + 1


def test_a_heartbeat_without_a_tick_asks_the_lowest_tier_that_has_a_model(calm: House) -> None:
    assert agent_of(call(calm, "bardo/heartbeat")[0])["tier"] == "T1"
    assert agent_of(call(calm, "bardo/heartbeat_t0")[0])["tier"] == "T0"


def test_a_schema_of_the_callers_own_is_answered_by_a_model(calm: House) -> None:
    schema = {"type": "object", "properties": {"severity": {"enum": ["low"]}}, "required": ["severity"]}
    form: Any = {"type": "json_schema", "json_schema": {"name": "own", "schema": schema}}
    with closing(openai_client(calm.address)) as client:
        asked: Any = {"bardo": {"tick": {}}, "response_format": form}
        raw = client.chat.completions.with_raw_response.create(
            model="bardo/heartbeat", messages=MESSAGES, extra_body=asked
        )
    assert "tier" in raw.headers["x-bardo-degraded"].split(", ")
    assert raw.headers["x-bardo-provider"] == "anthropic"


@pytest.mark.parametrize("stream", [False, True])
def test_a_heartbeat_that_asks_for_more_is_escalated(alarmed: House, stream: bool) -> None:
    headers = {"X-Bardo-Tick": "anomaly=0.4"}
    answer = ask(alarmed.address, "openai_chat", "bardo/heartbeat", stream=stream, headers=headers)
    bodies: list[Any] = [one.body for one in alarmed.arrived("anthropic")[-2:]]
    assert [body["model"] for body in bodies] == [LOW, HIGH]
    assert answer.headers["x-bardo-model"] == HIGH
    assert answer.headers["x-bardo-route"].endswith("tier=T2")
    assert "escalated" in answer.headers["x-bardo-degraded"].split(", ")
    assert b'"bardo/heartbeat"' in answer.body


def test_an_escalation_is_told_with_both_calls(alarmed: House) -> None:
    bardo, _, _ = call(alarmed, "bardo/heartbeat_t1")
    told = agent_of(bardo)
    assert (told["tier"], told["escalated_from"]) == ("T2", "T1")
    earlier = bardo["receipt"]["route"]["cascade"]["calls"][0]
    assert alarmed.log.row(earlier["request_id"]).subsystem == "heartbeat_t1"
    assert alarmed.log.row(bardo["request_id"]).subsystem == "heartbeat_t2"


@pytest.mark.parametrize(
    ("tick", "hint"),
    [({"anomolie": 1}, "anomaly"), ({"anomaly": "much"}, "number"), ({"cycle": -1}, "from 0"), ([], "{}")],
)
def test_a_tick_that_nobody_understands_is_refused(calm: House, tick: Any, hint: str) -> None:
    body = {"model": "bardo/heartbeat", "messages": MESSAGES, "bardo": {"tick": tick}}
    answer = request(calm.address, "POST", "/v1/chat/completions", body)
    assert answer.status == 400
    assert hint in answer.body.decode()


def test_a_tick_is_refused_where_no_agent_is_configured() -> None:
    with house([says("anthropic", CALM, LOW)]) as it:
        answer = ask(it.address, "openai_chat", LOW, stream=False, headers={"X-Bardo-Tick": "quiet"})
        assert answer.status == 400
        assert b"[golem]" in answer.body


def test_a_tick_of_no_subsystem_is_reported(calm: House) -> None:
    answer = ask(calm.address, "openai_chat", LOW, stream=False, headers={"X-Bardo-Tick": "quiet"})
    assert "tick" in answer.headers["x-bardo-degraded"].split(", ")


def test_003_the_temperatures_of_a_session_follow_its_own_steps() -> None:
    with house([says("venice", "a dream", "deepseek-r1-671b")], toml=TABLE) as it:

        def temperature(model: str, **bardo: Any) -> float:
            call(it, model, **bardo)
            found: float = it.last("venice")["temperature"]
            return round(found, 3)

        assert [temperature("bardo/dream_rem", session="a") for _ in range(5)] == [0.7, 0.767, 0.833, 0.9, 0.9]
        assert temperature("bardo/dream_rem", session="b") == 0.7
        # 003, "Mortality-aware temperature adjustment": half of the way to 0.3 at full pressure.
        assert temperature("bardo/dream_rem", session="c", vitality=0.5) == 0.6
        assert [temperature("bardo/hypnagogic_induction", session="a") for _ in range(2)] == [1.0, 1.067]
        cycles = [temperature("bardo/hypnagogic_dali", session="a") for _ in range(10)]
        assert (cycles[0], cycles[4], cycles[8], cycles[9]) == (1.5, 0.9, 0.3, 1.425)
        assert temperature("bardo/hypnagogic_dali", session="a", tick={"cycle": 2}) == 1.354
        # The caller's own temperature goes before.
        assert temperature("bardo/dream_rem", session="d", profile={"temperature": 0.4}) == 0.4


def test_003_the_key_of_a_dreams_prompt_is_that_of_its_cycle() -> None:
    with house([says("venice", REPLAY, "deepseek-r1-671b")], toml=TABLE) as it:
        call(it, "bardo/dream_nrem", tick={"cycle": 4})
        assert it.last("venice")["prompt_cache_key"] == "golem-g7-dream_nrem-4"


def test_003_risk_is_verified_by_another_model_where_bankr_is_there() -> None:
    verdict = '{"agrees": false, "why": "the position is too large"}'

    def simulators() -> list[Simulator]:
        return [says("anthropic", RISK, HIGH), says("bankr", verdict, "gpt-5.4")]

    with house(simulators(), toml=TABLE) as it:
        bardo, _, headers = call(it, "bardo/risk")
        assert bardo["verification"]["model"] == "bankr/gpt-5.4"
        assert bardo["verification"]["agrees"] is False
        assert "verification" in headers["x-bardo-degraded"].split(", ")
        assert len(it.arrived("bankr")) == 1
        # The gateway gives the verdict on what the documents name alone.
        call(it, "bardo/risk", verify="anthropic/x")
        assert len(it.arrived("bankr")) == 1
    with house(simulators(), toml=f"{TABLE}verify = false\n") as it:
        call(it, "bardo/risk")
        assert not it.arrived("bankr")


def spent_out(toml: str = "", provider: str = "anthropic") -> str:
    """Return a configuration whose shares one call spends: it costs $1.10, and the largest share is $0.20."""
    return f"{TABLE}daily_budget_usd = 1.0\n{toml}{PRICES.format(provider=provider)}"


def test_000_9_a_dream_whose_budget_is_spent_skips_its_cycle() -> None:
    with house([says("anthropic", "a dream", HIGH)], toml=spent_out()) as it:
        bardo, _, _ = call(it, "bardo/dream_rem", session="a")
        assert agent_of(bardo)["budget"]["usd"] == 0.15
        it.log.row(bardo["request_id"])
        for name in ("bardo/dream_nrem", "bardo/dream_rem"):
            answer = ask(it.address, "openai_chat", name, stream=False)
            assert answer.status == 429  # What OpenAI answers where money is used up.
            assert b"skip_cycle" in answer.body
        assert len(it.arrived("anthropic")) == 1


def test_000_9_daimon_does_without_a_model_when_its_budget_is_spent() -> None:
    with house([says("anthropic", "calm", LOW)], toml=spent_out()) as it:
        it.log.row(call(it, "bardo/hypnopompic_return")[0]["request_id"])
        answer = ask(it.address, "anthropic_messages", "bardo/daimon", stream=True)
        assert answer.status == 402
        assert b"deterministic_rules" in answer.body


def test_000_9_a_heartbeat_whose_budget_is_spent_asks_the_lower_tier() -> None:
    with house([says("anthropic", ALARM, LOW, HIGH)], toml=spent_out()) as it:
        it.log.row(call(it, "bardo/heartbeat_t2")[0]["request_id"])
        bardo, text, headers = call(it, "bardo/heartbeat", tick={"stakes": 0.9})
        assert bardo["receipt"]["route"]["workload"] == "heartbeat_t1"
        assert agent_of(bardo)["tier"] == "T1"
        assert agent_of(bardo)["stands_in_for"] == "T2"
        assert "tier" in headers["x-bardo-degraded"].split(", ")
        # The answer asks for the next tier, for which nothing is left.
        assert json.loads(text)["escalate"] is True
        _, _, headers = call(it, "bardo/heartbeat", tick={"anomaly": 0.4})
        assert "escalation" in headers["x-bardo-degraded"].split(", ")
        # A quiet tick costs nothing.
        assert agent_of(call(it, "bardo/heartbeat", tick={})[0])["tier"] == "T0"


def test_000_9_risk_operator_and_death_are_asked_whatever_was_spent() -> None:
    with house([says("anthropic", RISK, HIGH)], toml=spent_out()) as it:
        for name, told in (("bardo/risk", False), ("bardo/operator", True), ("bardo/death_reflect", False)):
            it.log.row(call(it, name)[0]["request_id"])
            _, _, headers = call(it, name)
            assert ("budget" in headers.get("x-bardo-degraded", "").split(", ")) is told


def test_a_budget_shrinks_with_vitality_and_grows_with_income() -> None:
    with house([says("anthropic", "yes", HIGH)], toml=f"{TABLE}daily_budget_usd = 10.0\n") as it:

        def share(**bardo: Any) -> float:
            found: float = agent_of(call(it, "bardo/playbook", **bardo)[0])["budget"]["usd"]
            return found

        assert share() == 0.5
        assert share(vitality=0.5) == 0.375
        assert share(tick={"sustainability": 2.5}) == 0.75
        assert share(tick={"sustainability": 0.4}) == 0.15


def test_003_the_searches_of_one_dream_cycle_cost_no_more_than_its_budget() -> None:
    table = f"{TABLE}web_search_budget_per_cycle_usdc = 0.02\n"
    with house([says("venice", "a dream", "deepseek-r1-671b")], toml=table) as it:
        told = []
        for cycle in (0, 0, 0, 1):
            _, _, headers = call(it, "bardo/dream_rem", tick={"cycle": cycle})
            told.append("tool web_search" in headers.get("x-bardo-degraded", ""))
        bodies: list[Any] = [one.body for one in it.arrived("venice")]
        sent = [one.get("venice_parameters", {}).get("enable_web_search") for one in bodies]
        # The cycles of another session are others.
        _, _, headers = call(it, "bardo/dream_rem", tick={"cycle": 0}, session="another")
    assert [one in ("on", "auto") for one in sent] == [True, True, False, True]
    assert told == [False, False, True, False]
    assert "tool web_search" not in headers.get("x-bardo-degraded", "")


def test_000_9_diem_pays_for_dreams_before_dollars_do() -> None:
    private = says("venice", "a dream", "deepseek-r1-671b")
    private.provider.balances = {"diem": "3.5"}  # type: ignore[attr-defined]
    with house([private], toml=spent_out(provider="venice")) as it:
        first, _, _ = call(it, "bardo/dream_rem")
        it.log.row(first["request_id"])
        budget = agent_of(call(it, "bardo/dream_rem")[0])["budget"]
        assert (budget["spent_usd"], budget["spent_diem"]) == (0.0, first["cost"]["usd"])
        assert budget["diem"] == pytest.approx(3.5 + first["cost"]["usd"])
        # The agent knows better that nothing is left.
        budget = agent_of(call(it, "bardo/dream_rem", tick={"diem": 0})[0])["budget"]
        assert (budget["diem"], budget["spent"]) == (0.0, False)

"""Who names the profile of a call: the call, its key, an alias, the workload, the configuration, in this order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.values.errors import ConfigError
from support.any_model import Simulator
from support.gateway import House, house
from support.talk import ask

TOML = """
[inference.pipeline]
profile = "by_default"
[inference.pipeline.profiles]
by_default = { layers = ["prefilter"] }
by_workload = { layers = ["prefilter"] }
by_alias = { layers = ["prefilter"] }
by_call = { layers = ["prefilter"] }
[aliases]
quick = { model = "deepseek/m", pipeline = "by_alias" }
[workloads.work]
model = "deepseek/m"
pipeline = "by_workload"
"""


def profile_of(running: House, model: str, **asked: Any) -> str | None:
    answer = ask(running.address, "openai_chat", model, **asked)
    assert answer.status == 200, answer.text
    row = running.log.row(answer.headers["x-bardo-request-id"])
    return None if row.pipeline is None else row.pipeline["profile"]


def test_the_nearest_name_holds() -> None:
    with house([Simulator("deepseek")], toml=TOML) as running:
        assert profile_of(running, "deepseek/m") == "by_default"
        assert profile_of(running, "bardo/work") == "by_workload"
        assert profile_of(running, "quick") == "by_alias"
        assert profile_of(running, "quick", bardo={"pipeline": "by_call"}) == "by_call"
        assert profile_of(running, "quick", headers={"x-bardo-pipeline": "by_call"}) == "by_call"
        assert profile_of(running, "quick", bardo={"pipeline": "off"}) is None
        assert profile_of(running, "quick", bardo={"layers": {"prefilter": False}}) is None
        assert profile_of(running, "deepseek/m", bardo={"pipeline": "off", "layers": {"prefilter": True}}) == "off"


def test_a_key_names_the_profile_of_its_calls() -> None:
    key = '[[keys]]\nid = "team"\nkey_env = "TEAM_KEY"\npipeline = "by_call"\n'
    environment = {"BARDO_TEST_KEY": "k", "TEAM_KEY": "team-key-0123456789"}
    with house([Simulator("deepseek")], toml=TOML + key, environment=environment) as running:
        headers = {"authorization": "Bearer team-key-0123456789"}
        assert profile_of(running, "quick", headers=headers) == "by_call"
        assert profile_of(running, "quick") == "by_alias"


def test_a_subsystem_that_a_call_names_has_the_profile_of_its_workload() -> None:
    with house([Simulator("deepseek")], toml=TOML) as running:
        assert profile_of(running, "deepseek/m", headers={"x-bardo-subsystem": "work"}) == "by_workload"
        assert profile_of(running, "deepseek/m", bardo={"intent": {"subsystem": "work"}}) == "by_workload"
        assert profile_of(running, "deepseek/m", headers={"x-bardo-subsystem": "cheap"}) == "by_default"
        assert profile_of(running, "quick", headers={"x-bardo-subsystem": "work"}) == "by_alias"
        both = {"x-bardo-subsystem": "work", "x-bardo-pipeline": "by_call"}
        assert profile_of(running, "deepseek/m", headers=both) == "by_call"


@pytest.mark.parametrize("how", ["subsystem", "pipeline"])
def test_a_locked_layer_stays_also_where_a_calls_subsystem_has_another_profile(how: str) -> None:
    locked = TOML.replace("[inference.pipeline]", '[inference.pipeline]\nlocked = ["prefilter"]')
    toml = locked.replace('by_workload = { layers = ["prefilter"] }', "by_workload = { layers = [] }")
    said = {"x-bardo-subsystem": "work"} | ({"x-bardo-pipeline": "by_workload"} if how == "pipeline" else {})
    with house([Simulator("deepseek")], toml=toml) as running:
        answer = ask(running.address, "openai_chat", "deepseek/m", headers=said)
        assert "pipeline.prefilter" in answer.headers["x-bardo-degraded"]
        row = running.log.row(answer.headers["x-bardo-request-id"])
        assert row.pipeline is not None
        assert "prefilter" in [one["layer"] for one in row.pipeline["layers"]]


def test_a_locked_layer_stays_on_and_says_so() -> None:
    toml = '[inference.pipeline]\nprofile = "fast"\nlocked = ["prefilter"]\n'
    with house([Simulator("deepseek")], toml=toml) as running:
        answer = ask(running.address, "openai_chat", "deepseek/m", bardo={"layers": {"prefilter": False}})
        assert "pipeline.prefilter" in answer.headers["x-bardo-degraded"]
        row = running.log.row(answer.headers["x-bardo-request-id"])
        assert row.pipeline is not None
        assert "prefilter" in [one["layer"] for one in row.pipeline["layers"]]


@pytest.mark.parametrize(
    ("toml", "named"),
    [
        ('[inference.pipeline]\nprofile = "fats"\n', "fast"),
        ('[inference.pipeline.profiles.own]\nlayers = ["cahce"]\n', "cache"),
        ('[inference.pipeline]\nlocked = ["privcy"]\n', "privacy"),
        ('[aliases]\nx = { model = "lab/m", pipeline = "standart" }\n', "standard"),
        ('[workloads.w]\nmodel = "lab/m"\npipeline = "ful"\n', "full"),
    ],
)
def test_a_name_that_nobody_knows_is_a_mistake_of_the_file(toml: str, named: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        parse_settings(toml)
    assert f"did you mean '{named}'?" in wrong.value.hint


def test_subsystems_have_the_profiles_of_the_documents_only_where_that_is_asked() -> None:
    plain = parse_settings("[golem]\nenabled = true\n").workloads
    assert not any(row.pipeline for row in plain.values())
    chosen = parse_settings("[golem]\nenabled = true\npipelines = true\n").workloads
    assert chosen["heartbeat_t1"].pipeline == "fast"
    assert chosen["risk"].pipeline == "standard"
    assert all(row.pipeline for row in chosen.values())


def test_each_receipt_says_how_its_layer_is_turned_off() -> None:
    with house([Simulator("deepseek")], toml='[inference.pipeline]\nprofile = "full"\n') as running:
        answer = ask(running.address, "openai_chat", "deepseek/m", bardo={"include": ["receipt"]})
        layers = json.loads(answer.body)["bardo"]["receipt"]["pipeline"]["layers"]
        assert {one["layer"] for one in layers} >= {
            "cache",
            "injection",
            "classify",
            "prefilter",
            "privacy",
            "affinity",
        }
        for one in layers:
            locked = one["layer"] in ("injection", "privacy")
            assert one["off"].endswith(f"without {one['layer']}")
            assert ('"layers"' in one["off"]) is not locked


KEYS = """
[[keys]]
id = "team"
key_env = "TEAM_KEY"
pipelines = ["by_alias"]
[[keys]]
id = "boss"
key_env = "BOSS_KEY"
operator = true
"""
ENVIRONMENT = {"BARDO_TEST_KEY": "k", "TEAM_KEY": "team-key-0123456789", "BOSS_KEY": "boss-key-0123456789"}


@pytest.mark.parametrize(
    "client", ["openai_chat", "openai_responses", "anthropic_messages", "gemini", "ollama", "cohere"]
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_client_names_no_profile_that_it_was_not_allowed(client: str, stream: bool) -> None:
    with house([Simulator("deepseek")], toml=TOML, for_clients=True) as running:
        for asked in (
            {"pipeline": "full"},
            {"layers": {"injection": True}},
            {"pipeline": "off", "layers": {"cache": True}},
        ):
            answer = ask(running.address, client, "deepseek/m", stream=stream, bardo=asked)
            assert answer.status == 403, answer.text
            assert "it may choose none but its own" in answer.text
        by_header = ask(running.address, client, "deepseek/m", stream=stream, headers={"x-bardo-pipeline": "by_call"})
        assert by_header.status == 403, by_header.text
        assert not running.arrived("deepseek")


def test_a_client_names_its_own_profile_and_none_at_all_and_what_is_allowed() -> None:
    allowed = '[gateway]\nclient_pipelines = ["by_call"]\n'
    with house(
        [Simulator("deepseek")], toml=TOML + KEYS + allowed, environment=ENVIRONMENT, for_clients=True
    ) as running:
        team = {"authorization": "Bearer team-key-0123456789"}
        boss = {"authorization": "Bearer boss-key-0123456789"}
        assert profile_of(running, "deepseek/m", bardo={"pipeline": "by_default"}) == "by_default"
        assert profile_of(running, "deepseek/m", bardo={"pipeline": "off"}) is None
        assert profile_of(running, "deepseek/m", bardo={"pipeline": "by_call"}) == "by_call"
        assert profile_of(running, "deepseek/m", bardo={"pipeline": "off", "layers": {"prefilter": True}}) == "off"
        assert profile_of(running, "deepseek/m", bardo={"pipeline": "by_alias"}, headers=team) == "by_alias"
        assert profile_of(running, "deepseek/m", bardo={"pipeline": "by_workload"}, headers=boss) == "by_workload"
        refused = ask(running.address, "openai_chat", "deepseek/m", bardo={"pipeline": "by_alias"})
        assert (refused.status, "by_call" in refused.text) == (403, True)
        other = ask(running.address, "openai_chat", "deepseek/m", bardo={"pipeline": "by_workload"}, headers=team)
        assert (other.status, "by_alias, by_call" in other.text) == (403, True)
        unknown = ask(running.address, "openai_chat", "deepseek/m", bardo={"pipeline": "by_cal"})
        assert (unknown.status, "by_call" in unknown.text) == (400, True)


def test_the_operator_may_allow_all_profiles() -> None:
    toml = TOML + '[gateway]\nclient_pipelines = ["*"]\n'
    with house([Simulator("deepseek")], toml=toml, for_clients=True) as running:
        assert profile_of(running, "deepseek/m", bardo={"pipeline": "by_call"}) == "by_call"


@pytest.mark.parametrize(
    "toml",
    ['[gateway]\nclient_pipelines = ["by_cal"]\n', '[[keys]]\nid = "a"\nkey_env = "A"\npipelines = ["by_cal"]\n'],
)
def test_an_allowed_profile_that_nobody_knows_is_a_mistake_of_the_configuration(toml: str) -> None:
    with pytest.raises(ConfigError, match=r"pipelines.*by_cal") as problem:
        parse_settings(TOML + toml)
    assert problem.value.hint == "did you mean 'by_call'?"

"""Who names the profile of a call: the call, its key, an alias, the workload, the configuration, in this order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.edge.settings import parse_settings
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

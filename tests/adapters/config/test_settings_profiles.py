"""`[golem]`, `[inference.profiles.NAME]` and `[inference.caching]` of bardo.toml."""

from __future__ import annotations

import logging

import pytest

from bardo.adapters.config.routing import workloads_of
from bardo.adapters.config.settings import Settings, parse_settings
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.golem.preset import subsystem, subsystem_names
from bardo.golem.rows import route_rows
from bardo.routing.workloads import Workload
from bardo.values.errors import ConfigError
from bardo.values.profile import InferenceProfile
from bardo.wiring import assemble
from support.offenders import each_case

GOLEM = '[golem]\nenabled = true\nid = "g7"\n'


def workload(text: str, name: str) -> Workload:
    found = workloads_of(parse_settings(text).workloads).get(name)
    assert found is not None
    return found


def test_nobody_meets_the_agent_who_did_not_ask_for_it() -> None:
    assert parse_settings("").workloads == parse_settings("[golem]\n").workloads == {}
    assert workloads_of(parse_settings("").workloads).get("risk") is None


@each_case("name", subsystem_names())
def test_every_subsystem_is_a_workload(name: str) -> None:
    found, wanted = workload(GOLEM, name), subsystem(name, golem="g7")
    assert (found.intent.quality, found.intent.require, found.intent.prefer) == (
        wanted.intent.quality,
        wanted.intent.require,
        wanted.intent.prefer,
    )
    assert (found.profile or InferenceProfile()) == wanted.profile
    assert found.locked == wanted.locked


def test_an_override_of_003_changes_what_it_names() -> None:
    text = f"{GOLEM}[inference.profiles.dream_rem]\ntemperature = 1.0\nmin_p = 0.08\n"
    profile = workload(text, "dream_rem").profile
    assert profile is not None
    assert (profile.temperature, profile.min_p, profile.reasoning_effort) == (1.0, 0.08, "high")


def test_an_override_of_a_locked_profile_is_a_warning_and_the_locked_value(caplog: pytest.LogCaptureFixture) -> None:
    text = f"{GOLEM}[inference.profiles.risk]\ntemperature = 0.9\n[workloads.operator]\nlocked = false\nprofile.temperature = 0.2\n"
    settings = parse_settings(f"{text}[log]\nenabled = false\n")
    assert {one.what for one in settings.unheeded} == {"profile.risk.temperature", "profile.operator.temperature"}
    for name, heat in (("risk", 0.1), ("operator", 0.7)):
        found = workloads_of(settings.workloads).get(name)
        assert found is not None
        assert found.locked
        assert found.profile is not None
        assert found.profile.temperature == heat
    with caplog.at_level(logging.WARNING, "bardo.control"):
        assemble(settings, transport=FakeTransport(lambda _: FakeReply()))
    assert "profile.risk.temperature of the configuration is not honoured: this profile is locked" in caplog.text


def test_an_operator_may_name_the_model_of_a_locked_subsystem() -> None:
    found = workload(f'{GOLEM}[workloads.risk]\nmodel = "lab/strong"\n', "risk")
    assert found.intent.model == "lab/strong"
    assert found.profile == subsystem("risk", golem="g7").profile


def test_a_profile_of_an_own_and_of_a_built_in_workload() -> None:
    text = '[workloads.notes]\nmodel = "lab/m"\n[inference.profiles.notes]\nseed = 7\n[inference.profiles.cheap]\nmax_tokens = 50\n'
    assert workload(text, "notes").profile == InferenceProfile(seed=7)
    cheap = workload(text, "cheap")
    assert cheap.profile == InferenceProfile(max_tokens=50)
    assert cheap.intent.cost_sensitivity == 1.0


def test_caching_keys() -> None:
    text = f'{GOLEM}[inference.caching]\nauto_cache_control = false\nprompt_cache_key_prefix = "mine"\n'
    profile = workload(text, "curator").profile
    assert profile is not None
    assert (profile.cache_control, profile.prompt_cache_key) == (None, "mine-g7-curator")


def test_searches_and_enclaves_can_be_turned_off() -> None:
    text = f"{GOLEM}web_search = false\nsealed = false\n"
    dream, testament = workload(text, "dream_rem").profile, workload(text, "death_testament").profile
    assert dream is not None
    assert testament is not None
    assert (dream.web_search, testament.tee_mode) == (None, None)


@pytest.mark.parametrize(
    ("table", "name", "model"),
    [
        ("blockrun_only", "risk", "blockrun/claude-opus-4-6"),
        ("full_stack", "dream_rem", "venice/deepseek-r1"),
        ("full_stack", "death_testament", "venice/deepseek-r1"),
        ("full_stack", "playbook", "openai/gpt-5.4"),
    ],
)
def test_a_table_of_routes_names_the_models(table: str, name: str, model: str) -> None:
    assert table in {one.name for one in route_rows().table}
    assert workload(f'{GOLEM}routes = "{table}"\n', name).intent.model == model


MISTAKES = {
    "a workload that is not there": (
        "[inference.profiles.rsk]\n",
        r"line 4: no workload is called 'rsk'.*did you mean 'risk'",
    ),
    "an unknown key": (
        "[inference.profiles.risk]\ntemprature = 1\n",
        r"line 5: unknown key 'temprature'.*did you mean 'temperature'",
    ),
    "a temperature out of range": ("[inference.profiles.dream_rem]\ntemperature = 2.5\n", r"line 5: .*at most 2"),
    "a temperature that is none": ("[inference.profiles.dream_rem]\ntemperature = nan\n", r"line 5: .*at least 0"),
    "an unknown effort": (
        '[inference.profiles.dream_rem]\nreasoning_effort = "lots"\n',
        r"line 5: .*use one of.*\"max\"",
    ),
    "no table": ("[inference]\nprofiles = 3\n", "profiles is not a table"),
    "an unknown table of routes": ('routes = "moon"\n', r"line 4: .*use one of.*\"full_stack\""),
    "tools of an unknown kind of tick": ('[golem.tools]\nrisk_chek = ["a"]\n', r"line 5: .*did you mean 'risk_check'"),
    "tools that are no list": ('tools = { risk_check = "a" }\n', r"line 4: "),
    "an unknown key of caching": ("[inference.caching]\nauto = true\n", r"unknown key 'auto'"),
    "a workload that leads to itself": ('[workloads.a]\nmodel = "b"\n[workloads.b]\nmodel = "a"\n', "leads to itself"),
}


@pytest.mark.parametrize(("lines", "told"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_names_the_line_and_what_to_write(lines: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parse_settings(f"{GOLEM}{lines}")


def test_a_profile_of_the_agent_without_the_agent_says_what_to_turn_on() -> None:
    with pytest.raises(ConfigError, match=r"no workload is called 'risk'.*enabled = true under \[golem\]"):
        parse_settings("[inference.profiles.risk]\ntemperature = 0.5\n")


def test_settings_that_no_file_gave_have_no_workloads() -> None:
    assert Settings().workloads == {}

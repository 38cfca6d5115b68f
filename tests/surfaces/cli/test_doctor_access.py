"""`bardo doctor` on keys, packages and names: "works" is said only of what was looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from bardo.surfaces.cli import doctor
from surfaces.cli.support import bardo

OFFLINE = '[[providers]]\nid = "lab"\npreset = "vllm"\nbase_url = "http://127.0.0.1:9/v1"\nmodels = ["m"]\n'


def found(folder: Path, text: str) -> str:
    (folder / "bardo.toml").write_text(f"{text}\n{OFFLINE}")
    ran = bardo("doctor", "--json")
    assert ran.code == 1
    return " | ".join(f"{one['area']}: {one['found']}" for one in ran.json["findings"] if one["status"] == "problem")


def test_a_gateway_for_everybody_without_keys_is_a_problem(folder: Path) -> None:
    assert "would listen on 0.0.0.0" in found(folder, '[gateway]\nhost = "0.0.0.0"')
    bardo("keys", "create", "team")
    assert "keys:" not in found(folder, '[gateway]\nhost = "0.0.0.0"')
    bardo("keys", "revoke", "team")
    assert "no key is active" in found(folder, "")


def test_a_configured_key_whose_variable_is_not_set_is_a_problem(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '[[keys]]\nid = "team"\nkey_env = "TEAM_KEY"'
    assert "TEAM_KEY is not set" in found(folder, text)
    assert "ask nobody for a key" in found(folder, text)
    monkeypatch.setenv("TEAM_KEY", "a-long-key-of-the-team")
    assert "TEAM_KEY" not in found(folder, text)


def test_a_key_for_compacted_conversations_that_is_not_set_or_too_short_is_a_problem(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '[responses]\nseal_key_env = "SEAL"'
    assert "compaction: SEAL, which holds" in found(folder, text)
    monkeypatch.setenv("SEAL", "short")
    assert "compaction: the key in SEAL has 5 bytes" in found(folder, text)
    monkeypatch.setenv("SEAL", "long enough for a key")
    assert "compaction:" not in found(folder, text)


def test_doctor_says_who_makes_vectors_and_what_is_missing_for_that(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = (
        '[[providers]]\nid = "vec"\npreset = "openai"\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "VEC_KEY"\n'
    )
    text = f'[inference.embeddings]\nprovider = "vec"\nmodel = "text-embedding-3-small"\n{provider}'
    profile = '[inference.pipeline]\nprofile = "standard"\n'

    def vectors(text: str) -> list[tuple[str, str]]:
        (folder / "bardo.toml").write_text(text)
        findings = bardo("doctor", "--json").json["findings"]
        return [(one["status"], one["found"].partition(",")[0]) for one in findings if one["area"] == "embeddings"]

    assert vectors(profile + OFFLINE) == []
    assert vectors(profile + text) == [("problem", "vec/text-embedding-3-small shall make vectors")]
    monkeypatch.setenv("VEC_KEY", "sk-of-vectors")
    assert vectors(profile + text) == [
        ("ok", "vec/text-embedding-3-small makes the vectors of layers; it was not asked now")
    ]
    assert vectors(text) == [("warning", "vec/text-embedding-3-small shall make vectors")]


def test_a_package_that_is_missing_is_a_problem(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "packages:" not in found(folder, "[telemetry]\nmetrics = true")
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    assert "[telemetry] metrics needs a package" in found(folder, "[telemetry]\nmetrics = true")
    assert "packages:" not in found(folder, "")


@pytest.mark.parametrize("command", [["probe", "--dry-run"], ["catalog", "show"]])
def test_a_mistyped_provider_before_a_model_is_told_with_the_nearest(command: list[str]) -> None:
    assert "did you mean anthropic/claude-sonnet-5?" in bardo(*command, "antropic/claude-sonnet-5").err


def test_makers_in_the_names_of_relays_are_no_mistyped_providers() -> None:
    for model in ("x-ai/grok-4", "mistralai/mistral-large", "deepseek-ai/DeepSeek-R1", "meta-llama/llama-4"):
        assert "did you mean" not in bardo("probe", "--dry-run", model).err


def test_conform_without_a_server_says_what_to_give() -> None:
    ran = bardo("conform")
    assert ran.code == 2
    assert "no server was named" in ran.err


def names_of(folder: Path, text: str) -> dict[str, tuple[str, str]]:
    (folder / "bardo.toml").write_text(f"{text}\n{OFFLINE}")
    findings = bardo("doctor", "--json").json["findings"]
    return {one["area"]: (one["status"], one["found"] + one["fix"]) for one in findings}


@pytest.mark.parametrize(
    ("alias", "is_problem"),
    [
        ('model = "m"', False),
        ('model = "lab/m"', False),
        ('model = "other"', False),
        ('model = "mm"', True),
        ('model = "lob/m"', True),
        ('model = "m"\nfallbacks = ["nobody-has-it"]', True),
        ('model = "bardo/coding"', False),
    ],
)
def test_an_alias_to_nothing_is_a_problem(folder: Path, alias: str, is_problem: bool) -> None:
    found = names_of(folder, f'[aliases.mine]\n{alias}\n[aliases.other]\nmodel = "m"\n')
    assert ("alias mine" in found) is is_problem, found
    if is_problem:
        assert found["alias mine"][0] == "problem"


def test_settings_of_a_layer_that_no_profile_has_are_told(folder: Path) -> None:
    table = "[inference.pipeline.dedup]\n{}\n"
    setting = "least = 999"
    assert "layers" not in names_of(folder, "")
    found = names_of(folder, table.format(setting))
    assert found["layers"][0] == "warning"
    assert "[inference.pipeline.dedup] is set, and no profile that is used has this layer" in found["layers"][1]
    own = '[inference.pipeline]\nprofile = "mine"\n[inference.pipeline.profiles.mine]\nlayers = ["dedup"]\n'
    assert "layers" not in names_of(folder, own + table.format(setting))

"""Secrets that stand in bardo.toml are printed by no command, and whoever wrote them there is warned."""

from __future__ import annotations

from pathlib import Path

import pytest

from bardo.catalog.rows import DialectName
from bardo.simulators import PRESETS
from support.any_model import Simulator
from surfaces.cli.support import bardo, line_with, running

CONFIGURED = """
[gateway]
port = 0

[[providers]]
id = "lab"
preset = "vllm"
base_url = "http://me:hunter1@127.0.0.1:9/v1?signature=hunter2"
models = ["m"]
headers = { Authorization = "Bearer hunter3", X-Odd = "sk-hunter4abcdefghijklmnop", x-team = "red", x-tenant = "hunter5-tenant" }
"""


@pytest.fixture(autouse=True)
def configured(folder: Path) -> None:
    (folder / "bardo.toml").write_text(CONFIGURED)


@pytest.mark.parametrize(
    "command",
    [
        "doctor",
        "doctor --json",
        "explain --model lab/m",
        "explain --model lab/m --json",
        "probe lab/m --dry-run",
        "probe lab/m --dry-run --json",
        "models",
        "models --json",
        "catalog show lab/m",
        "catalog show lab/m --json",
        "ask hi --model lab/m",
        "ask hi --model other",
    ],
)
def test_no_command_prints_a_secret_of_the_configuration(command: str) -> None:
    ran = bardo(*command.split())
    assert ran.out + ran.err
    assert "hunter" not in ran.out + ran.err


def test_the_gateway_warns_of_secrets_by_their_place() -> None:
    with running("serve", "--host", "127.0.0.1") as process:
        providers = line_with(process.stderr, "providers:")
        warning = line_with(process.stderr, "warning: ")
        process.terminate()
        assert process.stderr is not None
        rest = process.stderr.read().decode()
    assert "lab (http://[hidden]@127.0.0.1:9/v1?[hidden])" in providers
    for place in (
        "headers.Authorization",
        "headers.X-Odd",
        "the user and password of base_url",
        "the query of base_url",
    ):
        assert place in warning
    assert "x-team" not in warning
    assert "hunter" not in providers + warning + rest


def test_the_list_of_models_warns_of_them_too() -> None:
    ran = bardo("models")
    assert "warning: a secret stands in" in ran.err
    assert "headers.Authorization" in ran.err


def test_doctor_warns_of_secrets_by_their_place() -> None:
    findings = bardo("doctor", "--json").json["findings"]
    (warning,) = [one for one in findings if one["found"].startswith("a secret stands")]
    assert (warning["area"], warning["status"]) == ("provider lab", "warning")
    assert "headers.Authorization" in warning["found"]
    assert "api_key_env" in warning["fix"]


SIMULATED = {PRESETS[name].dialect: name for name in sorted(PRESETS, reverse=True)}


@pytest.mark.parametrize("dialect", sorted(SIMULATED))
def test_a_provider_of_any_dialect_is_asked_by_its_address_alone(
    dialect: DialectName, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN_KEY", "any")
    simulator = Simulator(SIMULATED[dialect])
    model = simulator.provider.models[0]
    with simulator.running() as server:
        (folder / "bardo.toml").write_text(
            f'[[providers]]\nid = "own"\ndialect = "{dialect}"\nbase_url = "{server.base_url}"\napi_key_env = "OWN_KEY"\n'
        )
        ran = bardo("ask", "What is 27 * 43?", "--model", f"own/{model}")
    assert (ran.code, ran.out.strip()) == (0, "1161"), ran.err

"""`bardo models`: what can be asked, by whose key, and what is known of it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from support.any_model import Simulator
from surfaces.cli.support import bardo, simulated

ENTRIES = """
[[providers]]
id = "anthropic"
models = ["claude-sonnet-5"]

[[providers]]
id = "lab"
preset = "vllm"
base_url = "http://127.0.0.1:9/v1"
models = ["qwen3-8b", "own-model"]
"""


@pytest.fixture
def configured(folder: Path) -> Path:
    (folder / "bardo.toml").write_text(ENTRIES)
    return folder


@pytest.mark.usefixtures("configured")
def test_every_model_has_the_state_of_its_key_and_its_facts() -> None:
    sonnet, qwen, own = bardo("models", "--json").json
    assert (sonnet["id"], sonnet["provider"], sonnet["key"]) == ("claude-sonnet-5", "anthropic", "missing")
    assert sonnet["facts"]["efforts"][:2] == ["low", "medium"]
    assert (qwen["key"], own["how"], own["dialect"]) == ("none_needed", "unclassified", "openai_chat")
    assert "generate" in own["operations"]


@pytest.mark.usefixtures("configured")
def test_the_table_says_it_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    head, *lines = bardo("models").out.splitlines()
    assert head.split()[:3] == ["model", "provider", "key"]
    assert [line.split()[0] for line in lines] == ["claude-sonnet-5", "qwen3-8b", "own-model"]
    assert "missing: ANTHROPIC_API_KEY" in lines[0]
    assert "none needed" in lines[1]
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-recognisable")
    out = bardo("models").out
    assert "missing" not in out
    assert "recognisable" not in out


@pytest.mark.usefixtures("configured")
def test_one_provider_can_be_named() -> None:
    assert [one["id"] for one in bardo("models", "--provider", "lab", "--json").json] == ["qwen3-8b", "own-model"]


def test_a_provider_is_asked_for_its_models_and_who_does_not_answer_is_said(folder: Path) -> None:
    with simulated(Simulator("vllm"), Simulator("anthropic"), folder=folder):
        ran = bardo("models", "--json")
    assert {one["provider"] for one in ran.json} == {"vllm"}
    assert "no list of models of anthropic: no key for anthropic" in ran.err


def test_no_model_at_all_is_said(folder: Path) -> None:
    (folder / "bardo.toml").write_text('[[providers]]\nid = "anthropic"\n')
    ran = bardo("models")
    assert (ran.code, ran.out) == (0, "")
    assert "bardo doctor" in ran.err


def test_a_provider_that_hangs_is_not_waited_for_to_the_end_of_its_own_time(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        (folder / "bardo.toml").write_text(
            ENTRIES
            + f'[[providers]]\nid = "slow"\npreset = "vllm"\nbase_url = "http://127.0.0.1:{silent.getsockname()[1]}/v1"\n'
        )
        ran = bardo("models", "--json")
    assert [one["provider"] for one in ran.json] == ["anthropic", "lab", "lab"]
    # Its own time to answer is longer, and would be named.
    assert "no list of models of slow: it has not answered yet" in ran.err

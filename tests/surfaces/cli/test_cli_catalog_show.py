"""`bardo catalog show` and `bardo doctor`: every fact of a model with who says so, and where layers disagree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bardo.simulators import Fault
from support.any_model import Simulator
from surfaces.cli.support import bardo, simulated


def configured(folder: Path, line: str) -> None:
    """Add a line to the only provider of the bardo.toml."""
    file = folder / "bardo.toml"
    file.write_text(f"{file.read_text()}\n{line}\n", encoding="utf-8")


def test_a_models_facts_are_shown_with_their_layers_and_dates(folder: Path) -> None:
    with simulated(Simulator("llama_server", models=["qwen3-8b"]), folder=folder):
        ran = bardo("catalog", "show", "qwen3-8b", "--provider", "llama_server", "--json")
        shown = bardo("catalog", "show", "qwen3-8b", "--provider", "llama_server").out
    facts = ran.json["facts"]
    assert (facts["off"]["value"], facts["off"]["layer"]) == (True, "L1")
    assert facts["off"]["date"] is not None
    assert [other["layer"] for other in facts["off"]["others"]] == ["L2"]
    assert ran.json["live"]["starts_inside"] is True
    assert ran.json["form"] == "llama-server"
    assert "can be off" in shown
    assert "L1 20" in shown
    assert "prompt opens the thinking yes" in shown


def test_what_layers_say_differently_is_told(folder: Path) -> None:
    with simulated(Simulator("lmstudio", models=["qwen/qwen3-8b"]), folder=folder):
        ran = bardo("catalog", "show", "qwen/qwen3-8b", "--provider", "lmstudio", "--json")
        shown = bardo("catalog", "show", "qwen/qwen3-8b", "--provider", "lmstudio")
    assert ran.json["disagreements"] == ["control"]
    assert re.search(r"L2 20\d\d-", shown.out)
    assert "Layers disagree" in shown.err


def test_a_server_that_does_not_answer_leaves_the_word_to_the_catalog(folder: Path) -> None:
    with simulated(Simulator("llama_server", fault=Fault("status", status=500)), folder=folder):
        ran = bardo("catalog", "show", "qwen3-8b", "--provider", "llama_server", "--json")
    assert ran.code == 0
    assert {fact["layer"] for fact in ran.json["facts"].values()} == {"L2"}
    assert "status 500" in ran.json["live"]["problem"]


def test_nobody_is_asked_offline(folder: Path) -> None:
    simulator = Simulator("llama_server")
    with simulated(simulator, folder=folder):
        ran = bardo("catalog", "show", "qwen3-8b", "--provider", "llama_server", "--offline", "--json")
    assert ran.json["live"] is None
    assert list(simulator.requests) == []


WITHOUT_PROVIDER = {
    "a bare id is its maker's": ("claude-sonnet-5", "anthropic"),
    "a preset before the slash": ("openrouter/qwen/qwen3-32b", "openrouter"),
}


@pytest.mark.parametrize(("model", "provider"), WITHOUT_PROVIDER.values(), ids=WITHOUT_PROVIDER)
def test_a_model_needs_no_configuration(model: str, provider: str) -> None:
    ran = bardo("catalog", "show", model, "--offline", "--json")
    assert ran.code == 0
    assert ran.json["provider"] == provider
    assert ran.json["facts"]["control"]["layer"] == "L2"


WRONG = {
    "show without a model": (("catalog", "show"), "takes a model"),
    "a list with a model": (("catalog", "formats", "qwen3"), "takes a model"),
    "nobody serves it": (("catalog", "show", "no-such-model", "--offline"), "--provider"),
    "an unknown provider": (
        ("catalog", "show", "m", "--provider", "opnrouter", "--offline"),
        "did you mean openrouter",
    ),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_told_with_what_to_do(arguments: tuple[str, ...], said: str) -> None:
    ran = bardo(*arguments)
    assert ran.code == 2
    assert said in ran.err


def test_the_doctor_tells_how_configured_models_are_told_to_think(folder: Path) -> None:
    with simulated(Simulator("lmstudio", models=["qwen/qwen3-8b", "plain"]), folder=folder):
        configured(folder, 'models = ["qwen/qwen3-8b"]')
        ran = bardo("doctor", "--json")
    (finding,) = [one for one in ran.json["findings"] if one["area"] == "model lmstudio/qwen/qwen3-8b"]
    assert finding["status"] == "warning"
    assert "told by toggle (L1 20" in finding["found"]
    assert "Layers disagree" in finding["found"]
    assert "bardo probe qwen/qwen3-8b --provider lmstudio" in finding["fix"]
    assert ran.code == 0


def test_the_doctor_is_content_where_layers_agree(folder: Path) -> None:
    with simulated(Simulator("vllm", models=["Qwen/Qwen3-0.6B"]), folder=folder):
        configured(folder, 'models = ["Qwen/Qwen3-0.6B"]')
        ran = bardo("doctor", "--json")
    (finding,) = [one for one in ran.json["findings"] if one["area"].startswith("model ")]
    assert (finding["status"], finding["fix"]) == ("ok", "")
    assert re.search(r"L2 20\d\d-", finding["found"])


def test_the_operators_own_row_goes_before_the_server(folder: Path) -> None:
    row = '[[models]]\nprovider = "llama_server"\nmatch = ["qwen3-8b"]\noff = false'
    with simulated(Simulator("llama_server", models=["qwen3-8b"]), folder=folder):
        configured(folder, row)
        found = bardo("catalog", "show", "qwen3-8b", "--provider", "llama_server", "--json").json["facts"]["off"]
    assert (found["layer"], found["value"]) == ("operator", False)
    assert [other["layer"] for other in found["others"]] == ["L1", "L2"]


def test_the_day_on_which_a_model_shuts_down_is_shown(folder: Path) -> None:
    shown = bardo("catalog", "show", "claude-sonnet-4-5", "--offline").out
    assert "shuts down" in shown
    assert "2026-11-30" in shown
    with simulated(Simulator("anthropic", models=["claude-sonnet-4-5"]), folder=folder):
        configured(folder, 'models = ["claude-sonnet-4-5"]')
        findings = bardo("doctor", "--json").json["findings"]
    (finding,) = (one for one in findings if one["area"].startswith("model "))
    assert finding["status"] == "warning"
    assert "shuts down on 2026-11-30" in finding["found"]


@pytest.mark.parametrize(
    ("model", "like"), [("claude-opus-5-2", "claude-opus-5-5"), ("gpt-5.7", "gpt-5.6-sol"), ("grok-5", "grok-4.7")]
)
def test_a_new_model_of_a_line_is_shown_as_an_assumption(folder: Path, model: str, like: str) -> None:
    ran = bardo("catalog", "show", model, "--offline", "--json")
    assert (ran.json["how"], ran.json["assumed_like"]) == ("assumed", like)
    assert {fact["layer"] for fact in ran.json["facts"].values()} == {"L3"}
    assert f"like {like}" in bardo("catalog", "show", model, "--offline").out


def test_the_traits_of_the_provider_are_shown(folder: Path) -> None:
    with simulated(Simulator("venice", models=["qwen3-5-9b"]), folder=folder):
        ran = bardo("catalog", "show", "qwen3-5-9b", "--provider", "venice", "--offline", "--json")
        shown = bardo("catalog", "show", "qwen3-5-9b", "--provider", "venice", "--offline").out
    traits = {"private": True, "self_funding": False, "context_engineering": True, "payment": ["diem", "api_key"]}
    assert ran.json["traits"] == traits
    assert "keeps nothing; prompts may be made smaller; paid by diem, api_key" in shown


def test_the_price_is_shown_with_its_source_and_date(folder: Path) -> None:
    configured = (
        '[[prices]]\nmatch = "claude-sonnet-5"\nfrom = 2026-01-01\ninput = 2.5\noutput = 12\ncached_input = 0.25\n'
    )
    (folder / "bardo.toml").write_text(configured, encoding="utf-8")
    shown = bardo("catalog", "show", "claude-sonnet-5", "--offline").out
    told = "input $2.5, read from the cache $0.25, output $12 per million tokens (operator; since 2026-01-01)"
    assert told in " ".join(shown.split())
    price = bardo("catalog", "show", "claude-sonnet-5", "--offline", "--json").json["price"]
    assert (price["source"], price["from"]) == ("operator", "2026-01-01")
    assert price["usd_per_million_tokens"] == {"input": 2.5, "cached_input": 0.25, "output": 12.0}
    shipped = bardo("catalog", "show", "claude-haiku-4-5", "--offline", "--json").json["price"]
    assert shipped["source"] == "genai-prices"
    assert shipped["page"]
    assert bardo("catalog", "show", "claude-unheard-of", "--offline", "--json").json["price"] is None


def test_an_unknown_price_is_said_to_be_unknown(folder: Path) -> None:
    shown = bardo("catalog", "show", "claude-unheard-of", "--offline").out
    assert ["price", "not", "known"] in [line.split() for line in shown.splitlines()]

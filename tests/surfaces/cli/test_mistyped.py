"""A mistyped command, value, provider or model is told with what it was probably meant for."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.any_model import Simulator
from support.gateway import house
from support.talk import ALL_CLIENTS, ask
from surfaces.cli.support import bardo, program, simulated

pytestmark = pytest.mark.each_python


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("hlep", "Did you mean '--help'?"),
        ("serv", "Did you mean 'serve'"),
        ("modles", "Did you mean 'models'"),
        ("log shwo", "Did you mean 'show'"),
        ("log hepl", "Did you mean '--help'?"),
        ("keys craete", "Did you mean 'create'"),
        ("memory serch x", "Did you mean 'search'"),
        ("payments lst", "Did you mean 'list'"),
        ("catalog provders", "Did you mean 'providers'?"),
        ("catalog refresh antropic", "did you mean anthropic?"),
        ("log --outcome errr", "Did you mean 'error'?"),
        ("probe --provider antropic claude-x", "did you mean anthropic"),
        ("simulate antropic", "did you mean anthropic"),
    ],
)
def test_a_mistyped_word_is_told_with_the_nearest(line: str, meant: str) -> None:
    ran = bardo(*line.split())
    assert ran.code == 2
    assert meant in " ".join(ran.err.replace("│", " ").split()), ran.err


def test_a_word_that_is_near_to_nothing_gets_no_suggestion() -> None:
    for line in ("zzzzz", "catalog zzzzz", "log zzzzz"):
        assert "did you mean" not in bardo(*line.split()).err.lower()


def test_help_is_a_command_too() -> None:
    assert "Usage: bardo [OPTIONS] COMMAND" in program("help").out
    assert "Usage: bardo log" in program("help", "log").out


def test_a_mistyped_provider_of_models_is_told_with_the_nearest(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_KEY", "key")
    with simulated(Simulator("deepseek", models=["m1"]), folder=folder):
        ran = bardo("models", "--provider", "depseek")
        assert ran.code == 2
        assert "no provider is called 'depseek'" in ran.err
        assert "did you mean deepseek" in ran.err
        other = bardo("models", "--provider", "anthropic")
        assert (other.code, "configured: " in other.err) == (2, True), other.err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("explain -m typo", "no provider serves 'typo'"),
        ("explain -m anthropic/nope", "anthropic is not known to have a model 'nope'"),
        ("explain -m foo/bar", "openrouter is not known to have a model 'foo/bar'"),
        ("explain -m antropic/claude-opus-4-8", "did you mean anthropic/claude-opus-4-8?"),
        ("explain -m anthropic/cluade-opus-4-8", "did you mean claude-opus-4"),
        ("probe typo --dry-run", "name the provider to ask with --provider"),
        ("probe deepseek/depseek-v4-flash --dry-run", "did you mean deepseek-flash"),
        ("probe anthropic/nope --dry-run", "anthropic is not known to have a model 'nope'"),
    ],
)
def test_a_model_that_nobody_has_ends_a_command(folder: Path, line: str, told: str) -> None:
    ran = bardo(*line.split())
    assert ran.code == 2
    assert told in ran.err, ran.err


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("explain -m lab/m1", 0),
        ("explain -m lab/m2", 2),
        ("explain -m m2 --provider lab", 0),
        ("explain -m anthropic/claude-opus-4-8", 0),
        ("explain -m openrouter/some/model", 0),
        ("explain -m lab/own", 0),
        ("explain -m relay/any/model", 0),
        ("explain -m openai/nope", 2),
    ],
)
def test_a_provider_has_the_models_that_it_lists_and_those_of_the_catalog(folder: Path, line: str, code: int) -> None:
    (folder / "bardo.toml").write_text(
        '[[providers]]\nid = "lab"\npreset = "vllm"\nbase_url = "http://127.0.0.1:9/v1"\nmodels = ["m1"]\n'
        '[[providers]]\nid = "relay"\npreset = "openrouter"\n[[providers]]\nid = "openai"\n'
        '[[models]]\nprovider = "vllm"\nmatch = ["own"]\ncontext = 9000\n'
    )
    ran = bardo(*line.split())
    assert ran.code == code, ran.err


def test_a_mistyped_provider_before_a_model_is_told_by_the_gateway_too() -> None:
    with house([Simulator("anthropic", models=["claude-sonnet-5"])]) as running:
        answer = ask(running.address, "openai_chat", "antropic/claude-sonnet-5")
        assert answer.status == 404
        assert "did you mean anthropic/claude-sonnet-5?" in answer.text


@pytest.mark.parametrize("client", ALL_CLIENTS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_providers_own_404_is_told_with_the_nearest_models(client: str, stream: bool) -> None:
    with house([Simulator("anthropic", models=["claude-sonnet-5", "claude-opus-5"]), Simulator("vllm")]) as running:
        for wanted, meant in (
            ("claude-sonet-5", "did you mean claude-sonnet-5"),
            ("anthropic/claude-opus5", "did you mean anthropic/claude-opus-5"),
        ):
            answer = ask(running.address, client, wanted, stream=stream)
            assert answer.status == 404
            assert meant in answer.text


def test_a_refusal_of_a_model_that_is_near_to_none_is_told_as_it_was() -> None:
    with house([Simulator("anthropic", models=["claude-sonnet-5"])]) as running:
        assert "did you mean" not in ask(running.address, "openai_chat", "anthropic/zzz").text


@pytest.mark.parametrize("line", ["top --once --gateway", "doctor --watch --url", "ask hi --gateway"])
def test_an_address_of_a_gateway_that_is_none_is_told_with_its_option(folder: Path, line: str) -> None:
    for address, hint in (
        ("localhost:8484", "did you mean http://localhost:8484?"),
        ("nonsense", "did you mean http://nonsense?"),
        ("ftp://host", "give its address"),
        ("http://127.0.0.1:99999", "give its address"),
        ("me:secret@host:8484", "give its address"),
    ):
        ran = bardo(*line.split(), address)
        assert (ran.code, hint in ran.err) == (2, True), ran.err
        assert "base_url" not in ran.err
        assert "secret" not in ran.err

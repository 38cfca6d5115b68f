"""`bardo routing`: outcomes in a file teach it, the report shows what is known, and mistakes are named by line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bardo.adapters.config.settings import Settings, load_settings
from bardo.embedding.static_embedding import shipped_embedding
from bardo.routing.learned.router import RouteState, Sums
from bardo.services.facts.learned_routing import load_state, open_router, state_path, store_state
from surfaces.cli.support import bardo

CODE, CHAT = "Write a python function that sorts {} numbers.", "Who was king of France in the year {}?"
COSTS = {"a/small": 0.001, "b/large": 0.01}


def outcomes() -> list[dict[str, Any]]:
    """Return outcomes by which the small model is good at code alone."""
    return [
        {
            "prompt": prompt.format(n),
            "model": model,
            "success": int(prompt == CODE or model == "b/large"),
            "cost_usd": cost,
        }
        for n in range(60)
        for prompt in (CODE, CHAT)
        for model, cost in COSTS.items()
    ]


@pytest.fixture
def taught(folder: Path) -> Path:
    path = folder / "outcomes.jsonl"
    path.write_text("\n".join(map(json.dumps, outcomes())) + "\n")
    assert bardo("routing", "fit", str(path)).code == 0
    return folder


@pytest.mark.usefixtures("taught")
def test_the_report_shows_each_model() -> None:
    found = bardo("routing", "report", "--json").json
    assert [one["model"] for one in found["models"]] == ["a/small", "b/large"]
    assert found["models"][0]["outcomes"] == pytest.approx(120)
    assert found["models"][0]["success"] == pytest.approx(0.5)
    assert found["models"][1]["cost_usd"] == pytest.approx(0.01)
    assert "a/small" in bardo("routing", "report").out


@pytest.mark.usefixtures("taught")
def test_what_was_learned_chooses_by_the_kind_of_prompt() -> None:
    settings = load_settings(None)
    router = open_router(settings)
    chosen = {
        prompt: router.choose(prompt.format(1000), COSTS, request_id="x", at=0).choice.order[0]
        for prompt in (CODE, CHAT)
    }
    assert chosen == {CODE: "a/small", CHAT: "b/large"}


def test_nothing_learned_is_no_error() -> None:
    ran = bardo("routing", "report")
    assert ran.code == 0
    assert "nothing is learned yet" in ran.err


@pytest.mark.usefixtures("taught")
def test_a_route_that_switched_itself_off_is_reported_and_reset() -> None:
    path = state_path(Settings())
    state = load_state(path, shipped_embedding())
    assert state is not None
    lost, won = Sums(), Sums()
    for number in range(50):
        lost, won = lost.after(0.1 * (number % 2), 0, 0), won.after(0.9 + 0.1 * (number % 2), 1, 0)
    route = RouteState(routed=lost, single=won, off=True)
    store_state(msgspec.structs.replace(state, routes={"cheap": route}), path)
    found = bardo("routing", "report", "--json").json["routes"][0]
    assert (found["route"], found["verdict"], found["off"]) == ("cheap", "costs", True)
    assert found["interval"][1] < 0
    assert "switched off" in bardo("routing", "report").out
    assert bardo("routing", "reset", "cheap").code == 0
    assert bardo("routing", "report", "--json").json["routes"] == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param('{"prompt": "a", "model": "m", "success": 2}', "success", id="success above 1"),
        pytest.param('{"prompt": "a", "success": 1}', "model", id="no model"),
        pytest.param('{"prompt": "a", "model": "m", "success": 1, "cost_usd": -1}', "cost_usd", id="negative cost"),
        pytest.param("{", "line 2", id="no JSON"),
        pytest.param("\xff", "line 2", id="no UTF-8"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(folder: Path, line: str, words: str) -> None:
    path = folder / "outcomes.jsonl"
    path.write_bytes(b'{"prompt": "a", "model": "m", "success": 1}\n' + line.encode("latin-1"))
    ran = bardo("routing", "fit", str(path))
    assert ran.code == 2
    assert "line 2" in ran.err
    assert words in ran.err


@pytest.mark.parametrize(
    "arguments", [("fit",), ("report", "x"), ("reset", "no-such"), ("fit", "no-such-file")], ids=" ".join
)
def test_a_wrong_call_is_refused(arguments: tuple[str, ...]) -> None:
    assert bardo("routing", *arguments).code == 2


def test_an_empty_file_is_refused(folder: Path) -> None:
    (folder / "empty").write_text("\n")
    assert bardo("routing", "fit", str(folder / "empty")).code == 2


@pytest.mark.parametrize("content", [b"{", b"\xff", b'{"version": 2}'])
def test_a_broken_state_is_refused_with_its_place(folder: Path, content: bytes) -> None:
    path = state_path(Settings())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    ran = bardo("routing", "report")
    assert ran.code == 2
    assert path.name in ran.err


def test_the_place_of_the_state_is_configured(folder: Path) -> None:
    (folder / "bardo.toml").write_text(f'[routing.learned]\nfile = "{folder}/own.json"\nregret = 0.05\n')
    assert state_path(load_settings(None)) == folder / "own.json"
    (folder / "bardo.toml").write_text("[routing.learned]\nregret = 7\n")
    ran = bardo("routing", "report")
    assert ran.code == 2
    assert "regret" in ran.err

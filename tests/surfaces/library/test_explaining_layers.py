"""What layers would make of a request is told without sending it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import bardo
from bardo.surfaces.cli import main

pytestmark = pytest.mark.each_python

PROVIDERS = """
[[providers]]
id = "small"
preset = "deepseek"
models = ["m"]
[[providers]]
id = "large"
preset = "mistral"
models = ["m"]
[[models]]
provider = "small"
match = ["m"]
context = 50
"""
LONG = {"model": "m", "messages": [{"role": "user", "content": "What is the product of 27 and 43? " * 40}]}


def settings(toml: str = "") -> bardo.Settings:
    return bardo.parse_settings(toml + PROVIDERS)


def layer(explanation: bardo.Explanation, name: str) -> dict[str, Any]:
    assert explanation.pipeline is not None
    [found] = [one for one in explanation.pipeline["layers"] if one["layer"] == name]
    assert isinstance(found, dict)
    return found


def test_without_a_profile_no_layer_works() -> None:
    plain = bardo.explain(LONG, config=settings())
    assert plain.pipeline is None
    assert plain.route.provider == "small"


@pytest.mark.parametrize("named", ["by the configuration", "by the call"])
def test_each_layer_tells_what_it_would_do(named: str) -> None:
    by_call = named == "by the call"
    request = {**LONG, "bardo": {"pipeline": "fast"}} if by_call else LONG
    toml = "" if by_call else '[inference.pipeline]\nprofile = "fast"\n'
    found = bardo.explain(request, config=settings(toml))
    assert found.route.provider == "large"
    told = layer(found, "prefilter")
    assert told["did"] == "passed over small/m"
    assert told["off"]
    assert "bardo" not in found.body


def test_a_refusal_is_raised_as_in_a_call() -> None:
    alone = {**LONG, "model": "small/m", "bardo": {"pipeline": "fast"}}
    with pytest.raises(bardo.ContextOverflow, match="50"):
        bardo.explain(alone, config=settings())
    with pytest.raises(bardo.InvalidRequest, match="no pipeline 'fats'"):
        bardo.explain({**LONG, "bardo": {"pipeline": "fats"}}, config=settings())


def test_a_program_with_an_event_loop_may_ask_too() -> None:
    async def inside() -> bardo.Explanation:
        return bardo.explain({**LONG, "bardo": {"pipeline": "fast"}}, config=settings())

    assert asyncio.run(inside()).route.provider == "large"


def test_the_command_shows_the_layers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "bardo.toml"
    config.write_text('[inference.pipeline]\nprofile = "fast"\n' + PROVIDERS)
    assert main(["explain", "--model", "m", "--config", str(config)]) == 0
    shown = capsys.readouterr().out
    assert "layers\n" in shown
    assert "layer prefilter" in shown

"""`bardo ask`: its default model, and what may be said beside the question: limits, a schema, pictures."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest

from bardo.simulators import Running, Script, Turn
from support.any_model import Simulator
from surfaces.cli.support import bardo, simulated

PIXEL = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
SCHEMA = {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]}


def last(server: Running) -> dict[str, Any]:
    fields: dict[str, Any] = server.requests[-1].fields
    return fields


def test_without_a_model_the_first_that_can_be_asked_is_asked(folder: Path) -> None:
    with simulated(Simulator("anthropic"), Simulator("vllm"), folder=folder) as servers:
        ran = bardo("ask", "2 * 3")
        assert (ran.code, ran.out) == (0, "6\n")
        assert ran.err.startswith("bardo: asking vllm/"), "the key of the first provider is not set"
        assert last(servers[1])["messages"][-1]["content"] == "2 * 3"


def test_with_a_key_the_first_provider_is_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_KEY", "any")
    with simulated(Simulator("anthropic"), Simulator("vllm"), folder=folder) as servers:
        ran = bardo("ask", "2 * 3")
        assert ran.err.startswith("bardo: asking anthropic/claude-")
        assert servers[0].requests


def test_of_configured_models_the_first_is_asked(folder: Path) -> None:
    with simulated(Simulator("vllm"), folder=folder):
        file = folder / "bardo.toml"
        text = file.read_text().replace("[[providers]]\n", '[[providers]]\nmodels = ["lab-9", "qwen3-8b"]\n')
        file.write_text(text)
        assert bardo("ask", "2 * 3").err == "bardo: asking vllm/lab-9\n"


def test_nobody_to_ask_is_said(folder: Path) -> None:
    with simulated(Simulator("anthropic"), folder=folder):
        ran = bardo("ask", "x")
    assert ran.code == 2
    assert "no model is known that can be asked" in ran.err
    assert "--model" in ran.err


def test_limits_are_passed_on(folder: Path) -> None:
    with simulated(Simulator("vllm"), folder=folder) as servers:
        assert bardo("ask", "x", "-m", "vllm/m", "--max-tokens", "900", "--temperature", "0.5").code == 0
        fields = last(servers[0])
    assert 900 in (fields.get("max_tokens"), fields.get("max_completion_tokens"))
    assert fields["temperature"] == 0.5


@pytest.mark.parametrize("option", [("--max-tokens", "0"), ("--temperature", "-1"), ("--max-tokens", "many")])
def test_limits_that_are_none_are_refused(option: tuple[str, str]) -> None:
    ran = bardo("ask", "x", "-m", "m", *option)
    assert ran.code == 2
    assert option[0] in ran.err


def test_an_answer_in_a_schema_is_json(folder: Path) -> None:
    (folder / "town.json").write_text(json.dumps(SCHEMA))
    script = Script((Turn(text='{"town": "Ulm"}'),) * 2)
    with simulated(Simulator("vllm", script=script), folder=folder) as servers:
        ran = bardo("ask", "Where?", "-m", "vllm/m", "--schema", "town.json")
        whole = bardo("ask", "Where?", "-m", "vllm/m", "--schema", "town.json", "--json")
        assert last(servers[0])["response_format"]["json_schema"]["schema"]["required"] == ["town"]
    assert (ran.code, ran.json) == (0, {"town": "Ulm"})
    assert whole.json["parsed"] == {"town": "Ulm"}


def test_an_answer_that_breaks_the_schema_is_an_error_that_shows_it(folder: Path) -> None:
    (folder / "town.json").write_text(json.dumps(SCHEMA))
    script = Script((Turn(text="in Ulm"),) * 3)
    with simulated(Simulator("vllm", script=script), folder=folder):
        ran = bardo("ask", "Where?", "-m", "vllm/m", "--schema", "town.json")
    assert (ran.code, ran.out) == (4, "")
    assert "in Ulm" in ran.err


@pytest.mark.parametrize(
    ("text", "said"), [(None, "cannot read"), ("{", "is not JSON"), ("[1]", "holds no JSON Schema")]
)
def test_a_file_without_a_schema_is_refused(folder: Path, text: str | None, said: str) -> None:
    if text is not None:
        (folder / "s.json").write_text(text)
    ran = bardo("ask", "x", "-m", "m", "--schema", "s.json")
    assert ran.code == 2
    assert said in ran.err


def test_pictures_go_before_the_question(folder: Path) -> None:
    (folder / "dot.png").write_bytes(PIXEL)
    with simulated(Simulator("vllm"), folder=folder) as servers:
        ran = bardo("ask", "What is it?", "-m", "vllm/m", "-a", "dot.png", "--attach", "https://example.org/a.jpg")
        content = last(servers[0])["messages"][-1]["content"]
    assert ran.code == 0
    assert content[0]["image_url"]["url"] == f"data:image/png;base64,{b64encode(PIXEL).decode()}"
    assert content[1]["image_url"]["url"] == "https://example.org/a.jpg"
    assert content[2] == {"type": "text", "text": "What is it?"}


@pytest.mark.parametrize(
    ("head", "kind"),
    [(b"\xff\xd8\xff\xe0", "jpeg"), (b"GIF89a", "gif"), (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "webp")],
)
def test_a_picture_is_known_by_its_bytes(folder: Path, head: bytes, kind: str) -> None:
    (folder / "picture").write_bytes(head)
    with simulated(Simulator("vllm"), folder=folder) as servers:
        bardo("ask", "x", "-m", "vllm/m", "-a", "picture")
        assert last(servers[0])["messages"][-1]["content"][0]["image_url"]["url"].startswith(f"data:image/{kind};")

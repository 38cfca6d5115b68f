"""`bardo.parse` knows the user's formats, is told where a text begins, and gives thinking with its steps."""

from __future__ import annotations

from pathlib import Path

import pytest

import bardo
from bardo.adapters.config.settings import parse_settings
from bardo.reasoning import ReasoningFormat
from bardo.values.errors import ConfigError, InvalidRequest
from bardo.values.request import Tool

pytestmark = pytest.mark.each_python

LAB = '[[reasoning_formats]]\nname = "lab"\nstart = "[["\nend = "]]"\npatterns = ["lab-"]\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BARDO_CONFIG", raising=False)
    return tmp_path


def parts(response: bardo.Response) -> tuple[str | None, str]:
    return response.reasoning.content, response.text


def test_the_formats_of_the_file_at_hand_are_known(folder: Path) -> None:
    (folder / "bardo.toml").write_text(LAB)
    assert parts(bardo.parse("[[hm]]ok", format="lab")) == ("hm", "ok")
    assert parts(bardo.parse("[[hm]]ok", model="acme/lab-1")) == ("hm", "ok")


def test_the_formats_of_a_configuration_that_is_given_are_known(folder: Path) -> None:
    (folder / "lab.toml").write_text(LAB)
    for config in (parse_settings(LAB), folder / "lab.toml", str(folder / "lab.toml")):
        assert parts(bardo.parse("[[hm]]ok", format="lab", config=config)) == ("hm", "ok")
    with pytest.raises(InvalidRequest, match="lab"):
        bardo.parse("[[hm]]ok", format="lab")


def test_a_format_may_be_given_itself() -> None:
    assert parts(bardo.parse("[[hm]]ok", format=ReasoningFormat(name="x", start="[[", end="]]"))) == ("hm", "ok")


def test_a_wrong_file_is_an_error(folder: Path) -> None:
    (folder / "bardo.toml").write_text(LAB + "blocks = 1\n")
    with pytest.raises(ConfigError, match="line 6"):
        bardo.parse("[[hm]]ok", format="lab")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, (None, "hm")),
        ({"starts_inside": True}, ("hm", "")),
        ({"prompt": "<｜Assistant｜><think>"}, ("hm", "")),
        ({"prompt": "<｜Assistant｜><think></think>"}, (None, "hm")),
        ({"toggles": {"thinking": True}}, ("hm", "")),
        ({"toggles": {"thinking": False}}, (None, "hm")),
        ({"starts_inside": False, "prompt": "<｜Assistant｜><think>"}, (None, "hm")),
    ],
    ids=["nothing", "caller", "open prompt", "closed prompt", "on", "off", "caller before prompt"],
)
def test_where_a_text_begins_is_told(said: dict[str, object], expected: tuple[str | None, str]) -> None:
    assert parts(bardo.parse("hm", model="deepseek-v3.1", **said)) == expected  # type: ignore[arg-type]


def test_thinking_has_steps() -> None:
    response = bardo.parse("<think>Wait, no. Maybe.</think>ok")
    assert [(step.kind, step.content) for step in response.reasoning.steps] == [
        ("reflection", "Wait, no. "),
        ("uncertainty", "Maybe."),
    ]
    assert bardo.parse("ok").reasoning.steps == ()


def test_the_thinking_of_a_providers_reply_has_steps() -> None:
    body = (
        b'{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"ok","reasoning_content":"Wait."}}]}'
    )
    assert [step.kind for step in bardo.decode(body, "deepseek").reasoning.steps] == ["reflection"]


def test_calls_in_the_text_of_a_model_are_calls() -> None:
    text = '<think>hm</think>Look:\n<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call>'
    response = bardo.parse(text, model="Qwen/Qwen3-32B")
    assert (response.reasoning.content, response.text) == ("hm", "Look:\n")
    assert [(call.name, call.arguments) for call in response.tool_calls] == [("weather", {"city": "Paris"})]
    assert bardo.parse(text, format="qwen3").text.endswith("</tool_call>"), "without a model nobody says how it calls"


def test_json_that_nothing_announces_is_an_answer_unless_its_tool_was_declared() -> None:
    text = '{"name": "weather", "parameters": {"city": "Paris"}}'
    assert bardo.parse(text, model="meta-llama/Llama-3.1-8B-Instruct").text == text
    declared = bardo.parse(text, model="meta-llama/Llama-3.1-8B-Instruct", tools=[Tool(name="weather")])
    assert [call.name for call in declared.tool_calls] == ["weather"]

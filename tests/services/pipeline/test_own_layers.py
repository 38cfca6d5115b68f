"""A layer of another package is found by its entry point, in a distribution as it is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bardo.adapters.config.pipeline import own_layer_points
from bardo.adapters.config.settings import parse_settings
from bardo.context.layer import LayerFacts, LayerSteps, Passed, Pause, Receipt
from bardo.services.pipeline.pipeline import is_long
from bardo.values.blocks import TextBlock, ToolResultBlock
from bardo.values.errors import ConfigError
from bardo.values.request import Message, Request
from support.any_model import Simulator
from support.gateway import house
from support.talk import ask

CODE = """
import threading

from bardo.context.layer import Effect, Passed, Receipt, changed
from bardo.values.blocks import TextBlock
from bardo.values.request import Message


class Ask(Effect, frozen=True):
    word: str


class Polite:
    name = "polite"

    def __init__(self, word):
        self.word = word
        self.performers = {Ask: self.ask}

    async def ask(self, effect):
        return effect.word.upper()

    def steps(self, request, facts):
        said = yield Ask(self.word)
        messages = (*request.messages, Message("user", (TextBlock(said or ""),)))
        did = f"asked politely in {threading.current_thread().name}"
        return Passed(request=changed(request, messages=messages), receipt=Receipt(layer="polite", did=did))


def make(settings):
    return Polite(settings["word"])
"""
TOML = """
[inference.pipeline.profiles.mine]
layers = ["prefilter", "polite"]
[inference.pipeline.own.polite]
word = "please"
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "bardo_polite_for_tests.py").write_text(CODE)
    info = tmp_path / "bardo_polite_for_tests-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bardo-polite-for-tests\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[bardo.layers]\npolite = bardo_polite_for_tests:make\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    own_layer_points.cache_clear()
    yield
    own_layer_points.cache_clear()
    sys.modules.pop("bardo_polite_for_tests", None)


@pytest.mark.usefixtures("installed")
def test_a_layer_of_an_installed_package_works_behind_bardos_own() -> None:
    with house([Simulator("deepseek")], toml=TOML) as running:
        answer = ask(running.address, "openai_chat", "deepseek/m", bardo={"pipeline": "mine"})
        assert answer.status == 200
        assert running.last("deepseek")["messages"][-1]["content"] == "PLEASE"
        row = running.log.row(answer.headers["x-bardo-request-id"])
        assert row.pipeline is not None
        assert [one["layer"] for one in row.pipeline["layers"]] == ["prefilter", "polite"]
        plain = ask(running.address, "openai_chat", "deepseek/m", bardo={"layers": {"polite": True}})
        assert plain.status == 200
        assert running.last("deepseek")["messages"][-1]["content"] == "PLEASE"


def test_what_a_layer_replaced_in_a_request_is_sent_and_not_the_bytes_that_came() -> None:
    class Careless:
        name = "format"

        def steps(self, request: Request, facts: LayerFacts) -> LayerSteps:
            yield Pause()
            messages = (Message("user", (TextBlock("Something else."),)),)
            return Passed(request=msgspec.structs.replace(request, messages=messages), receipt=Receipt(layer=self.name))

    with house([Simulator("deepseek")], layers={"format": lambda parts: Careless()}) as running:
        ask(running.address, "openai_chat", "deepseek/m", bardo={"layers": {"format": True}})
        assert running.last("deepseek")["messages"] == [{"role": "user", "content": "Something else."}]


@pytest.mark.usefixtures("installed")
def test_a_layer_that_cannot_be_made_says_where_to_look() -> None:
    toml = TOML.replace('word = "please"', "other = 1")
    with house([Simulator("deepseek")], toml=toml) as running:
        answer = ask(running.address, "openai_chat", "deepseek/m", bardo={"pipeline": "mine"})
        assert answer.status == 500
        assert "inference.pipeline.own.polite" in answer.text
        assert not running.arrived("deepseek")


def test_a_layer_that_nobody_installed_is_a_mistake_of_the_configuration() -> None:
    with pytest.raises(ConfigError, match="no layer 'polite'"):
        parse_settings(TOML)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(("length", "in_a_thread"), [(10, False), (100_000, True)])
def test_the_layers_of_a_long_request_work_in_a_thread(length: int, in_a_thread: bool) -> None:
    with house([Simulator("deepseek")], toml=TOML) as running:
        messages = [{"role": "user", "content": "word " * length}]
        answer = ask(running.address, "openai_chat", "deepseek/m", messages=messages, bardo={"pipeline": "mine"})
        assert answer.status == 200
        row = running.log.row(answer.headers["x-bardo-request-id"])
        assert row.pipeline is not None
        assert ("bardo-layers" in row.pipeline["layers"][-1]["did"]) == in_a_thread


def test_a_long_request_is_known_by_its_texts_and_by_their_number() -> None:
    def of(*texts: str) -> Request:
        return Request(model="m", messages=tuple(Message("user", (TextBlock(text),)) for text in texts))

    assert not is_long(of("hello"))
    assert is_long(of("a" * 60_000))
    assert is_long(of(*["a"] * 600))
    assert is_long(Request(model="m", messages=(), body_bytes=b"a" * 60_000))
    result = ToolResultBlock(call_id="1", content=(TextBlock("a" * 60_000),))
    assert is_long(Request(model="m", messages=(Message("user", (result,)),)))

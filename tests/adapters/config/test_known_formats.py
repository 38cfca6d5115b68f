"""The formats of an installation: of bardo.toml, of installed packages, and the built-in ones, in this order."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bardo.adapters.config.formats import _without_file, formats_of, installed_formats, known_formats
from bardo.adapters.config.settings import parse_settings
from bardo.reasoning import formats, open_parser
from bardo.values.errors import ConfigError

LAB = '[[reasoning_formats]]\nname = "lab"\nstart = "[["\nend = "]]"\npatterns = ["lab-"]\n'
MODULE = """
from bardo.reasoning import ParserConfig, ParserResult, ReasoningFormat, ReasoningParser

row = ReasoningFormat(name="by_row", start="((", end="))", patterns=("row-",))
mapping = {"start": "{{", "end": "}}", "patterns": ["mapping-"]}
wrong_mapping = {"start": "{{", "stop": "}}"}
number = 7


class Subclass(ReasoningParser):
    patterns = ("subclass-",)

    def __init__(self):
        super().__init__(ParserConfig("<a>", "</a>"), model_type="mine")


class Shouting:
    patterns = ["shout-"]

    def parse_reasoning_streaming_incremental(self, text):
        shouted = "".join(letter for letter in text if letter.isupper())
        return ParserResult("".join(letter for letter in text if not letter.isupper()), shouted)

    def finish(self):
        return ParserResult()


class Unfinished:
    def parse_reasoning_streaming_incremental(self, text):
        return None


long_delimiter = {"start": "<" * 400, "end": ">"}
equal_delimiters = {"start": ["<a>", "%%"], "end": "%%"}
empty_delimiter = {"start": "<a>", "end": ""}


class LongToken(ReasoningParser):
    def __init__(self):
        super().__init__(ParserConfig("<" * 400, "</a>"))


class PatternsAsText(Subclass):
    patterns = "lab"


class EmptyPattern(Subclass):
    patterns = ("",)
"""

Install = Callable[..., None]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BARDO_CONFIG", raising=False)
    _forget()
    yield tmp_path
    _forget()
    sys.modules.pop("lab_formats", None)


def _forget() -> None:
    installed_formats.cache_clear()
    _without_file.cache_clear()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a package whose entry points are these."""

    def do(**points: str) -> None:
        folder = tmp_path / "packages"
        about = folder / "lab_formats-1.0.dist-info"
        about.mkdir(parents=True)
        (folder / "lab_formats.py").write_text(MODULE)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lab-formats\nVersion: 1.0\n")
        lines = [f"{name.replace('_', '-')} = {value}\n" for name, value in points.items()]
        (about / "entry_points.txt").write_text("[bardo.reasoning_formats]\n" + "".join(lines))
        monkeypatch.syspath_prepend(folder)
        _forget()

    return do


def test_without_a_file_the_built_in_formats_are_known() -> None:
    assert [*known_formats().rows] == [*formats()]
    assert known_formats() is known_formats()


def test_the_rows_of_a_file_come_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "bardo.toml").write_text(LAB)
    assert known_formats().for_model("acme/lab-1").name == "lab"
    monkeypatch.setenv("BARDO_CONFIG", str(folder / "other.toml"))
    (folder / "other.toml").write_text(LAB.replace('"lab"', '"other"'))
    assert known_formats().for_model("acme/lab-1").name == "other"
    assert known_formats(folder / "bardo.toml").for_model("acme/lab-1").name == "lab"
    assert known_formats(parse_settings(LAB)).for_model("acme/lab-1").name == "lab"


def test_a_file_is_read_again_only_when_it_has_changed(folder: Path) -> None:
    file = folder / "bardo.toml"
    file.write_text(LAB)
    before = known_formats()
    assert known_formats() is before
    file.write_text(LAB.replace('[["', '<<"'))
    os.utime(file, ns=(1, 1))
    assert known_formats().find("lab").starts == ("<<",)


def test_a_wrong_file_is_an_error_that_names_the_line(folder: Path) -> None:
    (folder / "bardo.toml").write_text(LAB + "blocks = 3\n")
    with pytest.raises(ConfigError, match=r"bardo\.toml, line 6"):
        known_formats()
    with pytest.raises(ConfigError, match="cannot read"):
        known_formats(folder / "missing.toml")


@pytest.mark.parametrize(
    ("value", "name", "model", "text"),
    [
        ("lab_formats:row", "by_row", "row-1", "((think))answer"),
        ("lab_formats:mapping", "mine", "mapping-1", "{{think}}answer"),
        ("lab_formats:Subclass", "mine", "subclass-1", "<a>think</a>answer"),
        ("lab_formats:Shouting", "mine", "shout-1", "THINKanswer"),
    ],
    ids=["a row", "a mapping", "a subclass", "a class"],
)
def test_an_installed_package_gives_a_format(install: Install, value: str, name: str, model: str, text: str) -> None:
    install(mine=value)
    known = known_formats()
    assert known.for_model(model).name == known.find(name).name == name
    parser = open_parser(model=model, formats=known)
    result = parser.parse_reasoning_streaming_incremental(text)
    assert (result.reasoning_text.lower(), result.normal_text) == ("think", "answer")
    assert parser.finish().is_empty


def test_a_file_goes_before_a_package_and_a_package_before_what_is_built_in(install: Install) -> None:
    install(lab="lab_formats:mapping", qwen3="lab_formats:mapping")
    assert known_formats().find("qwen3").starts == ("{{",)
    assert formats_of(parse_settings(LAB)).find("lab").starts == ("[[",)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("lab_formats:missing", "missing"),
        ("no_such_module:row", "no_such_module"),
        ("lab_formats:wrong_mapping", "stop"),
        ("lab_formats:number", "a value of type int is neither a ReasoningFormat"),
        ("lab_formats:Unfinished", "no method finish"),
        ("lab_formats:long_delimiter", "start has 400 characters"),
        ("lab_formats:equal_delimiters", "both '%%'"),
        ("lab_formats:empty_delimiter", "end is empty"),
        ("lab_formats:LongToken", "think_start_token has 400 characters"),
        ("lab_formats:PatternsAsText", "patterns or aliases"),
        ("lab_formats:EmptyPattern", "empty pattern"),
    ],
    ids=[
        "no attribute",
        "no module",
        "a wrong mapping",
        "a number",
        "a class without finish",
        "a long delimiter",
        "equal delimiters",
        "an empty delimiter",
        "a long token",
        "patterns as a text",
        "an empty pattern",
    ],
)
def test_a_broken_package_is_named(install: Install, value: str, said: str) -> None:
    install(mine=value)
    with pytest.raises(ConfigError, match="'mine' of the installed package 'lab-formats'") as caught:
        known_formats()
    assert said in caught.value.message
    assert caught.value.hint == f"mend {value} or uninstall lab-formats"

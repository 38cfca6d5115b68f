"""Every place the glossary names is there."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from support.offenders import each_case

GLOSSARY = Path(__file__).resolve().parents[2] / "docs" / "glossary.md"
NAMED = set(re.findall(r"`(bardo(?:\.\w+)*)`", GLOSSARY.read_text(encoding="utf-8")))
PLACES = sorted(NAMED - {"bardo.toml"})


def resolve(place: str) -> Any:
    """Return what a dotted name stands for: a module, or what is found inside one."""
    names = place.split(".")
    found: Any = import_module(names[0])
    for depth, name in enumerate(names[1:], 1):
        inside = getattr(found, name, None)
        found = import_module(".".join(names[: depth + 1])) if inside is None else inside
    return found


@each_case("place", PLACES)
def test_the_glossary_names_what_is_there(place: str) -> None:
    assert resolve(place) is not None, "docs/glossary.md names a place that is not there"


ROWS = [row.split(" | ") for row in re.findall(r"^\| (.+) \|$", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)]
WORDS = [row for row in ROWS if row[0] != "word"]


def test_the_glossary_is_short_enough_to_be_read() -> None:
    assert 30 < len(WORDS) <= 80


def test_the_glossary_names_no_word_twice() -> None:
    words = [row[0] for row in WORDS]
    assert len(words) == len(set(words))


@each_case("row", WORDS, ids=[row[0] for row in WORDS])
def test_a_word_has_a_meaning_and_a_place(row: list[str]) -> None:
    word, meaning, place = row
    assert word
    assert meaning[0].isupper(), "the meaning is a sentence, and begins with a capital letter"
    assert place.startswith("`bardo"), "the last column names the place in the code, in backticks"

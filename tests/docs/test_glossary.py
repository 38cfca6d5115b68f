"""Every place the glossary names is there."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.parametrize("place", PLACES)
def test_the_glossary_names_what_is_there(place: str) -> None:
    assert resolve(place) is not None


def test_the_glossary_names_something() -> None:
    assert len(PLACES) > 60


def test_the_glossary_is_sorted_by_theme_and_names_no_word_twice() -> None:
    rows = re.findall(r"^\| ([^|]+?) \|", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)
    words = [row for row in rows if row not in ("word", "---")]
    assert len(words) == len(set(words))

"""Model ids fit patterns whatever way their host spells them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bardo.catalog import matching
from bardo.catalog.matching import fits, matches_any, matches_glob
from support.growth import check_growth

pytestmark = pytest.mark.each_python


@pytest.mark.parametrize(
    ("pattern", "model_id", "fit"),
    [
        ("lab", "Acme/LAB-1", True),
        ("lab*think", "acme/lab-7b-think:latest", True),
        ("lab*think", "acme/lab-7b", False),
        ("lab-[12]b", "lab_2b", True),
        ("lab.1", "lab-1", False),
        ("Lab_1", "lab:1", True),
    ],
)
def test_a_pattern_is_a_part_of_the_id_or_a_glob_of_one(pattern: str, model_id: str, fit: bool) -> None:
    assert fits(pattern, model_id) is fit


@pytest.mark.parametrize(
    ("glob", "text", "matched"),
    [
        ("*", "", True),
        ("", "", True),
        ("a*", "ab", True),
        ("*b", "ab", True),
        ("a*b*c", "a-b-b-c", True),
        ("a*b*c", "a-c-b", False),
        ("ab", "abc", False),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("[ab]x", "bx", True),
        ("[!ab]x", "bx", False),
        ("[!ab]x", "cx", True),
        ("a[0-9]*", "a12", True),
        ("a.b", "axb", False),
        ("a+(b", "a+(b", True),
        ("*ab*ab", "ab", False),
        ("*ab*ab", "xabxab", True),
        # A range that ends before it begins.
        ("x[z-a]", "xa", False),
        ("*[z-a]*", "x[z-a]", False),
        ("[!z-a]", "b", False),
    ],
)
def test_a_glob_matches_the_whole_text(glob: str, text: str, matched: bool) -> None:
    assert matches_glob(text, glob) is matched


@pytest.mark.parametrize("text", ["ab", "xb", "y", "a" * 1000])
def test_one_of_several_globs_matches_whether_or_not_they_come_as_a_tuple(text: str) -> None:
    globs = ("a*", "?b")
    wanted = any(matches_glob(text, glob) for glob in globs)
    assert [matches_any(text, globs), matches_any(text, globs), matches_any(text, iter(globs))] == [wanted] * 3


@pytest.mark.parametrize(
    ("glob", "model", "matched"),
    [
        ("claude-fable-5-2*", "claude-fable-5-20260610", False),
        ("claude-fable-5-2*", "claude-fable-5-2", True),
        ("claude-fable-5-2*", "claude-fable-5-2-20260610", True),
        ("claude-fable-5-2*", "claude-fable-5-2fast", True),
        ("*-2*", "a-20-b-2", True),
        ("*2b", "a12b", False),
        ("*2b", "a-12b-2b", True),
        ("a1*2b", "a12b", False),
        ("a1*2b", "a1-2b", True),
        ("kimi-k2-0[0-9]*", "kimi-k2-0711-preview", True),
        ("qwen3*", "qwen3-235b", True),
        ("qwen3*", "qwen30", False),
    ],
)
def test_a_wildcard_never_splits_a_number(glob: str, model: str, matched: bool) -> None:
    assert matches_glob(model, glob) is matched


@pytest.mark.parametrize(("pattern", "model"), [("lab1", "lab12"), ("1b", "lab-11b"), ("k2", "k2024")])
def test_a_part_of_an_id_is_not_a_part_of_its_number(pattern: str, model: str) -> None:
    assert not fits(pattern, model)
    assert fits(pattern, f"x-{pattern}-{model}")


def _globs() -> list[tuple[str, str]]:
    """Return every glob of every row of the catalog, with its file."""
    found: dict[tuple[str, str], None] = {}
    for file in files("bardo.catalog").joinpath("data").iterdir():
        if not file.name.endswith(".toml"):
            continue
        for value in _texts(tomllib.loads(file.read_text(encoding="utf-8"))):
            if re.search(r"[0-9]\*|\*[0-9]", value) and " " not in value:
                found[(file.name, value)] = None
    return list(found)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


GLOBS = _globs()


def test_the_catalog_has_globs_beside_digits() -> None:
    assert len(GLOBS) > 100
    assert ("models.toml", "claude-fable-5-2*") in GLOBS


@given(st.sampled_from(GLOBS), st.text("0123456789", min_size=1, max_size=8), st.text("abc-", max_size=6))
@settings(max_examples=500)
def test_no_row_of_the_catalog_takes_a_longer_number_for_its_own(row: tuple[str, str], digits: str, rest: str) -> None:
    glob = row[1]
    for place in re.finditer(r"(?<=[0-9])\*", glob):
        before = re.sub(r"\[[^]]*\]", "0", glob[: place.start()].replace("*", "x").replace("?", "x"))
        model = before + digits + rest
        # Another way to match it, which leaves the number whole, is legitimate: none of these rows has one.
        assert not matches_glob(model, glob[: place.end()]), model
        assert matches_glob(f"{before}-{digits}{rest}", glob[: place.end()])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("glob", ["*a*b", "*ab*", "a*a*a*b", "*a-*a-*a-*c*"])
def test_a_long_name_takes_time_in_proportion(glob: str) -> None:
    check_growth(lambda size: matches_glob("a-" * size, glob), 20_000, 160_000, below=30)
    check_growth(lambda size: fits(glob, "a-" * size), 20_000, 160_000, below=30)


def test_a_glob_whose_letters_a_text_does_not_hold_is_never_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call of a process asks hundreds of globs, most of them about other makers' models."""
    compiled: list[str] = []

    def compile_any(glob: str) -> re.Pattern[str]:
        compiled.append(glob)
        return re.compile(".*", re.DOTALL)

    monkeypatch.setattr(matching, "_compiled", compile_any)
    for glob in ("never-seen*", "*never-seen", "a*never-seen[0-9]", "[!n]never-seen?x*", "seen*"):
        matches_glob("a-model-seen", glob)
    assert compiled == ["seen*"]

"""The test suites in the pages are suites that pass: each block below `<!-- suite -->` is a file that pytest runs, as it is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from simulators.suites import run_suite

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
_NO_LETTER = re.compile(r"[^A-Za-z0-9]+")
_BLOCK = re.compile(r"<!-- suite -->\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def suites(page: Path) -> list[tuple[str, str]]:
    """Return the place and the text of each suite of a page."""
    text = page.read_text(encoding="utf-8")
    return [
        (f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}", found[1])
        for found in _BLOCK.finditer(text)
    ]


SUITES = [suite for page in PAGES for suite in suites(page)]


@pytest.mark.nightly
def test_every_suite_passes_as_printed(tmp_path: Path) -> None:
    """One process runs them all, each in a file named after its place: starting pytest and the libraries is what costs."""
    for place, text in SUITES:
        (tmp_path / f"test_{_NO_LETTER.sub('_', place)}.py").write_text(text, encoding="utf-8")
    ran = run_suite(tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{sum(text.count('def test_') for _, text in SUITES)} passed" in ran.stdout


def test_every_marked_suite_is_found() -> None:
    assert len(SUITES) == sum(page.read_text(encoding="utf-8").count("<!-- suite -->\n") for page in PAGES)
    assert len(SUITES) >= 5

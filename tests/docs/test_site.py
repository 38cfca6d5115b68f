"""The navigation of the documentation site has every page, and a page that loads something of another server is found."""

from __future__ import annotations

import tomllib
from pathlib import Path

import build_site
import pytest

DOCS = build_site.DOCS


def test_every_page_is_in_the_navigation_exactly_once() -> None:
    listed = [name for pages in build_site.navigation().values() for _, name in pages]
    there = [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")]
    assert sorted([*listed, "index.md"]) == sorted(there)


def test_every_page_belongs_to_a_group() -> None:
    strays = [name for _, name in build_site.navigation().get("More", [])]
    assert not strays, f"GROUPS of tools/build_site.py has no place for {', '.join(strays)}"


def test_a_page_of_a_new_folder_is_not_forgotten(tmp_path: Path) -> None:
    for name in ("index.md", "how-to/b.md", "how-to/a.md", "new/page.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"# The page {name}\n", encoding="utf-8")
    assert build_site.navigation(tmp_path) == {
        "How-to": [("The page how-to/a.md", "how-to/a.md"), ("The page how-to/b.md", "how-to/b.md")],
        "More": [("The page new/page.md", "new/page.md")],
    }


def test_the_configuration_of_the_site_can_be_read() -> None:
    project = tomllib.loads(build_site.configuration(build_site.navigation()))["project"]
    assert project["nav"][0] == {"bardo": "index.md"}
    assert [next(iter(group)) for group in project["nav"][1:]] == [*build_site.GROUPS]
    assert project["theme"]["font"] is False


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<script src="https://cdn.example/a.js">', ["https://cdn.example/a.js"]),
        ("<link rel=stylesheet href='//fonts.example/x.css'>", ["//fonts.example/x.css"]),
        ('<img alt="" src="http://example.org/a.png">', ["http://example.org/a.png"]),
        ('<a href="https://example.org/">a link for people</a>', []),
        ('<script src="../assets/a.js"></script>', []),
    ],
)
def test_what_a_page_loads_from_others_is_found(html: str, found: list[str]) -> None:
    assert build_site.loaded_from_others(html) == found


def test_the_search_in_a_folder_takes_the_sites_own_script() -> None:
    html = f'<script src="{build_site._SHIM_ADDRESS}"></script>'
    assert build_site.with_own_scripts(html, depth=2) == '<script src="../../assets/iframe-worker.js"></script>'
    assert build_site.loaded_from_others(build_site.with_own_scripts(html, depth=0)) == []


def test_links_to_the_source_are_names_on_the_site() -> None:
    page = "See [`a`](../src/bardo/a.py), [`b.c`](../../src/bardo/b.py) and [the glossary](glossary.md)."
    assert build_site.without_source_links(page) == "See `a`, `b.c` and [the glossary](glossary.md)."

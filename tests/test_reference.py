"""The pages say what the code says: generated parts are current, and names that pages list by hand are all there."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from typing import Any, get_type_hints

import code_reference
import make_reference
import msgspec
import pytest

import bardo
from bardo.adapters.config.settings import Settings
from bardo.catalog.layer_rows import layer_rows
from bardo.catalog.load import builtin
from bardo.simulators import KINDS
from support.offenders import each_case, offenders

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def text_of(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def in_source(pattern: str, below: str = "") -> set[str]:
    """Return what `pattern` finds in the package."""
    files = (ROOT / "src" / "bardo" / below).rglob("*.py")
    return {found for file in files for found in re.findall(pattern, file.read_text(encoding="utf-8"))}


@each_case("page", make_reference.pages(), ids=lambda page: str(page.relative_to(DOCS)))
def test_the_generated_parts_of_a_page_are_current(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if make_reference.renewed(text) != text:
        difference = unified_diff(
            text.splitlines(), make_reference.renewed(text).splitlines(), "the page", "the code", lineterm="", n=0
        )
        shown = "\n".join(islice(difference, 20))
        pytest.fail(
            f"docs/{page.relative_to(DOCS)} is stale: run .venv/bin/python tools/make_reference.py\n{shown}",
            pytrace=False,
        )


def test_every_generated_part_stands_on_exactly_one_page() -> None:
    used = [name for page in make_reference.pages() for name in make_reference.names(page.read_text(encoding="utf-8"))]
    assert sorted(used) == sorted(make_reference.SECTIONS)


def test_a_changed_page_would_be_noticed() -> None:
    stale = "<!-- generated: retryable-statuses -->\n`200`\n<!-- end -->"
    assert make_reference.renewed(stale) != stale
    assert "`429`" in make_reference.renewed(stale)


def test_every_setting_has_a_meaning_and_every_meaning_a_setting() -> None:
    written = re.findall(r"^\| `\[+([\w.]+)\]+` `(\w+)`", make_reference.settings(), re.MULTILINE)
    keys = {f"{section}.{key}" for section, key in written}
    meanings = set(make_reference.setting_meanings())
    missing, gone = sorted(keys - meanings), sorted(meanings - keys)
    assert not missing, (
        f"MEANINGS in tools/make_reference.py, or those of its section in a *_meanings.py beside it, lack the settings {', '.join(missing)}"
    )
    assert not gone, f"MEANINGS in tools/make_reference.py has meanings of {', '.join(gone)}, which are no settings"


def test_every_table_of_the_configuration_is_on_the_page() -> None:
    page = make_reference.settings()
    tables = {name: hint for name, hint in get_type_hints(Settings).items() if name not in ("source", "unheeded")}
    missing = [name for name in (*tables, *_inner_tables(tables)) if f"[{name}" not in page]
    offenders(
        missing,
        "table without a section: name its struct in *_TABLES of tools/make_reference.py or of a *_meanings.py beside it",
    )


def test_every_layer_is_on_the_page_of_profiles() -> None:
    page = text_of("how-to/use-pipeline-profiles.md")
    offenders(
        (name for name in layer_rows() if f"`{name}`" not in page),
        "layer that docs/how-to/use-pipeline-profiles.md does not name",
    )


def _inner_tables(tables: Mapping[str, Any]) -> Iterator[str]:
    """Yield the tables that stand in these, by their dotted names."""
    for name, struct in tables.items():
        if isinstance(struct, type) and issubclass(struct, msgspec.Struct):
            inner = {f"{name}.{field}": hint for field, hint in get_type_hints(struct).items()}
            found = {
                field: hint
                for field, hint in inner.items()
                if isinstance(hint, type) and issubclass(hint, msgspec.Struct)
            }
            yield from found
            yield from _inner_tables(found)


def test_the_headers_page_lists_exactly_the_headers_there_are() -> None:
    listed = {name.lower() for name in re.findall(r"`(X-Bardo-[\w-]+)", text_of("reference/headers-and-extensions.md"))}
    real = {name.lower() for name in in_source(r"(?i)\bx-bardo-[a-z-]*[a-z]")}
    assert listed == real


def test_the_configuration_page_lists_exactly_the_variables_there_are() -> None:
    listed = set(re.findall(r"`(BARDO_\w+)`", text_of("how-to/configure-providers.md")))
    keys = {name for row in builtin().providers for name in row.key_variables if name.startswith("BARDO_")}
    assert listed == in_source(r'"(BARDO_[A-Z0-9_]+)"') | keys


def test_the_simulators_page_names_every_fault() -> None:
    page = text_of("how-to/test-against-simulators.md")
    assert [kind for kind in KINDS if f"`{kind}" not in page] == []


def test_every_public_name_of_the_library_has_a_docstring() -> None:
    missing = code_reference.undocumented()
    assert not missing, f"docs/reference/library.md shows nothing of {', '.join(missing)}: write a docstring"


def test_a_public_name_without_a_docstring_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bardo.Client.models, "__doc__", None)
    monkeypatch.setattr(code_reference, "_value_doc", lambda _: "")
    assert sorted(code_reference.undocumented()) == ["Client.models", "Event", "InferenceEvent"]


def test_every_decision_has_a_number_and_a_date() -> None:
    for record in (DOCS / "decisions").glob("[0-9]*.md"):
        title, date = record.read_text(encoding="utf-8").split("\n\n")[:2]
        assert title.startswith(f"# {record.name[:4]} ")
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", date), f"{record.name} opens with its title and its date"


def test_a_file_that_a_decision_names_is_there() -> None:
    places = (ROOT, ROOT / "src" / "bardo", ROOT / "src" / "bardo" / "catalog" / "data")
    named = [
        (record.name, name)
        for record in sorted((DOCS / "decisions").glob("[0-9]*.md"))
        for name in re.findall(r"`(\w+/[\w/]*\.(?:py|toml))`", record.read_text(encoding="utf-8"))
    ]
    assert len(named) > 20
    gone = [row for row in named if not any((place / row[1]).exists() for place in places)]
    offenders(gone, "a decision says how it is now, and names a file that is not there")


def test_every_dependency_has_its_line() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(project)
    optional = [line for extra in tables["project"]["optional-dependencies"].values() for line in extra]
    lines = [
        *tables["project"]["dependencies"],
        *optional,
        *tables["dependency-groups"]["dev"],
        *tables["dependency-groups"]["docs"],
    ]
    named = {re.match(r"[\w-]+", line)[0] for line in lines if isinstance(line, str)}  # type: ignore[index]
    record = text_of("decisions/0002-dependencies.md").lower()
    assert [name for name in sorted(named) if f"`{name}" not in record] == []

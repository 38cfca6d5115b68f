"""What a program may import: the modules that docs/reference/modules.md names, and in them the names of `__all__`."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest

import bardo
from support.offenders import each_case

pytestmark = pytest.mark.each_python

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "reference" / "modules.md").read_text(encoding="utf-8")
MODULES = re.findall(r"^## `(bardo[\w.]*)`$", PAGE, re.MULTILINE)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def section(module: str) -> str:
    """Return what the page says of a module."""
    return PAGE.partition(f"## `{module}`\n")[2].partition("\n## ")[0]


def exported() -> set[int]:
    """Return the identities of all objects that the public modules export."""
    return {id(getattr(import_module(module), name)) for module in MODULES for name in import_module(module).__all__}


@each_case("module", MODULES)
def test_a_public_module_lists_its_names(module: str) -> None:
    names = import_module(module).__all__
    assert len(names) == len(set(names))
    assert all(getattr(import_module(module), name) is not None for name in names)


@each_case("module", MODULES)
def test_the_page_names_every_name_of_a_module(module: str) -> None:
    named = re.findall(r"`(\w+)`(?=[,\n ])", section(module))
    names = import_module(module).__all__
    missing, gone = sorted(set(names) - set(named)), sorted(set(named) - set(names))
    assert not missing, f"docs/reference/modules.md does not name {', '.join(missing)} under `{module}`"
    assert not gone, (
        f"docs/reference/modules.md names {', '.join(gone)} under `{module}`, which its `__all__` does not have"
    )
    assert len(named) == len(names), f"docs/reference/modules.md names something twice under `{module}`"


def imported(code: str) -> Iterator[tuple[str, str]]:
    """Yield the modules of bardo that a Python example imports from, and the names; an example that is cut short imports nothing."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "bardo":
            yield from ((node.module or "", alias.name) for alias in node.names)


EXAMPLES = [
    (page.name, module, name)
    for page in PAGES
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    for module, name in imported(code)
]


@each_case("page, module, name", EXAMPLES, ids=[".".join(example) for example in EXAMPLES])
def test_an_example_imports_public_names(page: str, module: str, name: str) -> None:
    assert module in MODULES, page
    assert name in import_module(module).__all__, page


def hints_of(value: Any) -> Iterator[Any]:
    """Yield the types that a function, or a class with its public methods and properties, takes and gives."""
    if not inspect.isclass(value):
        yield from get_type_hints(value).values()
        return
    yield from get_type_hints(value).values()
    for name, member in vars(value).items():
        function = member.fget if isinstance(member, property) else member
        if inspect.isfunction(function) and not name.startswith("_"):
            yield from get_type_hints(function).values()


def classes_in(hint: Any) -> Iterator[type]:
    """Yield the classes of bardo that a type names."""
    if inspect.isclass(hint) and get_origin(hint) is None and hint.__module__.startswith("bardo"):
        yield hint
    for part in (get_origin(hint), *get_args(hint)):
        if part is not None and part is not hint and not isinstance(part, str):
            yield from (
                classes_in(part) if not isinstance(part, list) else (one for inner in part for one in classes_in(inner))
            )


API = [name for name in bardo.__all__ if callable(getattr(bardo, name))]


@each_case("name", API)
def test_what_the_api_takes_and_gives_is_exported(name: str) -> None:
    needed = {one for hint in hints_of(getattr(bardo, name)) for one in classes_in(hint)}
    missing = sorted({one.__qualname__ for one in needed if id(one) not in exported()})
    assert not missing, (
        f"`bardo.{name}` takes or gives {', '.join(missing)}, which nothing public exports: add each to `__all__` of src/bardo/__init__.py"
    )

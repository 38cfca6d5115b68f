"""The source of bardo as syntax trees: what each module imports, and which modules it brings with it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import bardo

ROOT = Path(bardo.__file__).parent


@cache
def trees() -> Mapping[str, ast.Module]:
    """Return the syntax tree of every module of bardo, by its dotted name."""
    return {_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))}


@cache
def imports() -> Mapping[str, frozenset[str]]:
    """Return which modules of bardo come with each module.

    They are those that it names, in an import wherever it stands or as the text of a module's name, and the packages around it.
    """
    return {name: frozenset((_named(tree) | _packages(name)) & trees().keys()) for name, tree in trees().items()}


@cache
def importers() -> Mapping[str, frozenset[str]]:
    """Return which modules bring each module with them."""
    return {name: frozenset(other for other, named in imports().items() if name in named) for name in trees()}


def reached(start: Iterable[str], by: Mapping[str, frozenset[str]]) -> set[str]:
    """Return the modules of `start` and all that are found from them by a table of modules."""
    found: set[str] = set()
    waiting = set(start)
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= by[name] - found
    return found


def _packages(name: str) -> set[str]:
    parts = name.split(".")
    return {".".join(parts[:length]) for length in range(1, len(parts))}


def _named(tree: ast.Module) -> set[str]:
    named: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named.add(node.value.partition(":")[0])
    return named


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

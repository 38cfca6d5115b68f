"""Note which functions of a source folder a process enters, by one call that is put at the beginning of each as it is imported.

This works alike on every Python and in every thread, and costs less than a profiling hook. `ENTERED_SOURCE` names the source folder.
A process that the tests start writes what it enters into a file of the folder that `ENTERED_FOLDER` names.
"""

from __future__ import annotations

import ast
import builtins
import marshal
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from mutants.faults import functions

SOURCE = "ENTERED_SOURCE"
FOLDER = "ENTERED_FOLDER"
_CALLED = "__entered__"
seen: set[str] = set()
"""The functions that were entered, as `file::function`."""


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        """Return the code of a module with the calls in it, which stays beside the source once it is made."""
        kept = Path(f"{self.path}.{sys.implementation.cache_tag}.entered")
        if kept.exists():
            code = marshal.loads(kept.read_bytes())
            assert isinstance(code, CodeType)
            return code
        code = compile(_with_calls(Path(self.path)), self.path, "exec", dont_inherit=True)
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_bytes(marshal.dumps(code))
        part.replace(kept)
        return code

    def exec_module(self, module: ModuleType) -> None:
        """Execute a module, without noting what this enters: it comes only with the first test that imports the module."""
        before = set(seen)
        super().exec_module(module)
        seen.intersection_update(before)


class _Finder:
    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """Find modules of the source folder."""
        spec = PathFinder.find_spec(name, path, target) if path is None or _is_source(path) else None
        if spec is None or type(spec.loader) is not SourceFileLoader or not _is_source([spec.origin or ""]):
            return None
        spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def note_with(entered: Callable[[str], None]) -> None:
    """Call `entered` with each function that is entered from now on."""
    setattr(builtins, _CALLED, entered)


def start() -> None:
    """Begin, in a process that the tests start: each function is written down the first time."""
    if SOURCE in os.environ and not any(isinstance(one, _Finder) for one in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
        note_with(_write)


def _write(function: str) -> None:
    if function not in seen:
        seen.add(function)
        if folder := os.environ.get(FOLDER):
            with open(f"{folder}/{os.getpid()}", "a", encoding="utf-8") as file:  # noqa: PTH123
                file.write(f"{function}\n")


def _with_calls(path: Path) -> ast.Module:
    tree = ast.parse(path.read_bytes())
    file = path.relative_to(os.environ[SOURCE]).as_posix()
    for name, function in functions(tree):
        first = function.body[0]
        place = int(isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant))
        call = ast.parse(f"{_CALLED}({f'{file}::{name}'!r})").body[0]
        for node in ast.walk(call):
            if isinstance(node, ast.expr | ast.stmt):
                ast.copy_location(node, first)
        function.body.insert(place, call)
    return tree


def _is_source(paths: Sequence[str]) -> bool:
    return any(path.startswith(os.environ[SOURCE] + os.sep) for path in paths)

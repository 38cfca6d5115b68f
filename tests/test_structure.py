"""The source stays as simple as it is: the figures of `tools/measure_structure.py` may only fall."""

from __future__ import annotations

import ast
import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from support.offenders import offenders


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    path = Path(__file__).parent.parent / "tools" / "measure_structure.py"
    spec = importlib.util.spec_from_file_location("measure_structure", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_figure_is_above_its_limit(tool: ModuleType) -> None:
    measured = tool.figures()
    offenders(
        tool.too_much(measured),
        "figure above its limit in tools/structure_limits.toml, where limits only fall: take away elsewhere what this change adds",
    )
    assert measured.keys() == tomllib.loads(tool.LIMITS.read_text()).keys()


def test_a_figure_above_its_limit_is_named_with_both(tool: ModuleType) -> None:
    limit = tomllib.loads(tool.LIMITS.read_text())["files"]
    assert tool.too_much({"files": limit}) == []
    assert tool.too_much({"files": limit + 1}) == [f"files: {limit + 1}, at most {limit}"]


def test_modules_that_reach_one_another_are_one_circle(tool: ModuleType) -> None:
    imported = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": {"f"}, "f": {"e"}, "g": set()}
    assert list(tool._circles(imported)) == [{"a", "b", "c"}, {"e", "f"}]


def test_an_import_within_a_function_or_for_types_counts(tool: ModuleType) -> None:
    source = "if TYPE_CHECKING:\n    from x import a\ndef f():\n    from x.y import b\n    import z\n"
    modules = dict.fromkeys(["x", "x.a", "x.y", "z"])
    assert tool._imports(ast.parse(source), modules) == {"x.a", "x.y", "z"}


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("def _a(): ...\n_a()", 1),
        ("def _a(): ...\n_a()\n_a()", 0),
        ("def _a(): ...", 0),
        ("def a(): ...\na()", 0),
        ("def __a__(): ...\n__a__()", 0),
        ("class A:\n    def _a(self): ...\n    b = _a", 0),
        ("async def _a(): ...\nsomething._a()", 1),
    ],
)
def test_a_private_function_named_once_is_counted(tool: ModuleType, source: str, count: int) -> None:
    assert tool._used_once(ast.parse(source)) == count


def test_protocols_are_counted_however_they_are_named(tool: ModuleType) -> None:
    source = "class A(Protocol): ...\nclass B(typing.Protocol[T]): ...\nclass C(A): ...\n"
    assert tool._protocols(ast.parse(source)) == 2

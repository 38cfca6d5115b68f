"""Each promise of the threat model names a test, and that test exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from support.offenders import each_case

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "threat-model.md").read_text(encoding="utf-8")
PROMISES = re.findall(r"^\| (.+?) \| `(tests/\S+\.py)::(\w+)` \|$", PAGE, re.MULTILINE)


@cache
def functions_of(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@each_case("file, test", [promise[1:] for promise in PROMISES])
def test_a_promise_has_its_test(file: str, test: str) -> None:
    assert (ROOT / file).is_file(), f"there is no {file}"
    assert test in functions_of(file), f"{file} has no test {test}: name one that holds the promise in threat-model.md"


def test_every_line_of_the_table_is_a_promise_with_a_test() -> None:
    table = PAGE.partition("## Promises")[2].partition("## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len(PROMISES) >= 25

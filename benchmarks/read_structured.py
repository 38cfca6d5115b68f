"""Runs in the peers' own environment: read the broken answers with json_repair and instructor's extractor, and print how each did."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def main() -> None:
    cases = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["cases"]
    readers: dict[str, Callable[[str], Any]] = {"json_repair": _json_repair(), "instructor": _instructor()}
    print(json.dumps({name: _score(reader, cases) for name, reader in readers.items()}))


def _json_repair() -> Callable[[str], Any]:
    import json_repair

    return json_repair.loads


def _instructor() -> Callable[[str], Any]:
    # It is installed in the peers' environment only.
    find = import_module("instructor.utils").extract_json_from_codeblock
    return lambda text: json.loads(find(text), strict=False)


def _score(reader: Callable[[str], Any], cases: list[dict[str, Any]]) -> dict[str, Any]:
    import jsonschema_rs

    right, silent, times = 0, 0, []
    for case in cases:
        judge = jsonschema_rs.validator_for(case["schema"], offline=True)
        begin = time.perf_counter()
        try:
            value, read = reader(case["text"]), True
        except (ValueError, RecursionError):
            value, read = None, False
        valid = read and judge.is_valid(value)
        times.append((time.perf_counter() - begin) * 1e6)
        matches = read and any(_same(value, wanted) for wanted in (case["expected"], *case["accept"]))
        good = not valid if case["expect_error"] else matches
        right += good
        silent += valid and not good
    return {"right": right, "silent": silent, "microseconds": times}


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)


if __name__ == "__main__":
    main()

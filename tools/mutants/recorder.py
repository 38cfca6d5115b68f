"""A plugin of pytest that records for each test how long it takes and which functions it enters, in a file of each worker.

What a fixture of a wider scope enters counts for every test that has it. What a file of tests enters while it is collected counts for each
of its tests.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from mutants import entered

PARTS = "ENTERED_PARTS"
_at_collection: dict[str, set[str]] = {}
_in_fixture: dict[Any, set[str]] = {}
_numbers: dict[str, int] = {}
_read: dict[Path, int] = {}


def pytest_configure(config: pytest.Config) -> None:
    """Give each worker a folder for what the processes that it starts enter."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    folder = Path(os.environ[PARTS]) / f"processes-{worker}"
    folder.mkdir(exist_ok=True)
    os.environ[entered.FOLDER] = str(folder)
    entered.note_with(entered.seen.add)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Note what a file of tests enters while it is collected."""
    entered.seen.clear()
    report = yield
    _at_collection.setdefault(collector.nodeid.partition("::")[0], set()).update(entered.seen)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
    """Note what a fixture enters that several tests share."""
    if fixturedef.scope == "function":
        return (yield)
    before = set(entered.seen)
    entered.seen.clear()
    try:
        return (yield)
    finally:
        _in_fixture[fixturedef] = set(entered.seen)
        entered.seen.update(before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Write one line about a test once it ended."""
    _read_processes()
    entered.seen.clear()
    began = time.perf_counter()
    result = yield
    seconds = time.perf_counter() - began
    found = set(entered.seen) | _read_processes() | _at_collection.get(item.nodeid.partition("::")[0], set())
    definitions = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    for shared in definitions.values():
        found.update(*(_in_fixture.get(one, ()) for one in shared))
    new = [one for one in sorted(found) if one not in _numbers]
    for one in new:
        _numbers[one] = len(_numbers)
    line = {"item": item.nodeid, "seconds": round(seconds, 3), "new": new, "entered": [_numbers[one] for one in found]}
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    with (Path(os.environ[PARTS]) / f"{worker}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    return result


def _read_processes() -> set[str]:
    """Return what the processes that the tests started have entered since the last time."""
    found: set[str] = set()
    for path in Path(os.environ[entered.FOLDER]).iterdir():
        with path.open("rb") as file:
            file.seek(_read.get(path, 0))
            whole, newline, _ = file.read().rpartition(b"\n")
        _read[path] = _read.get(path, 0) + len(whole + newline)
        found.update(whole.decode().split())
    return found

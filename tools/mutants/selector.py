"""A plugin of pytest that runs the tests of a list, in its order of files, and writes down how that ended."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

ITEMS = "MUTANTS_ITEMS"
RESULT = "MUTANTS_RESULT"
_MEMORY = 6 << 30
NOTHING: Mapping[str, Any] = {"ran": 0, "failed": [], "collection": "", "timed_out": False}
_result: dict[str, Any] = {**NOTHING, "failed": []}


def pytest_configure() -> None:
    """Keep a fault that fills the memory from taking the machine with it."""
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, most))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the list. Those of one file stay together, so that they share their fixtures."""
    wanted: list[str] = json.loads(Path(os.environ[ITEMS]).read_text(encoding="utf-8"))
    files = list(dict.fromkeys(item.partition("::")[0] for item in wanted))
    place = {item: (files.index(item.partition("::")[0]), number) for number, item in enumerate(wanted)}
    kept = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in place])
    items[:] = kept


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note a file of tests that cannot be imported."""
    if report.failed:
        _result["collection"] = report.nodeid


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a test that failed, in any of its phases, and whether its time was over."""
    _result["ran"] += report.when == "call"
    if report.failed and report.nodeid not in _result["failed"]:
        _result["failed"].append(report.nodeid)
        _result["timed_out"] = "from pytest-timeout" in report.longreprtext[-500:]


def pytest_runtest_logfinish() -> None:
    """Write down how it went so far: a run that takes too long is killed."""
    pytest_sessionfinish()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Write down how it ended."""
    Path(os.environ[RESULT]).write_text(json.dumps(_result), encoding="utf-8")

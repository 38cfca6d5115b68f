"""Run the tests on all processors, and each that fails once more by itself: `python tools/run_tests.py [options of pytest]`.

A test that passes by itself is unstable: it does not fail the run, but is listed at the end, and in `.test-report` by the environment.
More unstable tests than `MOST_UNSTABLE` fail the run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

MOST_UNSTABLE = 3
WORKERS = 3 * (os.cpu_count() or 1) // 2
"""Half of the time a worker waits for a program that its test has started."""
MOST_ALONE = 12
"""So many failed tests are run again at the most: where more fail, something is broken."""
REPORT = Path(".test-report", f"unstable-{Path(sys.prefix).name.lstrip('.')}.txt")


class Failures:
    """Collects, as a plugin, how each test ended and what each that failed said."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.skipped: set[str] = set()
        self.failed: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note one phase of one test."""
        if report.failed:
            self.failed.setdefault(report.nodeid, report.longreprtext)
        elif report.skipped:
            self.skipped.add(report.nodeid)
        elif report.when == "call":
            self.passed.add(report.nodeid)


def passes_alone(test: str) -> bool:
    """Run one test in a process of its own, with nothing beside it."""
    command = [sys.executable, "-m", "pytest", test]
    return subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode == 0


def settle(failed: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Run failed tests again, and return which are unstable and which are broken."""
    if len(failed) > MOST_ALONE:
        print(f"\n{len(failed)} tests failed, more than the {MOST_ALONE} that are run again.")
        return [], list(failed)
    print(f"\nRunning again, each by itself: {', '.join(failed)}", flush=True)
    unstable = [test for test in failed if passes_alone(test)]
    return unstable, [test for test in failed if test not in unstable]


def write_report(unstable: Iterable[str], failed: Mapping[str, str]) -> None:
    """Write which tests are unstable, and what each said when it failed."""
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("".join(f"{test}\n{failed[test]}\n\n" for test in unstable), encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Run the tests and return the exit code of the run."""
    begin = time.monotonic()
    found = Failures()
    code = pytest.main(["-n", str(WORKERS), *arguments], plugins=[found])
    unstable: list[str] = []
    broken: list[str] = []
    if code == pytest.ExitCode.TESTS_FAILED and found.failed:
        unstable, broken = settle(found.failed)
    elif code != pytest.ExitCode.OK:
        return int(code)
    write_report(unstable, found.failed)
    for test in unstable:
        print(f"unstable: {test}")
    for test in broken:
        print(f"broken: {test}")
    if len(unstable) > MOST_UNSTABLE:
        print(f"{len(unstable)} tests are unstable, more than {MOST_UNSTABLE}: mend them.")
    minutes, seconds = divmod(round(time.monotonic() - begin), 60)
    print(f"The tests took {minutes} min {seconds} s; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors.")
    passed = len((found.passed | set(unstable)) - set(broken))
    print(f"{passed} passed, {len(broken)} failed, {len(found.skipped - set(found.failed))} skipped")
    return int(bool(broken) or len(unstable) > MOST_UNSTABLE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A failed test runs again by itself: what passes then is unstable and listed, what fails again fails the run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import run_tests

from support.patience import PATIENCE

RUNNER = Path(run_tests.__file__)
# The second run of a test finds what the first left behind.
SUITE = """
from pathlib import Path

def test_unstable():
    seen = Path("seen")
    first = not seen.exists()
    seen.touch()
    assert not first, "it was too early"

def test_broken():
    assert False

def test_that_passes():
    pass
"""


def report(test: str, outcome: str, *, when: str = "call") -> Any:
    return SimpleNamespace(
        nodeid=test,
        when=when,
        failed=outcome == "failed",
        skipped=outcome == "skipped",
        longreprtext="it was too early",
    )


@pytest.fixture
def ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that runs the runner over tests of which some fail, and of these some again; it returns code and output."""
    monkeypatch.chdir(tmp_path)

    def end(*, passing: int = 1, unstable: int = 0, broken: int = 0) -> tuple[int, str]:
        failed = [f"unstable-{n}" for n in range(unstable)] + [f"broken-{n}" for n in range(broken)]

        def main(_: Sequence[str], plugins: Sequence[run_tests.Failures]) -> pytest.ExitCode:
            for n in range(passing):
                plugins[0].pytest_runtest_logreport(report(f"passing-{n}", "passed"))
            for test in failed:
                plugins[0].pytest_runtest_logreport(report(test, "failed"))
            return pytest.ExitCode.TESTS_FAILED if failed else pytest.ExitCode.OK

        monkeypatch.setattr(pytest, "main", main)
        monkeypatch.setattr(run_tests, "passes_alone", lambda test: test.startswith("unstable"))
        code = run_tests.main([])
        return code, capsys.readouterr().out

    return end


def unstable_file() -> str:
    return run_tests.REPORT.read_text(encoding="utf-8")


def test_a_run_without_a_failure_lists_nothing(ending: Any) -> None:
    code, output = ending(passing=2)
    assert code == 0
    assert output.splitlines()[-1] == "2 passed, 0 failed, 0 skipped"
    assert unstable_file() == ""


def test_a_test_that_passes_by_itself_is_listed_and_does_not_fail_the_run(ending: Any) -> None:
    code, output = ending(unstable=1)
    assert code == 0
    assert "unstable: unstable-0" in output
    assert output.splitlines()[-1] == "2 passed, 0 failed, 0 skipped"
    assert "it was too early" in unstable_file()


def test_a_test_that_fails_again_fails_the_run(ending: Any) -> None:
    code, output = ending(unstable=1, broken=1)
    assert code == 1
    assert "broken: broken-0" in output
    assert output.splitlines()[-1] == "2 passed, 1 failed, 0 skipped"


@pytest.mark.parametrize(("unstable", "code"), [(3, 0), (4, 1)])
def test_more_than_three_unstable_tests_fail_the_run(ending: Any, unstable: int, code: int) -> None:
    assert ending(unstable=unstable)[0] == code
    assert unstable_file().count("it was too early") == unstable


def test_many_failures_are_not_run_again(ending: Any) -> None:
    code, output = ending(unstable=13)
    assert code == 1
    assert "13 tests failed, more than the 12 that are run again" in output


def test_a_failure_before_or_after_a_test_counts(tmp_path: Path) -> None:
    found = run_tests.Failures()
    found.pytest_runtest_logreport(report("a", "passed"))
    found.pytest_runtest_logreport(report("a", "failed", when="teardown"))
    found.pytest_runtest_logreport(report("b", "skipped", when="setup"))
    assert (found.passed, set(found.failed), found.skipped) == ({"a"}, {"a"}, {"b"})


def test_real_tests_are_run_in_parallel_and_again_alone(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(SUITE, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ended = subprocess.run(
        [sys.executable, str(RUNNER), "-n", "2"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 1, ended.stdout
    assert "unstable: test_it.py::test_unstable" in ended.stdout
    assert "broken: test_it.py::test_broken" in ended.stdout
    assert ended.stdout.splitlines()[-1] == "2 passed, 1 failed, 0 skipped"

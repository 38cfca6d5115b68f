"""The program that plants faults in the source (`make mutants`): which faults, which tests, and a run of it over a small project."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from mutants.__main__ import main
from mutants.faults import compiles, find_faults
from mutants.function_map import FunctionMap
from mutants.sample import draw_faults
from release_point import changed_files, changed_lines, release_point

from support.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[1]

PLANTED = {
    "condition": ("if ready:\n    go()", "if not (ready):\n    go()"),
    "condition of a loop": ("while left > 1:\n    go()", "while not (left > 1):\n    go()"),
    "condition in an expression": ("x = 'é' if ready else b", "x = 'é' if not (ready) else b"),
    "condition of a comprehension": ("x = [a for a in b if a]", "x = [a for a in b if not (a)]"),
    "condition of a case": (
        "match x:\n    case y if y:\n        go()",
        "match x:\n    case y if not (y):\n        go()",
    ),
    "not": ("x = not ready", "x = ready"),
    "and": ("x = a and (\n    b\n)", "x = a or (\n    b\n)"),
    "or": ("x = a or b", "x = a and b"),
    "operand": ("x = a and b", "x = a"),
    "equal": ("x = a == b", "x = a != b"),
    "less": ("x = a < b", "x = a <= b"),
    "in": ("x = a not in b", "x = a in b"),
    "is": ("x = a is b", "x = a is not b"),
    "constant": ("x = True", "x = False"),
    "number": ("x = a[1:]", "x = a[2:]"),
    "bound": ("x = a[:end]", "x = a[:(end) + 1]"),
    "range": ("for x in range(end):\n    go()", "for x in range((end) + 1):\n    go()"),
    "arithmetic": ("x = a + b", "x = a - b"),
    "first argument": ("x = f(a, b, c=d)", "x = f(b, c=d)"),
    "last argument": ("x = f(a, b, c=d)", "x = f(a, b)"),
    "only argument": ("x = f(a)", "x = f()"),
    "field": ("x = Field(a, b=c)", "x = Field(a)"),
    "swap": ("x = f(a, b)", "x = f(b, a)"),
    "element": ("x = [a, b, c]", "x = [a, c]"),
    "element of two": ("x = (a, b)", "x = (a,)"),
    "entry": ("x = {a: b, **c, d: e}", "x = {a: b, **c}"),
    "call": ("def f() -> int:\n    close()\n    return x", "def f() -> int:\n    pass\n    return x"),
    "assignment": ("self.closed = True", "pass"),
    "return": ("def f() -> str:\n    return a", 'def f() -> str:\n    return ""'),
    "return of a claim": ("def f() -> bool:\n    return a", "def f() -> bool:\n    return not (a)"),
    "early return": ("def f() -> None:\n    a()\n    x = b", "def f() -> None:\n    a()\n    return"),
    "loop": ("while True:\n    break", "while True:\n    continue"),
    "handler": ("try:\n    a()\nexcept E:\n    x = b\n    c()", "try:\n    a()\nexcept E:\n    pass"),
    "empty handler": ("try:\n    a()\nexcept E:\n    pass", "try:\n    a()\nexcept E:\n    raise"),
}

NOT_PLANTED = {
    "a docstring": '"""A text."""',
    "an annotation": "x: dict[int, Literal[1, 2]]",
    "a type alias": "Names: TypeAlias = dict[int, str]",
    "a type alias without its word": "Names = Mapping[int, Sequence[int]]",
    "code for type checkers": "if TYPE_CHECKING:\n    x = 1",
    "public names": "__all__ = ['a', 'b']",
    "a log": "_log.warning('%s is %s', a, b)",
    "a text for people": "def f():\n    raise Refused('this is refused')",
    "an assert": "assert a == 1",
    "what is never reached": "assert_never(x)",
    "an overload": "@overload\ndef f(a: int = 1) -> int: ...",
    "how a value is printed": "def __repr__(self) -> str:\n    return f(self, 1)",
    "a decorator": "@cached(size=1, typed=True)\ndef f() -> None: ...",
    "a formatted text": "x = f'{a + 1}'",
}


@pytest.mark.parametrize(("source", "expected"), PLANTED.values(), ids=PLANTED)
def test_each_kind_of_fault_changes_its_bytes_and_no_other(source: str, expected: str) -> None:
    written = source.encode()
    assert expected.encode() in [fault.planted(written) for fault in find_faults("a.py", written)]


@pytest.mark.parametrize("source", NOT_PLANTED.values(), ids=NOT_PLANTED)
def test_what_no_test_should_hold_has_no_faults(source: str) -> None:
    written = source.encode()
    texts = [fault.planted(written).decode() for fault in find_faults("a.py", written)]
    # A text for people may be missed, but never what is raised.
    assert [text for text in texts if "raise" not in text] == []


def test_every_planted_file_differs_and_compiles() -> None:
    source = (ROOT / "tools" / "mutants" / "faults.py").read_bytes()
    faults = find_faults("faults.py", source)
    planted = [fault.planted(source) for fault in faults]
    assert source not in planted
    some = planted[::40]
    assert sum(map(compiles, some)) > 0.9 * len(some)


def test_the_same_seed_draws_the_same_faults_from_as_many_packages_as_it_can() -> None:
    source = ROOT / "src"
    drawn = draw_faults(source, 5, 7, packages=("bardo.values", "bardo.streams"))
    assert drawn == draw_faults(source, 5, 7, packages=("bardo.values", "bardo.streams"))
    assert drawn != draw_faults(source, 5, 8, packages=("bardo.values", "bardo.streams"))
    assert sorted(fault.path.split("/")[1] == "values" for fault in drawn) in (
        [False] * 2 + [True] * 3,
        [False] * 3 + [True] * 2,
    )


def test_faults_of_changed_lines_stand_in_those_lines() -> None:
    path = "bardo/values/errors.py"
    drawn = draw_faults(ROOT / "src", 5, 7, changed={path: frozenset(range(100, 200))})
    assert drawn
    assert all(fault.path == path and fault.line in range(100, 200) for fault in drawn)


SAMPLE = {
    "src/sample/__init__.py": "",
    "src/sample/limits.py": "def above(value, limit):\n    return value > limit\n\n\ndef unread():\n    return [1]\n",
    "tests/test_limits.py": (
        "import os, subprocess, sys\n\nfrom sample.limits import above\n\n\n"
        "def test_a_large_value_is_above() -> None:\n    assert above(7, 3)\n    assert above(4, 3)\n\n\n"
        "def test_a_program_says_the_same() -> None:\n"
        "    subprocess.run([sys.executable, '-c', 'from sample.limits import above; assert above(5, 3)'], check=True)\n\n\n"
        "def test_that_fails() -> None:\n    assert above(1, 3)\n"
    ),
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--import-mode=importlib'\n",
}


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """Return a small project with a test that fails."""
    tree = tmp_path / "tree"
    for name, text in SAMPLE.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text, encoding="utf-8")
    return tree


def files_of(tree: Path) -> Mapping[str, str]:
    """Return the files of a tree apart from the map that the program keeps."""
    paths = (path for path in tree.rglob("*") if path.is_file() and ".mutants" not in path.parts)
    return {str(path.relative_to(tree)): path.read_text(encoding="utf-8") for path in paths}


def test_a_fault_that_a_test_holds_is_caught_and_another_survives(
    sample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = sample / ".mutants" / "found.json"
    words = ["--tree", str(sample), "--count", "20", "--seed", "1", "--jobs", "2", "--json", str(found)]
    before = files_of(sample)
    assert main([*words, "--at-least", "90"]) == 1
    assert files_of(sample) == before
    assert FunctionMap(sample / ".mutants" / "map.jsonl.gz", sample).outdated(["tests"]) == []
    report = json.loads(found.read_text(encoding="utf-8"))
    ended = {(one["fault"]["function"], one["after"]): one for one in report["faults"]}
    swapped, with_equal = ended["above", "return None"], ended["above", "return value >= limit"]
    assert (swapped["outcome"], swapped["killer"]) == ("caught", "tests/test_limits.py::test_a_large_value_is_above")
    assert (with_equal["outcome"], with_equal["ran"], with_equal["entering"]) == ("survived", 2, 3)
    assert ended["unread", "return [2]"]["entering"] == 0
    shown = capsys.readouterr().out
    assert "fail without a fault, and do not count: tests/test_limits.py::test_that_fails" in shown
    assert (
        "src/sample/limits.py:2 comparison in above\n    - return value > limit\n    + return value >= limit" in shown
    )


PROGRAM = """
import os, sys, time
open(sys.argv[1] + ".part", "w").write(str(os.getpid()))
os.replace(sys.argv[1] + ".part", sys.argv[1])
time.sleep(600)
"""
WAITING = """
import os, subprocess, sys, time
from sample.limits import above

def test_waits() -> None:
    assert above(7, 3) in (True, False, None)
    if "ENTERED_PARTS" not in os.environ:
        subprocess.Popen([sys.executable, "-c", {program!r}, {place!r}], start_new_session=True)
        time.sleep(600)
"""


def test_an_interrupted_run_ends_its_tests_and_leaves_nothing(sample: Path, tmp_path: Path) -> None:
    waiting = tmp_path / "waiting"
    (sample / "tests" / "test_limits.py").write_text(
        WAITING.format(program=PROGRAM, place=str(waiting)), encoding="utf-8"
    )
    before = files_of(sample)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools"), "TMPDIR": str(temporary)}
    command = [sys.executable, "-m", "mutants", "--tree", str(sample), "--jobs", "1", "--count", "3"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        until = time.monotonic() + PATIENCE
        while not waiting.exists() and time.monotonic() < until:
            time.sleep(0.05)
        started = int(waiting.read_text(encoding="utf-8"))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 143
    assert files_of(sample) == before
    assert list(temporary.iterdir()) == []
    # What was killed may stay for a while as an entry without a command, until its parent asks for it.
    command_of = Path(f"/proc/{started}/cmdline")
    assert not command_of.exists() or command_of.read_bytes() == b""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with two commits, of which the first made the version."""
    run(tmp_path, "init", "-q")
    for name, text in {"src/bardo/_version.py": "1\n", "src/bardo/a.py": "one\ntwo\nthree\n", "page.md": "x\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    commit(tmp_path)
    (tmp_path / "src/bardo/a.py").write_text("one\n2\nthree\n", encoding="utf-8")
    commit(tmp_path)
    (tmp_path / "src/bardo/b.py").write_text("new\nnewer\n", encoding="utf-8")
    (tmp_path / "page.md").write_text("y\n", encoding="utf-8")
    return tmp_path


def commit(tree: Path) -> None:
    """Commit all files of a repository."""
    run(tree, "add", "-A")
    run(tree, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "x")


def run(tree: Path, *words: str) -> str:
    """Run git, and return what it prints."""
    return subprocess.run(["git", *words], cwd=tree, capture_output=True, text=True, check=True).stdout.strip()


def test_what_changed_since_the_version_was_made_counts_committed_or_not(repository: Path) -> None:
    point = release_point(repository)
    assert point == run(repository, "rev-list", "--max-parents=0", "HEAD")
    assert changed_files(repository, point) == {"src/bardo/a.py", "src/bardo/b.py", "page.md"}
    assert changed_lines(repository, point, "src") == {"src/bardo/a.py": {2}, "src/bardo/b.py": {1, 2}}


def test_the_newest_tag_of_a_version_is_the_release_point(repository: Path) -> None:
    run(repository, "tag", "v1.0")
    run(repository, "tag", "other")
    assert release_point(repository) == "v1.0"
    assert changed_files(repository, "v1.0") == {"src/bardo/b.py", "page.md"}

"""The map from each function to the tests that enter it: recorded once, kept in `.mutants`, and brought up to date file by file."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutants.copies import Copy
from mutants.entered import SOURCE
from mutants.faults import Fault
from mutants.recorder import PARTS

START = "import mutants.entered; mutants.entered.start()"
_HOURS = 4 * 3600.0
_SOME = 60
"""Where fewer tests enter the function itself, tests of what is near it run too."""


_NAMES = re.compile(r"^(?:class|def|async def) ([A-Za-z]\w*)|^([A-Za-z]\w*)(?=[:=]| [:=])", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Choice:
    """The tests to run for one fault, the likeliest to catch it first. `entering` says how many tests enter the function."""

    items: tuple[str, ...]
    entering: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Test:
    item: str
    seconds: float
    count: int
    functions: frozenset[str]
    modules: frozenset[str]


class FunctionMap:
    """A file with a line for each file of tests: its digest, its tests, how long each takes, and which functions it enters."""

    def __init__(self, file: Path, tree: Path) -> None:
        self._file = file
        self._tree = tree

    def forget(self) -> None:
        """Delete what was recorded."""
        self._file.unlink(missing_ok=True)

    def outdated(self, scope: Sequence[str]) -> list[str]:
        """Return the files of tests in `scope` that the map does not know as they are now."""
        known = {line["file"]: line["digest"] for line in self._lines()}
        return [path for path in _test_files(self._tree, scope) if known.get(path) != self._digest(path)]

    def record(self, copy: Copy, files: Sequence[str], jobs: int) -> int:
        """Run files of tests in a copy that was made with START, and put what they enter into the map; return the exit code."""
        parts = copy.folder.with_suffix(".parts")
        parts.mkdir()
        environment = {SOURCE: str(copy.folder / "src"), PARTS: str(parts)}
        spread = ["-n", str(jobs)] if jobs > 1 else []
        code = copy.run(["-p", "mutants.recorder", *spread, *files], environment, _HOURS)
        if code not in (0, 1):
            text = copy.output.read_text(encoding="utf-8", errors="replace")
            raise SystemExit(f"the tests could not be recorded (exit code {code}):\n{text[-3000:]}")
        self._merge(_read_parts(parts), files)
        return code

    def choose(self, faults: Iterable[Fault], scope: Sequence[str], *, most: int, budget: float) -> dict[Fault, Choice]:
        """Return for each fault up to `most` tests that take up to `budget` seconds together."""
        faults = list(faults)
        importing = {path: self._importing(path) for path in {fault.path for fault in faults}}
        modules = frozenset(importing).union(*(found for found, _ in importing.values()))
        functions = frozenset(f"{fault.path}::{fault.function}" for fault in faults)
        tests = list(self._tests(functions, modules, scope))
        return {fault: _choose(fault, tests, *importing[fault.path], most=most, budget=budget) for fault in faults}

    def _tests(self, functions: frozenset[str], modules: frozenset[str], scope: Sequence[str]) -> Iterator[_Test]:
        in_scope = set(_test_files(self._tree, scope))
        names: list[str] = []
        for line in self._lines(head=True):
            if "functions" in line:
                names = line["functions"]
                wanted = {number: name for number, name in enumerate(names) if name in functions}
                module = [name.partition("::")[0] for name in names]
            elif line["file"] in in_scope:
                for item, seconds, entered in line["items"]:
                    within = frozenset(wanted[number] for number in entered if number in wanted)
                    yield _Test(item, seconds, len(entered), within, modules & {module[number] for number in entered})

    def _importing(self, path: str) -> tuple[frozenset[str], frozenset[str]]:
        """Return which files of the source and which files of tests import a module."""
        parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
        package, name = re.escape(".".join(parts[:-1])), re.escape(parts[-1])
        whole = re.escape(".".join(parts))
        module = rf"(from|import) {whole}\b|from {package} import (\([^)]*|[^(\n]*)\b{name}\b"
        # Most tests import a name of the module from its package.
        names = "|".join({one[0] or one[1] for one in _NAMES.findall(_text(self._tree / "src" / path))})
        pattern = re.compile(rf"{module}|from {package} import (\([^)]*|[^(\n]*)\b({names or name})\b")
        source = self._tree / "src"
        found = (
            frozenset(file.relative_to(root).as_posix() for file in folder.rglob("*.py") if pattern.search(_text(file)))
            for root, folder in ((source, source), (self._tree, self._tree / "tests"))
        )
        return next(found), next(found)

    def _merge(self, recorded: Mapping[str, list[tuple[str, float, list[str]]]], files: Sequence[str]) -> None:
        names: dict[str, int] = {}
        lines = []
        for line in self._lines(head=True):
            if "functions" in line:
                names = {name: number for number, name in enumerate(line["functions"])}
            elif line["file"] not in files and (self._tree / line["file"]).is_file():
                lines.append(line)
        for path in files:
            items = [
                (item, seconds, sorted(names.setdefault(name, len(names)) for name in entered))
                for item, seconds, entered in recorded.get(path, ())
            ]
            lines.append({"file": path, "digest": self._digest(path), "items": items})
        self._file.parent.mkdir(exist_ok=True)
        part = self._file.with_suffix(".part")
        with gzip.open(part, "wt", encoding="utf-8", compresslevel=5) as file:
            file.write(json.dumps({"functions": list(names)}) + "\n")
            file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        part.replace(self._file)

    def _lines(self, *, head: bool = False) -> Iterator[dict[str, Any]]:
        if self._file.is_file():
            with gzip.open(self._file, "rt", encoding="utf-8") as file:
                for number, line in enumerate(file):
                    if number or head:
                        yield json.loads(line)

    def _digest(self, path: str) -> str:
        return hashlib.sha256((self._tree / path).read_bytes()).hexdigest()[:16]


def _read_parts(folder: Path) -> dict[str, list[tuple[str, float, list[str]]]]:
    found: dict[str, list[tuple[str, float, list[str]]]] = {}
    shared: dict[str, str] = {}
    for part in sorted(folder.glob("*.jsonl")):
        names: list[str] = []
        for text in part.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            names += [shared.setdefault(name, name) for name in line["new"]]
            item = line["item"]
            found.setdefault(item.partition("::")[0], []).append(
                (item, line["seconds"], [names[one] for one in line["entered"]])
            )
    return found


def _choose(
    fault: Fault,
    tests: Sequence[_Test],
    importers: frozenset[str],
    tests_of: frozenset[str],
    *,
    most: int,
    budget: float,
) -> Choice:
    function = f"{fault.path}::{fault.function}"
    near: list[tuple[tuple[float, ...], _Test]] = []
    entering = 0
    for test in tests:
        file = test.item.partition("::")[0]
        if function in test.functions:
            entering, group = entering + 1, 0
        elif fault.path in test.modules:
            group = 1
        elif file in tests_of:
            group = 2
        elif importers & test.modules:
            group = 3
        elif file.split("/")[1:2] == fault.path.split("/")[1:2]:
            group = 4
        else:
            continue
        near.append(((group, _distance(fault.path, file), test.count, test.seconds), test))
    near.sort(key=lambda one: one[0])
    chosen: list[_Test] = []
    seconds = 0.0
    for rank, test in _first_of_each(near):
        if rank and len(chosen) >= max(entering, _SOME):
            break
        if len(chosen) < most and (seconds + test.seconds <= budget or not chosen):
            chosen.append(test)
            seconds += test.seconds
    return Choice(tuple(test.item for test in chosen), entering, seconds)


def _first_of_each(near: Sequence[tuple[tuple[float, ...], _Test]]) -> list[tuple[float, _Test]]:
    """Return tests with their groups, and in each group the first cases of each test function before its further ones."""
    cases: dict[str, int] = {}
    ranked = []
    for place, (key, test) in enumerate(near):
        name = test.item.partition("[")[0]
        cases[name] = cases.get(name, 0) + 1
        ranked.append((key[0], cases[name].bit_length(), place, test))
    ranked.sort(key=lambda one: one[:3])
    return [(group, test) for group, _, _, test in ranked]


def _distance(path: str, test: str) -> int:
    """Return how far a file of tests lies from the one that mirrors a file of the source: 0 for the same folder and name."""
    source, mirrored = path.split("/")[1:], test.split("/")[1:]
    if mirrored[-1] == f"test_{source[-1]}":
        return 0
    same = next((number for number, pair in enumerate(zip(source, mirrored, strict=False)) if pair[0] != pair[1]), 0)
    return 1 + len(source) - 1 - same


def _test_files(tree: Path, scope: Sequence[str]) -> list[str]:
    found: set[Path] = set()
    for path in scope:
        if not (tree / path).exists():
            raise SystemExit(f"there are no tests at {path}")
        found.update((tree / path).rglob("test_*.py") if (tree / path).is_dir() else [tree / path])
    return sorted(path.relative_to(tree).as_posix() for path in found)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")

"""Draw faults evenly over the packages of a source tree: the same seed and the same tree give the same faults."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from mutants.faults import Fault, compiles, find_faults

_DIVIDED = {"adapters", "services", "engine", "surfaces", "dialects"}
_TRIES = 300


def package_of(path: str) -> str:
    """Return the package of a file below the source folder: bardo.values, bardo.adapters.stores.log."""
    parts = path.split("/")[:-1]
    return ".".join(parts[: 3 if len(parts) > 1 and parts[1] in _DIVIDED else 2])


def files_of(source: Path) -> Mapping[str, list[str]]:
    """Return the Python files of each package, without migrations."""
    found: dict[str, list[str]] = {}
    for file in sorted(source.rglob("*.py")):
        path = file.relative_to(source).as_posix()
        if "/migrations/" not in path:
            found.setdefault(package_of(path), []).append(path)
    return found


def draw_faults(
    source: Path,
    count: int,
    seed: int,
    *,
    packages: tuple[str, ...] = (),
    changed: Mapping[str, frozenset[int]] | None = None,
) -> list[Fault]:
    """Return up to `count` faults of the files below `source`.

    `packages` keeps only those packages and what is below them; `changed` keeps only those lines of those files.
    """
    draws = []
    for package, files in files_of(source).items():
        if packages and not any(f"{package}.".startswith(f"{one}.") for one in packages):
            continue
        kept = [path for path in files if changed is None or path in changed]
        if kept:
            draws.append(_Draw(source, kept, random.Random(f"{seed} {package}"), changed))
    random.Random(seed).shuffle(draws)
    found: list[Fault] = []
    while draws and len(found) < count:
        for draw in list(draws):
            fault = draw.draw() if len(found) < count else None
            if fault is not None:
                found.append(fault)
            elif len(found) < count:
                draws.remove(draw)
    return sorted(found, key=lambda fault: (fault.path, fault.start, fault.end, fault.text))


class _Draw:
    """The faults of one package in the order of a seed: a file by its size, then a kind, then a fault of this kind."""

    def __init__(
        self, source: Path, files: list[str], generator: random.Random, changed: Mapping[str, frozenset[int]] | None
    ) -> None:
        self._source = source
        self._files = files
        self._sizes = [(source / path).stat().st_size + 1 for path in files]
        self._random = generator
        self._changed = changed
        self._drawn: set[Fault] = set()
        self._functions: set[tuple[str, str]] = set()
        self._faults = cache(self._faults_of)

    def draw(self) -> Fault | None:
        """Return one more fault, at first none in a function that has one already; None where there is no other."""
        for number in range(_TRIES):
            path = self._random.choices(self._files, self._sizes)[0]
            faults = self._faults(path)
            if not faults:
                continue
            kind = self._random.choice(sorted({fault.kind for fault in faults}))
            fault = self._random.choice([one for one in faults if one.kind == kind])
            beside = (path, fault.function) in self._functions and number < _TRIES // 2
            if beside or fault in self._drawn or not compiles(fault.planted((self._source / path).read_bytes())):
                continue
            self._drawn.add(fault)
            self._functions.add((path, fault.function))
            return fault
        return None

    def _faults_of(self, path: str) -> list[Fault]:
        faults = find_faults(path, (self._source / path).read_bytes())
        return [one for one in faults if self._changed is None or one.line in self._changed[path]]

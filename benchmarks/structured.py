"""Subject `structured`: what a typed answer costs, and how many broken ones are recovered, beside json_repair and instructor's extractor.

The peers run in an environment of their own under `.bench/`; the broken answers are read from `malformed_json.json` beside the project.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from bardo.structured import Checker, PartialJson, extract
from benchmarks.bench import Bench
from benchmarks.contestants import CannotStart, Contestant
from benchmarks.figures import Figure, Row, Table, Target
from benchmarks.peers import python_of, version_of
from benchmarks.processes import ROOT

FILE = Path(os.environ.get("BARDO_MALFORMED_JSON") or ROOT.parent / "shared" / "malformed_json.json")
STRICT = "decode and validate 500 bytes"
PARTIAL = "partial object, each delta at 9 KB"
RIGHT, SILENT, MEDIAN = "recovered", "wrong in silence", "time, median"
_DELTA = 4

_PERSON = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
    "required": ["id", "name"],
}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "people": {"type": "array", "items": _PERSON},
        "note": {"type": "string"},
        "mood": {"enum": ["good", "bad"]},
    },
    "required": ["people", "note", "mood"],
    "additionalProperties": False,
}


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """How one reader did on the broken answers. `microseconds` holds one figure for each of them."""

    right: int
    silent: int
    microseconds: list[float]


def answer(size: int) -> str:
    """Return a sound answer of about this many characters."""
    people: list[dict[str, object]] = []
    while len(written := json.dumps({"people": people, "note": "as asked", "mood": "good"})) < size:
        people.append({"id": len(people), "name": f"Person {len(people)}"})
    return written


def run(bench: Bench) -> tuple[list[Table], list[Target]]:
    """Time the strict path and partial objects, then let everyone read the broken answers."""
    speed = _speed(bench)
    tables = [speed]
    cases = broken_answers()
    if cases:
        tables.append(_recovery(bench, cases))
    else:
        bench.note("malformed_json.json is not on this machine, so recovery was not measured")
    return tables, [_target(speed, STRICT, 15), _target(speed, PARTIAL, 200)]


def _target(speed: Table, measure: str, limit: float) -> Target:
    figure = speed.figure(measure, "bardo")
    return Target(says=measure, limit=limit, unit="µs", found=figure.median if figure else None)


def broken_answers() -> list[dict[str, Any]]:
    """Return the broken answers, none where the file is not there."""
    return list(json.loads(FILE.read_text(encoding="utf-8"))["cases"]) if FILE.is_file() else []


def _speed(bench: Bench) -> Table:
    judge, short, long = Checker(_SCHEMA), answer(500), answer(9000)
    count = 200 if bench.pace.quick else 2000
    works: dict[str, Callable[[], float]] = {
        STRICT: lambda: _each(lambda: extract(short, judge), count),
        PARTIAL: lambda: partial_microseconds(long),
    }
    rows = [Row(measure=name, unit="µs", figures=_figures(bench, work)) for name, work in works.items()]
    return Table(subject="structured", title="Typed answers", columns=("bardo",), rows=tuple(rows))


def _figures(bench: Bench, work: Callable[[], float]) -> dict[str, Figure]:
    figure = Figure.of([work() for _ in range(bench.pace.rounds + 1)][1:])
    return {"bardo": figure} if figure else {}


def _each(work: Callable[[], object], count: int) -> float:
    begin = time.process_time()
    for _ in range(count):
        work()
    return (time.process_time() - begin) * 1e6 / count


def partial_microseconds(text: str) -> float:
    """Feed a text in deltas of four characters, and return what each took."""
    partial, pieces = PartialJson(_SCHEMA), [text[at : at + _DELTA] for at in range(0, len(text), _DELTA)]
    begin = time.process_time()
    for piece in pieces:
        partial.feed(piece)
    return (time.process_time() - begin) * 1e6 / len(pieces)


def recovered(cases: list[dict[str, Any]]) -> Recovery:
    """Let bardo read the broken answers."""
    right, silent, times = 0, 0, []
    for case in cases:
        judge = Checker(case["schema"])
        begin = time.perf_counter()
        found = extract(case["text"], judge)
        times.append((time.perf_counter() - begin) * 1e6)
        matches = any(_same(found.value, wanted) for wanted in (case["expected"], *case["accept"]))
        good = not found.ok if case["expect_error"] else matches and (found.ok or case["truncated"])
        right += good
        silent += found.ok and not good
    return Recovery(right=right, silent=silent, microseconds=times)


def _same(left: Any, right: Any) -> bool:
    """Compare as the file asks: true is not 1, while 1 equals 1.0."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)


# Peers


def _no_command(_: object) -> list[str]:
    return []


_PEERS = Contestant(
    name="instructor",
    venv="structured",
    packages=("instructor==1.17.0", "json-repair==0.64.5", "jsonschema-rs==0.60.3"),
    lanes=(),
    command=_no_command,
)


def _recovery(bench: Bench, cases: list[dict[str, Any]]) -> Table:
    found = {"bardo": recovered(cases), **_peers(bench)}
    rows = [
        Row(measure=RIGHT, unit=f"of {len(cases)}", figures=_of(found, lambda one: [one.right])),
        Row(measure=SILENT, unit=f"of {len(cases)}", figures=_of(found, lambda one: [one.silent])),
        Row(measure=MEDIAN, unit="µs", figures=_of(found, lambda one: [sorted(one.microseconds)[len(cases) // 2]])),
    ]
    notes = (
        "Truncated answers count where their partial value is right. These answers were at hand while bardo was written.",
    )
    return Table(subject="structured", title="Broken answers", columns=tuple(found), rows=tuple(rows), notes=notes)


def _of(found: dict[str, Recovery], values: Callable[[Recovery], list[float]]) -> dict[str, Figure]:
    return {name: figure for name, one in found.items() if (figure := Figure.of(values(one)))}


def _peers(bench: Bench) -> dict[str, Recovery]:
    """Return how the peers did; none, with a note, where they cannot be installed or do not run."""
    script = str(ROOT / "benchmarks" / "read_structured.py")
    try:
        python = python_of(_PEERS, bench.tell)
        said = subprocess.run([python, script, str(FILE)], capture_output=True, check=True, timeout=120).stdout
        bench.versions[_PEERS.name] = version_of(_PEERS, python)
        return msgspec.json.decode(said, type=dict[str, Recovery])
    except (CannotStart, subprocess.SubprocessError, msgspec.DecodeError) as problem:
        bench.note(f"json_repair and instructor are left out: {problem}")
        return {}

"""Subject `parse`: what separating the reasoning of a chunk costs in process, and whether any cut of a reply reads right."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bardo.reasoning import ParserResult, ReasoningParser, find_format
from benchmarks.bench import Bench
from benchmarks.contestants import CannotStart, Contestant
from benchmarks.figures import Figure, Row, Table, Target
from benchmarks.parse_cases import FORMATS, Case, Marks, Reader, Texts, is_right, percent_of_cuts, seconds
from benchmarks.peers import python_of, version_of
from benchmarks.processes import ROOT, Started

SIZES = (1, 4, 32)
LENGTHS = (2_000, 20_000, 200_000)
# Peers cost ten times as much, so they read no longer streams than these.
PEER_CHUNKS = 20_000
WRONG = "not the true split"


class Bardo:
    """The parser that is the subject."""

    def open(self, marks: Marks, format: str) -> tuple[Callable[[str], object], Callable[[], object]]:  # noqa: A002
        parser = ReasoningParser(format=find_format(format))
        return parser.parse_reasoning_streaming_incremental, parser.finish

    def join(self, results: Sequence[ParserResult]) -> Texts:
        return "".join(one.reasoning_text for one in results), "".join(one.normal_text for one in results)


class Here:
    """A reader in this process."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def ask(self, what: str, case: Case) -> Any:
        """Return seconds, or whether the case is right, or how many of its cuts are."""
        work: Mapping[str, Callable[[Reader, Case], object]] = {
            "seconds": seconds,
            "right": is_right,
            "cuts": percent_of_cuts,
        }
        return work[what](self._reader, case)

    def reads(self, case: Case) -> bool:
        """Say whether it can read this case."""
        return True


class There:
    """A peer in an environment and a process of its own."""

    def __init__(self, started: Started, formats: Sequence[str]) -> None:
        self._started = started
        self._formats = formats

    def ask(self, what: str, case: Case) -> Any:
        """Return what the peer found."""
        return json.loads(self._started.tell(json.dumps({"what": what, "case": asdict(case)})))

    def reads(self, case: Case) -> bool:
        """Say whether it can read this case, in good time."""
        return case.format in self._formats and case.chunks <= PEER_CHUNKS


def _peer(name: str, packages: tuple[str, ...]) -> Contestant:
    return Contestant(name=name, venv=name, packages=packages, lanes=(), command=lambda place: ())


PEERS: Mapping[str, tuple[Contestant, Sequence[str]]] = {
    "transformers": (_peer("transformers", ("transformers==5.23.0",)), tuple(FORMATS)),
    "cohere_melody": (_peer("cohere_melody", ("cohere_melody==0.15.3",)), ("cohere_cmd4",)),
}


def run(bench: Bench) -> tuple[Table, list[Target]]:
    """Time every format in every chunk size and length, bardo and the peers in turn."""
    readers: dict[str, Here | There] = {"bardo": Here(Bardo())}
    before = os.sched_getaffinity(0)
    started = dict(_start(bench))
    try:
        os.sched_setaffinity(0, bench.cores.measured)
        readers |= {name: There(process, PEERS[name][1]) for name, process in started.items()}
        table = measured(bench, readers)
    finally:
        os.sched_setaffinity(0, before)
        for process in started.values():
            process.stop()
    return table, targets(table)


def _start(bench: Bench) -> Iterator[tuple[str, Started]]:
    for name, (contestant, _) in PEERS.items():
        try:
            python = python_of(contestant, bench.tell)
        except CannotStart as problem:
            bench.note(f"{name} is left out: {problem}")
            continue
        command = [python, "-m", "benchmarks.parse_peer", name]
        process = Started(command, bench.cores.measured, environment={"PYTHONPATH": str(ROOT)}, talks=True)
        try:
            process.hear()
        except RuntimeError as problem:
            process.stop()
            bench.note(f"{name} is left out: {problem}")
            continue
        bench.versions[name] = version_of(contestant, python)
        yield name, process


def cases(*, quick: bool) -> list[Case]:
    """Return all that is timed."""
    lengths = LENGTHS[:2] if quick else LENGTHS
    streams = [Case(name, "stream", size, length) for name in FORMATS for size in SIZES for length in lengths]
    hostile = [Case(name, "hostile", 4, length) for name in ("qwen3", "gpt_oss") for length in lengths]
    return [*streams, *hostile, *(Case(name, "whole") for name in FORMATS)]


def measured(bench: Bench, readers: Mapping[str, Here | There]) -> Table:
    """Return the table: speed where the split is right, and how many cuts are read right."""
    rows = []
    for case in cases(quick=bench.pace.quick):
        bench.tell(f"parse: {measure_of(case)}")
        rows.append(_timed(case, readers, bench.pace.rounds))
    rows += [_cuts(Case(name, "cuts"), readers) for name in FORMATS]
    notes = (
        "Processor time, not time on the clock: all of this is computing.",
        "Four fifths of each reply are reasoning. A cell says failed where what came out is not the true split.",
        "Peers run in environments of their own, in turn with bardo; cohere_melody knows only Cohere's formats.",
        "Hostile text is full of beginnings of delimiters.",
    )
    return Table(
        subject="parse", title="parse: reasoning in text", columns=tuple(readers), rows=tuple(rows), notes=notes
    )


def measure_of(case: Case) -> str:
    """Return what a case is called."""
    if case.kind == "whole":
        return f"{case.format}, 100 KB in one piece"
    hostile = ", hostile" if case.kind == "hostile" else ""
    return f"{case.format}{hostile}, {case.size} characters, {case.chunks:,} chunks"


def _timed(case: Case, readers: Mapping[str, Here | There], rounds: int) -> Row:
    able = {name: reader for name, reader in readers.items() if reader.reads(case)}
    failed = {name: WRONG for name, reader in able.items() if not reader.ask("right", case)}
    found: dict[str, list[float]] = {name: [] for name in able if name not in failed}
    for round_number in range(rounds + 1):
        for name, values in found.items():
            value = able[name].ask("seconds", case)
            if round_number:
                values.append(value * (1e3 if case.kind == "whole" else 1e6))
    figures = {name: figure for name, values in found.items() if (figure := Figure.of(values)) is not None}
    unit = "ms a reply" if case.kind == "whole" else "µs a chunk"
    return Row(measure=measure_of(case), unit=unit, figures=figures, failed=failed)


def _cuts(case: Case, readers: Mapping[str, Here | There]) -> Row:
    found = {name: reader.ask("cuts", case) for name, reader in readers.items() if reader.reads(case)}
    figures = {name: Figure(median=value, low=value, high=value, rounds=1) for name, value in found.items()}
    return Row(measure=f"{case.format}, cuts in two that are read right", unit="%", figures=figures)


def targets(table: Table) -> list[Target]:
    """Return what bardo aims at."""
    passing = [
        figure.median
        for row in table.rows
        if row.unit == "µs a chunk" and "hostile" not in row.measure and (figure := row.figures.get("bardo"))
    ]
    whole = [figure.median for row in table.rows if row.unit == "ms a reply" and (figure := row.figures.get("bardo"))]
    return [
        Target(says="the dearest chunk that passes a parser", limit=0.5, unit="µs", found=max(passing, default=None)),
        Target(says="100 KB in one piece", limit=1.0, unit="ms", found=max(whole, default=None)),
        Target(says="longest stream beside the shortest", limit=1.3, unit="×", found=_growth(table)),
    ]


def _growth(table: Table) -> float | None:
    by_length = {
        length: figure.median
        for length in LENGTHS
        if (figure := table.figure(measure_of(Case("qwen3", "stream", 4, length)), "bardo"))
    }
    return by_length[max(by_length)] / by_length[min(by_length)] if len(by_length) > 1 else None

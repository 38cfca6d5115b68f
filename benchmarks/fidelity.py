"""Subject `fidelity`: how many requests reach each provider as the collected facts say, of thinking, turns of tools and typed answers.

Nothing is sent and nothing is timed. Without the facts beside the project there is nothing to compare with. That replies keep their text,
thinking, calls, usage and end in every dialect is a law of `tests/conformance`, over all recordings and with the official libraries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from bardo.edge.settings import Settings
from bardo.surfaces.library.explaining import explain_by, read_request
from bardo.surfaces.library.planned_routes import RoutePlanner
from bardo.values.errors import BardoError
from benchmarks import fidelity_control, fidelity_replay, fidelity_structured
from benchmarks.bench import Bench
from benchmarks.figures import Figure, Row, Table, Target
from benchmarks.wire_facts import providers

AIMS = {"control": 98.0, "replay": 98.0, "structured": 97.0}
"""The least share in percent, by what is asked."""
_MOST_SHOWN = 40


class Case(Protocol):
    """A client's request for one model of one provider."""

    @property
    def client(self) -> str: ...
    @property
    def provider(self) -> str: ...
    @property
    def request(self) -> dict[str, Any] | None: ...


@dataclass(frozen=True, slots=True)
class Sweep:
    """What all cases of one kind came to: how many there were, and what was wrong with each that failed."""

    count: int
    failed: Mapping[str, str]

    @property
    def percent(self) -> float:
        """The share of cases in which nothing was wrong."""
        return 100 * (self.count - len(self.failed)) / self.count if self.count else 0.0


def sweep(name: str, *, every: int = 1) -> Sweep:
    """Put every case of a kind to bardo, or every few of them, and check what it would send."""
    planner = RoutePlanner(Settings())
    failed: dict[str, str] = {}
    count = 0
    for case, problem in _checked(name, planner, every):
        count += 1
        if problem:
            failed[str(case)] = problem
    return Sweep(count, failed)


def _checked(name: str, planner: RoutePlanner, every: int) -> Iterator[tuple[Case, str]]:
    kinds: dict[str, tuple[Iterable[Any], Any]] = {
        "control": (fidelity_control.cases(), fidelity_control.problem_of),
        "replay": (fidelity_replay.cases(), fidelity_replay.problem_of),
        "structured": (fidelity_structured.cases(), fidelity_structured.problem_of),
    }
    cases, problem_of = kinds[name]
    for case in islice(cases, 0, None, every):
        try:
            found = explain_by(planner, read_request(case.request, case.client), case.provider)
        except BardoError as problem:
            yield case, f"{type(problem).__name__}: {problem}"
        else:
            yield case, problem_of(case, found.body, [one.what for one in found.degraded])


def run(bench: Bench) -> tuple[list[Table], list[Target]]:
    """Put all cases to bardo; what failed stands below the table."""
    if not providers():
        bench.note("wire_matrix.json is not on this machine, so fidelity was not measured")
        return [], []
    found = {name: sweep(name, every=7 if bench.pace.quick else 1) for name in AIMS}
    rows = tuple(Row(measure=f"{name}, of {one.count}", unit="%", figures=_figure(one)) for name, one in found.items())
    wrong = [f"{name}: {case}: {problem}" for name, one in found.items() for case, problem in one.failed.items()]
    notes = (*wrong[:_MOST_SHOWN], *([f"{len(wrong) - _MOST_SHOWN} more"] if len(wrong) > _MOST_SHOWN else []))
    table = Table(subject="fidelity", title="Requests as the facts say", columns=("bardo",), rows=rows, notes=notes)
    return [table], [
        Target(says=f"{name} as the facts say", limit=aim, unit="%", found=found[name].percent, better="higher")
        for name, aim in AIMS.items()
    ]


def _figure(one: Sweep) -> dict[str, Figure]:
    figure = Figure.of([one.percent])
    return {"bardo": figure} if figure else {}

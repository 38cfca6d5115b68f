"""Subject `fidelity`: how many requests reach each provider as the collected facts say, of thinking, turns of tools and typed answers,
and how many recorded replies reach each client whole.

Nothing is sent and nothing is timed. Without the facts and the recordings beside the project there is nothing to compare with.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from bardo.adapters.config.settings import Settings
from bardo.surfaces.library.explaining import RoutePlanner, explain_by, read_request
from bardo.values.errors import BardoError
from benchmarks import fidelity_control, fidelity_replay, fidelity_replies, fidelity_structured
from benchmarks.bench import Bench
from benchmarks.figures import Figure, Row, Table, Target
from benchmarks.wire_facts import providers

AIMS = {"control": 98.0, "replay": 98.0, "structured": 97.0}
"""The least share in percent, by what is asked."""
REPLIES = 99.7
"""The least share of replies in percent."""
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
    return _swept(_checked(name, RoutePlanner(Settings()), every))


def sweep_replies(*, every: int = 1) -> tuple[Sweep, Sweep]:
    """Write every recorded reply for every client, or every few of them, and check what the client gets.

    Return what clients get whole, and what they get whole or are told of.
    """
    cases = list(islice(fidelity_replies.cases(), 0, None, every))
    found = [(case, fidelity_replies.missing(case)) for case in cases]
    whole = _swept((case, ", ".join(what for what, _, _ in wrong)) for case, wrong in found)
    untold = ((case, "; ".join(f"{what}: {how}" for what, how, told in wrong if not told)) for case, wrong in found)
    return whole, _swept(untold)


def _swept(checked: Iterable[tuple[object, str]]) -> Sweep:
    failed: dict[str, str] = {}
    count = 0
    for case, problem in checked:
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
    """Put all cases to bardo; what failed stands below each table."""
    every = 7 if bench.pace.quick else 1
    tables: list[Table] = []
    targets: list[Target] = []
    if providers():
        found = {name: sweep(name, every=every) for name in AIMS}
        tables.append(_table("Requests as the facts say", found))
        targets += [_target(f"{name} as the facts say", aim, found[name]) for name, aim in AIMS.items()]
    else:
        bench.note("wire_matrix.json is not on this machine, so requests were not compared with it")
    if fidelity_replies.recordings():
        whole, told = sweep_replies(every=every)
        rows = {
            "replies that a client gets whole": whole,
            "whole, or with a degradation that names what is missing": told,
        }
        tables.append(_table("Replies as they were recorded", rows, list(rows)[1:]))
        targets.append(_target("replies whole or reported", REPLIES, told))
    else:
        bench.note("no recordings are on this machine, so replies were not compared with them")
    return tables, targets


def _table(title: str, found: Mapping[str, Sweep], shown: Collection[str] = ()) -> Table:
    """Return a table, with the failed cases of the rows that are `shown`, of all by default, below it."""
    rows = tuple(Row(measure=f"{name}, of {one.count}", unit="%", figures=_figure(one)) for name, one in found.items())
    wrong = [
        f"{name}: {case}: {problem}"
        for name, one in found.items()
        for case, problem in one.failed.items()
        if name in (shown or found)
    ]
    notes = (*wrong[:_MOST_SHOWN], *([f"{len(wrong) - _MOST_SHOWN} more"] if len(wrong) > _MOST_SHOWN else []))
    return Table(subject="fidelity", title=title, columns=("bardo",), rows=rows, notes=notes)


def _target(says: str, aim: float, one: Sweep) -> Target:
    return Target(says=says, limit=aim, unit="%", found=one.percent, better="higher")


def _figure(one: Sweep) -> dict[str, Figure]:
    figure = Figure.of([one.percent])
    return {"bardo": figure} if figure else {}

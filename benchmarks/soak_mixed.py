"""Subject `soak` with `--requests N`: mixed load against two workers, what each holds on the way, and whether the log has every call.

`--minutes M` ends the load sooner: what was sent until then is judged by the same rules.

Flat is: over the last half of the requests, the line of least squares rises by no more than its allowance, which is 5 % of the mean or a
few units, whichever is more.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks.bench import Bench
from benchmarks.contestants import CannotStart
from benchmarks.figures import Figure, Row, Table, Target
from benchmarks.ledger import Ledger, read_ledger
from benchmarks.mixed_client import MixedJob, MixedResult
from benchmarks.mixed_place import CannotRun, MixedPlace, mixed_place
from benchmarks.plot import Line, plot

WORKERS = 2
_STEPS = 24
_CONCURRENCY = 16
_UNITS = {"resident memory": "MB"}
_ALLOWED = {"resident memory": 3.0, "open files": 6.0, "threads": 2.0, "tasks": 6.0}
"""How much a line may rise over the last half, where 5 % of its mean are less."""

Curve = dict[str, list[float]]


class Curves(msgspec.Struct):
    """What each worker held, by measure, at each of `places`: the number of requests sent until then."""

    places: list[int] = []
    workers: dict[str, Curve] = {}

    def add(self, sent: int, held: Mapping[str, Mapping[str, float]]) -> None:
        """Take one more sample of every worker."""
        self.places.append(sent)
        for worker, measures in held.items():
            for measure, value in measures.items():
                self.workers.setdefault(worker, {}).setdefault(measure, []).append(value)


def run(bench: Bench, requests: int, plot_file: Path | None) -> tuple[list[Table], list[Target]]:
    """Send all requests and return what was held, whether it is flat, and whether the log is right."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bardo-soak-") as name:
        try:
            with mixed_place(Path(name), workers=WORKERS) as place:
                curves, sums = _send(bench, place, requests)
                place.stop_gateway()
                ledger, journals = read_ledger(Path(name) / "log.db"), place.journals()
        except CannotRun as problem:
            raise CannotStart(str(problem)) from problem
    seconds = time.monotonic() - began
    mistakes = _mistakes(ledger, journals, sums)
    if plot_file is not None:
        plot_file.write_text(_drawn(curves), encoding="utf-8")
    flat = [
        Target(
            says=f"rise of {measure} over the last half, {worker}",
            limit=limit,
            unit=_UNITS.get(measure, ""),
            found=rise,
        )
        for worker, curve in curves.workers.items()
        for measure, rise, limit in _rises(curves.places, curve)
    ]
    right = Target(says="mistakes in the log", limit=0, unit="", found=float(len(mistakes)))
    return [_table(curves, _notes(sums, ledger, mistakes, seconds))], [*flat, right]


class Sums(msgspec.Struct):
    """What all clients saw together."""

    sent: int = 0
    ends: dict[str, int] = {}
    answered: list[str] = []
    headed: list[str] = []
    quiet: list[str] = []

    def add(self, result: MixedResult) -> None:
        """Take one more result."""
        self.sent += result.sent
        for end, count in result.ends.items():
            self.ends[end] = self.ends.get(end, 0) + count
        self.answered += result.answered
        self.headed += result.headed
        self.quiet += result.quiet


def _send(bench: Bench, place: MixedPlace, requests: int) -> tuple[Curves, Sums]:
    """Send the requests in steps. A step ends with its share of the requests or of the minutes, whichever is first."""
    curves, sums = Curves(), Sums()
    seconds = 60 * bench.soak_minutes / _STEPS
    for number in range(_STEPS):
        step = (requests - sums.sent) // (_STEPS - number)
        job = MixedJob(
            port=place.port, requests=step, concurrency=_CONCURRENCY, seed=number, keep_ids=True, seconds=seconds
        )
        sums.add(ask(place, job))
        states = place.state()
        held = {f"worker {at + 1}": _held(pid, states.get(pid, {})) for at, pid in enumerate(place.workers())}
        curves.add(sums.sent, held)
        memory = ", ".join(f"{measures['resident memory']:.0f} MB" for measures in held.values())
        bench.tell(f"soak: {sums.sent:,} requests, {memory}")
    return curves, sums


def ask(place: MixedPlace, job: MixedJob) -> MixedResult:
    """Have the clients send one job."""
    return msgspec.json.decode(place.clients.tell(msgspec.json.encode(job).decode()), type=MixedResult)


def _held(pid: int, state: Mapping[str, int]) -> dict[str, float]:
    folder = Path("/proc") / str(pid)
    pages = int((folder / "statm").read_text().split()[1])
    return {
        "resident memory": pages * os.sysconf("SC_PAGE_SIZE") / 1e6,
        "open files": len(list((folder / "fd").iterdir())),
        "threads": len(list((folder / "task").iterdir())),
        "tasks": state.get("tasks", 0),
    }


def rise(places: Sequence[int], values: Sequence[float]) -> float:
    """Return by how much the line of least squares through the values of the last half of the requests rises.

    `places` are how many requests were sent before each value: samples need not be equally far apart.
    """
    half = [(place, value) for place, value in zip(places, values, strict=True) if 2 * place >= places[-1]]
    if len(half) < 2:
        return 0.0
    sent, held = [place for place, _ in half], [value for _, value in half]
    return statistics.linear_regression(sent, held).slope * (sent[-1] - sent[0])


def _rises(places: Sequence[int], curve: Curve) -> list[tuple[str, float, float]]:
    return [
        (measure, rise(places, values), max(_ALLOWED[measure], 0.05 * statistics.fmean(values)))
        for measure, values in curve.items()
    ]


def _mistakes(ledger: Ledger, journals: Sequence[str], sums: Sums) -> list[str]:
    """Return what is wrong. A client that left before it had a head may have had a call, or not; every other call is known."""
    found = ledger.mistakes(sums.headed, journals)
    refused = sum(count for end, count in sums.ends.items() if end.startswith("refused"))
    left = sum(count for end, count in sums.ends.items() if end == "leave: left")
    least, most = sums.sent - refused - left, sums.sent - refused
    if not least <= ledger.rows <= most:
        found.append(f"{ledger.rows} rows for {least} to {most} calls")
    if ledger.lost:
        found.append(f"{ledger.lost} calls have no end, and no worker was killed")
    return found + [f"a reply that ended quietly: {one}" for one in sums.quiet]


def _notes(sums: Sums, ledger: Ledger, mistakes: Sequence[str], seconds: float) -> tuple[str, ...]:
    ends = "; ".join(f"{end} {count:,}" for end, count in sorted(sums.ends.items()))
    return (
        f"{sums.sent:,} requests in {seconds:,.0f} s, {_CONCURRENCY} at a time, {WORKERS} workers. What clients saw: {ends}",
        f"{ledger.rows:,} rows in the log ({', '.join(f'{name} {count:,}' for name, count in sorted(ledger.outcomes.items()))})",
        f"Mistakes: {'; '.join(mistakes) or 'none'}",
        "A refused request reaches no provider and has no row. One that left before the head of its reply may have had no call yet.",
    )


def _table(curves: Curves, notes: tuple[str, ...]) -> Table:
    shown = [0, *(len(curves.places) * part // 4 - 1 for part in (1, 2, 3, 4))]
    rows = [
        Row(measure=f"{measure}, {worker}", unit=_UNITS.get(measure, "number"), figures=_figures(curves, values, shown))
        for worker, curve in curves.workers.items()
        for measure, values in curve.items()
    ]
    return Table(
        subject="soak",
        title="soak: what two workers hold after so many mixed requests",
        columns=tuple(f"{curves.places[place]:,}" for place in shown),
        rows=tuple(rows),
        notes=notes,
    )


def _figures(curves: Curves, values: Sequence[float], shown: Sequence[int]) -> dict[str, Figure]:
    found = {f"{curves.places[place]:,}": Figure.of([values[place]]) for place in shown}
    return {label: figure for label, figure in found.items() if figure is not None}


def _drawn(curves: Curves) -> str:
    panels = {
        f"{measure}, {_UNITS.get(measure, 'number')}": [
            Line(name=worker, points=tuple(zip(map(float, curves.places), curve[measure], strict=True)))
            for worker, curve in curves.workers.items()
        ]
        for measure in _ALLOWED
    }
    return plot("Soak: what each worker holds", "requests", panels)

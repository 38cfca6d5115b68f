"""The command: `python -m benchmarks [subject …] [--quick] [--json FILE]`. Tables go to stdout, progress to stderr."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from benchmarks import (
    affinity,
    basket,
    cache,
    chaos,
    context,
    control,
    decode,
    fidelity,
    gateway,
    growth,
    interleaved,
    long_bodies,
    money,
    panel,
    parse,
    pipeline,
    quality,
    reuse,
    routing,
    routing_quality,
    scale,
    soak,
    soak_mixed,
    stages,
    structured,
    telemetry,
)
from benchmarks.bench import FULL, QUICK, Bench
from benchmarks.contestants import CannotStart
from benchmarks.figures import Table, Target, targets_markdown
from benchmarks.machine import Machine, Watch, own_versions


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All of a run, as `--json` keeps it."""

    machine: Machine
    versions: dict[str, str]
    tables: tuple[Table, ...]
    targets: tuple[Target, ...]
    notes: tuple[str, ...]
    failed: tuple[str, ...]

    def ending(self) -> str:
        """Return what belongs below the tables: targets, machine, versions, notes."""
        versions = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        said = (*self.machine.notes(), versions, *self.notes, *self.failed)
        targets = f"{targets_markdown(self.targets)}\n" if self.targets else ""
        return f"{targets}## Machine, versions, notes\n\n" + "".join(f"- {note}\n" for note in said)


def measure(
    subjects: Sequence[str],
    *,
    quick: bool,
    eval_folder: Path | None = None,
    held_out_folder: Path | None = None,
    model_folder: Path | None = None,
    soak_requests: int = 0,
    soak_minutes: float = 0.0,
    plot_file: Path | None = None,
) -> Report:
    """Run the subjects, print each table as soon as it is there, and return everything."""
    watch = Watch()
    tables: list[Table] = []
    targets: list[Target] = []
    failed: list[str] = []
    pace = QUICK if quick else FULL
    folders = {"eval_folder": eval_folder, "held_out_folder": held_out_folder, "model_folder": model_folder}
    with Bench(pace, tell, **folders) as bench:
        bench.soak_requests, bench.soak_minutes, bench.plot_file = soak_requests, soak_minutes, plot_file
        for subject in (name for name in SUBJECTS if name in subjects):
            try:
                found, aims = _RUN[subject](bench)
            except CannotStart as problem:
                # What the other subjects found must not be lost.
                failed.append(f"**{subject} failed**: {problem}")
                tell(failed[-1])
                continue
            for table in found:
                print(table.markdown(), flush=True)
            tables += found
            targets += aims
    return Report(
        machine=watch.machine(),
        versions={**own_versions(), **bench.versions},
        tables=tuple(tables),
        targets=tuple(targets),
        notes=tuple(bench.notes),
        failed=tuple(failed),
    )


Found = tuple[list[Table], list[Target]]


def _gateway(bench: Bench) -> Found:
    table, targets = gateway.run(bench)
    return [table], targets


def _parse(bench: Bench) -> Found:
    table, targets = parse.run(bench)
    return [table], targets


def _soak(bench: Bench) -> Found:
    if bench.soak_requests:
        return soak_mixed.run(bench, bench.soak_requests, bench.plot_file)
    return [soak.run(bench)], []


_RUN: dict[str, Callable[[Bench], Found]] = {
    "basket": basket.run,
    "interleaved": interleaved.run,
    "gateway": _gateway,
    "stages": lambda bench: ([stages.run(bench)], []),
    "growth": lambda bench: growth.run(bench),
    "long-bodies": long_bodies.run,
    "scale": scale.run,
    "soak": lambda bench: _soak(bench),
    "chaos": chaos.run,
    "decode": lambda bench: ([decode.run(bench)], []),
    "parse": _parse,
    "structured": structured.run,
    "control": control.run,
    "fidelity": fidelity.run,
    "pipeline": pipeline.run,
    "telemetry": telemetry.run,
    "routing": routing.run,
    "money": money.run,
    "affinity": affinity.run,
    "cache": cache.run,
    "routing-quality": routing_quality.run,
    "quality": quality.run,
    "context": context.run,
    "panel": panel.run,
    "reuse": reuse.run,
}
SUBJECTS = tuple(_RUN)


def tell(text: str) -> None:
    """Say how far the run has come."""
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Read the arguments, measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure bardo beside its peers.")
    parser.add_argument("subjects", nargs="*", metavar="subject", help=f"{', '.join(SUBJECTS)}; by default all")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds, and less exact")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all figures in a file too")
    parser.add_argument(
        "--eval", type=Path, metavar="FOLDER", help="quality, routing-quality: the rows to fit to and to measure on"
    )
    parser.add_argument(
        "--held-out", type=Path, metavar="FOLDER", help="quality, routing-quality: measure on these, fitted to --eval"
    )
    parser.add_argument(
        "--model",
        type=Path,
        metavar="FOLDER",
        help="quality: measure with this model in ONNX too, as `embedding` names it",
    )
    parser.add_argument(
        "--requests", type=int, default=0, metavar="N", help="soak: so many mixed requests, two workers"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=0.0,
        metavar="M",
        help="soak with --requests: end after so many minutes at most",
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="soak with --requests: draw what is held, as SVG")
    parser.add_argument("--strict", action="store_true", help="end with 1 where a target is missed")
    given = parser.parse_args()
    unknown = [subject for subject in given.subjects if subject not in SUBJECTS]
    if unknown:
        parser.error(f"no subject is called {unknown[0]!r}; there are {', '.join(SUBJECTS)}")
    if not sys.platform.startswith("linux"):
        parser.error("the benchmarks read /proc, so they run on Linux only")
    print("# Benchmarks\n", flush=True)
    report = measure(
        given.subjects or SUBJECTS,
        quick=given.quick,
        eval_folder=given.eval,
        held_out_folder=given.held_out,
        model_folder=given.model,
        soak_requests=given.requests,
        soak_minutes=given.minutes,
        plot_file=given.plot,
    )
    print(report.ending())
    if given.json is not None:
        given.json.write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    if report.failed or (given.strict and any(target.met is False for target in report.targets)):
        sys.exit(1)


if __name__ == "__main__":
    main()

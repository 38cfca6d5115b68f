"""The command: `python -m benchmarks [subject …] [--quick] [--json FILE]`. Tables go to stdout, progress to stderr."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks import decode, gateway, growth, soak
from benchmarks.bench import FULL, QUICK, Bench
from benchmarks.figures import Table, Target, targets_markdown
from benchmarks.machine import Machine, Watch, own_versions

SUBJECTS = ("gateway", "growth", "soak", "decode")


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All of a run, as `--json` keeps it."""

    machine: Machine
    versions: dict[str, str]
    tables: tuple[Table, ...]
    targets: tuple[Target, ...] = ()
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        """Return everything for a reader."""
        versions = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        said = "".join(f"- {note}\n" for note in (*self.machine.notes(), versions, *self.notes))
        targets = [targets_markdown(self.targets)] if self.targets else []
        return "\n".join(["# Benchmarks\n", said, *(table.markdown() for table in self.tables), *targets])


def measure(subjects: Sequence[str], *, quick: bool) -> Report:
    """Run the subjects and return what was found."""
    watch = Watch()
    tables: list[Table] = []
    targets: list[Target] = []
    with Bench(QUICK if quick else FULL, tell) as bench:
        if "gateway" in subjects:
            table, targets = gateway.run(bench)
            tables.append(table)
        if "growth" in subjects:
            tables += growth.run(bench)
        if "soak" in subjects:
            tables.append(soak.run(bench))
        if "decode" in subjects:
            tables.append(decode.run(bench))
    versions = {**own_versions(), **bench.versions}
    notes = tuple(bench.notes)
    return Report(machine=watch.machine(), versions=versions, tables=tuple(tables), targets=tuple(targets), notes=notes)


def tell(text: str) -> None:
    """Say how far the run has come."""
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Read the arguments, measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure bardo beside its peers.")
    parser.add_argument("subjects", nargs="*", metavar="subject", help=f"{', '.join(SUBJECTS)}; by default all")
    parser.add_argument("--quick", action="store_true", help="under two minutes, and less exact")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all figures in a file too")
    given = parser.parse_args()
    unknown = [subject for subject in given.subjects if subject not in SUBJECTS]
    if unknown:
        parser.error(f"no subject is called {unknown[0]!r}; there are {', '.join(SUBJECTS)}")
    if not sys.platform.startswith("linux"):
        parser.error("the benchmarks read /proc, so they run on Linux only")
    report = measure(given.subjects or SUBJECTS, quick=given.quick)
    print(report.markdown())
    if given.json is not None:
        given.json.write_bytes(msgspec.json.format(msgspec.json.encode(report)))


if __name__ == "__main__":
    main()

"""The command: `python -m fuzzing`. The last lines say how many inputs each target took; it ends with 1 where one failed."""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from fuzzing.inputs import Input, keep
from fuzzing.laws import Laws
from fuzzing.processes import open_pool, run_in_processes
from fuzzing.run import Failure, Outcome, failure_of
from fuzzing.target import Target
from fuzzing.targets import ALL, TARGETS


def main() -> None:
    """Read the arguments, run the targets, and say what failed and how to run it again."""
    parser = argparse.ArgumentParser(
        prog="python -m fuzzing", description="Break known inputs and check what holds for all."
    )
    parser.add_argument(
        "--target", choices=list(TARGETS), action="append", help="one target; may be repeated; by default all"
    )
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--inputs", type=int, metavar="N", help="inputs of each target (default 500)")
    amount.add_argument("--minutes", type=float, metavar="M", help="minutes for all targets together")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="other inputs; the same number gives the same")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (default: one a processor)"
    )
    parser.add_argument("--input", type=Path, metavar="FILE", help="check one file of the corpus, with --target")
    given = parser.parse_args()
    chosen = [TARGETS[name] for name in given.target] if given.target else list(ALL)
    if given.input is not None:
        if len(chosen) != 1:
            parser.error("--input needs one --target")
        sys.exit(_check_file(chosen[0], given.input))
    with open_pool(given.processes) as pool:
        outcomes = [_run(target, given, pool, share=1 / len(chosen)) for target in chosen]
    print(f"all: {sum(one.inputs for one in outcomes):,} inputs, {sum(len(one.failures) for one in outcomes)} failures")
    if any(one.failures for one in outcomes):
        sys.exit(1)


def _run(target: Target, given: argparse.Namespace, pool: ProcessPoolExecutor, *, share: float) -> Outcome:
    most = None if given.minutes else given.inputs or 500
    seconds = 60 * share * given.minutes if given.minutes else None
    outcome = run_in_processes(
        target.name,
        pool,
        seed=given.seed,
        processes=given.processes,
        most=most,
        seconds=seconds,
        tell=lambda failure: _tell(target, failure),
    )
    rate = outcome.inputs / max(outcome.seconds, 1e-9)
    print(
        f"{target.name}: {outcome.inputs:,} inputs, {rate:,.0f} a second of a processor, {len(outcome.failures)} failures",
        flush=True,
    )
    return outcome


def _tell(target: Target, failure: Failure) -> None:
    path = keep(target.name, failure.input)
    print(
        f"{target.name} ({failure.input.variant}): {failure.error[:1500]}\n  at {failure.place}\n  {failure.input.body[:300]!r}"
    )
    print(f"  again: python -m fuzzing --target {target.name} --input {path}", flush=True)


def _check_file(target: Target, path: Path) -> int:
    failure = failure_of(target, Input.read(path.read_bytes()), counted=True)
    if failure is None:
        print("no failure")
        return 0
    print(f"{failure.error}\n  at {failure.place}")
    target.check(failure.input, Laws.of(failure.input.body, all=True))
    return 1


if __name__ == "__main__":
    main()

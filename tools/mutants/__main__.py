"""Plant small faults in the source, one at a time, run the tests that enter the changed function, and list what no test catches."""

from __future__ import annotations

import argparse
import json
import os
import queue
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from release_point import changed_lines, release_point

from mutants.copies import Copy
from mutants.faults import Fault
from mutants.function_map import START, Choice, FunctionMap
from mutants.sample import draw_faults, package_of
from mutants.selector import ITEMS, NOTHING, RESULT

CAUGHT, TIMED_OUT, SURVIVED = "caught", "time-out", "survived"


@dataclass(frozen=True, slots=True)
class Result:
    """How the tests took one fault. `killer` is the first test that failed, or the file of tests that could not be imported."""

    fault: Fault
    outcome: str
    killer: str
    ran: int
    chosen: int
    entering: int
    seconds: float


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--tree", type=Path, default=Path(__file__).resolve().parents[2], help="the checkout")
    parser.add_argument("--count", type=int, default=60, help="how many faults")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000, help="which faults")
    parser.add_argument(
        "--package",
        action="append",
        default=[],
        help="only this package: services, adapters.stores.log or bardo.adapters.stores.log",
    )
    parser.add_argument(
        "--changed", nargs="?", const="1", help="only lines that changed since a revision, or the release point"
    )
    parser.add_argument("--tests", action="append", default=[], help="only tests of this folder or file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many runs of the tests at once")
    parser.add_argument("--most", type=int, default=300, help="how many tests for a fault")
    parser.add_argument("--budget", type=float, default=60.0, help="how many seconds of tests for a fault")
    parser.add_argument("--limit", type=float, default=180.0, help="after how many seconds a run is ended")
    parser.add_argument("--record", action="store_true", help="record anew which tests enter which functions")
    parser.add_argument("--list", action="store_true", help="print the faults and plant none")
    parser.add_argument("--json", type=Path, help="a file for the results")
    parser.add_argument("--at-least", type=float, metavar="PERCENT", help="fail where a smaller share is caught")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Return 0, or 1 where fewer faults are caught than were asked for."""
    asked = arguments(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tree: Path = asked.tree.resolve()
    faults = draw_faults(
        tree / "src", asked.count, asked.seed, packages=_packages(asked.package), changed=_changed(asked, tree)
    )
    places = len({package_of(fault.path) for fault in faults})
    print(f"{len(faults)} faults in {places} packages; the seed is {asked.seed}", flush=True)
    if asked.list:
        for fault in faults:
            print(_described(fault, tree))
        return 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        results = _measure(asked, tree, faults, Path(folder))
    print(f"\n{report(results, tree)}")
    print(f"\n{len(results)} faults with seed {asked.seed} in {(time.monotonic() - began) / 60:.1f} minutes")
    if asked.json:
        asked.json.write_text(json.dumps(as_json(results, asked.seed, tree), indent=1) + "\n", encoding="utf-8")
    return int(asked.at_least is not None and _share(results) < asked.at_least)


def _measure(asked: argparse.Namespace, tree: Path, faults: Sequence[Fault], folder: Path) -> list[Result]:
    scope = _words(asked.tests) or ["tests"]
    kept = FunctionMap(tree / ".mutants" / "map.jsonl.gz", tree)
    if asked.record:
        kept.forget()
    if files := kept.outdated(scope):
        print(f"recording which functions the tests of {len(files)} files enter", flush=True)
        copy = Copy(tree, folder / "recorded", start=START)
        try:
            kept.record(copy, files, asked.jobs)
        finally:
            copy.close()
    choices = kept.choose(faults, scope, most=asked.most, budget=asked.budget)
    runner = Runner(tree, folder, max(1, min(asked.jobs, len(faults))), asked.limit)
    try:
        return runner.run_all(choices)
    finally:
        runner.close()


class Runner:
    """Some copies of the tree, in which faults are planted at the same time."""

    def __init__(self, tree: Path, folder: Path, jobs: int, limit: float) -> None:
        self._tree = tree
        self._limit = limit
        self._copies = [Copy(tree, folder / str(number)) for number in range(jobs)]
        self._free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for copy in self._copies:
            self._free.put(copy)

    def run_all(self, choices: dict[Fault, Choice]) -> list[Result]:
        """Return how the tests take each fault.

        A test that fails without a fault too does not count: its faults are tried again without it. So is a fault whose tests took
        too long, with more time: the machine may have been busy.
        """
        results = {result.fault: result for result in self._run_each(choices)}
        if slow := {fault: choice for fault, choice in choices.items() if results[fault].outcome == TIMED_OUT}:
            print("those that took too long are tried again with twice the time", flush=True)
            results.update((result.fault, result) for result in self._run_each(slow, patience=2))
        tried = choices
        while killers := {one.killer for one in (results[fault] for fault in tried) if "::" in one.killer}:
            broken = self._failing(sorted(killers))
            if not broken:
                break
            print(f"these tests fail without a fault, and do not count: {', '.join(sorted(broken))}", flush=True)
            tried = {
                fault: replace(choices[fault], items=tuple(one for one in choices[fault].items if one not in broken))
                for fault in tried
                if results[fault].killer in broken
            }
            choices = choices | tried
            results.update((result.fault, result) for result in self._run_each(tried))
        return list(results.values())

    def close(self) -> None:
        """End every process."""
        for copy in self._copies:
            copy.close()

    def _run_each(self, choices: dict[Fault, Choice], *, patience: int = 1) -> Iterable[Result]:
        with ThreadPoolExecutor(len(self._copies)) as pool:
            waiting = [pool.submit(self._try, fault, choice, patience) for fault, choice in choices.items()]
            try:
                for number, ended in enumerate(as_completed(waiting), 1):
                    result = ended.result()
                    print(f"{number}/{len(choices)} {_line(result, self._tree)}", flush=True)
                    yield result
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.close()
                raise

    def _try(self, fault: Fault, choice: Choice, patience: int) -> Result:
        if not choice.items:
            return Result(fault, SURVIVED, "", 0, 0, choice.entering, 0.0)
        copy = self._free.get()
        try:
            with copy.planted(fault):
                began = time.monotonic()
                words = ["-x", "-o", f"timeout={patience * self._limit / 3:g}"]
                most = patience * min(self._limit, 60 + 4 * choice.seconds)
                code, found = self._run(copy, choice.items, words, most)
                seconds = round(time.monotonic() - began, 1)
        finally:
            self._free.put(copy)
        if code is None or found["timed_out"]:
            outcome, killer = TIMED_OUT, ""
        elif code in (0, 5):
            outcome, killer = SURVIVED, ""
        else:
            outcome = CAUGHT
            killer = (found["failed"] or [found["collection"] or f"exit code {code}"])[0]
        return Result(fault, outcome, killer, found["ran"], len(choice.items), choice.entering, seconds)

    def _failing(self, items: Sequence[str]) -> set[str]:
        """Return which tests fail in the tree as it is."""
        code, found = self._run(self._copies[0], items, [], 20 * self._limit)
        if code not in (0, 1):
            raise SystemExit(
                f"the tests cannot be run (exit code {code}):\n{self._copies[0].output.read_text(errors='replace')[-3000:]}"
            )
        return set(found["failed"])

    def _run(
        self, copy: Copy, items: Sequence[str], words: list[str], seconds: float
    ) -> tuple[int | None, dict[str, Any]]:
        listed, result = copy.folder.with_suffix(".items"), copy.folder.with_suffix(".result")
        listed.write_text(json.dumps(items), encoding="utf-8")
        result.unlink(missing_ok=True)
        environment = {ITEMS: str(listed), RESULT: str(result)}
        files = dict.fromkeys(item.partition("::")[0] for item in items)
        code = copy.run(["-p", "mutants.selector", "-n0", *words, *files], environment, seconds)
        found = json.loads(result.read_text()) if result.is_file() else dict(NOTHING)
        return code, found


def report(results: Sequence[Result], tree: Path) -> str:
    """Return the table of packages, and the faults that survived."""
    rows = [
        "| package | planted | caught | of these by time-out | survived | share |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    packages = sorted({package_of(result.fault.path) for result in results})
    for package in [*packages, "all"]:
        of_package = [one for one in results if package in ("all", package_of(one.fault.path))]
        count = Counter(one.outcome for one in of_package)
        caught = count[CAUGHT] + count[TIMED_OUT]
        cells = [len(of_package), caught, count[TIMED_OUT], count[SURVIVED], f"{_share(of_package):.0f} %"]
        rows.append(f"| {package} | {' | '.join(map(str, cells))} |")
    survivors = [_line(one, tree) for one in results if one.outcome == SURVIVED]
    return "\n".join([*rows, "", f"survived: {len(survivors)}", *survivors])


def as_json(results: Sequence[Result], seed: int, tree: Path) -> dict[str, Any]:
    """Return the results as JSON values."""
    rows = []
    for result in results:
        before, after = result.fault.change((tree / "src" / result.fault.path).read_bytes())
        rows.append({**asdict(result), "package": package_of(result.fault.path), "before": before, "after": after})
    return {"seed": seed, "share": round(_share(results), 1), "faults": rows}


def _share(results: Collection[Result]) -> float:
    return 100 * sum(one.outcome != SURVIVED for one in results) / max(1, len(results))


def _line(result: Result, tree: Path) -> str:
    tests = f"{result.ran} of {result.chosen} tests, {result.entering} enter it, {result.seconds:g} s"
    why = f" by {result.killer}" if result.killer else "" if result.chosen else " (no test reaches it)"
    return f"{result.outcome}{why} ({tests}): {_described(result.fault, tree)}"


def _described(fault: Fault, tree: Path) -> str:
    before, after = fault.change((tree / "src" / fault.path).read_bytes())
    return (
        f"src/{fault.path}:{fault.line} {fault.kind} in {fault.function or 'the module'}\n    - {before}\n    + {after}"
    )


def _packages(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(word if word.startswith("bardo") else f"bardo.{word}" for word in _words(names))


def _words(texts: Iterable[str]) -> list[str]:
    return [word for text in texts for word in text.replace(",", " ").split()]


def _changed(asked: argparse.Namespace, tree: Path) -> dict[str, frozenset[int]] | None:
    if not asked.changed:
        return None
    revision = release_point(tree) if asked.changed == "1" else asked.changed
    return {path.removeprefix("src/"): lines for path, lines in changed_lines(tree, revision, "src").items()}


if __name__ == "__main__":
    sys.exit(main())

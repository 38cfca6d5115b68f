"""Run a target in several processes: each takes the next batch of inputs by its number, so any number of them sees the same inputs."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import count

from fuzzing.laws import Broken
from fuzzing.run import Failure, Outcome, run
from fuzzing.targets import TARGETS

BATCH = 100
"""Inputs that a process takes at once: some hundredths of a second to a second of work."""
MOST_SECONDS = 60.0
"""Processor time of one batch after which the input that is being read is a failure: it has no end, or nearly none."""


def open_pool(processes: int) -> ProcessPoolExecutor:
    """Return processes that check inputs of any target; as a context, they have ended when the block has."""
    return ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"))


def run_in_processes(
    target: str,
    pool: ProcessPoolExecutor,
    *,
    seed: int,
    processes: int,
    most: int | None,
    seconds: float | None,
    tell: Callable[[Failure], None] = lambda _: None,
) -> Outcome:
    """Check `most` inputs, or as many as fit into `seconds`. Of failures that are alike the first that comes is kept."""
    begin = time.monotonic()
    found: dict[str, Failure] = {}
    inputs, used = 0, 0.0
    open_batches: set[Future[Outcome]] = set()
    batches = _batches(most)
    more = True
    while more or open_batches:
        more = more and (seconds is None or time.monotonic() - begin < seconds)
        while more and len(open_batches) < 2 * processes:
            batch = next(batches, None)
            more = batch is not None
            if batch is not None:
                open_batches.add(pool.submit(run_batch, target, seed, *batch))
        done, open_batches = wait(open_batches, return_when=FIRST_COMPLETED)
        for outcome in (one.result() for one in done):
            inputs += outcome.inputs
            used += outcome.seconds
            for failure in outcome.failures:
                if failure.kind not in found:
                    found[failure.kind] = failure
                    tell(failure)
    return Outcome(target=target, inputs=inputs, seconds=used, failures=tuple(found.values()))


def _batches(most: int | None) -> Iterator[tuple[int, int]]:
    """Yield the first number of each batch, and how many inputs it has."""
    for first in count(0, BATCH):
        if most is not None and first >= most:
            return
        yield first, BATCH if most is None else min(BATCH, most - first)


def run_batch(target: str, seed: int, first: int, inputs: int, *, most_seconds: float = MOST_SECONDS) -> Outcome:
    """Check some inputs in this process. An input in which the batch's time ends is a failure, and the next ones are checked."""
    before = signal.signal(signal.SIGVTALRM, _give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, most_seconds, most_seconds)
    try:
        return run(TARGETS[target], seed=seed, first=first, go_on=lambda count: count < inputs)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _give_up(_number: int, _frame: object) -> None:
    raise Broken("an input is read in a bounded time")

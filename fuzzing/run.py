"""Run a target: break its seeds, check each input, and make a failing one as small as it gets."""

from __future__ import annotations

import random
import re
import time
import traceback
from collections.abc import Callable, Iterator

import msgspec

from fuzzing.inputs import Input, corpus_of
from fuzzing.laws import Broken, linear
from fuzzing.mutate import mutated
from fuzzing.target import Target

COUNTED_EVERY = 25
"""Of so many inputs, one has its steps counted: counting takes ten times as long as the work."""
_MINIMISING_TRIES = 400


class Failure(msgspec.Struct, frozen=True):
    """An input for which something does not hold, and what was raised."""

    input: Input
    error: str
    place: str

    @property
    def kind(self) -> str:
        """What failures that are alike have in common: the error's kind, the law, and where it was raised."""
        if not self.error.startswith("Broken"):
            return f"{self.error.partition(':')[0]} at {self.place}"
        return re.split(r":\n|\d", self.error, maxsplit=1)[0]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a run of one target gave."""

    target: str
    inputs: int
    seconds: float
    failures: tuple[Failure, ...]


def failure_of(target: Target, one: Input, *, counted: bool) -> Failure | None:
    """Check one input, and return its failure. Every exception is one."""
    try:
        target.check(one)
        if counted:
            linear(lambda: target.work(one), len(one.body), per_byte=target.per_byte, beside=target.beside)
    except Exception as problem:  # noqa: BLE001
        return Failure(one, f"{type(problem).__name__}: {problem}", _place_of(problem))
    return None


def _place_of(problem: BaseException) -> str:
    """Return where in bardo an exception came from; for a broken law, the check."""
    frames = traceback.extract_tb(problem.__traceback__)
    inner = (
        frames[-1]
        if isinstance(problem, Broken)
        else next((one for one in reversed(frames) if "/bardo/" in one.filename), frames[-1])
    )
    return f"{inner.filename.rpartition('/src/')[2].rpartition('/fuzzing/')[2]}:{inner.name}"


def inputs_of(target: Target, seed: int) -> Iterator[Input]:
    """Yield the seeds of a target, then as many broken ones as are asked for. The same number gives the same inputs."""
    seeds = [*target.seeds(), *(one for _, one in corpus_of(target.name))]
    yield from dict.fromkeys(seeds)
    place = 0
    while True:
        dice = random.Random(f"{target.name} {seed} {place}")
        chosen = dice.choice(seeds)
        others = [dice.choice(seeds).body for _ in range(3)]
        yield Input(chosen.variant, mutated(chosen.body, dice, words=target.words(chosen.variant), others=others))
        place += 1


def run(
    target: Target, *, seed: int, go_on: Callable[[int], bool], tell: Callable[[Failure], None] = lambda _: None
) -> Outcome:
    """Check inputs while `go_on` says so of their count. Of failures that are alike the first is kept, made small."""
    begin = time.monotonic()
    found: dict[str, Failure] = {}
    count = 0
    for one in inputs_of(target, seed):
        if not go_on(count):
            break
        counted = count % COUNTED_EVERY == 0
        count += 1
        failure = failure_of(target, one, counted=counted)
        if failure is not None and failure.kind not in found:
            found[failure.kind] = minimised(target, failure, counted=counted)
            tell(found[failure.kind])
    return Outcome(target=target.name, inputs=count, seconds=time.monotonic() - begin, failures=tuple(found.values()))


def minimised(target: Target, failure: Failure, *, counted: bool) -> Failure:
    """Return the smallest input that was found to fail alike: pieces are left out, the longest first."""
    best, tries = failure, 0
    size = max(1, len(best.input.body) // 2)
    while size and tries < _MINIMISING_TRIES:
        at, shorter = 0, False
        while at < len(best.input.body) and tries < _MINIMISING_TRIES:
            body = best.input.body
            tries += 1
            smaller = failure_of(target, Input(best.input.variant, body[:at] + body[at + size :]), counted=counted)
            if smaller is not None and smaller.kind == failure.kind:
                best, shorter = smaller, True
            else:
                at += size
        size = size if shorter and size == 1 else size // 2
    return best

"""Run a target: break its seeds, check each input, and make a failing one as small as it gets."""

from __future__ import annotations

import random
import re
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import msgspec

from fuzzing.inputs import MOST_BYTES, SHORT_BYTES, Input, corpus_of, shortened
from fuzzing.laws import Broken, Laws, linear
from fuzzing.mutate import mutated
from fuzzing.target import Target

LONG_EVERY = 50
"""Of so many inputs, one is broken from a whole seed, and the others from a shortened one."""
ALL_LAWS_EVERY = 25
"""Of so many inputs, one is checked for all laws; so is each long one."""
COUNTED_EVERY = 500
"""Of so many inputs, one has its steps counted, a long one: counting takes ten times as long as the work."""
_MINIMISING_TRIES = 400


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """An input, and what is checked of it."""

    input: Input
    all_laws: bool = True
    counted: bool = True


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
    """What a run of one target gave. `seconds` are those of the processor."""

    target: str
    inputs: int
    seconds: float
    failures: tuple[Failure, ...]


def failure_of(target: Target, one: Input, *, all_laws: bool = True, counted: bool) -> Failure | None:
    """Check one input, and return its failure. Every exception is one."""
    try:
        target.check(one, Laws.of(one.body, all=all_laws))
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


def cases_of(target: Target, seed: int, first: int = 0) -> Iterator[Case]:
    """Yield the seeds of a target, then broken ones without end, from a number on. The same number gives the same inputs."""
    seeds = _seeds_of(target)
    for one in seeds.whole[first:]:
        yield Case(input=one, counted=False)
    place = max(0, first - len(seeds.whole))
    while True:
        yield _case(target, seeds, seed, place)
        place += 1


class _Seeds(msgspec.Struct, frozen=True):
    whole: Sequence[Input]
    short: Sequence[Input]


@cache
def _seeds_of(target: Target) -> _Seeds:
    whole = tuple(dict.fromkeys([*target.seeds(), *(one for _, one in corpus_of(target.name))]))
    return _Seeds(whole, tuple(Input(one.variant, shortened(one.body)) for one in whole))


def _case(target: Target, known: _Seeds, seed: int, place: int) -> Case:
    long = place % LONG_EVERY == 0
    seeds, most = (known.whole, MOST_BYTES) if long else (known.short, SHORT_BYTES)
    dice = random.Random(f"{target.name} {seed} {place}")
    chosen = dice.choice(seeds)
    others = [dice.choice(seeds).body for _ in range(3)]
    body = mutated(chosen.body, dice, words=target.words(chosen.variant), others=others)[:most]
    return Case(
        input=Input(chosen.variant, body), all_laws=place % ALL_LAWS_EVERY == 0, counted=place % COUNTED_EVERY == 0
    )


def run(
    target: Target,
    *,
    seed: int,
    go_on: Callable[[int], bool],
    first: int = 0,
    tell: Callable[[Failure], None] = lambda _: None,
) -> Outcome:
    """Check inputs from number `first` on while `go_on` says so of their count. Of failures that are alike one is kept, made small."""
    begin = time.process_time()
    found: dict[str, Failure] = {}
    count = 0
    for case in cases_of(target, seed, first):
        if not go_on(count):
            break
        count += 1
        failure = failure_of(target, case.input, all_laws=case.all_laws, counted=case.counted)
        if failure is not None and failure.kind not in found:
            found[failure.kind] = minimised(target, failure, counted=case.counted)
            tell(found[failure.kind])
    return Outcome(
        target=target.name, inputs=count, seconds=time.process_time() - begin, failures=tuple(found.values())
    )


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

"""What holds for every input, as functions that targets share. A broken law is a Broken, and any other exception is a failure too."""

from __future__ import annotations

import random
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from types import FrameType
from typing import Any, TypeVar

import msgspec

BYTE_BY_BYTE = 1500
"""Inputs up to this length are also fed byte by byte."""
Text = TypeVar("Text", str, bytes)
Option = TypeVar("Option")


class Broken(AssertionError):
    """A law does not hold for an input."""


def hold(claim: bool, law: str) -> None:
    """Raise Broken naming the law, where it does not hold."""
    if not claim:
        raise Broken(law)


def same(one: object, other: object, law: str) -> None:
    """Raise Broken where two things differ, with both in short."""
    if one != other:
        left, right = repr(one), repr(other)
        at = next((place for place, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), 0)
        begin = max(0, at - 80)
        raise Broken(f"{law}:\n  {left[begin : at + 300]}\n  {right[begin : at + 300]}")


class Laws(msgspec.Struct, frozen=True):
    """How many of the laws that hold in many ways are checked for one input: all of them, or one way that the input chooses.

    Reading an input once more costs as much as another input, and another input finds more.
    """

    number: int
    all: bool

    @classmethod
    def of(cls, body: bytes, *, all: bool) -> Laws:  # noqa: A002
        """Return the laws for an input. The same input gets the same ones, and all of them include the one that it chooses."""
        return cls(zlib.crc32(body), all)

    def some(self, ways: Sequence[Option]) -> Sequence[Option]:
        """Return all ways, or one of them."""
        return ways if self.all else (ways[self.number % len(ways)],)

    def cuts_of(self, body: Text) -> Iterator[list[Text]]:
        """Yield ways to cut an input: in two, in some pieces, and byte by byte where it is short."""
        dice = random.Random(self.number)
        one, *some = (int(dice.random() * (len(body) + 1)) for _ in range(8))
        kind = self.number % 20
        if self.all or kind < 10:
            yield _cut(body, [one])
        if self.all or 10 <= kind < 19:
            yield _cut(body, sorted(some))
        if len(body) <= BYTE_BY_BYTE and (self.all or kind == 19):
            yield [body[at : at + 1] for at in range(len(body))]


def _cut(body: Text, places: list[int]) -> list[Text]:
    return [body[begin:end] for begin, end in pairwise([0, *places, len(body)])]


def steps_of(work: Callable[[], Any]) -> int:
    """Return how many lines of Python and calls of C functions a piece of work takes: the same on every machine."""
    count = 0

    def trace(_frame: FrameType, _event: str, _arg: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    def profile(_frame: FrameType, event: str, _arg: Any) -> None:
        nonlocal count
        count += event == "c_call"

    before = sys.gettrace(), sys.getprofile()
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    return count


def linear(work: Callable[[], Any], size: int, *, per_byte: int, beside: int = 20_000) -> None:
    """Raise Broken where work on `size` bytes takes more steps than a line through `beside` with the slope `per_byte`."""
    steps = steps_of(work)
    bound = per_byte * size + beside
    hold(steps <= bound, f"linear work: {steps:,} steps for {size:,} bytes, which is over {bound:,}")

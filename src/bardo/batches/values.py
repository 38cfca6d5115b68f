"""Small pure helpers of batches: lines of files in pieces, and how long to wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class LongLine(Exception):
    """A line is longer than one may be; `number` counts from 1."""

    def __init__(self, number: int) -> None:
        super().__init__(f"line {number} is too long")
        self.number = number


def split_lines(pieces: Iterable[bytes], longest: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file that is given in pieces, with their numbers from 1. Raises LongLine; empty lines are passed over."""
    held: list[bytes] = []
    size = number = 0
    for piece in pieces:
        *whole, rest = piece.split(b"\n")
        for end in whole:
            number += 1
            line = b"".join([*held, end])
            held, size = [], 0
            if len(line) > longest:
                raise LongLine(number)
            if line.strip():
                yield number, line
        held.append(rest)
        size += len(rest)
        if size > longest:
            raise LongLine(number + 1)
    line = b"".join(held)
    if line.strip():
        yield number + 1, line


def pause_before(polls: int, *, first: float, most: float, chance: float) -> float:
    """Return how many seconds to wait before something is asked for again: half as long again each time, give or take a quarter."""
    return min(most, first * 1.5 ** min(polls, 30)) * (0.75 + chance / 2)

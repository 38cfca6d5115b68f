"""What a reader finds in content is told choice by choice, and blocks are numbered anew."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bardo.values.errors import InvalidRequest
from bardo.values.events import ContentChunk, Event, Failed, Finish, ReplyStart, ThinkChunk
from bardo.values.separation import SeparatedChoice, Separation

pytestmark = pytest.mark.each_python


class Lines:
    """Gives whole lines, and at the end what is left."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> Sequence[str]:
        *lines, self._held = (self._held + text).split("\n")
        return lines

    def finish(self) -> Sequence[str]:
        return [self._held] if self._held else []


class LinesOfChoice(SeparatedChoice[str]):
    """Makes every line a block of its own."""

    def _open(self) -> Lines:
        return Lines()

    def _events(self, pieces: Sequence[str]) -> list[Event]:
        return [ContentChunk(self._fresh(), line, self._index) for line in pieces]

    def _close(self) -> list[Event]:
        return []


FAILED = Failed(InvalidRequest("no", hint="ask again"))
CASES: dict[str, tuple[list[Event], list[Event]]] = {
    "later blocks move up": (
        [ContentChunk(0, "a\nb\n"), ThinkChunk(1, "so")],
        [ContentChunk(0, "a"), ContentChunk(1, "b"), ThinkChunk(2, "so")],
    ),
    "another block ends the one that is read": (
        [ContentChunk(0, "a"), ThinkChunk(1, "so"), ThinkChunk(1, "!")],
        [ContentChunk(0, "a"), ThinkChunk(1, "so"), ThinkChunk(1, "!")],
    ),
    "choices are apart": (
        [ContentChunk(0, "a", 0), ContentChunk(0, "b", 1), ContentChunk(0, "c\n", 0)],
        [ContentChunk(0, "ac", 0), ContentChunk(0, "b", 1)],
    ),
    "a block is read once": (
        [ContentChunk(0, "a\n"), ContentChunk(1, "b\n"), ContentChunk(0, "c\nd")],
        [ContentChunk(0, "a"), ContentChunk(1, "b"), ContentChunk(2, "c\nd")],
    ),
    "what is held comes before the end": (
        [ContentChunk(0, "a"), Finish("stop")],
        [ContentChunk(0, "a"), Finish("stop")],
    ),
    "what is held comes before a failure": ([ContentChunk(0, "a"), FAILED], [ContentChunk(0, "a"), FAILED]),
    "what is held comes at last": ([ContentChunk(0, "a")], [ContentChunk(0, "a")]),
    "what has no choice passes": ([ContentChunk(0, "a"), ReplyStart()], [ReplyStart(), ContentChunk(0, "a")]),
}


@pytest.mark.parametrize(("events", "told"), CASES.values(), ids=CASES.keys())
def test_content_is_told_as_its_reader_reads_it(events: list[Event], told: list[Event]) -> None:
    stage = Separation(LinesOfChoice)
    assert [*(out for event in events for out in stage.feed(event)), *stage.finish()] == told
    assert list(stage.finish()) == []

"""Events of a reply that only go on with the block that is open: an encoder writes them in one go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice, takewhile
from operator import attrgetter, eq, is_
from typing import Any

from bardo.dialects.block_writer import BlockWriter
from bardo.values.events import ContentChunk, Event, ThinkChunk, ToolCallChunk

_TEXT_OF: dict[type, Callable[[Any], str]] = {
    ContentChunk: attrgetter("text"),
    ThinkChunk: attrgetter("text"),
    ToolCallChunk: attrgetter("arguments"),
}
_place_of, _part_of = attrgetter("choice", "block"), attrgetter("choice", "block", "part")


def texts_of_run(block: BlockWriter, items: Sequence[Event], place: int) -> Sequence[str]:
    """Return the texts of the pieces from `place` on that differ from the last one of this block in their text only."""
    kind = block.chunk
    alike = len([*takewhile(partial(is_, kind), map(type, islice(items, place, None)))])
    pieces = items[place : place + alike]
    place_of: Callable[[Any], tuple[Any, ...]] = _part_of if kind is ThinkChunk else _place_of
    here = (0, block.number, block.part) if kind is ThinkChunk else (0, block.number)
    going_on = takewhile(partial(eq, here), map(place_of, pieces))
    return [*map(_TEXT_OF[kind], pieces[: len([*going_on])])]

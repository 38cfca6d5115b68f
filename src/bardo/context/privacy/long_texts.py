"""Search long texts in parts: one search of a text of ten megabytes would hold the interpreter for a third of a second.

Before each part it is looked whether there is time left for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from bardo.context.effects import check_time

PART = 32 * 1024
MARGIN = 1024
"""No match of a bounded expression, with what stands behind it, is longer."""


def matches_in_parts(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of `pattern`, as its `finditer` does. They are shorter than MARGIN, or look at nothing behind them."""
    place = 0
    while place < len(text):
        check_time()
        end = place + PART
        stop = min(len(text), end + MARGIN)
        for found in pattern.finditer(text, place, stop):
            if found.start() >= end:
                break
            match = found if found.end() < stop or stop == len(text) else pattern.match(text, found.start())
            assert match is not None  # It matches the beginning of what stands there.
            yield match
            place = match.end()
            if match is not found:
                break
        place = max(place, end)


def changed_in_parts(change: Callable[[str], str], text: str) -> str:
    """Return a text of which each character is changed by itself."""
    if len(text) <= PART:
        return change(text)
    changed = []
    for start in range(0, len(text), PART):
        check_time()
        changed.append(change(text[start : start + PART]))
    return "".join(changed)

"""What follows from a whole conversation, found for what is new in it alone.

The messages of a conversation that comes again are the same objects (`dialects.repeated_items`), and the next turn begins with all of them.
What was found of it is kept with its last message, and found for the next turn by going on from there. Agents that mark the end of their
prompt for a cache send its last messages without the marks in the next turn: what was found of all before them is kept then, too.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import Any, TypeVar

from bardo.values.blocks import Block
from bardo.values.request import Message

LEAST_MESSAGES = 3
"""How many messages a conversation has of which anything is kept."""
_MARKED = 6
"""How many messages at the end of a conversation may come otherwise in the next turn. Anthropic's example of an agent marks the last three
messages of the user, Cline the last two (their sources, 2026-11)."""
S = TypeVar("S")

Messages = tuple[Message, ...]


def fold_history(messages: Messages, name: str, form: object, begin: S, extend: Callable[[S, Messages, int], S]) -> S:
    """Return what is found of a conversation, by way of what was found of its longest beginning that came before.

    `extend` is given what was found of the messages before a place (`begin` before the first), all messages and the place, and returns what
    follows from all; it changes nothing it is given. `name` says what is found, `form` what it goes by beside the messages.
    """
    if len(messages) < LEAST_MESSAGES:
        return extend(begin, messages, 0)
    kept: _Kept | None = messages[-1].derived.get(name)
    if kept is not None and kept[1] == form and len(kept[0]) == len(messages) and all(map(is_, kept[0], messages)):
        found: S = kept[2]
        return found
    place, found = _beginning(messages, name, form, begin)
    steady = len(messages) - _MARKED
    if place < steady:
        before = messages[:steady]
        found = extend(found, before, place)
        before[-1].derived[name] = before, form, found, 0
        place = steady
    else:
        steady = 0
    found = extend(found, messages, place)
    messages[-1].derived[name] = messages, form, found, steady
    return found


_Kept = tuple[Messages, object, Any, int]
"""Messages, what was gone by beside them, what was found, and at how many of them something else is kept; 0 for none."""


def _beginning(messages: Messages, name: str, form: object, begin: S) -> tuple[int, S]:
    """Return how many of the messages, not all, have been looked at before, and what was found of them, which is kept no longer.

    It goes on with the conversation: a beginning that was kept for each turn would take the square of its length.
    """
    for place in range(len(messages) - 1, 0, -1):
        kept: _Kept | None = messages[place - 1].derived.get(name)
        if kept is not None and kept[1] == form and len(kept[0]) == place and all(map(is_, kept[0], messages)):
            # Another thread may go on from the same beginning.
            messages[place - 1].derived.pop(name, None)
            if kept[3]:
                messages[kept[3] - 1].derived.pop(name, None)
            return place, kept[2]
    return 0, begin


def parts_of(messages: Messages) -> frozenset[type[Block]]:
    """Return the classes of all blocks of a conversation, and of what stands in results of tools."""
    return messages[0].parts if len(messages) == 1 else fold_history(messages, "parts", None, frozenset(), _with_parts)


def _with_parts(found: frozenset[type[Block]], messages: Messages, place: int) -> frozenset[type[Block]]:
    return found.union(*[message.parts for message in messages[place:]])

"""Which of the replies that were kept each message of a history was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bardo.reasoning.replay.kept import Kept
from bardo.reasoning.replay.keys import keys_of, state_key, states_of
from bardo.values.request import Message, Request


def assigned(request: Request, found: Mapping[str, Kept]) -> dict[int, Kept]:
    """Return the kept reply of each message, by its place; each reply is one message at most.

    A message is known by its state, else by its words and what stood before it. What is left is known by its calls, whose ids may be
    those of another reply too.
    """
    spoken = [(place, one) for place, one in enumerate(request.messages) if one.role == "assistant"]
    made: dict[int, Kept] = {}
    used: set[int] = set()
    for sure in (True, False):
        for place, message in spoken:
            if place in made:
                continue
            kept = _first(_keys(request, place, message, sure=sure), found, used)
            if kept is not None:
                made[place] = kept
                used.add(id(kept))
    return made


def _keys(request: Request, place: int, message: Message, *, sure: bool) -> list[str]:
    exact, *calls = keys_of(request.messages[place - 1] if place else None, message.blocks)
    if not sure:
        return calls
    return [*(state_key(state) for block in message.blocks for state in states_of(block)), exact]


def _first(keys: Sequence[str], found: Mapping[str, Kept], used: set[int]) -> Kept | None:
    return next((kept for key in keys if (kept := found.get(key)) is not None and id(kept) not in used), None)

"""Which ids of tool calls tell one call from every other.

Providers make ids of random characters (`call_8f2KzP…`, `toolu_01A09q…`, UUIDs) or count (`functions.get_weather:0`, `call_0`, `0`).
Only the form of an id is known here, so it has to show that it was drawn at random: a long run of letters and digits in which digits,
small and capital letters follow each other without order. Numbers alone may be a counter or a time, words alone may be a name.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from itertools import pairwise

from bardo.values.blocks import ToolCallBlock

_RUN = re.compile(r"[A-Za-z0-9]+")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_WORDS = re.compile(r"[A-Z]?[a-z]{3,}")
_BITS = 48
DIALECTS_WITHOUT_IDS = frozenset({"gemini", "ollama"})
"""Dialects whose clients may send calls back without the ids that they were given."""
_ALTERNATIONS = 3
_DISTINCT = 7
_LETTERS = 3
_WORDY = 0.7


@lru_cache(maxsize=4096)
def is_globally_unique(call_id: str, name: str = "") -> bool:
    """Whether an id has enough randomness to be the only one of its kind. `name`, the tool's, counts for nothing."""
    if len(call_id) > 512:
        return False
    text = call_id.replace(name, " ") if name else call_id
    runs = _RUN.findall(_UUID.sub(lambda found: found.group().replace("-", ""), text))
    return any(map(_is_random, runs))


def stated_id(call: ToolCallBlock) -> str:
    """Return a call's id as its client says it; empty where bardo only numbered it, since the client's dialect gave none.

    Dialects whose calls may be without ids (Gemini, Ollama) carry a null then.
    """
    fields = call.carried.fields if call.carried is not None else {}
    inside = fields.get("functionCall")
    places = (fields, inside) if isinstance(inside, dict) else (fields,)
    return "" if any("id" in place and place["id"] is None for place in places) else call.id


def _is_random(run: str) -> bool:
    # Words and counters have few changes between digits, small letters and capitals; random text has one every second character.
    kinds = [_kind(letter) for letter in run]
    alternations = sum(one != other for one, other in pairwise(kinds))
    if "digit" not in kinds or alternations < max(_ALTERNATIONS, len(run) // 5):
        return False
    # Dates have a letter or two; names with numbers in them (`step1call2`) are words for the most part.
    if len(set(run)) < _DISTINCT or len(kinds) - kinds.count("digit") < _LETTERS:
        return False
    if sum(map(len, _WORDS.findall(run))) > len(run) * _WORDY:
        return False
    return len(run) * math.log2(_alphabet(run, set(kinds))) >= _BITS


def _kind(letter: str) -> str:
    return "digit" if letter.isdigit() else "small" if letter.islower() else "capital"


def _alphabet(run: str, kinds: set[str]) -> int:
    if set(run.lower()) <= set("0123456789abcdef"):
        return 16
    return (10 if "digit" in kinds else 0) + (26 if "small" in kinds else 0) + (26 if "capital" in kinds else 0)

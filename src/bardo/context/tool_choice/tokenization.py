"""Tokenize what a tool is called and says, and what a user says: identifiers are split, endings are taken off."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from bardo.catalog.layer_rows import tool_choice_rows
from bardo.values.request import Tool

MOST_TEXT = 8_000
"""Characters of a description, or of what the user said, that are compared: of a longer text its beginning."""
MOST_SENTENCES = 4
"""Sentences of one description that are compared on their own."""
_WORD = re.compile(r"[^\W_]+")
_LOWER_THEN_UPPER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|[;\n]+")
_LETTERS = 4
_SHORTEST_STEM = 3
_LONGEST_PHRASE = 6


def split_identifier(name: str) -> str:
    """Return the words of an identifier: `getWeather_v2` is `get Weather v2`."""
    return " ".join(_WORD.findall(_LOWER_THEN_UPPER.sub(" ", name[:MOST_TEXT])))


def stems(text: str) -> list[str]:
    """Return the words of a text without those that say nothing, and without their endings."""
    rows = tool_choice_rows()
    return [
        _stem(word, rows.endings) for word in _WORD.findall(text[:MOST_TEXT].lower()) if word not in rows.stop_words
    ]


def letter_runs(text: str) -> list[str]:
    """Return all runs of four letters in the words of a text, the space before and after a word included."""
    stop = tool_choice_rows().stop_words
    padded = [f" {word} " for word in _WORD.findall(text[:MOST_TEXT].lower()) if word not in stop]
    return [word[at : at + _LETTERS] for word in padded for at in range(max(1, len(word) - _LETTERS + 1))]


def sentences(text: str) -> list[str]:
    """Return the first sentences of a description that have at least three words, where it has several."""
    found = [one.strip() for one in _SENTENCE_END.split(text[:MOST_TEXT]) if len(one.split()) > 2]
    return found[:MOST_SENTENCES] if len(found) > 1 else []


def description_of(tool: Tool) -> str:
    """Return what a tool says of itself: its description, and the names of its parameters."""
    properties = (tool.schema or {}).get("properties")
    names = [split_identifier(name) for name in properties] if isinstance(properties, dict) else []
    parameters = f" ({', '.join(names)[:400]})" if names else ""
    return f"{tool.description[:MOST_TEXT]}{parameters}"


def named_in(text: str, names: Collection[str]) -> set[str]:
    """Return which of the names a text says: as they are, whatever their case, or as the words that they are made of.

    A name of one ordinary word counts only as it is written, since the word itself may be meant.
    """
    tokens = {token.strip(".,;:!?'\"`()[]{}<>*") for token in text.split()}
    lowered = {token.lower() for token in tokens}
    words = _WORD.findall(_LOWER_THEN_UPPER.sub(" ", text).lower())
    phrases = set(_phrases(words))
    return {name for name in names if _is_said(name, tokens, lowered, phrases)}


def _is_said(name: str, tokens: set[str], lowered: set[str], phrases: set[str]) -> bool:
    own = split_identifier(name).lower()
    if " " not in own:
        return name in tokens if name.isalpha() else name.lower() in lowered
    return name.lower() in lowered or own in phrases


def _phrases(words: list[str]) -> Iterator[str]:
    for size in range(2, _LONGEST_PHRASE + 1):
        for at in range(len(words) - size + 1):
            yield " ".join(words[at : at + size])


def _stem(word: str, endings: tuple[str, ...]) -> str:
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word

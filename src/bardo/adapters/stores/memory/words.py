"""Cut texts and questions into words, the same for both database engines, so that both find the same.

Words are runs of letters and digits, without case and accents. Scripts without spaces between words are cut into overlapping pairs of
characters. What a person types never reaches a database's own query language: only such words do.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

import msgspec

LONGEST_WORD = 64
MOST_PHRASES = 32
LONGEST_QUERY = 2_000
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_RUN = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_MARKS = re.compile("[\u0300-\u036f]+")
_PART = re.compile(r'"([^"]*)"|(\S+)')


class Phrase(msgspec.Struct, frozen=True):
    """Words that have to stand side by side. `prefix`: the last one may go on."""

    words: tuple[str, ...]
    prefix: bool = False


def folded(text: str) -> str:
    """Return a text without case and accents."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFC", _MARKS.sub("", plain))


def words_of(text: str) -> list[str]:
    """Return the words of a text, in order."""
    return [word for run in _RUN.findall(folded(text)) for word in _words_of_run(run)]


def phrases_of(query: str) -> tuple[Phrase, ...]:
    """Return what a person looks for: `"several words"` between quotes and `foot-ball` are one phrase each, `foot*` is a beginning."""
    found: dict[Phrase, None] = {}
    for quoted, plain in _PART.findall(query[:LONGEST_QUERY]):
        phrase = _phrase(quoted or plain, begins=plain.endswith("*"))
        if phrase is not None:
            found[phrase] = None
    return tuple(found)[:MOST_PHRASES]


def excerpt_of(text: str, phrases: tuple[Phrase, ...], longest: int = 240) -> str:
    """Return a part of a text around the first of the words that stands in it; its beginning where none does."""
    # Folding may change how long a text is; where it does, the place is near enough.
    plain = folded(text)
    places = (plain.find(word) for phrase in phrases for word in phrase.words)
    first = min((place for place in places if place >= 0), default=0)
    begin = max(0, min(first - longest // 3, len(text) - longest))
    part = " ".join(text[begin : begin + longest].split())
    return f"{'… ' if begin else ''}{part}{' …' if begin + longest < len(text) else ''}"


def _phrase(part: str, *, begins: bool) -> Phrase | None:
    runs = _RUN.findall(folded(part))
    words = [word for run in runs for word in _words_of_run(run)]
    if not words:
        return None
    last = runs[-1]
    if _IS_UNSPACED.match(last):
        if len(last) > 1:
            words.pop()  # The last character alone: in a longer text another may follow it.
        else:
            begins = True
    cut = len(words[-1]) == LONGEST_WORD
    return Phrase(tuple(words), prefix=begins or cut)


def _words_of_run(run: str) -> Iterator[str]:
    if not _IS_UNSPACED.match(run):
        yield run[:LONGEST_WORD]
        return
    for place in range(len(run) - 1):
        yield run[place : place + 2]
    yield run[-1]

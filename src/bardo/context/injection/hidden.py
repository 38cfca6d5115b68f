"""Text that a person does not see and a model reads: letters without a glyph, comments, pieces of chat templates, encoded sentences."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from itertools import islice
from typing import NamedTuple

from bardo.catalog.injection_rows import injection_rows
from bardo.context.injection.encodings import decoded_texts, plain_form

_TAG_LETTERS = range(0xE0020, 0xE007F)
_INVISIBLE = re.compile(
    "[\u200b\u200c\u200d\u2060\u2061-\u2064\ufeff\u00ad\u180e\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f\ufe00-\ufe0f]"
)
_MANY = 8
"""Emoji and some scripts need a few invisible letters; so many in a row, or between Latin letters, spell something."""
_RUN = re.compile(f"{_INVISIBLE.pattern}{{{_MANY},}}")
_BETWEEN_LETTERS = re.compile("[A-Za-z][\u200b\u200c\u200d\u2060\u00ad][A-Za-z]")
_DIRECTION = re.compile("[\u202d\u202e]")
_LONGEST_COMMENT = 4000
_UNSEEN = re.compile(
    r"<(\w{1,20})\s[^<>]{0,300}?(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0\b|\bhidden\b)"
    r"[^<>]{0,300}>([^<]{1,4000})<",
    re.IGNORECASE,
)
_MOST_PIECES = 64
_PART, _OVERLAP = 8_192, 4_096
"""Characters that are looked at in one go, and those before them that are looked at again: no hidden text is longer."""


class HiddenText(NamedTuple):
    """A piece of text that is not seen: by which rule it was found, and what it says."""

    rule: str
    text: str


class HiddenParts(NamedTuple):
    """What of a text is hidden. `rules` are signs by themselves, `pieces` are texts to be looked at, `visible` is the text without them."""

    rules: tuple[str, ...]
    pieces: tuple[HiddenText, ...]
    visible: str


def find_hidden(text: str) -> Generator[None, None, HiddenParts]:
    """Return what of a text a person would not see, looked for in one part of it after the other; other calls have their turn between."""
    rules = list(_signs(text))
    pieces: dict[HiddenText, None] = {}
    visible: list[str] = []
    begin = 0
    while begin < len(text):
        yield
        end = _end_of_part(text, begin)
        pieces |= dict.fromkeys(islice(_pieces(text[max(0, begin - _OVERLAP) : end]), _MOST_PIECES))
        part = text[begin:end]
        visible.append(plain_form(part if part.isascii() else _INVISIBLE.sub("", part)))
        begin = end
    return HiddenParts(tuple(rules), tuple(islice(pieces, _MOST_PIECES)), "".join(visible))


def _end_of_part(text: str, begin: int) -> int:
    """Return where a part ends: at white space, so that no word is in two parts, unless there is none."""
    if len(text) <= begin + _PART:
        return len(text)
    found = max(text.rfind(space, begin + _PART // 2, begin + _PART) for space in (" ", "\n"))
    return begin + _PART if found < 0 else found + 1


def _signs(text: str) -> Iterator[str]:
    if not text.isascii():
        if _RUN.search(text) or len(_BETWEEN_LETTERS.findall(text[:100_000])) >= _MANY:
            yield "invisible_letters"
        if any(ord(letter) in _TAG_LETTERS for letter in _INVISIBLE.findall(text)):
            yield "tag_letters"
        if _DIRECTION.search(text):
            yield "direction_override"
    if any(token in text for token in injection_rows().template_tokens):
        yield "template_tokens"


def _pieces(text: str) -> Iterator[HiddenText]:
    if not text.isascii():
        letters = "".join(chr(ord(one) - 0xE0000) for one in _INVISIBLE.findall(text) if ord(one) in _TAG_LETTERS)
        if letters.strip():
            yield HiddenText("tag_letters", letters)
    if "<" in text:
        yield from (HiddenText("comment", comment) for comment in _comments(text))
        for element in _UNSEEN.finditer(text):
            yield HiddenText("unseen_element", element[2])
    for encoding, decoded in decoded_texts(text):
        yield HiddenText(encoding, decoded)


def _comments(text: str) -> Iterator[str]:
    """Yield the comments of HTML that are not too long. Each end is looked for once, however many beginnings have none."""
    begin, end = text.find("<!--"), 0
    while begin >= 0:
        if end < begin + 5:
            end = text.find("-->", begin + 5)
        if end < 0:
            return
        if end - begin - 4 <= _LONGEST_COMMENT:
            yield text[begin + 4 : end]
            begin = text.find("<!--", end + 3)
        else:
            begin = text.find("<!--", begin + 4)

"""Text that a person does not see, or that filters do not read, and a model does.

Such are letters without a glyph, comments, pieces of chat templates, encoded sentences and letters, look-alike letters, and letters apart
or the wrong way round.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Generator, Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple
from urllib.parse import unquote

from bardo.catalog.layer_rows import injection_rows

_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{24,4000}={0,2}(?![A-Za-z0-9+/=_-])")
_HEX = re.compile(r"(?<![0-9A-Fa-f])(?:(?:\\x|0x|%)?[0-9A-Fa-f]{2}[ ,:]{0,2}){16,2000}(?![0-9A-Fa-f])")
_HEX_PAIR = re.compile(r"(?:\\x|0x|%)?([0-9A-Fa-f]{2})")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})")
_ENTITY = re.compile(r"&#(?:\d{1,7}|x[0-9a-fA-F]{1,6});?")
_PERCENT = re.compile(r"(?:[^\s%]{0,80}%[0-9A-Fa-f]{2}){3,400}[^\s%]{0,80}")
# A sign between letters is never a letter itself, so there is one way to read a text. A name such as `read_a_b_c_file` is none.
_APART = re.compile(r"(?<![^\W_])(?<![^\W_]_)(?:[^\W_][ ._*-]{1,3}){3,400}[^\W_](?![^\W_]|_[^\W_])")
_LEAST_APART = 5
_GAPS = re.compile(r"[ ._*-]{2,}")
_LEET = re.compile(r"[A-Za-z]{0,20}[0134578@$][A-Za-z0134578@$]{0,20}")
_LEET_LETTERS = str.maketrans("0134578@$", "oieastbas")
_LEAST_LEET = 2
_SCRIPTS = re.compile(r"[A-Za-z]")
_LEAST_LETTERS = 0.8
# Cyrillic, Greek and Armenian letters that look like Latin ones. Source: Unicode's confusables.txt, the single letters of these scripts.
_LOOK_ALIKES = str.maketrans(
    "аеорсухіјѕһԁԛԝвкмнтАВЕКМНОРСТУХІЈЅοαενικρτυχωγΑΒΕΖΗΙΚΜΝΟΡΤΥΧօսհո",
    "aeopcyxijshdqwbkmhtABEKMHOPCTYXIJSoaevikptuxwyABEZHIKMNOPTYXouhn",
)
_WORD = re.compile(r"\w+")


def plain_form(text: str) -> str:
    """Return a text as a model reads it: with character references and escapes resolved, and each letter in its usual form."""
    if "&#" in text:
        text = _ENTITY.sub(lambda match: html.unescape(match[0]), text)
    if "\\u" in text or "\\x" in text:
        text = _ESCAPE.sub(_unescaped, text)
    if "%" in text:
        text = _PERCENT.sub(lambda match: unquote(match[0], errors="replace"), text)
    if text.isascii():
        return text
    return _WORD.sub(_in_one_script, unicodedata.normalize("NFKC", text))


def _unescaped(match: re.Match[str]) -> str:
    letter = chr(int(match[1] or match[2], 16))
    return letter if letter.isprintable() else " "


def _in_one_script(match: re.Match[str]) -> str:
    """Return a word with look-alikes of Latin letters as these, where it has Latin letters too."""
    word = match[0]
    return word if word.isascii() or not _SCRIPTS.search(word) else word.translate(_LOOK_ALIKES)


def decoded_texts(text: str) -> Iterator[tuple[str, str]]:
    """Yield texts that pieces of this one stand for, each with the name of its encoding."""
    for name, pattern, decode in (("base64", _BASE64, _from_base64), ("hex", _HEX, _from_hex)):
        for match in pattern.finditer(text):
            if decoded := decode(match[0]):
                yield name, decoded
    lower = text.lower()
    for name, change in _whole_changes():
        if any(word in lower for word in _changed_words(name)):
            yield from ((name, change(line)) for line in _lines_with(text, _changed_words(name)))
    for line in text.splitlines():
        if any(len(match[0]) > 2 * _LEAST_APART for match in _APART.finditer(line)):
            yield "letters_apart", _APART.sub(_joined, line)
        if sum(_is_leet(match[0]) for match in _LEET.finditer(line)) >= _LEAST_LEET:
            yield "digits_as_letters", _LEET.sub(lambda match: _from_leet(match[0]), line)


def _whole_changes() -> tuple[tuple[str, Callable[[str], str]], ...]:
    return ("rot13", lambda line: codecs.encode(line, "rot13")), ("reversed", lambda line: line[::-1])


@cache
def _changed_words(name: str) -> tuple[str, ...]:
    """Return what words that instructions have become by a change of the whole text: few texts have one of these by chance."""
    change = dict(_whole_changes())[name]
    return tuple(change(word) for word in injection_rows().telling)


def _lines_with(text: str, words: tuple[str, ...]) -> Iterator[str]:
    return (line for line in text.splitlines() if any(word in line.lower() for word in words))


def _joined(match: re.Match[str]) -> str:
    """Return the words of letters that stand apart: two signs between letters end a word, where any do."""
    return " ".join(re.sub(r"[ ._*-]", "", word) for word in _GAPS.split(match[0]))


def _is_leet(token: str) -> bool:
    letters = sum(sign.isalpha() for sign in token)
    return letters >= 2 and letters < len(token) and not token[-1:].isdigit() and len(token) > 3


def _from_leet(token: str) -> str:
    return token.translate(_LEET_LETTERS) if any(sign.isalpha() for sign in token) else token


def _from_base64(written: str, *, again: bool = True) -> str:
    compact = written.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        raw = base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True)
    except (binascii.Error, ValueError):
        return ""
    inner = raw.strip()
    if again and inner.isascii() and _BASE64.fullmatch(inner.decode("ascii")):
        return _from_base64(inner.decode("ascii"), again=False)
    return _readable(raw)


def _from_hex(written: str) -> str:
    return _readable(bytes(int(pair, 16) for pair in _HEX_PAIR.findall(written)))


def _readable(raw: bytes) -> str:
    """Return the sentence that some bytes are; empty where they are no text."""
    encoding = "utf-16-le" if raw[1:2] == b"\0" else "utf-8"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        return ""
    letters = sum(letter.isalpha() or letter == " " for letter in text)
    # Languages such as Chinese have no spaces between words.
    return text if letters >= _LEAST_LETTERS * len(text) and (" " in text or not text.isascii()) else ""


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
    """The hidden parts of a text. `rules` are signs by themselves, `pieces` are texts to check, `visible` is the text without them."""

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
    space_at = max(text.rfind(space, begin + _PART // 2, begin + _PART) for space in (" ", "\n"))
    return begin + _PART if space_at < 0 else space_at + 1


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
        letters = "".join(chr(ord(sign) - 0xE0000) for sign in _INVISIBLE.findall(text) if ord(sign) in _TAG_LETTERS)
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

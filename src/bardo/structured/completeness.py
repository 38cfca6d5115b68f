"""Tell a complete value from one that may go on, and a value from brackets that belong to a sentence."""

from __future__ import annotations

from bardo.structured.extraction import Json
from bardo.structured.reading import ParsedValue
from bardo.structured.scanning import read_until
from bardo.values.once import pattern

_LOOK = 200
# What may stand before a value that begins the text: an opening fence, with its word, in a list or a quotation.
_LEAD = pattern(r"[\s\ufeff>*-]*(?:(?:`{3,}|~{3,})[^\n`]{0,40}\n[\s>]*)?")
_FENCE_END = pattern(r"[\s>]*(?:`{3,}|~{3,})")
_WORD_AFTER = pattern(r"[\w(\[]|[ \t]+[\w\"'(]")
# `:` and `=` announce a value; other punctuation and words go on as a sentence does.
_ANNOUNCES = frozenset(":：=>`")


def settled(parsed: ParsedValue, text: str) -> bool:
    """Return whether a value of a reply that was cut is its answer: complete, and the first thing said, or in a fence that was closed.

    A value inside prose may be a draft of the answer that the cut took away.
    """
    if parsed.cut or parsed.unsure:
        return False
    if parsed.end >= len(text) and _grows(parsed.value, text):
        return False
    lead = _LEAD.match(text, 0, parsed.start)
    return (lead is not None and lead.end() == parsed.start) or _FENCE_END.match(text, parsed.end) is not None


def _grows(value: Json, text: str) -> bool:
    """Whether more letters could continue a value that stands alone: 12 may become 1200."""
    return not isinstance(value, dict | list | str) and (text[-1:].isalnum() or text[-1:] == ".")


def in_sentence(parsed: ParsedValue, text: str) -> bool:
    """Return whether a bracket is part of a sentence: a reference such as [1], a tick box, an empty pair that is spoken about.

    Words without quotes count too: they may be an answer at the beginning of a line only.
    """
    before = text[max(text.rfind("\n", 0, parsed.start) + 1, parsed.start - _LOOK) : parsed.start].strip()
    if parsed.bare:
        return bool(before)
    if parsed.cut or not _is_trivial(parsed.value):
        return False
    line = before.strip(" \t*_-").lstrip(">")
    if line:
        return line[-1] not in _ANNOUNCES
    return isinstance(parsed.value, list) and _WORD_AFTER.match(text, parsed.end) is not None


def _is_trivial(value: Json) -> bool:
    if isinstance(value, list) and len(value) == 1:
        return isinstance(value[0], int) and not isinstance(value[0], bool)
    return value in ({}, [])


# The rest of a text behind its sound JSON: nothing, or the beginning of a number, of a literal or of a key without quotes.
_TOKEN = pattern(r"[-+.\w]{0,50}\s{0,50}")


def is_open(parsed: ParsedValue, text: str) -> bool:
    """Return whether the text ends inside a value that is sound JSON as far as it goes."""
    return parsed.cut == "scalar" and _TOKEN.fullmatch(text, read_until(text, parsed.start)) is not None


# A member whose value is complete, at the end of a text.
_MEMBER = pattern(
    r":\s{0,50}(?:\"[^\"]{0,2000}\"|'[^']{0,2000}'|[-+]?\d[\w.+-]{0,50}|true|false|null|True|False|None)\Z"
)
_DATA = pattern(r"[\w\"'”’`]\s{0,20}[:=]\s{0,20}\S|[{\[,]\s{0,20}[\"'“]")


def is_closed(text: str) -> bool:
    """Return whether a broken text ends as data does: closed, or lacking only its closing brackets. The rest is not to be guessed."""
    ending = text.rstrip()[-4000:]
    return ending[-1:] in ("}", "]", ")") or _MEMBER.search(ending) is not None


def looks_like_data(text: str) -> bool:
    """Return whether a broken text holds a member or a quoted item, which words in brackets do not."""
    return _DATA.search(text) is not None

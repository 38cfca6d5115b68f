"""Tell a marker that does something from one that a model only writes about, as in "I will use the `<tool_call>` tag"."""

from __future__ import annotations

from collections.abc import Sequence

_LOOK = 8
"""White space that may stand between a marker and what it begins."""
_CALL = "{[<\r\n"
_AFTER_WORD = "`'\".,;:!?)*"


def is_plain_tag(marker: str) -> bool:
    """Return whether a marker looks like a tag of XML, which a text about tags may hold, and not like a special token."""
    return marker[:1] == "<" and marker[1:2].isalpha()


def is_mention(text: str, end: int, *, final: bool) -> bool | None:
    """Return whether the tag that ends at `end` is only mentioned, by what follows it; None while too little has come.

    Calls follow their tag at once, or on the next line: a tag that punctuation or, after a space, a word follows is part of a sentence.
    """
    at = end
    while at < len(text) and at - end < _LOOK and text[at] in " \t":
        at += 1
    if at == len(text):
        return False if final else None
    return text[at] in _AFTER_WORD if at == end else text[at] not in _CALL and text[at] not in " \t"


def opens_block(before: str, starts: Sequence[str], *, at_line: bool) -> bool:
    """Return whether a text opens a block: whether an opener stands in it that is not quoted.

    `at_line`: the prompt has opened a block, so that a sentence which names the tag is more likely than an answer before it: only at the
    beginning of a line, or where no sentence goes on after it, is it an opener.
    """
    return any(_opens(before, start, place, at_line) for start in starts for place in _find_all(before, start))


def _find_all(text: str, word: str) -> list[int]:
    places, place = list[int](), text.find(word)
    while place >= 0:
        places.append(place)
        place = text.find(word, place + len(word))
    return places


def _opens(text: str, start: str, place: int, at_line: bool) -> bool:
    end = place + len(start)
    if "`" in (text[place - 1 : place], text[end : end + 1]):
        return False
    lead = text[max(0, place - _LOOK) : place].rstrip(" \t")
    return not at_line or lead[-1:] in ("", "\n", "\r") or not is_mention(text, end, final=True)

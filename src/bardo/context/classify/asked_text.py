"""The text of a request that is classified: what the user said last, without what programs add to it."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.catalog.layer_rows import OmittedText
from bardo.values.request import Request

LONGEST = 800
"""Characters. A longer text is classified by its beginning and its end, where prompts say what is asked."""


def asked_text(request: Request, omitted: Sequence[OmittedText]) -> str:
    """Return the text of the last message of the user that has one once `omitted` parts are left out; empty where none has.

    Results of tools are no text of the user. In an agent's loop the last message is often one of the program's, so that an earlier one
    counts.
    """
    for message in reversed(request.messages):
        if message.role == "user":
            text = message.paragraphs
            for part in omitted:
                text = without(text, part.begin, part.end)
            if text.strip():
                return text.strip()
    return ""


def shortened(text: str) -> str:
    """Return the text, or the beginning and the end of a long one."""
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} {text[-half:]}"


def without(text: str, begin: str, end: str) -> str:
    """Return the text without all that stands between two marks, and the marks. What is begun and not ended stays."""
    if begin not in text:
        return text
    kept, place = [], 0
    while (first := text.find(begin, place)) >= 0:
        last = text.find(end, first + len(begin))
        if last < 0:
            break
        kept.append(text[place:first])
        place = last + len(end)
    kept.append(text[place:])
    return "".join(kept)

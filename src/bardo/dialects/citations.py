"""Web pages that an answer cites, in one form between the dialects: which page, and which characters of the answer it supports.

A dialect declares a CitationForm. `engine/citations.py` places what one dialect gives where the client's dialect has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bardo.dialects.wire import without

URL_CITATION = "url_citation"
_KNOWN_FIELDS = ("type", "url", "title", "start_index", "end_index")


class Citation(NamedTuple):
    """One page. `start` and `end` are places in the text, in the unit of the form; None where the source does not say.

    `text` is the text between them where the source repeats it, and `cited_text` the page's own words.
    """

    url: str
    title: str = ""
    start: int | None = None
    end: int | None = None
    text: str = ""
    cited_text: str = ""


class Citations(NamedTuple):
    """What a field holds: its citations, and the names of what of it goes into no other form."""

    found: tuple[Citation, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class CitationForm:
    """Where a dialect has citations: a field of a block, or of the choice.

    `read` takes the field's value, `write` gives it. `in_bytes`: places count bytes of UTF-8, not characters. `whole_blocks`: a citation
    belongs to the block of text in which it stands, and has no places. `at_end`: the field is written once, when the choice ends.
    """

    field: str
    read: Callable[[Any], Citations]
    write: Callable[[Sequence[Citation]], Any]
    of_choice: bool = False
    in_bytes: bool = False
    whole_blocks: bool = False
    at_end: bool = False


def annotations_form(
    field: str, *, of_choice: bool = False, nested: bool = False, in_bytes: bool = False
) -> CitationForm:
    """Return OpenAI's form: a list of annotations of the type `url_citation`; `nested`: their fields stand under a key of that name."""

    def read(value: Any) -> Citations:
        found, lost = [], dict[str, None]()
        for entry in value if isinstance(value, list) else (value,):
            inner = entry.get(URL_CITATION, entry) if isinstance(entry, dict) and nested else entry
            if not isinstance(inner, dict) or entry.get("type") != URL_CITATION or not _text(inner.get("url")):
                lost[field] = None
                continue
            start, end = _as_offset(inner.get("start_index")), _as_offset(inner.get("end_index"))
            words = _text(inner.get("content"))
            found.append(Citation(_text(inner.get("url")), _text(inner.get("title")), start, end, cited_text=words))
            others = without(inner, *_KNOWN_FIELDS, *(("content",) if words else ()))
            lost |= dict.fromkeys(f"{field}.{name}" for name, value in others.items() if value)
        return Citations(tuple(found), tuple(lost))

    def write(citations: Sequence[Citation]) -> list[dict[str, Any]]:
        written = []
        for one in citations:
            fields = {"url": one.url, "title": one.title, "start_index": one.start or 0, "end_index": one.end or 0}
            written.append({"type": URL_CITATION, **({URL_CITATION: fields} if nested else fields)})
        return written

    # OpenAI's library joins no lists of later pieces of a choice: they go in one.
    return CitationForm(field=field, read=read, write=write, of_choice=of_choice, in_bytes=in_bytes, at_end=of_choice)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _as_offset(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None

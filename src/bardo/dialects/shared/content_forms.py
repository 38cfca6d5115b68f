"""The content of replies beside text, in one form between the dialects: cited pages, searches of the web, log probabilities and pictures.

A dialect declares a form for each that its replies may hold. `replies/translation_stages.py` writes what only another dialect has.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import msgspec

from bardo.dialects.shared.json_values import JsonObject, without
from bardo.values.blocks import ImageBlock
from bardo.values.request import Request, Tool

URL_CITATION = "url_citation"
_KNOWN_FIELDS = ("type", "url", "title", "start_index", "end_index")


class Citation(NamedTuple):
    """One page. `start` and `end` are places in the text, in the unit of the form, or None if the source does not say.

    `text` is the text between them where the source repeats it, and `cited_text` the page's own words.
    """

    url: str
    title: str = ""
    start: int | None = None
    end: int | None = None
    text: str = ""
    cited_text: str = ""


class Citations(NamedTuple):
    """The content of a field: its citations, and the names of its parts that fit no other form."""

    found: tuple[Citation, ...] = ()
    lost: tuple[str, ...] = ()


class CitationForm(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Where a dialect has citations: a field of a block, or of the choice.

    `read` takes the field's value, `write` gives it. `in_bytes`: places count bytes of UTF-8, not characters. `whole_blocks`: a citation
    belongs to the block of text in which it stands, and has no places. `at_end`: the field is written once, when the choice ends.
    """

    field: str
    read: Callable[[object], Citations]
    write: Callable[[Sequence[Citation]], Any]
    of_choice: bool = False
    in_bytes: bool = False
    whole_blocks: bool = False
    at_end: bool = False


def annotations_form(
    field: str, *, of_choice: bool = False, nested: bool = False, in_bytes: bool = False
) -> CitationForm:
    """Return OpenAI's form: a list of annotations of the type `url_citation`; `nested`: their fields stand under a key of that name."""

    def read(value: object) -> Citations:
        citations, lost = [], dict[str, None]()
        for entry in value if isinstance(value, list) else (value,):
            inner = entry.get(URL_CITATION, entry) if isinstance(entry, dict) and nested else entry
            if (
                not isinstance(entry, dict)
                or entry.get("type") != URL_CITATION
                or not isinstance(inner, dict)
                or not _text(inner.get("url"))
            ):
                lost[field] = None
                continue
            start, end = _as_offset(inner.get("start_index")), _as_offset(inner.get("end_index"))
            words = _text(inner.get("content"))
            citations.append(Citation(_text(inner.get("url")), _text(inner.get("title")), start, end, cited_text=words))
            others = without(inner, *_KNOWN_FIELDS, *(("content",) if words else ()))
            lost |= dict.fromkeys(f"{field}.{name}" for name, value in others.items() if value)
        return Citations(tuple(citations), tuple(lost))

    def write(citations: Sequence[Citation]) -> list[JsonObject]:
        written = []
        for page in citations:
            fields = {"url": page.url, "title": page.title, "start_index": page.start or 0, "end_index": page.end or 0}
            written.append({"type": URL_CITATION, **({URL_CITATION: fields} if nested else fields)})
        return written

    # OpenAI's library joins no lists of later pieces of a choice: they go in one.
    return CitationForm(field=field, read=read, write=write, of_choice=of_choice, in_bytes=in_bytes, at_end=of_choice)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _as_offset(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


SearchError = Literal["", "unavailable", "too_many_requests", "max_uses_exceeded", "invalid_input", "query_too_long"]
"""Why a search gave nothing, in Anthropic's words; empty where it did."""
_OWN_TEXT = "bardo-text:"


class WebPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page that was found: its address, its title, some of its text, and its date as the service wrote it."""

    url: str
    title: str = ""
    text: str = ""
    date: str = ""


class SearchResults(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a search: pages, best first, or the `error` for which it gave none."""

    pages: tuple[WebPage, ...] = ()
    error: SearchError = ""


class SearchPart(msgspec.Struct, frozen=True, kw_only=True):
    """One block of a search in a history: the call `id` with its `query`, what it found, or both. `own`: the gateway made the search."""

    id: str
    query: str | None = None
    results: SearchResults | None = None
    own: bool = False


class SearchForm(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """How a dialect shows a search: `write` gives its blocks, for a key that is unique in the reply, and `read` takes one of them.

    `read` returns None for a block that is no part of a search.
    """

    write: Callable[[str, str, SearchResults], list[JsonObject]]
    read: Callable[[JsonObject], SearchPart | None]


class ToolSearchPart(msgspec.Struct, frozen=True, kw_only=True):
    """One block of a search for tools in a history: the call `id` with its `arguments`, or the names of the tools that it `found`.

    The `id` is empty where the dialect's searches have none: what was found belongs to the call before it. Calls of one `round`, where that
    is known, are of one answer of the model.
    """

    id: str
    round: str = ""
    arguments: JsonObject | None = None
    found: tuple[str, ...] | None = None


class ToolSearchForm(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """How a dialect lets a provider search for tools that are loaded when they are needed.

    `asked` says of a tool of a request by what it searches, empty for any other tool. `reader` returns, for a request, what reads a block
    of its history, None for a block that is no part of a search. `write` gives the blocks of a search: for a request, a key (the number of
    the round in two digits, and the id of the model's call, which `reader` finds again), the name of the search tool, the arguments, what
    was found, and an error in Anthropic's words, empty where there is none.
    """

    asked: Callable[[Tool], Literal["regex", "words", ""]]
    reader: Callable[[Request], Callable[[JsonObject], ToolSearchPart | None]]
    write: Callable[[Request, str, str, JsonObject, Sequence[str], str], list[JsonObject]]


def seal_text(text: str) -> str:
    """Return the text of a page for a field where the dialect has ciphertext."""
    return _OWN_TEXT + base64.b64encode(text.encode()).decode()


def unseal_text(value: object) -> str | None:
    """Return the text of a page that `seal_text` wrote; None for a provider's ciphertext and for anything else."""
    if not isinstance(value, str) or not value.startswith(_OWN_TEXT):
        return None
    try:
        return base64.b64decode(value.removeprefix(_OWN_TEXT), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


Entry = JsonObject
_CHOSEN, _TOP = "chosenCandidates", "topCandidates"
_UNDECODABLE = "\ufffd"


class LogprobForm(NamedTuple):
    """A `field` of a block of text, of the choice or of the whole reply, and how it is read and written.

    `read` returns nothing where the value, or a part of it, has another form.
    """

    field: str
    of: Literal["block", "choice", "reply"]
    read: Callable[[object], Sequence[Entry]]
    write: Callable[[Sequence[Entry]], Any]


def openai_logprobs(field: str, of: Literal["block", "choice", "reply"]) -> LogprobForm:
    """Return the form of a dialect that has OpenAI's entries."""
    return LogprobForm(field, of, _read_entries, list)


def _read_entries(value: object) -> Sequence[Entry]:
    listed = value if isinstance(value, list) else []
    return listed if all(isinstance(entry, dict) and isinstance(entry.get("token"), str) for entry in listed) else []


def _read_candidates(value: object) -> Sequence[Entry]:
    if not isinstance(value, dict):
        return []
    chosen = value.get(_CHOSEN)
    if not isinstance(chosen, list) or not all(map(_is_candidate, chosen)):
        return []
    tops = value.get(_TOP)
    tops = tops if isinstance(tops, list) else []
    return [
        {**_entry(entry), "top_logprobs": _alternatives(tops[place] if place < len(tops) else None)}
        for place, entry in enumerate(chosen)
    ]


def _is_candidate(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("token", ""), str)


def _entry(candidate: JsonObject) -> Entry:
    """Return one token. A part of a character has no text, so that its bytes are unknown; a probability of 1 is left out by Gemini."""
    token = candidate.get("token", "")
    octets = None if _UNDECODABLE in token else list(token.encode("utf-8", "replace"))
    return {"token": token, "logprob": candidate.get("logProbability", 0.0), "bytes": octets}


def _alternatives(top: object) -> list[Entry]:
    listed = top.get("candidates") if isinstance(top, dict) else None
    return [_entry(entry) for entry in listed if _is_candidate(entry)] if isinstance(listed, list) else []


def _write_candidates(entries: Sequence[Entry]) -> JsonObject:
    chosen = [_candidate(entry) for entry in entries]
    alternatives = [entry.get("top_logprobs") for entry in entries]
    if not any(alternatives):
        return {_CHOSEN: chosen}
    tops = [{"candidates": list(map(_candidate, _read_entries(alternative)))} for alternative in alternatives]
    return {_TOP: tops, _CHOSEN: chosen}


def _candidate(entry: Entry) -> JsonObject:
    return {"token": entry["token"], "logProbability": entry.get("logprob")}


GEMINI_LOGPROBS = LogprobForm("logprobsResult", "choice", _read_candidates, _write_candidates)


def _read_pieces(value: object) -> Sequence[Entry]:
    """Return one entry for each piece of text: what its tokens are is not said, so that their probabilities count together."""
    pieces = value if isinstance(value, list) else []
    return [_whole_piece(piece) for piece in pieces] if all(map(_is_piece, pieces)) else []


def _is_piece(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    scores = value.get("logprobs")
    return isinstance(scores, list) and isinstance(value.get("text"), str) and all(map(_is_number, scores))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole_piece(piece: JsonObject) -> Entry:
    text = piece["text"]
    octets = None if _UNDECODABLE in text else list(text.encode("utf-8", "replace"))
    return {"token": text, "logprob": sum(piece["logprobs"]), "bytes": octets, "top_logprobs": []}


def _write_pieces(entries: Sequence[Entry]) -> list[JsonObject]:
    """Return pieces without the tokens' numbers, which only their model knows."""
    return [{"text": entry["token"], "token_ids": [], "logprobs": [entry.get("logprob")]} for entry in entries]


COHERE_LOGPROBS = LogprobForm("logprobs", "reply", _read_pieces, _write_pieces)


_DATA_URL = "data:"
_BASE64 = ";base64,"
_CALL = "image_generation_call"


class PictureForm(msgspec.Struct, frozen=True, kw_only=True):
    """How one dialect writes a picture of a reply.

    `read` returns the pictures of a value, or none if it is something else, or holds more than pictures. `write` returns the value
    for one picture. `members` are those of a value that the picture, its place and its end are told by; other members are lost with another
    dialect. `field` is the field of the choice that lists such values; empty where each is a block of its own.
    """

    read: Callable[[object], tuple[ImageBlock, ...]]
    write: Callable[[ImageBlock], JsonObject]
    members: frozenset[str]
    field: str = ""


def _picture(media_type: object, data: object) -> tuple[ImageBlock, ...]:
    if not isinstance(media_type, str) or not media_type.startswith("image/") or not isinstance(data, str) or not data:
        return ()
    return (ImageBlock(media_type=media_type, data=data),)


def _read_part(value: object) -> tuple[ImageBlock, ...]:
    inline = value.get("inlineData") if isinstance(value, dict) else None
    return _picture(inline.get("mimeType"), inline.get("data")) if isinstance(inline, dict) else ()


def _read_call(value: object) -> tuple[ImageBlock, ...]:
    if not isinstance(value, dict) or value.get("type") != _CALL:
        return ()
    return _picture(f"image/{value.get('output_format') or 'png'}", value.get("result"))


def _write_call(picture: ImageBlock) -> JsonObject:
    name = sha256(picture.data.encode()).hexdigest()[:24]
    kind = picture.media_type.removeprefix("image/")
    return {
        "type": _CALL,
        "id": f"ig_bardo_{name}",
        "status": "completed",
        "output_format": kind,
        "result": picture.data,
    }


def _read_listed(value: object) -> tuple[ImageBlock, ...]:
    held = value.get("image_url") if isinstance(value, dict) else None
    url = held.get("url") if isinstance(held, dict) else None
    head, separator, data = url.partition(_BASE64) if isinstance(url, str) else ("", "", "")
    return _picture(head.removeprefix(_DATA_URL), data) if separator else ()


def _read_output(value: object) -> tuple[ImageBlock, ...]:
    contents = value.get("content") if isinstance(value, dict) and value.get("type") == "model_output" else None
    listed = contents if isinstance(contents, list) else []
    pictures_of_each = [_read_content(item) for item in listed]
    return tuple(picture for pictures in pictures_of_each for picture in pictures) if all(pictures_of_each) else ()


def _read_content(value: object) -> tuple[ImageBlock, ...]:
    if not isinstance(value, dict) or value.get("type") != "image":
        return ()
    return _picture(value.get("mime_type"), value.get("data"))


GEMINI_PICTURES = PictureForm(
    read=_read_part,
    write=lambda picture: {"inlineData": {"mimeType": picture.media_type, "data": picture.data}},
    members=frozenset({"inlineData"}),
)
RESPONSES_PICTURES = PictureForm(
    read=_read_call, write=_write_call, members=frozenset({"type", "id", "status", "result", "output_format"})
)
CHAT_PICTURES = PictureForm(
    read=_read_listed,
    write=lambda picture: {
        "type": "image_url",
        "image_url": {"url": f"{_DATA_URL}{picture.media_type}{_BASE64}{picture.data}"},
    },
    members=frozenset({"type", "image_url", "index"}),
    field="message.images",
)
INTERACTIONS_PICTURES = PictureForm(
    read=_read_output,
    write=lambda picture: {
        "type": "model_output",
        "content": [{"type": "image", "mime_type": picture.media_type, "data": picture.data}],
    },
    members=frozenset({"type", "content"}),
)

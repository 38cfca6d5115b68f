"""What a provider's refusal says in its own words: the message of its error object, without what it quotes of the request.

A caller's text may repeat the words of a refusal, and a provider may quote that text in another one: nothing is learned, and nothing is
repaired, by what the caller wrote.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cached_property
from typing import Any

import msgspec

from bardo.catalog.field_refusals import builtin_field_refusals
from bardo.values.errors import UpstreamRefused

Fields = dict[str, msgspec.Raw]
_LONGEST = 4000
_MOST_WORK = 128 * 1024 * 1024
"""How many bytes of a request are looked through for what a refusal may quote of it; what is left then is taken for a quotation."""
_LARGEST_ESCAPED = 4 * 1024 * 1024
_LEAST_QUOTED = 16
"""Letters and digits: what is shorter may stand in any request."""
_KEPT_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") | frozenset(
    range(128, 256)
)
_DROPPED = bytes(letter for letter in range(256) if letter not in _KEPT_LETTERS)
_SENTENCE_END = re.compile(r"(?<=[.;!?])\s+|[\r\n]+")
_QUOTE = re.compile(r"""(?<![\w'"`])(['"`])(.{8,1000}?)\1(?!\w)""", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.])\d{2,12}(?![\w.]*\w)")
_NAME = re.compile(r"[A-Za-z_]\w*")


class ProviderWords:
    """The words of one refusal of the request whose wire form is `body`."""

    def __init__(self, refusal: UpstreamRefused, body: bytes) -> None:
        self._refusal = refusal
        self._body = body
        self._left = _MOST_WORK

    @cached_property
    def text(self) -> str:
        """What the provider says, with an ellipsis in place of each quotation of the request."""
        said = _said(self._refusal)[:_LONGEST]
        tails = [one[place:] for one in _SENTENCE_END.split(said) for place in _tail_places(one)]
        for phrase in dict.fromkeys((*(found[2] for found in _QUOTE.finditer(said)), *tails)):
            if self.quotes(phrase):
                said = said.replace(phrase, "…")
        return said

    def quotes(self, phrase: str) -> bool:
        """Whether some words of the text stand in the request too, so that nobody knows whose they are."""
        if not _is_phrase(phrase):
            return False
        self._left -= len(self._body)
        request = self._request_letters if self._left > 0 else None
        return request is None or _letters(phrase) in request

    def is_about_relation(self, own: Collection[str] = ()) -> bool:
        """Whether the words are about how a field goes with others, and not about the field alone.

        So are words of comparison and of company, and a name or a number of another field than those in `own`.
        """
        text = self.text
        if not text or builtin_field_refusals().is_about_relation(text):
            return True
        names = self.fields.keys() - {*own, *builtin_field_refusals().everywhere}
        if not names.isdisjoint(_NAME.findall(text)):
            return True
        numbers = {
            bytes(value).decode() for name, value in self.fields.items() if name not in own and _is_number(value)
        }
        return not numbers.isdisjoint(_NUMBER.findall(text))

    def is_value(self, name: str) -> bool:
        """Whether the request has a text that is just this name: then nobody knows which of the two a refusal means."""
        quoted = re.escape(msgspec.json.encode(name))
        return re.search(quoted + rb"(?!\s*:)", self._body) is not None

    @cached_property
    def fields(self) -> Fields:
        """The outermost fields of the request, none of them decoded."""
        return fields_of(self._body)

    @cached_property
    def _request_letters(self) -> bytes | None:
        """The letters and digits of the request, small; None where it is too long to look through."""
        body = self._body
        if b"\\u" in body:
            if len(body) > _LARGEST_ESCAPED:
                return None
            try:
                body = msgspec.json.encode(msgspec.json.decode(body))
            except msgspec.MsgspecError:
                return None
        return body.translate(None, _DROPPED).lower()


def fields_of(body: bytes | msgspec.Raw) -> Fields:
    """Return the fields of a JSON object, none of them decoded; none where it is no object."""
    try:
        return msgspec.json.decode(body, type=Fields)
    except (msgspec.MsgspecError, RecursionError):
        return {}


def _said(refusal: UpstreamRefused) -> str:
    """Return the message, what the server behind a router said, and the places of fields in lists of errors."""
    parts = [*_texts(_parsed(refusal.message)), refusal.hint]
    detail = refusal.detail
    if isinstance(detail, dict) and not isinstance(detail.get("detail"), str):
        parts += _texts(detail.get("detail"))
    elif isinstance(detail, list):
        parts += _texts(detail)
    return "\n".join(dict.fromkeys(filter(None, parts)))


def _parsed(message: str) -> Any:
    if not message.startswith(("[", "{")):
        return message
    try:
        return msgspec.json.decode(message)
    except (msgspec.MsgspecError, RecursionError):
        return message


def _texts(value: Any) -> list[str]:
    """Return what errors in a list say, as FastAPI's servers write them: `loc`, `msg` and `type`. Their `input` is the caller's."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        if "loc" not in value and "msg" not in value:
            inner = value.get("detail") or value.get("message") or value.get("error")
            return [] if inner is None else _texts(inner)
        loc = value.get("loc")
        place = [part for part in loc if isinstance(part, str | int)] if isinstance(loc, list) else []
        said = [f'"loc": {msgspec.json.encode(place).decode()}'] if place else []
        return [*said, *(text for text in (value.get("msg"), value.get("type")) if isinstance(text, str))]
    return [text for one in value[:16] for text in _texts(one)] if isinstance(value, list) else []


def _tail_places(sentence: str) -> list[int]:
    return [0, *(found.end() for found in re.finditer(r": +", sentence))]


def _is_phrase(text: str) -> bool:
    """Whether a text is more than a name or a number."""
    return len(text.split(None, 2)) > 1 and len(_letters(text)) >= _LEAST_QUOTED


def _letters(text: str) -> bytes:
    return text.encode("utf-8", "replace").translate(None, _DROPPED).lower()


def _is_number(value: msgspec.Raw) -> bool:
    held = memoryview(value)
    return 1 < len(held) < 13 and bytes(held).isdigit()

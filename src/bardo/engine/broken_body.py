"""Read what came of a whole body that broke off, so that the tokens in it are counted: its JSON is closed where it ends."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.streams.frames import Frame
from bardo.values.events import ContentChunk, Event, Failed, Finish

_MOST_BYTES = 1 << 20
"""How much of a body is read as JSON; what is behind it counts as text."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\[^u]|\\u[0-9a-fA-F]{4})*+("?)|[{}\[\]]')
_HALF_PAIR = re.compile(r"\\u[dD][89aAbB][0-9a-fA-F]{2}\Z")
_LAST_WORD = re.compile(r"(?<![\w.+-])[\w.+-]*\Z")
_CLOSING = {"{": "}", "[": "]"}


def events_of_broken_body(body: bytes, row: ProviderRow) -> Sequence[Event]:
    """Return what a model had said by a body that broke off, and what was counted; nothing that says that it ended."""
    text = body[:_MOST_BYTES].decode("utf-8", "ignore")
    events: list[Event] = []
    for closed in _closed(text):
        data = closed.encode()
        try:
            msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError):
            continue
        events = [*dialect(row.dialect).open_decoder(row).feed(Frame(data, raw=data))]
        break
    rest = body[_MOST_BYTES:].decode("utf-8", "ignore")
    if rest:
        events.append(ContentChunk(0, rest))
    return [event for event in events if not isinstance(event, Failed | Finish)]


def _closed(text: str) -> Sequence[str]:
    """Return the ways in which a JSON text may be closed where it ends: behind a value, a key, a colon or comma, or in a word."""
    open_ones: list[str] = []
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token in _CLOSING:
            open_ones.append(_CLOSING[token])
        elif token in ("}", "]"):
            del open_ones[-1:]
        elif found[1] == "":
            # A text that goes on: half an escape at its end belongs to no token.
            text = _HALF_PAIR.sub("", text[: found.end()]) + '"'
            break
    closing = "".join(reversed(open_ones))
    bare = text.rstrip().removesuffix(",")
    word = _LAST_WORD.sub("", bare)
    return (bare + closing, bare + ":null" + closing, bare + "null" + closing, word + "null" + closing)

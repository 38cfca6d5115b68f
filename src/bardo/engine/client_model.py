"""The model's name in a reply: the one that its client asked for. Claude Code drops signed thinking where another comes back.

The provider's name for it stays in the header `X-Bardo-Model`, in the log and in the receipt.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from bardo.dialects.shared.blocks import RunEncoder, encode_all
from bardo.dialects.shared.dialect import Dialect, ReplyEncoder
from bardo.engine.forwarding import ReplyUpdate
from bardo.engine.route import MAX_MODEL_NAME
from bardo.values.events import Event, ReplyStart
from bardo.values.response import Response

_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.encode


class ClientModelEncoder(RunEncoder):
    """Writes what `inner` writes, with the name `asked` for the model."""

    def __init__(self, inner: ReplyEncoder, asked: str) -> None:
        self._inner = inner
        self._asked = asked
        self.finish = inner.finish

    @property
    def content_type(self) -> str:
        return self._inner.content_type

    @property
    def keep_alive(self) -> bytes:
        return self._inner.keep_alive

    def feed(self, item: Event) -> Sequence[bytes]:
        """Write one event."""
        return self._inner.feed(self._named(item) if type(item) is ReplyStart else item)

    def feed_all(self, items: Sequence[Event]) -> Sequence[bytes]:
        """Write events."""
        kinds = [*map(type, items)]
        place, named = -1, [*items]
        for _ in range(kinds.count(ReplyStart)):
            place = kinds.index(ReplyStart, place + 1)
            named[place] = self._named(named[place])
        return encode_all(self._inner, named)

    def _named(self, start: Any) -> ReplyStart:
        return msgspec.structs.replace(start, model=self._asked)  # type: ignore[no-any-return]


class ForwardedModel:
    """Puts the name `asked` into the frames of a stream that is forwarded.

    A JSON string holds no quote that is not escaped, so the name is found in no text of the model.
    """

    __slots__ = ("_asked", "_field", "_sent", "_swaps")

    def __init__(self, dialect: Dialect, asked: str) -> None:
        self._field = dialect.model_field
        self._asked = asked
        self._sent = ""
        self._swaps: tuple[tuple[bytes, bytes], ...] = ()

    def in_frames(self, update: ReplyUpdate) -> bytes:
        """Return the bytes of an update with the name that was asked for."""
        if self._field and ReplyStart in map(type, update.events):
            for event in update.events:
                if type(event) is ReplyStart and event.model != self._sent:
                    self._learn(event.model)
        raw = update.raw
        for old, new in self._swaps:
            raw = raw.replace(old, new)
        return raw

    def _learn(self, sent: str) -> None:
        self._sent = sent
        self._swaps = _swaps(self._field, sent, self._asked) if sent and sent != self._asked else ()


def with_client_model(body: bytes, dialect: Dialect, response: Response, asked: str) -> bytes:
    """Return a whole reply that is forwarded with the name that was asked for; only this field of the body changes."""
    field, sent = dialect.model_field, response.model
    if not field or not sent or sent == asked:
        return body
    (short, short_new), (long, long_new) = _swaps(field, sent, asked)
    found = body.count(short)
    if found + body.count(long) == 1:
        return body.replace(short, short_new, 1) if found else body.replace(long, long_new, 1)
    # The arguments of a call may hold such a field too.
    try:
        fields = _decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return body
    return _encode({**fields, field: msgspec.Raw(_encode(asked))}) if field in fields else body


def _swaps(field: str, sent: str, asked: str) -> tuple[tuple[bytes, bytes], ...]:
    """Return the bytes that name the model, with and without a space, each with what they become."""
    short = len(sent) <= MAX_MODEL_NAME and len(asked) <= MAX_MODEL_NAME
    return _kept_swaps(field, sent, asked) if short else _new_swaps(field, sent, asked)


def _new_swaps(field: str, sent: str, asked: str) -> tuple[tuple[bytes, bytes], ...]:
    name, old, new = (_encode(text) for text in (field, sent, asked))
    return tuple([(name + colon + old, name + colon + new) for colon in (b":", b": ")])


_kept_swaps = lru_cache(maxsize=512)(_new_swaps)


def named_as_asked(response: Response, asked: str) -> Response:
    """Return a response with the name that was asked for."""
    return msgspec.structs.replace(response, model=asked)

"""Partial answers in a client's stream, as messages of its dialect: for requests with `"include": ["partials"]`.

Each message holds the whole answer so far. The distance between two of them grows with the answer, so that all together have a size in
proportion to the answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from bardo.dialects.shared.dialect import Dialect, ReplyEncoder
from bardo.streams.eventstream import CONTENT_TYPE as EVENT_STREAM
from bardo.values.errors import Unsupported
from bardo.values.events import Event, Failed, Finish, Partial, ReplyStart

_SHARE = 8
_TAKE_MESSAGES = ("text/event-stream", "application/x-ndjson")


class PartialEncoder:
    """Writes what `inner` writes, and partial answers as messages that readers of the dialect pass over."""

    def __init__(self, inner: ReplyEncoder, dialect: Dialect) -> None:
        self._inner = inner
        self._dialect = dialect
        self._start = ReplyStart()
        self._due = 0
        self._waiting: Partial | None = None

    @property
    def content_type(self) -> str:
        return self._inner.content_type

    @property
    def keep_alive(self) -> bytes:
        return self._inner.keep_alive

    def feed(self, item: Event) -> Sequence[bytes]:
        """Write one event."""
        if isinstance(item, Partial):
            self._waiting = item
            return self._partial() if item.size >= self._due else ()
        if isinstance(item, ReplyStart):
            self._start = item
        if isinstance(item, Finish | Failed) and self._waiting is not None:
            return [*self._partial(), *self._inner.feed(item)]
        return self._inner.feed(item)

    def finish(self) -> Sequence[bytes]:
        """Close the stream."""
        return self._inner.finish()

    def _partial(self) -> Sequence[bytes]:
        item, self._waiting = self._waiting, None
        # A JSON array has no place for what is not an element of the reply.
        if item is None or self.content_type not in _TAKE_MESSAGES:
            return ()
        written = self._dialect.encode_partial(item.value, self._start)
        self._due = item.size + len(written) // _SHARE
        return (written,)


def with_partials(encoder: ReplyEncoder, language: Dialect, include: Sequence[str]) -> ReplyEncoder:
    """Return the encoder that writes partial answers too, where they were asked for.

    Raises Unsupported for a stream whose readers take every message for an event of their dialect.
    """
    if "partials" in include and encoder.content_type == EVENT_STREAM:
        raise Unsupported("a binary event stream has no place for partial answers", hint="leave them out of `include`")
    return PartialEncoder(encoder, language) if "partials" in include else encoder

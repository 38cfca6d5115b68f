"""A typed answer while it grows, as events of its own in a client's stream: for those who ask for `"include": ["partials"]`.

Each event holds the whole answer so far, so they come at growing distances: together they cost no more than the answer is long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.dialects.base import ReplyEncoder
from bardo.dialects.timestamps import stamp_of
from bardo.streams.eventstream import CONTENT_TYPE as EVENT_STREAM
from bardo.streams.ndjson import encode_ndjson
from bardo.streams.sse import encode_sse
from bardo.values.errors import Unsupported
from bardo.values.events import Event, Failed, Finish, Partial, ReplyStart

_SHARE = 8
_EMPTY = {"role": "assistant", "content": ""}
_EPOCH = "1970-01-01T00:00:00Z"


class PartialEncoder:
    """Writes what `inner` writes, and partial answers in the manner of its dialect, where readers pass over what they do not know."""

    def __init__(self, inner: ReplyEncoder, dialect: str) -> None:
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
        written = b"" if item is None else self._frame({"partial": item.value})
        self._due = (0 if item is None else item.size) + len(written) // _SHARE
        return (written,) if written else ()

    def _frame(self, bardo: dict[str, Any]) -> bytes:
        match self._dialect:
            case "openai_chat":
                start = self._start
                head = {"id": start.id, "object": "chat.completion.chunk", "created": start.created or 0}
                return _sse({**head, "model": start.model, "choices": [], "bardo": bardo})
            case "gemini":
                # A JSON array cannot be spoken into from outside.
                return _sse({"bardo": bardo}) if self.content_type == "text/event-stream" else b""
            case "ollama" | "ollama_generate":
                said = {"response": ""} if self._dialect == "ollama_generate" else {"message": _EMPTY}
                head = {"model": self._start.model, "created_at": stamp_of(self._start.created) or _EPOCH}
                return encode_ndjson(msgspec.json.encode({**head, **said, "done": False, "bardo": bardo}))
        return _sse({"type": "bardo.partial", **bardo}, "bardo.partial")


def _sse(body: dict[str, Any], name: str = "") -> bytes:
    data = msgspec.json.encode(body)
    return encode_sse(data, name) if name else encode_sse(data)


def with_partials(encoder: ReplyEncoder, dialect: str, include: Sequence[str]) -> ReplyEncoder:
    """Return the encoder that writes partial answers too, where they were asked for.

    Raises Unsupported for a stream whose readers take every message for an event of their dialect.
    """
    if "partials" in include and encoder.content_type == EVENT_STREAM:
        raise Unsupported("a binary event stream has no place for partial answers", hint="leave them out of `include`")
    return PartialEncoder(encoder, dialect) if "partials" in include else encoder

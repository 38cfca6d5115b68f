"""A reply whose first frame tells which of OpenAI's two languages it is in.

Hosts of Responses answer for some models, and on some routes, in Chat Completions all the same (Bedrock's mantle, xAI).
"""

from __future__ import annotations

from collections.abc import Sequence

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.dialects.base import PlainReplyDecoder, ReplyDecoder
from bardo.dialects.lenient import decode_leniently
from bardo.dialects.openai_responses.decode_reply import OutputDecoder
from bardo.streams.frames import Frame
from bardo.values.events import Event


class DetectedDialectReply(PlainReplyDecoder):
    """Reads one reply in the language it turns out to be in."""

    def __init__(self, row: ProviderRow) -> None:
        self._row = row
        self._reader: ReplyDecoder | None = None

    @property
    def over(self) -> bool:
        """Whether the reply said its last event."""
        return self._reader is not None and self._reader.over

    @property
    def complete(self) -> bool:
        """Whether the reply may end here."""
        return self._reader is not None and self._reader.complete

    def feed(self, item: Frame) -> Sequence[Event]:
        """Return what the frame says."""
        if self._reader is None:
            if item.data is None:
                return ()
            self._reader = self._choose(item.data)
        return self._reader.feed(item)

    def read_plain_frame(self, item: Frame) -> Sequence[Event] | None:
        """Return the event of a frame that only continues what the one before said."""
        reader = self._reader
        return reader.read_plain_frame(item) if type(reader) is OutputDecoder else None

    def finish(self) -> Sequence[Event]:
        """Close the reply."""
        return (self._reader or OutputDecoder(self._row)).finish()

    def _choose(self, data: bytes) -> ReplyDecoder:
        return dialect("openai_chat").open_decoder(self._row) if _is_chat(data) else OutputDecoder(self._row)


def _is_chat(data: bytes) -> bool:
    if b'"choices"' not in data:
        return False
    try:
        body = decode_leniently(data)
    except ValueError:
        return False
    return isinstance(body, dict) and isinstance(body.get("choices"), list) and "output" not in body

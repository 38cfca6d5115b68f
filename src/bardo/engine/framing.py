"""Which framing cuts which reply into frames."""

from __future__ import annotations

from collections.abc import Callable

from bardo.dialects.base import Framing
from bardo.streams.eventstream import EventStreamDecoder
from bardo.streams.frames import Frame, WholeBody
from bardo.streams.json_array import JsonArrayDecoder
from bardo.streams.ndjson import NdjsonDecoder
from bardo.streams.sse import SseDecoder
from bardo.streams.stage import Stage

_DECODERS: dict[Framing, Callable[[], Stage[bytes, Frame]]] = {
    "sse": SseDecoder,
    "ndjson": NdjsonDecoder,
    "json_array": JsonArrayDecoder,
    "eventstream": EventStreamDecoder,
}


def open_framing(framing: Framing, *, streamed: bool) -> Stage[bytes, Frame]:
    """Begin to cut one reply: a whole one is one frame."""
    return _DECODERS[framing]() if streamed else WholeBody()

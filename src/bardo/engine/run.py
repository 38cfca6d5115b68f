"""Read the frames of a stream that are alike in one go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from bardo.dialects.base import RepeatingDecoder, ReplyDecoder
from bardo.streams.frames import Frame
from bardo.streams.sse import SseDecoder
from bardo.streams.stage import Stage
from bardo.values.events import Event


class Run:
    """The framing and the decoder of one reply, where both can do so."""

    __slots__ = ("_decoder", "framing")

    def __init__(self, framing: SseDecoder, decoder: RepeatingDecoder) -> None:
        self.framing = framing
        self._decoder = decoder

    @classmethod
    def of(cls, framing: Stage[bytes, Frame], decoder: ReplyDecoder) -> Self | None:
        """Return the run of these two, None where one of them reads frame by frame."""
        both = isinstance(framing, SseDecoder) and isinstance(decoder, RepeatingDecoder)
        return cls(framing, decoder) if both else None  # type: ignore[arg-type]

    def read(self, chunk: bytes, *, joined: bool) -> tuple[Sequence[Event], int] | None:
        """Return the events of the frames that `chunk` begins with, and where they end; None where it must be fed."""
        around = self._decoder.repeated()
        if around is None:
            return None
        values, end = self.framing.run(chunk, *around)
        events = self._decoder.again(values, joined=joined) if values else None
        return None if events is None else (events, end)

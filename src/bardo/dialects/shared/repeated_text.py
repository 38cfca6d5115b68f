"""Frames that are the one before with another text, in a dialect whose plain deltas say nothing but which block they continue.

The bytes around the text are kept from one such frame. As long as frames have the same bytes there, nothing else in them is new.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import msgspec

from bardo.streams.frames import Frame
from bardo.streams.sse import FrameEnds
from bardo.values.events import Event

# A stream whose frames never repeat costs this many tries.
_MOST_TRIES = 8
_PROBE = "\x1abardo\x1a"
_PROBE_BYTES = msgspec.json.encode(_PROBE)
_encode = msgspec.json.Encoder().encode
_text_of = msgspec.json.Decoder(str).decode
_texts_of = msgspec.json.Decoder(list[str]).decode


def is_text(value: bytes) -> bool:
    """Whether a JSON value is a text."""
    try:
        _text_of(value)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return True


def texts_of(values: Sequence[bytes]) -> list[str] | None:
    """Return the texts that JSON values are, None where one of them is none."""
    try:
        # No text holds a line end, so two broken ones cannot make a sound one.
        texts = [_text_of(values[0])] if len(values) == 1 else _texts_of(b"[" + b",\n".join(values) + b"]")
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return texts if len(texts) == len(values) else None


class RepeatedText:
    """Knows the bytes around the text of the frames that repeat: `around`, None where nothing is known to repeat.

    `read` returns what a frame continues and its text, and None for a frame that is more than a plain delta.
    """

    __slots__ = ("_block", "_make", "_read", "_tries", "around")

    def __init__(self, read: Callable[[bytes], tuple[Hashable, str] | None]) -> None:
        self.around: FrameEnds | None = None
        self._read = read
        self._block: Hashable = None
        self._make: Callable[[str], Event] | None = None
        self._tries = _MOST_TRIES

    def note(self, item: Frame, block: Hashable, text: str) -> bool:
        """Take notice of a plain delta that continues `block`. Return whether that is another block than before: then `follow` it."""
        known, around = block == self._block, self.around
        if known and (around is None or not item.raw.startswith(around.begin)):
            self._learn(item, text)
        return not known

    def follow(self, block: Hashable, make: Callable[[str], Event]) -> None:
        """Read what continues `block` from now on; `make` returns the event of a text."""
        self._block, self._make, self.around = block, make, None

    def event(self, text: str) -> Event:
        """Return the event of a text of the block that is followed."""
        assert self._make is not None
        return self._make(text)

    def forget(self) -> None:
        """Forget the frames: a block may have ended."""
        self.around = self._block = self._make = None

    def again(self, values: Sequence[bytes], *, joined: bool) -> Sequence[Event] | None:
        """Return the events of frames with these values as their text, `joined` into one; None where one of them is no text."""
        texts, make = texts_of(values), self._make
        if texts is None or make is None:
            return None
        self._tries = _MOST_TRIES
        return [make("".join(texts))] if joined else [make(text) for text in texts]

    def _learn(self, item: Frame, text: str) -> None:
        """Keep the bytes around the text, if another text in its place changes nothing else."""
        if self._tries <= 0 or item.data is None:
            return
        self._tries -= 1
        head, quoted, tail = item.data.partition(_encode(text))
        if quoted and self._read(head + _PROBE_BYTES + tail) == (self._block, _PROBE):
            self.around = FrameEnds(head, tail, item.event)

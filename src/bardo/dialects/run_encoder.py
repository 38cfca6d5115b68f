"""Encoders that write many events of a reply in one go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bardo.values.events import Event
from bardo.values.runs import MANY, runs_of

if TYPE_CHECKING:
    from bardo.dialects.base import ReplyEncoder


class RunEncoder:
    """An encoder that writes many events in one go: what is done once for pieces of one text costs next to nothing for each."""

    def feed(self, item: Event) -> Sequence[bytes]:
        """Return the frames of one event."""
        raise NotImplementedError

    def go_on(self, first: Event, further: Sequence[Event]) -> Sequence[bytes] | None:
        """Return the frames of pieces that go on with the text of `first`, which was fed just before; None where each is to be fed."""
        return None

    def feed_all(self, items: Sequence[Event]) -> Sequence[bytes]:
        """Return the frames of these events, those that `feed` returns for one after the other."""
        out: list[bytes] = []
        for first, *further in runs_of(items):
            out += self.feed(first)
            frames = self.go_on(first, further) if further else ()
            out += _fed(self, further) if frames is None else frames
        return out


def encode_all(encoder: ReplyEncoder, items: Sequence[Event]) -> Sequence[bytes]:
    """Return the frames of these events."""
    if len(items) >= MANY and isinstance(encoder, RunEncoder):
        return encoder.feed_all(items)
    return _fed(encoder, items)


def _fed(encoder: ReplyEncoder | RunEncoder, items: Sequence[Event]) -> Sequence[bytes]:
    return [written for item in items for written in encoder.feed(item)]

"""Encoders that write many events of a reply in one go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bardo.values.events import Event
from bardo.values.runs import MANY

if TYPE_CHECKING:
    from bardo.dialects.base import ReplyEncoder


class RunEncoder:
    """An encoder that writes many events in one go: what is done once for pieces of one text costs next to nothing for each."""

    def feed_all(self, items: Sequence[Event]) -> Sequence[bytes]:
        """Return the frames of these events, those that `feed` returns for one after the other."""
        raise NotImplementedError


def encode_all(encoder: ReplyEncoder, items: Sequence[Event]) -> Sequence[bytes]:
    """Return the frames of these events."""
    if len(items) >= MANY and isinstance(encoder, RunEncoder):
        return encoder.feed_all(items)
    return [written for item in items for written in encoder.feed(item)]

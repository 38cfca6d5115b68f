"""Ids for the calls of a reply whose frames go to a client as they came, and whose provider left the ids out.

A client answers a call by its id. In these dialects each frame that holds a call is mended in its place; Chat's streams are written anew
from such a frame on, since the frames of its calls can be of several calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from bardo.dialects.lenient import decode_leniently
from bardo.streams.frames import Frame
from bardo.streams.sse import encode_sse


@dataclass(frozen=True, slots=True)
class CallsInFrames:
    """Where calls stand in a dialect's frames, whole bodies among them.

    `marker` is in every frame that holds a call, and in few others. `find` returns the calls of a frame: each one's place in the reply, its
    object, and the name of the field for its id.
    """

    marker: bytes
    find: Callable[[dict[str, Any]], Iterable[tuple[int, dict[str, Any], str]]]


class FillCallIds:
    """Writes an id into each call of one reply that has none: a call that stands in several frames has the same in each."""

    def __init__(self, calls: CallsInFrames, make_id: Callable[[], str]) -> None:
        self._calls = calls
        self._make_id = make_id
        self._ids: dict[int, str] = {}

    def feed(self, item: Frame) -> Frame:
        """Return the frame with all ids: itself, unless one was missing."""
        data = item.data
        if data is None or self._calls.marker not in data or not item.complete:
            return item
        try:
            payload = decode_leniently(data)
        except (ValueError, RecursionError):
            return item
        if not isinstance(payload, dict) or not self._fill(payload):
            return item
        filled = msgspec.json.encode(payload)
        return Frame(filled, item.event, filled if item.raw is data else encode_sse(filled, item.event))

    def _fill(self, payload: dict[str, Any]) -> bool:
        filled = False
        for place, call, name in self._calls.find(payload):
            if not call.get(name):
                if place not in self._ids:
                    self._ids[place] = self._make_id()
                call[name] = self._ids[place]
                filled = True
        return filled

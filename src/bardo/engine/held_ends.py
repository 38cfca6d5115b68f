"""Frames that end a call, of a stream that is forwarded: held until the call is known to be complete.

A program executes a call as soon as its dialect tells the end, and some providers tell it where the reply broke off.
"""

from __future__ import annotations

from collections.abc import Sequence

from bardo.engine.reply_stages import CallIds
from bardo.values.events import Event, Finish, ToolCallEnd


class HeldEnds:
    """Holds the frames of one reply from the one on that ends a call which is not known to be complete, in their order.

    That is one frame for most calls without arguments, and none for others. `ids` knows the calls. `announcement` is in frames that tell
    all the arguments of a call before the one that ends it; empty where a dialect has none.
    """

    __slots__ = ("_announced", "_announcement", "_held", "_ids")

    def __init__(self, ids: CallIds, announcement: bytes) -> None:
        self._ids = ids
        self._announcement = announcement
        self._announced = False
        self._held: list[tuple[bytes, Sequence[ToolCallEnd], bool]] = []

    @property
    def holds(self) -> bool:
        """Whether a frame is held."""
        return bool(self._held)

    def feed(self, raw: bytes, decoded: Sequence[Event]) -> bytes:
        """Return the bytes that may be sent once a frame has been read, of which `decoded` was read."""
        ids = self._ids
        if not ids.calls:
            return raw
        announces = bool(self._announcement) and self._announcement in raw and ids.torn
        ends = [event for event in decoded if type(event) is ToolCallEnd]
        self._announced |= announces
        if Finish in map(type, decoded):
            # The frame that says why the reply ends is no end of a call.
            ends, announces = [], False
        self._held.append((raw, ends, announces))
        if ids.waits or (self._announced and ids.torn):
            return b""
        return self.released()

    def released(self) -> bytes:
        """Return what was held, without the ends of calls in which the reply broke off."""
        held, self._held, self._announced = self._held, [], False
        broke_off = self._ids.broke_off
        return b"".join([
            raw for raw, ends, announces in held if not (any(map(broke_off, ends)) or (announces and self._ids.cut))
        ])  # fmt: skip

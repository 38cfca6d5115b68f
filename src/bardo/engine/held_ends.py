"""Frames that end a call, of a stream that is forwarded: held until the call is known to be complete.

A program executes a call as soon as its dialect tells the end, and some providers tell it where the reply broke off.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from bardo.engine.reply_stages import CallArguments
from bardo.streams.frames import Frame
from bardo.streams.sse import encode_sse
from bardo.values.events import Event, Finish, ToolCallEnd

WithoutCalls = Callable[[bytes, Collection[int]], bytes]


class _HeldFrame(NamedTuple):
    """A frame, the ends of calls in it, whether it `announces` all the arguments of a call before its end, and whether it is the last."""

    frame: Frame
    ends: Sequence[ToolCallEnd]
    announces: bool
    is_last: bool


class HeldEnds:
    """Holds the frames of one reply from the one on that ends a call which is not known to be complete, in their order.

    That is one frame for most calls without arguments, and none for others. `calls` are those of the reply. `tells_call` says of a frame
    whether it tells all the arguments of a call in another way than by its end; None where no frame of a dialect does. `without_calls`
    takes calls out of a frame that may hold other things; None where a frame that ends a call holds nothing else. `with_broken_calls` says
    in the frame that ends a reply which of its calls broke off; None where no such frame holds calls.
    """

    __slots__ = ("_announced", "_calls", "_held", "_tells_call", "_with_broken_calls", "_without_calls")

    def __init__(
        self,
        calls: CallArguments,
        tells_call: Callable[[bytes], bool] | None,
        without_calls: WithoutCalls | None = None,
        with_broken_calls: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self._calls = calls
        self._with_broken_calls = with_broken_calls
        self._tells_call = tells_call
        self._without_calls = without_calls
        self._announced = False
        self._held: list[_HeldFrame] = []

    @property
    def holds(self) -> bool:
        """Whether a frame is held."""
        return bool(self._held)

    def feed(self, frame: Frame, decoded: Sequence[Event]) -> bytes:
        """Return the bytes that may be sent once a frame has been read, of which `decoded` was read."""
        calls = self._calls
        if not calls.begun:
            return frame.raw
        announces = self._tells_call is not None and self._tells_call(frame.raw) and calls.torn
        ends = [event for event in decoded if type(event) is ToolCallEnd]
        self._announced |= announces
        is_last = Finish in map(type, decoded)
        if self._without_calls is None and is_last:
            # The frame that says why the reply ends is no end of a call.
            ends, announces = [], False
        self._held.append(_HeldFrame(frame, ends, announces, is_last))
        if calls.waits or (self._announced and calls.torn):
            return b""
        return self.released()

    def released(self) -> bytes:
        """Return what was held, without the ends of calls in which the reply broke off."""
        held, self._held, self._announced = self._held, [], False
        return b"".join(map(self._sound, held))

    def _sound(self, held: _HeldFrame) -> bytes:
        """Return a frame without calls that broke off: what else it says stays, also why the reply ended."""
        frame = held.frame
        if held.is_last and self._with_broken_calls is not None and frame.data is not None and self._calls.cut:
            return _with_data(frame, self._with_broken_calls(frame.data))
        broken = [place for place, end in enumerate(held.ends) if self._calls.broke_off(end)]
        if not broken:
            return b"" if held.announces and self._calls.cut else frame.raw
        if self._without_calls is None or frame.data is None:
            return b""
        return _with_data(frame, self._without_calls(frame.data, broken))


def _with_data(frame: Frame, data: bytes) -> bytes:
    """Return the bytes of a frame with other data. Data of several lines stands in an event of its own."""
    if frame.data is not None and frame.data in frame.raw:
        return frame.raw.replace(frame.data, data, 1)
    return encode_sse(data, frame.event)

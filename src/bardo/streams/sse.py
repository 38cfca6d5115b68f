"""Server-sent events: bytes to frames and back.

Follows the WHATWG rules (any of LF, CR, CRLF; comments; several data lines; a byte-order mark) for bytes cut anywhere. Each frame keeps
the bytes it stood in, so that a stream can be forwarded untouched. What remains at the end of a stream is given as an incomplete frame:
some servers leave out the last blank line, and a cut stream must be told from a finished one by who reads the payload.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bardo.streams.frames import MAX_FRAME_BYTES, Frame, OversizedFrame

_BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
# Two line ends that are not both CRLF hold one of these; looking for them takes a tenth of the time of the expression.
_OTHER_BLANK_LINES = (b"\n\n", b"\n\r", b"\r\r")
_LINE_END = re.compile(rb"\r\n|\n|\r")
_SOUGHT_BYTES = 32
# Bytes in which the end of a frame is looked for at first: in all that is there, for each frame, would take more than linear time.
_NEAR = 8192
# Bytes up to which an item is looked at as one frame first.
_LONGEST_ALONE = 4096
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class FrameEnds:
    """The bytes of a frame around its value: `head` and `tail` of its data, and `event`, the name that it is sent under.

    `filled`: behind the tail stands a string of random letters, which ends the object.
    """

    __slots__ = ("begin", "begins", "end", "ends", "filled")

    def __init__(self, head: bytes, tail: bytes, event: str = "", *, filled: bool = False) -> None:
        self.filled = filled
        name = b"event: " + event.encode() + b"\n" if event else b""
        self.begin = name + b"data: " + head
        self.end = tail if filled else tail + b"\n\n"
        self.begins, self.ends = len(self.begin), len(self.end)


class SseDecoder:
    """Bytes in, frames out. Linear in the stream; holds at most one frame."""

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._held = bytearray()
        self._scanned = 0
        self._limit = limit
        self._carriage_returns = False
        self._at_start = True
        self._oversized = False
        self._refused = False

    def feed(self, item: bytes) -> Sequence[Frame]:
        """Return the frames that `item` completes.

        Raises OversizedFrame where one grows past the limit; frames before it are given first, and the next call raises.
        """
        if self._oversized:
            raise self._refusal()
        if not self._carriage_returns and b"\r" in item:
            self._carriage_returns = True
        held = self._held
        if held or self._at_start:
            held += item
            if self._at_start and not self._pass_byte_order_mark():
                return ()
            if self._end(held, self._scanned) < 0:
                return self._hold(b"", [])
            item = bytes(held)
            held.clear()
        return self._split(item)

    def held_until(self, item: bytes) -> int:
        """Return how much of `item` is to be fed before its next frame begins with its first byte, 0 where it does so already."""
        if not self._held:
            return 0
        end = item.find(b"\n\n")
        return end + 2 if end >= 0 else len(item)

    def run(self, item: bytes, place: int, around: FrameEnds) -> tuple[Sequence[bytes], int]:
        """Return what stands between the head and the tail of the frames at `place` of `item`, and where the last of these frames ends.

        Frames that are alike are so cut in one go, and need not be fed; `place` where there is none. What stands between is not looked
        at: where it holds a line end, it was no such frame, and all from `place` on is to be fed.
        """
        begin = around.begin
        if (
            not item.startswith(begin, place)
            or self._held
            or self._carriage_returns
            or b"\r" in item
            or len(item) > self._limit
        ):
            return (), place
        if around.filled:
            return _filled_frames(item, place, around)
        end, value = around.end, place + len(begin)
        if (
            len(item) - place < _LONGEST_ALONE
            and item.endswith(end, value)
            and item.find(b"\n\n", value) == len(item) - 2
        ):
            return (item[value : len(item) - len(end)],), len(item)
        *values, last = _between(item[value:], end + begin)
        stop = last.find(end)
        if stop < 0:
            return values, max(place, len(item) - len(last) - len(begin))
        values.append(last[:stop])
        return values, len(item) - len(last) + stop + len(end)

    def end_of(self, item: bytes, place: int, frames: int) -> int:
        """Return where so many frames from `place` on end in `item`; its length where they do not."""
        for _ in range(frames):
            place = item.find(b"\n\n", place) + 2
            if place < 2:
                return len(item)
        return place

    def finish(self) -> Sequence[Frame]:
        """Return what was left without a closing blank line, as an incomplete frame. Raises OversizedFrame where no `feed` did."""
        if self._oversized and not self._refused:
            raise self._refusal()
        rest = bytes(self._held)
        self._held.clear()
        complete = 0 < len(rest) == self._end(rest, 0, final=True)
        return (_parse(rest, complete=complete),) if rest.strip() else ()

    def _pass_byte_order_mark(self) -> bool:
        held = self._held
        if len(held) < 3 and _BYTE_ORDER_MARK.startswith(held):
            return False
        if held.startswith(_BYTE_ORDER_MARK):
            del held[:3]
        self._at_start = False
        return True

    def _split(self, data: bytes) -> list[Frame]:
        """Return the frames of `data`, and hold what remains."""
        frames: list[Frame] = []
        limit = self._limit
        line = b"\r\n" if self._carriage_returns else b"\n"
        if self._carriage_returns and not data.count(b"\r") == data.count(b"\n") == data.count(line):
            begin = 0
            while begin < len(data) and (end := self._end(data, begin)) >= 0:
                if end - begin > limit:
                    return self._stop(frames)
                frames.append(_parse(data[begin:end]))
                begin = end
            return self._hold(data[begin:], frames) if begin < len(data) else frames
        blank, named = line + line, line + b"data: "
        *bodies, rest = data.split(blank)
        for body in bodies:
            if len(body) + len(blank) > limit:
                return self._stop(frames)
            # One line of data, or two lines of a named event, as most servers write them.
            lines = body.count(line)
            if not lines and body.startswith(b"data: "):
                frames.append(Frame(body[6:], "", body + blank, True, True))
            elif lines == 1 and body.startswith(b"event: ") and (place := body.find(named)) >= 0:
                name = body[7:place]
                event, value = name.decode("utf-8", "replace"), body[place + len(named) :]
                frames.append(Frame(value, event, body + blank, True, name.isascii()))
            else:
                frames.append(_parse(body + blank))
        return self._hold(rest, frames) if rest else frames

    def _hold(self, rest: bytes, frames: list[Frame]) -> list[Frame]:
        """Keep the beginning of a frame, and pass on those before it."""
        self._held += rest
        # A blank line can span the cut: its last three bytes are looked at again.
        self._scanned = max(0, len(self._held) - 3)
        return self._stop(frames) if len(self._held) > self._limit else frames

    def _stop(self, frames: list[Frame]) -> list[Frame]:
        self._oversized = True
        if not frames:
            raise self._refusal()
        return frames

    def _refusal(self) -> OversizedFrame:
        self._refused = True
        return OversizedFrame(self._limit)

    def _end(self, data: bytes | bytearray, start: int, *, final: bool = False) -> int:
        """Return where the first blank line from `start` on ends, -1 where there is none yet."""
        if not self._carriage_returns:
            end = data.find(b"\n\n", start)
            return end + 2 if end >= 0 else -1
        place = data.find(b"\r\n\r\n", start, start + _NEAR)
        if place >= 0 and all(data.find(other, start, place + 2) < 0 for other in _OTHER_BLANK_LINES):
            return place + 4
        match = _BLANK_LINE.search(data, start)
        if match is None or (match.end() == len(data) and data.endswith(b"\r") and not final):
            # The other half of a CRLF may follow.
            return -1
        return match.end()


def _parse(raw: bytes, *, complete: bool = True) -> Frame:
    data: list[bytes] = []
    event = ""
    for line in _LINE_END.split(raw):
        name, colon, value = line.partition(b":")
        if colon and value.startswith(b" "):
            value = value[1:]
        if name == b"data":
            data.append(value)
        elif name == b"event":
            event = value.decode("utf-8", "replace")
    around = len(raw) - sum(map(len, data)) - (2 + bool(event) if raw.endswith(b"\r\n\r\n") else 0)
    plain = len(b"event: \ndata: \n\n") + len(event) if event else len(b"data: \n\n")
    alone = complete and len(data) == 1 and event.isascii() and around == plain
    return Frame(b"\n".join(data) if data else None, event, raw, complete, alone)


def encode_sse(data: bytes, event: str = "") -> bytes:
    """Write one frame. `data` is one line of JSON; other line ends in it become several data lines."""
    if b"\n" in data or b"\r" in data:
        data = b"\ndata: ".join(_LINE_END.split(data))
    if event:
        return b"event: " + event.encode() + b"\ndata: " + data + b"\n\n"
    return b"data: " + data + b"\n\n"


KEEP_ALIVE = b": keep-alive\n\n"
"""A comment, which readers skip."""


def _filled_frames(item: bytes, place: int, around: FrameEnds) -> tuple[list[bytes], int]:
    """Return the values of the frames at `place` that end with random letters, and where the last of these frames ends."""
    begin, values = around.begin, []
    size, stop = len(begin), item.find(b"\n\n", place)
    while stop >= 0 and item.startswith(begin, place):
        value, separator, filler = item[place + size : stop].partition(around.end)
        if not separator or not filler.endswith(b'"}') or not (filler[:-2].isalnum() or len(filler) == 2):
            break
        values.append(value)
        place = stop + 2
        stop = item.find(b"\n\n", place)
    return values, place


def _between(data: bytes, mark: bytes) -> list[bytes]:
    """Return what stands between the marks; what follows a place where only the beginning of a mark stands is one piece.

    Looking for a few bytes takes a fraction of the time of looking for the hundreds that a frame has around its text.
    """
    sought, rest = mark[:_SOUGHT_BYTES], mark[_SOUGHT_BYTES:]
    first, *others = data.split(sought)
    size, sound = len(rest), len(others)
    # The frames that end a reply often hold the beginning of the mark.
    while sound and not others[sound - 1].startswith(rest):
        sound -= 1
    values = [first, *[piece[size:] for piece in others[:sound]]]
    # Comparing all at once takes a fifth of the time of looking at the beginning of each.
    if not data.startswith(mark.join(values)):
        sound = next(count for count, piece in enumerate(others) if not piece.startswith(rest))
        values = values[: sound + 1]
    if sound < len(others):
        values[-1] = sought.join([values[-1], *others[sound:]])
    return values

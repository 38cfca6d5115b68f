"""What can be wrong with an upstream's reply, as a table: each fault makes the answer that a transport gives.

A fault that is `harmless` spoils nothing: the whole reply must arrive all the same.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from bardo.adapters.net.fake import FakeReply
from bardo.streams.eventstream import EventStreamDecoder, encode_message
from bardo.values.errors import BardoError, BrokenStream, Unreachable, UpstreamTimeout
from support.upstream_replies import UpstreamReply

Given = FakeReply | BardoError
Chunk = bytes | BardoError | asyncio.Event
Make = Callable[[UpstreamReply, bool], Given]
CUT = BrokenStream("the connection closed before its end")
STALLED = UpstreamTimeout("it stopped sending")
PAGE = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>Please sign in\x1b[31m</body></html>\n"
STATUSES = (400, 401, 403, 404, 405, 408, 409, 413, 418, 422, 425, 429, 451, 500, 501, 502, 503, 504, 520, 529, 599)


@dataclass(frozen=True)
class Fault:
    """One fault, by name."""

    name: str
    make: Make
    harmless: bool = False

    def __str__(self) -> str:
        return self.name


def head(reply: UpstreamReply, stream: bool) -> dict[str, str]:
    return {"content-type": reply.content_type if stream else "application/json"}


def pieces(reply: UpstreamReply, stream: bool) -> list[bytes]:
    return list(reply.frames) if stream else [reply.whole]


def given(reply: UpstreamReply, stream: bool, chunks: Sequence[Chunk]) -> FakeReply:
    return FakeReply(headers=head(reply, stream), chunks=chunks)


def _status(status: int, body: bytes | None, kind: str = "application/json") -> Make:
    return lambda reply, _: FakeReply(
        status=status, headers={"content-type": kind}, chunks=[reply.error if body is None else body]
    )


def _body(body: bytes) -> Make:
    return lambda reply, stream: given(reply, stream, [body])


def _typed(kind: str | None, body: Callable[[UpstreamReply, bool], bytes]) -> Make:
    headers = {} if kind is None else {"content-type": kind}
    return lambda reply, stream: FakeReply(headers=headers, chunks=[body(reply, stream)])


def _own(reply: UpstreamReply, stream: bool) -> bytes:
    return b"".join(pieces(reply, stream))


def _other(reply: UpstreamReply, stream: bool) -> bytes:
    return reply.whole if stream else reply.stream


def _after(count: int, *end: Chunk) -> Make:
    """Break off after some frames, in a whole reply after as many quarters of it."""

    def make(reply: UpstreamReply, stream: bool) -> Given:
        if stream:
            return given(reply, stream, [*reply.frames[:count], *end])
        return given(reply, stream, [reply.whole[: len(reply.whole) * count // 4], *end])

    return make


def _inside(place: int, *end: Chunk) -> Make:
    """Break off inside a frame."""

    def make(reply: UpstreamReply, stream: bool) -> Given:
        frames = pieces(reply, stream)
        cut = frames[min(place, len(frames) - 1)]
        return given(reply, stream, [*frames[:place], cut[: len(cut) // 2], *end])

    return make


def _all(change: Callable[[bytes], Sequence[Chunk]]) -> Make:
    return lambda reply, stream: given(reply, stream, change(_own(reply, stream)))


def _frames(change: Callable[[list[bytes]], Sequence[Chunk]]) -> Make:
    return lambda reply, stream: given(reply, stream, change(pieces(reply, stream)))


def _in_text(put: bytes) -> Make:
    """Put bytes into the answer's text."""
    return lambda reply, stream: given(
        reply,
        stream,
        [
            _rewritten(reply, frame, lambda data: data.replace(b"Fo", b"F" + put + b"o"))
            for frame in pieces(reply, stream)
        ],
    )


def _in_object(put: bytes) -> Make:
    """Put a member into every JSON object of the reply's outermost level."""
    return lambda reply, stream: given(
        reply,
        stream,
        [
            _rewritten(reply, frame, lambda data: data.replace(b"{", b"{" + put + b",", 1))
            for frame in pieces(reply, stream)
        ],
    )


def _retyped(place: int, value: Any) -> Make:
    """Give every outermost member of one frame another value; its type, which says what it is, stays."""

    def change(data: bytes) -> bytes:
        found = msgspec.json.decode(data)
        kept = {name: one if name in ("type", "object") else value for name, one in found.items()}
        return msgspec.json.encode(kept)

    def make(reply: UpstreamReply, stream: bool) -> Given:
        frames = pieces(reply, stream)
        spot = place if place >= 0 else len(frames) + place
        spot = min(max(spot, 0), len(frames) - 1)
        return given(
            reply, stream, [_rewritten(reply, one, change) if at == spot else one for at, one in enumerate(frames)]
        )

    return make


def _rewritten(reply: UpstreamReply, frame: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Return a frame, or a whole body, with its JSON changed."""
    if frame.startswith(b"\0"):
        (read,) = EventStreamDecoder().feed(frame)
        size = int.from_bytes(frame[4:8])
        return encode_message(change(read.data or b""), frame[12 : 12 + size])
    begin, end = frame.find(b"{"), frame.rfind(b"}") + 1
    return frame if begin < 0 else frame[:begin] + change(frame[begin:end]) + frame[end:]


def _sse_only(change: Callable[[bytes], bytes]) -> Make:
    """Change the bytes of an SSE stream, which allows these; others are left alone."""

    def make(reply: UpstreamReply, stream: bool) -> Given:
        body = _own(reply, stream)
        sse = stream and reply.content_type.startswith("text/event-stream")
        return given(reply, stream, [change(body) if sse else body])

    return make


def _moved(frames: list[bytes], place: int, to: int) -> list[bytes]:
    if len(frames) < 2:
        return frames
    rest = [one for at, one in enumerate(frames) if at != place % len(frames)]
    rest.insert(to, frames[place % len(frames)])
    return rest


def _without(frames: list[bytes], place: int) -> list[bytes]:
    return [one for at, one in enumerate(frames) if at != place % len(frames)]


def _twice(frames: list[bytes], place: int) -> list[bytes]:
    place %= len(frames)
    return [*frames[: place + 1], *frames[place:]] if len(frames) > 1 else frames


def _error_event(place: int) -> Make:
    """Put the provider's error object among the frames, as a frame of the same framing."""

    def make(reply: UpstreamReply, stream: bool) -> Given:
        if not stream:
            return given(reply, stream, [reply.error])
        first = reply.frames[0]
        if first.startswith(b"\0"):
            error = _rewritten(reply, first, lambda _: reply.error).replace(b"messageStart", b"messageStart")
        elif reply.content_type.startswith("text/event-stream"):
            error = b"event: error\ndata: " + reply.error + b"\n\n"
        else:
            error = reply.error + b"\n"
        return given(reply, stream, [*reply.frames[:place], error])

    return make


_BODIES: dict[str, bytes] = {
    "empty": b"",
    "blank lines": b"\r\n \n\n",
    "a byte order mark": b"\xef\xbb\xbf",
    "a page": PAGE,
    "plain text": b"upstream connect error or disconnect/reset before headers",
    "compressed unsaid": gzip.compress(b'{"choices": []}', mtime=0),
    "no text": bytes(range(128, 256)) + b"\x1b[2J\0\0",
    "zeros": b"\0" * 40,
    "null": b"null",
    "an array": b"[]",
    "an array of null": b"[null]",
    "an object": b"{}",
    "a string": b'"hello"',
    "a number": b"12",
    "half an object": b'{"id": "c1", "cho',
    "deep nesting": b"[" * 6000,
    "only the end": b"data: [DONE]\n\n",
    "the end of an object": b"}}}\n\n",
    "comments": b": hello\n\n: hello\n\n",
    "pings": b'event: ping\ndata: {"type": "ping"}\n\n',
    "retry": b"retry: 100\n\n",
    "an empty event": b"data:\n\n",
    "two broken events": b"data: {\n\ndata: }\n\n",
    "an error in words": b'{"error": "no slot available"}',
    "an error in detail": b'{"detail": "Not authenticated"}',
}

_HARMLESS: dict[str, Make] = {
    "as it should be": _frames(lambda frames: frames),
    "in one piece": _all(lambda body: [body]),
    "byte by byte": _all(lambda body: [body[at : at + 1] for at in range(len(body))]),
    "in sevens": _all(lambda body: [body[at : at + 7] for at in range(0, len(body), 7)]),
    "empty pieces": _frames(lambda frames: [piece for frame in frames for piece in (b"", frame)]),
    "of no type": _typed(None, _own),
    "as binary": _typed("application/octet-stream", _own),
    "whole for streamed, and streamed for whole": lambda reply, stream: FakeReply(
        headers=head(reply, not stream), chunks=[_other(reply, stream)]
    ),
    "an object called a stream, and a stream called an object": lambda reply, stream: FakeReply(
        headers=head(reply, stream), chunks=[_other(reply, stream)]
    ),
    "a comment first": _sse_only(lambda body: b": hello\n\n" + body),
    "a mark first": _sse_only(lambda body: b"\xef\xbb\xbf" + body),
    "a comment between": _sse_only(lambda body: body.replace(b"\n\n", b"\n\n: alive\n\n")),
    "other line ends": _sse_only(lambda body: body.replace(b"\n", b"\r\n")),
    "old line ends": _sse_only(lambda body: body.replace(b"\n", b"\r")),
    "no space behind the colon": _sse_only(lambda body: body.replace(b"data: ", b"data:")),
    "no last line end": _sse_only(lambda body: body.rstrip(b"\n")),
    "numbered events": _sse_only(lambda body: body.replace(b"data: ", b"id: 1\ndata: ")),
    "the end said twice": _sse_only(lambda body: body + body[body.rstrip(b"\n").rfind(b"\n\n") + 2 :]),
    "left open": lambda reply, stream: given(
        reply, stream, [*pieces(reply, stream), *([asyncio.Event()] if stream and reply.says_end else [])]
    ),
    "stalled behind the end": lambda reply, stream: given(
        reply, stream, [*pieces(reply, stream), *([STALLED] if stream else [])]
    ),
    "cut off behind the end": lambda reply, stream: given(
        reply, stream, [*pieces(reply, stream), *([CUT] if stream else [])]
    ),
    "a member nobody knows": _in_object(b'"x_new": {"a": [1, null]}'),
}


def _table() -> list[Fault]:
    made: dict[str, Make] = {f"status {status}": _status(status, None) for status in STATUSES}
    made |= {f"status 500, {name}": _status(500, body, "text/plain") for name, body in _BODIES.items()}
    made |= {f"status {status}": _status(status, b"") for status in (202, 204, 206, 301, 304)}
    made |= {name: _body(body) for name, body in _BODIES.items()}
    made |= {
        f"as JSON, {name}": _typed("application/json", lambda *_, body=body: body) for name, body in _BODIES.items()
    }
    made["a page called one"] = _typed("text/html", lambda *_: PAGE)
    made["no connection"] = lambda *_: Unreachable("it refuses connections")
    made["no answer in time"] = lambda *_: STALLED
    made["cut before the head"] = lambda *_: CUT
    for count in range(4):
        made[f"over after {count}"] = _after(count)
        made[f"cut after {count}"] = _after(count, CUT)
        made[f"stalled after {count}"] = _after(count, STALLED)
        made[f"over inside {count}"] = _inside(count)
        made[f"cut inside {count}"] = _inside(count, CUT)
        made[f"an error event after {count}"] = _error_event(count)
    for place in (0, 1, 2, -2, -1):
        made[f"without frame {place}"] = _frames(partial(_without, place=place))
        made[f"frame {place} twice"] = _frames(partial(_twice, place=place))
        made[f"frame {place} first"] = _frames(partial(_moved, place=place, to=0))
        values: tuple[Any, ...] = (None, 1, "x", [], {}, [[]])
        for value in values:
            made[f"frame {place} of {msgspec.json.encode(value).decode()}"] = _retyped(place, value)
    for name, put in {"no UTF-8": b"\xff\xfe", "a lone surrogate": b"\\ud800", "a control character": b"\x01"}.items():
        made[f"{name} in the text"] = _in_text(put)
    for name, put in {"NaN": b'"x": NaN', "infinity": b'"x": -Infinity', "a huge number": b'"x": 1e999'}.items():
        made[f"{name} in a member"] = _in_object(put)
    made["no UTF-8 in a name"] = _in_object(b'"\xff": 1')
    return [Fault(name, make) for name, make in made.items()]


FAULTS = [*(Fault(name, make, harmless=True) for name, make in _HARMLESS.items()), *_table()]

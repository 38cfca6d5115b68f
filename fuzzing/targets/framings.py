"""Target `framings`: bytes to frames, in each of the four framings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from bardo.streams.eventstream import EventStreamDecoder, encode_event
from bardo.streams.frames import Frame, FramingError
from bardo.streams.json_frames import JsonArrayDecoder, NdjsonDecoder
from bardo.streams.sse import SseDecoder
from bardo.streams.stage import Stage
from fuzzing.inputs import Input, kept_replies
from fuzzing.laws import Laws, hold, same
from fuzzing.target import Target

_LIMIT = 300
"""A small limit, so that frames over it are met too."""
_OPEN: dict[str, Callable[[int], Stage[bytes, Frame]]] = {
    "sse": SseDecoder,
    "ndjson": NdjsonDecoder,
    "json_array": JsonArrayDecoder,
    "eventstream": EventStreamDecoder,
}
_WORDS = {
    "sse": (
        b"data: ",
        b"data:",
        b"event: x\n",
        b"id: 1\n",
        b"retry: 5\n",
        b": \n",
        b"\n\n",
        b"\r\n\r\n",
        b"\r\r",
        b"\xef\xbb\xbf",
    ),
    "ndjson": (b"{}", b"\n", b"\r\n", b"[]", b"\n\n"),
    "json_array": (b"[", b"]", b",", b"{", b"}", b'"', b'\\"', b"\n"),
    "eventstream": (encode_event(b"{}", {":event-type": "chunk"}), b"\0\0\0\x10", b"\0\0\0\0", b"\xff\xff\xff\xff"),
}


@cache
def _seeds() -> Sequence[Input]:
    framed = {"sse": "sse", "ndjson": "ndjson", "json_array": "json_array", "eventstream": "eventstream"}
    found = [Input(framed[one.framing], one.body) for one in kept_replies() if one.framing in framed]
    return (*found, Input("json_array", b'[{"a":"]\\""},\n{"b":[{}]}]'), Input("ndjson", b'{"a":1}\r\n\n{"b":2}'))


Seen = tuple[list[tuple[bytes | None, str, bool]], str]


def _read(variant: str, pieces: Iterable[bytes], limit: int) -> tuple[list[Frame], str]:
    decoder = _OPEN[variant](limit)
    frames: list[Frame] = []
    try:
        for piece in pieces:
            frames += decoder.feed(piece)
        frames += decoder.finish()
    except FramingError as problem:
        return frames, type(problem).__name__
    same(list(decoder.finish()), [], "nothing is given twice at the end")
    return frames, ""


def _seen(frames: Sequence[Frame], problem: str) -> Seen:
    return [(frame.data, frame.event, frame.complete) for frame in frames if frame.data is not None], problem


def _check(one: Input, laws: Laws) -> None:
    frames, problem = _read(one.variant, [one.body], 1 << 20)
    raw = b"".join(frame.raw for frame in frames)
    if not problem:
        body = one.body.removeprefix(b"\xef\xbb\xbf") if one.variant == "sse" else one.body
        hold(
            body.startswith(raw) and not body[len(raw) :].strip(),
            "the frames' bytes are the input's, but for white space at its end",
        )
    else:
        hold(raw in one.body, "the frames' bytes are of the input")
    for pieces in laws.cuts_of(one.body):
        for limit in laws.some((1 << 20, _LIMIT)):
            other = _read(one.variant, pieces, limit)
            if limit != _LIMIT:
                same(_seen(*other), _seen(frames, problem), "any cut gives the same frames")


TARGET = Target(
    name="framings",
    says="SSE, NDJSON, JSON arrays and AWS event streams to frames",
    seeds=_seeds,
    check=_check,
    work=lambda one: _read(one.variant, [one.body[at : at + 100] for at in range(0, len(one.body), 100)], 1 << 20),
    words=lambda variant: _WORDS[variant],
    per_byte=40,
)

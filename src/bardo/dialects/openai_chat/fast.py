"""The frames of a stream that are like an earlier one, but for their text: they need not be read.

A stream says the same ids, flags, fingerprints, even whole lists of citations in every frame, each host its own. So when a frame turns out
to hold one piece of text, the bytes around that text are kept. As long as frames begin and end with just these bytes, and what stands
between is one JSON string, nothing else in them is new. The same text may stand in several places at once (`reasoning` beside
`reasoning_details`); random filler at the end (OpenAI's, Mistral's) may differ.

Without it a forwarded stream of 203 frames with thinking, text and a call costs 2.6 times as much where each frame comes by itself, and 5
times where they come in chunks of 16 kB; one whose thinking stands in `reasoning` and `reasoning_details` 2 and 3 times (2026-11-30).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

import msgspec
from msgspec import UNSET

from bardo.dialects.openai_chat.wire import FORM, Detail, ReplyCall, ReplyText, ReplyThinking
from bardo.dialects.shared.blocks import texts_of
from bardo.dialects.shared.json_values import WrongShape
from bardo.dialects.shared.structs import Wire
from bardo.streams.sse import FrameEnds
from bardo.values.events import ContentChunk, Event, RefusalChunk, ThinkChunk, ToolCallChunk

Piece = ContentChunk | ThinkChunk | RefusalChunk | ToolCallChunk
Listener = Callable[[Piece], Callable[[str], object] | None]
"""A function that returns the listener of further text of a piece, or None if there is none."""
_LESSONS = 8

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_FILLER = re.compile(rb',"(?:p|obfuscation)":"[^"\\]*"\}\Z')
_REST_OF_FILLER = re.compile(rb'[^"\\]*"\}')
_LARGEST = 64 * 1024
_PROBE = "\x1abardo\x1a"
_PROBE_BYTES = msgspec.json.encode(_PROBE)
_text_of = msgspec.json.Decoder(str).decode
_encode = msgspec.json.Encoder().encode


class Repetition:
    """Knows the frames that one stream repeats, as long as nothing but their text is new."""

    __slots__ = ("_frames", "_lessons", "_listen", "_make", "_quiet", "_shape", "_used")

    def __init__(self) -> None:
        self._frames: list[RepeatedFrame] = []
        self._shape: tuple[type, int, int, int | None] | None = None
        # What makes the event of a text, and who must hear of the text before.
        self._make: Callable[[str], Event] | None = None
        self._listen: Callable[[str], object] | None = None
        self._quiet = b""
        self._lessons = _LESSONS
        self._used = False

    def read(self, data: bytes) -> Sequence[Event] | None:
        """Return the events of a frame that is repeated, None for one that must be read."""
        for frame in self._frames:
            text = frame.text(data)
            if text is not None:
                return self._say((text,))
        return () if data == self._quiet else None

    def around(self) -> FrameEnds | None:
        """Return the bytes around the text, from the first place of it to the last."""
        return self._frames[0].around if self._frames else None

    def read_all(self, values: Sequence[bytes], *, joined: bool) -> Sequence[Event] | None:
        """Return the events of repeated frames with these values, or None if one of them is no text."""
        if not self._frames:
            return None
        texts = texts_of(self._frames[0].values(values))
        return None if texts is None else self._say(("".join(texts),) if joined else texts)

    def _say(self, texts: Sequence[str]) -> Sequence[Event] | None:
        make, listen = self._make, self._listen
        if make is None:
            return None
        self._used = True
        texts_given = [*filter(None, texts)]
        if listen is not None and texts_given:
            listen("".join(texts_given))
        return (*map(make, texts_given),)

    def note(self, data: bytes, events: Sequence[Event], listener: Listener, *, steady: bool) -> None:
        """Take notice of a frame that was read. `steady`: no block began or ended."""
        piece = events[0] if len(events) == 1 else None
        if not steady or not isinstance(piece, Piece):
            self._quiet = data if steady and not events else b""
            if events or not steady:
                self._forget()
            return
        shape = (type(piece), piece.choice, piece.block, getattr(piece, "part", None))
        if shape != self._shape:
            self._forget()
            self._shape, self._listen = shape, listener(piece)
            self._make = partial(type(piece), piece.block, choice=piece.choice)
            if isinstance(piece, ThinkChunk):
                self._make = partial(ThinkChunk, piece.block, part=piece.part, choice=piece.choice)
        self._learn(data, piece)

    def _learn(self, data: bytes, piece: Piece) -> None:
        """Keep the frame; give up in a stream that never repeats itself."""
        self._lessons = _LESSONS if self._used else self._lessons
        self._used = False
        if self._lessons:
            self._lessons -= 1
            frame = learn(data, piece.arguments if isinstance(piece, ToolCallChunk) else piece.text)
            # Three shapes are enough: Z.ai takes turns between two.
            self._frames = [frame, *self._frames[:2]] if frame is not None else self._frames

    def _forget(self) -> None:
        self._frames, self._shape = [], None


class RepeatedFrame:
    """The bytes of a frame around its text: before it, behind it, and between the places where it stands in several."""

    __slots__ = ("_between", "_filler", "_head", "_places", "_tail", "around")

    def __init__(self, parts: list[bytes], filler: bytes) -> None:
        self._head, *middles, self._tail = parts
        # What stands between head and tail, with a byte that no JSON holds in each place of the text.
        self._places = len(middles) + 1
        self._between = b"\0".join([b"", *middles, b""])
        self._filler = filler
        self.around = FrameEnds(self._head, self._tail + filler, filled=bool(filler))

    def text(self, data: bytes) -> str | None:
        """Return the text of a frame that repeats this one, None for any other frame."""
        if not data.startswith(self._head):
            return None
        if self._filler:
            end = data.rfind(self._filler)
            if end < 0 or _REST_OF_FILLER.fullmatch(data, end + len(self._filler)) is None:
                return None
            data = data[:end]
        if not data.endswith(self._tail):
            return None
        try:
            return _text_of(self.values((data[len(self._head) : len(data) - len(self._tail)],))[0])
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None

    def values(self, between: Sequence[bytes]) -> Sequence[bytes]:
        """Return the value of each frame of which this stands between its head and its tail; nothing for one whose places differ."""
        places, pattern = self._places, self._between
        if places == 1:
            return between
        around, values = len(pattern) - places, list[bytes]()
        for data in between:
            value = data[: (len(data) - around) // places]
            values.append(value if data == pattern.replace(b"\0", value) else b"")
        return values


def learn(data: bytes, text: str) -> RepeatedFrame | None:
    """Return the frame as one that may be repeated, where `text` is told from everything else in it."""
    if len(data) > _LARGEST:
        return None
    match = _FILLER.search(data)
    end = match.start() if match else len(data)
    filler = data[end : data.index(b'":"', end) + 3] if match else b""
    try:
        for find in (_parts_as_written, _parts_in_any_spelling):
            parts = find(data[:end], text)
            if len(parts) > 1 and _differs_in_text_alone(data, _PROBE_BYTES.join(parts) + data[end:], text):
                return RepeatedFrame(parts, filler)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return None


def _parts_as_written(data: bytes, text: str) -> list[bytes]:
    """Return what stands around each place of the text, as most servers spell it."""
    return data.split(_encode(text))


def _parts_in_any_spelling(data: bytes, text: str) -> list[bytes]:
    """Return what stands around each string that says the text."""
    strings = _STRING.finditer(data)
    spots = [spot.span() for spot in strings if len(spot.group()) >= len(text) + 2 and _text_of(spot.group()) == text]
    edges = [0, *(edge for spot in spots for edge in spot), len(data)]
    return [data[begin:stop] for begin, stop in zip(edges[::2], edges[1::2], strict=True)]


def _differs_in_text_alone(data: bytes, probed: bytes, text: str) -> bool:
    """Whether another text in its place changes nothing but the text: it may be said elsewhere by chance, as a name or a key."""
    report: list[Event] = []
    try:
        frame, other = FORM.decode(data, report), FORM.decode(probed, report)
    except (ValueError, WrongShape):
        return False
    if report:
        return False
    delta = other.choices[0].delta if other.choices and len(other.choices) == 1 and other.choices[0] else None
    if delta is not None:
        _put_back(delta, ("content", "reasoning", "reasoning_content", "refusal"), text)
        detail, call, part = _only(delta.reasoning_details), _only(delta.tool_calls), _only(delta.content)
        # What begins a part of a summary is not all text.
        if isinstance(detail, Detail) and detail.part is UNSET:
            _put_back(detail, ("text", "summary"), text)
        if isinstance(call, ReplyCall) and call.function is not None:
            _put_back(call.function, ("arguments",), text)
        if isinstance(part, ReplyText):
            _put_back(part, ("text",), text)
        thought = _only(part.thinking) if isinstance(part, ReplyThinking) else None
        if isinstance(thought, dict) and thought.get("text") == _PROBE:
            thought["text"] = text
    return other == frame


def _put_back(holder: Wire, names: tuple[str, ...], text: str) -> None:
    for name in names:
        if getattr(holder, name) == _PROBE:
            setattr(holder, name, text)


def _only(pieces: object) -> object:
    return pieces[0] if isinstance(pieces, list) and len(pieces) == 1 else None

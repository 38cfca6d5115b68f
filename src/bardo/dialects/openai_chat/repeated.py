"""The hot path: a frame that is an earlier one over again, but for its text.

A stream says the same ids, flags, fingerprints, even whole lists of citations in every frame, each host its own. So when a frame turns out
to hold one piece of text, the bytes around that text are kept. As long as frames begin and end with just these bytes, and what stands
between is one JSON string, nothing else in them is new, and nothing else need be read. The same text may stand in several places at once
(`reasoning` beside `reasoning_details`); random filler at the end (OpenAI's, Mistral's) may differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from bardo.dialects.openai_chat.choice import ChoiceReader
from bardo.dialects.openai_chat.plain_frame import TEXTS, read_plain_frame
from bardo.dialects.repeated_text import texts_of
from bardo.streams.sse import FrameEnds
from bardo.values.events import ContentChunk, Event, RefusalChunk, ThinkChunk, ToolCallChunk

Piece = ContentChunk | ThinkChunk | RefusalChunk | ToolCallChunk
_LESSONS = 8

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_FILLER = re.compile(rb',"(?:p|obfuscation)":"[^"\\]*"\}\Z')
_REST_OF_FILLER = re.compile(rb'[^"\\]*"\}')
_LARGEST = 64 * 1024
_PROBE = "\x1abardo\x1a"
_PROBE_BYTES = msgspec.json.encode(_PROBE)
_text_of = msgspec.json.Decoder(str).decode
_encode = msgspec.json.Encoder().encode
_value_of = msgspec.json.Decoder().decode


class Repetition:
    """Knows the frames that one stream repeats, as long as nothing but their text is new."""

    __slots__ = ("_again", "_frames", "_lessons", "_quiet", "_shape", "_used")

    def __init__(self) -> None:
        self._frames: list[RepeatedFrame] = []
        self._shape: tuple[type, int, int, int | None] | None = None
        self._again: Callable[[str], Event] | None = None
        self._quiet = b""
        self._lessons = _LESSONS
        self._used = False

    def read(self, data: bytes) -> Sequence[Event] | None:
        """Return the events of a frame that is repeated, None for one that must be read."""
        for frame in self._frames:
            text = frame.text(data)
            if text is not None and self._again is not None:
                self._used = True
                return (self._again(text),) if text else ()
        return () if data == self._quiet else None

    def around(self) -> FrameEnds | None:
        """Return the bytes around the text, where it stands in one place."""
        return self._frames[0].around if self._frames else None

    def read_all(self, values: Sequence[bytes], *, joined: bool) -> Sequence[Event] | None:
        """Return the events of repeated frames with these values, None where one of them is no text."""
        texts, again = texts_of(values), self._again
        if texts is None or again is None:
            return None
        self._used = True
        return (*map(again, filter(None, ("".join(texts),) if joined else texts)),)

    def note(
        self, data: bytes, events: Sequence[Event], choices: Callable[[int], ChoiceReader], *, steady: bool
    ) -> None:
        """Take notice of a frame that was read. `choices` gives the reader of a choice; `steady`: no block began or ended."""
        piece = events[0] if len(events) == 1 else None
        if not steady or not isinstance(piece, Piece):
            self._quiet = data if steady and not events else b""
            if events or not steady:
                self._forget()
            return
        shape = (type(piece), piece.choice, piece.block, getattr(piece, "part", None))
        if shape != self._shape:
            self._forget()
            self._shape, self._again = shape, _maker(piece, choices)
        self._learn(data, piece)

    def _learn(self, data: bytes, piece: Piece) -> None:
        """Keep the frame; give up in a stream that never repeats itself."""
        self._lessons = _LESSONS if self._used else self._lessons
        self._used = False
        if self._lessons:
            self._lessons -= 1
            found = learn(data, piece.arguments if isinstance(piece, ToolCallChunk) else piece.text)
            # Three shapes are enough: Z.ai takes turns between two.
            self._frames = [found, *self._frames[:2]] if found is not None else self._frames

    def _forget(self) -> None:
        self._frames, self._shape = [], None


class RepeatedFrame:
    """The bytes of a frame around its text. `around` is None where the text stands in several places."""

    __slots__ = ("_filler", "_fixed", "_head", "_middles", "_tail", "around")

    def __init__(self, parts: list[bytes], filler: bytes) -> None:
        self._head, *self._middles, self._tail = parts
        self._fixed = sum(map(len, parts))
        self._filler = filler
        self.around = None if self._middles else FrameEnds(self._head, self._tail + filler, filled=bool(filler))

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
        value = self._same_value(data) if self._middles else data[len(self._head) : len(data) - len(self._tail)]
        try:
            return _text_of(value)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None

    def _same_value(self, data: bytes) -> bytes:
        """Return what stands in every place of the text, nothing where they differ."""
        size, odd = divmod(len(data) - self._fixed, len(self._middles) + 1)
        if odd or size < 2:
            return b""
        place = len(self._head)
        value = data[place : place + size]
        for middle in self._middles:
            place += size
            if not data.startswith(middle, place) or not data.startswith(value, place + len(middle)):
                return b""
            place += len(middle)
        return value


def learn(data: bytes, text: str) -> RepeatedFrame | None:
    """Return the frame as one that may be repeated, where `text` is told from everything else in it."""
    try:
        return _learn_plain(data, text) or _learn(data, text) if len(data) <= _LARGEST else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _learn_plain(data: bytes, text: str) -> RepeatedFrame | None:
    """Return a plain frame as one that may be repeated: one string of it is the text, and another there is another text of the delta."""
    head, quoted, tail = data.partition(_encode(text))
    if not quoted or quoted in tail:
        return None
    frame, probed = read_plain_frame(data), read_plain_frame(head + _PROBE_BYTES + tail)
    if frame is None or probed is None or frame.filler or not frame.choices or not probed.choices:
        return None
    delta, other = frame.choices[0].delta, probed.choices[0].delta
    for name in TEXTS:
        if getattr(other, name) == _PROBE:
            setattr(other, name, text)
    alone = sum(bool(getattr(delta, name)) for name in TEXTS) == 1
    return RepeatedFrame([head, tail], b"") if alone and probed == frame else None


def _learn(data: bytes, text: str) -> RepeatedFrame | None:
    found = _FILLER.search(data)
    end = found.start() if found else len(data)
    strings = _STRING.finditer(data, 0, end)
    spots = [one.span() for one in strings if len(one.group()) >= len(text) + 2 and _text_of(one.group()) == text]
    edges = [0, *(edge for spot in spots for edge in spot), end]
    parts = [data[begin:stop] for begin, stop in zip(edges[::2], edges[1::2], strict=True)]
    # The text may be said elsewhere by chance, as a name or a key. Then another text in its place changes more than the text.
    if not spots or _without_probe(_value_of(_PROBE_BYTES.join(parts) + data[end:]), text) != _value_of(data):
        return None
    return RepeatedFrame(parts, data[end : data.index(b'":"', end) + 3] if found else b"")


def _without_probe(body: dict[str, Any], text: str) -> dict[str, Any]:
    """Put `text` back wherever a delta may say it."""
    choices = body.get("choices")
    delta = choices[0].get("delta") if isinstance(choices, list) and len(choices) == 1 else None
    if isinstance(delta, dict):
        _put_back(delta, ("content", "reasoning", "reasoning_content", "refusal"), text)
        detail = _only(delta.get("reasoning_details"))
        # What begins a part of a summary is not all text.
        _put_back(detail if "part" not in detail else {}, ("text", "summary"), text)
        _put_back(_only(delta.get("tool_calls")).get("function"), ("arguments",), text)
        part = _only(delta.get("content"))
        _put_back(part, ("text",), text)
        _put_back(_only(part.get("thinking")), ("text",), text)
    return body


def _put_back(holder: Any, names: tuple[str, ...], text: str) -> None:
    for name in names:
        if isinstance(holder, dict) and holder.get(name) == _PROBE:
            holder[name] = text


def _only(pieces: Any) -> dict[str, Any]:
    single = isinstance(pieces, list) and len(pieces) == 1 and isinstance(pieces[0], dict)
    return pieces[0] if single else {}


def _maker(piece: Piece, choices: Callable[[int], ChoiceReader]) -> Callable[[str], Event]:
    """Return what makes the same event with another text."""
    block, choice = piece.block, piece.choice
    if isinstance(piece, ContentChunk | RefusalChunk):
        return partial(type(piece), block, choice=choice)
    if isinstance(piece, ThinkChunk):
        again = partial(ThinkChunk, block, part=piece.part, choice=choice)
        returned = choices(choice).returned
        return again if returned is None else _listened(again, returned.more)
    return _listened(partial(ToolCallChunk, block, choice=choice), choices(choice).calls.listener(block))


def _listened(make: Callable[[str], Event], listen: Callable[[str], object]) -> Callable[[str], Event]:
    """Return what makes an event, and tells its text to somebody before."""

    def again(text: str) -> Event:
        listen(text)
        return make(text)

    return again

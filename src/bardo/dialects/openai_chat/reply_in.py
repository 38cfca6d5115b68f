"""Chat Completions replies to events, whole or streamed.

A whole message is read as one delta, so both go one way. Reading is liberal: the OpenAI-compatible family puts reasoning into
`reasoning_content`, `reasoning`, `reasoning_details` or a list of content parts, some of them at once with the same text.

What a frame says of the reply as a whole: its id and model, its usage, and fields bardo has no word for.

One choice of a chat reply: its deltas to events.

The hot path: a frame that is an earlier one over again, but for its text.

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

from bardo.dialects.openai_chat.calls import CallReader, Kind, OpenBlock
from bardo.dialects.openai_chat.errors import bare_error, error_in_choice, error_in_reply
from bardo.dialects.openai_chat.fast import TEXTS, PlainChoice, PlainDelta, PlainFrame, read_plain, read_plain_frame
from bardo.dialects.openai_chat.reply_out import CarriedFields
from bardo.dialects.openai_chat.thinking import (
    BLANK_LINE,
    ThinkingBlocks,
    ThinkingReader,
    decode_details,
    hold_text,
    plain_before,
)
from bardo.dialects.openai_chat.usage import decode_usage, google_counts
from bardo.dialects.openai_chat.wire import NAME, decode_finish, decode_states
from bardo.dialects.shared.dialect import PlainReplyDecoder, RepeatingDecoder, ReturningDecoder, SwitchableDecoder
from bardo.dialects.shared.json_values import as_text, decode_leniently, excerpt
from bardo.dialects.shared.repeated_text import texts_of
from bardo.streams.frames import Frame
from bardo.streams.sse import FrameEnds
from bardo.values.blocks import Opaque
from bardo.values.errors import BrokenStream, EmptyReply, MalformedReply, ProviderError
from bardo.values.events import (
    ContentChunk,
    Degraded,
    Event,
    Failed,
    Finish,
    OpaqueState,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ToolCallChunk,
    UnknownContent,
    UsageUpdate,
)
from bardo.values.usage import Usage


class ChoiceReader:
    """Reads the deltas of one choice, in order."""

    def __init__(self, index: int, *, returns_details: bool = False) -> None:
        self.returned = ReturnedDetails() if returns_details else None
        self._index = index
        self._open = OpenBlock(index)
        self._thinking = ThinkingReader(self._open)
        self._blocks = ThinkingBlocks()
        self.calls = CallReader(self._open)
        self._carried = CarriedFields()
        self._finish: Finish | None = None

    @property
    def begun(self) -> bool:
        """Whether anything has been said."""
        return self._open.number >= 0 or self.calls.any

    @property
    def position(self) -> object:
        """Which block is being written; differs whenever one began or ended."""
        # Of a call that is said twice, a frame that looks like the last may say nothing new.
        said_twice = object() if self.calls.said_twice else None
        return (self._open.kind, self._open.number, self.calls.waiting, said_twice)

    @property
    def finished(self) -> bool:
        """Whether a finish reason has come."""
        return self._finish is not None

    def take(self, choice: dict[str, Any], delta: dict[str, Any], *, whole: bool) -> list[Event]:
        """Take a whole choice object."""
        if self.returned is not None:
            self.returned.take(delta, whole=whole)
        events = self._take_thinking(delta, whole=whole)
        thought = any(type(event) is ThinkChunk for event in events)
        events += self._take_states(delta, whole=True) if whole else []
        events += self._take_content(delta.get("content"), read_thinking=not thought)
        blocks = delta.get("content_blocks")
        for block in blocks if isinstance(blocks, list) else ():
            wrapped = isinstance(block, dict) and block.keys() == {"index", "block"}
            events += self._unknown(block["block"] if wrapped else block)
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            events += self._enter("refusal")
            events.append(RefusalChunk(self._open.number, refusal, self._index))
        events += [] if whole else self._take_states(delta, whole=False)
        events += self.calls.take(delta)
        fields = self._carried.changes(choice, delta)
        if fields:
            events.append(ReplyFields(NAME, fields, self._index))
        return events + self._take_finish(choice.get("finish_reason"), choice.get("native_finish_reason"))

    def takes_plain(self, delta: PlainDelta) -> bool:
        """Whether all that `take` would do with a plain delta is in `take_plain`."""
        return not self.calls.any and (self.returned is None or not (delta.reasoning or delta.reasoning_content))

    def take_plain(self, delta: PlainDelta, finish: str | None) -> list[Event]:
        """Take a delta that holds text, thinking, or nothing; `finish` is the reason that came with it."""
        if delta.reasoning_content:
            events = self._add_reasoning(delta.reasoning_content, "reasoning_content")
        else:
            events = self._add_reasoning(delta.reasoning, "reasoning") if delta.reasoning else []
        if delta.content:
            events += self._text(delta.content)
        return events + self._take_finish(finish) if finish else events

    def close(self, *, settle: bool) -> list[Event]:
        """Close what is open. `settle`: the reply is complete; a choice without a finish reason gets the one that can be told."""
        broken = self._finish is not None and self._finish.reason == "error"
        events = [*self._open.leave(), *self.calls.close(complete=settle and not broken)]
        if settle and self._finish is None:
            events.append(self._finished(""))
        return events

    def _enter(self, kind: Kind) -> list[Event]:
        held = self.calls.settle() if self.calls.waiting else []
        return held + self._open.enter(kind)

    def _text(self, text: str) -> list[Event]:
        return [*self._enter("text"), ContentChunk(self._open.number, text, self._index)]

    def _add_reasoning(self, text: str, field: str) -> list[Event]:
        held = self.calls.settle() if self.calls.waiting else []
        return held + self._thinking.plain(text, field)

    def _unknown(self, value: Any) -> list[Event]:
        events = self._enter("")
        return [*events, UnknownContent(self._open.fresh(), NAME, value, self._index)]

    def _take_thinking(self, delta: dict[str, Any], *, whole: bool) -> list[Event]:
        details = delta.get("reasoning_details")
        if details is None and isinstance(blocks := delta.get("thinking_blocks"), list):
            details = self._blocks.pieces(blocks)
        if isinstance(details, list) and hold_text(details):
            before = self._plain_before(delta, details) if whole else []
            return [*self.calls.settle(), *before, *self._thinking.details(details, whole=whole)]
        events: list[Event] = []
        for field in ("reasoning_content", "reasoning", "reasoning_details"):
            text = delta.get(field)
            if isinstance(text, str) and text:
                events = self._add_reasoning(text, field)
                break
        events = events or self._take_steps(delta.get("reasoning_steps"))
        return events + self._thinking.details(details, whole=whole) if isinstance(details, list) else events

    def _take_steps(self, steps: Any) -> list[Event]:
        """Read Perplexity's steps: each has a thought, beside the search or the page that it led to."""
        found = steps if isinstance(steps, list) else ()
        thoughts = [
            step["thought"] for step in found if isinstance(step, dict) and isinstance(step.get("thought"), str)
        ]
        return [
            event
            for thought in thoughts
            if thought
            for event in self._add_reasoning(f"{thought}\n\n", "reasoning_steps")
        ]

    def _plain_before(self, message: dict[str, Any], details: list[Any]) -> list[Event]:
        """Read the thinking of a whole message that only its plain field has: bardo writes so what came before its first detail."""
        text = message.get("reasoning_content")
        if not isinstance(text, str) or not text.count(BLANK_LINE):
            return []
        pieces = [one for one in details if isinstance(one, dict)]
        before = plain_before(text, [one.block.readable for one in decode_details(pieces) if one.block.readable])
        return self._thinking.plain_before(before, "reasoning_content") if before else []

    def _take_content(self, content: Any, *, read_thinking: bool) -> list[Event]:
        if not isinstance(content, list):
            # Cloudflare answers a schema with the object itself.
            text = as_text(content)
            return self._text(text) if text else []
        events: list[Event] = []
        for part in content:
            events += self._take_part(part, read_thinking=read_thinking)
        return events

    def _take_part(self, part: Any, *, read_thinking: bool) -> list[Event]:
        if isinstance(part, str):
            return self._text(part) if part else []
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "thinking":
            return self._thinking_part(part) if read_thinking else []
        if kind not in ("text", "output_text") or not isinstance(part.get("text"), str):
            return self._unknown(part)
        events = self._text(part["text"]) if part["text"] else []
        rest = {f"message.{name}": value for name, value in part.items() if name not in ("type", "text") and value}
        return [*events, ReplyFields(NAME, rest, self._index)] if rest else events

    def _thinking_part(self, part: dict[str, Any]) -> list[Event]:
        """Read Mistral's thinking part: a list of texts, or a string. Its `closed` stands on every piece and says nothing."""
        inner = part.get("thinking")
        events: list[Event] = []
        for piece in inner if isinstance(inner, list) else [inner]:
            text = piece.get("text") if isinstance(piece, dict) else piece
            if isinstance(text, str):
                events += self._add_reasoning(text, "content_list") if text else []
            elif piece is not None:
                events += self._unknown(piece)
        signature = part.get("signature")
        if isinstance(signature, str) and signature and self._open.kind == "think":
            state = Opaque("signature", signature, "content_list")
            events.append(OpaqueState(self._open.number, state, self._index))
        return events

    def _take_states(self, delta: dict[str, Any], *, whole: bool) -> list[Event]:
        states, _ = decode_states(delta.get("extra_content"))
        if not states:
            return []
        events = self._enter("text")
        if whole:
            # The block begins before its state, and its text follows: who writes Gemini again knows both at once.
            events.append(ContentChunk(self._open.number, "", self._index))
        return events + [OpaqueState(self._open.number, state, self._index) for state in states]

    def _take_finish(self, raw: Any, native: Any = None) -> list[Event]:
        if not isinstance(raw, str) or not raw:
            return []
        # OpenRouter says "tool_calls" of a call that its provider cut off, and "max_output_tokens" beside it (gpt-4.1-mini, gpt-4o-mini).
        if isinstance(native, str) and decode_finish(native, calls=False) == "length":
            raw = native
        known = self._finish
        finish = self._finished(raw)
        events = [*self._open.leave(), *self.calls.close(complete=finish.reason != "error")]
        # Some hosts say it twice, once with the usage.
        return events if finish == known else [*events, finish]

    def _finished(self, raw: str) -> Finish:
        self._finish = Finish(decode_finish(raw, calls=self.calls.any), raw, choice=self._index)
        return self._finish


_TEXTS = {"reasoning.text": "text", "reasoning.summary": "summary"}


class ReturnedDetails:
    """Collects `reasoning_details` as the host takes them back: fragments of a stream joined, all else unmodified and in order.

    Nothing is returned where it cannot be told which of them a repeated frame continued.
    """

    # OpenRouter: "the entire sequence of consecutive reasoning blocks must match the outputs generated by the model during the original
    # request; you cannot rearrange or modify the sequence of these blocks" (openrouter.ai/docs, Reasoning tokens, 2026-11-20).

    def __init__(self) -> None:
        self._pieces: list[dict[str, Any]] = []
        self._texts: list[list[str]] = []
        self._beside = False
        self._repeated = False

    def take(self, delta: dict[str, Any], *, whole: bool) -> None:
        """Take one delta, or a whole message."""
        details = delta.get("reasoning_details")
        found = [detail for detail in details if isinstance(detail, dict)] if isinstance(details, list) else []
        for detail in found:
            if whole or not self._joins(detail):
                self._pieces.append(dict(detail))
                self._texts.append([])
            else:
                self._join(detail)
        if not found and (delta.get("reasoning") or delta.get("reasoning_content")):
            self._beside = True

    def more(self, text: str) -> None:
        """Take a further piece of text, of a frame that is the one before over again."""
        self._repeated = True
        if self._texts:
            self._texts[-1].append(text)

    def pieces(self) -> list[dict[str, Any]]:
        """Return the details."""
        if self._beside and self._repeated:
            return []
        return [self._whole(piece, texts) for piece, texts in zip(self._pieces, self._texts, strict=True)]

    def _joins(self, detail: dict[str, Any]) -> bool:
        kind = detail.get("type")
        if not self._pieces or not isinstance(kind, str) or kind not in _TEXTS:
            return False
        last = self._pieces[-1]
        return (last.get("type"), last.get("index")) == (kind, detail.get("index"))

    def _join(self, detail: dict[str, Any]) -> None:
        last, field = self._pieces[-1], _TEXTS[str(detail["type"])]
        for name, value in detail.items():
            if name == field and isinstance(value, str) and isinstance(last.get(name), str):
                self._texts[-1].append(value)
            elif value is not None or name not in last:
                last[name] = value

    def _whole(self, piece: dict[str, Any], texts: list[str]) -> dict[str, Any]:
        field = _TEXTS.get(str(piece.get("type")), "")
        return {**piece, field: "".join([str(piece[field]), *texts])} if texts and field in piece else dict(piece)


Piece = ContentChunk | ThinkChunk | RefusalChunk | ToolCallChunk
_LESSONS = 8

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_FILLER_REPEATED = re.compile(rb',"(?:p|obfuscation)":"[^"\\]*"\}\Z')
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
    found = _FILLER_REPEATED.search(data)
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


# Random filler against traffic analysis, new in every frame.
_FILLER = frozenset({"obfuscation", "p"})
_READ = frozenset({"id", "object", "created", "model", "choices", "usage", "error"}) | _FILLER
_LARGEST_TIME = 1 << 53
_NO_START = ReplyStart()


class ReplyFieldsDecoder:
    """Reads these, and tells each thing once. `excludes_reasoning` is the provider's fact about reasoning tokens."""

    def __init__(self, *, excludes_reasoning: bool | None) -> None:
        self._excludes_reasoning = excludes_reasoning
        self._start: ReplyStart | None = None
        self._fields: dict[str, Any] = {}
        self._usage: Usage | None = None
        self._raw: dict[str, Any] | None = None
        self._google: dict[str, Any] | None = None

    def begin(self, body: dict[str, Any]) -> list[Event]:
        """Tell the id, the model and the time, as soon as each is known."""
        created = body.get("created")
        in_range = isinstance(created, int | float) and abs(created) < _LARGEST_TIME
        return self._begin(_text(body.get("id")), _text(body.get("model")), int(created) if in_range else None)  # type: ignore[arg-type]

    def begin_plain(self, frame: PlainFrame) -> list[Event]:
        """Tell them of a plain frame."""
        return self._begin(frame.id, frame.model, frame.created)

    def fields(self, body: dict[str, Any]) -> list[Event]:
        """Tell the usage, and whatever else is new."""
        new = self._news({name: value for name, value in body.items() if name not in _READ})
        raw, google = body.get("usage") or _usage_beside(body), google_counts(body)
        if google is not None:
            self._google = google
        if isinstance(raw, dict):
            self._raw = raw
        elif google is None or self._raw is None:
            return new
        return new + self._usage_of()

    def plain_fields(self, frame: PlainFrame) -> list[Event]:
        """Tell the same of a plain frame."""
        fields = frame.fields
        new = self._news(fields) if fields else []
        if not frame.usage:
            return new
        self._raw = frame.usage
        return new + self._usage_of()

    def _begin(self, reply: str, model: str, created: int | None) -> list[Event]:
        known = self._start or _NO_START
        if known.id and known.model and known.created:
            return []
        # Azure's first frame is about the prompt, and has no time.
        time = known.created if created is None else known.created or created
        start = ReplyStart(id=known.id or reply, model=known.model or model, created=time)
        if start == self._start:
            return []
        self._start = start
        return [start]

    def _news(self, fields: dict[str, Any]) -> list[Event]:
        known, new = self._fields, {}
        if fields == known:
            return []
        for name, value in fields.items():
            if name not in known or known[name] != value:
                new[name] = _grown(known.get(name), value)
                known[name] = value
        return [ReplyFields(NAME, new)] if new else []

    def _usage_of(self) -> list[Event]:
        usage, doubts = decode_usage(
            self._raw or {},
            excludes_reasoning=self._excludes_reasoning,
            cost=self._fields.get("cost"),
            tier=self._fields.get("service_tier"),
            google=self._google,
        )
        usage = _filled(usage, self._usage)
        if usage == self._usage:
            return []
        self._usage = usage
        return [UsageUpdate(usage), *(Degraded(doubt) for doubt in doubts)]


def _grown(before: Any, value: Any) -> Any:
    """Return what a list has more than before, since lists are joined; any other value as it is."""
    if isinstance(before, list) and isinstance(value, list) and value[: len(before)] == before:
        return value[len(before) :]
    return value


def _filled(usage: Usage, before: Usage | None) -> Usage:
    """Return a later report with the counts that only an earlier one had."""
    if before is None:
        return usage
    missing = {
        name: held
        for name, held in msgspec.structs.asdict(before).items()
        if held is not None and getattr(usage, name) is None
    }
    return msgspec.structs.replace(usage, **missing) if missing else usage


def _usage_beside(body: dict[str, Any]) -> Any:
    """Return usage that stands elsewhere: Groq's own object has it a frame earlier, Moonshot puts it on the choice."""
    own = body.get("x_groq")
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    for holder in (own, first):
        if isinstance(holder, dict) and holder.get("usage"):
            return holder["usage"]
    return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


MAX_CHOICES = 256
"""Twice as many as OpenAI lets a request ask for."""


class ChatDecoder(PlainReplyDecoder, RepeatingDecoder, SwitchableDecoder, ReturningDecoder):
    """Reads one reply. `excludes_reasoning` is the provider's fact about reasoning tokens, None where it is not known."""

    def __init__(
        self, *, provider: str = "", excludes_reasoning: bool | None = None, returns_details: bool = False
    ) -> None:
        self._provider = provider
        self._excludes_reasoning = excludes_reasoning
        self._reply = ReplyFieldsDecoder(excludes_reasoning=excludes_reasoning)
        self._choices: dict[int, ChoiceReader] = {}
        self._repetition = Repetition()
        self._returns_details = returns_details
        self._done = False
        self._failed = False
        self._whole = False
        self._seen = False

    @property
    def over(self) -> bool:
        """Whether `[DONE]` has come."""
        return self._done or self._failed

    @property
    def complete(self) -> bool:
        """Whether every choice has ended; usage may come behind that, and `[DONE]`."""
        return self._whole or self._done or self._all_finished()

    def feed(self, item: Frame) -> Sequence[Event]:
        """Return the events of one frame."""
        data = item.data
        if data is None or self._failed or self._done:
            return ()
        if item.event:
            return self._read(item, data)
        events = self._repetition.read(data)
        if events is None:
            events = self.read_plain_frame(item)
        return self._read(item, data) if events is None else events

    def read_plain_frame(self, item: Frame) -> Sequence[Event] | None:
        """Return the events of a frame of a stream that says no more than text, its end, or usage."""
        data = item.data
        if data is None or item.event or self._failed or self._done or not data.startswith(b"{"):
            return None
        frame = read_plain_frame(data)
        if frame is None:
            return None
        choice = frame.choices[0] if frame.choices else None
        if choice is not None and self._choices:
            reader = self._choices.get(0)
            if reader is None or not reader.takes_plain(choice.delta):
                return None
        return self._take_plain(frame, choice, data)

    def read_plain(self, data: bytes) -> Sequence[Event] | None:
        """Return the events of a whole reply that is one choice of text."""
        events = read_plain(data, excludes_reasoning=self._excludes_reasoning)
        if events is not None:
            self._seen = self._whole = True
        return events

    def repeated(self) -> FrameEnds | None:
        """Return the bytes around the text of the frames that repeat."""
        return None if self._failed or self._done else self._repetition.around()

    def again(self, values: Sequence[bytes], *, joined: bool) -> Sequence[Event] | None:
        """Return the events of frames that repeat."""
        return self._repetition.read_all(values, joined=joined)

    def fields_to_return(self) -> dict[int, dict[str, Any]]:
        """Return the details of each choice, where the provider takes them back."""
        found = {
            number: reader.returned.pieces() for number, reader in self._choices.items() if reader.returned is not None
        }
        return {number: {"reasoning_details": pieces} for number, pieces in found.items() if pieces}

    @property
    def lacks_ids(self) -> bool:
        """Whether a call came without its id."""
        # Asked at every read of a stream, where a loop costs half of what `any` does.
        for reader in self._choices.values():  # noqa: SIM110
            if reader.calls.lacks_ids:
                return True
        return False

    @property
    def waits(self) -> bool:
        """Whether a call waits for its id."""
        for reader in self._choices.values():  # noqa: SIM110
            if reader.calls.waiting:
                return True
        return False

    @property
    def missing_end(self) -> bytes:
        """Return `[DONE]` as a frame, unless it has come. Cerebras and MiniMax send none."""
        return b"" if self._done else b"data: [DONE]\n\n"

    def finish(self) -> Sequence[Event]:
        """Close what is open; a stream that ended too early fails here."""
        if self._failed:
            return ()
        ended = self.complete
        events = self._close(settle=ended)
        if not self._seen:
            return [*events, *self._fail(EmptyReply("the reply is empty", provider=self._provider))]
        if not ended:
            events += self._fail(BrokenStream("the stream ended before its end", provider=self._provider))
        return events

    def _all_finished(self) -> bool:
        for reader in self._choices.values():
            if not reader.finished:
                return False
        return bool(self._choices)

    def _close(self, *, settle: bool) -> list[Event]:
        return [event for reader in self._choices.values() for event in reader.close(settle=settle)]

    def _fail(self, error: ProviderError) -> list[Event]:
        self._failed = True
        return [*self._close(settle=False), Failed(error)]

    def _read(self, item: Frame, data: bytes) -> Sequence[Event]:
        """Read a frame that may say anything."""
        data = data.strip()
        if data == b"[DONE]":
            self._seen = self._done = True
            return ()
        if not data:
            return ()
        self._seen = True
        mended: list[Event] = []
        try:
            body = decode_leniently(data, mended)
        except ValueError:
            return self._not_json(data, complete=item.complete)
        if not isinstance(body, dict):
            return self._fail(MalformedReply(f"not a chat reply: {excerpt(data)}", provider=self._provider))
        if item.event == "error" and not body.get("error"):
            body = {"error": body}
        before = self._positions()
        events = [*mended, *self._body(body)]
        self._repetition.note(data, events, self._choices.__getitem__, steady=before == self._positions())
        return events

    def _take_plain(self, frame: PlainFrame, choice: PlainChoice | None, data: bytes) -> Sequence[Event]:
        self._seen = True
        events = self._reply.begin_plain(frame)
        steady = True
        if choice is not None:
            reader = self._reader_of(0)
            before = reader.position
            events += reader.take_plain(choice.delta, choice.finish_reason)
            steady = before == reader.position
        events += self._reply.plain_fields(frame)
        self._repetition.note(data, events, self._choices.__getitem__, steady=steady)
        return events

    def _not_json(self, data: bytes, *, complete: bool) -> Sequence[Event]:
        if not complete and self._choices:
            return self._fail(BrokenStream("the stream broke off inside an event", provider=self._provider))
        return self._fail(MalformedReply(f"the reply is not JSON: {excerpt(data)}", provider=self._provider))

    def _body(self, body: dict[str, Any]) -> list[Event]:
        events: list[Event] = self._reply.begin(body)
        choices = body.get("choices")
        error: ProviderError | None = error_in_reply(body, self._provider)
        for position, choice in enumerate(choices if isinstance(choices, list) else ()):
            if not isinstance(choice, dict) or not isinstance(choice.get("delta") or {}, dict):
                error = error or MalformedReply(f"no choice: {_excerpt(choice)}", provider=self._provider)
                continue
            events += self._choice(choice, position, body.get("object"))
            if len(self._choices) > MAX_CHOICES:
                message = f"the reply has more than {MAX_CHOICES} choices"
                return [*events, *self._fail(MalformedReply(message, provider=self._provider))]
            error = error or error_in_choice(choice, self._provider)
        events += self._reply.fields(body)
        if error is None and choices is None:
            error = bare_error(body, self._provider)
        if error is None and choices is None and "usage" not in body and not self._choices:
            error = MalformedReply(f"no choices in the reply: {_excerpt(sorted(body))}", provider=self._provider)
        if error is None and choices is not None and not isinstance(choices, list):
            error = MalformedReply(f"choices must be a list: {_excerpt(choices)}", provider=self._provider)
        return events + self._fail(error) if error is not None else events

    def _choice(self, choice: dict[str, Any], position: int, kind: Any) -> list[Event]:
        index = choice.get("index")
        reader = self._reader_of(index if isinstance(index, int) else position)
        delta, message = choice.get("delta"), choice.get("message")
        # Perplexity sends both: its whole replies hold an empty delta, and its frames repeat the message so far.
        whole = isinstance(message, dict) and (
            not isinstance(delta, dict) or (kind == "chat.completion" and not reader.begun)
        )
        self._whole = self._whole or whole
        return reader.take(choice, message if whole else delta or {}, whole=whole)  # type: ignore[arg-type]

    def _reader_of(self, number: int) -> ChoiceReader:
        reader = self._choices.get(number)
        if reader is None:
            reader = self._choices[number] = ChoiceReader(number, returns_details=self._returns_details)
        return reader

    def _positions(self) -> list[object]:
        return [reader.position for reader in self._choices.values()]


def _excerpt(value: Any) -> str:
    return excerpt(msgspec.json.encode(value))

"""Frames of a Gemini reply to events.

A whole body, a chunk of a stream and an element of the JSON array that a stream without `alt=sse` is: all are one
GenerateContentResponse, so all go one way. What describes the reply as a whole (usage, grounding, the finish reason, which may come in
mid-stream) is kept until the end and given once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from operator import attrgetter
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import UNSET

from bardo.dialects.gemini import wire
from bardo.dialects.gemini.errors import refused
from bardo.dialects.gemini.usage import decode_usage
from bardo.dialects.gemini.wire import FORMAT, NAME, arguments_text, finish_reason
from bardo.dialects.shared.bounded_json import MAX_DEPTH, SLICED_BYTES, has_few_brackets
from bardo.dialects.shared.json_values import JsonObject, decode_leniently, excerpt, without_surrogates
from bardo.dialects.shared.spellings import seconds_of
from bardo.dialects.shared.structs import OTHERS, Others, Wire
from bardo.streams.frames import Frame
from bardo.values.blocks import Opaque
from bardo.values.errors import BrokenStream, MalformedReply, ProviderError
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Degraded,
    Event,
    Failed,
    Finish,
    OpaqueState,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
    UsageUpdate,
)

W = TypeVar("W", bound=Wire)
T = TypeVar("T")


class GeminiDecoder:
    """Reads one reply, whole or streamed. `excludes_reasoning` is the provider's fact about how thoughts are counted."""

    def __init__(self, *, provider: str = "", excludes_reasoning: bool | None = None) -> None:
        self._provider = provider
        self._excludes_reasoning = excludes_reasoning
        self._start: ReplyStart | None = None
        self._named: tuple[object, ...] = ()
        self._created = ""
        self._candidates: dict[int, Candidate] = {}
        self._usage = msgspec.Raw()
        self._fields: JsonObject = {}
        self._failed = False
        self._cut = False

    @property
    def over(self) -> bool:
        """Whether nothing more is looked at: a reply of Gemini's has no last event, so only a failure ends it."""
        return self._failed

    @property
    def complete(self) -> bool:
        """Whether every candidate has ended."""
        candidates = self._candidates.values()
        return not self._cut and (all(item.finish for item in candidates) if candidates else bool(self._block_reason()))

    def feed(self, item: Frame) -> Sequence[Event]:
        """Take one frame. Never raises: what cannot be read is a Failed event, after which nothing follows."""
        data = item.data
        if data is None or self._failed:
            return ()
        # Only a candidate that has begun can go on.
        if self._candidates and (continued := self._continued(data)) is not None:
            return (continued,)
        try:
            response = _decode(data) if len(data) < SLICED_BYTES else None
        except _UNREADABLE:
            response = None
        events: list[Event] = []
        try:
            if response is not None and (len(data) <= MAX_DEPTH or has_few_brackets(data)):
                self._take(response, events)
            else:
                self._take_apart(data, events, complete=item.complete)
        except ProviderError as problem:
            self._fail(problem, events)
        return events

    def finish(self) -> Sequence[Event]:
        """Say what holds for the reply as a whole, and how it ended."""
        events: list[Event] = []
        if not self._failed:
            try:
                self._report(events)
                self._end(events)
            except MalformedReply as problem:
                self._fail(problem, events)
        self._failed = True
        return events

    def _take_apart(self, data: bytes, events: list[Event], *, complete: bool) -> None:
        """Take the chunks in a frame part by part: one, or those of an array. Half a chunk is what a cut connection leaves."""
        chunks: Iterable[object] = ()
        try:
            payload = decode_leniently(data, events)
            chunks = payload if isinstance(payload, list) else (payload,)
        except ValueError as problem:
            self._cut = True
            if data.lstrip().startswith(b"["):
                chunks = _whole_elements(data.decode("utf-8", "replace"))
            elif complete:
                raise MalformedReply(f"the reply is not JSON: {excerpt(data)}") from problem
        for chunk in chunks:
            response, fault = _response_apart(chunk)
            self._take(response, events)
            if fault is not None:
                raise fault

    def _continued(self, data: bytes) -> Event | None:
        """Return the event of a chunk that only goes on with the open block, as most do; None of any other. It takes half the time."""
        try:
            chunk = _decode_text(data) if len(data) < SLICED_BYTES else None
        except _UNREADABLE:
            return None
        if chunk is None or self._named != (chunk.response_id, chunk.model_version, chunk.create_time):
            return None
        first = chunk.candidates[0]
        part = first.content.parts[0]
        text, kind = part.text, "thought" if part.thought else "text"
        candidate = self._candidates.get(first.index if type(first.index) is int else 0)
        if candidate is None or not text or candidate.kind != kind or candidate.finish:
            return None
        self._take_usage(chunk.usage_metadata)
        if kind == "thought":
            return ThinkChunk(candidate.block, text, candidate.part, candidate.choice)
        return ContentChunk(candidate.block, text, candidate.choice)

    def _take(self, response: wire.Response, events: list[Event]) -> None:
        if response.error is not None:
            raise refused(response.error, provider=self._provider)
        named = (response.response_id, response.model_version, response.create_time)
        if named != self._named:
            self._named = named
            self._take_start(response, events)
        for name, value in _given(response).items():
            _merge(self._fields, name, value)
        if bytes(response.usage_metadata)[:1] not in _BEGINNINGS_OF_USAGE:
            raise _not_as_said("usageMetadata")
        self._take_usage(response.usage_metadata)
        for position, item in enumerate(response.candidates or ()):
            choice = item.index if type(item.index) is int and item.index >= 0 else position
            candidate = self._candidates.get(choice)
            if candidate is None:
                candidate = self._candidates[choice] = Candidate(choice)
            candidate.read(item, events)

    def _take_start(self, response: wire.Response, events: list[Event]) -> None:
        held = self._start or ReplyStart()
        self._created = response.create_time or self._created
        start = ReplyStart(
            id=response.response_id or held.id,
            model=response.model_version or held.model,
            created=seconds_of(self._created),
        )
        if response.create_time is not UNSET:
            _merge(self._fields, "createTime", response.create_time)
        if start != self._start:
            self._start = start
            events.append(start)

    def _take_usage(self, usage: msgspec.Raw) -> None:
        if usage not in _NO_USAGE:
            self._usage = usage

    def _report(self, events: list[Event]) -> None:
        for candidate in self._candidates.values():
            candidate.close(events)
        if self._usage != _ABSENT:
            grounding = [candidate.fields.get("groundingMetadata") for candidate in self._candidates.values()]
            usage, degraded = decode_usage(self._whole_usage(events), self._excludes_reasoning, grounding)
            events.extend(Degraded(loss) for loss in degraded)
            events.append(UsageUpdate(usage))
        if self._fields:
            events.append(ReplyFields(NAME, self._fields))
        for choice, candidate in self._candidates.items():
            if candidate.fields:
                events.append(ReplyFields(NAME, candidate.fields, choice))

    def _whole_usage(self, events: list[Event]) -> JsonObject:
        try:
            return _checked(decode_leniently(bytes(self._usage), events), dict, "usageMetadata") or {}
        except ValueError as problem:
            raise MalformedReply(f"`usageMetadata` is not JSON: {problem}") from problem

    def _end(self, events: list[Event]) -> None:
        blocked = self._block_reason()
        candidates = self._candidates
        if blocked and not candidates:
            events.append(Finish("refusal", blocked))
            return
        ended = bool(candidates) and not self._cut
        for choice, candidate in candidates.items():
            if candidate.finish:
                reason = finish_reason(candidate.finish, called=candidate.calls > 0)
                events.append(Finish(reason, candidate.finish, choice=choice))
            elif blocked:
                events.append(Finish("refusal", blocked, choice=choice))
            else:
                ended = False
        if not ended:
            self._failed = True
            events.append(Failed(BrokenStream("the reply ended without a finish reason", provider=self._provider)))

    def _block_reason(self) -> str:
        feedback = self._fields.get("promptFeedback")
        reason = feedback.get("blockReason") if isinstance(feedback, dict) else None
        return reason if isinstance(reason, str) else ""

    def _fail(self, problem: ProviderError, events: list[Event]) -> None:
        """Return what came before the failure, then the failure."""
        self._failed = True
        problem.provider = self._provider
        with suppress(MalformedReply):
            self._report(events)
        events.append(Failed(problem))


class Candidate:
    """One candidate, as far as it has come. `kind` and `block` say which block further text continues.

    Thought and text parts of later chunks are pieces of the block that is open; two thought parts within one chunk are two parts of a
    summary. A part that carries a signature, or any field beside its text, stands alone, since Google asks that signed parts are never
    merged with others. A signed thought part, which only bardo writes, closes the thinking it ends.
    """

    def __init__(self, choice: int) -> None:
        self.choice = choice
        self.kind: Literal["", "text", "thought"] = ""
        self.block = -1
        self.part = 0
        self.calls = 0
        self.finish = ""
        self.fields: JsonObject = {}
        self._next = 0
        self._thought_in_chunk = False

    def read(self, candidate: wire.Candidate, events: list[Event]) -> None:
        """Add what one chunk says of this candidate to `events`. Raises MalformedReply."""
        self._thought_in_chunk = False
        before = len(events)
        content = candidate.content
        if content is not None:
            for part in content.parts or ():
                if part.function_call:
                    self._call(part, part.function_call, events)
                elif isinstance(part.text, str):
                    self._text(part, part.text, events)
                elif whole := _given(part):
                    self._begin("", events)
                    events.append(UnknownContent(self.block, NAME, whole, self.choice))
            if content.others:
                _merge(self.fields, "content", dict(content.others))
        # STOP also comes in mid-stream, after a tool the provider ran: what follows it must come to an end of its own.
        earlier = "" if len(events) > before else self.finish
        self.finish = candidate.finish_reason or earlier
        for name, value in _given(candidate).items():
            _merge(self.fields, name, value)

    def close(self, events: list[Event]) -> None:
        """End the open block."""
        if self.kind == "thought":
            events.append(ThinkEnd(self.block, self.choice))
        self.kind = ""

    def _text(self, part: wire.ReplyPart, text: str, events: list[Event]) -> None:
        signature, fields = part.thought_signature or "", dict(part.others or {})
        if part.function_call is None:
            fields["functionCall"] = None
        alone = bool(signature or fields)
        if part.thought:
            self._think(text, alone, events)
        elif alone:
            self._begin("text", events)
            # The block begins before its state, and its text follows: who writes Gemini again knows both at once.
            events.append(ContentChunk(self.block, "", self.choice))
        elif text and self.kind != "text":
            self._begin("text", events)
        self._decorate(signature, fields, events)
        if self.kind == "text" and text:
            events.append(ContentChunk(self.block, text, self.choice))
        if alone:
            self.close(events)

    def _think(self, text: str, alone: bool, events: list[Event]) -> None:
        further = self.kind == "thought" and self._thought_in_chunk
        if self.kind != "thought":
            if not text and not alone:
                return
            self._begin("thought", events)
            self.part = 0
            events.append(ThinkStart(self.block, FORMAT, self.choice))
        self._thought_in_chunk = True
        self.part += further
        if text or further:
            events.append(ThinkChunk(self.block, text, self.part, self.choice))

    def _call(self, part: wire.ReplyPart, call: wire.ReplyCall, events: list[Event]) -> None:
        if not call.name:
            raise MalformedReply("a function call without a name")
        self._begin("", events)
        signature = part.thought_signature or ""
        events.append(ToolCallStart(self.block, call.id or "", call.name, self.choice, bool(signature)))
        self.calls += 1
        fields = {
            name: value for name, value in _given(part).items() if name not in ("functionCall", "thoughtSignature")
        }
        inside = {**(call.others or {}), **({} if call.id else {"id": None})}
        if inside:
            fields["functionCall"] = inside
        self._decorate(signature, fields, events)
        events.append(ToolCallChunk(self.block, arguments_text(call.args or {}), self.choice))
        events.append(ToolCallEnd(self.block, self.choice))

    def _decorate(self, signature: str, fields: JsonObject, events: list[Event]) -> None:
        if fields:
            events.append(BlockFields(self.block, NAME, fields, self.choice))
        if signature:
            events.append(OpaqueState(self.block, Opaque("signature", signature, FORMAT), self.choice))

    def _begin(self, kind: Literal["", "text", "thought"], events: list[Event]) -> None:
        self.close(events)
        self.kind, self.block = kind, self._next
        self._next += 1


_decode = msgspec.json.Decoder(wire.Response).decode
_decode_text = msgspec.json.Decoder(wire.TextChunk).decode
_ABSENT = msgspec.Raw()
_NO_USAGE = (_ABSENT, msgspec.Raw(b"null"), msgspec.Raw(b"{}"))
"""Usage that says nothing."""
_BEGINNINGS_OF_USAGE = (b"", b"n", b"{")
"""The first bytes of an object, of null and of nothing."""
_UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)


def _response_apart(payload: object) -> tuple[wire.Response, MalformedReply | None]:
    """Return a response as far as it fits the API, and its faults behind that: fields without a name stand beside its structs.

    Raises MalformedReply where nothing is as it should be.
    """
    if not isinstance(payload, dict):
        raise MalformedReply("a chunk that is no JSON object")
    if payload.get("error") is not None:
        return wire.Response(error=payload["error"]), None
    response = _read(_without(payload, "candidates", "usageMetadata"), wire.Response, _OF_RESPONSE)
    if "usageMetadata" in payload:
        response.usage_metadata = msgspec.Raw(msgspec.json.encode(payload["usageMetadata"]))
    try:
        listed = _checked(payload.get("candidates"), list, "candidates") or ()
        response.candidates = []
        for item in listed:
            candidate, fault = _candidate_apart(_checked(item, dict, "candidates[]") or {})
            response.candidates.append(candidate)
            if fault is not None:
                return response, fault
    except MalformedReply as fault:
        return response, fault
    return response, None


def _candidate_apart(fields: JsonObject) -> tuple[wire.Candidate, MalformedReply | None]:
    parts: list[wire.ReplyPart] = []
    content = wire.ReplyContent(parts=parts)
    try:
        given = _checked(fields.get("content"), dict, "content") or {}
        for part in _checked(given.get("parts"), list, "parts") or ():
            parts.append(_part_apart(_checked(part, dict, "parts[]") or {}))
        content.others = Others(_without(given, "parts", "role"))
        candidate = _read(_without(fields, "content"), wire.Candidate, _OF_CANDIDATE)
    except MalformedReply as fault:
        return wire.Candidate(content=content), fault
    candidate.content = content
    return candidate, None


def _part_apart(part: JsonObject) -> wire.ReplyPart:
    """Return a call, or a text, with all that it says beside that; of anything else all stands beside."""
    if _is_whole_call(part):
        call = _read(part["functionCall"], wire.ReplyCall, ("name", "args", "id"), "functionCall.")
        return _read({**part, "functionCall": call}, wire.ReplyPart, ("functionCall", "thoughtSignature"))
    is_text = part.get("text") is not None
    return _read(part, wire.ReplyPart, ("text", "thought", "thoughtSignature") if is_text else ())


def _is_whole_call(part: JsonObject) -> bool:
    """Whether a part is a call with all its arguments, and no piece of one. Raises MalformedReply."""
    call = part.get("functionCall")
    return call is not None and "partialArgs" not in (_checked(call, dict, "functionCall") or ())


def _names(kind: type[Wire]) -> frozenset[str]:
    return frozenset(field.encode_name for field in msgspec.structs.fields(kind)) - {OTHERS}


_OF_RESPONSE, _OF_CANDIDATE = _names(wire.Response), _names(wire.Candidate)
_WRONG = re.compile(r"`\$\.([^`]*)`$")


def _read(fields: JsonObject, kind: type[W], own_names: Collection[str], at: str = "") -> W:
    """Return an object as a struct, with the fields that are not `known` beside it. Raises MalformedReply."""
    others = Others({name: value for name, value in fields.items() if name not in own_names})
    try:
        return msgspec.convert(
            {name: fields[name] for name in own_names if name in fields} | {OTHERS: others or None}, kind
        )
    except msgspec.ValidationError as problem:
        wrong = _WRONG.search(str(problem))
        raise _not_as_said(at + (wrong[1] if wrong else "")) from problem


def _checked(value: object, kind: type[T], what: str) -> T | None:
    """Return a value of the kind, or None. Raises MalformedReply naming the field."""
    if value is None or type(value) is kind:
        return value
    raise _not_as_said(what)


def _not_as_said(what: str) -> MalformedReply:
    return MalformedReply(f"`{what}` is not what the Gemini API says it is")


def _without(fields: JsonObject, *names: str) -> JsonObject:
    return {name: value for name, value in fields.items() if name not in names}


def _given(struct: wire.Response | wire.Candidate | wire.ReplyPart) -> JsonObject:
    """Return the fields of a struct that are set and only carried, those beside it included."""
    names, values_of, unset = _CARRIED[type(struct)]
    values = values_of(struct)
    if values == unset:
        return _NOTHING
    others, *given = values
    return {name: value for name, value in zip(names, given, strict=True) if value is not UNSET} | (others or {})


def _carried_by(
    kind: type[Wire], *read: str
) -> tuple[list[str], Callable[[Wire], tuple[Any, ...]], tuple[object, ...]]:
    fields = [field for field in msgspec.structs.fields(kind) if field.default is UNSET and field.name not in read]
    names = [field.encode_name for field in fields]
    return names, attrgetter("others", *(field.name for field in fields)), (None, *[UNSET] * len(fields))


_CARRIED = {
    wire.Response: _carried_by(wire.Response, "create_time"),
    wire.Candidate: _carried_by(wire.Candidate),
    wire.ReplyPart: _carried_by(wire.ReplyPart),
}
_NOTHING: JsonObject = {}

# Lists inside these belong to stretches of the text; all other fields describe the candidate as it stands.
_GROWING = ("logprobsResult", "citationMetadata")


def _merge(earlier: JsonObject, name: str, value: Any) -> None:
    """Take a field that a later chunk says again, in part, or empty: what was said before stays unless it is replaced."""
    before = earlier.get(name)
    if before is None:
        earlier[name] = value
    elif isinstance(before, dict) and isinstance(value, dict):
        earlier[name] = _grown(before, value) if name in _GROWING else {**before, **value}
    elif value not in (None, [], {}, ""):
        earlier[name] = value


def _grown(before: JsonObject, value: JsonObject) -> JsonObject:
    for name, later in value.items():
        earlier = before.get(name)
        # Some fields are repeated from the start, some continued.
        if isinstance(earlier, list) and isinstance(later, list) and later[: len(earlier)] != earlier:
            earlier.extend(later)
        else:
            before[name] = later
    return before


_BETWEEN = re.compile(r"[\s,]*")


def _whole_elements(array: str) -> Iterator[object]:
    """Yield the elements of an array that breaks off, as far as they are whole."""
    decoder, position = json.JSONDecoder(), array.index("[") + 1
    with suppress(ValueError, RecursionError):
        while True:
            start = _BETWEEN.match(array, position)
            element, position = decoder.raw_decode(array, start.end() if start else position)
            yield without_surrogates(element)


def without_calls(data: bytes, places: Collection[int]) -> bytes:
    """Return a chunk without the calls at these places, counted over all its candidates."""
    payload = decode_leniently(data)
    number = count()
    for chunk in payload if isinstance(payload, list) else [payload]:
        for candidate in chunk.get("candidates") or ():
            content = (candidate or {}).get("content") or {}
            if parts := content.get("parts"):
                content["parts"] = [
                    part for part in parts if not (_is_whole_call(part or {}) and next(number) in places)
                ]
    return msgspec.json.encode(payload)

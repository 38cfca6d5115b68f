"""Frames of a Gemini reply to events.

A whole body, a chunk of a stream and an element of the JSON array that a stream without `alt=sse` is: all are one
GenerateContentResponse, so all go one way. What describes the reply as a whole (usage, grounding, the finish reason, which may
come in mid-stream) is kept until the end and given once.

One candidate of a reply, read part by part into events.

Thought and text parts of later chunks are pieces of the block that is open; two thought parts within one chunk are two parts of a
summary. A part that carries a signature, or any field beside its text, stands alone, since Google asks that signed parts are never
merged with others. A signed thought part, which only bardo writes, closes the thinking it ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from typing import Any, Literal

import msgspec

from bardo.dialects.gemini.errors import refused
from bardo.dialects.gemini.usage import decode_usage
from bardo.dialects.gemini.wire import FORMAT, NAME, arguments_text, finish_reason
from bardo.dialects.shared.bounded_json import SLICED_BYTES, has_few_brackets
from bardo.dialects.shared.dialect import PlainReplyDecoder
from bardo.dialects.shared.json_values import decode_leniently, excerpt, without_surrogates
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

Kind = Literal["", "text", "thought"]

# Lists inside these belong to stretches of the text; all other fields describe the candidate as it stands.
_GROWING = ("logprobsResult", "citationMetadata")


class Candidate:
    """One candidate, as far as it has come. `kind` and `block` say which block further text continues."""

    def __init__(self, choice: int) -> None:
        self.choice = choice
        self.kind: Kind = ""
        self.block = -1
        self.part = 0
        self.calls = 0
        self.finish = ""
        self.fields: dict[str, Any] = {}
        self._next = 0
        self._thought_in_chunk = False

    def read(self, candidate: dict[str, Any], events: list[Event]) -> None:
        """Add what one chunk says of this candidate to `events`. Raises MalformedReply."""
        self._thought_in_chunk = False
        before = len(events)
        self._decode_content(candidate.get("content"), events)
        # STOP also comes in mid-stream, after a tool the provider ran: what follows it must come to an end of its own.
        earlier = "" if len(events) > before else self.finish
        self.finish = checked(candidate.get("finishReason"), str, "finishReason") or earlier
        for name, value in _other_fields(candidate, "content", "finishReason", "index").items():
            merge_field(self.fields, name, value)

    def close(self, events: list[Event]) -> None:
        """End the open block."""
        if self.kind == "thought":
            events.append(ThinkEnd(self.block, self.choice))
        self.kind = ""

    def _decode_content(self, value: Any, events: list[Event]) -> None:
        content = checked(value, dict, "content") or {}
        for part in checked(content.get("parts"), list, "parts") or ():
            self._decode_part(checked(part, dict, "parts[]") or {}, events)
        other_fields = {name: field for name, field in content.items() if name not in ("parts", "role")}
        if other_fields:
            merge_field(self.fields, "content", other_fields)

    def _decode_part(self, part: dict[str, Any], events: list[Event]) -> None:
        if _is_whole_call(part):
            self._decode_call(part, part["functionCall"], events)
        elif checked(part.get("text"), str, "text") is not None:
            self._decode_text(part, events)
        elif part:
            self._begin("", events)
            events.append(UnknownContent(self.block, NAME, part, self.choice))

    def _decode_text(self, part: dict[str, Any], events: list[Event]) -> None:
        signature = checked(part.get("thoughtSignature"), str, "thoughtSignature") or ""
        other_fields = _other_fields(part, "text", "thought", "thoughtSignature")
        alone = bool(signature or other_fields)
        if checked(part.get("thought"), bool, "thought"):
            self._think(part["text"], alone, events)
        elif alone:
            self._begin("text", events)
            # The block begins before its state, and its text follows: who writes Gemini again knows both at once.
            events.append(ContentChunk(self.block, "", self.choice))
        elif part["text"] and self.kind != "text":
            self._begin("text", events)
        self._decorate(signature, other_fields, events)
        if self.kind == "text" and part["text"]:
            events.append(ContentChunk(self.block, part["text"], self.choice))
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

    def _decode_call(self, part: dict[str, Any], call: dict[str, Any], events: list[Event]) -> None:
        name = checked(call.get("name"), str, "functionCall.name")
        if not name:
            raise MalformedReply("a function call without a name")
        own_id = checked(call.get("id"), str, "functionCall.id")
        self._begin("", events)
        signature = checked(part.get("thoughtSignature"), str, "thoughtSignature") or ""
        events.append(ToolCallStart(self.block, own_id or "", name, self.choice, bool(signature)))
        self.calls += 1
        inside = _other_fields(call, "name", "args", "id") | ({} if own_id else {"id": None})
        other_fields = _other_fields(part, "functionCall", "thoughtSignature") | (
            {"functionCall": inside} if inside else {}
        )
        self._decorate(signature, other_fields, events)
        arguments = arguments_text(checked(call.get("args"), dict, "functionCall.args") or {})
        events.append(ToolCallChunk(self.block, arguments, self.choice))
        events.append(ToolCallEnd(self.block, self.choice))

    def _decorate(self, signature: str, other_fields: dict[str, Any], events: list[Event]) -> None:
        if other_fields:
            events.append(BlockFields(self.block, NAME, other_fields, self.choice))
        if signature:
            events.append(OpaqueState(self.block, Opaque("signature", signature, FORMAT), self.choice))

    def _begin(self, kind: Kind, events: list[Event]) -> None:
        self.close(events)
        self.kind, self.block = kind, self._next
        self._next += 1


def merge_field(earlier: dict[str, Any], name: str, value: Any) -> None:
    """Take a field that a later chunk says again, in part, or empty: what was said before stays unless it is replaced."""
    before = earlier.get(name)
    if before is None:
        earlier[name] = value
    elif isinstance(before, dict) and isinstance(value, dict):
        earlier[name] = _grown(before, value) if name in _GROWING else {**before, **value}
    elif value not in (None, [], {}, ""):
        earlier[name] = value


def checked(value: Any, kind: type, what: str) -> Any:
    """Return a value of the kind, or None. Raises MalformedReply naming the field."""
    if value is None or type(value) is kind:
        return value
    raise MalformedReply(f"`{what}` is not what the Gemini API says it is")


def _grown(before: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    for name, later in value.items():
        earlier = before.get(name)
        # Some fields are repeated from the start, some continued.
        if isinstance(earlier, list) and isinstance(later, list) and later[: len(earlier)] != earlier:
            earlier.extend(later)
        else:
            before[name] = later
    return before


def _is_whole_call(part: dict[str, Any]) -> bool:
    """Whether a part is a call with all its arguments, and no piece of one. Raises MalformedReply."""
    call = part.get("functionCall")
    return call is not None and "partialArgs" not in (checked(call, dict, "functionCall") or ())


def without_calls(data: bytes, places: Collection[int]) -> bytes:
    """Return a chunk without the calls at these places, counted over all its candidates."""
    payload = decode_leniently(data)
    found = count()
    for chunk in payload if isinstance(payload, list) else [payload]:
        for candidate in chunk.get("candidates") or ():
            content = (candidate or {}).get("content") or {}
            if parts := content.get("parts"):
                content["parts"] = [
                    part for part in parts if not (_is_whole_call(part or {}) and next(found) in places)
                ]
    return msgspec.json.encode(payload)


def _other_fields(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


_BETWEEN = re.compile(r"[\s,]*")
_UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)


class _Part(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    text: str
    thought: bool = False


class _Content(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    parts: list[_Part]
    role: str = ""


class _Candidate(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    content: _Content
    index: int = 0


class _Chunk(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The usual chunk and nothing else: one that holds more does not fit, and goes the long way."""

    candidates: list[_Candidate]
    usageMetadata: msgspec.Raw = msgspec.Raw()  # noqa: N815
    modelVersion: str = ""  # noqa: N815
    responseId: str = ""  # noqa: N815
    createTime: str = ""  # noqa: N815


class _StrictChunk(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The same, with all of it read."""

    candidates: list[_Candidate]
    usageMetadata: dict[str, Any] | None = None  # noqa: N815
    modelVersion: str = ""  # noqa: N815
    responseId: str = ""  # noqa: N815
    createTime: str = ""  # noqa: N815


_decode_strict = msgspec.json.Decoder(_StrictChunk).decode
_decode_usual = msgspec.json.Decoder(_Chunk).decode


class GeminiDecoder(PlainReplyDecoder):
    """Reads one reply, whole or streamed. `excludes_reasoning` is the provider's fact about how thoughts are counted."""

    def __init__(self, *, provider: str = "", excludes_reasoning: bool | None = None) -> None:
        self._provider = provider
        self._excludes_reasoning = excludes_reasoning
        self._start: ReplyStart | None = None
        self._created = ""
        self._candidates: dict[int, Candidate] = {}
        self._usage: Any = None
        self._fields: dict[str, Any] = {}
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
        return not self._cut and (all(one.finish for one in candidates) if candidates else bool(self._block_reason()))

    def feed(self, item: Frame) -> Sequence[Event]:
        """Take one frame. Never raises: what cannot be read is a Failed event, after which nothing follows."""
        if item.data is None or self._failed:
            return ()
        if len(item.data) >= SLICED_BYTES:
            return self._read(item)
        try:
            usual = _decode_usual(item.data)
        except _UNREADABLE:
            return self._read(item)
        return self._continued(usual) or self._read(item)

    def read_plain_frame(self, item: Frame) -> Sequence[Event] | None:
        """Return the event of a chunk that only continues the open block."""
        data = item.data or b""
        if len(data) >= SLICED_BYTES:
            return None
        try:
            chunk = _decode_strict(data)
        except _UNREADABLE:
            return None
        # What is null or empty there is a report too, which only the general way can tell from none.
        doubtful = not chunk.usageMetadata and b"usageMetadata" in data
        if self._failed or doubtful or not has_few_brackets(data):
            return None
        return self._continued(chunk) or None

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

    def _continued(self, chunk: _Chunk | _StrictChunk) -> Sequence[Event]:
        """Return the one event of a chunk that only continues the open block, or nothing."""
        start = self._start
        if start is None or len(chunk.candidates) != 1 or chunk.createTime != self._created:
            return ()
        if chunk.responseId != start.id or chunk.modelVersion != start.model:
            return ()
        fields = chunk.candidates[0]
        candidate = self._candidates.get(fields.index)
        if candidate is None or candidate.finish or len(fields.content.parts) != 1:
            return ()
        part = fields.content.parts[0]
        if not part.text or candidate.kind != ("thought" if part.thought else "text"):
            return ()
        self._usage = chunk.usageMetadata or self._usage
        if part.thought:
            return (ThinkChunk(candidate.block, part.text, candidate.part, fields.index),)
        return (ContentChunk(candidate.block, part.text, fields.index),)

    def _read(self, item: Frame) -> Sequence[Event]:
        events: list[Event] = []
        try:
            for payload in self._payloads(item, events):
                self._decode_payload(payload, events)
        except ProviderError as problem:
            self._fail(problem, events)
        return events

    def _payloads(self, item: Frame, events: list[Event]) -> Iterable[Any]:
        """Return the chunks in a frame: one, or those of an array. Half a chunk is what a cut connection leaves."""
        data = item.data or b""
        try:
            payload = decode_leniently(data, events)
        except ValueError as problem:
            self._cut = True
            if data.lstrip().startswith(b"["):
                return _whole_elements(data.decode("utf-8", "replace"))
            if item.complete:
                raise MalformedReply(f"the reply is not JSON: {excerpt(data)}") from problem
            return ()
        return payload if isinstance(payload, list) else (payload,)

    def _decode_payload(self, payload: Any, events: list[Event]) -> None:
        if not isinstance(payload, dict):
            raise MalformedReply("a chunk that is no JSON object")
        if payload.get("error") is not None:
            raise refused(payload["error"], provider=self._provider)
        self._decode_start(payload, events)
        for name, value in payload.items():
            if name not in ("candidates", "usageMetadata", "modelVersion", "responseId", "error"):
                merge_field(self._fields, name, value)
        self._usage = checked(payload.get("usageMetadata"), dict, "usageMetadata") or self._usage
        for position, fields in enumerate(checked(payload.get("candidates"), list, "candidates") or ()):
            self._decode_candidate(checked(fields, dict, "candidates[]") or {}, position, events)

    def _decode_candidate(self, fields: dict[str, Any], position: int, events: list[Event]) -> None:
        index = fields.get("index")
        choice = index if type(index) is int and index >= 0 else position
        candidate = self._candidates.get(choice)
        if candidate is None:
            candidate = self._candidates[choice] = Candidate(choice)
        candidate.read(fields, events)

    def _decode_start(self, payload: dict[str, Any], events: list[Event]) -> None:
        held = self._start or ReplyStart()
        self._created = checked(payload.get("createTime"), str, "createTime") or self._created
        start = ReplyStart(
            id=checked(payload.get("responseId"), str, "responseId") or held.id,
            model=checked(payload.get("modelVersion"), str, "modelVersion") or held.model,
            created=_seconds(self._created),
        )
        if start != self._start:
            self._start = start
            events.append(start)

    def _report(self, events: list[Event]) -> None:
        for candidate in self._candidates.values():
            candidate.close(events)
        if self._usage is not None:
            grounding = [one.fields.get("groundingMetadata") for one in self._candidates.values()]
            usage, degraded = decode_usage(self._whole_usage(events), self._excludes_reasoning, grounding)
            events.extend(Degraded(one) for one in degraded)
            events.append(UsageUpdate(usage))
        if self._fields:
            events.append(ReplyFields(NAME, self._fields))
        for choice, candidate in self._candidates.items():
            if candidate.fields:
                events.append(ReplyFields(NAME, candidate.fields, choice))

    def _whole_usage(self, events: list[Event]) -> dict[str, Any]:
        if not isinstance(self._usage, msgspec.Raw):
            return self._usage  # type: ignore[no-any-return]
        try:
            return checked(decode_leniently(bytes(self._usage), events), dict, "usageMetadata") or {}
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


def _whole_elements(array: str) -> Iterator[Any]:
    """Yield the elements of an array that breaks off, as far as they are whole."""
    decoder, position = json.JSONDecoder(), array.index("[") + 1
    with suppress(ValueError, RecursionError):
        while True:
            start = _BETWEEN.match(array, position)
            element, position = decoder.raw_decode(array, start.end() if start else position)
            yield without_surrogates(element)


def _seconds(moment: str) -> int | None:
    try:
        time = datetime.fromisoformat(moment)
        return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None

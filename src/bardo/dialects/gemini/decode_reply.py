"""Frames of a Gemini reply to events.

A whole body, a chunk of a stream and an element of the JSON array that a stream without `alt=sse` is: all are one
GenerateContentResponse, so all go one way. What describes the reply as a whole (usage, grounding, the finish reason, which may
come in mid-stream) is kept until the end and given once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from bardo.dialects.base import PlainReplyDecoder
from bardo.dialects.bounded_json import SLICED_BYTES, has_few_brackets
from bardo.dialects.gemini.constants import NAME, finish_reason
from bardo.dialects.gemini.errors import refused
from bardo.dialects.gemini.reply_parts import Candidate, checked, merge_field
from bardo.dialects.gemini.usage import decode_usage
from bardo.dialects.lenient import decode_leniently, excerpt, without_surrogates
from bardo.streams.frames import Frame
from bardo.values.errors import BrokenStream, MalformedReply, ProviderError
from bardo.values.events import (
    ContentChunk,
    Degraded,
    Event,
    Failed,
    Finish,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    UsageUpdate,
)

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

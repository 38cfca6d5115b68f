"""Chat Completions replies to events, whole or streamed.

A whole message is read as one delta, so both go one way. Reading is liberal: the OpenAI-compatible family puts reasoning into
`reasoning_content`, `reasoning`, `reasoning_details` or a list of content parts, some of them at once with the same text. One of
them is read for each choice, and never added to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.dialects.lenient import decode_leniently, excerpt
from bardo.dialects.openai_chat.choice import NAME, ChoiceReader
from bardo.dialects.openai_chat.errors import error_in_reply
from bardo.dialects.openai_chat.usage import read_usage
from bardo.streams.frames import Frame
from bardo.values.errors import BrokenStream, MalformedReply
from bardo.values.events import Degraded, Event, Failed, ReplyFields, ReplyStart, UsageUpdate
from bardo.values.usage import Usage

# Random filler against traffic analysis, new in every frame.
_PADDING = frozenset({"obfuscation", "p"})
_READ_HERE = frozenset({"id", "object", "created", "model", "choices", "usage", "error"}) | _PADDING


class _Delta(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    role: str | None = None
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: None = None
    refusal: None = None


class _Choice(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    delta: _Delta
    index: int = 0
    finish_reason: None = None
    native_finish_reason: None = None
    logprobs: None = None


class _Chunk(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A frame that says nothing but a piece of text; everything else goes the general way."""

    choices: tuple[_Choice]
    id: msgspec.Raw = msgspec.Raw()
    object: msgspec.Raw = msgspec.Raw()
    created: msgspec.Raw = msgspec.Raw()
    model: msgspec.Raw = msgspec.Raw()
    system_fingerprint: msgspec.Raw = msgspec.Raw()
    service_tier: msgspec.Raw = msgspec.Raw()
    provider: msgspec.Raw = msgspec.Raw()
    obfuscation: msgspec.Raw = msgspec.Raw()
    usage: None = None


_decode_plain = msgspec.json.Decoder(_Chunk).decode


class ChatDecoder:
    """Reads one reply. `beside` is the provider's fact about reasoning tokens, None where it is not known."""

    def __init__(self, *, provider: str = "", beside: bool | None = None) -> None:
        self._provider = provider
        self._beside = beside
        self._choices: dict[int, ChoiceReader] = {}
        self._start: ReplyStart | None = None
        self._fields: dict[str, Any] = {}
        self._usage: Usage | None = None
        self._closed = False
        self._failed = False
        self._whole = False
        self._seen = False

    def feed(self, item: Frame) -> Sequence[Event]:
        """Return the events of one frame."""
        data = item.data
        if data is None or self._failed:
            return ()
        if self._start is not None and item.event == "":
            try:
                chunk = _decode_plain(data)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                return self._general(data, complete=item.complete)
            choice = chunk.choices[0]
            return self._reader(choice.index).plain(
                choice.delta.reasoning_content, choice.delta.reasoning, choice.delta.content
            )
        return self._general(data, complete=item.complete)

    def finish(self) -> Sequence[Event]:
        """Close what is open; a stream that ended too early fails here."""
        if self._failed:
            return ()
        events: list[Event] = []
        for reader in self._choices.values():
            events += reader.close(settle=self._whole or self._closed)
        if not self._seen:
            return [*events, self._fail(MalformedReply("the reply is empty", provider=self._provider))]
        if not self._whole and not self._closed and not self._all_finished():
            events.append(self._fail(BrokenStream("the stream ended before its end", provider=self._provider)))
        return events

    def _all_finished(self) -> bool:
        return bool(self._choices) and all(reader.finished for reader in self._choices.values())

    def _fail(self, error: MalformedReply | BrokenStream) -> Failed:
        self._failed = True
        return Failed(error)

    def _general(self, data: bytes, *, complete: bool) -> Sequence[Event]:
        text = data.strip()
        if text == b"[DONE]":
            self._seen = self._closed = True
            return ()
        try:
            body = decode_leniently(text)
        except ValueError:
            return self._not_json(text, complete=complete)
        if not isinstance(body, dict):
            return [self._fail(MalformedReply(f"not a chat reply: {excerpt(text)}", provider=self._provider))]
        self._seen = True
        return self._body(body)

    def _not_json(self, text: bytes, *, complete: bool) -> Sequence[Event]:
        if not text:
            return ()
        self._seen = True
        if not complete and self._choices:
            return [self._fail(BrokenStream("the stream broke off inside an event", provider=self._provider))]
        return [self._fail(MalformedReply(f"the reply is not JSON: {excerpt(text)}", provider=self._provider))]

    def _body(self, body: dict[str, Any]) -> Sequence[Event]:
        events: list[Event] = self._begin(body)
        choices = body.get("choices")
        if isinstance(choices, list):
            for position, choice in enumerate(choices):
                if isinstance(choice, dict):
                    events += self._choice(choice, position)
        events += self._reply_fields(body)
        events += self._usage_of(body)
        error = error_in_reply(body, self._provider)
        if error is not None:
            for reader in self._choices.values():
                events += reader.close(settle=False)
            self._failed = True
            events.append(Failed(error))
        elif not isinstance(choices, list) and "usage" not in body and not self._choices:
            known = excerpt(msgspec.json.encode(sorted(body)))
            events.append(self._fail(MalformedReply(f"no choices in the reply: {known}", provider=self._provider)))
        return events

    def _begin(self, body: dict[str, Any]) -> list[Event]:
        created = body.get("created")
        start = ReplyStart(
            id=_text(body.get("id")),
            model=_text(body.get("model")),
            created=int(created) if isinstance(created, int | float) and abs(created) < 1 << 53 else None,
        )
        known = self._start
        if known is None or any((start.id and not known.id, start.model and not known.model)):
            self._start = start
            return [start]
        return []

    def _choice(self, choice: dict[str, Any], position: int) -> list[Event]:
        index = choice.get("index")
        reader = self._reader(index if isinstance(index, int) else position)
        delta = choice.get("delta")
        message = choice.get("message")
        if isinstance(message, dict) and not isinstance(delta, dict):
            self._whole = True
        return reader.take(choice, delta if isinstance(delta, dict) else message if isinstance(message, dict) else {})

    def _reader(self, index: int) -> ChoiceReader:
        reader = self._choices.get(index)
        if reader is None:
            reader = self._choices[index] = ChoiceReader(index)
        return reader

    def _reply_fields(self, body: dict[str, Any]) -> list[Event]:
        new = {
            name: value
            for name, value in body.items()
            if name not in _READ_HERE and (name not in self._fields or self._fields[name] != value)
        }
        if not new:
            return []
        self._fields.update(new)
        return [ReplyFields(NAME, new)]

    def _usage_of(self, body: dict[str, Any]) -> list[Event]:
        raw = body.get("usage")
        if not isinstance(raw, dict):
            # Groq repeats the usage chunk's content here, a frame earlier; Moonshot puts it on the choice.
            beside_choice = body.get("x_groq")
            raw = beside_choice.get("usage") if isinstance(beside_choice, dict) else _usage_on_choice(body)
        if not isinstance(raw, dict) or not raw:
            return []
        usage, doubts = read_usage(raw, beside=self._beside)
        if usage == self._usage:
            return []
        self._usage = usage
        return [UsageUpdate(usage), *(Degraded(doubt) for doubt in doubts)]


def _usage_on_choice(body: dict[str, Any]) -> Any:
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first.get("usage") if isinstance(first, dict) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""

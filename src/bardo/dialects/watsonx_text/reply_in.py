"""Decode a reply or an error: a whole body and each chunk of a stream have the same form.

`input_token_count` is 0 in all chunks but the first, and `generated_token_count` grows. Each of the `results` is a choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bardo.catalog.rows import ProviderRow
from bardo.dialects.openai_chat import DIALECT as CHAT
from bardo.dialects.shared.dialect import ReplyDecoder
from bardo.dialects.shared.json_values import as_text, decode_leniently, excerpt, kind_of
from bardo.dialects.shared.spellings import seconds_of
from bardo.dialects.shared.usage import doubted, token_count
from bardo.streams.frames import Frame
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, BrokenStream, MalformedReply, UpstreamRefused
from bardo.values.events import (
    ContentChunk,
    Degraded,
    Event,
    Failed,
    Finish,
    FinishReason,
    ReplyFields,
    ReplyStart,
    UsageUpdate,
)
from bardo.values.usage import Usage

NAME = "watsonx_text"
_UNFINISHED = "not_finished"
_COUNTS = ("input_token_count", "generated_token_count")
_REASONS: dict[str, FinishReason] = {
    "eos_token": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "token_limit": "length",
    "time_limit": "length",
    "cancelled": "error",
    "error": "error",
}
_KNOWN_FIELDS = ("model_id", "created_at", "results")


class Decoder:
    """Reads one reply."""

    def __init__(self, row: ProviderRow) -> None:
        self._row = row
        self._chat: ReplyDecoder | None = None
        self._start: ReplyStart | None = None
        self._fields: dict[str, Any] = {}
        self._counts: dict[int, dict[str, Any]] = {}
        self._stop_reasons: dict[int, str] = {}
        self._over = False

    @property
    def over(self) -> bool:
        """Whether nothing more is looked at; text generation has no last event."""
        return self._over if self._chat is None else self._chat.over

    @property
    def complete(self) -> bool:
        """Whether every choice has ended."""
        if self._chat is not None:
            return self._chat.complete
        return bool(self._stop_reasons) and _UNFINISHED not in self._stop_reasons.values()

    def feed(self, item: Frame) -> Sequence[Event]:
        """Take one frame. Never raises: what cannot be read ends the reply with Failed."""
        if self._chat is not None:
            return self._chat.feed(item)
        if item.data is None or self._over:
            return ()
        out: list[Event] = []
        try:
            if item.data.strip() not in (b"", b"[DONE]"):
                return self._take(decode_leniently(item.data, out), item, out)
        except ValueError as problem:
            if item.complete:
                self._fail(MalformedReply(str(problem), provider=self._row.id), out)
        return out

    def finish(self) -> Sequence[Event]:
        """Say what was used and how each choice ended; one without an end is broken off."""
        if self._chat is not None:
            return self._chat.finish()
        out: list[Event] = []
        if self._over:
            return out
        self._report(out)
        if not self._stop_reasons or _UNFINISHED in self._stop_reasons.values():
            self._fail(BrokenStream("the stream ended before the text did", provider=self._row.id), out)
        else:
            out.extend(
                Finish(_REASONS.get(word, "unknown"), word, choice=choice)
                for choice, word in self._stop_reasons.items()
            )
        self._over = True
        return out

    def _take(self, value: Any, item: Frame, out: list[Event]) -> Sequence[Event]:
        if not isinstance(value, dict):
            raise ValueError(f"the reply is {kind_of(value)}")
        if value.get("errors"):
            self._report(out)
            self._fail(_refused(value, provider=self._row.id), out)
        elif self._start is None and "results" not in value:
            self._chat = CHAT.open_decoder(self._row)
            return self._chat.feed(item)
        else:
            self._take_results(value, out)
        return out

    def _take_results(self, value: dict[str, Any], out: list[Event]) -> None:
        if self._start is None:
            self._start = ReplyStart(model=as_text(value.get("model_id")), created=seconds_of(value.get("created_at")))
            out.append(self._start)
        _carry(value, self._fields, None, _KNOWN_FIELDS, out)
        results = value.get("results")
        for choice, result in enumerate(results if isinstance(results, list) else ()):
            if not isinstance(result, dict):
                raise ValueError(f"results[{choice}] is {kind_of(result)}")
            self._take_result(choice, result, out)

    def _take_result(self, choice: int, result: dict[str, Any], out: list[Event]) -> None:
        if text := as_text(result.get("generated_text")):
            out.append(ContentChunk(0, text, choice))
        counts = self._counts.setdefault(choice, {})
        for name in _COUNTS:
            if result.get(name) or name not in counts:
                counts[name] = result.get(name)
        _carry(result, {}, choice, ("generated_text", "stop_reason", *_COUNTS), out)
        self._stop_reasons[choice] = as_text(result.get("stop_reason")) or self._stop_reasons.get(choice, _UNFINISHED)

    def _report(self, out: list[Event]) -> None:
        if not self._counts:
            return
        token_count = dict(self._counts[min(self._counts)])
        generated = [one["generated_token_count"] for one in self._counts.values()]
        if len(generated) > 1 and all(type(one) is int for one in generated):
            token_count["generated_token_count"] = sum(generated)
        usage, degraded = _decode_usage({name: count for name, count in token_count.items() if count is not None})
        out.extend(Degraded(one) for one in degraded)
        out.append(UsageUpdate(usage))

    def _fail(self, error: BardoError, out: list[Event]) -> None:
        self._over = True
        out.append(Failed(error))


def _carry(
    value: dict[str, Any], carried: dict[str, Any], choice: int | None, known: Sequence[str], out: list[Event]
) -> None:
    """Add the fields of no known meaning, when first seen or changed."""
    fields = {name: one for name, one in value.items() if name not in known and one is not None}
    fields = {name: one for name, one in fields.items() if carried.get(name) != one}
    if fields:
        carried |= fields
        out.append(ReplyFields(NAME, fields, choice))


def _decode_usage(raw: dict[str, Any]) -> tuple[Usage, tuple[Degradation, ...]]:
    given = [raw.get(name) for name in _COUNTS]
    usage = Usage(input_tokens=token_count(given[0]), output_tokens=token_count(given[1]), raw=raw)
    doubts = [one for name, value in zip(_COUNTS, given, strict=True) for one in doubted(f"usage.{name}", value)]
    return usage, tuple(doubts)


def decode_error(status: int, body: bytes, headers: dict[str, str], provider: str) -> UpstreamRefused:
    """Decode an error answer; a body that is not the dialect's is quoted, shortened."""
    try:
        value = decode_leniently(body)
    except ValueError:
        value = None
    retry_after = headers.get("retry-after")
    if isinstance(value, dict) and value.get("errors"):
        return _refused(value, provider=provider, status=status, retry_after=retry_after)
    message = excerpt(body) or f"the provider answered {status} without a word"
    return UpstreamRefused(message, provider=provider, status=status, retry_after=retry_after)


def _refused(
    value: dict[str, Any], *, provider: str, status: int | None = None, retry_after: str | None = None
) -> UpstreamRefused:
    """Return the provider's error object as an error. Without a `status`, the object's own is it."""
    errors = value.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else errors
    fields = first if isinstance(first, dict) else {"message": as_text(first)}
    if status is None:
        own = value.get("status_code")
        status = own if type(own) is int and 400 <= own <= 599 else 502
    return UpstreamRefused(
        as_text(fields.get("message")) or f"the provider answered {status}",
        provider=provider,
        status=status,
        upstream_code=as_text(fields.get("code")) or None,
        retry_after=retry_after,
        detail=value,
        dialect=NAME,
    )

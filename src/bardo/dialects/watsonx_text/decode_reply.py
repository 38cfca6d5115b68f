"""A provider's reply to events: a whole body and each chunk of a stream have the same form.

`input_token_count` is 0 in all chunks but the first, and `generated_token_count` grows. Each of the `results` is a choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects.base import ReplyDecoder
from bardo.dialects.jsonfield import kind_of
from bardo.dialects.lenient import as_text, decode_leniently
from bardo.dialects.openai_chat import DIALECT as CHAT
from bardo.dialects.watsonx_text.errors import refused
from bardo.dialects.watsonx_text.words import COUNTS, NAME, REASONS, UNFINISHED, read_usage
from bardo.streams.frames import Frame
from bardo.values.errors import BardoError, BrokenStream, MalformedReply
from bardo.values.events import (
    ContentChunk,
    Degraded,
    Event,
    Failed,
    Finish,
    ReplyFields,
    ReplyStart,
    UsageUpdate,
)

_KNOWN = ("model_id", "created_at", "results")


class Decoder:
    """Reads one reply."""

    def __init__(self, row: ProviderRow) -> None:
        self._row = row
        self._chat: ReplyDecoder | None = None
        self._start: ReplyStart | None = None
        self._fields: dict[str, Any] = {}
        self._counts: dict[int, dict[str, Any]] = {}
        self._words: dict[int, str] = {}
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
        return bool(self._words) and UNFINISHED not in self._words.values()

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
        if not self._words or UNFINISHED in self._words.values():
            self._fail(BrokenStream("the stream ended before the text did", provider=self._row.id), out)
        else:
            out.extend(
                Finish(REASONS.get(word, "unknown"), word, choice=choice) for choice, word in self._words.items()
            )
        self._over = True
        return out

    def _take(self, value: Any, item: Frame, out: list[Event]) -> Sequence[Event]:
        if not isinstance(value, dict):
            raise ValueError(f"the reply is {kind_of(value)}")
        if value.get("errors"):
            self._report(out)
            self._fail(refused(value, provider=self._row.id), out)
        elif self._start is None and "results" not in value:
            self._chat = CHAT.open_decoder(self._row)
            return self._chat.feed(item)
        else:
            self._take_results(value, out)
        return out

    def _take_results(self, value: dict[str, Any], out: list[Event]) -> None:
        if self._start is None:
            self._start = ReplyStart(model=as_text(value.get("model_id")), created=_seconds(value.get("created_at")))
            out.append(self._start)
        _tell(value, self._fields, None, _KNOWN, out)
        results = value.get("results")
        for choice, result in enumerate(results if isinstance(results, list) else ()):
            if not isinstance(result, dict):
                raise ValueError(f"results[{choice}] is {kind_of(result)}")
            self._take_result(choice, result, out)

    def _take_result(self, choice: int, result: dict[str, Any], out: list[Event]) -> None:
        if text := as_text(result.get("generated_text")):
            out.append(ContentChunk(0, text, choice))
        counts = self._counts.setdefault(choice, {})
        for name in COUNTS:
            if result.get(name) or name not in counts:
                counts[name] = result.get(name)
        _tell(result, {}, choice, ("generated_text", "stop_reason", *COUNTS), out)
        self._words[choice] = as_text(result.get("stop_reason")) or self._words.get(choice, UNFINISHED)

    def _report(self, out: list[Event]) -> None:
        if not self._counts:
            return
        whole = dict(self._counts[min(self._counts)])
        generated = [one["generated_token_count"] for one in self._counts.values()]
        if len(generated) > 1 and all(type(one) is int for one in generated):
            whole["generated_token_count"] = sum(generated)
        usage, degraded = read_usage({name: count for name, count in whole.items() if count is not None})
        out.extend(Degraded(one) for one in degraded)
        out.append(UsageUpdate(usage))

    def _fail(self, error: BardoError, out: list[Event]) -> None:
        self._over = True
        out.append(Failed(error))


def _tell(
    value: dict[str, Any], told: dict[str, Any], choice: int | None, known: Sequence[str], out: list[Event]
) -> None:
    """Give the fields nobody knows, when first seen or changed."""
    fields = {name: one for name, one in value.items() if name not in known and one is not None}
    fields = {name: one for name, one in fields.items() if told.get(name) != one}
    if fields:
        told |= fields
        out.append(ReplyFields(NAME, fields, choice))


def _seconds(moment: Any) -> int | None:
    try:
        time = datetime.fromisoformat(as_text(moment))
        return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError, msgspec.MsgspecError):
        return None

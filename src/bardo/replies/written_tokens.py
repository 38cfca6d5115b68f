"""Measure one reply where its provider does not: the tokens that were written before it ended or was left, and the time that it took."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from bardo.dialects import dialect
from bardo.streams.stage import Stage
from bardo.values.events import (
    ContentChunk,
    Event,
    Finish,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ToolCallChunk,
    ToolCallStart,
    UsageUpdate,
)
from bardo.values.usage import TokenEstimate, Usage

_MOST_CORRECTIONS = 4096
_LATEST = 0.25
"""The share of the latest reply in what is known of a model."""
_ENOUGH_TOKENS = 100
"""Replies of fewer tokens say little of a model's tokens."""
_LEAST, _MOST = 0.5, 2.5
"""What a correction may be: a count outside is none of this text."""


class WrittenTokens(msgspec.Struct, eq=False):
    """Counts the text, thinking and arguments of one reply as they are decoded, and keeps what the provider counts besides.

    Most providers count at the end of a reply, some say a preliminary count at its beginning. Whoever leaves a reply, or loses it, still
    pays for the text that the model had written until then.
    """

    usage: Usage = Usage()
    _answer: TokenEstimate = msgspec.field(default_factory=TokenEstimate)
    _thinking: TokenEstimate = msgspec.field(default_factory=TokenEstimate)
    _at_count: int = 0
    """What was written when the provider said its last count."""
    _ended: bool = False

    def feed(self, events: Sequence[Event]) -> None:
        """Take the events of one frame, as they were decoded."""
        counted, answer, thinking = False, self._answer, self._thinking
        for event in events:
            kind = type(event)
            if kind is ContentChunk or kind is RefusalChunk:
                answer.add(event.text)  # type: ignore[union-attr]
            elif kind is ThinkChunk:
                thinking.add(event.text)  # type: ignore[union-attr]
            elif kind is ToolCallChunk:
                answer.add(event.arguments)  # type: ignore[union-attr]
            elif kind is ToolCallStart:
                answer.add(event.name)  # type: ignore[union-attr]
            elif kind is UsageUpdate:
                self.usage = event.usage  # type: ignore[union-attr]
                counted = True
            elif kind is Finish:
                self._ended = self._ended or event.reason not in ("unknown", "error")  # type: ignore[union-attr]
        if counted:
            self._at_count = self.tokens

    @property
    def tokens(self) -> int:
        """About how many tokens were written, for no model in particular."""
        return self._answer.tokens + self._thinking.tokens

    def unfinished_usage(self, correction: float = 1.0) -> Usage | None:
        """Return what was used of a reply that did not come to its end, or None if nothing was written, and nothing counted.

        It is exact where the model had ended and was counted, and never less than the provider's own count. `correction` is how many
        tokens of the model an estimated token is. Input is left as it was reported.
        """
        usage, written = self.usage, self.tokens
        if not written and not usage.reported:
            return None
        if self._ended and usage.output_tokens is not None and self._at_count == written:
            return usage  # All but the end of the connection came.
        counted = usage.output_tokens or 0
        output = counted + round((written - self._at_count) * correction)
        if counted < self._at_count * correction / 2:
            # What the provider says on the way is no count of what came: Claude's 1 at the beginning, or a 0 in each frame.
            output = max(counted, round(written * correction))
        thought = usage.reasoning_tokens or round(self._thinking.tokens * correction) or usage.reasoning_tokens
        details = usage.details
        if details is not None and details.billed_output_tokens is not None and output > counted:
            details = msgspec.structs.replace(details, billed_output_tokens=None)
        return msgspec.structs.replace(
            usage,
            output_tokens=output,
            reasoning_tokens=None if thought is None else min(thought, output),
            cost_usd=usage.cost_usd if output == counted else None,
            details=details,
            approx=True,
        )

    def correction(self) -> float | None:
        """Return how many tokens of the model an estimated one was in a whole reply, or None if that cannot be told."""
        usage, written = self.usage, self._answer.tokens
        if usage.output_tokens is None or written < _ENOUGH_TOKENS:
            return None
        if usage.reasoning_tokens is None and self._thinking.tokens:
            return None  # Thinking that is counted with the answer may be shown in part.
        counted = usage.output_tokens - (usage.reasoning_tokens or 0)
        return counted / written if counted > 0 else None


class OutputEstimates:
    """How many tokens of each model an estimated token is, by the replies of a tenant that came to their end.

    What is not known counts as one.
    """

    def __init__(self) -> None:
        self._corrections: dict[tuple[str, str, str], float] = {}

    def correction(self, provider: str, model: str, tenant: str = "") -> float:
        """Return what an estimate of this model's text is multiplied by."""
        return self._corrections.get((tenant, provider, model), 1.0)

    def learn(self, written: WrittenTokens, provider: str, model: str, tenant: str = "") -> None:
        """Take a reply that came to its end. What was longest not seen goes where there are too many."""
        found = written.correction()
        if found is None or not _LEAST <= found <= _MOST:
            return
        before = self._corrections.pop((tenant, provider, model), None)
        self._corrections[tenant, provider, model] = found if before is None else before + _LATEST * (found - before)
        if len(self._corrections) > _MOST_CORRECTIONS:
            del self._corrections[next(iter(self._corrections))]


class MeasuredTime:
    """Adds the time of a reply before it says why it ended. `seconds` returns how many have passed since the request was sent.

    Ollama's clients divide by durations, and Converse's show a latency. It is for replies of other dialects, which say nothing of it;
    figures of the provider's own are believed.
    """

    passes_text = True
    acts_on = touches = frozenset((ReplyStart, Finish))

    def __init__(self, client: str, seconds: Callable[[], float]) -> None:
        self._client = client
        self._fields = dialect(client).time_fields
        self._seconds = seconds
        self._begun: float | None = None

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on, the end after the time that it took."""
        if type(item) is Finish and not item.choice and self._fields is not None:
            # A reply that came whole began when it ended.
            total = self._seconds()
            begun = total if self._begun is None else self._begun
            return (ReplyFields(self._client, self._fields(begun, total)), item)
        if self._begun is None:
            self._begun = self._seconds()
        return (item,)

    def finish(self) -> Sequence[Event]:
        """Nothing is held."""
        return ()


def time_stages(client: str, source: str, seconds: Callable[[], float]) -> list[Stage[Event, Event]]:
    """Return the stage that tells a client of another dialect how long its reply took; none where its dialect has no such field."""
    told = client and client != source and dialect(client).time_fields is not None
    return [MeasuredTime(client, seconds)] if told else []

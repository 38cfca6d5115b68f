"""The end of a reply whose answer has a schema: read it, ask again where it cannot be used, and give the caller what it asked for.

`TypedAnswer.finish` is a generator: it yields events, work that takes milliseconds, and the wish to ask the model again. Whoever runs it
does these things; nothing here waits, sends, or starts a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

import msgspec

from bardo.planning.attempt import Attempt
from bardo.planning.text_formats import PLAIN
from bardo.planning.typed_answer import AnswerPlan, AnswerValidator
from bardo.replies.typed_stream import AnswerBuffer, Partials, grown
from bardo.replies.typed_validation import (
    AnswerReading,
    AnswerText,
    Continuation,
    again_worthwhile,
    looked_at,
    not_offered,
    provenance,
    read_any,
    read_call,
    read_closely,
    read_strictly,
    turns_to_ask_again,
    unlike_shown,
    warnings,
    with_declared_defaults,
)
from bardo.streams.stage import Stage
from bardo.structured import Provenance, UnusableAnswer
from bardo.structured.extracting import too_much_work
from bardo.structured.judging import TooMuchWork
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError
from bardo.values.events import (
    ContentChunk,
    Degraded,
    Event,
    Extension,
    Failed,
    Finish,
    OpaqueState,
    Partial,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
)
from bardo.values.request import Message, Request


class RetryRequest(msgspec.Struct, frozen=True):
    """The wish to ask the model again with further `turns`, and to read its reply through `stages`.

    The events of that reply belong to this one. It is answered with the error where no whole reply came, else with None.
    """

    turns: tuple[Message, ...]
    stages: tuple[Stage[Event, Event], ...]


class SlowWork(msgspec.Struct, frozen=True):
    """Work that may take milliseconds, for a thread. It is answered with what `run` returns."""

    run: Callable[[], Any]


AnswerSteps = Generator[list[Event] | RetryRequest | SlowWork, Any, None]
Try = tuple[AnswerBuffer, AnswerReading]


class TypedAnswer:
    """One reply's answer. `buffer` is the stage that holds it while it arrives, `finish` gives it.

    `forward`: the reply goes to the client as it comes. `validator` is the caller's own look at the value. `tells`: a stream that ends
    with an error says before it how the answer was asked for. What has been shown is never
    withdrawn: where the answer turns out to be another, the reply ends with an error.
    """

    def __init__(
        self,
        plan: AnswerPlan,
        *,
        forward: bool,
        plain: bool,
        whole: bool,
        partials: bool,
        validator: AnswerValidator | None = None,
        tells: bool = False,
    ) -> None:
        self._tells = tells
        self._plan = plan
        self._validator = validator
        self._plain = plain
        self._partials = partials
        self._forward = forward
        self._waits = whole or plan.held
        self.buffer = self._latest = self._new_buffer()
        self.reading: AnswerReading | None = None
        self.rewritten = False
        self._attempts = 1

    @property
    def provenance(self) -> Provenance | None:
        """How the answer came about, or None if there was none to read, as in a turn of tool calls."""
        if self.reading is None:
            return None
        return provenance(self._plan, self.reading.extraction, attempts=self._attempts)

    def finish(self) -> AnswerSteps:
        """Yield the events that end the reply, and what has to be done for them. Raises nothing: a failure is an event."""
        if self.buffer.failed or not self.buffer.ended or self.buffer.calls:
            yield list(self.buffer.pending)
            return
        tries: list[Try] = [(self.buffer, (yield from self._read(self.buffer)))]
        while self._may_ask_again(*tries[-1]):
            again = yield from self._ask_again(*tries[-1])
            if again.calls:
                yield list(again.pending)
                return
            if again.failed or not again.ended:
                break
            self._attempts += 1
            tries.append((again, (yield from self._read(again))))
        self.buffer, reading = tries[-1]
        self._latest = self.buffer
        if not self.buffer.shown and not reading.extraction.ok:
            self.buffer, reading = yield SlowWork(partial(self._best, tries))
        self.reading = reading = self._unlike_partials(reading)
        yield [*map(Degraded, self._warnings(reading)), *self._last_partial(reading), *self._ending(reading)]

    def _may_ask_again(self, buffer: AnswerBuffer, reading: AnswerReading) -> bool:
        if buffer.shown or self._attempts > self._plan.retries:
            return False
        # Text would end at the same limit again. Arguments that were cut may come shorter; once is enough to know.
        if buffer.at_limit and not (buffer.called() and self._attempts == 1):
            return False
        return again_worthwhile(reading)

    def _ask_again(self, buffer: AnswerBuffer, reading: AnswerReading) -> Generator[Any, Any, AnswerBuffer]:
        """Ask again, and return what the new reply held. Where nobody answers, the first answer is all there is."""
        self.rewritten = True
        again = self._new_buffer(again=True)
        stages = (Continuation(buffer.next_block, buffer.usage), again)
        problem: BardoError | None = yield RetryRequest(turns_to_ask_again(self._plan, reading), stages)
        if problem is not None:
            yield [Degraded(Degradation("answer.retry", why=f"asking again failed: {problem.message}"))]
        return again

    def _new_buffer(self, *, again: bool = False) -> AnswerBuffer:
        waits = self._waits or again
        # Partial answers that another try may replace are not shown.
        shows = self._partials and not (waits and self._plan.retries)
        tools = self._plan.request.tools
        return AnswerBuffer(
            tool=self._plan.plan.tool_name,
            hold=waits,
            gated=not (waits or self._forward),
            offered=None if any(tool.hosted for tool in tools) else frozenset(tool.name for tool in tools),
            partials=Partials(self._plan) if shows else None,
        )

    def _read(self, buffer: AnswerBuffer) -> Generator[Any, Any, AnswerReading]:
        """Return what a reply's answer is, after the caller's own look at it."""
        reading = self._read_at_once(buffer) if self._is_quick(buffer) else None
        if reading is None:
            reading = yield SlowWork(partial(self._read_within_bounds, buffer))
        reading = looked_at(reading, self._validator)
        if buffer.shown and reading.extraction.ok and not reading.verbatim:
            reading = unlike_shown(reading, "its text was sent as it came, and is not JSON in the schema as it stands")
        return reading

    def _shown_value(self, buffer: AnswerBuffer) -> AnswerReading | None:
        """Return the value that has passed, where it is whole: what comes after it cannot replace it, but for a refusal."""
        if self._forward or not buffer.shown_whole or buffer.refused:
            return None
        reading = read_strictly(self._plan, AnswerText(text=buffer.shown, plain=True))
        return reading if reading is not None and reading.verbatim else None

    def _is_quick(self, buffer: AnswerBuffer) -> bool:
        text = buffer.answer_text()
        return self._plan.judge.is_quick_for_text(text) and self._plan.read_by.is_quick_for_text(text)

    def _read_within_bounds(self, buffer: AnswerBuffer) -> AnswerReading:
        try:
            return self._read_at_once(buffer) or self._read_closely(buffer)
        except TooMuchWork as problem:
            return AnswerReading(too_much_work(buffer.answer_text(), problem))

    def _read_at_once(self, buffer: AnswerBuffer) -> AnswerReading | None:
        if (shown := self._shown_value(buffer)) is not None:
            return shown
        if buffer.unknown_tools or (buffer.called() and not buffer.arguments.strip()):
            return None
        return read_strictly(self._plan, self._text(buffer, buffer.answer_text()))

    def _read_closely(self, buffer: AnswerBuffer) -> AnswerReading:
        if buffer.called():
            return read_call(self._plan, buffer.arguments, buffer.text, cut=buffer.cut, end_known=buffer.end_known)
        if not buffer.unknown_tools:
            return read_closely(self._plan, self._text(buffer, buffer.answer_text()))
        if self._only_tool():
            # Whatever it called it, it was offered one tool: the one that carries the answer.
            meant = read_call(self._plan, buffer.unknown_arguments, "", cut=buffer.cut)
            if meant.extraction.ok:
                return AnswerReading(meant.extraction)
        return not_offered(read_any(self._plan, self._text(buffer, buffer.text)), buffer.unknown_tools)

    def _only_tool(self) -> bool:
        return bool(self._plan.plan.tool_name) and len(self._plan.request.tools) == 1

    def _text(self, buffer: AnswerBuffer, text: str) -> AnswerText:
        return AnswerText(
            text=text, refused=buffer.refused, cut=buffer.cut, end_known=buffer.end_known, plain=self._plain
        )

    def _best(self, tries: list[Try]) -> Try:
        """Return the latest try that declared defaults make an answer, else the latest that could be read at all."""
        for buffer, reading in reversed(tries):
            try:
                mended = looked_at(with_declared_defaults(self._plan, reading), self._validator)
            except TooMuchWork:
                # It is what it was: with or without defaults nobody can judge it.
                continue
            if mended.extraction.ok:
                return buffer, mended
        readable = [one for one in tries if one[1].extraction.error in ("invalid", "refusal")]
        return readable[-1] if readable else tries[-1]

    def _unlike_partials(self, reading: AnswerReading) -> AnswerReading:
        last = self.buffer.partials.last if self.buffer.partials is not None else None
        if not reading.extraction.ok or grown(last, reading.extraction.value):
            return reading
        return unlike_shown(reading, "it is not what the partial answers showed")

    def _last_partial(self, reading: AnswerReading) -> list[Event]:
        """Return the whole answer as the last partial one, where the others did not come so far."""
        value = reading.extraction.value
        last = self.buffer.partials.last if self.buffer.partials is not None else None
        if not self._partials or not reading.extraction.ok or (last is not None and last == value):
            return []
        return [Partial(value, len(reading.text))]

    def _warnings(self, reading: AnswerReading) -> list[Degradation]:
        if not reading.extraction.ok:
            return []
        buffer, degraded = self.buffer, list(warnings(reading))
        if buffer.unknown_tools and not self._forward:
            why = "calls of tools that the model was not offered were left out"
            degraded.append(Degradation("tool_calls", asked=list(buffer.unknown_tools)[:20], why=why))
        if buffer.shown and not self._forward and buffer.answer_text()[len(buffer.shown) :].strip():
            degraded.append(Degradation("answer.text", why="words behind the JSON were left out"))
        return degraded

    def _ending(self, reading: AnswerReading) -> list[Event]:
        buffer, extraction = self.buffer, reading.extraction
        # Every dialect has its own word for these, which its clients know.
        has_own_word = extraction.error == "refusal" or (extraction.error == "truncated" and buffer.at_limit)
        if buffer.shown:
            return list(buffer.pending) if has_own_word else _ending_of_shown(buffer, reading, self._failed(reading))
        if extraction.ok:
            verbatim = reading.verbatim and not buffer.called() and not buffer.unknown_tools
            return list(buffer.pending) if verbatim and self._attempts == 1 else self._written(reading.text)
        if has_own_word:
            return self._written(buffer.answer_text()) if buffer.called() else list(buffer.pending)
        without_end = [event for event in self._written(buffer.answer_text()) if type(event) is not Finish]
        return [*without_end, *self._failed(reading)]

    def _failed(self, reading: AnswerReading) -> list[Event]:
        """Return the error of an answer that cannot be used, and before it how it was asked for."""
        problem = UnusableAnswer(reading.extraction, provenance=self.provenance)
        told = [Extension({"structured": problem.fields()})] if self._tells else []
        return [*told, Failed(problem)]

    def _written(self, text: str) -> list[Event]:
        """Return the answer as text, in place of what was held; further choices as they were."""
        self.rewritten = True
        buffer = self.buffer
        block = next((event.block for event in buffer.pending if _is_answer(event)), buffer.next_block)  # type: ignore[union-attr]
        if buffer is not self._latest:
            # Thinking of a later try has been shown: what follows it gets a number of its own.
            block = self._latest.next_block
        states = [one for one in buffer.pending if type(one) is OpaqueState and not one.choice and not buffer.called()]
        others = [event for choice in buffer.choices if choice for event in _of_choice(buffer, choice)]
        end = buffer.finish_event or Finish("stop")
        reason = "stop" if end.reason in ("tool_calls", "unknown") else end.reason
        raw = end.raw if reason == end.reason else ""
        return [ContentChunk(block, text), *states, *others, Finish(reason, raw, end.stop_sequence)]


def typed_answer(
    attempt: Attempt, request: Request, *, forward: bool, validator: AnswerValidator | None = None
) -> TypedAnswer | None:
    """Return what looks after the answer of an attempt's reply, or None if it has no schema, or nobody but the model looks at it."""
    answer = attempt.answer
    if answer is None or not (answer.judged or validator is not None):
        return None
    return TypedAnswer(
        answer,
        forward=forward,
        plain=attempt.formats is not PLAIN,
        whole=not request.stream,
        partials="partials" in request.options.include and request.stream,
        validator=validator,
        tells=request.stream and "structured" in request.options.include,
    )


def _ending_of_shown(buffer: AnswerBuffer, reading: AnswerReading, failed: Sequence[Event]) -> list[Event]:
    """Return what ends a reply whose answer has passed, or part of it."""
    if reading.extraction.ok:
        return [event for event in buffer.pending if not (isinstance(event, _OF_ANSWERS) and not event.choice)]
    without_end = [event for event in buffer.pending if type(event) is not Finish]
    return [*without_end, *failed]


def _of_choice(buffer: AnswerBuffer, choice: int) -> Sequence[Event]:
    """Return a further choice as it was, but for the tool that carried its answer."""
    own = [event for event in buffer.pending if getattr(event, "choice", 0) == choice]
    if not buffer.called(choice):
        return own
    block = next(event.block for event in own if hasattr(event, "block"))
    return [ContentChunk(block, buffer.answer_text(choice), choice), Finish("stop", choice=choice)]


_OF_ANSWERS = (ContentChunk, ToolCallStart, ToolCallChunk, ToolCallEnd)


def _is_answer(event: Event) -> bool:
    return hasattr(event, "block") and not getattr(event, "choice", 0)

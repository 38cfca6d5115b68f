"""The end of a reply whose answer has a schema: read it, ask again where it cannot be used, and give the caller what it asked for.

What was held back of the reply is given here, as it was where it is the answer, else as the JSON that was read in it. Reading broken text
takes a thread, because it may take milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from bardo.engine.answers import (
    Read,
    Said,
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
from bardo.engine.exchange import Attempt
from bardo.engine.further import Further
from bardo.engine.holding import Hold
from bardo.engine.partials import Partials, grown
from bardo.engine.reading import PLAIN
from bardo.engine.structuring import AnswerPlan, Take
from bardo.streams.stage import Stage
from bardo.structured import Provenance, UnusableAnswer
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError
from bardo.values.events import (
    ContentChunk,
    Degraded,
    Event,
    Failed,
    Finish,
    OpaqueState,
    Partial,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
)
from bardo.values.request import Message


class Asker(Protocol):
    """Asks the model again with further turns, and gives what its reply lets through of the stages."""

    def ask_again(
        self, turns: Sequence[Message], through: Sequence[Stage[Event, Event]]
    ) -> AsyncIterator[list[Event]]: ...


class Answering:
    """One reply's answer. `stage` holds it while it arrives, `finish` gives it. `take` is the caller's own look at the value.

    What has been shown is never withdrawn: where the answer turns out to be another, the reply ends with an error.
    """

    def __init__(
        self, attempt: Attempt, answer: AnswerPlan, *, whole: bool, partials: bool, take: Take | None = None
    ) -> None:
        self._answer = answer
        self._take = take
        self._plain = attempt.reading is not PLAIN
        self._partials = partials
        self._forward = attempt.forward
        self.held = whole or answer.held
        self.stage = self._latest = self._hold()
        self.read: Read | None = None
        self.rewritten = False
        self._attempts = 1

    @property
    def provenance(self) -> Provenance | None:
        """How the answer came about; None where there was none to read, as in a turn of tool calls."""
        if self.read is None:
            return None
        return provenance(self._answer, self.read.extraction, attempts=self._attempts)

    async def finish(self, asker: Asker) -> AsyncIterator[list[Event]]:
        """Give the events that end the reply. Raises nothing: a failure is an event."""
        if self.stage.failed or not self.stage.ended or self.stage.calls:
            yield list(self.stage.kept)
            return
        read = await self._judge(self.stage)
        tries = [(self.stage, read)]
        while self._may_ask_again(*tries[-1]):
            again = self._hold(again=True)
            async for events in self._again(*tries[-1], again, asker):
                yield events
            if again.calls:
                yield list(again.kept)
                return
            if again.failed or not again.ended:
                break
            self._attempts += 1
            tries.append((again, await self._judge(again)))
        self.stage, read = tries[-1]
        self._latest = self.stage
        if not self.stage.shown and not read.extraction.ok:
            self.stage, read = await asyncio.to_thread(self._best, tries)
        self.read = read = self._unlike_partials(read)
        yield [*map(Degraded, self._warnings(read)), *self._last_partial(read), *self._ending(self.stage, read)]

    def _may_ask_again(self, hold: Hold, read: Read) -> bool:
        if hold.shown or hold.at_limit or self._attempts > self._answer.retries:
            return False
        return again_worthwhile(read)

    async def _again(self, hold: Hold, read: Read, again: Hold, asker: Asker) -> AsyncIterator[list[Event]]:
        """Ask again, and give what may be shown at once. Where nobody answers, the first answer is all there is."""
        self.rewritten = True
        through = (Further(hold.next_block, hold.usage), again)
        try:
            async for events in asker.ask_again(turns_to_ask_again(self._answer, read), through):
                yield events
        except BardoError as problem:
            yield [Degraded(Degradation("answer.retry", why=f"asking again failed: {problem.message}"))]

    def _hold(self, *, again: bool = False) -> Hold:
        held = self.held or again
        # Partial answers that another try may replace are not shown.
        shows = self._partials and not (held and self._answer.retries)
        tools = self._answer.request.tools
        return Hold(
            tool=self._answer.plan.tool_name,
            hold=held,
            gated=not (held or self._forward),
            offered=None if any(tool.hosted for tool in tools) else frozenset(tool.name for tool in tools),
            partials=Partials(self._answer) if shows else None,
        )

    async def _judge(self, hold: Hold) -> Read:
        read = self._shown_value(hold) or self._read_at_once(hold)
        if read is None:
            read = await asyncio.to_thread(self._read_closely, hold)
        read = looked_at(read, self._take)
        if hold.shown and read.extraction.ok and not read.verbatim:
            read = unlike_shown(read, "its text was sent as it came, and is not JSON in the schema as it stands")
        return read

    def _shown_value(self, hold: Hold) -> Read | None:
        """Return the value that has passed, where it is whole: what comes after it cannot replace it, but for a refusal."""
        if self._forward or not hold.shown_whole or hold.refused:
            return None
        read = read_strictly(self._answer, Said(text=hold.shown, plain=True))
        return read if read is not None and read.verbatim else None

    def _read_at_once(self, hold: Hold) -> Read | None:
        if hold.unknown_tools or (hold.called() and not hold.arguments.strip()):
            return None
        return read_strictly(self._answer, self._said(hold, hold.said()))

    def _read_closely(self, hold: Hold) -> Read:
        if hold.called():
            return read_call(self._answer, hold.arguments, hold.text, cut=hold.cut, end_known=hold.end_known)
        if not hold.unknown_tools:
            return read_closely(self._answer, self._said(hold, hold.said()))
        if self._only_tool():
            # Whatever it called it, it was offered one tool: the one that carries the answer.
            meant = read_call(self._answer, hold.unknown_arguments, "", cut=hold.cut)
            if meant.extraction.ok:
                return Read(meant.extraction)
        return not_offered(read_any(self._answer, self._said(hold, hold.text)), hold.unknown_tools)

    def _only_tool(self) -> bool:
        return bool(self._answer.plan.tool_name) and len(self._answer.request.tools) == 1

    def _said(self, hold: Hold, text: str) -> Said:
        return Said(text=text, refused=hold.refused, cut=hold.cut, end_known=hold.end_known, plain=self._plain)

    def _best(self, tries: list[tuple[Hold, Read]]) -> tuple[Hold, Read]:
        """Return the latest try that declared defaults make an answer, else the latest that could be read at all."""
        for hold, read in reversed(tries):
            mended = looked_at(with_declared_defaults(self._answer, read), self._take)
            if mended.extraction.ok:
                return hold, mended
        readable = [one for one in tries if one[1].extraction.error in ("invalid", "refusal")]
        return readable[-1] if readable else tries[-1]

    def _unlike_partials(self, read: Read) -> Read:
        last = self.stage.partials.last if self.stage.partials is not None else None
        if not read.extraction.ok or grown(last, read.extraction.value):
            return read
        return unlike_shown(read, "it is not what the partial answers showed")

    def _last_partial(self, read: Read) -> list[Event]:
        """Return the whole answer as the last partial one, where the others did not come so far."""
        value = read.extraction.value
        last = self.stage.partials.last if self.stage.partials is not None else None
        if not self._partials or not read.extraction.ok or (last is not None and last == value):
            return []
        return [Partial(value, len(read.text))]

    def _warnings(self, read: Read) -> tuple[Degradation, ...]:
        hold, told = self.stage, list(warnings(read)) if read.extraction.ok else []
        if read.extraction.ok and hold.unknown_tools and not self._forward:
            why = "calls of tools that the model was not offered were left out"
            told.append(Degradation("tool_calls", asked=list(hold.unknown_tools)[:20], why=why))
        if read.extraction.ok and hold.shown and not self._forward and hold.said()[len(hold.shown) :].strip():
            told.append(Degradation("answer.text", why="words behind the JSON were left out"))
        return tuple(told)

    def _ending(self, hold: Hold, read: Read) -> list[Event]:
        found = read.extraction
        # Every dialect has its own word for these, which its clients know.
        told = found.error == "refusal" or (found.error == "truncated" and hold.at_limit)
        if hold.shown:
            return self._ending_shown(hold, read, told=told)
        if found.ok:
            as_it_was = read.verbatim and not hold.called() and not hold.unknown_tools and self._attempts == 1
            return list(hold.kept) if as_it_was else self._written(hold, read.text)
        if told:
            return list(hold.kept) if not hold.called() else self._written(hold, hold.said())
        shown = [event for event in self._written(hold, hold.said()) if type(event) is not Finish]
        return [*shown, Failed(UnusableAnswer(found))]

    def _ending_shown(self, hold: Hold, read: Read, *, told: bool) -> list[Event]:
        """Return what ends a reply whose answer has passed, or part of it."""
        if told:
            return list(hold.kept)
        if not read.extraction.ok:
            return [
                *(event for event in hold.kept if type(event) is not Finish),
                Failed(UnusableAnswer(read.extraction)),
            ]
        return [event for event in hold.kept if not (isinstance(event, _LEFT_OUT) and not event.choice)]

    def _written(self, hold: Hold, text: str) -> list[Event]:
        """Return the answer as text, in place of what was held; further choices as they were."""
        self.rewritten = True
        kept = hold.kept
        block = next((event.block for event in kept if _is_answer(event)), hold.next_block)  # type: ignore[union-attr]
        if hold is not self._latest:
            # Thinking of a later try has been shown: what follows it gets a number of its own.
            block = self._latest.next_block
        states = [event for event in kept if type(event) is OpaqueState and not event.choice and not hold.called()]
        others = [event for choice in hold.choices if choice for event in _of_choice(hold, choice)]
        end = hold.finish_event or Finish("stop")
        reason = "stop" if end.reason in ("tool_calls", "unknown") else end.reason
        raw = end.raw if reason == end.reason else ""
        return [ContentChunk(block, text), *states, *others, Finish(reason, raw, end.stop_sequence)]


def _of_choice(hold: Hold, choice: int) -> list[Event]:
    """Return a further choice as it was, but for the tool that carried its answer."""
    own = [event for event in hold.kept if getattr(event, "choice", 0) == choice]
    if not hold.called(choice):
        return own
    block = next(event.block for event in own if hasattr(event, "block"))
    return [ContentChunk(block, hold.said(choice), choice), Finish("stop", choice=choice)]


_LEFT_OUT = (ContentChunk, ToolCallStart, ToolCallChunk, ToolCallEnd)


def _is_answer(event: Event) -> bool:
    return hasattr(event, "block") and not getattr(event, "choice", 0)

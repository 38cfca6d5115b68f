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
    provenance,
    read_closely,
    read_strictly,
    turns_to_ask_again,
    warnings,
    with_declared_defaults,
)
from bardo.engine.exchange import Attempt
from bardo.engine.further import Further
from bardo.engine.holding import Hold
from bardo.engine.partials import Partials
from bardo.engine.reading import PLAIN
from bardo.engine.structuring import AnswerPlan, Take
from bardo.streams.stage import Stage
from bardo.structured import Provenance, UnusableAnswer
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError
from bardo.values.events import ContentChunk, Degraded, Event, Failed, Finish, OpaqueState
from bardo.values.request import Message


class Asker(Protocol):
    """Asks the model again with further turns, and gives what its reply lets through of the stages."""

    def ask_again(
        self, turns: Sequence[Message], through: Sequence[Stage[Event, Event]]
    ) -> AsyncIterator[list[Event]]: ...


class Answering:
    """One reply's answer. `stage` holds it while it arrives, `finish` gives it. `take` is the caller's own look at the value."""

    def __init__(
        self, attempt: Attempt, answer: AnswerPlan, *, whole: bool, partials: bool, take: Take | None = None
    ) -> None:
        self._answer = answer
        self._take = take
        self._plain = attempt.reading is not PLAIN
        self._partials = partials
        self.held = whole or answer.held
        self.stage = self._hold()
        self.read: Read | None = None
        self.rewritten = False
        self._attempts = 1

    @property
    def provenance(self) -> Provenance | None:
        """How the answer came about; None where there was none to read, as in a turn of tool calls."""
        if self.read is None:
            return None
        return provenance(self._answer, self.read.extraction, attempts=self._attempts)

    async def finish(self, text: str, asker: Asker) -> AsyncIterator[list[Event]]:
        """Give the events that end the reply. `text` is what was already shown of the answer. Raises nothing: a failure is an event."""
        if self.stage.failed or not self.stage.ended or self.stage.calls:
            yield list(self.stage.kept)
            return
        read = await self._judge(self.stage, text)
        while self.held and again_worthwhile(read) and self._attempts <= self._answer.retries:
            again = self._hold(after=self.stage)
            async for events in self._again(read, again, asker):
                yield events
            if again.calls:
                yield list(again.kept)
                return
            if again.failed or not again.ended:
                break
            self._attempts += 1
            self.stage, read = again, await self._judge(again, "")
        if self.held and not read.extraction.ok:
            read = await asyncio.to_thread(self._mended, read)
        self.read = read
        yield [*map(Degraded, warnings(read)), *self._ending(self.stage, read)]

    async def _again(self, read: Read, again: Hold, asker: Asker) -> AsyncIterator[list[Event]]:
        """Ask again, and give what may be shown at once. Where nobody answers, the first answer is all there is."""
        self.rewritten = True
        through = (Further(self.stage.next_block, self.stage.usage), again)
        try:
            async for events in asker.ask_again(turns_to_ask_again(self._answer, read), through):
                yield events
        except BardoError as problem:
            yield [Degraded(Degradation("answer.retry", why=f"asking again failed: {problem.message}"))]

    def _hold(self, after: Hold | None = None) -> Hold:
        last = after.partials.last if after is not None and after.partials is not None else None
        partials = Partials(self._answer, last=last) if self._partials else None
        return Hold(tool=self._answer.plan.tool_name, hold=self.held, partials=partials)

    async def _judge(self, hold: Hold, shown: str) -> Read:
        text = hold.said() if self.held else shown
        said = Said(text=text, refused=hold.refused, cut=hold.cut, plain=self._plain)
        read = read_strictly(self._answer, said)
        if read is None:
            read = await asyncio.to_thread(read_closely, self._answer, said)
        return looked_at(read, self._take)

    def _mended(self, read: Read) -> Read:
        return looked_at(with_declared_defaults(self._answer, read), self._take)

    def _ending(self, hold: Hold, read: Read) -> list[Event]:
        found = read.extraction
        if not self.held:
            return [] if found.ok else [Degraded(_nonconforming(read))]
        if found.ok:
            as_it_was = read.verbatim and not hold.called() and self._attempts == 1
            return list(hold.kept) if as_it_was else self._written(hold, read.text)
        if found.error in ("refusal", "truncated"):
            # Every dialect has its own word for these, which its clients know.
            return list(hold.kept) if not hold.called() else self._written(hold, hold.said())
        shown = [event for event in self._written(hold, hold.said()) if type(event) is not Finish]
        return [*shown, Failed(UnusableAnswer(found))]

    def _written(self, hold: Hold, text: str) -> list[Event]:
        """Return the answer as text, in place of what was held; further choices as they were."""
        self.rewritten = True
        kept = hold.kept
        block = next((event.block for event in kept if _is_answer(event)), hold.next_block)  # type: ignore[union-attr]
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


def _is_answer(event: Event) -> bool:
    return hasattr(event, "block") and not getattr(event, "choice", 0)


def _nonconforming(read: Read) -> Degradation:
    found = read.extraction
    return Degradation("answer", asked="an answer in the schema", sent=found.error, why=found.message)

"""One reply whose thinking may take so many tokens: a stage that counts them and cuts, and what follows a cut."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import msgspec

from bardo.planning.kept_budget import BudgetPlan, continued_turn
from bardo.replies.typed_validation import AnswerReading, Continuation
from bardo.streams.stage import Stage
from bardo.structured import Provenance
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError
from bardo.values.events import ContentChunk, Degraded, Event, Failed, ThinkChunk, ThinkEnd, ThinkStart
from bardo.values.request import Message
from bardo.values.usage import TokenEstimate, Usage

_LONGEST_TOKEN = 8
"""Characters of a token on average: where the pieces of a stream are no longer, each is taken to be one token."""


class ContinueThought(msgspec.Struct, frozen=True):
    """The wish to ask the model to go on behind `turns`, which its answer begins, and to read its reply through `stages`.

    It is answered with the error where no whole reply came, else with None.
    """

    turns: tuple[Message, ...]
    stages: tuple[Stage[Event, Event], ...]
    plan: BudgetPlan


class BudgetStage:
    """Passes a reply on until its thinking has used its tokens, and nothing after that: it has been `cut` then."""

    def __init__(self, tokens: int) -> None:
        self._most = tokens
        self._pieces: list[str] = []
        self._length = 0
        self._estimate = TokenEstimate()
        self._last_block = -1
        self.cut = False

    @property
    def tokens(self) -> int:
        """How many tokens of thinking there were: the pieces of the stream, or an estimate where they are longer than tokens are."""
        pieces = len(self._pieces)
        return pieces if self._length <= _LONGEST_TOKEN * pieces else self._estimate.tokens

    @property
    def thought(self) -> str:
        """The thinking so far."""
        return "".join(self._pieces)

    @property
    def next_block(self) -> int:
        """A block number that the reply did not use."""
        return self._last_block + 1

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on, until the budget is used."""
        if self.cut:
            return ()
        self._last_block = max(self._last_block, getattr(item, "block", -1))
        if type(item) is not ThinkChunk:
            return (item,)
        self._pieces.append(item.text)
        self._length += len(item.text)
        self._estimate.add(item.text)
        if self.tokens < self._most:
            return (item,)
        self.cut = True
        return (item, ThinkEnd(item.block))

    def finish(self) -> Sequence[Event]:
        """Nothing is held."""
        return ()


class _ThoughtAsAnswer:
    """Makes the answer of what a server takes for thinking: it has not seen that the thought was ended for it."""

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on as text of the answer."""
        if type(item) is ThinkChunk:
            return (ContentChunk(item.block, item.text),)
        return () if type(item) in (ThinkStart, ThinkEnd) else (item,)

    def finish(self) -> Sequence[Event]:
        """Nothing is held."""
        return ()


class BudgetedAnswer:
    """One reply with a budget that the gateway keeps. `buffer` is the stage that counts; `finish` goes on where it has cut."""

    provenance: Provenance | None = None
    reading: AnswerReading | None = None

    def __init__(self, plan: BudgetPlan) -> None:
        self._plan = plan
        self.buffer = BudgetStage(plan.tokens)

    @property
    def rewritten(self) -> bool:
        """Whether the reply is made of more than one of the provider's."""
        return self.buffer.cut

    def finish(self) -> Generator[list[Event] | ContinueThought, Any, None]:
        """Yield what has to be done for the end of the reply: nothing where the thinking kept to its budget."""
        stage, plan = self.buffer, self._plan
        if not stage.cut:
            return
        why = "the server keeps no budget, so that the gateway ended the thinking at it"
        yield [Degraded(Degradation("reasoning", asked=f"budget:{plan.tokens}", sent=f"cut:{stage.tokens}", why=why))]
        spent = Usage(output_tokens=stage.tokens, reasoning_tokens=stage.tokens)
        stages = (_ThoughtAsAnswer(), Continuation(stage.next_block, spent))
        turns = (continued_turn(plan.begun(stage.thought)),)
        problem: BardoError | None = yield ContinueThought(turns, stages, plan)
        if problem is not None:
            yield [Failed(problem)]

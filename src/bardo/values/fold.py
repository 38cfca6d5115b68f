"""Events to one Response: the only way a Response is made from a reply."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from bardo.values.blocks import ReplyBlock, UnknownBlock
from bardo.values.chain import build_chain
from bardo.values.collected import CarriedFields
from bardo.values.degradation import DegradationList
from bardo.values.errors import BardoError
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Degraded,
    EmptyThought,
    Event,
    Extension,
    Failed,
    Finish,
    OpaqueState,
    Partial,
    RefusalChunk,
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
    WithheldThought,
)
from bardo.values.growing import (
    GrowingBlock,
    GrowingCall,
    GrowingChoice,
    GrowingRefusal,
    GrowingText,
    GrowingThinking,
)
from bardo.values.reasoning import ReasoningChain
from bardo.values.response import Response
from bardo.values.runs import texts_of
from bardo.values.usage import Usage


def _never(model: str) -> bool:
    return False


class ResponseFold:
    """Collects the events of one reply. `billed_as_output` is the provider's fact about reasoning tokens.

    `most_text` bounds how many characters of text, thinking and arguments are held; what comes after them is only counted.
    `summarizes` says of a model whether it shows only summaries of its thinking.
    """

    def __init__(
        self,
        *,
        provider: str = "",
        model: str = "",
        billed_as_output: bool = True,
        most_text: int | None = None,
        summarizes: Callable[[str], bool] = _never,
    ) -> None:
        self._summarizes = summarizes
        self._room: float = math.inf if most_text is None else most_text
        self._thinking_not_held = 0
        self._provider = provider
        self._billed_as_output = billed_as_output
        self._start = ReplyStart(model=model)
        self._choices: dict[int, GrowingChoice] = {}
        self._usage = Usage()
        self._degraded = DegradationList()
        self._error: BardoError | None = None
        self._carried = CarriedFields()
        self._extension: dict[str, Any] = {}
        self._made: Response | None = None

    @property
    def whole(self) -> bool:
        """Whether all text is held."""
        return self._room >= 0

    @property
    def begun(self) -> bool:
        """Whether any choice has come."""
        return bool(self._choices)

    @property
    def usage(self) -> Usage:
        """What the reply has used, as far as it was reported."""
        return self._usage

    def feed(self, event: Event) -> tuple[()]:
        """Take one event."""
        _TAKE[type(event)](self, event)
        self._made = None
        return ()

    def feed_all(self, events: Sequence[Event]) -> None:
        """Take events, in less time than one by one."""
        take = _TAKE
        for event in events:
            take[type(event)](self, event)
        self._made = None

    def feed_run(self, pieces: Sequence[Event]) -> None:
        """Take pieces of one text, thinking, refusal or call, at least one: texts at once, where all of them can be held."""
        if len(pieces) > 1 and type(pieces[0]) is not ToolCallChunk:
            text = "".join(texts_of(pieces))
            if len(text) <= self._room:
                pieces = (msgspec.structs.replace(pieces[0], text=text),)
        for piece in pieces:
            self.feed(piece)

    def finish(self) -> tuple[Response, ...]:
        """Return the one Response."""
        return (self.response(),)

    def response(self) -> Response:
        """Return the reply as far as it has come. May be called at any time."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def _make(self) -> Response:
        if not self._choices:
            return self._one(GrowingChoice())
        first, *others = sorted(self._choices)
        response = self._one(self._choices[first])
        if not others:
            return response
        return msgspec.structs.replace(response, alternatives=tuple([self._one(self._choices[one]) for one in others]))

    def _one(self, choice: GrowingChoice) -> Response:
        blocks = choice.blocks()
        finish = choice.finish or (Finish("error") if self._error else Finish("unknown"))
        return Response(
            id=self._start.id,
            model=self._start.model,
            provider=self._provider,
            created=self._start.created,
            blocks=blocks,
            reasoning=self._chain(choice, blocks),
            usage=self._usage,
            finish=finish,
            degraded=self._degraded.all,
            error=self._error,
            carried=self._carried.carried(),
            choice_carried=choice.fields,
            bardo=self._extension,
        )

    def _chain(self, choice: GrowingChoice, blocks: tuple[ReplyBlock, ...]) -> ReasoningChain:
        return build_chain(
            blocks,
            self._usage,
            provider=self._provider,
            model=self._start.model,
            billed_as_output=self._billed_as_output,
            empty=choice.empty_thought,
            withheld=choice.withheld_thought,
            not_held=self._thinking_not_held,
            summarizes=bool(blocks) and self._summarizes(self._start.model),
        )

    def _choice(self, index: int) -> GrowingChoice:
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = GrowingChoice()
        return choice

    def _block(self, choice: int, block: int, kind: type[GrowingBlock]) -> GrowingBlock:
        known = self._choices.get(choice) or self._choice(choice)
        growing = known.blocks_begun.get(block)
        return growing if type(growing) is kind else known.growing(block, kind)

    def _take_start(self, event: ReplyStart) -> None:
        self._start = ReplyStart(
            id=event.id or self._start.id,
            model=event.model or self._start.model,
            created=event.created if event.created is not None else self._start.created,
        )

    def _take_think_start(self, event: ThinkStart) -> None:
        self._block(event.choice, event.block, GrowingThinking).format = event.format

    def _take_think_chunk(self, event: ThinkChunk) -> None:
        block = self._block(event.choice, event.block, GrowingThinking)
        self._room -= len(event.text)
        if self._room >= 0:
            block.think(event.text, event.part)
        else:
            self._thinking_not_held += len(event.text)

    def _take_empty_thought(self, event: EmptyThought) -> None:
        self._choice(event.choice).empty_thought = True

    def _take_withheld_thought(self, event: WithheldThought) -> None:
        self._choice(event.choice).withheld_thought = True

    def _take_content(self, event: ContentChunk) -> None:
        block = self._block(event.choice, event.block, GrowingText)
        self._room -= len(event.text)
        if self._room >= 0:
            block.pieces.append(event.text)

    def _take_refusal(self, event: RefusalChunk) -> None:
        self._block(event.choice, event.block, GrowingRefusal).pieces.append(event.text)

    def _take_call_start(self, event: ToolCallStart) -> None:
        call = self._block(event.choice, event.block, GrowingCall)
        call.id, call.name = event.id or call.id, event.name or call.name

    def _take_call_chunk(self, event: ToolCallChunk) -> None:
        block = self._block(event.choice, event.block, GrowingCall)
        self._room -= len(event.arguments)
        if self._room >= 0:
            block.pieces.append(event.arguments)

    def _take_call_end(self, event: ToolCallEnd) -> None:
        block = self._block(event.choice, event.block, GrowingCall)
        assert isinstance(block, GrowingCall)
        block.ended = True

    def _take_opaque(self, event: OpaqueState) -> None:
        self._block(event.choice, event.block, GrowingText).add_state(event.opaque)

    def _take_block_fields(self, event: BlockFields) -> None:
        self._block(event.choice, event.block, GrowingText).add_fields(event.dialect, event.fields)

    def _take_unknown(self, event: UnknownContent) -> None:
        self._choice(event.choice).put(event.block, UnknownBlock(event.dialect, event.value))

    def _take_reply_fields(self, event: ReplyFields) -> None:
        if event.choice is None:
            self._carried.merge(event.dialect, event.fields)
        else:
            self._choice(event.choice).add_fields(event.dialect, event.fields)

    def _take_usage(self, event: UsageUpdate) -> None:
        self._usage = event.usage

    def _take_degraded(self, event: Degraded) -> None:
        self._degraded.add(event.degradation)

    def _take_finish(self, event: Finish) -> None:
        self._choice(event.choice).finish = event

    def _take_failed(self, event: Failed) -> None:
        self._error = event.error

    def _take_extension(self, event: Extension) -> None:
        self._extension = {**self._extension, **event.fields}

    def _take_nothing(self, event: Event) -> None:
        """An end marks nothing that the next block's start does not, and a partial answer nothing that its text does not."""


_TAKE: dict[type, Callable[[Any, Any], None]] = {
    ReplyStart: ResponseFold._take_start,
    ThinkStart: ResponseFold._take_think_start,
    ThinkChunk: ResponseFold._take_think_chunk,
    ThinkEnd: ResponseFold._take_nothing,
    EmptyThought: ResponseFold._take_empty_thought,
    WithheldThought: ResponseFold._take_withheld_thought,
    ContentChunk: ResponseFold._take_content,
    RefusalChunk: ResponseFold._take_refusal,
    ToolCallStart: ResponseFold._take_call_start,
    ToolCallChunk: ResponseFold._take_call_chunk,
    ToolCallEnd: ResponseFold._take_call_end,
    OpaqueState: ResponseFold._take_opaque,
    BlockFields: ResponseFold._take_block_fields,
    UnknownContent: ResponseFold._take_unknown,
    ReplyFields: ResponseFold._take_reply_fields,
    UsageUpdate: ResponseFold._take_usage,
    Degraded: ResponseFold._take_degraded,
    Finish: ResponseFold._take_finish,
    Failed: ResponseFold._take_failed,
    Extension: ResponseFold._take_extension,
    Partial: ResponseFold._take_nothing,
}


def fold(events: Iterable[Event], *, provider: str = "", model: str = "", billed_as_output: bool = True) -> Response:
    """Return the Response of a finished reply."""
    collector = ResponseFold(provider=provider, model=model, billed_as_output=billed_as_output)
    for event in events:
        collector.feed(event)
    return collector.response()

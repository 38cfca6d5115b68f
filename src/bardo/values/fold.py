"""Fold the events of a reply into a Response: blocks that grow, what is collected of each, and the chain of reasoning."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

import msgspec

from bardo.values.blocks import (
    Carried,
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    ReplyBlock,
    TextBlock,
    ToolCallBlock,
    UnknownBlock,
)
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
from bardo.values.reasoning import ReasoningChain, ReasoningCost, ReasoningVisibility
from bardo.values.response import Response
from bardo.values.runs import JoinedText, texts_of
from bardo.values.usage import Usage, estimate_tokens


def build_chain(
    blocks: tuple[ReplyBlock, ...],
    usage: Usage,
    *,
    provider: str,
    model: str,
    billed_as_output: bool,
    empty: bool = False,
    withheld: bool = False,
    not_held: int = 0,
    summarizes: bool = False,
) -> ReasoningChain:
    """Return the thinking among `blocks`, with its tokens told true (RC7).

    `empty`: the reply held a block of thinking with nothing in it. `withheld`: it held thinking that was left out for the caller.
    `not_held` is how many characters of it are not among the blocks, because a stream was too long to hold.
    `summarizes`: the model shows summaries of its thinking, in whatever field.
    """
    # One pass, for every reply: of one with thinking it takes a third of the time that passes for each question do.
    found: list[ReasoningBlock] = []
    interleaved = called = holds_state = has_text = summed_up = False
    for block in blocks:
        if type(block) is ReasoningBlock:
            found.append(block)
            interleaved = interleaved or called
            has_text, summed_up = has_text or bool(block.text), summed_up or any(block.summary)
            holds_state = holds_state or bool(block.opaque)
        elif type(block) is TextBlock:
            holds_state = holds_state or bool(block.opaque)
        elif type(block) is ToolCallBlock:
            called, holds_state = True, holds_state or bool(block.opaque)
        elif type(block) is UnknownBlock:
            # A tool the provider ran itself: thinking after its result is resumed thinking too.
            called = True
    thoughts = tuple(found)
    content: str | None = None
    if len(thoughts) == 1:
        content = thoughts[0].readable or None
    elif thoughts:
        content = "\n\n".join([readable for block in thoughts if (readable := block.readable)]) or None
    tokens = usage.reasoning_tokens or 0
    reported = usage.reasoning_tokens is not None and not (usage.approx and tokens)
    # Some hosts report 0 beside readable thinking (Venice, Ollama's Responses route): their 0 is no count.
    approximate = (content is not None and tokens == 0) or bool(usage.approx and tokens)
    if approximate and tokens == 0:
        tokens = estimate_tokens(content or "") + not_held // 4
        if usage.output_tokens is not None:
            # Thinking is a part of the output, so that no estimate of it is larger.
            tokens = min(tokens, usage.output_tokens)
    # Full text goes before summaries, and these before mere evidence that there was thinking.
    visibility = ReasoningVisibility.OPAQUE if tokens > 0 or holds_state else ReasoningVisibility.NONE
    if has_text and not summarizes:
        visibility = ReasoningVisibility.VISIBLE
    elif has_text or summed_up:
        visibility = ReasoningVisibility.SUMMARIZED
    return ReasoningChain(
        provider=provider,
        model=model,
        visibility=visibility,
        content=content,
        reasoning_tokens=tokens,
        reported=reported,
        tokens_approx=approximate,
        empty=empty and content is None and not withheld,
        withheld=withheld,
        interleaved=interleaved,
        blocks=thoughts,
        cost=ReasoningCost(reasoning_tokens=tokens, billed_as_output=billed_as_output),
    )


class CarriedFields(msgspec.Struct, eq=False):
    """Fields of one dialect: lists are appended to, objects updated, anything else is replaced.

    Fields of another dialect replace them all.
    """

    _dialect: str = ""
    _replaced: str = ""
    _fields: dict[str, Any] = {}
    _own: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._dialect)

    @property
    def fields(self) -> dict[str, Any]:
        """The fields, to be read and not to be kept."""
        return self._fields

    def merge(self, dialect: str, fields: dict[str, Any]) -> None:
        """Add fields. Once those of a second dialect come, which the client's is, further ones of the first are not kept."""
        if dialect != self._dialect:
            if dialect != self._replaced or not dialect:
                self._replaced, self._dialect = self._dialect, dialect
                self._fields, self._own = dict(fields), set()
            return
        for name, value in fields.items():
            before = self._fields.get(name)
            if isinstance(before, list) and isinstance(value, list):
                self._extend(name, before, value)
            elif isinstance(before, dict) and isinstance(value, dict):
                self._update(name, before, value)
            else:
                self._fields[name] = value
                self._own.discard(name)

    def pop(self, name: str) -> Any:
        """Take a field out, or None if it is absent."""
        return self._fields.pop(name, None)

    def carried(self) -> Carried | None:
        """Return the fields as a value, or None if none came."""
        if not self._dialect:
            return None
        fields = self._fields.copy()
        for name in self._own:
            fields[name] = fields[name].copy()
        return Carried(self._dialect, fields)

    def _extend(self, name: str, before: list[Any], value: list[Any]) -> None:
        if name in self._own:
            before.extend(value)
        else:
            # The first list belongs to the event that brought it.
            self._fields[name] = [*before, *value]
            self._own.add(name)

    def _update(self, name: str, before: dict[str, Any], value: dict[str, Any]) -> None:
        if name in self._own:
            before.update(value)
        else:
            # The first object belongs to the event that brought it.
            self._fields[name] = {**before, **value}
            self._own.add(name)


class OpaqueStates:
    """Opaque state of one block. A later piece of a kind replaces the earlier (OpenAI sends a provisional ciphertext first); redacted
    thinking is kept piece by piece."""

    __slots__ = ("_by_kind",)

    def __init__(self) -> None:
        self._by_kind: dict[str, Opaque] = {}

    @classmethod
    def of(cls, states: Iterable[Opaque]) -> Self:
        """Return what these pieces, in order, amount to."""
        made = cls()
        for opaque in states:
            made.add(opaque)
        return made

    def __bool__(self) -> bool:
        return bool(self._by_kind)

    def __iter__(self) -> Iterator[Opaque]:
        return iter(self._by_kind.values())

    def add(self, opaque: Opaque) -> None:
        """Add a piece."""
        key = f"redacted {len(self._by_kind)}" if opaque.kind == "redacted" else opaque.kind
        self._by_kind.pop(key, None)
        self._by_kind[key] = opaque

    def states(self) -> tuple[Opaque, ...]:
        """Return the pieces in order."""
        return tuple(self._by_kind.values())

    def take(self) -> tuple[Opaque, ...]:
        """Return the pieces in order, and forget them."""
        states = self.states()
        self._by_kind.clear()
        return states


class GrowingBlock(msgspec.Struct, eq=False):
    """A block that is still arriving. Its text is held as one: a list of pieces of a few letters each takes ten times the memory."""

    text: JoinedText = msgspec.field(default_factory=JoinedText)
    parts: dict[int, JoinedText] | None = None
    opaque: OpaqueStates | None = None
    carried: CarriedFields | None = None
    id: str = ""
    name: str = ""
    format: str = ""

    @property
    def states(self) -> tuple[Opaque, ...]:
        """The pieces of opaque state."""
        return () if self.opaque is None else self.opaque.states()

    @property
    def fields(self) -> Carried | None:
        """The fields of a dialect."""
        return None if self.carried is None else self.carried.carried()

    def block(self) -> ReplyBlock:
        """Return the block as far as it has come."""
        raise NotImplementedError


class GrowingText(GrowingBlock):
    """Text of an answer, or a block of which only state or fields have come."""

    def block(self) -> ReplyBlock:
        """Return the block as far as it has come."""
        opaque = () if self.opaque is None else self.opaque.states()
        return TextBlock(self.text.text(), opaque, None if self.carried is None else self.carried.carried())


class GrowingRefusal(GrowingBlock):
    """The words of a refusal."""

    def block(self) -> ReplyBlock:
        """Return the block as far as it has come."""
        return RefusalBlock(self.text.text(), self.fields)


class GrowingThinking(GrowingBlock):
    """A stretch of thinking, with the parts of its summary."""

    def block(self) -> ReplyBlock:
        """Return the block as far as it has come."""
        return ReasoningBlock(
            text=self.text.text(),
            summary=tuple([part.text() for _, part in sorted(self.parts.items())]) if self.parts else (),
            format=self.format,
            opaque=() if self.opaque is None else self.opaque.states(),
            carried=None if self.carried is None else self.carried.carried(),
        )


class GrowingCall(GrowingBlock):
    """A tool call, whose arguments arrive in pieces, until it `ended`."""

    ended: bool = False

    def block(self) -> ReplyBlock:
        """Return the block as far as it has come."""
        return ToolCallBlock(
            id=self.id,
            name=self.name,
            arguments=self.text.text(),
            opaque=self.states,
            carried=self.fields,
            complete=self.ended,
        )


class GrowingChoice(msgspec.Struct, eq=False):
    """The blocks of one choice, in order of first appearance."""

    blocks_begun: dict[int, GrowingBlock | UnknownBlock] = {}
    finish: Finish | None = None
    carried: CarriedFields | None = None
    empty_thought: bool = False
    withheld_thought: bool = False


def _never(model: str) -> bool:
    return False


class ResponseFold:
    """Collects the events of one reply. `billed_as_output` is the provider's fact about reasoning tokens.

    `most_text` bounds how many characters of text, thinking and arguments are held; what comes after them is only counted.
    `summarizes` says of a model whether it shows only summaries of its thinking. `usage` is what the reply has used, as far as it was
    reported.
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
        self._choices: defaultdict[int, GrowingChoice] = defaultdict(GrowingChoice)
        self.usage = Usage()
        self._degraded: DegradationList | None = None
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
            first, *others = [self._choices[number] for number in sorted(self._choices)] or [GrowingChoice()]
            made = self._one(first)
            if others:
                made = msgspec.structs.replace(made, alternatives=tuple([self._one(other) for other in others]))
            self._made = made
        return self._made

    def _one(self, choice: GrowingChoice) -> Response:
        begun: list[ReplyBlock] = []
        for block in choice.blocks_begun.values():
            begun.append(block.block() if isinstance(block, GrowingBlock) else block)
        blocks = tuple(begun)
        finish = choice.finish or (Finish("error") if self._error else Finish("unknown"))
        return Response(
            id=self._start.id,
            model=self._start.model,
            provider=self._provider,
            created=self._start.created,
            blocks=blocks,
            reasoning=build_chain(
                blocks,
                self.usage,
                provider=self._provider,
                model=self._start.model,
                billed_as_output=self._billed_as_output,
                empty=choice.empty_thought,
                withheld=choice.withheld_thought,
                not_held=self._thinking_not_held,
                summarizes=bool(blocks) and self._summarizes(self._start.model),
            ),
            usage=self.usage,
            finish=finish,
            degraded=() if self._degraded is None else self._degraded.all,
            error=self._error,
            carried=self._carried.carried(),
            choice_carried=None if choice.carried is None else choice.carried.carried(),
            bardo=self._extension,
        )

    def _block(self, choice: int, number: int, kind: type[GrowingBlock]) -> GrowingBlock:
        """Return a block of a choice, begun as `kind` where it is new."""
        begun = self._choices[choice].blocks_begun
        block = begun.get(number)
        if type(block) is kind:
            return block
        if block is None or isinstance(block, UnknownBlock):
            block = begun[number] = kind()
        elif type(block) is GrowingText and kind is not GrowingText and not block.text:
            # State or fields came before the block itself, and nobody knew yet what it would be.
            known, block = block, kind()
            block.opaque, block.carried = known.opaque, known.carried
            begun[number] = block
        return block

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
        if self._room < 0:
            self._thinking_not_held += len(event.text)
        elif event.part is None:
            block.text.add(event.text)
        else:
            # A piece of one part of its summary.
            if block.parts is None:
                block.parts = defaultdict(JoinedText)
            block.parts[event.part].add(event.text)

    def _take_empty_thought(self, event: EmptyThought) -> None:
        self._choices[event.choice].empty_thought = True

    def _take_withheld_thought(self, event: WithheldThought) -> None:
        self._choices[event.choice].withheld_thought = True

    def _take_content(self, event: ContentChunk) -> None:
        block = self._block(event.choice, event.block, GrowingText)
        self._room -= len(event.text)
        if self._room >= 0:
            block.text.add(event.text)

    def _take_refusal(self, event: RefusalChunk) -> None:
        self._block(event.choice, event.block, GrowingRefusal).text.add(event.text)

    def _take_call_start(self, event: ToolCallStart) -> None:
        call = self._block(event.choice, event.block, GrowingCall)
        call.id, call.name = event.id or call.id, event.name or call.name

    def _take_call_chunk(self, event: ToolCallChunk) -> None:
        block = self._block(event.choice, event.block, GrowingCall)
        self._room -= len(event.arguments)
        if self._room >= 0:
            block.text.add(event.arguments)

    def _take_call_end(self, event: ToolCallEnd) -> None:
        block = self._block(event.choice, event.block, GrowingCall)
        assert isinstance(block, GrowingCall)
        block.ended = True

    def _take_opaque(self, event: OpaqueState) -> None:
        block = self._block(event.choice, event.block, GrowingText)
        if block.opaque is None:
            block.opaque = OpaqueStates()
        block.opaque.add(event.opaque)

    def _take_block_fields(self, event: BlockFields) -> None:
        block = self._block(event.choice, event.block, GrowingText)
        if block.carried is None:
            block.carried = CarriedFields()
        block.carried.merge(event.dialect, event.fields)

    def _take_unknown(self, event: UnknownContent) -> None:
        self._choices[event.choice].blocks_begun[event.block] = UnknownBlock(event.dialect, event.value)

    def _take_reply_fields(self, event: ReplyFields) -> None:
        if event.choice is None:
            self._carried.merge(event.dialect, event.fields)
            return
        choice = self._choices[event.choice]
        if choice.carried is None:
            choice.carried = CarriedFields()
        choice.carried.merge(event.dialect, event.fields)

    def _take_usage(self, event: UsageUpdate) -> None:
        self.usage = event.usage

    def _take_degraded(self, event: Degraded) -> None:
        if self._degraded is None:
            self._degraded = DegradationList()
        self._degraded.add(event.degradation)

    def _take_finish(self, event: Finish) -> None:
        self._choices[event.choice].finish = event

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

"""The stages of a reply between its decoder and its client: what is left out, what is filled in, and how calls of tools are completed.

A program executes a call as soon as its dialect tells the end, and some providers tell it where the reply broke off: such a call is not
ended, and a forwarded frame that ends it is held until the call is known to be complete.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from itertools import count
from typing import Any, NamedTuple

import msgspec

from bardo.streams.frames import Frame
from bardo.streams.sse import encode_sse
from bardo.streams.stage import Stage
from bardo.values.blocks import has_no_arguments
from bardo.values.degradation import Degradation
from bardo.values.errors import BrokenStream
from bardo.values.events import (
    BREAKS_OFF,
    BlockFields,
    ContentChunk,
    Degraded,
    Event,
    Failed,
    Finish,
    OpaqueState,
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
    WithheldThought,
)
from bardo.values.fold import ResponseFold
from bardo.values.request import Request
from bardo.values.runs import JoinedText, runs_of

LONGEST_NAME = 500
_LONGEST_HELD = 64
_FREE_TEXT = ("custom", "custom_tool_call")
_ANY = msgspec.json.Decoder(msgspec.Raw)
_TRUNCATED = "Input data was truncated"
_CONTROL = re.compile("[\x00-\x1f]")


THOUGHTS: frozenset[type] = frozenset((ThinkStart, ThinkChunk, ThinkEnd, OpaqueState))
"""The events of thinking."""
TEXTS: frozenset[type] = frozenset((ContentChunk, ThinkChunk, RefusalChunk))
"""The events that are nothing but a piece of what the model says."""


_OPEN, _CLOSE = "<think>\n", "\n</think>\n\n"
# What ends the tag for who reads the text, and how it is written where the model thinks about it.
_END, _NAMED_END = "</think>", "</ think>"
_NAMED = Degraded(
    Degradation("reasoning", asked=_END, sent=_NAMED_END, why="the thinking names the tag that ends it in the text")
)


class FoldStage:
    """Collects all that passes, before thinking is left out of it."""

    acts_on = THOUGHTS

    def __init__(self, fold: ResponseFold) -> None:
        self._fold = fold

    def feed(self, item: Event) -> Sequence[Event]:
        self._fold.feed(item)
        return (item,)

    def finish(self) -> Sequence[Event]:
        return ()

    def passes_run(self, pieces: Sequence[Event]) -> bool:
        self._fold.feed_run(pieces)
        return True


class WithoutReasoning:
    """Leaves all thinking out, its opaque state and its fields included, and says once for each choice that there was some to read.

    A block that begins as thinking is left out to its end: what passed of it would begin an empty text.
    """

    acts_on = THOUGHTS

    def __init__(self) -> None:
        self._thinking: set[tuple[int, int]] = set()
        self._readable: set[int] = set()

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on what is not thinking."""
        take = _THINKING.get(type(item))
        return (item,) if take is None else take(self, item)

    def _start(self, item: ThinkStart) -> Sequence[Event]:
        self._thinking.add((item.choice, item.block))
        return ()

    def _chunk(self, item: ThinkChunk) -> Sequence[Event]:
        choice = item.choice
        self._thinking.add((choice, item.block))
        if choice in self._readable or not item.text.strip():
            return ()
        self._readable.add(choice)
        return (WithheldThought(choice),)

    def _end(self, item: ThinkEnd) -> Sequence[Event]:
        return ()

    def _beside(self, item: OpaqueState | BlockFields) -> Sequence[Event]:
        return () if (item.choice, item.block) in self._thinking else (item,)

    def finish(self) -> Sequence[Event]:
        """Nothing is held."""
        return ()

    def passes_run(self, pieces: Sequence[Event]) -> bool:
        """Whether they are no thinking."""
        return type(pieces[0]) is not ThinkChunk


_THINKING: dict[type, Callable[[WithoutReasoning, Any], Sequence[Event]]] = {
    ThinkStart: WithoutReasoning._start,
    ThinkChunk: WithoutReasoning._chunk,
    ThinkEnd: WithoutReasoning._end,
    OpaqueState: WithoutReasoning._beside,
    BlockFields: WithoutReasoning._beside,
}


class WithoutUnasked(WithoutReasoning):
    """Leaves out the thinking that the client did not ask for, and says so once."""

    def __init__(self) -> None:
        super().__init__()
        self._reported = False

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on what is not thinking."""
        passed = super().feed(item)
        if self._reported or not any(type(one) is WithheldThought for one in passed):
            return passed
        self._reported = True
        why = "the client asked for no thinking and the model thought: X-Bardo-Reasoning: include shows it"
        return (*passed, Degraded(Degradation("thinking", asked="none", sent="left out of the reply", why=why)))


class ThinkingInTags:
    """Writes thinking as text between `<think>` tags, for clients that show only text. Its opaque state and its fields have no place there.

    Thinking that names the tag's end has it written otherwise, and says so once; what may be its beginning is held.
    """

    acts_on = THOUGHTS

    def __init__(self) -> None:
        self._blocks: set[tuple[int, int]] = set()
        self._open: dict[int, tuple[int, int | None]] = {}
        self._held: dict[int, str] = {}
        self._reported = False

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on, thinking as text."""
        if type(item) is ThinkStart:
            self._blocks.add((item.choice, item.block))
            return ()
        if type(item) is ThinkChunk:
            return self._piece(item)
        if isinstance(item, OpaqueState | BlockFields) and (item.choice, item.block) in self._blocks:
            return ()
        choice = getattr(item, "choice", None)
        if choice is None or choice not in self._open:
            return () if type(item) is ThinkEnd else (item,)
        return self._close(choice) if type(item) is ThinkEnd else (*self._close(choice), item)

    def finish(self) -> Sequence[Event]:
        """Close the tag of thinking that was cut off."""
        return [event for choice in list(self._open) for event in self._close(choice)]

    def _piece(self, item: ThinkChunk) -> Sequence[Event]:
        choice = item.choice
        self._blocks.add((choice, item.block))
        closed: Sequence[Event] = ()
        held = self._open.get(choice)
        if held is not None and held[0] != item.block:
            closed, held = self._close(choice), None
        if held is None and not item.text:
            return closed
        gap = _OPEN if held is None else self._held.pop(choice, "") + "\n\n" if held[1] != item.part else ""
        self._open[choice] = (item.block, item.part)
        text, reported = self._without_end(choice, item.text)
        return (
            (*closed, ContentChunk(item.block, gap + text, choice), *reported) if gap or text else (*closed, *reported)
        )

    def _without_end(self, choice: int, text: str) -> tuple[str, Sequence[Event]]:
        """Return a piece of thinking that does not end the tag, without what may begin such an end, and what is to be reported."""
        text = self._held.pop(choice, "") + text
        reported: Sequence[Event] = ()
        if _END in text:
            text = text.replace(_END, _NAMED_END)
            reported, self._reported = () if self._reported else (_NAMED,), True
        for length in range(min(len(_END) - 1, len(text)), 0, -1):
            if text.endswith(_END[:length]):
                self._held[choice] = text[-length:]
                return text[:-length], reported
        return text, reported

    def _close(self, choice: int) -> Sequence[Event]:
        block, _ = self._open.pop(choice)
        return (ContentChunk(block, self._held.pop(choice, "") + _CLOSE, choice),)


def thinking_stage(request: Request, spoken: str) -> Stage[Event, Event] | None:
    """Return the stage that shows the thinking of a reply in the dialect `spoken` as the client wants it, or None if it stays."""
    options = request.options
    if options.omit_reasoning:
        return WithoutReasoning()
    if options.reasoning_tags:
        return ThinkingInTags()
    # A provider of the client's own dialect is asked in the client's own words, and answers as it would without bardo.
    return WithoutUnasked() if options.omit_unasked and request.dialect != spoken else None


class FillMissingFields:
    """Fills in the id, the model and the time that a provider left out, before any block of the reply.

    A start without an id waits for the next, which may bring it: a client that was told one id, or one time, is not told another.
    """

    passes_text = True

    def __init__(self, stamp: ReplyStart) -> None:
        self._stamp = stamp
        self._begun = False

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on, after a complete ReplyStart."""
        if type(item) is ReplyStart:
            known = self._stamp
            self._stamp = ReplyStart(
                # Both stand in every frame of some dialects.
                id=item.id[:LONGEST_NAME] or known.id,
                model=item.model[:LONGEST_NAME] or known.model,
                created=known.created if self._begun or item.created is None else item.created,
            )
            self._begun = self._begun or item.id != ""
            return (self._stamp,) if self._begun else ()
        if self._begun or (type(item) is ReplyFields and item.choice is None):
            return (item,)
        return (*self.finish(), item)

    def finish(self) -> Sequence[Event]:
        """Give a start that waited in vain."""
        if self._begun:
            return ()
        self._begun = True
        return (self._stamp,)


class _Call:
    """A call of which the end has not been passed on. `held` are its first pieces, None from the first one on that says something."""

    __slots__ = ("arguments", "free", "held", "is_answer", "length", "looked_at")

    def __init__(self, *, is_answer: bool = False) -> None:
        self.length = self.looked_at = 0
        self.is_answer = is_answer
        self.held: str | None = ""
        self.arguments = JoinedText()
        self.free = False

    @property
    def is_whole(self) -> bool:
        """Whether the arguments are one JSON object. That cannot be told of free text."""
        if self.free:
            return False
        text = self.arguments.text().lstrip()
        try:
            # Read without making values: of a million fields they would take half a second.
            _ANY.decode(text)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return False
        return text.startswith("{")

    @property
    def is_torn(self) -> bool:
        """Whether the arguments began as JSON and stop before its end. What models write wrongly otherwise is for the client to judge."""
        text = self.arguments.text().strip()
        if self.free or self.is_answer or not text.startswith(("{", "[", '"')):
            return False
        try:
            # A number may be cut, too; models write control characters into strings, which JSON does not allow.
            _ANY.decode(_CONTROL.sub(" ", text.rstrip("+-.eE")))
        except msgspec.DecodeError as problem:
            return str(problem) == _TRUNCATED
        except (UnicodeError, RecursionError):
            return False
        return False


class CallArguments:
    """Gives a call without arguments an empty object, one without an id an id, and ends no call in which the reply broke off.

    Clients answer by an id. `make_id` returns those that no other call has, and `minted` says whether one was needed.
    A reply that ends in a good way although the arguments of a call stop before their end has broken off, whatever its provider says.

    The first pieces of arguments are held as long as they may come to nothing, to `null` or to an empty object, which some providers write
    where no arguments came yet. The end of a call that said nothing, or no object, is held until something follows it, or the reply says
    why it ended: some providers end every call where the tokens ran out.

    The arguments of `answer_tool` are a typed answer: nobody executes them, and whoever reads them repairs what lacks its last bracket.
    """

    def __init__(self, answer_tool: str = "", make_id: Callable[[], str] | None = None) -> None:
        self._answer_tool = answer_tool
        self._make_id = make_id or counting_ids()
        self.minted = False
        self._calls: dict[tuple[int, int], _Call] = {}
        self._ended: dict[tuple[int, int], None] = {}
        self._grown: dict[tuple[int, int], None] = {}
        """The calls that got arguments since `torn` was last asked for."""
        self._torn: set[tuple[int, int]] = set()
        self._cut: dict[int, set[int]] = {}
        """The calls in which each choice broke off, of the choices that are over."""
        self.begun = False

    def feed(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return the events, those held back at their place."""
        if not self.begun and ToolCallStart not in map(type, events):
            return events
        self.begun = True
        given: list[Event] = []
        for event in events:
            take = _ARGUMENTS.get(type(event))
            given += (event,) if take is None else take(self, event)
            if type(event) is Finish and type(given[-1]) is Failed:
                break
        return given

    def finish(self) -> list[Event]:
        """Return the ends that waited, of a reply that does not say why it ended."""
        return [event for place in list(self._ended) for event in self._conclude(*place)]

    @property
    def waits(self) -> bool:
        """Whether the end of a call is held."""
        return bool(self._ended)

    @property
    def torn(self) -> bool:
        """Whether the arguments of a call that has not ended stop before their end, as far as is known.

        A torn call that grows is looked at again when it has grown by half, or ends: a frame is asked for each of its pieces.
        """
        for place in list(self._grown):
            call = self._calls[place]
            if place in self._torn and call.length < call.looked_at * 1.5:
                continue
            del self._grown[place]
            call.looked_at = call.length
            (self._torn.add if call.is_torn else self._torn.discard)(place)
        return bool(self._torn)

    @property
    def cut(self) -> bool:
        """Whether the reply ended inside a call."""
        return any(self._cut.values())

    def broke_off(self, end: ToolCallEnd) -> bool:
        """Whether the reply ended inside this call."""
        return end.block in self._cut.get(end.choice, ())

    def _start(self, event: ToolCallStart) -> Sequence[Event]:
        before = self._follow(event) if self._ended else ()
        self._forget(event.choice, event.block)
        if not event.id:
            self.minted = True
            event = msgspec.structs.replace(event, id=self._make_id())
        self._calls[event.choice, event.block] = _Call(is_answer=event.name != "" and event.name == self._answer_tool)
        return (*before, event)

    def _piece(self, event: ToolCallChunk) -> Sequence[Event]:
        call = self._calls.get((event.choice, event.block))
        if call is None:
            return (event,)
        call.arguments.add(event.arguments)
        call.length += len(event.arguments)
        self._grown[event.choice, event.block] = None
        if call.held is None:
            return (event,)
        call.held += event.arguments
        said = call.held.strip()
        if len(call.held) <= _LONGEST_HELD and (said == "{}" or "null".startswith(said)):
            return ()
        return self._release(event.choice, event.block)

    def _end(self, event: ToolCallEnd) -> Sequence[Event]:
        call = self._calls.get((event.choice, event.block))
        if call is None:
            return () if event.block in self._cut.get(event.choice, ()) else (event,)
        place = (event.choice, event.block)
        if place in self._ended:
            return ()
        self._ended[place] = None
        call.looked_at = 0
        if (call.held is None and call.is_whole) or event.choice in self._cut:
            return self._conclude(event.choice, event.block)
        return ()

    def _fields(self, event: BlockFields) -> Sequence[Event]:
        # The input of such a tool is any text.
        call = self._calls.get((event.choice, event.block))
        if call is None or event.fields.get("type") not in _FREE_TEXT:
            return (event,)
        call.free = True
        self._forget(event.choice, event.block)
        return (*self._release(event.choice, event.block), event)

    def _follow(self, event: Any) -> Sequence[Event]:
        """End the calls that waited for something to follow them."""
        ended = [(choice, at) for choice, at in self._ended if choice == event.choice and at != event.block]
        return [one for place in ended for one in self._conclude(*place)]

    def _followed(self, event: Any) -> Sequence[Event]:
        return (*self._follow(event), event) if self._ended else (event,)

    def _conclude(self, choice: int, block: int) -> Sequence[Event]:
        """Tell that a call is complete."""
        call = self._calls.pop((choice, block))
        self._ended.pop((choice, block), None)
        self._forget(choice, block)
        end = ToolCallEnd(block, choice)
        if call.held is None:
            return (end,)
        if call.free or not has_no_arguments(call.held):
            return (ToolCallChunk(block, call.held, choice), end) if call.held else (end,)
        return (ToolCallChunk(block, "{}", choice), end)

    def _finish(self, event: Finish) -> Sequence[Event]:
        choice = event.choice
        cut = self._cut.setdefault(choice, set())
        if event.reason not in BREAKS_OFF:
            if any(of == choice and call.is_torn for (of, _), call in self._calls.items()):
                return self._failed(Failed(BrokenStream(_why(event))))
            ended = [place for place in self._ended if place[0] == choice]
            return (*(one for place in ended for one in self._conclude(*place)), event)
        open_calls = {block: call for (of, block), call in self._calls.items() if of == choice}
        last = max(open_calls, default=-1)
        out: list[Event] = []
        for block, call in open_calls.items():
            # What the model said before it went on with something else is complete, also where that was nothing.
            nothing = call.held is not None
            if (call.is_whole and not nothing) or (block != last and (call.free or nothing)):
                continue
            cut.add(block)
            out += () if nothing else self._release(choice, block)
            self._ended.pop((choice, block), None)
            self._forget(choice, block)
            del self._calls[choice, block]
        if not cut:
            return (event,)
        if event.reason == "error":
            return (*out, Failed(BrokenStream(_why(event))))
        return (*out, *(Degraded(broken_call(event)) for _ in cut), event)

    def _failed(self, event: Failed) -> Sequence[Event]:
        self._calls.clear()
        self._ended.clear()
        self._grown.clear()
        self._torn.clear()
        return (event,)

    def _forget(self, choice: int, block: int) -> None:
        """Forget whether a call is torn: it is over, or another one begins in its place."""
        self._grown.pop((choice, block), None)
        self._torn.discard((choice, block))

    def _release(self, choice: int, block: int) -> Sequence[Event]:
        call = self._calls[choice, block]
        said, call.held = call.held, None
        return (ToolCallChunk(block, said, choice),) if said else ()


def _why(finish: Finish) -> str:
    return f"the reply ended with {finish.raw or finish.reason} inside the arguments of a call"


def broken_call(finish: Finish) -> Degradation:
    """Tell the caller that a reply ended inside a call."""
    why = f"the reply ended ({finish.raw or finish.reason}) inside the arguments of a call, which is not complete and must not be executed"
    return Degradation("tool_calls", asked="a tool call", sent="an incomplete call", why=why)


_ARGUMENTS: dict[type, Callable[[CallArguments, Any], Sequence[Event]]] = {
    ToolCallStart: CallArguments._start,
    ToolCallChunk: CallArguments._piece,
    ToolCallEnd: CallArguments._end,
    BlockFields: CallArguments._fields,
    ThinkStart: CallArguments._followed,
    ThinkChunk: CallArguments._followed,
    ContentChunk: CallArguments._followed,
    RefusalChunk: CallArguments._followed,
    UnknownContent: CallArguments._followed,
    Finish: CallArguments._finish,
    Failed: CallArguments._failed,
}


def pass_through(events: Sequence[Event], stages: Sequence[Stage[Event, Event]]) -> Sequence[Event]:
    """Return what comes of events behind these stages. The first piece of a text is fed to all, others to those that must see them."""
    if len(events) < 2:
        for stage in stages:
            alone = len(events) == 1
            events = stage.feed(events[0]) if alone else [one for event in events for one in stage.feed(event)]
        return events
    out: list[Event] = []
    for run in runs_of(events):
        out += pass_through(run[:1], stages)
        if len(run) > 1:
            out += pass_further(run[1:], stages, lookers_of(stages, type(run[0])))
    return out


Looker = tuple[int, Callable[[Sequence[Event]], bool] | None]
"""A stage, by its place, that must see further pieces of a text, unless it says that they pass."""


def lookers_of(stages: Sequence[Stage[Event, Event]], kind: type = ContentChunk) -> list[Looker]:
    """Return the stages that look at further pieces of this kind."""
    if kind is not ToolCallChunk:
        pairs = enumerate(stages)
        return [(at, getattr(one, "passes_run", None)) for at, one in pairs if not getattr(one, "passes_text", False)]
    touched = [getattr(stage, "touches", None) for stage in stages]
    return [(place, None) for place, touches in enumerate(touched) if touches is None or kind in touches]


def pass_further(
    pieces: Sequence[Event], stages: Sequence[Stage[Event, Event]], lookers: Sequence[Looker]
) -> Sequence[Event]:
    """Return what comes of further pieces of one text behind these stages: the pieces themselves where they pass all `lookers`."""
    for place, passes_run in lookers:
        if passes_run is None or not passes_run(pieces):
            feed = stages[place].feed
            fed = feed(pieces[0]) if len(pieces) == 1 else [one for piece in pieces for one in feed(piece)]
            behind = stages[place + 1 :]
            return pass_through(fed, behind) if fed and behind else fed
    return pieces


def passed_to_the_end(last: Sequence[Event], stages: Sequence[Stage[Event, Event]]) -> list[Event]:
    """Return what comes of the last events behind these stages, and of what each of them held."""
    events = [*last]
    for stage in stages:
        events = [passed for event in events for passed in stage.feed(event)]
        events += stage.finish()
    return events


def pass_whole(events: Sequence[Event], stages: Sequence[Stage[Event, Event]]) -> Sequence[Event]:
    """Return what comes of all events of a reply behind these stages, without those that act on none of them."""
    for stage in stages:
        acts_on: frozenset[type] | None = getattr(stage, "acts_on", None)
        if acts_on is None or not acts_on.isdisjoint(map(type, events)):
            events = passed_to_the_end(events, (stage,))
    return events


def counting_ids() -> Callable[[], str]:
    """Return what numbers the calls of one reply."""
    numbers = count(1)
    return lambda: f"call_{next(numbers)}"


WithoutCalls = Callable[[bytes, Collection[int]], bytes]


class _HeldFrame(NamedTuple):
    """A frame, the ends of calls in it, whether it `announces` all the arguments of a call before its end, and whether it is the last."""

    frame: Frame
    ends: Sequence[ToolCallEnd]
    announces: bool
    is_last: bool


class HeldEnds:
    """Holds the frames of one reply from the one on that ends a call which is not known to be complete, in their order.

    That is one frame for most calls without arguments, and none for others. `calls` are those of the reply. `tells_call` says of a frame
    whether it tells all the arguments of a call in another way than by its end, or None if no frame of a dialect does. `without_calls`
    takes calls out of a frame that may hold other things, or None if a frame that ends a call holds nothing else. `with_broken_calls` says
    in the frame that ends a reply which of its calls broke off, or None if no such frame holds calls.
    """

    __slots__ = ("_announced", "_calls", "_held", "_tells_call", "_with_broken_calls", "_without_calls")

    def __init__(
        self,
        calls: CallArguments,
        tells_call: Callable[[bytes], bool] | None,
        without_calls: WithoutCalls | None = None,
        with_broken_calls: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self._calls = calls
        self._with_broken_calls = with_broken_calls
        self._tells_call = tells_call
        self._without_calls = without_calls
        self._announced = False
        self._held: list[_HeldFrame] = []

    @property
    def holds(self) -> bool:
        """Whether a frame is held."""
        return bool(self._held)

    def feed(self, frame: Frame, decoded: Sequence[Event]) -> bytes:
        """Return the bytes that may be sent once a frame has been read, of which `decoded` was read."""
        calls = self._calls
        if not calls.begun:
            return frame.raw
        announces = self._tells_call is not None and calls.torn and self._tells_call(frame.raw)
        ends = [event for event in decoded if type(event) is ToolCallEnd]
        self._announced |= announces
        is_last = Finish in map(type, decoded)
        if self._without_calls is None and is_last:
            # The frame that says why the reply ends is no end of a call.
            ends, announces = [], False
        self._held.append(_HeldFrame(frame, ends, announces, is_last))
        if calls.waits or (self._announced and calls.torn):
            return b""
        return self.released()

    def released(self) -> bytes:
        """Return what was held, without the ends of calls in which the reply broke off."""
        held, self._held, self._announced = self._held, [], False
        return b"".join(map(self._sound, held))

    def _sound(self, held: _HeldFrame) -> bytes:
        """Return a frame without calls that broke off: what else it says stays, also why the reply ended."""
        frame = held.frame
        if held.is_last and self._with_broken_calls is not None and frame.data is not None and self._calls.cut:
            return _with_data(frame, self._with_broken_calls(frame.data))
        broken = [place for place, end in enumerate(held.ends) if self._calls.broke_off(end)]
        if not broken:
            return b"" if held.announces and self._calls.cut else frame.raw
        if self._without_calls is None or frame.data is None:
            return b""
        return _with_data(frame, self._without_calls(frame.data, broken))


def _with_data(frame: Frame, data: bytes) -> bytes:
    """Return the bytes of a frame with other data. Data of several lines stands in an event of its own."""
    if frame.data is not None and frame.data in frame.raw:
        return frame.raw.replace(frame.data, data, 1)
    return encode_sse(data, frame.event)

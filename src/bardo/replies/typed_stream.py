"""A typed answer while it arrives: its partial values, and the buffer that holds its text until it can be read as a whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from bardo.planning.typed_answer import AnswerPlan
from bardo.structured import Json, PartialJson, was_cut
from bardo.structured.coercion import accepted_types
from bardo.values.errors import MalformedReply
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    Failed,
    Finish,
    OpaqueState,
    Partial,
    RefusalChunk,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UsageUpdate,
)
from bardo.values.usage import Usage

_SHARE = 8
_MARK = re.compile(r'["{}\[\]]')
_IN_STRING = re.compile(r'["\\]')


class Partials:
    """Gives a Partial whenever the answer grew. `last` is what was given of an earlier try: only what adds to it is given after it.

    Where the model answers in another form than the caller gets, each partial object is brought into it. That costs as much as the object
    is large, so it is done at growing distances: all of it together stays linear.
    """

    def __init__(self, answer: AnswerPlan, *, last: Json = None) -> None:
        self._plan = answer.plan
        self._read_by = answer.read_by
        self._schema = answer.judge.schema
        self._reader = PartialJson(answer.read_by.schema, only_conforming=True)
        self._size = 0
        self._due = 0
        self._waiting = False
        self.last = last
        self._plainly = not answer.plan.changes_answers and last is None

    def feed(self, text: str) -> Sequence[Partial]:
        """Take text of the answer."""
        self._size += len(text)
        if self._plainly:
            found = self._reader.feed(text)
            self.last = found[-1] if found else self.last
            return [Partial(value, self._size) for value in found]
        if self._reader.done:
            return ()
        self._waiting |= self._reader.grow(text) or self._reader.done
        if not self._waiting or (self._size < self._due and not self._reader.done):
            return ()
        self._waiting = False
        self._due = self._size + self._size // _SHARE
        return self._restored()

    def _restored(self) -> Sequence[Partial]:
        if not self._read_by.is_quick(self._reader.value):
            # Copied, and judged by the forms of its schema, it would keep all others waiting: only the whole answer is given.
            return ()
        try:
            value = self._plan.restore(complete(deepcopy(self._reader.value), self._reader.open_path))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            return ()  # An incomplete value may not have its other form yet.
        if value == self.last or not grown(self.last, value) or not self._fits(value):
            return ()
        self.last = value
        return (Partial(value, self._size),)

    def _fits(self, value: Json) -> bool:
        """Whether a value is of the kind the caller gets in the end."""
        kinds = accepted_types(self._schema, self._schema)
        return ("object" if isinstance(value, dict) else "array" if isinstance(value, list) else "") in kinds


def complete(value: Json, open_path: Sequence[str | int]) -> Json:
    """Return a growing value without the object that is still open in an array: it may be an entry, which is nothing by halves."""
    place = value
    for step in open_path:
        if isinstance(place, list) and isinstance(step, int) and step < len(place):
            if isinstance(place[step], dict):
                del place[step:]
                break
        elif not (isinstance(place, dict) and step in place):
            break
        place = place[step]
    return value


def grown(before: Json, after: Json) -> bool:
    """Whether `after` only adds to `before`: members, items, and text at the end of texts."""
    if before is None:
        return True
    if isinstance(before, dict):
        return isinstance(after, dict) and all(
            key in after and grown(inner, after[key]) for key, inner in before.items()
        )
    if isinstance(before, list):
        longer = isinstance(after, list) and len(after) >= len(before)
        return longer and all(grown(one, other) for one, other in zip(before, after, strict=False))
    if isinstance(before, str):
        return isinstance(after, str) and after.startswith(before)
    return type(before) is type(after) and bool(before == after)


class JsonGate:
    """Lets text pass that begins as JSON does, to the end of that value. `closed`: nothing passes any more.

    Text that begins in another way, as a code fence does, does not pass: what its answer is shows at its end. Whether the text is sound
    JSON is not looked at.
    """

    def __init__(self) -> None:
        self.closed = False
        self.begun = False
        self._before = ""
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def feed(self, text: str) -> tuple[str, str]:
        """Return what passes of a text, and what does not. Space before the first bracket waits for it."""
        if self.closed:
            return "", text
        if not self.begun:
            text = self._before + text
            begin = text.lstrip()[:1]
            if not begin:
                self._before = text
                return "", ""
            self._before = ""
            self.begun = begin in "{["
            self.closed = not self.begun
            if self.closed:
                return "", text
        end = self._end(text)
        self.closed = end is not None
        return (text, "") if end is None else (text[:end], text[end:])

    def _end(self, text: str) -> int | None:
        """Return where the value ends in this piece, or None if it goes on."""
        at = 1 if self._escaped else 0
        self._escaped = False
        while True:
            found = (_IN_STRING if self._in_string else _MARK).search(text, at)
            if found is None:
                return None
            at = found.end()
            mark = found.group()
            if mark == "\\":
                self._escaped = at == len(text)
                at += 1
            elif mark == '"':
                self._in_string = not self._in_string
            elif mark in "{[":
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth == 0:
                    return at


MAX_HELD = 16 * 1024 * 1024
"""Characters of one answer; a model that never stops is stopped here."""

Place = tuple[int, int]


class AnswerBuffer:
    """Holds one reply's answer. `tool` is the tool that carries it, where one does, `offered` are all that the model may call.

    `hold`: all of the answer waits. `gated`: it passes while it is plainly JSON, and waits from where it is not. With neither, everything
    passes, and this only looks on. `partials` are fed with the JSON as it comes. `offered` None: any other call is of a caller's tool.

    Thinking, usage and calls of tools pass. The held text is either given back as it was, or replaced by the answer that was read in it.
    """

    def __init__(
        self,
        *,
        tool: str = "",
        hold: bool = True,
        gated: bool = False,
        offered: frozenset[str] | None = None,
        partials: Partials | None = None,
    ) -> None:
        self._tool = tool
        self._offered = offered
        self._hold = hold
        self._gated = gated
        self._gate = JsonGate()
        self.partials = partials
        self._pending: list[Event] = []
        self._texts: dict[int, list[str]] = {}
        self._answers: dict[int, list[str]] = {}
        self._ours: set[Place] = set()
        self._text_blocks: set[Place] = set()
        self._shown: list[str] = []
        self._unknown: dict[Place, str] = {}
        self._unknown_arguments: list[str] = []
        self._size = 0
        self._last_block = -1
        self.refused = self.calls = self.ended = self.failed = False
        self.finish_event: Finish | None = None
        self.usage = Usage()

    # What was read, for whoever judges it

    @property
    def pending(self) -> Sequence[Event]:
        """The events that were held, in order."""
        return self._pending

    @property
    def next_block(self) -> int:
        """A block number that this reply did not use."""
        return self._last_block + 1

    @property
    def choices(self) -> list[int]:
        """The choices that said something, in order."""
        return sorted({0, *self._texts, *self._answers})

    @property
    def cut(self) -> bool:
        """Whether the reply may have ended in the middle of its answer."""
        return self.finish_event is not None and was_cut(self.finish_event.reason)

    @property
    def end_known(self) -> bool:
        """Whether the provider said why the reply ended."""
        return self.finish_event is not None and self.finish_event.reason != "unknown"

    @property
    def at_limit(self) -> bool:
        """Whether the reply ended at its limit of tokens, where another one would end too."""
        return self.finish_event is not None and self.finish_event.reason == "length"

    @property
    def shown(self) -> str:
        """The text of the answer that has passed."""
        return "".join(self._shown)

    @property
    def shown_whole(self) -> bool:
        """Whether what has passed is a whole value: the bracket that closes it came."""
        return bool(self._shown) and self._gate.closed

    @property
    def unknown_tools(self) -> tuple[str, ...]:
        """The tools that were called although the model was not offered them."""
        return tuple(dict.fromkeys(self._unknown.values()))

    @property
    def unknown_arguments(self) -> str:
        """What the last call of a tool that was not offered said."""
        return "".join(self._unknown_arguments)

    @property
    def arguments(self) -> str:
        """What the tool that carries the answer was called with."""
        arguments = "".join(self._answers.get(0, ()))
        # A call that was cut before its first argument has been given an empty object by then.
        return "" if self.cut and arguments == "{}" else arguments

    @property
    def text(self) -> str:
        """The text beside calls of tools."""
        return "".join(self._texts.get(0, ()))

    def answer_text(self, choice: int = 0) -> str:
        """Return the text of the answer: what the tool was called with, else the text."""
        if choice == 0 and self._answers.get(0):
            return self.arguments
        return "".join(self._answers.get(choice) or self._texts.get(choice) or ())

    def called(self, choice: int = 0) -> bool:
        """Whether the answer came as a call of the tool that carries it."""
        return choice in self._answers

    # The stage

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on what is not the answer."""
        if type(item) is ContentChunk:
            return self._content(item)
        block = getattr(item, "block", -1)
        if block > self._last_block:
            self._last_block = block
        take = _TAKE.get(type(item))
        return (item,) if take is None else take(self, item)

    def finish(self) -> Sequence[Event]:
        """A reply that never came to its end is no answer: what was held is given back."""
        return () if self.ended else self._given_back()

    def _failure(self, item: Failed) -> Sequence[Event]:
        self.failed = True
        return (*self._given_back(), item)

    def _refusal(self, item: RefusalChunk) -> Sequence[Event]:
        self.refused = True
        return (item,)

    def _usage(self, item: UsageUpdate) -> Sequence[Event]:
        self.usage = item.usage
        return (item,)

    def _of_block(self, item: OpaqueState | BlockFields) -> Sequence[Event]:
        place = (item.choice, item.block)
        ours = place in self._ours or (not self._shown and place in self._text_blocks)
        return self._keep(item) if ours or place in self._unknown else (item,)

    def _content(self, item: ContentChunk) -> Sequence[Event]:
        self._text_blocks.add((item.choice, item.block))
        self._last_block = max(self._last_block, item.block)
        self._texts.setdefault(item.choice, []).append(item.text)
        if item.choice or not (self._hold or self._gated):
            return self._keep(item, len(item.text)) if self._hold else self._looked_at(item)
        if self._tool:
            return self._keep(item, len(item.text))
        passes, waits = self._gate.feed(item.text)
        given = self._partial(passes)
        if self._hold:
            return (*self._keep(item, len(item.text)), *given)
        kept = self._keep(ContentChunk(item.block, waits), len(waits)) if waits else ()
        if passes:
            self._shown.append(passes)
            return (ContentChunk(item.block, passes), *given, *kept)
        return kept

    def _looked_at(self, item: ContentChunk) -> Sequence[Event]:
        """Pass a text on, and what it adds to the partial answer."""
        if item.choice:
            return (item,)
        self._shown.append(item.text)
        return (item, *self._partial(self._gate.feed(item.text)[0]))

    def _call(self, item: ToolCallStart | ToolCallChunk | ToolCallEnd) -> Sequence[Event]:
        place = (item.choice, item.block)
        if type(item) is ToolCallStart:
            self._begin_call(item, place)
        if place in self._unknown:
            return self._unknown_call(item)
        if place not in self._ours:
            return (item,)
        if type(item) is not ToolCallChunk:
            return self._keep(item)
        self._answers[item.choice].append(item.arguments)
        given = () if item.choice else self._partial(self._gate.feed(item.arguments)[0])
        return (*self._keep(item, len(item.arguments)), *given)

    def _begin_call(self, item: ToolCallStart, place: Place) -> None:
        if self._tool and item.name == self._tool:
            self._ours.add(place)
            self._answers[item.choice] = []  # The last call counts.
        elif self._offered is None or item.name in self._offered or item.choice:
            self.calls = True
        else:
            self._unknown[place] = item.name
            self._unknown_arguments = []

    def _unknown_call(self, item: ToolCallStart | ToolCallChunk | ToolCallEnd) -> Sequence[Event]:
        if type(item) is ToolCallChunk:
            self._unknown_arguments.append(item.arguments)
            return self._keep(item, len(item.arguments))
        return self._keep(item)

    def _keep(self, item: Event, size: int = 0) -> Sequence[Event]:
        if not (self._hold or self._gated):
            return (item,)
        self._size += size
        if self._size > MAX_HELD:
            message = f"the model's answer is longer than {MAX_HELD:,} characters"
            self.failed = True
            return (*self._given_back(), Failed(MalformedReply(message, hint="set a limit of output tokens")))
        self._pending.append(item)
        return ()

    def _finish(self, item: Finish) -> Sequence[Event]:
        self.ended = True
        if item.choice == 0:
            self.finish_event = item
        self.refused |= item.reason == "refusal"
        return self._keep(item)

    def _partial(self, text: str) -> Sequence[Event]:
        return self.partials.feed(text) if self.partials is not None and text else ()

    def _given_back(self) -> Sequence[Event]:
        kept, self._pending, self._hold, self._gated = self._pending, [], False, False
        return kept


_TAKE: dict[type, Callable[[AnswerBuffer, Any], Sequence[Event]]] = {
    Failed: AnswerBuffer._failure,
    RefusalChunk: AnswerBuffer._refusal,
    Finish: AnswerBuffer._finish,
    UsageUpdate: AnswerBuffer._usage,
    ToolCallStart: AnswerBuffer._call,
    ToolCallChunk: AnswerBuffer._call,
    ToolCallEnd: AnswerBuffer._call,
    OpaqueState: AnswerBuffer._of_block,
    BlockFields: AnswerBuffer._of_block,
}

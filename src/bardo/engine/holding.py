"""Hold the text of a typed answer until it can be read as a whole, and let everything else pass: thinking, usage, calls of tools.

What was held is either given back as it was, or replaced by the answer that was read in it.
"""

from __future__ import annotations

from collections.abc import Sequence

from bardo.engine.partials import Partials
from bardo.structured import was_cut
from bardo.values.errors import MalformedReply
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    Failed,
    Finish,
    OpaqueState,
    RefusalChunk,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UsageUpdate,
)
from bardo.values.usage import Usage

MAX_HELD = 16 * 1024 * 1024
"""Characters of one answer; a model that never stops is stopped here."""

Place = tuple[int, int]


class Hold:
    """Holds one reply's answer. `tool` is the tool that carries it, where one does.

    With `hold` False it only looks on. `partials` are fed with the text as it comes.
    """

    def __init__(self, *, tool: str = "", hold: bool = True, partials: Partials | None = None) -> None:
        self._tool = tool
        self._hold = hold
        self.partials = partials
        self._kept: list[Event] = []
        self._texts: dict[int, list[str]] = {}
        self._answers: dict[int, list[str]] = {}
        self._ours: set[Place] = set()
        self._text_blocks: set[Place] = set()
        self._size = 0
        self._last_block = -1
        self.refused = self.calls = self.ended = self.failed = False
        self.finish_event: Finish | None = None
        self.usage = Usage()

    # What was read, for whoever judges it

    @property
    def kept(self) -> Sequence[Event]:
        """The events that were held, in order."""
        return self._kept

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
    def at_limit(self) -> bool:
        """Whether the reply ended at its limit of tokens, where another one would end too."""
        return self.finish_event is not None and self.finish_event.reason == "length"

    def said(self, choice: int = 0) -> str:
        """Return the text of the answer: what the tool was called with, else the text."""
        return "".join(self._answers.get(choice) or self._texts.get(choice) or ())

    def called(self, choice: int = 0) -> bool:
        """Whether the answer came as a call of the tool that carries it."""
        return choice in self._answers

    # The stage

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on what is not the answer."""
        if type(item) is ContentChunk:
            return self._content(item)
        self._last_block = max(self._last_block, getattr(item, "block", -1))
        match item:
            case Failed():
                self.failed = True
                return (*self._given_back(), item)
            case RefusalChunk():
                self.refused = True
            case Finish(choice=choice, reason=reason):
                self._finished(item, choice)
                self.refused |= reason == "refusal"
                return self._keep(item)
            case UsageUpdate(usage=usage):
                self.usage = usage
            case ToolCallStart() | ToolCallChunk() | ToolCallEnd():
                return self._call(item)
            case OpaqueState(block=block, choice=choice) | BlockFields(block=block, choice=choice):
                if (choice, block) in self._ours | self._text_blocks:
                    return self._keep(item)
            case _:
                pass
        return (item,)

    def finish(self) -> Sequence[Event]:
        """A reply that never came to its end is no answer: what was held is given back."""
        return () if self.ended else self._given_back()

    def _content(self, item: ContentChunk) -> Sequence[Event]:
        self._text_blocks.add((item.choice, item.block))
        self._last_block = max(self._last_block, item.block)
        if not self._hold:
            return (item, *self._partial(item.text, item.choice))
        self._texts.setdefault(item.choice, []).append(item.text)
        given = () if self._tool else self._partial(item.text, item.choice)
        return (*self._keep(item, len(item.text)), *given)

    def _call(self, item: ToolCallStart | ToolCallChunk | ToolCallEnd) -> Sequence[Event]:
        place = (item.choice, item.block)
        if isinstance(item, ToolCallStart):
            if not self._tool or item.name != self._tool:
                self.calls = True
            else:
                self._ours.add(place)
                self._answers[item.choice] = []  # The last call counts.
        if place not in self._ours:
            return (item,)
        if not isinstance(item, ToolCallChunk):
            return self._keep(item)
        self._answers[item.choice].append(item.arguments)
        return (*self._keep(item, len(item.arguments)), *self._partial(item.arguments, item.choice))

    def _keep(self, item: Event, size: int = 0) -> Sequence[Event]:
        if not self._hold:
            return (item,)
        self._size += size
        if self._size > MAX_HELD:
            message = f"the model's answer is longer than {MAX_HELD:,} characters"
            self.failed = True
            return (*self._given_back(), Failed(MalformedReply(message, hint="set a limit of output tokens")))
        self._kept.append(item)
        return ()

    def _finished(self, item: Finish, choice: int) -> None:
        self.ended = True
        if choice == 0:
            self.finish_event = item

    def _partial(self, text: str, choice: int) -> Sequence[Event]:
        return self.partials.feed(text) if self.partials is not None and choice == 0 else ()

    def _given_back(self) -> Sequence[Event]:
        kept, self._kept, self._hold = self._kept, [], False
        return kept

"""How a client sees the thinking of a reply: not at all, or in the text between tags."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.replies.reply_stages import THOUGHTS, WithoutReasoning
from bardo.streams.stage import Stage
from bardo.values.degradation import Degradation
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Degraded,
    Event,
    OpaqueState,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    WithheldThought,
)
from bardo.values.request import Request

_OPEN, _CLOSE = "<think>\n", "\n</think>\n\n"
# What ends the tag for who reads the text, and how it is written where the model thinks about it.
_END, _NAMED_END = "</think>", "</ think>"
_NAMED = Degraded(
    Degradation("reasoning", asked=_END, sent=_NAMED_END, why="the thinking names the tag that ends it in the text")
)


def thinking_stage(request: Request, spoken: str) -> Stage[Event, Event] | None:
    """Return the stage that shows the thinking of a reply in the dialect `spoken` as the client wants it; None where it stays."""
    options = request.options
    if options.omit_reasoning:
        return WithoutReasoning()
    if options.reasoning_tags:
        return ThinkingInTags()
    # A provider of the client's own dialect is asked in the client's own words, and answers as it would without bardo.
    return WithoutUnasked() if options.omit_unasked and request.dialect != spoken else None


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

"""The parts of a reply that arrive as text, and the words that name them on the wire.

What was streamed is kept, because servers say it again: in `.done` events, in the finished item and in the finished response. Each text
is taken once: of what is said again, only what had been missing becomes an event.
"""

from __future__ import annotations

from typing import Any

from bardo.values.degradation import Degradation
from bardo.values.events import ContentChunk, Degraded, Event, RefusalChunk, ThinkChunk, ToolCallChunk

DELTA_KINDS = {
    "response.output_text.delta": "output_text",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning_text",
    "response.reasoning.delta": "reasoning_text",
    "response.reasoning_summary_text.delta": "summary_text",
    "response.reasoning_summary.delta": "summary_text",
    "response.function_call_arguments.delta": "arguments",
}
DONE_KINDS = {name.removesuffix("delta") + "done": kind for name, kind in DELTA_KINDS.items()}
PART_EVENTS = frozenset(
    f"response.{part}.{state}"
    for part in ("content_part", "reasoning_part", "reasoning_summary_part")
    for state in ("added", "done")
)
# Some servers say `text` where OpenAI says `output_text`, or `reasoning_text` within a reasoning item.
PART_KINDS = {
    "output_text": "output_text",
    "text": "output_text",
    "refusal": "refusal",
    "reasoning_text": "reasoning_text",
    "summary_text": "summary_text",
}


class WrongFrame(Exception):
    """A frame is not what the dialect says."""


class Part:
    """One text of a reply, as it arrives."""

    __slots__ = (
        "block",
        "content_index",
        "delta_type",
        "disputed",
        "index",
        "output_index",
        "pieces",
        "said",
        "summary_index",
    )

    def __init__(self, block: int, index: int) -> None:
        self.block = block
        self.index = index
        self.pieces: list[str] = []
        self.said = False
        self.disputed = False
        # Which frames continue this part; set when a delta of it is met.
        self.delta_type = ""
        self.output_index = self.content_index = self.summary_index = -1

    def event(self, text: str) -> Event:
        """Return `text` as the event of this part's kind."""
        raise NotImplementedError

    def add(self, text: str, out: list[Event]) -> None:
        """Take a delta."""
        self.pieces.append(text)
        self.said = True
        out.append(self.event(text))

    def settle(self, full: str, out: list[Event]) -> None:
        """Take the whole text as it is said again: emit what is missing, and keep what was streamed where the two contradict."""
        streamed = "".join(self.pieces)
        self.pieces = [streamed]
        if full == streamed or not full:
            return
        if full.startswith(streamed):
            self.add(full[len(streamed) :], out)
        elif not self.disputed:
            self.disputed = True
            out.append(Degraded(_contradiction(full, streamed)))


class TextPart(Part):
    """Answer text."""

    __slots__ = ()

    def event(self, text: str) -> Event:
        return ContentChunk(self.block, text)


class RefusalPart(Part):
    """Words of a refusal."""

    __slots__ = ()

    def event(self, text: str) -> Event:
        return RefusalChunk(self.block, text)


class ThoughtPart(Part):
    """Full thinking."""

    __slots__ = ()

    def event(self, text: str) -> Event:
        return ThinkChunk(self.block, text)


class SummaryPart(Part):
    """One part of a summary of thinking."""

    __slots__ = ()

    def event(self, text: str) -> Event:
        return ThinkChunk(self.block, text, self.index)


class ArgumentsPart(Part):
    """Arguments of a call. Nothing is said before the call has its name."""

    __slots__ = ("named",)

    def __init__(self, block: int, index: int) -> None:
        super().__init__(block, index)
        self.named = False

    def event(self, text: str) -> Event:
        return ToolCallChunk(self.block, text)

    def add(self, text: str, out: list[Event]) -> None:
        if self.named:
            super().add(text, out)
        else:
            self.pieces.append(text)

    def name(self, out: list[Event]) -> None:
        """The call has begun: say what was held."""
        self.named = True
        held = "".join(self.pieces)
        self.pieces.clear()
        if held:
            self.add(held, out)


def text_of(part: Any) -> str:
    """Return the text of a content or summary part; a missing one is empty."""
    value = fields_of(part).get("refusal" if part.get("type") == "refusal" else "text")
    return words_of(value)


def words_of(value: Any) -> str:
    """Return a string that may be absent, or wrapped as older documents have it."""
    if isinstance(value, dict):
        value = value.get("text")
    if value is None:
        return ""
    if not isinstance(value, str):
        raise WrongFrame(f"a text is {type(value).__name__}, not a string")
    return value


def fields_of(value: Any) -> dict[str, Any]:
    """Return an object. Raises WrongFrame."""
    if not isinstance(value, dict):
        raise WrongFrame(f"an object was expected, not {type(value).__name__}")
    return value


def list_of(value: Any) -> list[Any]:
    """Return an array, empty where it is absent. Raises WrongFrame."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise WrongFrame(f"an array was expected, not {type(value).__name__}")
    return value


def kind_of(part: dict[str, Any]) -> str | None:
    """Return the kind of a part, or None for one bardo has no word for."""
    name = part.get("type")
    return PART_KINDS.get(name) if isinstance(name, str) else None


def _contradiction(full: str, streamed: str) -> Degradation:
    return Degradation(
        "text",
        asked=f"{len(full)} characters",
        sent=f"{len(streamed)} characters",
        why="the finished text contradicts what was streamed, which was kept",
    )

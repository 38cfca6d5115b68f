"""What `parse` gives to read, and how it is timed. Only the standard library is needed, as peers run this in environments of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Kind = Literal["stream", "hostile", "whole", "cuts"]
Texts = tuple[str, str]
PLAIN = "The quick brown fox thinks it over and writes one more word, then another. "
HOSTILE = "<b>x</b> << </thi <thin> <|en a<"
WHOLE_CHARACTERS = 100_000


@dataclass(frozen=True)
class Marks:
    """How a format marks reasoning, and what it puts around the answer."""

    start: str
    end: str
    lead: str = ""
    tail: str = ""


FORMATS = {
    "qwen3": Marks("<think>", "</think>"),
    "glm45": Marks("<think>", "</think>"),
    "granite32": Marks("Here is my thought process:", "Here is my response:"),
    "gpt_oss": Marks(
        "<|channel|>analysis<|message|>", "<|end|>", "<|start|>assistant<|channel|>final<|message|>", "<|return|>"
    ),
    "cohere_cmd4": Marks("<|START_THINKING|>", "<|END_THINKING|>", "<|START_TEXT|>", "<|END_TEXT|>"),
}


@dataclass(frozen=True)
class Case:
    """One thing to read. `size` is in characters, `chunks` how many of them there are."""

    format: str
    kind: Kind
    size: int = 0
    chunks: int = 0

    @property
    def marks(self) -> Marks:
        """The delimiters of its format."""
        return FORMATS[self.format]

    def texts(self) -> Texts:
        """Return reasoning and answer: four fifths are reasoning."""
        unit = HOSTILE if self.kind == "hostile" else PLAIN
        wanted = {"whole": WHOLE_CHARACTERS, "cuts": 60}.get(self.kind, self.size * self.chunks)
        text = (unit * (wanted // len(unit) + 1))[:wanted]
        return text[: wanted * 4 // 5].strip(), text[wanted * 4 // 5 :].strip()

    def reply(self) -> str:
        """Return the reply as the model writes it."""
        marks = self.marks
        reasoning, answer = self.texts()
        return f"{marks.start}{reasoning}{marks.end}{marks.lead}{answer}{marks.tail}"


class Reader(Protocol):
    """A parser under measurement."""

    def open(self, marks: Marks, format: str) -> tuple[Callable[[str], object], Callable[[], object]]:  # noqa: A002
        """Return what reads a chunk of one reply, and what ends it."""

    def join(self, results: Sequence[Any]) -> Texts:
        """Return reasoning and answer of all that was returned."""


def is_right(reader: Reader, case: Case) -> bool:
    """Say whether the true split comes out, or for "whole", out of one piece."""
    reply = case.reply()
    pieces = [reply] if case.kind == "whole" else pieces_of(reply, case.size)
    return _read(reader, case, pieces) == case.texts()


def percent_of_cuts(reader: Reader, case: Case) -> float:
    """Return how many of all cuts in two give the true split."""
    reply, expected = case.reply(), case.texts()
    right = [_read(reader, case, [reply[:at], reply[at:]]) == expected for at in range(1, len(reply))]
    return 100 * sum(right) / len(right)


def seconds(reader: Reader, case: Case) -> float:
    """Return the processor time that reading takes: of one chunk, or for "whole", of the reply."""
    reply = case.reply()
    pieces = [reply] if case.kind == "whole" else pieces_of(reply, case.size)
    feed, finish = reader.open(case.marks, case.format)
    begun = time.process_time()
    for piece in pieces:
        feed(piece)
    finish()
    return (time.process_time() - begun) / len(pieces)


def pieces_of(text: str, size: int) -> list[str]:
    """Cut a text into chunks."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def _read(reader: Reader, case: Case, pieces: Sequence[str]) -> Texts:
    feed, finish = reader.open(case.marks, case.format)
    return reader.join([*map(feed, pieces), finish()])

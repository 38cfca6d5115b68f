"""An answer as it arrives: its text on stdout and nothing else there, its thinking or a sign that the model thinks on stderr."""

from __future__ import annotations

import sys
from enum import StrEnum
from types import TracebackType
from typing import Protocol, Self

from bardo.surfaces.render.console import has_colours
from bardo.surfaces.render.thinking_sign import THINKING, WAITING, ThinkingSign
from bardo.surfaces.render.wording import PrintableText
from bardo.values.events import ContentChunk, Event, RefusalChunk, ThinkChunk, ThinkStart, UsageUpdate


class ReasoningStyle(StrEnum):
    """How much is shown of the thinking, on stderr."""

    NONE = "none"
    LINE = "line"
    FULL = "full"
    PANEL = "panel"


class AnswerText(Protocol):
    """What writes the answer itself to stdout."""

    def feed(self, text: str) -> None: ...

    def pause(self) -> None:
        """Write what is held, because something else is to be written."""
        ...

    def finish(self) -> None: ...


class PlainText:
    """The answer as it is: exact in a pipe, cleaned on a terminal."""

    def __init__(self) -> None:
        self._cleaner = PrintableText(prose=True) if sys.stdout.isatty() else None
        self._last = ""

    def feed(self, text: str) -> None:
        self._last = text
        self._write(text if self._cleaner is None else self._cleaner.feed(text))

    def pause(self) -> None:
        if self._last and not self._last.endswith("\n"):
            self.feed("\n")

    def finish(self) -> None:
        if self._cleaner is not None:
            self._write(self._cleaner.finish())
        self.pause()

    @staticmethod
    def _write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


class AnswerWriter:
    """Writes one reply. Stdout gets the answer, and a line break where it does not end with one."""

    def __init__(self, *, style: ReasoningStyle = ReasoningStyle.NONE, answer: AnswerText | None = None) -> None:
        self._style = style
        self._answer = answer or PlainText()
        self._sign = ThinkingSign()
        self._cleaner = PrintableText(prose=True) if sys.stderr.isatty() else None
        self._thought: list[str] = []
        self._thinking = False
        self._answering = False

    def __enter__(self) -> Self:
        self._sign.show(WAITING)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sign.hide()
        self._end_thinking()
        self._answer.finish()

    def feed(self, event: Event) -> None:
        """Write what one event holds for a reader."""
        match event:
            case ThinkStart(choice=0):
                self._begin_thinking()
            case ThinkChunk(choice=0, text=text) if text:
                self._think(text)
            case ContentChunk(choice=0, text=text) | RefusalChunk(choice=0, text=text) if text:
                self._sign.hide()
                self._end_thinking()
                self._answering = True
                self._answer.feed(text)
            case UsageUpdate(usage=usage):
                self._sign.tokens = usage.reasoning_tokens
            case _:
                return

    def _begin_thinking(self) -> None:
        if self._answering:
            self._answer.pause()
            self._answering = False
        if not self._thinking:
            self._thinking = True
            self._thought = []
        if self._style != ReasoningStyle.FULL:
            self._sign.show(THINKING)

    def _think(self, text: str) -> None:
        if not self._thinking:
            self._begin_thinking()
        self._sign.estimate.add(text)
        if self._style == ReasoningStyle.FULL:
            self._show_thinking(text)
        elif self._style == ReasoningStyle.PANEL:
            self._thought.append(text)

    def _show_thinking(self, text: str) -> None:
        self._sign.hide()
        head = "" if self._thought else "[thinking]\n"
        self._thought = [text]
        self._write_stderr(head + text)

    def _end_thinking(self) -> None:
        """Close one stretch of thinking, as its style wants it."""
        if not self._thinking:
            return
        self._thinking = False
        if self._style == ReasoningStyle.LINE:
            self._write_stderr(f"[thought for {self._sign.spent}]\n")
        elif self._style == ReasoningStyle.FULL and self._thought:
            self._write_stderr("\n[answer]\n")
        elif self._style == ReasoningStyle.PANEL and self._thought:
            _show_panel("".join(self._thought), self._sign.spent)
        self._thought = []

    def _write_stderr(self, text: str) -> None:
        """Write to stderr, dim where it is a terminal that knows how."""
        if self._cleaner is not None:
            text = self._cleaner.feed(text)
            text = f"\x1b[2m{text}\x1b[22m" if has_colours() else text
        sys.stderr.write(text)
        sys.stderr.flush()


def _show_panel(text: str, spent: str) -> None:
    from rich.panel import Panel
    from rich.text import Text

    from bardo.surfaces.render.console import show
    from bardo.surfaces.render.wording import printable

    show(
        Panel(
            Text(printable(text, prose=True).strip("\n"), style="dim"), title=f"thinking: {spent}", title_align="left"
        ),
        stderr=True,
    )

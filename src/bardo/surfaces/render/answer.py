"""An answer as it arrives: its text on stdout and nothing else there, its thinking or a sign that the model thinks on stderr."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

from bardo.surfaces.render.wording import printable
from bardo.values.events import ContentChunk, Event, RefusalChunk, ThinkChunk, ThinkStart

if TYPE_CHECKING:
    from rich.status import Status


WAITING = "[waiting…]"
THINKING = "[thinking…]"


class ThinkingSign:
    """One sign for one reply. Where stderr is no terminal, it never shows."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._status: Status | None = None

    def show(self, words: str) -> None:
        """Show the sign, or change its words."""
        if not self._shown:
            return
        from rich.text import Text

        if self._status is None:
            from bardo.surfaces.render.console import console

            self._status = console(stderr=True).status(Text(words, style="dim"), spinner="dots")
            self._status.start()
        else:
            self._status.update(Text(words, style="dim"))

    def hide(self) -> None:
        """Take the sign away; the line is empty again."""
        if self._status is not None:
            self._status.stop()
            self._status = None


class AnswerWriter:
    """Writes one reply. Stdout gets the answer, and a line break where it does not end with one; a terminal gets no control characters."""

    def __init__(self, *, show_reasoning: bool) -> None:
        self._show_reasoning = show_reasoning
        self._sign = ThinkingSign(shown=sys.stderr.isatty())
        self._to_terminal = sys.stdout.isatty()
        self._thinking = False
        self._last = ""

    def __enter__(self) -> Self:
        self._sign.show(WAITING)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sign.hide()
        self._end_thinking()
        if self._last and not self._last.endswith("\n"):
            self._write("\n")

    def feed(self, event: Event) -> None:
        """Write what one event holds for a reader."""
        match event:
            case ThinkStart(choice=0) if not self._show_reasoning and self._at_line_start:
                self._sign.show(THINKING)
            case ThinkChunk(choice=0, text=text) if self._show_reasoning and text:
                self._think(text)
            case ContentChunk(choice=0, text=text) | RefusalChunk(choice=0, text=text) if text:
                self._sign.hide()
                self._end_thinking()
                self._write(text)
            case _:
                return

    @property
    def _at_line_start(self) -> bool:
        """Whether the sign has a line of its own."""
        return not self._last or self._last.endswith("\n")

    def _write(self, text: str) -> None:
        self._last = text
        sys.stdout.write(printable(text) if self._to_terminal else text)
        sys.stdout.flush()

    def _think(self, text: str) -> None:
        self._sign.hide()
        if not self._thinking:
            self._thinking = True
            sys.stderr.write("[thinking]\n")
        sys.stderr.write(printable(text) if sys.stderr.isatty() else text)
        sys.stderr.flush()

    def _end_thinking(self) -> None:
        if self._thinking:
            self._thinking = False
            sys.stderr.write("\n[answer]\n")
            sys.stderr.flush()

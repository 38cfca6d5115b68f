"""An answer in Markdown on a terminal while it arrives: finished blocks are printed, the one that grows is drawn again below them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from bardo.surfaces.render.console import console
from bardo.surfaces.render.markdown import MarkdownBlocks, render_block
from bardo.surfaces.render.wording import PrintableText

if TYPE_CHECKING:
    from rich.console import RenderableType

_FENCES = ("```", "~~~")
_DRAWN_EVERY = 0.1
_MOST_LINES = 16
_MOST_CHARACTERS = 4_000


class MarkdownText:
    """Writes an answer to stdout, which is a terminal."""

    def __init__(self, target: Console | None = None) -> None:
        self._console = target or console()
        self._cleaner = PrintableText(prose=True)
        self._blocks = MarkdownBlocks()
        self._live: Live | None = None
        self._drawn = 0.0
        self._opening = ""
        self._first = True

    def feed(self, text: str) -> None:
        for block in self._blocks.feed(self._cleaner.feed(text)):
            self._print(block)
        now = time.monotonic()
        if now - self._drawn >= _DRAWN_EVERY:
            self._drawn = now
            self._draw(self._blocks.rest)

    def pause(self) -> None:
        self._stop()
        for block in self._blocks.finish():
            self._print(block)

    def finish(self) -> None:
        rest = self._cleaner.finish()
        if rest:
            self.feed(rest)
        self.pause()
        self._console.file.flush()

    def _print(self, block: str) -> None:
        """Print a finished block; one that only goes on with the code of the one before stands right below it."""
        self._stop()
        opening = block.partition("\n")[0]
        goes_on = bool(opening) and opening == self._opening
        self._opening = opening if block.endswith(opening.strip()[:3]) and opening.startswith(_FENCES) else ""
        if not self._first and not goes_on:
            self._console.print()
        self._first = False
        self._console.print(render_block(block))

    def _draw(self, rest: str) -> None:
        if not rest.strip():
            return
        if self._live is None:
            self._live = Live(
                console=self._console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
                vertical_overflow="crop",
            )
            self._live.start()
        lines = min(_MOST_LINES, max(1, self._console.height - 4))
        short = render_block(rest) if len(rest) < _MOST_CHARACTERS else Text(rest[-_MOST_CHARACTERS:])
        self._live.update(_Tail(short, lines, gap=not self._first), refresh=True)

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


class _Tail:
    """The last lines of something that may be longer than the terminal is high."""

    def __init__(self, inner: RenderableType, most: int, *, gap: bool) -> None:
        self._inner = inner
        self._most = most
        self._gap = gap

    def __rich_console__(self, target: Console, options: ConsoleOptions) -> RenderResult:
        lines = target.render_lines(self._inner, options, pad=False)
        if self._gap:
            yield Segment.line()
        for line in lines[-self._most :]:
            yield from line
            yield Segment.line()

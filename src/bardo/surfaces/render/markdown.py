"""Render Markdown on a terminal while it arrives: finished blocks are printed once, and the one that grows is drawn again below them.

No text reaches the terminal uncleaned. A text without end is rendered in time linear in its length: a block that grows too long is printed
in parts.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import CodeBlock, Markdown, MarkdownElement
from rich.segment import Segment
from rich.syntax import Syntax
from rich.text import Text

from bardo.surfaces.render.console import console
from bardo.surfaces.render.wording import PrintableText, printable

if TYPE_CHECKING:
    from rich.console import RenderableType

_MOST_CHARACTERS = 6_000
"""The longest block that is read as Markdown; a longer one is printed as it stands."""
_MOST_LINES = 150
_FENCE = re.compile(r"[ ]{0,12}(`{3,}|~{3,})[ \t]*([^`\n]{0,80})")
_LIST = re.compile(r"[ ]{0,3}(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)")
# HTML is shown and not swallowed, pictures are links, and a definition that nothing may refer to any more stays in sight.
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable(["image", "reference"])


class MarkdownBlocks:
    """Text in, finished blocks out: paragraphs, lists, tables, and code in parts of so many lines."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._size = 0
        self._line: list[str] = []
        self._fence = ""
        self._opening = ""
        self._blank = False
        self._in_list = False

    @property
    def rest(self) -> str:
        """What is not finished yet; the code block that it stands in is closed."""
        text = "".join((*self._lines, *self._line))
        return f"{text.rstrip()}\n{self._fence}" if self._fence and text else text

    def feed(self, item: str) -> Sequence[str]:
        """Return the blocks that `item` completes."""
        *lines, last = item.split("\n")
        found: list[str] = []
        for line in lines:
            whole, self._line = "".join((*self._line, line, "\n")), []
            found += self._take(whole)
        if last:
            self._line.append(last)
        return found

    def finish(self) -> Sequence[str]:
        """Return the rest."""
        last, self._line = "".join(self._line), []
        found = list(self._take(last)) if last else []
        rest = self.rest
        self._clear()
        self._fence = ""
        return [*found, rest] if rest.strip() else found

    def _take(self, line: str) -> Iterator[str]:
        if self._fence:
            yield from self._code(line)
            return
        if not line.strip():
            if self._lines:
                self._blank = True
                self._add(line)
            return
        fence = _FENCE.match(line)
        nested = self._in_list and line[0] in " \t"
        if (self._blank and not nested) or (fence and not nested):
            yield from self._finish_block()
        if not self._lines:
            self._in_list = _LIST.match(line) is not None
        self._blank = False
        self._add(line)
        if fence:
            self._fence, self._opening = fence[1], line
        elif self._is_long():
            yield from self._finish_block()

    def _code(self, line: str) -> Iterator[str]:
        """Process a line of a code block, which ends with a fence as long as its opening fence."""
        self._add(line)
        marks = line.strip()
        if marks.startswith(self._fence) and not marks.strip(self._fence[0]):
            self._fence = ""
            if not self._in_list:
                yield from self._finish_block()
        elif self._is_long():
            yield self.rest
            self._clear()
            self._add(self._opening)

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line)

    def _is_long(self) -> bool:
        return self._size > _MOST_CHARACTERS // 2 or len(self._lines) > _MOST_LINES

    def _finish_block(self) -> Iterator[str]:
        block = "".join(self._lines)
        self._clear()
        if block.strip():
            yield block

    def _clear(self) -> None:
        self._lines, self._size, self._blank = [], 0, False


class _Code(CodeBlock):
    """Code in the terminal's own background, so that it can be copied without blanks behind each line."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        yield Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True, background_color="default")


class _Answer(Markdown):
    """A block of an answer: HTML stands as it was written, and addresses stand beside their links, so that nothing is hidden."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "fence": _Code, "code_block": _Code}

    def __init__(self, markup: str) -> None:
        super().__init__("", hyperlinks=False, code_theme="ansi_dark")
        self.parsed = _PARSER.parse(markup)


class _Sanitized:
    """What a renderable gives, without anything that is not text: entities of Markdown can name any character."""

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style, control in console.render(self._inner, options):
            if not control:
                plain = style if style is None or style.link is None else style.update_link(None)
                yield Segment(printable(text, prose=True), plain)


def render_block(block: str) -> RenderableType:
    """Return a block of Markdown as it is shown."""
    text = printable(block, prose=True)
    if len(text) > _MOST_CHARACTERS:
        return Text(text.strip("\n"))
    return _Sanitized(_Answer(text))


_FENCES = ("```", "~~~")
_DRAWN_EVERY = 0.1
_MOST_TEXT_LINES = 16
_MOST_TEXT_CHARACTERS = 4_000


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
        lines = min(_MOST_TEXT_LINES, max(1, self._console.height - 4))
        short = render_block(rest) if len(rest) < _MOST_TEXT_CHARACTERS else Text(rest[-_MOST_TEXT_CHARACTERS:])
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

"""Markdown as runs of plain text with forms, for services that take no Markdown. HTML in it is text like any other.

Loads markdown-it-py when it is first used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from bardo.surfaces.chat.inline_runs import Form, TextRun, inline_runs

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_DEEPEST = 40
"""Text with lists and quotes nested deeper is shown as it is: the parser would leave out what is in them."""
_RULE = "———"
_WIDEST_CELL = 30
_MOST_INDENT = 6


def runs_of(markdown: str) -> list[TextRun]:
    """Return the text that a reader of the Markdown sees, in runs."""
    tokens = _parser().parse(markdown)
    if any(token.level >= _DEEPEST - 2 for token in tokens):
        return [TextRun(markdown)]
    return BlockWriter().write(tokens)


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST}).enable(["strikethrough", "table"])
    # The first parse compiles the rules, which is not thread-safe: a second thread would parse with some of them missing.
    parser.parse("text")
    return parser


class BlockWriter:
    """Writes the blocks of one text. They are kept apart by blank lines, the items of a list by line ends."""

    def __init__(self) -> None:
        self._runs: list[TextRun] = []
        self._gap = ""
        self._lists: list[int | None] = []
        """The next number of each list that is open, None where it has none."""
        self._quotes = 0
        self._quote: tuple[Form, ...] = ()
        self._is_heading = False
        self._blocks = 0
        self._rows: list[list[str]] = []

    def write(self, tokens: Sequence[Token]) -> list[TextRun]:
        """Return the runs of a text."""
        for token in tokens:
            action = _ACTIONS.get(token.type)
            if action is not None:
                action(self, token)
        return self._runs

    def _add_text(self, text: str, *forms: Form) -> None:
        """Add text after the gap that is due."""
        if self._gap and self._runs:
            self._runs.append(TextRun(self._gap, self._quote))
        self._gap = ""
        self._runs.append(TextRun(text, (*self._quote, *forms)))

    def _require_gap(self, gap: str) -> None:
        """Require at least this many line breaks before the next text."""
        self._gap = max(self._gap, gap, key=len)

    def _numbered(self, kind: str, language: str = "") -> Form:
        """Return a form that is not joined with another of its kind that touches it."""
        self._blocks += 1
        return Form(kind, language=language, number=self._blocks)

    def begin_paragraph(self, token: Token) -> None:
        """Keep it apart from what is before it; the first one of an item stands beside its mark."""
        self._is_heading = token.type == "heading_open"
        if self._runs and not self._runs[-1].is_mark:
            self._require_gap("\n" if token.hidden or self._lists else "\n\n")

    def end_paragraph(self, _: Token) -> None:
        """Keep what follows apart from it."""
        self._is_heading = False
        self._require_gap("\n" if self._lists else "\n\n")

    def inline(self, token: Token) -> None:
        """Add a line of text, or a cell of a table."""
        runs = inline_runs(token.children or ())
        if self._rows:
            self._rows[-1].append("".join(run.text for run in runs).replace("\n", " "))
            return
        for run in runs:
            heading = (Form("bold"),) if self._is_heading and not run.is_code else ()
            self._add_text(run.text, *dict.fromkeys((*heading, *run.forms)))

    def begin_list(self, token: Token) -> None:
        """Begin a list, maybe inside another."""
        self._require_gap("\n" if self._lists else "\n\n")
        start = token.attrGet("start")
        self._lists.append(None if token.type == "bullet_list_open" else 1 if start is None else int(start))

    def end_list(self, _: Token) -> None:
        """End the innermost list."""
        self._lists.pop()
        self._require_gap("\n" if self._lists else "\n\n")

    def begin_item(self, token: Token) -> None:
        """Write the mark of an item."""
        self._require_gap("\n")
        number = self._lists[-1]
        mark = "•" if number is None else f"{number}{token.markup or '.'}"
        if number is not None:
            self._lists[-1] = number + 1
        indent = "  " * min(len(self._lists) - 1, _MOST_INDENT)
        self._add_text(f"{indent}{mark} ")
        self._runs[-1] = msgspec.structs.replace(self._runs[-1], is_mark=True)

    def begin_quote(self, _: Token) -> None:
        """Begin a quote. Telegram has none inside another."""
        self._quotes += 1
        if self._quotes == 1:
            if self._runs:
                self._runs.append(TextRun(max(self._gap, "\n", key=len), is_mark=True))
            self._gap = ""
            self._quote = (self._numbered("blockquote"),)

    def end_quote(self, _: Token) -> None:
        """End a quote."""
        self._quotes -= 1
        if not self._quotes:
            self._quote = ()
        self._require_gap("\n" if self._quotes else "\n\n")

    def code(self, token: Token) -> None:
        """Add a block of code."""
        self._block(token.content.removesuffix("\n"), _language(token.info))

    def rule(self, _: Token) -> None:
        """Add a line across."""
        self._require_gap("\n\n")
        self._add_text(_RULE)
        self._require_gap("\n\n")

    def begin_row(self, _: Token) -> None:
        """Begin a row of a table."""
        self._rows.append([])

    def end_table(self, _: Token) -> None:
        """Add a table, as a block whose letters have one width."""
        rows, self._rows = self._rows, []
        self._block(_aligned(rows))

    def _block(self, text: str, language: str = "") -> None:
        self._require_gap("\n" if self._lists else "\n\n")
        # Inside a quote Telegram has no block of code.
        kind = self._numbered("code") if self._quotes else self._numbered("pre", language)
        if text:
            quote, self._quote = self._quote, ()
            if self._gap and self._runs:
                self._runs.append(TextRun(self._gap, quote))
            self._gap = ""
            self._add_text(text, kind)
            self._quote = quote
        self._require_gap("\n" if self._lists else "\n\n")


def _language(info: str) -> str:
    """Return the language of a block of code, empty for what is no name of one."""
    word = info.strip().partition(" ")[0]
    return word if 0 < len(word) <= 20 and all(letter.isalnum() or letter in "+-.#_" for letter in word) else ""


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [min(_WIDEST_CELL, max(map(len, column))) for column in _columns(rows)]
    return "\n".join(
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows
    )


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    for place in range(max(map(len, rows), default=0)):
        yield [row[place] for row in rows if place < len(row)]


_ACTIONS: dict[str, Callable[[BlockWriter, Token], None]] = {
    "paragraph_open": BlockWriter.begin_paragraph,
    "paragraph_close": BlockWriter.end_paragraph,
    "heading_open": BlockWriter.begin_paragraph,
    "heading_close": BlockWriter.end_paragraph,
    "inline": BlockWriter.inline,
    "bullet_list_open": BlockWriter.begin_list,
    "ordered_list_open": BlockWriter.begin_list,
    "bullet_list_close": BlockWriter.end_list,
    "ordered_list_close": BlockWriter.end_list,
    "list_item_open": BlockWriter.begin_item,
    "blockquote_open": BlockWriter.begin_quote,
    "blockquote_close": BlockWriter.end_quote,
    "fence": BlockWriter.code,
    "code_block": BlockWriter.code,
    "hr": BlockWriter.rule,
    "tr_open": BlockWriter.begin_row,
    "table_close": BlockWriter.end_table,
}

"""One line of Markdown as runs: bold, italic, struck out, code and links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from markdown_it.token import Token

_STYLES = {"strong": "bold", "em": "italic", "s": "strikethrough"}
_SCHEMES = ("http://", "https://")
_LONGEST_ADDRESS = 2000
_LOOKS_LIKE_ADDRESS = re.compile(r"://|www\.|[^\s.]\.[A-Za-z]{2}")


class Form(msgspec.Struct, frozen=True):
    """How a run looks: `bold`, `italic`, `strikethrough`, `code`, `pre`, `blockquote` or `text_link`.

    `number` keeps apart what is not one although it touches, such as two blocks of code.
    """

    kind: str
    url: str = ""
    language: str = ""
    number: int = 0


class TextRun(msgspec.Struct, frozen=True):
    """A piece of text whose letters have the same forms. `is_mark`: it is the mark of an item of a list."""

    text: str
    forms: tuple[Form, ...] = ()
    is_mark: bool = False

    @property
    def is_code(self) -> bool:
        """Whether it is code, which has no other form in Telegram."""
        return any(form.kind in ("code", "pre") for form in self.forms)


def inline_runs(tokens: Sequence[Token]) -> list[TextRun]:
    """Return the runs of the tokens of one line of text."""
    return [run for run in _runs(tokens) if run.text]


def _runs(tokens: Sequence[Token]) -> Iterator[TextRun]:
    styles: list[Form] = []
    addresses: list[str] = []
    labels: list[str] = [""]
    for place, token in enumerate(tokens):
        style = _STYLES.get(token.tag)
        if style:
            styles.append(Form(style)) if token.nesting == 1 else styles.remove(Form(style))
        elif token.type == "link_open":
            addresses.append(str(token.attrGet("href") or ""))
            labels.append("")
            styles.append(Form("text_link", addresses[-1], number=place))
        elif token.type == "link_close":
            link = next(form for form in reversed(styles) if form.kind == "text_link")
            styles.remove(link)
            yield TextRun(_address_beside(labels.pop(), addresses.pop()), _visible_forms(styles))
        else:
            text = _text_of(token)
            labels[-1] += text
            yield TextRun(text, (Form("code"),) if token.type == "code_inline" else _visible_forms(styles))


def _visible_forms(styles: Sequence[Form]) -> tuple[Form, ...]:
    """Return each form once, and of links only those that lead to a web page."""
    return tuple(dict.fromkeys(form for form in styles if form.kind != "text_link" or _is_page(form.url)))


def _is_page(address: str) -> bool:
    return address.lower().startswith(_SCHEMES) and len(address) <= _LONGEST_ADDRESS


def _address_beside(label: str, address: str) -> str:
    """Return what is written behind the label of a link: its address, where the label hides it or looks like another one."""
    if not address or label == address:
        return ""
    if _is_page(address) and not _LOOKS_LIKE_ADDRESS.search(label):
        return ""
    return f" ({address})"


def _text_of(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return "\n"
    if token.type == "image":
        return f"{token.content or 'picture'} ({token.attrGet('src')})"
    return token.content

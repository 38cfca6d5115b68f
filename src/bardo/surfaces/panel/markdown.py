"""Text of models as HTML: Markdown without HTML of its own, without pictures, and with links to the web and to mail alone.

What a model writes may be chosen by whoever it read. No tag, attribute or address of it gets through that is not named here. What is long
is shown as plain text: the worst text of this length takes markdown-it a second, and the worst piece of code Pygments half of one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from bardo.surfaces.panel.pages import UNSEEN

MOST_TEXT = 50_000
"""Characters of a text that is shown as Markdown; a longer one is shown as it is."""
MOST_CODE = 4_000
"""Characters of a piece of code that is coloured."""
MOST_COLOURED = 16_000
"""Characters of code that is coloured in one text."""
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_LINK = re.compile(r"(?:https?://|mailto:)[^\s\\]", re.IGNORECASE)
_NESTING = 20
# The page's own, that of a section, and that of a turn.
_HEADINGS_ABOVE = 3
# Left out are lexers that take more than half a second for some piece of code of 4,000 characters, that of Java for one.
_LEXERS = {
    "python": "python",
    "py": "python",
    "python3": "python",
    "json": "json",
    "javascript": "javascript",
    "js": "javascript",
    "typescript": "javascript",
    "ts": "javascript",
    "bash": "bash",
    "sh": "bash",
    "shell": "bash",
    "sql": "sql",
    "html": "html",
    "xml": "xml",
    "css": "css",
    "c": "c",
    "cpp": "cpp",
    "c++": "cpp",
    "go": "go",
    "rust": "rust",
    "rs": "rust",
    "yaml": "yaml",
    "yml": "yaml",
    "toml": "toml",
    "ini": "ini",
    "diff": "diff",
    "ruby": "ruby",
    "kotlin": "kotlin",
    "swift": "swift",
    "dockerfile": "docker",
}


def markdown(text: str) -> Markup:
    """Return a text of a model as HTML that is safe to show."""
    if len(text) > MOST_TEXT:
        return Markup('<div class="text">{}</div>').format(UNSEEN.sub(_REPLACEMENT, text))
    made = _parser().render(UNSEEN.sub(_REPLACEMENT, text), {})
    # What stands in a text as `&#x202e;` is a character only now.
    return Markup('<div class="markdown">{}</div>').format(Markup(UNSEEN.sub(_REPLACEMENT, made)))


@cache
def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "maxNesting": _NESTING}, renderer_cls=_Renderer)
    made.enable(["table", "strikethrough"])
    made.validateLink = _is_allowed  # type: ignore[method-assign, assignment]
    # The first parse compiles the rules, which is not thread-safe: a second thread would parse with some of them missing.
    made.parse("text")
    return made


def _is_allowed(address: str) -> bool:
    return _LINK.match(address) is not None


class _Renderer(RendererHTML):
    """Writes tokens as HTML; links say nothing of where they stand, pictures are named and not loaded, code is coloured."""

    def link_open(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        """Write the beginning of a link."""
        address = str(tokens[place].attrs.get("href", ""))
        if not _is_allowed(address):
            address = ""
        return f'<a href="{escape(address)}" rel="noopener noreferrer nofollow" target="_blank">'

    def heading_open(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        """Write the beginning of a heading, which stands below those of the page."""
        return f"<{_heading(tokens[place])}>"

    def heading_close(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        """Write the end of a heading."""
        return f"</{_heading(tokens[place])}>\n"

    def th_open(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        """Write the beginning of a head of a table."""
        return _cell_open(tokens[place])

    def td_open(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        """Write the beginning of a cell of a table."""
        return _cell_open(tokens[place])

    def image(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        """Write what a picture shows, in words."""
        token = tokens[place]
        words = self.renderInlineAsText(token.children, options, env) if token.children else token.content
        return f'<span class="muted">[picture: {escape(words)}]</span>'

    def fence(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        """Write a block of code."""
        token = tokens[place]
        language = token.info.split(maxsplit=1)[0].lower() if token.info.strip() else ""
        env["coloured"] = env.get("coloured", 0) + len(token.content)
        return str(code(token.content, language if env["coloured"] <= MOST_COLOURED else ""))


def _heading(token: Token) -> str:
    return f"h{min(6, int(token.tag[1:]) + _HEADINGS_ABOVE)}"


def _cell_open(token: Token) -> str:
    """Write the beginning of a cell. The page's policy allows no style in an element, so that its alignment is a class."""
    side = str(token.attrs.get("style", "")).removeprefix("text-align:")
    return f'<{token.tag} class="{side}">' if side in ("center", "right") else f"<{token.tag}>"


def code(text: str, language: str) -> Markup:
    """Return a piece of code as HTML, coloured where its language is known."""
    lexer = _LEXERS.get(language) if len(text) <= MOST_CODE else None
    # A region that scrolls must be reachable by the keyboard.
    frame = Markup('<pre tabindex="0"><code>{}</code></pre>')
    return frame.format(text if lexer is None else _highlighted(text, lexer))


def json_code(value: str) -> Markup:
    """Return JSON text as HTML."""
    return code(UNSEEN.sub(_REPLACEMENT, value), "json")


def _highlighted(text: str, lexer: str) -> Markup:
    from pygments import highlight
    from pygments.formatters.html import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    formatter = HtmlFormatter(nowrap=True, classprefix="hl-")
    return Markup(highlight(text, get_lexer_by_name(lexer, stripnl=False), formatter))


TEXT_FILTERS: Mapping[str, Any] = {"markdown": markdown, "json_code": json_code}
"""The filters of templates that write texts of models."""

"""Target `pages`: text of models as HTML of the panel. Only tags, attributes and addresses that are named here come out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html.parser import HTMLParser

from bardo.surfaces.panel.panel import code, markdown
from fuzzing.inputs import Input
from fuzzing.laws import Laws, hold
from fuzzing.target import Target

_TAGS = frozenset(
    [
        "div",
        "p",
        "a",
        "em",
        "strong",
        "s",
        "code",
        "pre",
        "span",
        "ul",
        "ol",
        "li",
        "blockquote",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "br",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    ]
)
_ATTRIBUTES = {
    "a": {"href", "rel", "target", "title"},
    "pre": {"tabindex"},
    "th": {"style"},
    "td": {"style"},
    "ol": {"start"},
}
_ALIGN = ("text-align:left", "text-align:right", "text-align:center")
_SEEDS = (
    b'# Tide\n\nIt *turns* at **noon**: [table](https://example.org "t") and <https://example.org>.\n\n- a\n- b\n\n1. one\n',
    b"| a | b |\n|:--|--:|\n| 1 | `x` |\n\n> quote\n> > inner\n\n~~old~~ ![pic](https://example.org/x.png)\n\n---\n",
    b"```python\ndef f(x):\n    return '<script>'\n```\n\n    indented\n\n<script>alert(1)</script> &lt;b&gt; &#x202e;",
    b"[a]: javascript:alert(1)\n[a] [b](javascript:alert(1)) [c](data:text/html,x) <javascript:x> [d](//x.y) <a onclick=x>\n",
    b'```json\n{"a": [1, null]}\n```\n```html\n<b onclick="x">\n```\n```diff\n- a\n+ b\n```\n',
)
_WORDS = (
    *(
        b"*",
        b"**",
        b"_",
        b"`",
        b"```",
        b"~~~",
        b"[",
        b"](",
        b")",
        b"![",
        b"<",
        b">",
        b"\n\n",
        b"\n",
        b"> ",
        b"- ",
        b"1. ",
        b"# ",
        b"|",
        b"\\",
        b"&#",
        b"&",
    ),
    *(
        b"javascript:",
        b"data:",
        b"https://",
        b"mailto:",
        b"<script>",
        b"</div>",
        b"<!--",
        b"-->",
        b'" onclick="',
        b"style=",
        b"&#106;",
        b"\xe2\x80\xae",
        b"\0",
    ),
    *(
        b"```python\n",
        b"```json\n",
        b"```html\n",
        b"\t",
        b"    ",
        b"|--|\n",
        b"[a]: ",
        b"~~",
        b"{{",
        b"}}",
        b"{%",
        b"<![CDATA[",
    ),
)


class _Reader(HTMLParser):
    """Checks each tag of a page's text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        hold(tag in _TAGS, f"no tag <{tag}>")
        if tag not in ("hr", "br"):
            self.open.append(tag)
        for name, value in attrs:
            hold(name == "class" or name in _ATTRIBUTES.get(tag, ()), f"no attribute {name} of <{tag}>")
            hold(name != "style" or value in _ALIGN, f"no style {value!r}")
            hold(
                name != "href" or not value or value.lower().startswith(("http://", "https://", "mailto:")),
                f"no link to {value!r}",
            )

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        hold(tag in ("hr", "br"), f"<{tag}/> has no end tag")

    def handle_endtag(self, tag: str) -> None:
        hold(bool(self.open) and self.open[-1] == tag, f"</{tag}> closes what is open")
        self.open.pop()

    def handle_comment(self, data: str) -> None:
        hold(False, "no comment")

    def handle_decl(self, decl: str) -> None:
        hold(False, "no declaration")

    def handle_pi(self, data: str) -> None:
        hold(False, "no instruction")

    def unknown_decl(self, data: str) -> None:
        hold(False, "no declaration")


def _text(one: Input) -> str:
    return one.body.decode("utf-8", "replace")


_WAYS: tuple[Callable[[str], object], ...] = (
    markdown,
    markdown,
    lambda text: code(text, "python"),
    lambda text: code(text, "html"),
)


def _check(one: Input, laws: Laws) -> None:
    text = _text(one)
    for make in laws.some(_WAYS):
        made = str(make(text))
        reader = _Reader()
        reader.feed(made)
        reader.close()
        hold(not reader.open, f"every tag is closed: {reader.open}")
        hold(make is not markdown or "\x00" not in made, "no control character")


def _seeds() -> Sequence[Input]:
    return [Input("markdown", seed) for seed in _SEEDS]


TARGET = Target(
    name="pages",
    says="Markdown of models as HTML of the panel",
    seeds=_seeds,
    check=_check,
    work=lambda one: markdown(_text(one)),
    words=lambda variant: _WORDS,
    per_byte=1500,
    beside=200_000,
)

"""Text of models as HTML: whatever it says, only tags, attributes and addresses that are named here come of it."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.surfaces.panel.pages import UNSEEN
from bardo.surfaces.panel.panel import MOST_CODE, MOST_COLOURED, MOST_TEXT, code, markdown
from support.hostile_text import HOSTILE

ALLOWED = {
    "div": {"class"},
    "span": {"class"},
    "pre": {"tabindex"},
    "code": set(),
    "p": set(),
    "br": set(),
    "hr": set(),
    "em": set(),
    "strong": set(),
    "s": set(),
    "blockquote": set(),
    "ul": set(),
    "ol": {"start"},
    "li": set(),
    "table": set(),
    "thead": set(),
    "tbody": set(),
    "tr": set(),
    "th": {"style"},
    "td": {"style"},
    "a": {"href", "rel", "target"},
    **{f"h{level}": set() for level in range(1, 7)},
}
"""Tags, and their attributes. The alignment of a table's cells is a style, which the policy of the page ignores."""


class Checker(HTMLParser):
    """Notes what HTML holds that is not allowed."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.faults: list[str] = []
        self.links: list[str] = []
        self.text = ""
        # A plain string: pieces of Markup would be escaped again.
        self.feed(str(html))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ALLOWED:
            self.faults.append(f"<{tag}>")
            return
        self.faults += [f"<{tag} {name}>" for name, _ in attrs if name not in ALLOWED[tag]]
        values = dict(attrs)
        if tag == "a":
            self.links.append(values["href"] or "")
            if values["rel"] != "noopener noreferrer nofollow":
                self.faults.append("a link that tells where it stands")

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.faults.append("a comment")

    def handle_decl(self, decl: str) -> None:
        self.faults.append("a declaration")

    def unknown_decl(self, data: str) -> None:
        self.faults.append("a declaration")

    def handle_pi(self, data: str) -> None:
        self.faults.append("an instruction")


def check(html: str) -> Checker:
    found = Checker(html)
    assert found.faults == []
    assert [link for link in found.links if not link.lower().startswith(("http://", "https://", "mailto:"))] == []
    assert UNSEEN.search(found.text) is None
    assert UNSEEN.search(html) is None
    return found


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_stays_text(name: str) -> None:
    text = HOSTILE[name]
    check(markdown(text))
    check(markdown(f"> - {text}\n\n```html\n{text}\n```\n\n| {text} |\n|---|\n| {text} |"))
    for language in ("html", "python", "json", "diff", "none", text):
        check(code(UNSEEN.sub("?", text), language))


PIECES = st.sampled_from(
    [
        *HOSTILE.values(),
        "[",
        "](",
        ")",
        "<",
        ">",
        "![",
        "javascript:",
        "data:",
        "&#x6a;",
        "&#x202e;",
        "\n",
        "```",
        "|",
        "\\",
        '"',
        "'",
    ]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=20)), max_size=12).map("".join))
def test_no_text_makes_more_than_is_allowed(text: str) -> None:
    check(markdown(text))


def test_markdown_is_shown() -> None:
    html = markdown(
        "# One\n\n**two** `three`\n\n- four\n\n| a | b |\n|---|---|\n| 5 | 6 |\n\n[seven](https://example.org/x?a=1&b=2)"
    )
    # The page's own headings stand above those of a text.
    for part in ("<h4>One</h4>", "<strong>two</strong>", "<code>three</code>", "<li>four</li>", "<td>5</td>"):
        assert part in html
    assert 'href="https://example.org/x?a=1&amp;b=2" rel="noopener noreferrer nofollow"' in html


def test_a_column_is_aligned_by_a_class() -> None:
    html = markdown("| a | b |\n|---:|:---|\n| 5 | 6 |")
    assert '<td class="right">5</td>' in html
    assert "<td>6</td>" in html
    assert "style" not in html


def test_code_is_coloured_by_classes() -> None:
    html = markdown("```python\nprint(1)\n```")
    assert '<span class="hl-nb">print</span>' in html
    assert "style" not in html


def test_a_picture_is_named_and_not_loaded() -> None:
    html = markdown('![a <b>](https://example.org/x.png "t")')
    assert "<img" not in html
    assert "[picture: a &lt;b&gt;]" in html


@pytest.mark.parametrize(
    "address",
    ["javascript:x", "data:text/html,x", "file:///x", "//example.org", "/panel", "vbscript:x", "#x", "https:/\\x"],
)
def test_other_addresses_are_no_links(address: str) -> None:
    assert "<a" not in markdown(f"[x]({address}) <{address}>")


@pytest.mark.parametrize(("levels", "shown"), [(19, 19), (20, 20), (300, 20)])
def test_quotes_nest_no_deeper_than_twenty(levels: int, shown: int) -> None:
    assert markdown("> " * levels + "x").count("<blockquote>") == shown


def test_a_text_that_is_long_is_shown_as_it_is() -> None:
    html = markdown("**a**" * MOST_TEXT)
    assert "<strong>" not in html
    assert Checker(html).text == "**a**" * MOST_TEXT


def test_code_that_is_long_is_not_coloured() -> None:
    assert "hl-" not in code("1 " * MOST_CODE, "python")
    block = "```python\n" + "x = 1\n" * (MOST_CODE // 6 - 5) + "```\n\n"
    html = markdown(block * (MOST_COLOURED // MOST_CODE + 3))
    blocks = html.split("<pre")[1:]
    assert "hl-" in blocks[0]
    assert "hl-" not in blocks[-1]


def test_nothing_is_lost_of_a_text() -> None:
    text = "a\\*b <i>c</i> &amp; `d`"
    assert Checker(markdown(text)).text.strip() == "a*b <i>c</i> & d"

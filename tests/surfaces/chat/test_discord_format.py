"""Answers as Discord gets them: its Markdown, within its limit, with no mention and with whole blocks of code."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.surfaces.chat.discord_format import (
    LIMIT,
    DiscordPart,
    discord_messages,
    discord_reasoning,
    sections_of,
    split_sections,
)
from bardo.surfaces.chat.text import is_blank, utf16_length
from bardo.values.reasoning import ReasoningChain, ReasoningVisibility
from support.hostile_text import HOSTILE

PIECES = (
    "**bold** ",
    "`code` ",
    "```py\nx = '😀'\n```\n",
    "~~~\ny\n",
    "````\n```\n",
    "\n\n",
    "- a\n",
    "  ```js\n",
    "``` ",
    "👩‍👩‍👧",
    "word. ",
)
MARKDOWN = st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=200)


def check(parts: list[DiscordPart]) -> None:
    for part in parts:
        assert not is_blank(part.text)
        assert utf16_length(part.text) <= LIMIT
        assert part.text.count("```") % 2 == 0
        prose = re.sub(r"```.*?```", "", part.text, flags=re.DOTALL)
        assert not re.search(r"@(everyone|here)|<@|<#|<id:|</\w+:\d", prose)


@given(MARKDOWN, st.integers(1, 60), st.integers(120, 2000))
def test_messages_are_within_the_limit_and_give_the_text_again(markdown: str, times: int, limit: int) -> None:
    sections = sections_of(markdown * times)
    parts = split_sections(sections, limit)
    assert "".join(piece for part in parts for piece in part.pieces) == "".join(section.text for section in sections)
    for part in parts:
        assert utf16_length(part.text) <= limit
        assert part.text.count("```") % 2 == 0


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_mention_nobody(name: str) -> None:
    check(discord_messages(HOSTILE[name]))
    check(discord_messages(HOSTILE[name] * 3 + "\n```\n" + HOSTILE[name]))


def test_a_block_of_code_that_crosses_messages_is_closed_and_opened_again() -> None:
    parts = discord_messages("before\n```python\n" + "x = 1\n" * 800 + "```\nafter")
    assert len(parts) == 3
    assert parts[0].text.startswith("before\n```python\nx = 1\n")
    assert parts[1].text.startswith("```python\nx = 1\n")
    assert parts[2].text.endswith("```\nafter")
    for part in parts[:2]:
        assert part.text.endswith("x = 1\n```\n")


@pytest.mark.parametrize(
    ("markdown", "sent"),
    [
        ("@everyone and @here", "@\u200beveryone and @\u200bhere"),
        ("<@1> <@&2> <#3>", "<\u200b@1> <\u200b@&2> <\u200b#3>"),
        ("[bank](https://x.example 'title')", "[bank](<https://x.example>)"),
        ("[https://bank.example](https://x.example)", "https://bank.example (<https://x.example>)"),
        ("````md\n```\nx\n```\n````", "```md\n``\u200b`\nx\n``\u200b`\n```\n"),
        ("~~~js\nx\n~~~", "```js\nx\n```\n"),
        ('```"><script>\nx\n```', "```\nx\n```\n"),
        ("- a\n    ```py\n    x\n    ```", "- a\n```py\nx\n```\n"),
        ("open ``` in a line", "open ``\u200b` in a line"),
        ("```py\nnot closed", "```py\nnot closed\n```\n"),
    ],
)
def test_what_is_sent(markdown: str, sent: str) -> None:
    assert "".join(part.text for part in discord_messages(markdown)) == sent


def test_code_keeps_what_would_mention_somebody_elsewhere() -> None:
    (part,) = discord_messages("```\n<@1> @everyone\n```")
    assert "<@1> @everyone" in part.text


def test_only_the_last_message_reveals_the_thinking() -> None:
    parts = discord_messages("word " * 1000, reveals="k")
    assert [part.reveals for part in parts] == ["", "", "k"]


def test_thinking_that_cannot_be_read_is_counted() -> None:
    chain = ReasoningChain(visibility=ReasoningVisibility.OPAQUE, reasoning_tokens=1200)
    assert discord_reasoning(chain)[0].text == "Reasoning performed (not visible): 1,200 tokens."
    assert "unknown" in discord_reasoning(ReasoningChain())[0].text


def test_thinking_is_split_as_answers_are() -> None:
    parts = discord_reasoning(ReasoningChain(content="Hm. @everyone " * 300))
    assert len(parts) > 1
    check(parts)

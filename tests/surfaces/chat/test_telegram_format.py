"""Answers as Telegram gets them: text and entities, within its limits, whatever a model wrote."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it.ruler import Ruler

from bardo.surfaces.chat import telegram_bot as markdown_runs
from bardo.surfaces.chat.telegram_bot import (
    LIMIT,
    MOST_ENTITIES,
    TelegramPart,
    plain_message,
    runs_of,
    telegram_messages,
)
from bardo.surfaces.chat.text import cleaned, is_blank
from support.hostile_text import HOSTILE

PIECES = (
    "**bold** ",
    "_it_ ",
    "`code` ",
    "```py\nx = '😀'\n```\n",
    "\n\n",
    "- a\n",
    "> q\n",
    "[a](https://x.example) ",
    "😀 ",
    "word ",
)
MARKDOWN = st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=200)
KINDS = {"bold", "italic", "strikethrough", "code", "pre", "blockquote", "text_link"}


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def within(part: TelegramPart, offset: int, length: int) -> str:
    return part.text.encode("utf-16-le")[2 * offset : 2 * (offset + length)].decode("utf-16-le")


def forms(markdown: str) -> list[tuple[str, str, str]]:
    return [
        (entity.kind, within(part, entity.offset, entity.length), entity.url or entity.language)
        for part in telegram_messages(markdown)
        for entity in part.entities
    ]


def check(parts: list[TelegramPart]) -> None:
    for part in parts:
        assert 0 < units(part.text) <= LIMIT
        assert not is_blank(part.text)
        assert len(part.entities) <= MOST_ENTITIES
        for entity in part.entities:
            assert entity.kind in KINDS
            assert entity.length > 0
            assert entity.offset + entity.length <= units(part.text)
            within(part, entity.offset, entity.length)
            assert not entity.url or entity.url.lower().startswith(("http://", "https://"))
        codes = [one for one in part.entities if one.kind in ("code", "pre")]
        others = [one for one in part.entities if one.kind not in ("code", "pre", "blockquote")]
        for code in codes:
            for other in others:
                assert code.offset + code.length <= other.offset or other.offset + other.length <= code.offset


@given(MARKDOWN, st.integers(1, 60))
def test_messages_are_within_the_limits_and_lose_nothing(markdown: str, times: int) -> None:
    text = markdown * times
    parts = telegram_messages(text)
    check(parts)
    whole = cleaned("".join(run.text for run in runs_of(cleaned(text))))
    shown = "".join(part.text for part in parts)
    assert [letter for letter in shown if not is_blank(letter)] == [letter for letter in whole if not is_blank(letter)]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_text(name: str) -> None:
    parts = telegram_messages(HOSTILE[name])
    check(parts)
    for part in parts:
        codes = [(one.offset, one.offset + one.length) for one in part.entities if one.kind in ("code", "pre")]
        for mention in re.finditer(r"(?<![\w.@])@[A-Za-z0-9_]", part.text):
            place = units(part.text[: mention.start()])
            assert any(begin <= place < end for begin, end in codes), part.text
        assert not any(entity.url.startswith(("tg:", "javascript:", "data:")) for entity in part.entities)


def test_forms_have_their_places_in_utf16_units() -> None:
    assert forms("😀 **bold _both_** and `code` 😀 [a](https://x.example/)") == [
        ("bold", "bold both", ""),
        ("italic", "both", ""),
        ("code", "code", ""),
        ("text_link", "a", "https://x.example/"),
    ]


def test_a_block_of_code_that_crosses_messages_is_one_in_each() -> None:
    parts = telegram_messages("before\n\n```python\n" + "x = 1  # 😀\n" * 800 + "```\nafter")
    assert len(parts) == 3
    for part in parts:
        (code,) = part.entities
        assert (code.kind, code.language) == ("pre", "python")
    assert parts[-1].text.endswith("after")


def test_no_rule_is_compiled_while_answers_are_parsed_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = telegram_messages("**bold** and `code`")

    def compile_rules(_: Ruler[Any]) -> None:
        raise AssertionError("the rules are compiled again")

    monkeypatch.setattr(markdown_runs, "_parser", cache(markdown_runs._parser.__wrapped__))
    markdown_runs._parser()
    monkeypatch.setattr(Ruler, "__compile__", compile_rules)
    assert telegram_messages("**bold** and `code`") == expected


def test_more_forms_than_a_message_may_have_begin_another_message() -> None:
    parts = telegram_messages(" ".join(f"**b{number}** x" for number in range(250)))
    assert [len(part.entities) for part in parts] == [100, 100, 50]


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("# Title\n\ntext", "Title\n\ntext"),
        ("1. a\n   - b\n2. c", "1. a\n  • b\n2. c"),
        ("5) a\n6) b", "5) a\n6) b"),
        ("| a | bb |\n|---|---|\n| 1 | 2 |", "a | bb\n1 | 2"),
        ("[here](tg://user?id=1)", "here (tg://user?id=1)"),
        ("[https://bank.example](https://x.example)", "https://bank.example (https://x.example)"),
        ("![a cat](https://x.example/c.png)", "a cat (https://x.example/c.png)"),
        ("&#x202e;abc &lt;b&gt;", "\ufffdabc <b>"),
        ("a\nb", "a\nb"),
        ("hello @someone and a@b.example", "hello @\u2060someone and a@b.example"),
        ("a\n\n---\n\nb", "a\n\n———\n\nb"),
    ],
    ids=["title", "lists", "numbers", "table", "user", "address", "picture", "entities", "lines", "mention", "rule"],
)
def test_what_a_reader_sees(markdown: str, text: str) -> None:
    assert "".join(part.text for part in telegram_messages(markdown)) == text


def test_blocks_nested_deeper_than_the_parser_reads_are_shown_as_they_are() -> None:
    text = ">" * 200 + " deep"
    assert telegram_messages(text)[0].text == text


def test_nothing_is_sent_of_what_shows_nothing() -> None:
    assert telegram_messages("\u200b\n\n  ") == []


def test_a_notice_is_one_message() -> None:
    assert units(plain_message("😀" * 5000).text) == LIMIT
    assert plain_message("ask @admin").text == "ask @\u2060admin"

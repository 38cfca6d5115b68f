"""Fenced code is recognised wherever the text was cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.streams.fences import LINE_LIMIT, FenceTracker

pytestmark = pytest.mark.each_python

TEXTS = {
    "nothing": ("", False),
    "plain text": ("one\ntwo", False),
    "the line that opens": ("```python", True),
    "after that line": ("```python\ncode\n", True),
    "the line that closes": ("```\ncode\n```", True),
    "after the end": ("```\ncode\n```\n", False),
    "indented, as in a list": ("- item\n    ```\n    code\n", True),
    "tildes": ("~~~\ncode\n", True),
    "tildes are not closed by backticks": ("~~~\n```\n", True),
    "a longer fence holds a shorter one": ("````md\n```\n", True),
    "a longer run closes": ("```\ncode\n`````\n", False),
    "a closing line says nothing else": ("```\n``` x\n", True),
    "a code span in the middle": ("use ``` here\n", False),
    "a code span at the beginning": ("```code```\nmore", False),
    "two backticks": ("``\ncode\n", False),
    "carriage returns": ("```\r\ncode\r\n```\r\n", False),
    "a fence far to the right": (" " * LINE_LIMIT + "```\n", False),
}


def watch(pieces: list[str]) -> bool:
    fence = FenceTracker()
    for piece in pieces:
        fence.feed(piece)
    return fence.inside


@pytest.mark.parametrize(("text", "inside"), TEXTS.values(), ids=TEXTS.keys())
def test_text_ends_inside_or_outside_a_fence(text: str, inside: bool) -> None:
    assert watch([text]) is inside
    assert watch(list(text)) is inside


@given(st.lists(st.sampled_from(["`", "```", "~~~", "\n", " ", "a", "\r", "````", " " * 99]), max_size=14))
def test_no_cut_makes_a_difference(parts: list[str]) -> None:
    text = "".join(parts)
    assert watch(parts) is watch([text]) is watch(list(text))

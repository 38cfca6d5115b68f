"""Markdown in blocks as it arrives: cut anywhere it gives the same, loses nothing and takes linear time."""

from __future__ import annotations

import pytest

from bardo.surfaces.render.markdown import MarkdownBlocks
from support.growth import check_growth
from support.hostile_text import HOSTILE
from surfaces.cli.test_ask_terminal import ANSWER


def blocks(text: str, size: int) -> list[str]:
    stage = MarkdownBlocks()
    found = [block for at in range(0, len(text), size) for block in stage.feed(text[at : at + size])]
    return [*found, *stage.finish()]


def test_a_text_is_split_where_its_parts_end() -> None:
    text = "One\ntwo\n\n- a\n\n  more of a\n- b\n```py\nx\n\ny\n```\n\n\nLast"
    assert blocks(text, 1) == ["One\ntwo\n\n", "- a\n\n  more of a\n- b\n", "```py\nx\n\ny\n```\n", "Last"]


@pytest.mark.parametrize("size", [1, 2, 7, 100])
@pytest.mark.parametrize("text", [ANSWER, *(one[:3000] for one in HOSTILE.values())], ids=["answer", *HOSTILE])
def test_any_cut_gives_the_same_blocks_and_all_letters(text: str, size: int) -> None:
    found = blocks(text, size)
    assert found == blocks(text, len(text) or 1)
    assert "".join("".join(found).replace("`", "").replace("~", "").split()) == "".join(
        text.replace("`", "").replace("~", "").split()
    )


def test_a_code_block_without_end_is_given_in_parts_that_are_closed() -> None:
    found = blocks("```py\n" + "".join(f"line {number}\n" for number in range(400)), 50)
    assert len(found) == 3
    assert all(block.startswith("```py\n") and block.endswith("\n```") for block in found)
    lines = [line for block in found for line in block.splitlines() if line.startswith("line")]
    assert lines == [f"line {number}" for number in range(400)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("unit", ["a", "a\n", "- a\n\n", "```\n", "| a | b |\n", "> "])
def test_eight_times_the_text_takes_about_eight_times_as_long(unit: str) -> None:
    check_growth(lambda text: blocks(text, 8), unit * 5_000, unit * 40_000, below=24)

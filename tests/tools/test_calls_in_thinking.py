"""Calls that a server left in thinking which it separated are calls."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from bardo.planning.text_formats import TextFormats
from bardo.streams.stage import Chain
from bardo.tools import find_tool_call_format
from bardo.values.blocks import Opaque, ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.events import ContentChunk, Event, Finish, OpaqueState, ThinkChunk, ThinkEnd, ThinkStart
from bardo.values.fold import fold
from bardo.values.response import Response
from tools.support import TOOLS

SECTION = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.clock:0<|tool_call_argument_begin|>{}"
    "<|tool_call_end|><|tool_calls_section_end|>"
)
CALL = ToolCallBlock(id="functions.clock:0", name="clock", arguments="{}")
STOP = Finish("stop", "stop")


def read(events: Sequence[Event], name: str = "kimi_k2") -> Response:
    formats = TextFormats(calls=find_tool_call_format(name), tools=TOOLS)
    numbers = itertools.count(1)
    chain = Chain(formats.stages(lambda: f"#{next(numbers)}"))
    return fold([given for event in events for given in chain.feed(event)] + list(chain.finish()))


def thinking(*pieces: str) -> list[Event]:
    return [ThinkStart(0), *(ThinkChunk(0, piece) for piece in pieces), ThinkEnd(0)]


@pytest.mark.parametrize("at", range(len(f"hm{SECTION}") + 1))
def test_a_section_at_the_end_of_thinking_is_a_call_wherever_it_is_cut(at: int) -> None:
    text = f"hm{SECTION}"
    response = read([*thinking(*(piece for piece in (text[:at], text[at:]) if piece)), STOP])
    assert response.blocks == (ReasoningBlock(text="hm"), CALL)
    assert response.finish.reason == "tool_calls"


def test_an_answer_after_it_stays_one() -> None:
    response = read([*thinking("hm", SECTION), ContentChunk(1, "42"), STOP])
    assert response.blocks == (ReasoningBlock(text="hm"), CALL, TextBlock("42"))


def test_the_beginning_of_a_marker_is_thinking() -> None:
    endings: list[list[Event]] = [[ThinkEnd(0), STOP], []]
    for ending in endings:
        response = read([ThinkStart(0), ThinkChunk(0, "hm <|tool"), *ending])
        assert response.reasoning.content == "hm <|tool"


def test_opaque_state_of_the_thinking_stays_with_it() -> None:
    events: list[Event] = [
        ThinkStart(0),
        ThinkChunk(0, "hm <|tool_"),
        OpaqueState(0, Opaque("signature", "s")),
        ThinkEnd(0),
        STOP,
    ]
    assert read(events).reasoning.content == "hm <|tool_"


def test_a_format_whose_sections_servers_take_out_is_left_alone() -> None:
    assert read([*thinking("hm <tool_call>"), STOP], "hermes").reasoning.content == "hm <tool_call>"

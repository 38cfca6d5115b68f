"""What passes of a text while it arrives is one JSON value, whatever the cut, and nothing where the text begins in another way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.replies.typed_stream import AnswerBuffer, JsonGate
from bardo.values.events import ContentChunk, Event, Finish, ToolCallChunk, ToolCallEnd, ToolCallStart

TEXTS = st.text(st.sampled_from('{}[]"\\,:ab \n\u00e9'), max_size=8)
CONTAINERS = st.dictionaries(TEXTS, TEXTS | st.lists(TEXTS, max_size=3), max_size=3) | st.lists(TEXTS, max_size=3)


@given(CONTAINERS, st.sampled_from(["", " ", "\n", " and words {", '{"more": 1}', "\n```"]), st.data())
def test_the_value_passes_in_every_cut_and_what_follows_does_not(value: Any, behind: str, data: st.DataObject) -> None:
    text = " " + json.dumps(value)
    rest, gate, passed, waited = text + behind, JsonGate(), "", ""
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        passes, waits = gate.feed(rest[:size])
        passed, waited, rest = passed + passes, waited + waits, rest[size:]
    assert (passed, waited, gate.closed) == (text, behind, True)


@pytest.mark.parametrize("text", ["```json\n{}\n```", 'Sure: {"a": 1}', '"text"', "12", "true", "\ufeff{}"])
def test_nothing_passes_of_a_text_that_begins_in_another_way(text: str) -> None:
    gate = JsonGate()
    assert [gate.feed(letter)[0] for letter in text] == [""] * len(text)


def test_a_gated_answer_passes_and_waits_from_where_it_is_closed() -> None:
    hold = AnswerBuffer(gated=True, hold=False)
    given_events = [event for text in ('{"a": ', "1} so", " far") for event in hold.feed(ContentChunk(0, text))]
    assert given_events == [ContentChunk(0, '{"a": '), ContentChunk(0, "1}")]
    assert (hold.shown, hold.shown_whole, hold.answer_text()) == ('{"a": 1}', True, '{"a": 1} so far')
    assert list(hold.feed(Finish("stop"))) == []
    assert list(hold.pending) == [ContentChunk(0, " so"), ContentChunk(0, " far"), Finish("stop")]


def test_a_call_of_a_tool_that_was_not_offered_waits_and_is_no_turn_of_calls() -> None:
    call: list[Event] = [ToolCallStart(1, "c", "lookup"), ToolCallChunk(1, '{"q": 1}'), ToolCallEnd(1)]
    hold = AnswerBuffer(offered=frozenset({"weather"}))
    assert [event for item in call for event in hold.feed(item)] == []
    assert (hold.calls, hold.unknown_tools, hold.unknown_arguments) == (False, ("lookup",), '{"q": 1}')
    assert list(hold.feed(ToolCallStart(2, "d", "weather"))) == [ToolCallStart(2, "d", "weather")]
    assert hold.calls

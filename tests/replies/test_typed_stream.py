"""What waits of a typed answer, what passes, and what comes of a second reply."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.planning.typed_answer import AnswerPlan
from bardo.replies.typed_stream import MAX_HELD, AnswerBuffer, Partials, grown
from bardo.replies.typed_validation import Continuation, added
from bardo.structured import SchemaTarget, checker, plan
from bardo.values.blocks import Opaque
from bardo.values.errors import BrokenStream
from bardo.values.events import (
    ContentChunk,
    Event,
    Failed,
    Finish,
    OpaqueState,
    Partial,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UsageUpdate,
)
from bardo.values.request import Request
from bardo.values.usage import Usage
from support.typed import PLACE

THINKING: list[Event] = [ReplyStart(id="r"), ThinkStart(0), ThinkChunk(0, "Hm."), ThinkEnd(0)]
USAGE = UsageUpdate(Usage(input_tokens=3, output_tokens=2))
END = Finish("stop", "stop")


def through(hold: AnswerBuffer, events: list[Event]) -> list[Event]:
    return [*(given for event in events for given in hold.feed(event)), *hold.finish()]


def test_thinking_and_usage_pass_while_the_answer_waits() -> None:
    hold = AnswerBuffer()
    answer: list[Event] = [ContentChunk(1, '{"a":'), ContentChunk(1, "1}"), END]
    assert through(hold, [*THINKING, *answer[:2], USAGE, END]) == [*THINKING, USAGE]
    assert (hold.answer_text(), list(hold.pending), hold.next_block, hold.usage) == ('{"a":1}', answer, 2, USAGE.usage)


def test_who_only_looks_on_passes_everything() -> None:
    events: list[Event] = [*THINKING, ContentChunk(1, "{}"), END]
    hold = AnswerBuffer(hold=False)
    assert through(hold, events) == events
    assert hold.ended


def test_the_tool_that_carries_the_answer_waits_and_the_callers_own_passes() -> None:
    ours: list[Event] = [ToolCallStart(1, "c", "respond_x"), ToolCallChunk(1, "{}"), ToolCallEnd(1)]
    theirs: list[Event] = [ToolCallStart(2, "d", "weather"), ToolCallChunk(2, "{}"), ToolCallEnd(2)]
    hold = AnswerBuffer(tool="respond_x")
    assert through(hold, [*ours, *theirs, Finish("tool_calls")]) == theirs
    assert (hold.answer_text(), hold.called(), hold.calls) == ("{}", True, True)


BREAKS: dict[str, list[Event]] = {"broken": [Failed(BrokenStream("gone"))], "never ended": []}


@pytest.mark.parametrize("last", BREAKS.values(), ids=BREAKS)
def test_a_reply_that_breaks_gives_back_what_waited(last: list[Event]) -> None:
    waiting: list[Event] = [ContentChunk(0, '{"a"')]
    assert through(AnswerBuffer(), [*waiting, *last]) == [*waiting, *last]


def test_an_answer_that_never_ends_is_stopped_and_given_back() -> None:
    hold = AnswerBuffer()
    piece = "x" * (MAX_HELD // 4)
    given = [event for _ in range(5) for event in hold.feed(ContentChunk(0, piece))]
    assert isinstance(given[-1], Failed)
    assert "longer than" in given[-1].error.message
    assert hold.failed


def test_a_further_reply_follows_with_its_blocks_and_adds_its_tokens() -> None:
    spent = Usage(input_tokens=10, output_tokens=5, reasoning_tokens=None, raw={"n": 1})
    further = Continuation(3, spent)
    state = OpaqueState(0, Opaque("signature", "s", "f"))
    usage = Usage(input_tokens=20, output_tokens=6, reasoning_tokens=4, raw={"n": 2})
    events: list[Event] = [*THINKING, state, ContentChunk(1, "{}"), UsageUpdate(usage), END]
    given = [event for item in events for event in further.feed(item)]
    total = Usage(input_tokens=30, output_tokens=11, reasoning_tokens=4, raw={"attempts": [{"n": 1}, {"n": 2}]})
    expected: list[Event] = [ThinkStart(3), ThinkChunk(3, "Hm."), ThinkEnd(3), ContentChunk(4, "{}")]
    assert given == [*expected, UsageUpdate(total), END]


def test_tokens_nobody_counted_stay_unknown() -> None:
    assert added(Usage(), Usage()).reported is False
    assert added(added(Usage(raw=1), Usage(raw=2)), Usage(raw=3)).raw == {"attempts": [1, 2, 3]}


def answer_for(schema: Any, provider: str) -> AnswerPlan:
    made = plan(schema, SchemaTarget(provider=provider, model="gpt-5"))
    return AnswerPlan(plan=made, judge=checker(schema), request=Request(model="m", messages=()))


MAP = {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}}
NAMES = st.text(st.characters(categories=["L"]), min_size=1, max_size=5)


@given(st.dictionaries(NAMES, st.lists(NAMES, max_size=3), max_size=4), st.data())
def test_partial_answers_in_the_callers_form_only_grow(value: dict[str, list[str]], data: st.DataObject) -> None:
    answer = answer_for(MAP, "openai")
    assert answer.plan.changes_answers
    assert answer.plan.schema is not None
    [(name, entries)] = answer.plan.schema["properties"].items()
    key, inner = entries["items"]["properties"]
    text = json.dumps({name: [{key: word, inner: words} for word, words in value.items()]})
    partials, given = Partials(answer), []
    while text:
        cut = data.draw(st.integers(1, len(text)))
        given += [one.value for one in partials.feed(text[:cut])]
        text = text[cut:]
    assert all(grown(one, later) for one, later in pairwise(given))
    assert given[-1] == value


@pytest.mark.parametrize("size", [1, 3, 50])
def test_partial_answers_come_from_text_as_it_arrives(size: int) -> None:
    hold = AnswerBuffer(partials=Partials(answer_for(PLACE, "vllm")))
    text = '{"city": "Paris", "size": 3}'
    pieces = [text[place : place + size] for place in range(0, len(text), size)]
    given = [one.value for piece in pieces for one in hold.feed(ContentChunk(0, piece)) if isinstance(one, Partial)]
    assert given[-1] == {"city": "Paris", "size": 3}


GROWN = {
    "nothing": (None, {}, True),
    "a member more": ({"a": 1}, {"a": 1, "b": 2}, True),
    "a member less": ({"a": 1}, {}, False),
    "longer text": ("ab", "abc", True),
    "other text": ("ab", "ac", False),
    "an item more": ([1], [1, 2], True),
    "another kind": ([1], {"a": 1}, False),
    "true is not 1": (True, 1, False),
}


@pytest.mark.parametrize(("before", "after", "expected"), GROWN.values(), ids=GROWN)
def test_growing_is_only_adding(before: Any, after: Any, expected: bool) -> None:
    assert grown(before, after) is expected

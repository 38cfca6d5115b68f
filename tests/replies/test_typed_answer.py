"""The end of a typed answer, run by hand: what it yields for a sound answer, a broken one, and one that nobody can give again."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import replace

from bardo.planning.typed_answer import AnswerPlan
from bardo.replies.typed_answer import RetryRequest, SlowWork, TypedAnswer
from bardo.replies.typed_stream import AnswerBuffer
from bardo.structured import SchemaTarget, checker, plan
from bardo.values.errors import BardoError, Unreachable
from bardo.values.events import ContentChunk, Degraded, Event, Failed, Finish, ToolCallChunk, ToolCallStart
from bardo.values.request import Request
from support.typed import BAD, GOOD, PLACE

PLAN = AnswerPlan(
    plan=plan(PLACE, SchemaTarget(provider="vllm", model="m")),
    judge=checker(PLACE),
    request=Request(model="m", messages=()),
    retries=1,
)


def answer() -> TypedAnswer:
    return TypedAnswer(PLAN, forward=False, plain=True, whole=True, partials=False)


def arrive(buffer: Any, value: Any) -> None:
    for event in (ContentChunk(0, json.dumps(value)), Finish("stop", "stop")):
        buffer.feed(event)


def run(typed: TypedAnswer, *replies: Any) -> tuple[list[Event], int]:
    """Return the events, and how often the model was asked again: each time with the next of `replies`, a value or an error."""
    events: list[Event] = []
    waiting, asked, result, steps = list(replies), 0, None, typed.finish()
    while True:
        try:
            step = steps.send(result)
        except StopIteration:
            return events, asked
        result = None
        if isinstance(step, SlowWork):
            result = step.run()
        elif isinstance(step, RetryRequest):
            asked, reply = asked + 1, waiting.pop(0)
            if isinstance(reply, BardoError):
                result = reply
            else:
                assert isinstance(step.stages[-1], AnswerBuffer)
                arrive(step.stages[-1], reply)
        else:
            events += step


def text_of(events: list[Event]) -> Any:
    return json.loads("".join(event.text for event in events if type(event) is ContentChunk))


def test_a_sound_answer_is_given_as_it_came() -> None:
    typed = answer()
    arrive(typed.buffer, GOOD)
    events, asked = run(typed)
    assert (text_of(events), asked, typed.rewritten) == (GOOD, 0, False)


def test_an_answer_that_does_not_conform_is_asked_for_again() -> None:
    typed = answer()
    arrive(typed.buffer, BAD)
    events, asked = run(typed, GOOD)
    assert (text_of(events), asked, typed.rewritten) == (GOOD, 1, True)
    assert typed.provenance is not None
    assert typed.provenance.attempts == 2


@pytest.mark.parametrize("second", [BAD, Unreachable("down")], ids=["bad again", "nobody there"])
def test_what_cannot_be_used_ends_with_an_error(second: Any) -> None:
    typed = answer()
    arrive(typed.buffer, BAD)
    events, asked = run(typed, second)
    assert asked == 1
    assert type(events[-1]) is Failed
    assert any(type(event) is Degraded for event in events) is isinstance(second, BardoError)


@pytest.mark.parametrize(("again", "asked"), [(GOOD, 1), (None, 1)], ids=["then it is whole", "then it is cut again"])
def test_cut_arguments_of_the_tool_that_carries_the_answer_are_asked_for_once_more(again: Any, asked: int) -> None:
    by_tool = replace(PLAN, plan=replace(PLAN.plan, tool_name="respond"), retries=3)
    typed = TypedAnswer(by_tool, forward=False, plain=True, whole=True, partials=False)
    cut: list[Event] = [ToolCallStart(0, "c", "respond"), ToolCallChunk(0, '{"ci'), Finish("length", "length")]
    for event in cut:
        typed.buffer.feed(event)
    steps, result, times = typed.finish(), None, 0
    events: list[Event] = []
    with suppress(StopIteration):
        while True:
            step = steps.send(result)
            result = step.run() if isinstance(step, SlowWork) else None
            events += step if isinstance(step, list) else []
            if isinstance(step, RetryRequest):
                times += 1
                assert isinstance(step.stages[-1], AnswerBuffer)
                for event in cut if again is None else (ContentChunk(0, json.dumps(again)), Finish("stop")):
                    step.stages[-1].feed(event)
    assert times == asked
    assert (text_of(events) == GOOD) if again else (events[-1] == Finish("length", "length"))


def test_text_that_was_cut_at_its_limit_is_not_asked_for_again() -> None:
    typed = answer()
    for event in (ContentChunk(0, '{"ci'), Finish("length", "length")):
        typed.buffer.feed(event)
    assert run(typed)[1] == 0

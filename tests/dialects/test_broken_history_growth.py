"""Broken histories are mended in time that grows with them, also where one id or one kind of part stands in all of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bardo.catalog.request_shapes import RequestShape
from bardo.dialects import dialect
from bardo.dialects.shared.history_repair import with_sound_history
from bardo.dialects.shared.losses import Losses
from bardo.dialects.shared.turns import unknown_as_words
from bardo.values.blocks import TextBlock, ToolCallBlock, ToolResultBlock, UnknownBlock
from bardo.values.request import Message, Request
from support.growth import check_growth

FEW, MANY, BELOW = 400, 3_200, 24
BEGUN = (Message("user", (TextBlock("Go on."),)), Message("assistant", (TextBlock("Yes."),)))


def result(number: int) -> ToolResultBlock:
    return ToolResultBlock(call_id="c", content=(TextBlock(f"found {number}"),))


def calls_of_one_id(count: int) -> tuple[Message, ...]:
    call = ToolCallBlock(id="c", name="f", arguments="{}")
    return tuple(
        one for number in range(count) for one in (Message("assistant", (call,)), Message("user", (result(number),)))
    )


def results_of_no_call(count: int) -> tuple[Message, ...]:
    return (*BEGUN, Message("user", tuple(map(result, range(count)))))


def late_words_of_the_system(count: int) -> tuple[Message, ...]:
    return (*BEGUN, *(Message("system", (TextBlock(f"Rule {number}."),)) for number in range(count)))


HISTORIES: dict[str, tuple[Callable[[int], tuple[Message, ...]], str]] = {
    "unique_calls": (calls_of_one_id, "anthropic_messages"),
    "answered_calls": (results_of_no_call, "anthropic_messages"),
    "one_system": (late_words_of_the_system, "ollama"),
}


@pytest.mark.parametrize("rule", HISTORIES)
def test_a_history_is_mended_in_time_that_grows_with_it(rule: str) -> None:
    history, spoken = HISTORIES[rule]
    shape = RequestShape(rules=frozenset({rule, "answered_calls"} if spoken != "ollama" else {rule}))
    few, many = (history(count) for count in (FEW, MANY))

    def mend(messages: tuple[Message, ...]) -> Request:
        mended = with_sound_history(Request(model="m", messages=messages), shape, Losses(dialect(spoken).declaration))
        assert mended.messages != messages
        return mended

    check_growth(mend, few, many, below=BELOW)


def test_parts_that_only_their_dialect_knows_are_read_in_time_that_grows_with_them() -> None:
    def asked(count: int) -> Request:
        parts = tuple(UnknownBlock(dialect="openai_chat", value={"type": "x", "n": number}) for number in range(count))
        return Request(model="m", messages=(Message("user", (ToolResultBlock(call_id="c", content=parts),)),))

    def say(request: Request) -> Request:
        return unknown_as_words(request, Losses(dialect("anthropic_messages").declaration), frozenset({UnknownBlock}))

    check_growth(say, asked(FEW), asked(MANY), below=BELOW)


def test_each_late_text_of_the_system_stands_where_it_stood() -> None:
    asked = Request(model="m", messages=late_words_of_the_system(3))
    mended = with_sound_history(
        asked, RequestShape(rules=frozenset({"one_system"})), Losses(dialect("ollama").declaration)
    )
    assert [one.role for one in mended.messages] == ["user", "assistant", "user"]
    assert [block.text for block in mended.messages[-1].blocks if isinstance(block, TextBlock)] == [
        "Rule 0.",
        "Rule 1.",
        "Rule 2.",
    ]


def test_further_calls_of_one_id_get_the_next_free_number() -> None:
    call = [ToolCallBlock(id=one, name="f", arguments="{}") for one in ("c", "c_2", "c", "c")]
    messages = [one for block in call for one in (Message("assistant", (block,)), Message("user", (result(0),)))]
    asked = Request(model="m", messages=tuple(messages))
    shape = RequestShape(rules=frozenset({"unique_calls", "answered_calls"}))
    mended = with_sound_history(asked, shape, Losses(dialect("anthropic_messages").declaration))
    assert [made.id for one in mended.messages for made in one.calls] == ["c", "c_2", "c_3", "c_4"]

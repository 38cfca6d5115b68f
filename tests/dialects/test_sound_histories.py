"""Which histories a target takes as they are: none of those that it refuses, and all others, in time that grows with them."""

from __future__ import annotations

import pytest

from bardo.catalog.request_shapes import RequestShape
from bardo.dialects.shared.history_repair import is_sound
from bardo.values.blocks import Block, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import Message, Request
from support.growth import check_growth

CHAT, MESSAGES = "openai_chat", "anthropic_messages"
ANSWERED = frozenset({"answered_calls"})
USER = Message("user", (TextBlock("Go on."),))
SYSTEM = Message("system", (TextBlock("Be brief."),))
MODEL = Message("assistant", (TextBlock("Yes."),))


def calls(*ids: str) -> Message:
    return Message("assistant", tuple([ToolCallBlock(id=one, name="f") for one in ids]))


def results(*ids: str, says: str = "") -> Message:
    blocks: list[Block] = [ToolResultBlock(call_id=one, name="f") for one in ids]
    return Message("user", (*blocks, TextBlock(says)) if says else tuple(blocks))


CASES: dict[str, tuple[bool, str, set[str], tuple[Message, ...]]] = {
    "results in the order of the calls": (True, CHAT, set(), (USER, calls("a", "b"), results("a", "b"), MODEL)),
    "results in another order": (True, CHAT, set(), (USER, calls("a", "b"), results("b", "a"), USER)),
    "a result of another call": (False, CHAT, set(), (USER, calls("a"), results("b"), USER)),
    "a result of no call": (False, CHAT, set(), (USER, results("a"), USER)),
    "a result twice": (False, CHAT, set(), (USER, calls("a", "b"), results("a", "a"), USER)),
    "a result twice at the end": (False, CHAT, set(), (USER, calls("a"), results("a", "a"))),
    "words where a result is missing": (False, CHAT, set(), (USER, calls("a", "b"), results("a"), USER, results("b"))),
    "calls of a message behind one without results": (False, CHAT, set(), (USER, calls("a"), calls("b"), results("b"))),
    "a call that is not answered": (False, CHAT, set(), (USER, calls("a"), USER)),
    "a call that nothing follows": (True, CHAT, set(), (USER, calls("a"))),
    "half of the calls answered at the end": (False, CHAT, set(), (USER, calls("a", "b"), results("b"))),
    "results in two messages": (True, CHAT, set(), (USER, calls("a", "b"), results("b"), results("a"), USER)),
    "words behind half of the results": (
        False,
        CHAT,
        set(),
        (USER, calls("a", "b"), results("b", says="So."), results("a")),
    ),
    "the system before the result": (False, CHAT, set(), (USER, calls("a"), SYSTEM, results("a"))),
    "two calls of one id at once": (False, CHAT, set(), (USER, calls("a", "a"), results("a"))),
    "two calls of one id in turn": (True, CHAT, set(), (USER, calls("a"), results("a"), calls("a"), results("a"))),
    "ids that come again where none may": (
        False,
        CHAT,
        {"unique_calls"},
        (USER, calls("a"), results("a"), calls("a"), results("a")),
    ),
    "a call without an id where each has one": (False, CHAT, {"unique_calls"}, (USER, calls(""), results(""))),
    "calls of two messages in a row": (False, CHAT, set(), (USER, calls("a"), calls("b"), results("a", "b"))),
    "calls of two messages that are one turn": (
        True,
        MESSAGES,
        set(),
        (USER, calls("a"), calls("b"), results("b", "a")),
    ),
    "one id in two messages that are one turn": (False, MESSAGES, set(), (USER, calls("a"), calls("a"), results("a"))),
    "calls behind half of the results": (
        False,
        MESSAGES,
        set(),
        (USER, calls("a", "b"), results("a"), calls("c"), results("b", "c")),
    ),
    "the model first": (True, CHAT, set(), (MODEL, USER)),
    "the model first where the user must be": (False, CHAT, {"user_first"}, (SYSTEM, MODEL, USER)),
    "the system in between": (True, CHAT, set(), (SYSTEM, USER, SYSTEM)),
    "the system in between where it must be first": (False, CHAT, {"one_system"}, (SYSTEM, USER, SYSTEM)),
    "the system first": (True, CHAT, {"one_system"}, (SYSTEM, SYSTEM, USER)),
    "the user behind a result": (True, CHAT, set(), (USER, calls("a"), results("a"), USER)),
    "the user behind a result where the model must be": (
        False,
        CHAT,
        {"no_user_after_tool"},
        (USER, calls("a"), results("a"), USER),
    ),
    "the user beside a result where the model must be": (
        False,
        CHAT,
        {"no_user_after_tool"},
        (USER, calls("a"), results("a", says="So.")),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_history_is_sound_where_its_target_takes_it(name: str) -> None:
    sound, spoken, rules, messages = CASES[name]
    assert is_sound(Request(model="m", messages=messages), RequestShape(rules=ANSWERED | rules), spoken) is sound


def test_calls_of_earlier_turns_may_be_kept_by_the_provider() -> None:
    asked = Request(model="m", messages=(USER, results("a")), extra={"previous_response_id": "r"})
    assert is_sound(asked, RequestShape(rules=ANSWERED), "openai_responses")


def test_many_calls_that_wait_are_looked_at_in_time_that_grows_with_them() -> None:
    def history(count: int) -> Request:
        ids = [f"call_{number}" for number in range(count)]
        return Request(model="m", messages=(USER, *map(calls, ids), *map(results, reversed(ids)), USER))

    def look(request: Request) -> None:
        assert is_sound(request, RequestShape(rules=ANSWERED), MESSAGES)

    check_growth(look, history(400), history(3_200), below=24)

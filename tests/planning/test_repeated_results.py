"""The same result of a tool is sent once."""

from __future__ import annotations

from bardo.dialects.shared.history_repair import without_repeated_results
from bardo.values.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import Message, Request

CALLS = Message(
    "assistant",
    (ToolCallBlock(id="a", name="look", arguments="{}"), ToolCallBlock(id="b", name="look", arguments="{}")),
)
QUESTION = Message("user", (TextBlock("Look."),))


def result(call_id: str, text: str, *, name: str = "look", is_error: bool = False) -> ToolResultBlock:
    return ToolResultBlock(call_id=call_id, name=name, content=(TextBlock(text),), is_error=is_error)


def request(*messages: Message) -> Request:
    return Request(model="m", messages=(QUESTION, CALLS, *messages), body={"model": "m"}, body_bytes=b"{}")


def sent(*messages: Message) -> list[tuple[str, str]]:
    """Return the ids and the texts of the results that are sent."""
    found = without_repeated_results(request(*messages))
    return [
        (block.call_id, block.text)
        for one in found.messages
        for block in one.blocks
        if isinstance(block, ToolResultBlock)
    ]


def test_a_request_without_repetition_is_the_same_object() -> None:
    asked = request(Message("user", (result("a", "1"), result("b", "1"))))
    assert without_repeated_results(asked) is asked


def test_a_result_that_stands_twice_is_sent_once_and_that_is_said() -> None:
    asked = request(Message("user", (result("a", "1"), result("b", "2"), result("a", "1"), TextBlock("Go on."))))
    found = without_repeated_results(asked)
    assert [type(block) for block in found.messages[-1].blocks] == [ToolResultBlock, ToolResultBlock, TextBlock]
    assert [one.what for one in found.degraded] == ["history.result_twice"]
    assert found.body is None, "the client's own body still has it twice"


def test_a_message_of_nothing_but_repetition_is_left_out() -> None:
    one, other = Message("user", (result("a", "1"),)), Message("user", (result("b", "2"),))
    found = without_repeated_results(request(one, other, one))
    assert found.messages == (QUESTION, CALLS, one, other)


def test_results_of_one_call_that_differ_are_left_to_the_provider() -> None:
    assert sent(Message("user", (result("a", "1"), result("a", "2")))) == [("a", "1"), ("a", "2")]
    assert len(sent(Message("user", (result("a", "1"), result("a", "1", is_error=True))))) == 2


def test_the_same_words_for_two_calls_are_two_results() -> None:
    assert sent(Message("user", (result("a", "1"), result("b", "1")))) == [("a", "1"), ("b", "1")]


def test_a_result_that_names_no_call_is_left_out_where_its_tool_said_so_before() -> None:
    assert sent(Message("user", (result("a", "1"), result("", "1")))) == [("a", "1")]
    assert sent(Message("user", (result("a", "1"), result("", "2")))) == [("a", "1"), ("", "2")]
    assert sent(Message("user", (result("a", "1"), result("", "1", name="other")))) == [("a", "1"), ("", "1")]


def test_a_result_behind_another_turn_is_none_of_the_turn_before() -> None:
    one = Message("user", (result("a", "1"),))
    found = without_repeated_results(request(one, CALLS, one))
    assert found.messages == (QUESTION, CALLS, one, CALLS, one)


def test_many_results_take_time_by_their_number() -> None:
    """Each of them is compared with one other, not with all."""
    many = tuple(result("", f"{number}") for number in range(20_000))
    assert len(sent(Message("user", (*many, *many)))) == 20_000

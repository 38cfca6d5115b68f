"""Turns are recalled by what the client sent, and stand where they stand in what layers made of it."""

from __future__ import annotations

from msgspec.structs import replace

from bardo.reasoning.replay import turns_in, turns_of
from bardo.values.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import Message, Request


def user(text: str) -> Message:
    return Message("user", (TextBlock(text),))


def said(text: str) -> Message:
    return Message("assistant", (TextBlock(text),))


ASKED = Request(
    model="m",
    messages=(
        user("One?"),
        Message("assistant", (ToolCallBlock(id="call_0", name="look", arguments="{}"),)),
        Message("user", (ToolResultBlock(call_id="call_0", content=(TextBlock("a long result"),)),)),
        said("One."),
        user("Two?"),
        said("Two."),
        user("Three?"),
    ),
)
TURNS = turns_of(ASKED)


def places(*messages: Message) -> list[tuple[int, str]]:
    return [(turn.place, turn.exact) for turn in turns_in(TURNS, ASKED, replace(ASKED, messages=messages))]


def test_an_unchanged_request_has_its_own_turns() -> None:
    assert turns_in(TURNS, ASKED, ASKED) == TURNS


def test_shortened_results_move_no_turn_and_change_no_key() -> None:
    shorter = Message("user", (ToolResultBlock(call_id="call_0", content=(TextBlock("a"),)),))
    assert places(*ASKED.messages[:2], shorter, *ASKED.messages[3:]) == [(one.place, one.exact) for one in TURNS]


def test_a_message_before_moves_all_turns() -> None:
    assert places(Message("system", (TextBlock("Be brief."),)), *ASKED.messages) == [
        (one.place + 1, one.exact) for one in TURNS
    ]


def test_turns_that_a_summary_stands_for_are_left_out() -> None:
    assert places(user("Summary."), *ASKED.messages[3:]) == [(1, TURNS[1].exact), (3, TURNS[2].exact)]
    assert places(user("Summary.")) == []


def test_turns_that_a_layer_adds_are_nobodys() -> None:
    added = (Message("assistant", (ToolCallBlock(id="own", name="search_tools", arguments="{}"),)), user("found"))
    found = places(ASKED.messages[0], *added, *ASKED.messages[1:])
    assert found == [(3, TURNS[0].exact), (5, TURNS[1].exact), (7, TURNS[2].exact)]

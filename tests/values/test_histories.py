"""What follows from a conversation is found for its new messages alone, also where cache markers at its end move with each turn."""

from __future__ import annotations

import pytest

from bardo.values.blocks import Carried, TextBlock
from bardo.values.histories import Messages, fold_history
from bardo.values.request import Message

pytestmark = pytest.mark.each_python

NAME = "test.texts"
MARKS = Carried("anthropic_messages", {"cache_control": {"type": "ephemeral"}})


class Reader:
    """Finds the texts of conversations, and counts the messages that it looked at."""

    def __init__(self) -> None:
        self.looked_at = 0

    def texts(self, messages: Messages) -> list[str]:
        return fold_history(messages, NAME, None, [], self._extend)

    def _extend(self, found: list[str], messages: Messages, place: int) -> list[str]:
        self.looked_at += len(messages) - place
        return [*found, *(message.text for message in messages[place:])]


def message(number: int, *, marked: bool = False) -> Message:
    return Message("assistant" if number % 2 else "user", (TextBlock(f"text {number}"),), MARKS if marked else None)


def marked_turns(count: int, marks: int) -> list[Messages]:
    """Return the turns of a conversation, each with two more messages and with marks at its last ones alone."""
    steady = [message(number) for number in range(2 * count + 1)]
    turns = []
    for size in range(5, 2 * count + 2, 2):
        turns.append((*steady[: size - marks], *(message(at, marked=True) for at in range(size - marks, size))))
    return turns


@pytest.mark.parametrize("marks", [0, 1, 3, 5])
def test_each_turn_looks_at_its_last_messages_alone(marks: int) -> None:
    reader = Reader()
    for turn in marked_turns(60, marks):
        before = reader.looked_at
        assert reader.texts(turn) == [one.text for one in turn]
        assert reader.looked_at - before <= 8


@pytest.mark.parametrize("marks", [0, 1, 3, 5])
def test_two_beginnings_of_a_conversation_are_kept_at_most(marks: int) -> None:
    reader = Reader()
    turns = marked_turns(60, marks)
    for turn in turns:
        reader.texts(turn)
    assert (
        sum(NAME in one.derived for one in {id(one): one for turn in turns for one in turn[: -marks or None]}.values())
        <= 2
    )


def test_what_is_kept_of_a_longer_turn_takes_the_place_of_both() -> None:
    reader = Reader()
    messages = tuple(message(number) for number in range(400))
    for size in range(10, 400, 10):
        reader.texts(messages[:size])
    assert sum(NAME in one.derived for one in messages) <= 2
    assert reader.looked_at <= 400

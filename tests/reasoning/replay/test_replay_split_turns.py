"""A turn that a client writes as several messages in a row is one turn; messages in a row that are several replies stay apart."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.catalog.replay import Reader, builtin_replay
from bardo.reasoning.replay import Recalled, remember, restore, turns_in, turns_of
from bardo.reasoning.replay.memory import ReplyRecord
from bardo.values.blocks import Block, Opaque, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import Message, Request
from bardo.values.response import Response

ASKED = Message("user", (TextBlock("Compare two cities."),))
SAID = TextBlock("I look at both. ")
CALLS = tuple(ToolCallBlock(id=f"c{city}", name="look", arguments=f'{{"city":"{city}"}}') for city in ("Oslo", "Rome"))
RESULTS = tuple(
    Message("user", (ToolResultBlock(call_id=call.id, content=(TextBlock(call.arguments),)),)) for call in CALLS
)
UNIQUE = tuple(
    msgspec.structs.replace(call, id=f"toolu_01Xq7Kd92LmPvR4sT8wYzB3{place}") for place, call in enumerate(CALLS)
)


def reader() -> Reader:
    row = builtin().provider("anthropic")
    assert row is not None
    return builtin_replay().reader("anthropic", row, "claude-opus-4-5")


def thought(text: str) -> ReasoningBlock:
    form = "anthropic-claude-v1"
    return ReasoningBlock(text=text, format=form, opaque=(Opaque("signature", f"signature of {text}", form),))


def kept(*replies: tuple[Request, tuple[Any, ...]]) -> dict[str, ReplyRecord]:
    """Return what is known of replies: of each the request and the blocks."""
    return {
        key: memory.kept
        for request, blocks in replies
        for memory in remember(Response(blocks=blocks), request, request, reader())
        for key in memory.keys
    }


def asked(*messages: Message) -> Request:
    return Request(model="m", messages=messages)


def said(*blocks: Block) -> Message:
    return Message("assistant", blocks)


def blocks_of(request: Request, found: dict[str, ReplyRecord]) -> list[list[Block]]:
    restored = restore(request, reader(), Recalled(found=found)).request
    return [[*message.blocks] for message in restored.messages if message.role == "assistant"]


SPLITS = {
    "each alone": [said(SAID), said(CALLS[0]), said(CALLS[1])],
    "text and calls": [said(SAID), said(*CALLS)],
    "text with the first call": [said(SAID, CALLS[0]), said(CALLS[1])],
    "calls alone, without the text": [said(CALLS[0]), said(CALLS[1])],
    "with a message of nothing": [said(), said(SAID), said(*CALLS)],
}


@pytest.mark.parametrize("row", SPLITS.values(), ids=SPLITS)
def test_the_thinking_of_a_turn_in_several_messages_stands_before_the_first_of_them(row: list[Message]) -> None:
    found = kept((asked(ASKED), (thought("both"), SAID, *CALLS)))
    restored = blocks_of(asked(ASKED, *row, *RESULTS), found)
    text = [SAID] if any(SAID in one.blocks for one in row) else []
    assert restored == [[thought("both"), *text, *CALLS]]


@pytest.mark.parametrize("row", SPLITS.values(), ids=SPLITS)
def test_what_follows_a_turn_is_known_however_the_turn_was_cut(row: list[Message]) -> None:
    first = (thought("both"), SAID, *CALLS)
    found = kept(
        (asked(ASKED), first),
        (asked(ASKED, said(SAID, *CALLS), *RESULTS), (thought("again"), TextBlock("Rome."), CALLS[1])),
    )
    restored = blocks_of(asked(ASKED, *row, *RESULTS, said(TextBlock("Rome."), CALLS[1]), RESULTS[1]), found)
    assert [one[0] for one in restored] == [thought("both"), thought("again")]


def test_calls_with_unique_ids_lead_to_their_turn_in_a_conversation_that_lost_its_beginning() -> None:
    found = kept((asked(ASKED), (thought("both"), SAID, *UNIQUE)))
    row = [said(SAID), *(said(call) for call in UNIQUE)]
    assert blocks_of(asked(Message("user", (TextBlock("A summary."),)), *row), found) == [
        [thought("both"), SAID, *UNIQUE]
    ]


def test_two_replies_in_a_row_keep_each_its_own_thinking() -> None:
    one, other = TextBlock("I search."), TextBlock("I found it.")
    found = kept(
        (asked(ASKED), (thought("first"), one, UNIQUE[0])),
        (asked(ASKED, said(one, UNIQUE[0])), (thought("second"), other)),
    )
    restored = blocks_of(asked(ASKED, said(one, UNIQUE[0]), said(other), ASKED), found)
    assert restored == [[thought("first"), one, UNIQUE[0]], [thought("second"), other]]


def test_words_that_no_model_said_are_not_joined_with_a_reply_behind_them() -> None:
    found = kept((asked(ASKED), (thought("only"), UNIQUE[0])))
    invented = TextBlock("Let me help.")
    restored = blocks_of(asked(RESULTS[0], said(invented), said(UNIQUE[0]), ASKED), found)
    assert restored == [[invented], [thought("only"), UNIQUE[0]]]


def test_a_turn_of_which_nothing_is_known_stays_as_its_client_wrote_it() -> None:
    request = asked(ASKED, said(SAID), said(*CALLS), *RESULTS)
    found = kept(
        (
            asked(ASKED),
            (thought("other"), TextBlock("Something else."), ToolCallBlock(id="x", name="y", arguments="{}")),
        )
    )
    restored = restore(request, reader(), Recalled(found=found))
    assert restored.request is request
    assert not restored.altered


def test_keys_are_the_same_whether_a_conversation_comes_at_once_or_grows() -> None:
    messages = [
        ASKED, said(SAID), said(CALLS[0]), said(CALLS[1]), *RESULTS, said(TextBlock("Rome.")), said(CALLS[1]),
        RESULTS[1], said(TextBlock("Done.")), ASKED, said(SAID), said(TextBlock("And more.")),
    ]  # fmt: skip
    for end in range(1, len(messages) + 1):
        grown = turns_of(asked(*messages[:end]))
        fresh = turns_of(asked(*(msgspec.structs.replace(one) for one in messages[:end])))
        assert [one.all for one in grown] == [one.all for one in fresh]
        assert [(one.place, one.messages) for one in grown] == [(one.place, one.messages) for one in fresh]


def test_a_turn_in_several_messages_is_found_where_layers_have_moved_it() -> None:
    request = asked(ASKED, said(SAID), said(*CALLS), *RESULTS, said(TextBlock("Rome.")))
    turns = turns_of(request)
    moved = asked(Message("system", (TextBlock("Be kind."),)), *request.messages)
    assert [(one.place, one.messages) for one in turns_in(turns, request, moved)] == [(2, 1), (3, 1), (2, 2), (6, 1)]
    parted = asked(*request.messages[:2], ASKED, *request.messages[2:], said(TextBlock("More.")))
    places = {(one.place, one.messages) for one in turns_in(turns, request, parted)}
    assert places == {(1, 1), (3, 1), (6, 1)}, "no other message came between those of one turn"


@pytest.mark.parametrize("count", [63, 64, 65, 200])
def test_a_reply_behind_very_many_messages_of_the_model_in_a_row_is_found_again(count: int) -> None:
    row = [said(TextBlock(f"text {place}")) for place in range(count)]
    last = TextBlock("the last")
    found = kept((asked(ASKED, *row), (thought("late"), last)))
    restored = blocks_of(asked(ASKED, *row, said(last), Message("user", (TextBlock("on"),))), found)
    assert restored[-1] == [thought("late"), last]
    other = [said(TextBlock("another")), *row[1:]]
    restored = blocks_of(asked(ASKED, *other, said(last), Message("user", (TextBlock("on"),))), found)
    assert restored[-1] == [last]

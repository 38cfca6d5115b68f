"""The keys of earlier thinking are those under which stores hold it, whatever the texts are made of."""

from __future__ import annotations

import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.reasoning.replay.keys import (
    Conversation,
    _digest_of,
    _without_space,
    digest,
    history_of,
    keys_in,
    reply_keys,
    state_key,
    turns_of,
)
from bardo.values.blocks import Block, Opaque, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import Message, Request

TEXTS = st.text(st.characters(min_codepoint=0, max_codepoint=0x10FFFF), max_size=20) | st.text(
    st.characters(max_codepoint=127), max_size=20
)


@given(st.lists(TEXTS, max_size=4))
def test_a_digest_is_of_the_lengths_and_the_bytes_of_its_texts(parts: list[str]) -> None:
    raw = [part.encode("utf-8", "surrogatepass") for part in parts]
    lengths = ",".join(str(len(part)) for part in raw).encode()
    assert digest(*parts) == hashlib.blake2b(lengths + b";" + b"".join(raw), digest_size=15).hexdigest()


def test_where_a_text_ends_matters() -> None:
    assert len({digest("ab", "c"), digest("a", "bc"), digest("abc"), digest("abc", "")}) == 4


def test_a_nul_within_a_text_is_no_end_of_it() -> None:
    texts = ["a", "b", "a\0b", "a\0", "\0b", "", "\0", "3,4"]
    said: list[tuple[str, ...]] = [
        (begin, one, other) for begin in ("", "0" * 30, "truncated") for one in texts for other in texts
    ]
    said += [("", "a", "b", "a", "b"), ("", "a", "b", "a\0b"), ("", "3,4;", "a", "b")]
    assert len({*map(_digest_of, said)}) == len(said)


@pytest.mark.parametrize("around", ["a", "\u00e9"], ids=["ASCII", "another letter"])
def test_space_is_what_python_splits_at(around: str) -> None:
    for letter in map(chr, (*range(128), 0x85, 0xA0, 0x2003, 0x2028, 0x200B, 0xFEFF)):
        text = f"{around}{letter}b"
        assert _without_space(text) == "".join(text.split())


def test_stored_keys_are_found_by_later_versions() -> None:
    request = Request(
        model="m",
        messages=(
            Message("system", (TextBlock("Be brief."),)),
            Message("user", (TextBlock("Look at  it."),)),
            Message(
                "assistant",
                (
                    ReasoningBlock(text="Hm.", opaque=(Opaque("signature", "c2lnbmVk" * 4, "anthropic-claude-v1"),)),
                    TextBlock("So."),
                    ToolCallBlock(
                        id="toolu_01A09q90qw90lq917835lq9", name="look", arguments='{"b": 1.0, "a": "\u00e9"}'
                    ),
                ),
            ),
            Message(
                "user", (ToolResultBlock(call_id="toolu_01A09q90qw90lq917835lq9", content=(TextBlock("It is\n4."),)),)
            ),
            Message("assistant", (ToolCallBlock(id="call_0f3A9b2C4d5E6f7A8b9C", name="look", arguments='{"a": 1}'),)),
            Message("user", (ToolResultBlock(call_id="call_0f3A9b2C4d5E6f7A8b9C", content=(TextBlock("Yes."),)),)),
            Message("assistant", (TextBlock("Four"),)),
            Message("assistant", (TextBlock("."),)),
        ),
    )
    assert [turn.all for turn in turns_of(request)] == STORED


BLOCKS = st.lists(
    st.sampled_from(
        [
            TextBlock("So."),
            TextBlock(" \u00e9 "),
            ToolCallBlock(id="call_0", name="look", arguments='{"a": 1.0}'),
            ToolCallBlock(id="toolu_01A09q90qw90lq917835lq9", name="look"),
            ReasoningBlock(text="Hm."),
        ]
    ),
    min_size=1,
    max_size=4,
).map(tuple)
RESULTS = st.lists(
    st.sampled_from([TextBlock("It is 4."), ToolResultBlock(call_id="call_0", content=(TextBlock("4 "),))]),
    min_size=1,
    max_size=3,
).map(tuple)


@given(st.lists(st.tuples(RESULTS, BLOCKS), min_size=1, max_size=4))
def test_the_next_request_asks_for_every_key_under_which_a_reply_is_kept(
    said: list[tuple[tuple[Block, ...], ...]],
) -> None:
    messages = [Message("system", (TextBlock("Be brief."),))]
    for results, reply in said:
        messages.append(Message("user", results))
        before = Request(model="m", messages=tuple(messages))
        messages.append(Message("assistant", reply))
        found = turns_of(Request(model="m", messages=tuple(messages)))[-1]
        kept = reply_keys(history_of(before), reply)
        # Without the question the conversation may be another's, and only a call whose id no other has is found again.
        truncated = not any(type(block) is TextBlock for block in said[0][0])
        assert set(found.calls) <= set(kept)
        assert truncated or {found.exact, found.loose} <= set(kept)
        assert not truncated or not any(key[0] in "mul" for key in kept)


SIGNED = Opaque("signature", "c2lnbmVk" * 4, "anthropic-claude-v1")


def looping(turns: int, **results: str) -> tuple[Message, ...]:
    """Return a loop of calls whose ids say nothing; `results` are those of other words, by `r` and the number of their turn."""
    messages = [Message("system", (TextBlock("Be brief."),)), Message("user", (TextBlock("Look at it."),))]
    for turn in range(turns):
        result = results.get(f"r{turn}", f"It is {turn}.")
        messages.append(Message("assistant", (ToolCallBlock(id=f"call_{turn}", name="look"),)))
        messages.append(Message("user", (ToolResultBlock(call_id=f"call_{turn}", content=(TextBlock(result),)),)))
    return tuple(messages)


def keys_of_last(messages: tuple[Message, ...]) -> tuple[str, str]:
    last = turns_of(Request(model="m", messages=messages))[-1]
    return last.exact, last.loose


@pytest.mark.parametrize("turns", [1, 2, 8, 9, 10, 11, 20])
def test_a_turn_is_known_by_the_eight_turns_before_it_and_what_followed_them(turns: int) -> None:
    known = keys_of_last(looping(turns))
    for changed in range(turns - 1):
        exact, loose = keys_of_last(looping(turns, **{f"r{changed}": "[cleared]"}))
        # The result of a turn stands between it and the next, and is lost with the next.
        is_known = changed + 1 < turns - 1 - 8
        assert (exact == known[0], loose == known[1]) == (is_known, is_known), changed


@pytest.mark.parametrize("turns", [1, 9, 10, 20])
def test_a_turn_is_known_by_the_first_question_and_by_its_number(turns: int) -> None:
    messages = looping(turns)
    other = (messages[0], Message("user", (TextBlock("Look at that."),)), *messages[2:])
    prompted = (Message("system", (TextBlock("Be long."),)), *messages[1:])
    first, asked_otherwise, prompted_otherwise = keys_of_last(messages), keys_of_last(other), keys_of_last(prompted)
    assert first[0] not in (asked_otherwise[0], prompted_otherwise[0])
    assert first[1] != asked_otherwise[1]
    assert first[1] == prompted_otherwise[1], "the operator's words may hold the time"
    alike = [Message("assistant", (ToolCallBlock(id="call_0", name="look"),)), messages[3]]
    waiting = [keys_of_last((*messages[:2], *alike * count)) for count in range(1, 20)]
    assert len({*waiting}) == len(waiting)


def test_a_turn_with_state_of_its_own_is_known_by_that_alone_and_what_follows_by_all() -> None:
    asked, (question, answer) = looping(0), looping(1)[2:]
    signed = msgspec.structs.replace(question, blocks=(ReasoningBlock(text="Hm.", opaque=(SIGNED,)), *question.blocks))
    end = Message("assistant", (TextBlock("So."),))
    first, second = turns_of(Request(model="m", messages=(*asked, signed, answer, end)))
    assert first.all == (state_key(SIGNED),)
    assert second == turns_of(Request(model="m", messages=(*asked, question, answer, end)))[-1]
    before, without = (history_of(Request(model="m", messages=(*asked, one, answer))) for one in (signed, question))
    assert (before.exactly, before.loosely) == (without.exactly, without.loosely)


@pytest.mark.parametrize(
    "state",
    [
        Opaque("id", "rs_68af4030baa48193b0b43b4c2a176a1a0e6967589f080e77", "openai-responses-v1"),
        Opaque("signature", "short", "anthropic-claude-v1"),
    ],
    ids=["an id, which bardo may have given", "few letters"],
)
def test_a_turn_whose_state_another_reply_may_have_is_known_by_all(state: Opaque) -> None:
    asked, (question, answer) = looping(0), looping(1)[2:]
    stated = msgspec.structs.replace(question, blocks=(ReasoningBlock(text="Hm.", opaque=(state,)), *question.blocks))
    found = turns_of(Request(model="m", messages=(*asked, stated, answer)))[0]
    without = turns_of(Request(model="m", messages=(*asked, question, answer)))[0]
    assert (found.exact, found.unnamed, found.loose) == (without.exact, without.unnamed, without.loose)
    assert state_key(state) in found.all


def test_messages_in_a_row_have_all_keys_though_one_has_state() -> None:
    asked, (question, answer) = looping(0), looping(1)[2:]
    signed = Message("assistant", (ReasoningBlock(text="Hm.", opaque=(SIGNED,)), TextBlock("So.")))
    one, other, together = turns_of(Request(model="m", messages=(*asked, signed, question, answer)))
    whole = Message("assistant", (*signed.blocks[1:], *question.blocks))
    assert (together.exact, together.loose) == keys_of_last((*asked, whole, answer))
    assert one.exact
    assert other.exact
    assert together.messages == 2


STORED = [
    ("sab4f3e7cbdc539c4887737d88bbc16",),
    ("m4c187d191d815d42d35bcced8ada5e", "lfb2286780455fcf4beab7e373028ac", "c3b03492996fdea68da17a9653210c1"),
    ("maf7266e66b244b647002c188f93ce5", "l5d2c939a508af8f9f660ce018f7890"),
    ("m22bc106aa0d9dbf8799e4eeccc457d", "lcd9637cb5b22d28760b17885a745f5"),
    ("m493370062355987d0459f743e646c2", "l60de8049272d32b4b8b81910dd9637"),
]


def agent_turns(*ids: str) -> Request:
    """A conversation in which the model calls one tool after the other, and says something at the end."""
    messages = [Message("user", (TextBlock("Look."),))]
    for number, call_id in enumerate(ids):
        messages.append(Message("assistant", (ToolCallBlock(id=call_id, name="look", arguments=f'{{"n":{number}}}'),)))
        messages.append(Message("user", (ToolResultBlock(call_id=call_id, content=(TextBlock("Seen."),)),)))
    return Request(model="m", messages=(*messages, Message("assistant", (TextBlock("Done."),)), messages[0]))


UNIQUE = ("toolu_01A09q90qw90lq917835lq9", "toolu_01HLewATBS5iGpaNRc9kYGvg")


def test_turns_with_globally_unique_calls_are_asked_for_by_these_first() -> None:
    request = agent_turns(*UNIQUE, "call_0")
    every = turns_of(request)
    first = Conversation(request).first_keys()
    assert first == [*every[0].calls, *every[1].calls, *keys_in(every[2:])]


@pytest.mark.parametrize(
    ("found", "further"),
    [
        ({0: b"a", 1: b"b"}, ()),
        ({0: b"a"}, (1,)),
        ({}, (0, 1)),
        ({0: b"a", 1: b"a"}, (0, 1)),
    ],
    ids=["each has its own", "one has none", "none has one", "two have the same"],
)
def test_the_other_keys_are_made_of_turns_that_calls_lead_to_no_reply_of_their_own(
    found: dict[int, bytes], further: tuple[int, ...]
) -> None:
    request = agent_turns(*UNIQUE)
    every = turns_of(request)
    conversation = Conversation(request)
    conversation.first_keys()
    calls = {every[place].calls[0]: value for place, value in found.items()}
    assert conversation.further_keys(calls) == [
        key for place in further for key in (every[place].exact, every[place].loose)
    ]
    history = conversation.history()
    assert [bool(turn.exact) for turn in history.turns] == [0 in further, 1 in further, True]
    whole = history_of(request)
    assert (history.exactly, history.loosely, history.states) == (whole.exactly, whole.loosely, whole.states)
    assert [history.turns[place] for place in further] == [whole.turns[place] for place in further]


def test_a_turn_whose_two_calls_lead_to_two_replies_is_asked_for_by_all_keys() -> None:
    calls = tuple(ToolCallBlock(id=call_id, name="look", arguments="{}") for call_id in UNIQUE)
    request = Request(model="m", messages=(Message("user", (TextBlock("Look."),)), Message("assistant", calls)))
    conversation = Conversation(request)
    one, other = conversation.first_keys()
    assert len(conversation.further_keys({one: b"a", other: b"b"})) == 2
    assert conversation.history() == history_of(request)

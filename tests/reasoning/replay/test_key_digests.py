"""The keys of earlier thinking are those under which stores hold it, whatever the texts are made of."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.reasoning.replay.keys import _turn_digest, _without_space, digest, history_of, reply_keys, turns_of
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
    assert len({*map(_turn_digest, said)}) == len(said)


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


STORED = [
    (
        "m8f47aa15642bf6af30ed11ed46f5a8",
        "lb743cd1c9218beb7d074b21f9d8db2",
        "c66125143f60f7b15d6218460acf63e",
        "sab4f3e7cbdc539c4887737d88bbc16",
    ),
    ("mbb2cdf21f4adcebfc4544cbdacb0a2", "l44ea42ca11b9de49a2b450a2c1a9bb"),
    ("ma7001d34f64c56e14bd0de513c6cfa", "lb2071df5c0ecc02e28dae1b26514ff"),
    ("m39ed47cfdb896bd17786723196740b", "l30ce0866a16d27a140527b4fedc7a6"),
]

"""Which calls are not answered by a kept reply, and why."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bardo.catalog.layer_rows import cache_rows
from bardo.context.cache.layer import (
    ALLOWABLE,
    has_iban_digits,
    has_luhn_digit,
    personal_data,
    refusal_of,
    refusal_of_reply,
    time_words,
)
from bardo.context.layer import KeptReply
from bardo.dialects import dialect
from bardo.values.blocks import (
    DocumentBlock,
    ImageBlock,
    Opaque,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.errors import MalformedReply
from bardo.values.events import Finish
from bardo.values.profile import InferenceProfile
from bardo.values.request import BardoOptions, CacheOptions, KeptAs, Message, Request, Sampling, Tool
from bardo.values.response import Response
from bardo.values.wire import Arrival
from support.growth import check_growth

PLAIN = "What is the capital of France?"


def said(*blocks: Any, role: Any = "user") -> Message:
    return Message(role, blocks)


def asking(text: str = PLAIN, *before: Message, **fields: Any) -> Request:
    return Request(**{"model": "m", "messages": (*before, said(TextBlock(text))), **fields})


def refusal(request: Request, *allowed: str, most: float = 1.0) -> str | None:
    return refusal_of(request, allowed, most)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (asking(), None),
        (asking("Hello", said(TextBlock("It is now your task to help."), role="system")), None),
        (asking(options=BardoOptions(private=True)), "private"),
        (asking(options=BardoOptions(cache=CacheOptions(mode="off"))), "no_store"),
        (asking(options=BardoOptions(cache=CacheOptions(mode="refresh"))), None),
        (asking(choices=2), "sampling"),
        (asking(sampling=Sampling(temperature=1.2)), "sampling"),
        (asking(sampling=Sampling(temperature=1.0)), None),
        (asking(options=BardoOptions(profile=InferenceProfile(temperature=1.4))), "sampling"),
        (asking(tools=(Tool(name="f", schema={}),)), "tools"),
        (asking(tools=(Tool(name="web", hosted=True),)), "hosted_tools"),
        (asking(extra={"web_search_options": {}}), "hosted_tools"),
        (asking(extra={"web_search": False}), None),
        (asking(model="openrouter/x:online"), "hosted_tools"),
        (asking(options=BardoOptions(profile=InferenceProfile(web_search=True))), "hosted_tools"),
        (asking(extra={"previous_response_id": "r"}), "opaque_state"),
        (asking(kept_as=KeptAs(id="r", previous="q")), "opaque_state"),
        (asking(kept_as=KeptAs(id="r")), None),
        (asking("x", said(TextBlock("x"), role="assistant")), "multi_turn"),
        (asking("x", said(ToolCallBlock(id="1", name="f"), role="assistant")), "tools"),
        (asking("x", said(ToolResultBlock(call_id="1"))), "tools"),
        (asking("x", said(ReasoningBlock(text="hm"), role="assistant")), "opaque_state"),
        (asking("x", said(TextBlock("x", (Opaque("signature", "s"),)), role="assistant")), "opaque_state"),
        (asking("x", said(ImageBlock(url="https://example.com/a.png"))), "media"),
        (asking("x", said(DocumentBlock(text="a"))), "media"),
        (asking("x", said(UnknownBlock("openai_chat", {}))), "media"),
        (asking("What is the weather today?"), "time_words"),
        (asking("Wie wird das Wetter heute?"), "time_words"),
        (asking("What happened this week in Rome?"), "time_words"),
        (asking("Quel temps fait-il aujourd'hui ?"), "time_words"),
        (asking("今天天气怎么样"), "time_words"),
        (asking("आज का मौसम"), "time_words"),
        (asking("Write to ada@example.org"), "pii"),
        (asking("x", said(TextBlock("The user is ada@example.org"), role="system")), "pii"),
        (asking("Pay with 4111 1111 1111 1111"), "pii"),
        (asking("Pay with 4111 1111 1111 1112"), None),
        (asking("To DE89 3704 0044 0532 0130 00"), "pii"),
        (asking("My number is 078-05-1120"), "pii"),
        (asking("Call +49 30 901820 please"), "pii"),
        (asking("Call (555) 123-4567 please"), "pii"),
        (asking("What is 12345678 * 87654321?"), None),
        (asking("Was 2024-01-31 a Wednesday? And 1,234,567.89?"), None),
    ],
)
def test_a_call_is_refused_for_what_makes_a_kept_reply_wrong(request_: Request, reason: str | None) -> None:
    assert refusal(request_) == reason


ASKED: dict[str, dict[str, Any]] = {
    "openai_chat": {"messages": [{"role": "user", "content": PLAIN}]},
    "openai_responses": {"input": PLAIN},
    "anthropic_messages": {"messages": [{"role": "user", "content": PLAIN}], "max_tokens": 9},
    "gemini_interactions": {"input": PLAIN},
}


@pytest.mark.parametrize(
    ("client", "field", "reason"),
    [
        ("openai_responses", {"previous_response_id": "resp_1"}, "opaque_state"),
        ("openai_responses", {"conversation": "conv_1"}, "opaque_state"),
        ("openai_responses", {"prompt": {"id": "pmpt_1"}}, "opaque_state"),
        ("openai_responses", {"background": True}, "opaque_state"),
        ("openai_chat", {"conversation": "conv_1"}, "opaque_state"),
        ("anthropic_messages", {"container": "container_1"}, "opaque_state"),
        ("anthropic_messages", {"thread": {"id": "thread_1"}}, "opaque_state"),
        ("gemini_interactions", {"previous_interaction_id": "i_1"}, "opaque_state"),
        ("openai_chat", {"logit_bias": {"1": 2}}, None),
        ("openai_responses", {"truncation": "auto"}, None),
        ("anthropic_messages", {"inference_geo": "eu"}, None),
    ],
)
def test_a_client_that_goes_on_from_what_a_server_keeps_is_refused(
    client: str, field: dict[str, Any], reason: str | None
) -> None:
    body = json.dumps({"model": "m", **ASKED[client], **field}).encode()
    assert refusal(dialect(client).decode_request(body, Arrival())) == reason


@pytest.mark.parametrize("reason", ALLOWABLE)
def test_a_reason_that_is_allowed_does_not_count_and_the_others_do(reason: str) -> None:
    request = {
        "multi_turn": asking("x", said(TextBlock("x"), role="assistant")),
        "tools": asking(tools=(Tool(name="f", schema={}),)),
        "time_words": asking("now"),
        "pii": asking("ada@example.org"),
        "sampling": asking(choices=2),
        "media": asking("x", said(ImageBlock(url="https://example.com/a.png"))),
    }[reason]
    assert refusal(request) == reason
    assert refusal(request, reason) is None
    others = [one for one in ALLOWABLE if one != reason]
    assert refusal(request, *others) == reason
    assert refusal(replace(request, options=BardoOptions(private=True)), *ALLOWABLE) == "private"


def test_what_is_signed_counts_also_where_tools_are_allowed() -> None:
    signed = said(ToolCallBlock(id="1", name="f", opaque=(Opaque("signature", "s"),)), role="assistant")
    assert refusal(asking("x", signed), *ALLOWABLE) == "opaque_state"
    result = said(ToolResultBlock(call_id="1", content=(TextBlock("ada@example.org"),)))
    assert refusal(asking("x", result), "tools") == "pii"


def test_what_an_operator_allows_uncovers_the_next_reason() -> None:
    request = asking("What is new today?", said(TextBlock("x"), role="assistant"))
    assert refusal(request, "multi_turn") == "time_words"


KEPT = KeptReply(provider="p", model="m", dialect="d", content_type="", body=b"x", streamed=False, kept_at=0.0)
WHOLE = Response(blocks=(TextBlock("yes"),), finish=Finish("stop"))


@pytest.mark.parametrize(
    ("response", "kept", "reason"),
    [
        (WHOLE, KEPT, None),
        (WHOLE, None, "too_large"),
        (Response(blocks=(TextBlock("ye"),), finish=Finish("length")), KEPT, "truncated"),
        (Response(blocks=(TextBlock("no"),), finish=Finish("refusal")), KEPT, "truncated"),
        (Response(finish=Finish("stop")), KEPT, "truncated"),
        (Response(blocks=(TextBlock("ye"),), error=MalformedReply("x")), KEPT, "error"),
    ],
)
def test_only_whole_replies_are_kept(response: Response, kept: KeptReply | None, reason: str | None) -> None:
    assert refusal_of_reply(response, kept) == reason


@given(st.sampled_from(cache_rows().time_words), st.data())
def test_each_time_word_is_found_wherever_it_stands(row: Any, data: st.DataObject) -> None:
    word = data.draw(st.sampled_from([*row.words, *row.phrases, *row.parts]))
    before, after = data.draw(st.sampled_from([("", ""), ("Tell me: ", "?"), ("«", "» …"), ("a, ", ", b")]))
    assert time_words().has(before + word + after)
    assert time_words().has(before + word.capitalize() + after)


def test_words_inside_others_are_not_time_words() -> None:
    for text in ("I know nothing of snow", "a currency is currant", "nowhere"):
        assert not time_words().has(text)


@given(st.text(alphabet="abcdefgh \n.,;:!?'\"", max_size=300))
def test_prose_without_digits_and_addresses_has_no_personal_data(text: str) -> None:
    assert not personal_data().has(text)


@given(st.integers(10**14, 10**15 - 1))
def test_each_card_number_has_one_right_last_digit(number: int) -> None:
    assert sum(has_luhn_digit(f"{number}{last}") for last in range(10)) == 1


def test_account_numbers_are_known_by_their_check_digits() -> None:
    assert has_iban_digits("GB82 WEST 1234 5698 7654 32")
    assert not has_iban_digits("GB83 WEST 1234 5698 7654 32")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("piece", ["1 ", "1-", "+1 ", "a@", "AB12 ", "(1", "this ", "a.b@c.", "-1"])
def test_texts_are_looked_at_in_linear_time(piece: str) -> None:
    def look(text: str) -> None:
        time_words().has(text)
        personal_data().has(text)

    check_growth(look, piece * 4_000, piece * 32_000, below=24)


@given(
    text=st.lists(
        st.sampled_from(
            ["now", "NOW", "today", "right", "at", "the", "moment", "What's", "x_today", "today's", "to", "day"]
        )
        | st.text(st.characters(max_codepoint=127), max_size=4),
        max_size=8,
    ).flatmap(lambda parts: st.sampled_from([" ", "\n", "-", "\x1f", ", "]).map(lambda sign: sign.join(parts)))
)
def test_words_of_time_are_found_in_ascii_as_in_any_other_text(text: str) -> None:
    assert time_words().has(text) == time_words().has(f"{text} \N{LATIN SMALL LETTER E WITH ACUTE}")


@pytest.mark.parametrize("before", range(65_536 - 40, 65_536 + 2, 3))
def test_a_long_text_is_searched_in_parts_and_nothing_is_lost_between_them(before: int) -> None:
    filler = ("so be it " * 8_000)[:before]
    behind = " and so be it" * 8_000
    assert personal_data().has(f"{filler} ann@example.org {behind}")
    assert personal_data().has(f"{filler} 4111 1111 1111 1111 {behind}")
    assert time_words().has(f"{filler} right now {behind}")
    assert not personal_data().has(filler + behind)
    assert not time_words().has(filler + behind)

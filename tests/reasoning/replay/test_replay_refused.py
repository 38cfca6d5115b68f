"""What a refusal of earlier state names, and the request without it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.catalog.load import builtin
from bardo.catalog.replay import Reader, builtin_replay
from bardo.reasoning.replay import named_states, without_refused, without_thinking_now
from bardo.values.blocks import Carried, Opaque, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import Message, ReasoningPolicy, Request

RULES = builtin_replay()
CLAUDE = "anthropic-claude-v1"
ONE, TWO = "gAAAone" + "x" * 30 + "11==", "gAAAtwo" + "y" * 30 + "22=="


def reader(preset: str, model: str) -> Reader:
    row = builtin().provider(preset)
    assert row is not None
    return RULES.reader(preset, row, model)


def thought(data: str, form: str = CLAUDE) -> ReasoningBlock:
    return ReasoningBlock(text=f"Thought {data[4:7]}.", format=form, opaque=(Opaque("signature", data, form),))


def turn(data: str, **fields: Any) -> Message:
    return Message("assistant", (thought(data), ToolCallBlock(id=data[4:7], name="look", arguments="{}")), **fields)


def answer(call_id: str) -> Message:
    return Message("user", (ToolResultBlock(call_id=call_id, content=(TextBlock("x"),)),))


def request(*, first: Carried | None = None) -> Request:
    messages = (
        Message("user", (TextBlock("Look."),)),
        turn(ONE, carried=first),
        answer("one"),
        turn(TWO),
        answer("two"),
    )
    return Request(model="m", messages=messages, reasoning=ReasoningPolicy(mode="effort", effort="low"))


def kept(asked: Request) -> set[str]:
    return {
        state.data
        for one in asked.messages
        for block in one.blocks
        if isinstance(block, ReasoningBlock)
        for state in block.opaque
    }


MESSAGES = {
    "messages": [
        {"content": "Look."},
        {"content": [{"type": "thinking", "signature": ONE}]},
        {},
        {"content": [{"signature": TWO}]},
    ]
}
INPUT = {
    "input": [
        {},
        {"type": "reasoning", "id": "rs_12345678ab", "encrypted_content": ONE},
        {},
        {"id": "rs_other", "encrypted_content": TWO},
    ]
}
CONTENTS = {"contents": [{}, {"parts": [{"thoughtSignature": ONE}]}, {}, {"parts": [{"thoughtSignature": TWO}]}]}


@pytest.mark.parametrize(
    ("body", "words", "named"),
    [
        (MESSAGES, "messages.1.content.0: Invalid `signature` in `thinking` block", {ONE}),
        (MESSAGES, "messages.3.content.0.thinking.signature: Field required", {TWO}),
        (MESSAGES, "messages.1.content.0 and messages.3.content.0 are invalid", {ONE, TWO}),
        (MESSAGES, "messages.9.content.0: Invalid `signature` in `thinking` block", set()),
        (MESSAGES, "messages.0.content.0: Invalid `signature`", set()),
        (MESSAGES, "Invalid `signature` in `thinking` block", set()),
        (INPUT, f"The encrypted content {TWO[:4]}...{TWO[-4:]} could not be verified.", {TWO}),
        (INPUT, "The encrypted content gAAA...zz== could not be verified.", set()),
        (INPUT, "The encrypted content for item rs_12345678ab could not be verified.", {ONE}),
        (INPUT, "Item 'rs_12345678ab' of type 'reasoning' was provided without its required following item.", {ONE}),
        (INPUT, "input[3].encrypted_content is invalid", {TWO}),
        (CONTENTS, "contents[1].parts[0]: Corrupted thought signature.", {ONE}),
        (CONTENTS, "Corrupted thought signature.", set()),
    ],
)
def test_a_refusal_names_states_by_their_place_their_letters_or_their_item(
    body: Any, words: str, named: set[str]
) -> None:
    assert named_states(request(), json.dumps(body).encode(), words) == named


def test_a_request_without_state_has_none_to_name() -> None:
    asked = Request(model="m", messages=(Message("user", (TextBlock("Look."),)),))
    assert named_states(asked, b"not JSON", "messages.0.content.0") == frozenset()


def test_only_what_is_named_is_left_out_and_all_of_it_where_nothing_is() -> None:
    at = reader("anthropic", "claude-sonnet-4-5")
    named = without_refused(request(), at, RULES, {ONE})
    assert kept(named.request) == {TWO}
    assert [one.why for one in named.degraded] == ["this provider refused it"]
    everything = without_refused(request(), at, RULES, None)
    assert not kept(everything.request)
    assert not without_refused(everything.request, at, RULES, None).altered


def test_fields_that_carry_the_same_state_go_with_it() -> None:
    first = Carried("openai_chat", {"reasoning_details": [{"signature": ONE}], "name": "x"})
    changed = without_refused(
        request(first=first), reader("openrouter", "anthropic/claude-sonnet-5"), RULES, {ONE}
    ).request
    assert changed.messages[1].carried == Carried("openai_chat", {"name": "x"})
    only = Carried("openai_chat", {"reasoning_details": [{"signature": ONE}]})
    changed = without_refused(
        request(first=only), reader("openrouter", "anthropic/claude-sonnet-5"), RULES, {ONE}
    ).request
    assert changed.messages[1].carried is None
    other = Carried("openai_chat", {"reasoning_details": [{"signature": TWO}]})
    changed = without_refused(
        request(first=other), reader("openrouter", "anthropic/claude-sonnet-5"), RULES, {ONE}
    ).request
    assert changed.messages[1].carried == other


def test_a_model_that_needs_its_thinking_is_asked_not_to_think() -> None:
    at = reader("openrouter", "anthropic/claude-sonnet-4.5")
    changed = without_refused(request(), at, RULES, None).request
    assert changed.reasoning == ReasoningPolicy(mode="off")
    kept_on = without_refused(request(), at, RULES, {ONE}).request
    assert kept_on.reasoning == request().reasoning


def test_thinking_can_be_turned_off_for_what_is_missing() -> None:
    changed = without_thinking_now(request(), reader("anthropic", "claude-sonnet-4-5"), RULES)
    assert changed.request.reasoning == ReasoningPolicy(mode="off")
    assert changed.altered
    assert [one.sent for one in changed.degraded] == ["off"]

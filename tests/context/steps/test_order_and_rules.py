"""The layers that move parts of a prompt, and that say rules again."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bardo.context.steps.order import Constraints, Reorder
from bardo.context.steps.settings import ConstraintRule, ConstraintsSettings, ReorderSettings
from bardo.values.blocks import Carried, DocumentBlock, TextBlock
from bardo.values.request import Message, Request, Tool
from context.steps.histories import agent_history, histories, said, user
from support.growth import check_growth
from support.layer_runs import ANSWERING, Memory, facts, run_layer

REORDER = Reorder(ReorderSettings(least_document=1))
BOUND = facts(replace(ANSWERING, model="claude-opus-5-5"))


def domain(label: str) -> SimpleNamespace:
    """Return what the layer `classify` finds."""
    return SimpleNamespace(guesses={"domain": SimpleNamespace(label=label, probability=0.9)})


def system(*texts: str, **carried: object) -> Message:
    fields = Carried("anthropic_messages", dict(carried)) if carried else None
    return Message(role="system", blocks=tuple(TextBlock(text, carried=fields) for text in texts))


def asked(*messages: Message, tools: tuple[Tool, ...] = ()) -> Request:
    return Request(model="m", messages=(*messages, user("Hello?")), tools=tools)


@pytest.mark.parametrize(
    "volatile",
    [
        "Today is 2026-11-23.",
        "It is November 23, 2026.",
        "It is 23 November 2026.",
        "The time is 14:05:10.",
        "Session 0b0e2f5e-9f4c-4b12-8d3a-0c8d5e6f7a81.",
        "Now: 1795447760.",
    ],
)
def test_what_differs_from_call_to_call_goes_behind_the_rest_of_the_system_prompt(volatile: str) -> None:
    passed = run_layer(REORDER, asked(system(volatile), system("You are a clerk.", "Be brief.")))
    texts = [
        block.text
        for message in passed.request.messages[:2]
        for block in message.blocks
        if isinstance(block, TextBlock)
    ]
    assert texts == ["You are a clerk.", "Be brief.", volatile]
    assert "system prompt" in passed.receipt.did
    assert passed.degraded


@pytest.mark.parametrize(
    "text", ["Version 3.11 of Python.", "Ports 8080 and 443.", "Chapter 12: the end", "At 3:1 odds."]
)
def test_what_only_looks_like_a_time_stays(text: str) -> None:
    request = asked(system(text, "You are a clerk."))
    assert run_layer(REORDER, request).request is request


def test_a_system_prompt_with_a_marker_of_the_client_stays() -> None:
    request = asked(system("Today is 2026-11-23.", "You are a clerk.", cache_control={"type": "ephemeral"}))
    assert run_layer(REORDER, request).request is request


def test_documents_of_the_first_question_come_before_its_words() -> None:
    document = DocumentBlock(text="A long text. " * 100, name="a.txt")
    first = Message(role="user", blocks=(TextBlock("What does it say?"), document))
    request = Request(
        model="m", messages=(first, said("Nothing."), Message(role="user", blocks=(TextBlock("And this?"), document)))
    )
    after = run_layer(REORDER, request).request
    assert after.messages[0].blocks == (document, TextBlock("What does it say?"))
    assert after.messages[1:] == request.messages[1:]


def test_tools_keep_the_order_that_they_had_first_and_new_ones_come_last() -> None:
    memory = Memory()
    tools = {name: Tool(name=name) for name in ("read", "write", "search", "test")}
    first = asked(tools=(tools["write"], tools["read"]))
    assert run_layer(REORDER, first, None, memory).request is first
    second = run_layer(REORDER, asked(tools=tuple(tools.values())), None, memory).request
    assert [tool.name for tool in second.tools] == ["write", "read", "search", "test"]
    third = run_layer(REORDER, asked(tools=(tools["test"], tools["search"], tools["write"])), None, memory).request
    assert [tool.name for tool in third.tools] == ["write", "search", "test"]


@given(request=histories())
def test_nothing_is_lost_and_no_turn_is_moved(request: Request) -> None:
    after = run_layer(REORDER, request).request
    assert [one.role for one in after.messages] == [one.role for one in request.messages]
    assert Counter(map(repr, _blocks(after))) == Counter(map(repr, _blocks(request)))
    assert run_layer(REORDER, after).request.messages == after.messages


def _blocks(request: Request) -> list[object]:
    return [block for message in request.messages for block in message.blocks]


def test_the_order_behind_bound_thinking_stays_where_it_is_not_known_that_it_was_another() -> None:
    request = asked(system("Today is 2026-11-23.", "You are a clerk."), user("Hi."), said("Hi."))
    assert run_layer(REORDER, request, BOUND).request is request
    begun = asked(system("Today is 2026-11-23.", "You are a clerk."))
    assert run_layer(REORDER, begun, BOUND).request is not begun


def rules(**settings: object) -> Constraints:
    defaults: dict[str, object] = {"above_tokens": 10, "every_tokens": 500, "must": ("Name sources.",)}
    return Constraints(ConstraintsSettings(**{**defaults, **settings}))  # type: ignore[arg-type]


def test_rules_are_said_again_behind_the_last_words_of_the_user() -> None:
    request = asked(user("x y " * 1_000), said("Yes."))
    passed = run_layer(rules(language="German"), request)
    assert passed.request.messages[:-1] == request.messages[:-1]
    assert passed.request.messages[-1].blocks[:-1] == request.messages[-1].blocks
    assert "Name sources.\nAnswer in German." in passed.request.messages[-1].text
    assert passed.degraded[0].sent == "text was added"


def test_they_stay_where_they_were_said_and_are_said_again_only_after_more() -> None:
    memory, layer = Memory(), rules()
    request = asked(user("x y " * 1_000), said("Yes."))
    first = run_layer(layer, request, None, memory).request
    second_asked = Request(model="m", messages=(*request.messages, said("Hm."), user("And?")))
    second = run_layer(layer, second_asked, None, memory).request
    assert second.messages[: len(first.messages)] == first.messages
    assert second.messages[-1] == second_asked.messages[-1]
    longer = Request(model="m", messages=(*second_asked.messages, said("x y " * 1_000), user("Now?")))
    third = run_layer(layer, longer, None, memory).request
    assert third.messages[: len(second.messages)] == second.messages
    assert "Name sources." in third.messages[-1].text


def test_nothing_stands_behind_results_of_tools() -> None:
    request = agent_history(["x y " * 1_000])
    assert run_layer(rules(), request).request is request


@pytest.mark.parametrize(
    ("found", "workload", "said_again"),
    [
        ({}, "", False),
        ({"classify": domain("defi")}, "", True),
        ({"classify": domain("law")}, "", False),
        ({}, "risk", False),
        ({"classify": domain("defi")}, "risk", True),
    ],
)
def test_a_rule_of_a_domain_is_said_only_there(found: dict[str, object], workload: str, said_again: bool) -> None:
    layer = rules(must=(), rules=(ConstraintRule(text="Name the chain.", domains=("defi",)),))
    request = asked(user("x y " * 1_000), said("Yes."))
    after = run_layer(layer, request, facts(found=found, workload=workload)).request
    assert ("Name the chain." in after.messages[-1].text) == said_again


def test_bardos_own_text_about_a_domain_is_added_only_where_it_is_wanted() -> None:
    request = asked(user("x y " * 1_000), said("Yes."))
    known = facts(found={"classify": domain("defi")})
    assert run_layer(rules(must=()), request, known).request is request
    assert "decimals" in run_layer(rules(must=(), enrich=("defi",)), request, known).request.messages[-1].text


@given(request=histories(), turns=st.integers(1, 3))
def test_what_the_client_sent_is_all_there(request: Request, turns: int) -> None:
    memory = Memory()
    for _ in range(turns):
        after = run_layer(rules(every_tokens=0), request, None, memory).request
        for one, other in zip(request.messages, after.messages, strict=True):
            assert other.blocks[: len(one.blocks)] == one.blocks


def test_time_is_linear_in_the_length_of_a_conversation() -> None:
    def work(turns: int) -> None:
        messages = tuple(message for number in range(turns) for message in (user(f"{number} x y " * 50), said("Yes.")))
        memory = Memory()
        for layer in (REORDER, rules(every_tokens=0)):
            run_layer(layer, asked(*messages), None, memory)

    check_growth(work, 100, 1_000, below=25)

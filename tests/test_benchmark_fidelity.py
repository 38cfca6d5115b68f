"""Requests reach providers as the collected facts say, where these lie beside the project: a sample of the benchmark's sweeps.

The expectations are read from the facts, and the bodies by the names of the providers' fields; bardo's rows are used for neither.
"""

from __future__ import annotations

import pytest
from benchmarks import fidelity_control, fidelity_replay, fidelity_replies, fidelity_structured
from benchmarks.fidelity import AIMS, Sweep, sweep, sweep_replies
from benchmarks.fidelity_control import ControlCase, Emitted, emitted
from benchmarks.fidelity_replay import ReplayCase
from benchmarks.fidelity_replies import differences
from benchmarks.fidelity_requests import SCHEMA, SIGNATURE, THOUGHT
from benchmarks.fidelity_structured import StructuredCase
from benchmarks.raw_dialects import read_reply
from benchmarks.wire_facts import ModelFact, providers

# Primes, so that every client and every kind of wish is in the sample.
SAMPLE = {"control": 53, "replay": 7, "structured": 3}
NOT_SPOKEN = "cohere/command-r-stream-10de433a.ndjson"
"""A stream of Cohere's first interface."""
ADAPTIVE = ModelFact("p", "m", {"control": ["effort"], "efforts": ["low", "high"], "omit": "on", "off": None})
BUDGET = ModelFact("p", "m", {"control": ["budget"], "budget": {"min": 1024, "max": 24576}, "off": {"x": 1}})


@pytest.mark.parametrize("name", AIMS)
def test_requests_reach_providers_as_the_facts_say(name: str) -> None:
    if not providers():
        pytest.skip("the collected facts are not on this machine")
    found = sweep(name, every=SAMPLE[name])
    assert found.count > 40
    assert found.percent >= AIMS[name], found.failed


def test_recorded_replies_reach_clients_whole_or_are_reported() -> None:
    if not fidelity_replies.recordings():
        pytest.skip("the recordings are not on this machine")
    whole, told = sweep_replies(every=37)
    assert whole.count > 200
    assert whole.percent > 90
    assert all(case.startswith(NOT_SPOKEN) for case in told.failed), told.failed


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({}, []),
        ({"content": "No."}, ["the text"]),
        ({"reasoning_content": None}, ["the thinking"]),
        ({"tool_calls": []}, ["the calls", "the end"]),
    ],
)
def test_what_a_reply_lacks_is_found(changed: dict[str, object], named: list[str]) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    message = {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm.", "tool_calls": [call]}
    said, got = (
        read_reply([{"choices": [{"index": 0, "message": one, "finish_reason": "stop"}]}], "openai_chat")
        for one in (message, message | changed)
    )
    assert [what for what, _ in differences(said, got)] == named


def test_a_body_is_read_by_the_names_of_its_fields() -> None:
    assert emitted({"thinking": {"type": "disabled"}}) == Emitted(off=True)
    assert emitted({"reasoning_effort": "none"}) == Emitted(off=True)
    assert emitted({"reasoning": {"effort": "high"}}) == Emitted(levels=frozenset({"high"}))
    assert emitted({"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}) == Emitted(off=True)
    assert emitted({"thinking": {"type": "enabled", "budget_tokens": 7}}) == Emitted(on=True, budgets=frozenset({7}))


@pytest.mark.parametrize(
    ("known", "asked", "body", "reported", "right"),
    [
        (ADAPTIVE, "low", {"reasoning_effort": "low"}, [], True),
        (ADAPTIVE, "low", {"reasoning_effort": "high"}, ["reasoning"], False),
        (ADAPTIVE, "medium", {"reasoning_effort": "low"}, [], False),
        (ADAPTIVE, "medium", {"reasoning_effort": "low"}, ["reasoning"], True),
        (ADAPTIVE, "off", {"reasoning_effort": "none"}, [], False),
        (ADAPTIVE, "off", {"reasoning_effort": "low"}, ["reasoning"], True),
        (BUDGET, 5000, {"thinking": {"type": "enabled", "budget_tokens": 5000}}, [], True),
        (BUDGET, 5000, {"thinking": {"type": "enabled", "budget_tokens": 1024}}, ["reasoning"], False),
        (BUDGET, 100, {"thinking": {"type": "enabled", "budget_tokens": 1024}}, [], False),
        (BUDGET, "off", {}, [], False),
    ],
)
def test_a_wrong_setting_of_thinking_is_found(
    known: ModelFact, asked: str | int, body: dict[str, object], reported: list[str], right: bool
) -> None:
    problem = fidelity_control.problem_of(ControlCase("openai_chat", known, asked), body, reported)
    assert (problem == "") == right, problem


def test_a_lost_thought_and_a_forged_signature_are_found() -> None:
    case = ReplayCase("anthropic_messages", "openai", "gpt-5.5", "plain")
    call = {"type": "function_call", "call_id": "c", "arguments": '{"city":"Ulm"}'}
    result = {"type": "function_call_output", "call_id": "c", "output": "It is 21 degrees."}
    assert "lost" in fidelity_replay.problem_of(case, {"input": [call, result]}, [])
    thought = {"type": "reasoning", "summary": [{"text": THOUGHT}], "encrypted_content": SIGNATURE}
    assert "another provider" in fidelity_replay.problem_of(case, {"input": [thought, call, result]}, [])
    assert "pair" in fidelity_replay.problem_of(case, {"input": [call, {**result, "call_id": "d"}]}, ["reasoning"])


def test_a_schema_at_the_wrong_place_is_found() -> None:
    right = {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}
    native = StructuredCase("openai_chat", "groq", "openai/gpt-oss-120b", native=True)
    other = StructuredCase("openai_chat", "zai", "glm-4.7", native=False)
    assert fidelity_structured.problem_of(native, right, []) == ""
    assert fidelity_structured.problem_of(native, {"format": SCHEMA}, []) != ""
    assert fidelity_structured.problem_of(other, right, ["response_format"]) != ""
    assert fidelity_structured.problem_of(other, {"messages": [str(SCHEMA)]}, ["response_format"]) == ""


def test_the_share_is_of_all_cases() -> None:
    assert Sweep(4, {"one": "wrong"}).percent == 75
    assert Sweep(0, {}).percent == 0

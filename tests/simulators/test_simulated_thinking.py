"""How a simulated model responds to settings of its thinking: in every dialect, repeatably, with more thinking for more."""

from __future__ import annotations

import json
from statistics import median
from typing import Any

import pytest

from bardo.simulators import ThinkingBehaviour
from bardo.simulators.delivery import Head, Send
from bardo.simulators.exchange import read_incoming
from bardo.simulators.thinking_behaviour import THINKING_BEHAVIOURS, BehaviourKind
from simulators.support import body_for, headers_for, path_for
from support.any_model import Simulator
from support.any_model import Simulator as Server

QUESTION = "Think well about this one: " + "how many primes are there below this number? " * 4

# preset: where its count of thinking stands, fields for little, for much, and for none
PLACES: dict[str, tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "openai_chat": (
        "usage.completion_tokens_details.reasoning_tokens",
        {"reasoning_effort": "low"},
        {"reasoning_effort": "high"},
        {"reasoning_effort": "none"},
    ),
    "openrouter": (
        "usage.completion_tokens_details.reasoning_tokens",
        {"reasoning": {"max_tokens": 300}},
        {"reasoning": {"max_tokens": 2000}},
        {"reasoning": {"enabled": False}},
    ),
    "openai_responses": (
        "usage.output_tokens_details.reasoning_tokens",
        {"reasoning": {"effort": "low"}},
        {"reasoning": {"effort": "high"}},
        {"reasoning": {"effort": "none"}},
    ),
    "gemini": (
        "usageMetadata.thoughtsTokenCount",
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": 300}}},
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": 2000}}},
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}},
    ),
}
each_place = pytest.mark.parametrize("preset", PLACES)


def answer(server: Server, preset: str, fields: dict[str, Any]) -> tuple[int, Any]:
    """Ask without a socket; give the status and the body."""
    body = {name: value for name, value in body_for(preset, question=QUESTION).items() if name not in _THINKING}
    path = path_for(preset, "any-model", streamed=False)
    raw = json.dumps({**body, **fields}).encode()
    actions = list(server.actions(read_incoming("POST", path, headers_for(preset), raw)))
    (head,) = [action for action in actions if isinstance(action, Head)]
    return head.status, json.loads(b"".join(action.data for action in actions if isinstance(action, Send)))


_THINKING = {"reasoning", "thinking", "generationConfig", "reasoning_effort"}


def tokens(server: Server, preset: str, fields: dict[str, Any]) -> int:
    status, value = answer(server, preset, fields)
    assert status == 200
    for name in PLACES[preset][0].split("."):
        value = value.get(name) or {}
    return value or 0


@each_place
def test_an_honoured_knob_has_it_think_more_and_not_at_all(preset: str) -> None:
    server = Simulator(preset, thinking_behaviour="honour")
    _, little, much, none = PLACES[preset]
    assert tokens(server, preset, little) * 2 < tokens(server, preset, much)
    assert tokens(server, preset, none) == 0


@each_place
def test_a_flattened_knob_has_it_think_alike(preset: str) -> None:
    server = Simulator(preset, thinking_behaviour=ThinkingBehaviour("flatten", noise=0))
    _, little, much, none = PLACES[preset]
    assert tokens(server, preset, little) == tokens(server, preset, much) == tokens(server, preset, {}) > 0
    assert tokens(server, preset, none) == 0


@each_place
def test_an_ignored_knob_turns_nothing_off(preset: str) -> None:
    server = Simulator(preset, thinking_behaviour=ThinkingBehaviour("ignore", noise=0))
    assert len({tokens(server, preset, fields) for fields in ({}, *PLACES[preset][1:])}) == 1


@each_place
def test_a_refused_knob_is_refused_and_nothing_else_is(preset: str) -> None:
    server = Simulator(preset, thinking_behaviour="refuse")
    assert [answer(server, preset, fields)[0] for fields in PLACES[preset][1:]] == [400, 400, 400]
    assert answer(server, preset, {})[0] == 200


@pytest.mark.parametrize("kind", THINKING_BEHAVIOURS)
def test_noise_is_the_same_at_every_run_and_spreads_around_the_middle(kind: BehaviourKind) -> None:
    first, second, other = (
        [tokens(Simulator("openai_chat", thinking_behaviour=one), "openai_chat", {}) for one in each]
        for each in (
            [ThinkingBehaviour(kind, 1)] * 3,
            [ThinkingBehaviour(kind, 1)] * 3,
            [ThinkingBehaviour(kind, 2)] * 3,
        )
    )
    assert first == second != other
    server = Simulator("openai_chat", thinking_behaviour=ThinkingBehaviour(kind, noise=0.2))
    spread = [tokens(server, "openai_chat", {}) for _ in range(30)]
    still = tokens(Simulator("openai_chat", thinking_behaviour=ThinkingBehaviour(kind, noise=0)), "openai_chat", {})
    assert len(set(spread)) > 20
    assert 0.85 * still < median(spread) < 1.15 * still
    assert 0.8 * still <= min(spread) <= max(spread) <= 1.2 * still


def test_where_thinking_is_not_counted_its_text_is_as_long() -> None:
    server = Simulator("llama_server", thinking_behaviour=ThinkingBehaviour("honour", noise=0))
    status, body = answer(server, "llama_server", {"thinking_budget_tokens": 300})
    assert status == 200
    assert len(body["choices"][0]["message"]["reasoning_content"]) == 300 * 4


def test_the_fields_of_a_conversation_are_no_knobs() -> None:
    server = Simulator("openai_chat", thinking_behaviour="refuse")
    tools = [{"type": "function", "function": {"name": "think", "parameters": {"properties": {"effort": {}}}}}]
    assert answer(server, "openai_chat", {"tools": tools})[0] == 200

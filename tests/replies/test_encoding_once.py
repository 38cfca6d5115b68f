"""A request is written once, or not at all where it goes on as it came; what is written over the caller's own fields is reported."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.planning.attempt import Attempt
from bardo.planning.planner import plan
from bardo.planning.route import Provider, Target
from bardo.values.request import Request
from bardo.values.wire import Arrival
from support.mistakes import dialect_with

CHAT, CLAUDE = "openai_chat", "anthropic_messages"
TARGETS = {
    CHAT: ("openai-chat", "gpt-4o"),
    CLAUDE: ("anthropic", "claude-sonnet-4-5"),
    "qwen": ("qwen", "qwen3-235b-a22b"),
}
HELLO = [{"role": "user", "content": "Hello."}]
BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 5000}}


def planned(place: str, asked: Request) -> Attempt:
    preset, model = TARGETS[place]
    row = builtin().provider(preset)
    assert row is not None
    return plan(asked, Target(provider=Provider(id=preset, row=row, base_url="http://host/v1"), model=model))


def asked(spoken: str, **fields: Any) -> Request:
    body = {"model": "m", "messages": HELLO, **({"max_tokens": 9000} if spoken == CLAUDE else {}), **fields}
    return dialect(spoken).decode_request(msgspec.json.encode(body), Arrival())


def writings(place: str, spoken: str, request: Request) -> int:
    """Return how often the body is written while the request is planned."""
    written: list[Request] = []
    encode = dialect(spoken).encode_body

    def counted(*given: Any) -> dict[str, Any]:
        written.append(given[0])
        return encode(*given)

    with dialect_with(spoken, encode_body=counted):
        planned(place, request)
    return len(written)


CALLS: dict[str, tuple[str, dict[str, Any], int]] = {
    "as it came": (CHAT, {"temperature": 0.5}, 0),
    "Claude's, as it came": (CLAUDE, {"stop_sequences": ["END"], **BUDGET}, 0),
    "thinking as bardo is asked": (CLAUDE, {"bardo": {"reasoning": 2000}}, 1),
    "a budget above the limit": (CLAUDE, {"max_tokens": 3000, **BUDGET}, 1),
    "a stop that is refused": (CLAUDE, {"stop_sequences": ["END", " "]}, 1),
    "a parameter that is refused": (CHAT, {"top_k": 3}, 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_request_in_the_targets_own_dialect_is_written_at_most_once(name: str) -> None:
    spoken, fields, times = CALLS[name]
    assert writings(spoken, spoken, asked(spoken, **fields)) == times


def test_a_stop_sequence_that_is_refused_is_left_out_and_reported() -> None:
    attempt = planned(CLAUDE, asked(CLAUDE, stop_sequences=["END", " "]))
    assert msgspec.json.decode(attempt.wire.body)["stop_sequences"] == ["END"]
    assert [one.what for one in attempt.degraded] == ["stop"]


@pytest.mark.parametrize(
    ("place", "spoken", "fields", "lost"),
    [
        ("qwen", CHAT, {"thinking_budget": 5000}, ("thinking_budget", 5000, 2000)),
        (CLAUDE, CLAUDE, BUDGET, ("thinking.budget_tokens", 5000, 2000)),
    ],
    ids=["Qwen's budget", "Claude's budget"],
)
def test_a_callers_own_field_that_bardos_option_replaces_is_reported(
    place: str, spoken: str, fields: dict[str, Any], lost: tuple[str, int, int]
) -> None:
    attempt = planned(place, asked(spoken, **fields, bardo={"reasoning": 2000}))
    assert [(one.what, one.asked, one.sent) for one in attempt.degraded] == [lost]
    assert planned(place, asked(spoken, **fields, bardo={"reasoning": 5000})).degraded == ()

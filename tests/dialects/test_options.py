"""The `bardo` object of a request body."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.dialects import dialect
from bardo.dialects.shared.options import INCLUDABLE, ON_IMPOSSIBLE, policy_of, read_options
from bardo.values.errors import InvalidRequest
from bardo.values.request import EFFORTS, BardoOptions, ReasoningPolicy
from bardo.values.wire import Arrival


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        (None, BardoOptions()),
        ({}, BardoOptions()),
        ({"include": ["reasoning_chain", "receipt"]}, BardoOptions(include=("reasoning_chain", "receipt"))),
        ({"include": []}, BardoOptions()),
        ({"reasoning": "omit"}, BardoOptions(omit_reasoning=True, chose_display=True)),
        ({"reasoning": "include"}, BardoOptions(chose_display=True)),
        ({"reasoning": None}, BardoOptions()),
        ({"reasoning": "off"}, BardoOptions(reasoning=ReasoningPolicy(mode="off"))),
        ({"reasoning": "none"}, BardoOptions(reasoning=ReasoningPolicy(mode="off"))),
        ({"reasoning": "auto"}, BardoOptions(reasoning=ReasoningPolicy(mode="auto"))),
        ({"reasoning": "xhigh"}, BardoOptions(reasoning=ReasoningPolicy(mode="effort", effort="xhigh"))),
        ({"reasoning": 2048}, BardoOptions(reasoning=ReasoningPolicy(mode="budget", budget=2048))),
        ({"reasoning": 0}, BardoOptions(reasoning=ReasoningPolicy(mode="budget", budget=0))),
        ({"on_impossible": None}, BardoOptions(on_impossible="floor")),
        ({"on_impossible": "fail"}, BardoOptions(on_impossible="fail")),
        (
            {"on_impossible": "reroute", "reasoning": "off"},
            BardoOptions(on_impossible="reroute", reasoning=ReasoningPolicy(mode="off")),
        ),
    ],
)
def test_what_may_be_asked(asked: Any, options: BardoOptions) -> None:
    assert read_options({"bardo": asked, "model": "m"}) == options


def test_nothing_asked_is_nothing_special() -> None:
    assert read_options({"model": "m"}) == BardoOptions()


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ("omit", "bardo"),
        ({"include": "receipt"}, "bardo.include"),
        ({"include": ["receipts"]}, "bardo.include[0]"),
        ({"include": ["receipt", 1]}, "bardo.include[1]"),
        ({"reasoning": "hide"}, "bardo.reasoning"),
        ({"reasoning": True}, "bardo.reasoning"),
        ({"reasoning": -1}, "bardo.reasoning"),
        ({"reasoning": 1.5}, "bardo.reasoning"),
        ({"reasoning": ["low"]}, "bardo.reasoning"),
        ({"reasoning": {"effort": "low"}}, "bardo.reasoning"),
        ({"on_impossible": "despair"}, "bardo.on_impossible"),
        ({"on_impossible": True}, "bardo.on_impossible"),
        ({"allow_loss": "thread"}, "bardo.allow_loss"),
        ({"allow_loss": ["thread", 1]}, "bardo.allow_loss[1]"),
        ({"structured": "json"}, "bardo.structured"),
    ],
)
def test_an_error_names_the_place(asked: Any, param: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        read_options({"bardo": asked})
    assert refusal.value.param == param
    assert param in refusal.value.message


def test_an_unknown_policy_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        read_options({"bardo": {"reasoning": "deep"}})
    assert all(word in refusal.value.hint for word in ("off", "auto", *EFFORTS, "include", "omit", "tokens"))
    with pytest.raises(InvalidRequest) as elsewhere:
        policy_of("deep", "reasoning")
    assert "omit" not in elsewhere.value.hint


def test_an_unknown_choice_where_off_is_impossible_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        read_options({"bardo": {"on_impossible": "despair"}})
    assert all(name in refusal.value.hint for name in ON_IMPOSSIBLE)


def test_an_unknown_part_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        read_options({"bardo": {"include": ["x"]}})
    assert all(name in refusal.value.hint for name in INCLUDABLE)


@pytest.mark.parametrize(
    ("asked", "param", "nearest"),
    [
        ({"reasonning": "low"}, "bardo.reasonning", "bardo.reasoning"),
        ({"includes": ["receipt"]}, "bardo.includes", "bardo.include"),
        ({"include": ["receipt"], "on_impossble": "fail"}, "bardo.on_impossble", "bardo.on_impossible"),
        ({"allow_losses": ["thread"]}, "bardo.allow_losses", "bardo.allow_loss"),
        ({"structured": {"retry": 1}}, "bardo.structured.retry", "bardo.structured.retries"),
        ({"structured": {"mode": "none", "modus": 1}}, "bardo.structured.modus", "bardo.structured.mode"),
        ({"zzz": None}, "bardo.zzz", "include"),
    ],
)
def test_an_unknown_key_is_refused_and_the_nearest_known_one_is_named(asked: Any, param: str, nearest: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        read_options({"bardo": asked})
    assert refusal.value.param == param
    assert param in refusal.value.message
    assert nearest in refusal.value.hint


BODIES: dict[str, dict[str, Any]] = {
    "openai_chat": {"model": "m", "messages": [{"role": "user", "content": "Hello."}]},
    "openai_responses": {"model": "m", "input": "Hello."},
    "anthropic_messages": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello."}]},
    "gemini": {"contents": [{"parts": [{"text": "Hello."}]}]},
}


@pytest.mark.parametrize("spoken", BODIES)
def test_every_client_dialect_refuses_a_key_that_bardo_does_not_know(spoken: str) -> None:
    known, unknown = (
        msgspec.json.encode({**BODIES[spoken], "bardo": {name: ["thread"]}}) for name in ("allow_loss", "allowed_loss")
    )
    read = dialect(spoken).decode_request
    assert read(known, Arrival(model="m")).options.allow_loss == ("thread",)
    with pytest.raises(InvalidRequest, match="allowed_loss") as refusal:
        read(unknown, Arrival(model="m"))
    assert "bardo.allow_loss" in refusal.value.hint

"""The headers by which an agent names itself and its session, and the questions it asks before: as its own API takes them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.any_model import Simulator
from support.gateway import House, house, model_of
from support.talk import ask, body_for, request

NAMES = {
    "user-agent": "claude-cli/2.1 (external, cli)",
    "x-app": "cli",
    "x-claude-code-session-id": "s-1",
    "session-id": "s-2",
}


@pytest.fixture(scope="module")
def town() -> Iterator[House]:
    with house([Simulator("anthropic"), Simulator("deepseek")]) as running:
        yield running


def test_they_go_to_a_provider_of_the_clients_dialect(town: House) -> None:
    answer = ask(town.address, "anthropic_messages", model_of("anthropic"), headers=NAMES)
    sent = {name.lower(): value for name, value in town.arrived("anthropic")[-1].headers.items()}
    assert answer.status == 200
    assert {name: sent.get(name) for name in NAMES} == NAMES


def test_no_other_provider_learns_of_them(town: House) -> None:
    answer = ask(town.address, "anthropic_messages", model_of("deepseek"), headers=NAMES)
    sent = {name.lower(): value for name, value in town.arrived("deepseek")[-1].headers.items()}
    assert not {name for name, value in NAMES.items() if sent.get(name) == value}
    assert "user-agent" not in answer.headers.get("x-bardo-degraded", "")


def test_a_query_of_claude_code_is_taken(town: House) -> None:
    body = body_for("anthropic_messages", model_of("anthropic"))
    assert request(town.address, "POST", "/v1/messages?beta=true", body).status == 200


def test_somebody_is_there(town: House) -> None:
    answer = request(town.address, "HEAD", "/", None)
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["request-id"]

"""The simulated Anthropic refuses markers that the real one refuses, and counts what it reads from its cache and writes to it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.simulators.delivery import Head, Send
from simulators.support import incoming
from support.any_model import Simulator

LONG = "Rules of the house. " * 400
MARKER = {"type": "ephemeral"}


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "claude-sonnet-5", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}], **fields}


def marked(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, "cache_control": MARKER, **fields}


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("five", body(system=[marked(str(n)) for n in range(5)]), "A maximum of 4 blocks"),
    ("four and the whole", body(system=[marked(str(n)) for n in range(4)], cache_control=MARKER), "A maximum of 4 blocks"),
    ("an empty text", body(system=[marked("")]), "cannot be set for empty text blocks"),
    ("another duration", body(system=[marked("x", cache_control={"type": "ephemeral", "ttl": "2h"})]), "Input should be '5m' or '1h'"),
]  # fmt: skip


def ask(simulator: Simulator, asked: dict[str, Any]) -> tuple[int, Any]:
    """Return the status and the body of a reply."""
    actions = list(simulator.actions(incoming("anthropic", asked)))
    head = actions[0]
    assert isinstance(head, Head)
    return head.status, json.loads(b"".join(action.data for action in actions if isinstance(action, Send)))


@pytest.mark.parametrize(("asked", "said"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_markers_that_the_provider_refuses_are_refused(asked: dict[str, Any], said: str) -> None:
    status, reply = ask(Simulator("anthropic"), asked)
    assert status == 400
    assert said in reply["error"]["message"]


def counts(simulator: Simulator, asked: dict[str, Any]) -> tuple[int, int]:
    status, reply = ask(simulator, asked)
    assert status == 200
    return reply["usage"]["cache_read_input_tokens"], reply["usage"]["cache_creation_input_tokens"]


def test_what_was_written_is_read_the_next_time() -> None:
    simulator, asked = Simulator("anthropic"), body(system=[marked(LONG)])
    read, written = counts(simulator, asked)
    assert read == 0
    assert written > 1024
    assert counts(simulator, asked) == (written, 0)


def test_a_longer_prefix_reads_the_shorter_one_and_writes_the_rest() -> None:
    simulator = Simulator("anthropic")
    _, written = counts(simulator, body(system=[marked(LONG)]))
    read, further = counts(simulator, body(system=[marked(LONG), marked(LONG)]))
    assert read == written
    assert further > 1024


@pytest.mark.parametrize(
    "asked", [body(system=LONG), body(system=[marked("Be kind.")])], ids=["no marker", "too short"]
)
def test_what_is_not_marked_or_too_short_is_not_cached(asked: dict[str, Any]) -> None:
    simulator = Simulator("anthropic")
    assert [counts(simulator, asked), counts(simulator, asked)] == [(0, 0), (0, 0)]


def test_another_beginning_reads_nothing() -> None:
    simulator = Simulator("anthropic")
    counts(simulator, body(system=[marked(LONG)]))
    assert counts(simulator, body(system=[marked("08:00 " + LONG)]))[0] == 0

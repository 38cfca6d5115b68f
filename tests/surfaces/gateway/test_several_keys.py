"""A provider with several keys: calls take turns, a conversation stays with its key, and a key that is limited is passed over at once."""

from __future__ import annotations

import json
import logging
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import anthropic
import openai
import pytest

from bardo.simulators import Fault, Incoming
from bardo.simulators.delivery import Action
from support.any_model import Simulator
from support.gateway import House, house
from support.talk import ask

KEYS = {"KEY_ONE": "sk-first-0123456789abcdef", "KEY_TWO": "sk-second-0123456789abcdef"}
MODEL = "shared-model"


class ByKey(Simulator):
    """A simulator that fails for some keys only."""

    def __init__(self, preset: str, **faults: Fault) -> None:
        super().__init__(preset)
        self.faults = faults
        self.came: list[str] = []

    def actions(self, incoming: Incoming) -> Iterator[Action]:
        key = key_of(incoming)
        if incoming.method == "POST":
            self.came.append(key)
        self.fail(self.faults.get(key))
        yield from super().actions(incoming)


def key_of(incoming: Incoming) -> str:
    """Return the name of the key that a request came with."""
    shown = incoming.headers.get("authorization", incoming.headers.get("x-api-key", ""))
    return next((name for name, key in KEYS.items() if key in shown), "none")


def keyed(simulator: Simulator, environment: dict[str, str] | None = None) -> AbstractContextManager[House]:
    each = {"models": (MODEL, "text-embedding-3-small"), "api_key_env": ("KEY_ONE", "KEY_TWO")}
    return house([simulator], each=each, environment=KEYS if environment is None else environment)


def health_of(running: House, provider: str) -> Any:
    with urllib.request.urlopen(f"{running.address}/v1/bardo/health") as reply:
        body = reply.read()
    assert not any(key.encode() in body for key in KEYS.values())
    (found,) = [one for one in json.loads(body)["providers"] if one["provider"] == provider]
    return found


def test_two_conversations_keep_their_keys_with_openais_library() -> None:
    simulator = ByKey("openai_chat")
    with keyed(simulator) as running:
        client = openai.OpenAI(base_url=f"{running.address}/v1", api_key="none", max_retries=0)
        talks: dict[str, list[Any]] = {"first": [], "second": []}
        for turn in range(4):
            for name, messages in talks.items():
                messages.append({"role": "user", "content": f"{name}, turn {turn}"})
                reply = client.chat.completions.create(model=MODEL, messages=messages)
                messages.append({"role": "assistant", "content": reply.choices[0].message.content})
        assert simulator.came in (["KEY_ONE", "KEY_TWO"] * 4, ["KEY_TWO", "KEY_ONE"] * 4)


def test_new_conversations_are_spread_with_anthropics_library() -> None:
    simulator = ByKey("anthropic")
    with keyed(simulator) as running:
        client = anthropic.Anthropic(base_url=running.address, api_key="none", max_retries=0)
        for place in range(10):
            message = {"role": "user", "content": f"conversation {place}"}
            with client.messages.stream(model=MODEL, max_tokens=100, messages=[message]) as stream:  # type: ignore[list-item]
                assert stream.get_final_text()
        assert Counter(simulator.came) == {"KEY_ONE": 5, "KEY_TWO": 5}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("status", [429, 401, 402, 403])
def test_a_call_goes_at_once_to_the_other_key(status: int, stream: bool) -> None:
    simulator = ByKey("openai_chat", KEY_ONE=Fault("status", status=status, retry_after=60))
    with keyed(simulator) as running:
        for _ in range(4):
            assert ask(running.address, "openai_chat", MODEL, stream=stream).status == 200
        assert simulator.came[:2] == ["KEY_ONE", "KEY_TWO"]
        first = next(row for row in running.log.rows if row.attempts == 2)
        assert [(one.cause, one.key) for one in first.attempt_records] == [("first", "KEY_ONE"), ("retry", "KEY_TWO")]
        if status in (429, 401):
            assert simulator.came == ["KEY_ONE", *["KEY_TWO"] * 4]
        assert health_of(running, "openai_chat")["connection"]["state"] != "down"


def test_when_every_key_is_limited_the_client_is_told_and_nothing_is_asked_twice() -> None:
    limited = Fault("status", status=429, retry_after=60)
    simulator = ByKey("openai_chat", KEY_ONE=limited, KEY_TWO=limited)
    with keyed(simulator) as running:
        answer = ask(running.address, "openai_chat", MODEL)
        assert (answer.status, answer.headers["retry-after"]) == (429, "60")
        assert sorted(simulator.came) == ["KEY_ONE", "KEY_TWO"]
        found = health_of(running, "openai_chat")
        assert [one["state"] for one in found["keys"]] == ["resting", "resting"]
        assert found["models"] == []


def test_vectors_go_to_the_other_key_too() -> None:
    simulator = ByKey("openai_chat", KEY_ONE=Fault("status", status=429, retry_after=60))
    with keyed(simulator) as running:
        client = openai.OpenAI(base_url=f"{running.address}/v1", api_key="none", max_retries=0)
        assert client.embeddings.create(model="openai_chat/text-embedding-3-small", input="hello").data
        assert simulator.came == ["KEY_ONE", "KEY_TWO"]


def test_a_key_that_is_not_set_is_warned_of_by_its_variable(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    simulator = ByKey("openai_chat")
    with keyed(simulator, {"KEY_TWO": KEYS["KEY_TWO"]}) as running:
        for _ in range(3):
            assert ask(running.address, "openai_chat", MODEL).status == 200
        keys = {one["label"]: one["state"] for one in health_of(running, "openai_chat")["keys"]}
        assert keys == {"KEY_TWO": "ok", "KEY_ONE": "missing"}
    assert set(simulator.came) == {"KEY_TWO"}
    assert [record.getMessage() for record in caplog.records if record.name == "bardo.keys"] == [
        "KEY_ONE, one of the keys of openai_chat, is not set"
    ]


def test_without_any_key_the_error_names_the_variables() -> None:
    with keyed(ByKey("openai_chat"), {}) as running:
        answer = ask(running.address, "openai_chat", MODEL)
        assert answer.status == 401
        assert "set KEY_ONE or KEY_TWO" in answer.text


def test_a_refused_key_is_warned_of_once_by_its_variable(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with keyed(ByKey("openai_chat", KEY_ONE=Fault("status", status=401))) as running:
        for _ in range(3):
            assert ask(running.address, "openai_chat", MODEL).status == 200
    said = [record.getMessage() for record in caplog.records if record.name == "bardo.health"]
    assert said == ["openai_chat refuses the key in KEY_ONE (401)"]


def test_no_key_reaches_a_client_that_is_told_of_another_one() -> None:
    """A provider may quote a key in its refusal: that of the call, or another of the same account."""
    simulator = ByKey("openai_chat", KEY_ONE=Fault("status", status=401), KEY_TWO=Fault("status", status=401))
    with keyed(simulator) as running:
        answer = ask(running.address, "openai_chat", MODEL)
    assert answer.status == 401
    assert not any(key in answer.text for key in KEYS.values())

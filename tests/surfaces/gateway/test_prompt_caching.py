"""Prompt caching through a gateway, with Anthropic's and OpenAI's clients: what is marked, what it saves, and what is never cached."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import anthropic
import pytest

from support.any_model import Simulator
from support.gateway import House, house
from support.sdk import anthropic_client, openai_client

MODEL = "claude-sonnet-5"
RULES = "".join(f"Rule {number} of the house says what to do. " for number in range(150))
MARKER = {"type": "ephemeral"}


def simulators() -> list[Simulator]:
    return [Simulator("anthropic", models=[MODEL]), Simulator("openai_chat", models=["gpt-4.1"])]


@pytest.fixture(scope="module")
def hinting() -> Iterator[House]:
    with house(simulators(), toml='[inference.caching]\ncalls = "all"\n') as it:
        yield it


@pytest.fixture(scope="module")
def plain() -> Iterator[House]:
    with house(simulators()) as it:
        yield it


def ask(house: House, system: Any = RULES, question: str = "1161?", **fields: Any) -> anthropic.types.Message:
    with closing(anthropic_client(house.address)) as client:
        message: anthropic.types.Message = client.messages.create(
            model=MODEL, max_tokens=100, system=system, messages=[{"role": "user", "content": question}], **fields
        )
        return message


def test_the_second_call_reads_what_the_first_one_wrote_and_the_log_says_what_it_saved(hinting: House) -> None:
    # Words of this test alone: another may have written the usual ones already.
    rules = f"First of all, be brief. {RULES}"
    first, second = ask(hinting, rules, "one?"), ask(hinting, rules, "two?")
    assert hinting.last("anthropic")["system"] == [{"type": "text", "text": rules, "cache_control": MARKER}]
    written = first.usage.cache_creation_input_tokens
    assert written is not None
    assert written > 1024
    assert second.usage.cache_read_input_tokens == written
    row = hinting.log.wait(lambda row: row.cached_input_tokens == written)[0]
    # $2 per million tokens of plain input, of which one that is read from the cache costs a tenth.
    assert row.cache_saved_nanos == written * 1800
    assert row.cost_parts is not None
    assert row.cost_parts["cache_read"] == written * 200


def test_the_receipt_says_what_was_added(hinting: House) -> None:
    answer = ask(hinting, extra_body={"bardo": {"include": ["receipt"]}})
    extra = answer.model_extra
    assert extra is not None
    assert extra["bardo"]["receipt"]["prompt_caching"] == {"markers": ["system"], "key": "", "kept": ""}


@pytest.mark.parametrize("stream", [False, True])
def test_a_clients_own_marker_stays_alone(hinting: House, stream: bool) -> None:
    system: Any = [{"type": "text", "text": RULES}, {"type": "text", "text": "Own.", "cache_control": MARKER}]
    with closing(anthropic_client(hinting.address)) as client:
        turns: Any = [{"role": "user", "content": "1161?"}]
        made = client.messages.create(model=MODEL, max_tokens=9, system=system, messages=turns, stream=stream)
        if stream:
            assert list(made)
    assert hinting.last("anthropic")["system"] == system


def test_without_the_setting_nothing_is_added(plain: House) -> None:
    ask(plain)
    assert plain.last("anthropic")["system"] == RULES
    with closing(openai_client(plain.address)) as client:
        client.chat.completions.create(model="gpt-4.1", messages=[{"role": "user", "content": "1161?"}])
    assert "prompt_cache_key" not in plain.last("openai_chat")


def test_calls_that_begin_alike_have_one_key(hinting: House) -> None:
    keys = []
    with closing(openai_client(hinting.address)) as client:
        for system in ("a", "a", "b"):
            turns: Any = [{"role": "system", "content": system}, {"role": "user", "content": "1161?"}]
            client.chat.completions.create(model="gpt-4.1", messages=turns)
            keys.append(hinting.last("openai_chat")["prompt_cache_key"])
    assert keys[0] == keys[1] != keys[2]


def test_a_client_of_chat_gets_markers_at_anthropic_too(hinting: House) -> None:
    with closing(openai_client(hinting.address)) as client:
        turns: Any = [{"role": "system", "content": RULES}, {"role": "user", "content": "1161?"}]
        client.chat.completions.create(model=MODEL, messages=turns)
    assert hinting.last("anthropic")["system"][-1]["cache_control"] == MARKER


def test_more_than_four_markers_are_refused_by_the_provider(hinting: House) -> None:
    system: Any = [{"type": "text", "text": f"Rule {n}.", "cache_control": MARKER} for n in range(5)]
    with pytest.raises(anthropic.BadRequestError, match="A maximum of 4 blocks with cache_control"):
        ask(hinting, system)


def test_a_clock_in_the_prompt_is_reported_to_the_caller_and_warned_of_once(
    plain: House, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(openai_client(plain.address)) as client, caplog.at_level(logging.WARNING, "bardo.caching"):
        said = []
        for minute in range(7):
            turns: Any = [
                {"role": "system", "content": f"It is 08:{minute:02}. {RULES}"},
                {"role": "user", "content": "1161?"},
            ]
            reply = client.chat.completions.with_raw_response.create(model="gpt-4.1", messages=turns)
            said.append("prompt_cache" in reply.headers.get("x-bardo-degraded", ""))
    assert said == [False] * 4 + [True] * 3
    assert len([record for record in caplog.records if record.name == "bardo.caching"]) == 1
    assert RULES[:20] not in caplog.text

"""Reasoning items of a host that is not OpenAI are labelled as its own, and nobody else is sent them as OpenAI's."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.streams.frames import Frame
from bardo.values.blocks import Opaque, ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.events import Event, OpaqueState, ThinkStart
from bardo.values.request import Message, Request

XAI, OPENAI = "xai-responses-v1", "openai-responses-v1"
REPLY = {
    "object": "response",
    "status": "completed",
    "output": [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "cipher"}],
}


def read(preset: str) -> list[Event]:
    row = builtin().provider(preset)
    assert row is not None
    decoder = dialect("openai_responses").open_decoder(row)
    return [*decoder.feed(Frame(data=json.dumps(REPLY).encode())), *decoder.finish()]


def sent(preset: str, form: str) -> list[dict[str, Any]]:
    row = builtin().provider(preset)
    assert row is not None
    thought = ReasoningBlock(format=form, opaque=(Opaque("encrypted", "cipher", form),))
    turn = Message("assistant", (thought, ToolCallBlock(id="c1", name="weather")))
    request = Request(model="m", messages=(Message("user", (TextBlock("Hi"),)), turn))
    body = msgspec.json.decode(dialect("openai_responses").encode_request(request, row).body)
    return [item for item in body["input"] if item["type"] == "reasoning"]


@pytest.mark.parametrize(("preset", "form"), [("xai-responses", XAI), ("openai", OPENAI)])
def test_a_hosts_own_name_stands_on_what_it_sends(preset: str, form: str) -> None:
    events = read(preset)
    assert {event.format for event in events if isinstance(event, ThinkStart)} == {form}
    assert {event.opaque.format for event in events if isinstance(event, OpaqueState)} == {form}


@pytest.mark.parametrize(("preset", "form"), [("xai-responses", XAI), ("openai", OPENAI)])
def test_it_gets_its_own_back(preset: str, form: str) -> None:
    assert sent(preset, form) == [{"type": "reasoning", "summary": [], "encrypted_content": "cipher"}]


def test_openai_does_not_get_it() -> None:
    assert sent("openai", XAI) == []

"""Partial answers in the streams of the further clients: their official libraries pass over them, and a binary stream has no place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from bardo.simulators import Script, Turn
from support.any_model import Simulator
from support.gateway import House, house
from support.patience import PATIENCE
from support.talk import ask

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
}
GOOD = {"city": "Paris", "days": 3}
MODEL = "deepseek/deepseek-chat"
INCLUDE = {"x-bardo-include": "partials"}


@pytest.fixture(scope="module")
def typed() -> Iterator[House]:
    with house([Simulator("deepseek", script=Script((Turn(text=json.dumps(GOOD)),)))]) as running:
        yield running


def partials_in(lines: list[Any]) -> list[Any]:
    return [line["bardo"]["partial"] for line in lines if "partial" in line.get("bardo", {})]


@pytest.mark.parametrize("client", ["ollama", "ollama_generate"])
def test_ollamas_lines_hold_them(typed: House, client: str) -> None:
    answer = ask(typed.address, client, MODEL, stream=True, headers=INCLUDE, format=SCHEMA)
    lines = [json.loads(line) for line in answer.body.splitlines()]
    assert partials_in(lines)[-1] == GOOD
    assert not any(line["done"] for line in lines if "partial" in line.get("bardo", {}))


def test_ollamas_library_passes_over_them(typed: House) -> None:
    import ollama

    with ollama.Client(typed.address, headers=INCLUDE, timeout=PATIENCE) as client:
        chat = client.chat(MODEL, [{"role": "user", "content": "Where?"}], format=SCHEMA, stream=True)
        assert json.loads("".join(line.message.content or "" for line in chat)) == GOOD
        prompt = client.generate(MODEL, "Where?", format=SCHEMA, stream=True)
        assert json.loads("".join(line.response or "" for line in prompt)) == GOOD


def test_coheres_library_passes_over_them(typed: House) -> None:
    import cohere

    client = cohere.ClientV2(api_key="any", base_url=typed.address, timeout=PATIENCE, max_retries=0)
    events = client.chat_stream(
        model=MODEL,
        messages=[{"role": "user", "content": "Where?"}],  # type: ignore[list-item]
        response_format={"type": "json_object", "json_schema": SCHEMA},  # type: ignore[arg-type]
        request_options={"additional_headers": INCLUDE},
    )
    pieces = [event.delta.message.content.text for event in events if event.type == "content-delta"]  # type: ignore[union-attr]
    assert json.loads("".join(piece or "" for piece in pieces)) == GOOD


@pytest.mark.parametrize("client", ["bedrock_converse", "bedrock_invoke"])
def test_a_binary_stream_has_no_place_for_them(typed: House, client: str) -> None:
    answer = ask(typed.address, client, MODEL, stream=True, headers=INCLUDE)
    assert answer.status == 400
    assert "partial answers" in answer.json["message"]
    assert ask(typed.address, client, MODEL, headers=INCLUDE).status == 200

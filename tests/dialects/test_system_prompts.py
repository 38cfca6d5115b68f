"""What a client says as the system or the developer, before the conversation and within it, as each dialect is given it."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.values.request import Request
from bardo.values.wire import Arrival


def responses() -> Request:
    said = [
        ("developer", ["P1"]),
        ("system", ["P2", "P3"]),
        ("user", ["u"]),
        ("assistant", ["a"]),
        ("developer", ["M"]),
        ("user", ["v"]),
    ]
    items = [
        {
            "role": role,
            "content": [{"type": "output_text" if role == "assistant" else "input_text", "text": one} for one in texts],
        }
        for role, texts in said
    ]
    return dialect("openai_responses").decode_request(json.dumps({"model": "m", "input": items}).encode(), Arrival())


def messages() -> Request:
    system = [{"type": "text", "text": "P1"}, {"type": "text", "text": "P2"}]
    body = {"model": "m", "max_tokens": 9, "system": system, "messages": [{"role": "user", "content": "u"}]}
    return dialect("anthropic_messages").decode_request(json.dumps(body).encode(), Arrival())


def sent(request: Request, spoken: str, model: str = "m") -> tuple[dict[str, Any], list[str]]:
    row = next(row for row in builtin().providers if row.dialect == spoken)
    wire = dialect(spoken).encode_request(msgspec.structs.replace(request, model=model), row)
    return json.loads(wire.body), [one.what for one in wire.degraded]


@pytest.mark.parametrize(
    ("model", "role"), [("claude-opus-4-8", "system"), ("claude-sonnet-5-5", "system"), ("claude-sonnet-4-5", "user")]
)
def test_developer_items_are_the_system_of_a_claude_model(model: str, role: str) -> None:
    body, lost = sent(responses(), "anthropic_messages", model)
    assert [part["text"] for part in body["system"]] == ["P1", "P2", "P3"]
    assert [message["role"] for message in body["messages"]][:3] == ["user", "assistant", role]
    assert "role" not in lost
    assert ("system" in lost) == (role == "user")


@pytest.mark.parametrize(
    ("spoken", "field", "expected"),
    [
        ("openai_responses", "instructions", "P1\n\nP2"),
        ("gemini_interactions", "system_instruction", "P1\n\nP2"),
        ("gemini", "systemInstruction", {"parts": [{"text": "P1"}, {"text": "P2"}]}),
        ("bedrock_converse", "system", [{"text": "P1"}, {"text": "P2"}]),
    ],
)
def test_blocks_of_a_system_prompt_are_paragraphs(spoken: str, field: str, expected: Any) -> None:
    assert sent(messages(), spoken)[0][field] == expected


@pytest.mark.parametrize("spoken", ["openai_chat", "ollama"])
def test_blocks_of_a_system_message_are_paragraphs(spoken: str) -> None:
    assert sent(messages(), spoken)[0]["messages"][0] == {"role": "system", "content": "P1\n\nP2"}


def test_a_chat_clients_parts_stay_parts() -> None:
    said = [
        {"role": "system", "content": [{"type": "text", "text": one} for one in "ab"]},
        {"role": "user", "content": "u"},
    ]
    request = dialect("openai_chat").decode_request(json.dumps({"model": "m", "messages": said}).encode(), Arrival())
    assert sent(request, "openai_chat")[0]["messages"] == said


NEEDS_TURN = ["anthropic_messages", "bedrock_converse", "gemini", "gemini_interactions"]


def chat(*said: tuple[str, str]) -> Request:
    messages = [{"role": role, "content": content} for role, content in said]
    return dialect("openai_chat").decode_request(json.dumps({"model": "m", "messages": messages}).encode(), Arrival())


def spoken_parts(body: dict[str, Any]) -> tuple[str, str]:
    """Return the words of the system, and those of the turns behind their role."""
    turns = [body.pop(field) for field in ("messages", "contents", "input") if field in body]
    system, turn = (re.findall(r"P\d|(?<=\")user", json.dumps(one)) for one in (body, turns))
    return " ".join(system), " ".join(turn)


@pytest.mark.parametrize("spoken", NEEDS_TURN)
@pytest.mark.parametrize(
    ("said", "system", "turn"),
    [
        ([("system", "P1")], "", "user P1"),
        ([("system", "P1"), ("developer", "P2")], "P1", "user P2"),
        ([("system", "P1"), ("system", "P1")], "P1", "user P1"),
        ([("system", "P1"), ("system", "P2"), ("system", " ")], "P1", "user P2"),
    ],
)
def test_what_is_only_of_the_system_has_a_turn(
    spoken: str, said: list[tuple[str, str]], system: str, turn: str
) -> None:
    body, lost = sent(chat(*said), spoken)
    assert spoken_parts(body) == (system, turn)
    assert lost.count("messages.role") == 1
    assert "role" not in lost


@pytest.mark.parametrize("spoken", NEEDS_TURN)
def test_a_turn_that_says_nothing_is_none(spoken: str) -> None:
    body, lost = sent(chat(("system", "P1"), ("system", "P2"), ("user", "")), spoken)
    system, turns = spoken_parts(body)
    assert system == "P1"
    assert "P2" in turns
    assert "messages.role" in lost


@pytest.mark.parametrize("spoken", NEEDS_TURN)
def test_a_request_with_a_turn_keeps_its_system(spoken: str) -> None:
    body, lost = sent(chat(("system", "P1"), ("user", "P2")), spoken)
    assert spoken_parts(body) == ("P1", "user P2")
    assert "messages.role" not in lost


@pytest.mark.parametrize(("model", "lost"), [("anthropic.claude-sonnet-4-5-v1:0", 1), ("openai.gpt-oss-120b-1:0", 0)])
def test_a_wrapped_body_has_the_turn_that_its_own_dialect_needs(model: str, lost: int) -> None:
    body, told = sent(chat(("system", "P1")), "bedrock_invoke", model)
    assert body["messages"] == [{"role": "user" if lost else "system", "content": "P1"}]
    assert told.count("messages.role") == lost


def test_responses_has_an_item_of_the_system_where_there_is_no_turn() -> None:
    body, lost = sent(chat(("system", "P1"), ("system", "P2")), "openai_responses")
    assert body["instructions"] == "P1"
    assert [(item["role"], "P2" in json.dumps(item)) for item in body["input"]] == [("system", True)]
    assert "messages.role" not in lost

"""A simulated model answers in JSON where only the prompt or the mode of the request asks for it."""

from __future__ import annotations

import json

import pytest

from bardo.simulators.delivery import Send
from simulators.support import Body, body_for, incoming
from support.any_model import Simulator

SCHEMA: Body = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
}
WRITTEN = json.dumps(SCHEMA, indent=2)
GUIDANCE = (
    f"Answer with one JSON value that conforms to this JSON Schema:\n\n```json\n{WRITTEN}\n```\n\nWrite only that JSON."
)
AGAIN = f"Answer again, with the whole JSON value and nothing else, conforming to this JSON Schema:\n{WRITTEN}"
USED = f"Use this JSON schema:\n```json\n{WRITTEN}\n```"
QUESTION = "How shall I spend 3 days in Rome?"


def said(preset: str, body: Body) -> str:
    """Give the bytes of a whole reply as text, its JSON's quotes as they were written by the model."""
    actions = Simulator(preset).actions(incoming(preset, body))
    reply = b"".join(action.data for action in actions if isinstance(action, Send))
    return json.dumps(json.loads(reply), ensure_ascii=False)


@pytest.mark.parametrize(
    "preset", ["openai_chat", "anthropic", "gemini", "openai_responses", "bedrock", "cohere", "watsonx"]
)
@pytest.mark.parametrize("guidance", [GUIDANCE, AGAIN, USED], ids=["guided", "again", "used"])
def test_a_schema_in_the_prompt_is_followed(preset: str, guidance: str) -> None:
    body = body_for(preset, question=f"{QUESTION}\n\n{guidance}")
    assert json.dumps('{"city": "Rome", "days": 3}')[1:-1] in said(preset, body)


def test_a_schema_in_the_system_prompt_is_followed() -> None:
    messages = [{"role": "system", "content": GUIDANCE}, {"role": "user", "content": QUESTION}]
    assert json.dumps('{"city": "Rome", "days": 3}')[1:-1] in said("deepseek", {"model": "any", "messages": messages})


@pytest.mark.parametrize(
    "broken", ["conforms to this JSON Schema: {", "conforms to this JSON Schema: none", "JSON Schema is a language"]
)
def test_words_about_a_schema_are_no_schema(broken: str) -> None:
    assert "This is a simulated answer to" in said("deepseek", body_for("deepseek", question=broken))


@pytest.mark.parametrize(
    ("preset", "field"),
    [
        ("openai_chat", {"response_format": {"type": "json_object"}}),
        ("cohere", {"response_format": {"type": "json_object"}}),
        ("openai_responses", {"text": {"format": {"type": "json_object"}}}),
        ("gemini", {"generationConfig": {"responseMimeType": "application/json"}}),
        ("gemini", {"generation_config": {"response_mime_type": "application/json"}}),
        ("ollama_native", {"format": "json"}),
    ],
)
def test_json_mode_gets_an_object(preset: str, field: Body) -> None:
    body = {**body_for(preset, question="Say something about Rome."), "stream": False}
    body = {
        name: value
        for name, value in body.items()
        if not (preset == "gemini" and name in ("generationConfig", "stream"))
    }
    assert json.dumps('{"answer": "Rome"}') in said(preset, {**body, **field})


def test_anthropics_earlier_field_for_a_schema_is_followed() -> None:
    shape = {"type": "json_schema", "schema": {**SCHEMA, "additionalProperties": False}}
    body = {**body_for("anthropic", question=QUESTION), "output_format": shape, "stream": False}
    assert json.dumps('{"city": "Rome", "days": 3}')[1:-1] in said("anthropic", body)

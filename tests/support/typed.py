"""A simulated model whose answers follow what it is asked: good at once, good when asked again, never good, refused …

The question names the behaviour, so one server plays them all, in any order. Where a tool carries the answer, the model calls it.
"""

from __future__ import annotations

import json
from typing import Any

from bardo.simulators import Conversation, Script, ToolCall, Turn
from support.talk import Answer

THOUGHT = "Paris is large."
AGAIN = "Answer again"
GOOD: dict[str, Any] = {"city": "Paris", "size": 3}
BAD: dict[str, Any] = {"city": "Paris", "size": "many"}
PLACE: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "size": {"type": "integer"}},
    "required": ["city", "size"],
    "additionalProperties": False,
}


def shape_for(client: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the field in which a client's dialect asks for an answer in a schema."""
    match client:
        case "openai_chat":
            inner = {"name": "place", "schema": schema, "strict": True}
            return {"response_format": {"type": "json_schema", "json_schema": inner}}
        case "openai_responses":
            return {"text": {"format": {"type": "json_schema", "name": "place", "schema": schema, "strict": True}}}
        case "anthropic_messages":
            return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    return {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": schema}}


def answer(conversation: Conversation) -> Turn:
    """Answer as the question says: `good`, `bad then good`, `bad`, `fenced`, `prose`, `refuse`, `cut`, `call`."""
    question = conversation.question
    again = AGAIN in question
    if "bad then good" in question or again:
        return _said(conversation, GOOD if again else BAD)
    if "refuse" in question:
        return Turn(reasoning=THOUGHT, text="I cannot help with that.", finish="content_filter")
    if "cut" in question:
        return Turn(reasoning=THOUGHT, text='{"city": "Par', finish="length")
    if "call" in question and any(tool.name == "weather" for tool in conversation.tools):
        return Turn(reasoning=THOUGHT, tool_calls=(ToolCall("weather", {"city": "Paris"}),))
    if "fenced" in question:
        return Turn(reasoning=THOUGHT, text=f"Here it is:\n```json\n{json.dumps(GOOD)}\n```\nBye.")
    return _said(conversation, BAD if "bad" in question else GOOD)


def _said(conversation: Conversation, value: dict[str, Any]) -> Turn:
    carrier = next((tool.name for tool in conversation.tools if tool.name.startswith("respond_")), "")
    if carrier:
        return Turn(reasoning=THOUGHT, tool_calls=(ToolCall(carrier, value),))
    return Turn(reasoning=THOUGHT, text=json.dumps(value))


SCRIPT = Script(otherwise=answer)
# Bad for good: asked again, it says the same.
STUBBORN = Script(otherwise=lambda conversation: _said(conversation, BAD))


def text_of(client: str, answer: Answer, *, stream: bool) -> str:
    """Return the text of an answer, from where each dialect has it."""
    bodies = answer.payloads if stream else [answer.json]
    return "".join(piece for body in bodies if isinstance(body, dict) for piece in _texts(client, body, stream=stream))


def _texts(client: str, body: dict[str, Any], *, stream: bool) -> list[str]:
    match client:
        case "openai_chat":
            said = [choice["delta" if stream else "message"] for choice in body.get("choices", ())]
            return [one["content"] for one in said if one.get("content")]
        case "openai_responses":
            if stream:
                return [body["delta"]] if body["type"] == "response.output_text.delta" else []
            items = (item for item in body["output"] if item["type"] == "message")
            return [part["text"] for item in items for part in item["content"]]
        case "anthropic_messages":
            if stream:
                return [body["delta"]["text"]] if body.get("delta", {}).get("type") == "text_delta" else []
            return [block["text"] for block in body["content"] if block["type"] == "text"]
    parts = (part for one in body.get("candidates", ()) for part in one["content"].get("parts", ()))
    return [part["text"] for part in parts if "text" in part and not part.get("thought")]


def bardo_of(answer: Answer, *, stream: bool) -> dict[str, Any]:
    """Return what bardo itself says in an answer."""
    bodies = answer.payloads if stream else [answer.json]
    found: dict[str, Any] = {}
    for body in bodies:
        if isinstance(body, dict):
            found |= body.get("bardo") or body.get("response", {}).get("bardo") or {}
    return found

"""Ask a gateway in every client's dialect, and the server behind it directly, and give both answers in the same words."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from conformance.clients import READERS
from servers.llama_cpp import Answered, ask_directly
from support.talk import ask, body_for
from support.typed import shape_for

VALUE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"who": {"type": "string"}, "amount": {"type": "integer"}},
    "required": ["who", "amount"],
    "additionalProperties": False,
}


def question(script: str) -> str:
    return f"[[{script}]] What is 27 * 43?"


def ask_client(
    gateway: str, client: str, target: str, script: str, kind: str, *, stream: bool
) -> tuple[Answered, dict[str, Any]]:
    """Return what a client's official library reads of the gateway's answer, and the fields that told the server how to think."""
    further: dict[str, Any] = shape_for(client, VALUE_SCHEMA) if kind == "schema" else {}
    policies: dict[str, dict[str, Any]] = {"off": {"reasoning": "off"}, "budget": {"reasoning": 0}}
    told = {"include": ["receipt"], **policies.get(kind, {})}
    asked = {"question": question(script), "tools": kind == "tools", "bardo": told, **further}
    # A Messages client that asks for no thinking gets none otherwise.
    shown = {} if kind in policies else {"x-bardo-reasoning": "include"}
    answer = ask(gateway, client, target, stream=stream, headers=shown, **asked)
    assert answer.status == 200, answer.text
    heard = READERS[client](answer.body, stream=stream)
    calls = tuple(
        (name, json.loads(arguments) if isinstance(arguments, str) else arguments) for _, name, arguments in heard.calls
    )
    return Answered(heard.thinking, heard.text, calls), _emitted(answer.payloads if stream else answer.json)


def _emitted(value: Any) -> dict[str, Any]:
    """Return the fields of the receipt, wherever a dialect has it."""
    if isinstance(value, dict):
        if isinstance(value.get("emitted"), dict):
            return dict(value["emitted"])
        value = list(value.values())
    return next((found for inner in value if (found := _emitted(inner))), {}) if isinstance(value, list) else {}


def ask_server(address: str, script: str, kind: str, told: dict[str, Any], *, model: str = "m") -> Answered:
    """Return what the server says, with what it leaves in the text taken out: thinking, and the call of a model that writes it there."""
    found = _said(address, model, script, kind, json.dumps(told))
    before, closer, after = found.text.partition("</think>")
    if not closer:
        return found
    outside, _, thinking = before.partition("<think>") if "<think>" in before else ("", "", before)
    return Answered(thinking if thinking.strip() else "", outside + after, found.calls)


@cache
def _said(address: str, model: str, script: str, kind: str, told: str) -> Answered:
    body = body_for("openai_chat", model, question=question(script), tools=kind == "tools", **json.loads(told))
    return ask_directly(address, body | (shape_for("openai_chat", VALUE_SCHEMA) if kind == "schema" else {}))

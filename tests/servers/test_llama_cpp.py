"""What clients get of a real llama.cpp server, compared word by word with what the server says when it is asked directly."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from conformance.clients import READERS
from servers.conftest import Served, name_of, vendor_templates
from servers.llama_cpp import Answered, ask_directly
from servers.scripted_model import reply_of
from servers.templates import TEMPLATES
from support.talk import CLIENTS, ask, body_for, request
from support.typed import shape_for

pytestmark = pytest.mark.xdist_group("llama.cpp")

VALUE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"who": {"type": "string"}, "amount": {"type": "integer"}},
    "required": ["who", "amount"],
    "additionalProperties": False,
}
# The name by which a model is asked for decides what bardo expects of its text.
MODELS = {
    "always-open": ("deepseek-r1", "lab-model"),
    "open-unless-off": ("qwen3.5-4b", "lab-model"),
    "left-to-the-model": ("qwen3-4b", "lab-model"),
    "open-or-closed": ("deepseek-v3.1", "lab-model"),
    "open-unnoticed": ("deepseek-r1", "qwen3-4b-thinking"),
}

# What is asked: the script that the model follows, and what a client asks besides.
CASES: dict[str, tuple[str, str]] = {
    "thinking": ("think", ""),
    "an empty thought": ("empty", ""),
    "an answer without thinking": ("plain", ""),
    "off": ("think", "off"),
    "off, without thinking": ("plain", "off"),
    "off, with an empty thought": ("empty", "off"),
    "no budget": ("think", "budget"),
    "a schema": ("empty_json", "schema"),
    "a schema after thinking": ("think_json", "schema"),
    "a call": ("call", "tools"),
    "a call after thinking": ("think_call", "tools"),
}
WRITES_CALLS = frozenset({"qwen3-4b-thinking"})
"""Models whose way of writing calls in their text bardo knows; the servers read the calls of the others."""
whole_and_streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def question(script: str) -> str:
    return f"[[{script}]] What is 27 * 43?"


def ask_client(
    served: Served, client: str, target: str, script: str, kind: str, *, stream: bool
) -> tuple[Answered, dict[str, Any]]:
    """Return what a client's official library reads of the gateway's answer, and the fields that told the server how to think."""
    further: dict[str, Any] = shape_for(client, VALUE_SCHEMA) if kind == "schema" else {}
    policies: dict[str, dict[str, Any]] = {"off": {"reasoning": "off"}, "budget": {"reasoning": 0}}
    told = {"include": ["receipt"], **policies.get(kind, {})}
    for _ in range(3):
        asked = {"question": question(script), "tools": kind == "tools", "bardo": told, **further}
        answer = ask(served.gateway, client, target, stream=stream, **asked)
        # llama.cpp closes a connection after a streamed reply without saying so; the next call on it may find that out.
        if answer.status != 502:
            break
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


def ask_server(served: Served, template: str, script: str, kind: str, told: dict[str, Any]) -> Answered:
    """Return what the server says, with what it leaves in the text taken out: thinking, and the call of a model that writes it there."""
    found = _said(served.servers[name_of(template)], script, kind, json.dumps(told))
    before, closer, after = found.text.partition("</think>")
    if not closer:
        return found
    outside, _, thinking = before.partition("<think>") if "<think>" in before else ("", "", before)
    return Answered(thinking if thinking.strip() else "", outside + after, found.calls)


@cache
def _said(address: str, script: str, kind: str, told: str) -> Answered:
    body = body_for("openai_chat", "m", question=question(script), tools=kind == "tools", **json.loads(told))
    return ask_directly(address, body | (shape_for("openai_chat", VALUE_SCHEMA) if kind == "schema" else {}))


@whole_and_streamed
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("template", TEMPLATES)
def test_every_client_gets_what_the_server_says(served: Served, template: str, case: str, stream: bool) -> None:
    script, kind = CASES[case]
    known, unknown = MODELS[template]
    for client, model in [*((client, known) for client in CLIENTS), (CLIENTS[0], unknown)]:
        got, told = ask_client(served, client, f"{name_of(template)}/{model}", script, kind, stream=stream)
        said = ask_server(served, template, script, kind, told)
        assert got == (with_calls_of_its_text(said) if model in WRITES_CALLS else said), (client, model)


def with_calls_of_its_text(said: Answered) -> Answered:
    """Return a reply with the call that stands in its text, of a model whose way of writing calls is known."""
    _, opener, call = said.text.partition("<tool_call>")
    if not opener:
        return said
    read = json.loads(call.removesuffix("</tool_call>"))
    return Answered(said.thinking, "", ((read["name"], read["arguments"]),))


def test_the_scripted_model_says_what_its_script_says(served: Served) -> None:
    server = served.servers["open-unnoticed"]
    for script in ("think", "empty", "plain", "unclosed", "think_call", "json"):
        assert ask_directly(server, body_for("openai_chat", "m", question=question(script))).text == reply_of(script)


@whole_and_streamed
@pytest.mark.parametrize("template", vendor_templates() or [pytest.param("", marks=pytest.mark.skip("none here"))])
def test_a_client_gets_what_the_server_says_with_a_vendors_template(
    served: Served, template: str, stream: bool
) -> None:
    if "<|channel|>" in vendor_templates()[template]:
        pytest.skip("its replies are messages with headers, which this model does not write")
    for client, (script, kind) in zip(CLIENTS, scripts_for(served, template), strict=False):
        target = f"{name_of(template)}/{template}"
        got, told = ask_client(served, client, target, script, kind, stream=stream)
        assert got == ask_server(served, template, script, kind, told), (client, script, kind)


def scripts_for(served: Served, template: str) -> list[tuple[str, str]]:
    """Return what a model may write in a template: what begins inside thinking only where the prompt opens it."""
    turns = {"messages": [{"role": "user", "content": "?"}]}
    prompt = request(served.servers[name_of(template)], "POST", "/apply-template", turns).json["prompt"]
    if prompt.rstrip().endswith("<think>"):
        return [("think", ""), ("empty", ""), ("plain", "off"), ("empty", "off")]
    if "<think>" in vendor_templates()[template]:
        return [("open", ""), ("plain", ""), ("plain", "off"), ("open", "off")]
    return [("plain", ""), ("plain", "off")]

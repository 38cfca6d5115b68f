"""What clients get of a real llama.cpp server, compared word by word with what the server says when it is asked directly."""

from __future__ import annotations

import json

import pytest

from servers.asking import ask_client, ask_server, question
from servers.conftest import Served, name_of, vendor_templates
from servers.llama_cpp import Answered, ask_directly
from servers.scripted_model import reply_of
from servers.templates import TEMPLATES
from support.talk import CLIENTS, body_for, request

pytestmark = pytest.mark.xdist_group("llama.cpp")

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


@pytest.mark.sampled(20)
@whole_and_streamed
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("template", TEMPLATES)
def test_every_client_gets_what_the_server_says(served: Served, template: str, case: str, stream: bool) -> None:
    script, kind = CASES[case]
    known, unknown = MODELS[template]
    for client, model in [*((client, known) for client in CLIENTS), (CLIENTS[0], unknown)]:
        if stream and template == "left-to-the-model":
            # Where such a reply begins is learned from a whole one, for each caller alone; a first stream has nothing to go by.
            ask_client(served.gateway, client, f"{name_of(template)}/{model}", script, kind, stream=False)
        got, told = ask_client(served.gateway, client, f"{name_of(template)}/{model}", script, kind, stream=stream)
        said = ask_server(served.servers[name_of(template)], script, kind, told)
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
        got, told = ask_client(served.gateway, client, target, script, kind, stream=stream)
        assert got == ask_server(served.servers[name_of(template)], script, kind, told), (client, script, kind)


def scripts_for(served: Served, template: str) -> list[tuple[str, str]]:
    """Return what a model may write in a template: what begins inside thinking only where the prompt opens it."""
    turns = {"messages": [{"role": "user", "content": "?"}]}
    prompt = request(served.servers[name_of(template)], "POST", "/apply-template", turns).json["prompt"]
    if prompt.rstrip().endswith("<think>"):
        return [("think", ""), ("empty", ""), ("plain", "off"), ("empty", "off")]
    if "<think>" in vendor_templates()[template]:
        return [("open", ""), ("plain", ""), ("plain", "off"), ("open", "off")]
    return [("plain", ""), ("plain", "off")]

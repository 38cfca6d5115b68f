"""What coding agents rely on, with the libraries they are built on: the model's name, the words of errors, headers, and stable prompts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import anthropic
import pytest
from google.genai.errors import ClientError

from bardo.simulators import Script, ToolCall, Turn
from support.any_model import Simulator
from support.gateway import House, house, model_of
from support.sdk import anthropic_client, gemini_client
from support.talk import path_for, request
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.scripted import scripted
from surfaces.gateway.test_context_overflow import REFUSALS, Refusing

PROVIDERS = ("anthropic", "deepseek", "gemini", "openai_responses")
TURNS = 4
SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {"path": {"description": "The file", "type": "string"}, "limit": {"type": "number"}},
    "required": ["path"],
    "additionalProperties": False,
}
SYSTEM = ["You are a coding agent.", "Be brief."]
HEADS = ("system", "tools", "instructions", "systemInstruction", "toolConfig")


@pytest.fixture(scope="module")
def town() -> Iterator[House]:
    turn = Turn(reasoning="I read.", tool_calls=(ToolCall("read", {"path": "a"}),))
    script = Script((*[turn] * (TURNS - 1), Turn(text="Done.")))
    with house([Simulator(name, script=script) for name in PROVIDERS]) as running:
        yield running


def messages_loop(town: House, provider: str, *, stream: bool) -> list[Any]:
    """Run a tool loop with Anthropic's library as an agent does, and return its messages."""
    marks = {"cache_control": {"type": "ephemeral"}}
    asked: dict[str, Any] = {
        "model": model_of(provider),
        "max_tokens": 8000,
        "thinking": {"type": "enabled", "budget_tokens": 4000},
        "system": [{"type": "text", "text": SYSTEM[0]}, {"type": "text", "text": SYSTEM[1], **marks}],
        "tools": [{"name": "read", "description": "Reads a file.", "input_schema": SCHEMA}],
    }
    history: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "Read it.", **marks}]}]
    heard = []
    with anthropic_client(town.address) as client:
        for _ in range(TURNS):
            if stream:
                with client.messages.stream(messages=history, **asked) as events:
                    started = next(event.message.model for event in events if event.type == "message_start")
                    message: Any = events.get_final_message()
                assert started == asked["model"]
            else:
                message = client.messages.create(messages=history, **asked)
                assert message._request_id
            heard.append(message)
            calls = [block for block in message.content if block.type == "tool_use"]
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": "text", "is_error": False} for call in calls
            ]
            history += [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
    return heard


def gemini_loop(town: House, provider: str, *, stream: bool) -> list[Any]:
    """Run a tool loop with Google's library as an agent does, and return its replies."""
    config: Any = {
        "system_instruction": "\n".join(SYSTEM),
        "tools": [{"function_declarations": [{"name": "read", "parameters_json_schema": SCHEMA}]}],
        "thinking_config": {"include_thoughts": True},
    }
    history: list[Any] = [{"role": "user", "parts": [{"text": "Read it."}]}]
    heard = []
    with gemini_client(town.address) as client:
        asked: Any = {"model": model_of(provider), "config": config}
        for _ in range(TURNS):
            if stream:
                replies = list(client.models.generate_content_stream(contents=history, **asked))
            else:
                replies = [client.models.generate_content(contents=history, **asked)]
            heard += replies
            parts = [part for one in replies for part in (one.candidates[0].content.parts or [])]  # type: ignore[index, union-attr]
            results = [
                {"function_response": {"id": part.function_call.id, "name": "read", "response": {"output": "text"}}}
                for part in parts
                if part.function_call
            ]
            history += [{"role": "model", "parts": parts}, {"role": "user", "parts": results}]
    return heard


@whole_and_streamed
@pytest.mark.parametrize("provider", PROVIDERS)
def test_anthropics_library_reads_the_name_it_asked_for_and_its_prompt_stays(
    town: House, provider: str, stream: bool
) -> None:
    before = len(town.arrived(provider))
    heard = messages_loop(town, provider, stream=stream)
    assert {message.model for message in heard} == {model_of(provider)}
    assert heard[-1].content[-1].text == "Done."
    assert_same_heads(town, provider, before)


@whole_and_streamed
@pytest.mark.parametrize("provider", PROVIDERS)
def test_googles_library_reads_the_name_it_asked_for_and_its_prompt_stays(
    town: House, provider: str, stream: bool
) -> None:
    before = len(town.arrived(provider))
    heard = gemini_loop(town, provider, stream=stream)
    assert {reply.model_version for reply in heard} == {model_of(provider)}
    assert "".join(reply.text or "" for reply in heard).endswith("Done.")
    assert_same_heads(town, provider, before)


def assert_same_heads(town: House, provider: str, before: int) -> None:
    """Assert that what heads the prompt, and every earlier message but marks of the cache, is the same in all requests of a loop."""
    bodies = [json.loads(one.raw) for one in town.arrived(provider)[before:]]
    assert len(bodies) == TURNS
    heads = {json.dumps({name: body.get(name) for name in HEADS}) for body in bodies}
    assert len(heads) == 1
    histories = [body.get("messages") or body.get("contents") or body["input"] for body in bodies]
    for earlier, later in pairwise(histories):
        assert json.dumps(later[: len(earlier)]) == json.dumps(earlier)


@whole_and_streamed
@pytest.mark.parametrize("provider", REFUSALS)
def test_each_library_reads_its_own_words_of_a_prompt_that_is_too_long(provider: str, stream: bool) -> None:
    with scripted([provider], played=Refusing()) as played:
        assert isinstance(played, Refusing)
        played.refusal = REFUSALS[provider]
        hello: Any = [{"role": "user", "content": "hi"}]
        asked: Any = {"model": f"{provider}/m", "max_tokens": 10, "messages": hello, "stream": stream}
        with anthropic_client(played.address) as client, pytest.raises(anthropic.BadRequestError) as caught:
            client.messages.create(**asked)
        body: Any = caught.value.body
        assert body["error"]["type"] == "invalid_request_error"
        assert body["error"]["message"].startswith("prompt is too long")
        assert caught.value.request_id
        with gemini_client(played.address) as google:
            ask: Any = google.models.generate_content_stream if stream else google.models.generate_content
            with pytest.raises(ClientError) as refused:
                list(ask(model=f"{provider}/m", contents="hi"))
        assert (refused.value.code, refused.value.status) == (400, "INVALID_ARGUMENT")
        assert str(refused.value.message).startswith("The input token count")


@pytest.mark.parametrize("provider", ["anthropic", "deepseek", "openai_responses"])
def test_nothing_is_reported_of_googles_schemas_and_of_calls_without_ids(provider: str) -> None:
    call, result = {"name": "f", "args": {}}, {"name": "f", "id": "f-17", "response": {"output": "x"}}
    said = [("user", {"text": "Look."}), ("model", {"functionCall": call}), ("user", {"functionResponse": result})]
    contents = [{"role": role, "parts": [part]} for role, part in said]
    tools = [{"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT", "properties": {}}}]}]
    with house([Simulator(provider)]) as running:
        path = path_for("gemini", model_of(provider))
        answer = request(running.address, "POST", path, {"contents": contents, "tools": tools})
    assert answer.status == 200, answer.text
    reported = answer.headers.get("x-bardo-degraded", "").split(", ")
    assert not {"functionCall", "functionResponse", "parameters"} & set(reported)

"""The official client libraries work with the simulators as with the real providers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from bardo.simulators import PRESETS, Fault, Running, presets
from simulators.support import QUESTION, SCHEMA, WEATHER
from support.any_model import Simulator
from support.patience import PATIENCE

if TYPE_CHECKING:
    import openai

CHAT = [name for name in presets() if PRESETS[name].dialect == "openai_chat"]
CHAT_TOOL: Any = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
# Where the library's types know only a string, Mistral has a list, and the library warns.
lenient = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")


@pytest.fixture
def running(request: pytest.FixtureRequest) -> Iterator[Running]:
    with Simulator(request.param).running() as server:
        yield server


def openai_client(server: Running) -> openai.OpenAI:
    import openai

    return openai.OpenAI(api_key="k", base_url=server.base_url, max_retries=0, http_client=plain_http())


def plain_http() -> Any:
    """Return a client that reads no certificates, which takes the libraries' own far longer than all that is tested here."""
    import httpx2

    return httpx2.Client(verify=False, timeout=PATIENCE)


each_chat = pytest.mark.parametrize("running", CHAT, indirect=True)


@each_chat
def test_openai_chat_answers_whole_and_streamed(running: Running) -> None:
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}
    with openai_client(running) as client:
        whole = client.chat.completions.create(**asked)
        assert "1161" in str(whole.choices[0].message.content)
        assert whole.usage is not None
        assert whole.usage.total_tokens > 0
        chunks = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
        said = "".join(str(c.delta.content) for chunk in chunks for c in chunk.choices if c.delta.content)
        assert "1161" in said
        assert [chunk.usage for chunk in chunks if chunk.usage]


@lenient
@each_chat
def test_openai_chat_runs_a_tool_loop(running: Running) -> None:
    messages: list[Any] = [{"role": "user", "content": WEATHER}]
    with openai_client(running) as client:
        first = client.chat.completions.create(model="m", messages=messages, tools=[CHAT_TOOL])
        assert first.choices[0].finish_reason == "tool_calls"
        call: Any = (first.choices[0].message.tool_calls or [])[0]
        assert json.loads(call.function.arguments) == {"city": "Paris"}
        messages += [first.choices[0].message.to_dict(), {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        second = client.chat.completions.create(model="m", messages=messages, tools=[CHAT_TOOL])
        assert "sunny" in str(second.choices[0].message.content)


@each_chat
def test_openai_chat_streams_a_tool_call(running: Running) -> None:
    messages: list[Any] = [{"role": "user", "content": WEATHER}]
    with openai_client(running) as client:
        stream = client.chat.completions.create(model="m", messages=messages, tools=[CHAT_TOOL], stream=True)
        deltas: list[Any] = [c.delta for chunk in stream for c in chunk.choices]
    calls = [call for delta in deltas for call in delta.tool_calls or []]
    assert "".join(call.function.arguments or "" for call in calls) == '{"city":"Paris"}'
    assert [call.function.name for call in calls if call.function.name] == ["weather"]


@pytest.mark.parametrize("running", ["openai_responses"], indirect=True)
def test_openai_responses_answers_reasons_and_calls_tools(running: Running) -> None:
    tool: Any = {"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}
    with openai_client(running) as client:
        whole = client.responses.create(model="m", input=QUESTION, reasoning={"summary": "auto"})
        assert whole.output_text == "1161"
        reasoning: Any = whole.output[0]
        assert "27 * 40 = 1080" in reasoning.summary[0].text
        with client.responses.stream(model="m", input=QUESTION, reasoning={"summary": "auto"}) as stream:
            events = [event.type for event in stream]
            assert stream.get_final_response().output_text == "1161"
        assert "response.reasoning_summary_text.delta" in events
        first = client.responses.create(model="m", input=WEATHER, tools=[tool])
        call: Any = first.output[-1]
        result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
        second = client.responses.create(model="m", input=[result], previous_response_id=first.id, tools=[tool])
        assert "sunny" in second.output_text


@pytest.mark.parametrize("running", ["anthropic"], indirect=True)
def test_anthropic_answers_thinks_and_calls_tools(running: Running) -> None:
    import anthropic

    tool: Any = {"name": "weather", "input_schema": SCHEMA}
    messages: list[Any] = [{"role": "user", "content": WEATHER}]
    with anthropic.Anthropic(api_key="k", base_url=running.root, max_retries=0, http_client=plain_http()) as client:
        thinking: Any = {"type": "enabled", "budget_tokens": 1024}
        asked: Any = {"model": "m", "max_tokens": 2048, "messages": [{"role": "user", "content": QUESTION}]}
        whole: Any = client.messages.create(**asked, thinking=thinking)
        assert [block.type for block in whole.content] == ["thinking", "text"]
        with client.messages.stream(**asked, thinking=thinking) as stream:
            final: Any = stream.get_final_message()
        assert [block.to_dict() for block in final.content] == [block.to_dict() for block in whole.content]
        assert final.usage.output_tokens == whole.usage.output_tokens
        with client.messages.stream(model="m", max_tokens=2048, messages=messages, tools=[tool]) as stream:
            called: Any = stream.get_final_message()
        assert called.stop_reason == "tool_use"
        assert called.content[-1].input == {"city": "Paris"}
        result = {"type": "tool_result", "tool_use_id": called.content[-1].id, "content": "sunny"}
        messages += [{"role": "assistant", "content": called.content}, {"role": "user", "content": [result]}]
        second: Any = client.messages.create(model="m", max_tokens=2048, messages=messages, tools=[tool])
        assert "sunny" in second.content[-1].text
        assert client.messages.count_tokens(model="m", messages=messages).input_tokens > 0
        assert [model.id for model in client.models.list()]


@pytest.mark.parametrize("running", ["gemini"], indirect=True)
@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_gemini_answers_thinks_and_calls_tools(running: Running, version: str) -> None:
    from google import genai

    tool: Any = {"function_declarations": [{"name": "weather", "parameters_json_schema": SCHEMA}]}
    manual: Any = {"tools": [tool], "automatic_function_calling": {"disable": True}}
    client = genai.Client(api_key="k", vertexai=False, http_options={"base_url": running.root, "api_version": version})
    try:
        thoughtful: Any = {"thinking_config": {"include_thoughts": True}}
        whole: Any = client.models.generate_content(model="m", contents=QUESTION, config=thoughtful)
        assert [part.thought for part in whole.candidates[0].content.parts] == [True, None]
        assert whole.text == "1161"
        stream: Any = client.models.generate_content_stream(model="m", contents=QUESTION, config=thoughtful)
        parts = [part for chunk in stream for part in chunk.candidates[0].content.parts]
        assert "".join(part.text for part in parts if not part.thought) == "1161"
        assert any(part.thought for part in parts)
        assert parts[-1].thought_signature
        first: Any = client.models.generate_content(model="m", contents=WEATHER, config=manual)
        assert first.function_calls[0].args == {"city": "Paris"}
        result: Any = {"function_response": {"name": "weather", "response": {"result": "sunny"}}}
        history: Any = [
            {"role": "user", "parts": [{"text": WEATHER}]},
            first.candidates[0].content,
            {"role": "user", "parts": [result]},
        ]
        second: Any = client.models.generate_content(model="m", contents=history, config=manual)
        assert "sunny" in second.text
    finally:
        client.close()


@pytest.mark.parametrize("running", ["gemini_interactions"], indirect=True)
def test_interactions_answer_think_and_call_tools(running: Running) -> None:
    from google import genai

    tools: Any = [{"type": "function", "name": "weather", "parameters": SCHEMA}]
    thoughtful: Any = {"generation_config": {"thinking_summaries": "auto"}}
    client = genai.Client(api_key="k", vertexai=False, http_options={"base_url": running.root})
    ask: Any = client.interactions.create
    try:
        whole = ask(model="m", input=QUESTION, **thoughtful)
        assert [step.type for step in whole.steps] == ["thought", "model_output"]
        assert "27 * 40 = 1080" in whole.steps[0].summary[0].text
        assert whole.output_text == "1161"
        assert whole.usage.total_tokens == whole.usage.total_input_tokens + 1 + whole.usage.total_thought_tokens
        events = list(ask(model="m", input=QUESTION, stream=True, **thoughtful))
        deltas = [event.delta for event in events if event.event_type == "step.delta"]
        assert [delta.type for delta in deltas] == ["thought_summary", "thought_signature", "text"]
        assert deltas[1].signature == whole.steps[0].signature
        assert events[-1].interaction.usage.total_tokens == whole.usage.total_tokens
        first = ask(model="m", input=WEATHER, tools=tools)
        call = first.steps[-1]
        assert (first.status, call.arguments) == ("requires_action", {"city": "Paris"})
        result = {"type": "function_result", "call_id": call.id, "name": "weather", "result": "sunny"}
        second = ask(model="m", previous_interaction_id=first.id, input=[result], tools=tools)
        assert second.output_text == "The tool says: sunny"
        with pytest.raises(Exception, match="Interaction not found"):
            ask(model="m", input=QUESTION, previous_interaction_id="unknown")
    finally:
        client.close()


@pytest.mark.parametrize("running", ["ollama_native"], indirect=True)
def test_ollama_answers_thinks_and_calls_tools(running: Running) -> None:
    import ollama

    tool: Any = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
    messages: list[Any] = [{"role": "user", "content": WEATHER}]
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}
    with ollama.Client(host=running.root) as client:
        whole = client.chat(**asked, think=True)
        assert whole.message.content == "1161"
        assert "27 * 40 = 1080" in str(whole.message.thinking)
        assert client.chat(**asked, think=False).message.thinking is None
        parts = list(client.chat(**asked, stream=True))
        assert "".join(part.message.content or "" for part in parts) == "1161"
        assert "".join(part.message.thinking or "" for part in parts) == whole.message.thinking
        assert [part.done for part in parts[-2:]] == [False, True]
        assert parts[-1].eval_count == whole.eval_count
        called = client.chat(model="m", messages=messages, tools=[tool]).message
        assert called.tool_calls is not None
        assert called.tool_calls[0].function.arguments == {"city": "Paris"}
        messages += [called, {"role": "tool", "content": "sunny", "tool_name": "weather"}]
        assert "sunny" in str(client.chat(model="m", messages=messages, tools=[tool]).message.content)
        assert [model.model for model in client.list().models]


@pytest.mark.parametrize("running", ["cohere"], indirect=True)
@pytest.mark.parametrize("model", ["command-a-reasoning-08-2025", "command-a-03-2025"])
def test_cohere_answers_thinks_and_calls_tools(running: Running, model: str) -> None:
    import cohere

    thinks = "reasoning" in model
    tool: Any = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
    asked: Any = {"model": model, "messages": [{"role": "user", "content": QUESTION}]}
    with cohere.ClientV2(api_key="k", base_url=running.root) as client:
        whole: Any = client.chat(**asked)
        assert [item.type for item in whole.message.content] == (["thinking", "text"] if thinks else ["text"])
        assert whole.message.content[-1].text == "1161"
        events: list[Any] = list(client.chat_stream(**asked))
        said = [event.delta.message.content for event in events if event.type == "content-delta"]
        assert "".join(piece.text or "" for piece in said) == "1161"
        assert any(piece.thinking for piece in said) is thinks
        assert events[-1].delta.usage == whole.usage
        messages: list[Any] = [{"role": "user", "content": WEATHER}]
        called: Any = client.chat(model=model, messages=messages, tools=[tool]).message
        assert bool(called.tool_plan) is not thinks
        call = called.tool_calls[0]
        assert json.loads(call.function.arguments) == {"city": "Paris"}
        streamed: list[Any] = list(client.chat_stream(model=model, messages=messages, tools=[tool]))
        pieces = [event.delta.message.tool_calls for event in streamed if event.type == "tool-call-delta"]
        assert "".join(piece.function.arguments for piece in pieces) == call.function.arguments
        messages += [called, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        answer: Any = client.chat(model=model, messages=messages, tools=[tool]).message
        assert "sunny" in answer.content[-1].text
        (citation,) = answer.citations
        assert answer.content[-1].text[citation.start : citation.end] == citation.text == "sunny"
        assert [row.name for row in client.models.list(endpoint="chat").models]


def test_the_libraries_know_the_errors() -> None:
    import anthropic
    import openai

    limited = Fault("status", status=429, retry_after=1)
    with Simulator("openai_chat", fault=limited).running() as server, openai_client(server) as client:
        with pytest.raises(openai.RateLimitError) as caught:
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
        assert caught.value.response.headers["retry-after"] == "1"
    with Simulator("anthropic", key="right").running() as server:
        messages: Any = [{"role": "user", "content": "x"}]
        with (
            anthropic.Anthropic(api_key="wrong", base_url=server.root, max_retries=0) as client_of_claude,
            pytest.raises(anthropic.AuthenticationError, match="invalid x-api-key"),
        ):
            client_of_claude.messages.create(model="m", max_tokens=10, messages=messages)
    with Simulator("ollama_native", models=("only",)).running() as server:
        import ollama

        with (
            ollama.Client(host=server.root) as client_of_ollama,
            pytest.raises(ollama.ResponseError, match="model 'm' not found"),
        ):
            client_of_ollama.chat(model="m", messages=messages)
    with Simulator("cohere", fault=limited).running() as server:
        import cohere

        with (
            cohere.ClientV2(api_key="k", base_url=server.root) as client_of_cohere,
            pytest.raises(cohere.TooManyRequestsError),
        ):
            client_of_cohere.chat(model="m", messages=messages, request_options={"max_retries": 0})

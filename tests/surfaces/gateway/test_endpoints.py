"""A provider with several endpoints, over real sockets: which is asked, and what happens where the server has only one of them."""

from __future__ import annotations

from typing import Any

from support.any_model import Simulator
from support.gateway import house
from support.talk import ask, path_for, request
from surfaces.gateway.cells import whole_and_streamed


@whole_and_streamed
def test_each_client_gets_the_endpoint_of_its_dialect(stream: bool) -> None:
    with house([Simulator("openai_responses")]) as running:
        for client, path in (("openai_chat", "/v1/chat/completions"), ("openai_responses", "/v1/responses")):
            answer = ask(running.address, client, "openai_responses/gpt-4.1", stream=stream)
            assert (answer.status, "1161" in answer.text) == (200, True)
            assert running.arrived("openai_responses")[-1].path == path


@whole_and_streamed
def test_a_server_without_the_endpoint_is_asked_at_the_other_and_remembered(stream: bool) -> None:
    with house([Simulator("openai_chat")], each={"preset": "openai"}) as running:
        for _ in range(2):
            answer = ask(running.address, "anthropic_messages", "openai_chat/gpt-4.1", stream=stream)
            assert (answer.status, "1161" in answer.text) == (200, True)
        paths = [one.path for one in running.arrived("openai_chat")]
    assert paths == ["/v1/responses", "/v1/chat/completions", "/v1/chat/completions"]


def test_ciphertext_is_not_asked_for_of_a_model_that_does_not_think() -> None:
    with house([Simulator("openai_responses")]) as running:
        assert ask(running.address, "anthropic_messages", "openai_responses/gpt-4.1").status == 200
        assert "include" not in running.last("openai_responses")
        assert ask(running.address, "anthropic_messages", "openai_responses/gpt-5").status == 200
        assert running.last("openai_responses")["include"] == ["reasoning.encrypted_content"]


def test_a_failing_tool_does_not_lead_a_conversation_to_another_endpoint() -> None:
    # What a provider caches of a prompt is cached for one endpoint.
    def turns(failed: bool) -> list[dict[str, Any]]:
        answer = {"error": "no such file"} if failed else {"output": "text"}
        call, result = {"name": "f", "args": {}, "id": "c1"}, {"name": "f", "id": "c1", "response": answer}
        said = [("user", {"text": "Look."}), ("model", {"functionCall": call}), ("user", {"functionResponse": result})]
        return [{"role": role, "parts": [part]} for role, part in said]

    tools = [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": "object", "properties": {}}}]}]
    with house([Simulator("openrouter")]) as running:
        for contents in (turns(failed=False), turns(failed=True)):
            path = path_for("gemini", "openrouter/anthropic/claude-sonnet-4.5")
            answer = request(running.address, "POST", path, {"contents": contents, "tools": tools})
            assert answer.status == 200
        assert len({one.path for one in running.arrived("openrouter")}) == 1


def test_the_name_in_a_tools_result_leads_to_no_other_endpoint_and_is_no_loss() -> None:
    # LangChain for JavaScript says it. At the other endpoint the thinking before the call would be lost.
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "How is the weather?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "name": "weather", "content": "sunny"},
    ]
    with house([Simulator("openai_responses"), Simulator("anthropic")]) as running:
        for model in ("openai_responses/gpt-5", "anthropic/claude-sonnet-4-5"):
            body = {"model": model, "reasoning_effort": "low", "messages": messages}
            answer = request(running.address, "POST", "/v1/chat/completions", body)
            assert answer.status == 200
            assert "name" not in answer.headers.get("x-bardo-degraded", "").split(", ")
        assert [one.path for one in running.arrived("openai_responses")] == ["/v1/responses"]

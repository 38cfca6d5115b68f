"""A client's web search works over providers that have none: the gateway searches, and the client gets its own dialect's blocks."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest
from google import genai

from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.scripted import chat_reply
from surfaces.gateway.searching import OTHER, PAGE, SEARCH_KEY, Searching, searching, text, tool_call

MODEL = "deepseek-chat"
TOOL: Any = {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}
QUESTION: list[Any] = [{"role": "user", "content": "Which colour is the sky?"}]


def two_rounds(stream: bool) -> list[Any]:
    return [
        chat_reply(tool_call("sky colour"), stream=stream),
        chat_reply(text("The sky is blue."), stream=stream),
    ]


def claude(played: Searching) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=played.address, api_key="k", max_retries=0)


def ask_claude(played: Searching, *, stream: bool, messages: list[Any] = QUESTION, **fields: Any) -> Any:
    fields = {"model": MODEL, "max_tokens": 500, "messages": messages, "tools": [TOOL], **fields}
    if not stream:
        return claude(played).messages.create(**fields)
    with claude(played).messages.stream(**fields) as events:
        return events.get_final_message()


@whole_and_streamed
def test_claudes_search_is_made_by_the_gateway(stream: bool) -> None:
    with searching("deepseek") as played:
        played.replies = two_rounds(stream)
        message = ask_claude(played, stream=stream)
    assert [block.type for block in message.content] == ["server_tool_use", "web_search_tool_result", "text"]
    call, found, answer = message.content
    assert call.input == {"query": "sky colour"}
    assert found.tool_use_id == call.id
    assert [page.url for page in found.content] == [PAGE["url"], OTHER["url"]]
    assert answer.text == "The sky is blue."
    assert message.stop_reason == "end_turn"
    assert played.searches[0]["query"] == "sky colour"
    offered = played.bodies[0]["tools"]
    assert [tool["function"]["name"] for tool in offered] == ["web_search"]
    turns = played.bodies[1]["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "tool"]
    assert "The sky is blue." in turns[2]["content"]


def test_tokens_of_all_replies_are_counted() -> None:
    with searching("deepseek") as played:
        played.replies = two_rounds(False)
        message = ask_claude(played, stream=False)
        played.replies = [chat_reply(text("Blue."), stream=False)]
        one = ask_claude(played, stream=False, tools=[])
    assert message.usage.output_tokens == 2 * one.usage.output_tokens > 0


def test_a_later_turn_gives_the_model_what_was_found() -> None:
    with searching("deepseek") as played:
        played.replies = [*two_rounds(False), chat_reply(text("Yes."), stream=False)]
        first = ask_claude(played, stream=False)
        history = [*QUESTION, {"role": "assistant", "content": first.content}, {"role": "user", "content": "Sure?"}]
        ask_claude(played, stream=False, messages=history)
    turns = played.bodies[2]["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "tool", "assistant", "user"]
    assert turns[1]["tool_calls"][0]["function"]["name"] == "web_search"
    assert "The sky is blue." in turns[2]["content"]
    assert turns[3]["content"] == "The sky is blue."


@whole_and_streamed
def test_responses_search_is_made_by_the_gateway(stream: bool) -> None:
    with searching("deepseek") as played:
        played.replies = two_rounds(stream)
        client = openai.OpenAI(base_url=f"{played.address}/v1", api_key="k", max_retries=0)
        fields: dict[str, Any] = {"model": MODEL, "input": "Which colour?", "tools": [{"type": "web_search"}]}
        if stream:
            with client.responses.stream(**fields) as events:
                response = events.get_final_response()
        else:
            response = client.responses.create(**fields)
    kinds = [item.type for item in response.output]
    assert kinds == ["web_search_call", "message"]
    call = response.output[0]
    assert call.type == "web_search_call"
    assert call.status == "completed"
    assert call.action.model_dump()["query"] == "sky colour"
    assert response.output_text == "The sky is blue."


@whole_and_streamed
def test_chats_search_lists_its_pages_as_citations(stream: bool) -> None:
    with searching("deepseek") as played:
        played.replies = two_rounds(stream)
        client = openai.OpenAI(base_url=f"{played.address}/v1", api_key="k", max_retries=0)
        fields: dict[str, Any] = {"model": MODEL, "messages": QUESTION, "web_search_options": {}}
        if stream:
            with client.chat.completions.stream(**fields) as events:
                reply = events.get_final_completion()
        else:
            reply = client.chat.completions.create(**fields)
    message = reply.choices[0].message
    assert message.content == "The sky is blue."
    assert not message.tool_calls
    assert reply.choices[0].finish_reason == "stop"
    cited = [one.url_citation.url for one in message.annotations or []]
    assert cited == [PAGE["url"], OTHER["url"]]


def test_geminis_search_lists_its_pages() -> None:
    with searching("deepseek") as played:
        played.replies = two_rounds(False)
        client = genai.Client(api_key="k", http_options={"base_url": played.address})
        tools: Any = [{"google_search": {}}]
        reply = client.models.generate_content(model=MODEL, contents="Which colour?", config={"tools": tools})
    assert reply.text == "The sky is blue."
    assert reply.candidates is not None
    grounding = reply.candidates[0].grounding_metadata
    assert grounding is not None
    assert [chunk.web.uri for chunk in grounding.grounding_chunks or [] if chunk.web] == [PAGE["url"], OTHER["url"]]


@whole_and_streamed
def test_a_failed_search_is_told_to_model_and_client(stream: bool) -> None:
    with searching("deepseek") as played:
        played.status = 503
        played.replies = [chat_reply(tool_call("sky"), stream=stream), chat_reply(text("Unknown."), stream=stream)]
        message = ask_claude(played, stream=stream)
    found = message.content[1]
    assert found.content.error_code == "unavailable"
    assert "unavailable" in played.bodies[1]["messages"][2]["content"]
    assert message.content[2].text == "Unknown."


@pytest.mark.parametrize("pages", [b"", b"[", b"[" * 100_000, b'{"results": {"a": 1}}', b'{"results": 5}'])
def test_a_hostile_answer_of_the_service_is_a_failed_search(pages: bytes) -> None:
    with searching("deepseek") as played:
        played.pages = pages
        played.replies = two_rounds(False)
        message = ask_claude(played, stream=False)
    assert message.content[1].content.error_code == "unavailable"


def test_domains_hold_whatever_the_service_gives() -> None:
    with searching("deepseek") as played:
        played.pages = {
            "results": [
                PAGE,
                OTHER,
                {"url": "javascript:alert(1)"},
                {"url": 5},
                {**OTHER, "url": "https://x.docs.example/"},
            ]
        }
        played.replies = two_rounds(False)
        message = ask_claude(played, stream=False, tools=[{**TOOL, "allowed_domains": ["docs.example"]}])
    assert [page.url for page in message.content[1].content] == [PAGE["url"], "https://x.docs.example/"]
    assert played.searches[0]["include_domains"] == ["docs.example"]


def test_no_more_searches_are_made_than_allowed() -> None:
    with searching("deepseek") as played:
        calls = [chat_reply(tool_call(f"q{number}"), stream=False) for number in range(3)]
        played.replies = [*calls, chat_reply(text("Enough."), stream=False)]
        message = ask_claude(played, stream=False)
    assert len(played.searches) == TOOL["max_uses"]
    assert message.content[5].content.error_code == "max_uses_exceeded"
    assert message.content[-1].text == "Enough."


def test_a_model_that_only_searches_is_stopped() -> None:
    with searching("deepseek") as played:
        played.replies = [chat_reply(tool_call(f"q{number}"), stream=False) for number in range(20)]
        message = ask_claude(played, stream=False)
    assert message.stop_reason == "end_turn"
    assert len(played.bodies) == TOOL["max_uses"] + 3


def test_a_call_of_the_clients_own_tool_goes_to_the_client() -> None:
    own = {"name": "read_file", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}
    both = tool_call("sky")
    both["tool_calls"].append(
        {"id": "call_2", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    )
    with searching("deepseek") as played:
        played.replies = [chat_reply(both, stream=False), chat_reply(text("Done."), stream=False)]
        message = ask_claude(played, stream=False, tools=[TOOL, own])
        assert [block.type for block in message.content] == ["tool_use", "server_tool_use", "web_search_tool_result"]
        assert message.stop_reason == "tool_use"
        result = {"type": "tool_result", "tool_use_id": message.content[0].id, "content": "42"}
        history = [*QUESTION, {"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]
        ask_claude(played, stream=False, messages=history, tools=[TOOL, own])
    roles = [turn["role"] for turn in played.bodies[1]["messages"]]
    assert roles == ["user", "assistant", "tool", "tool"]


def test_searches_whose_client_left_their_ids_out_are_paired_in_their_order() -> None:
    found = {"type": "web_search_result", "url": "https://sky.example", "title": "Sky", "encrypted_content": "x"}
    blocks = [
        {"type": "server_tool_use", "name": "web_search", "input": {"query": "sky"}},
        {"type": "server_tool_use", "name": "web_search", "input": {"query": "sea"}},
        {"type": "web_search_tool_result", "content": [found]},
        {"type": "web_search_tool_result", "content": [found]},
    ]
    history = [*QUESTION, {"role": "assistant", "content": blocks}, {"role": "user", "content": "Go on."}]
    with searching("deepseek") as played:
        played.replies = [chat_reply(text("Done."), stream=False)]
        ask_claude(played, stream=False, messages=history)
    turns = played.bodies[0]["messages"]
    called = [call["id"] for turn in turns for call in turn.get("tool_calls") or ()]
    assert called == [turn["tool_call_id"] for turn in turns if turn["role"] == "tool"]
    assert len(set(called)) == 2
    assert not any("None" in one for one in called)


def test_a_provider_that_searches_is_left_to_it() -> None:
    with searching("anthropic") as played:
        played.replies = [
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "claude-sonnet-4-6",
                "content": [{"type": "text", "text": "Blue."}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }
        ]
        ask_claude(played, stream=False, model="claude-sonnet-4-6")
    assert played.bodies[0]["tools"] == [TOOL]
    assert not played.searches


def test_results_of_the_gateway_are_text_for_a_provider_that_searches() -> None:
    with searching("deepseek") as played:
        played.replies = two_rounds(False)
        first = ask_claude(played, stream=False)
    history = [*QUESTION, {"role": "assistant", "content": first.content}, {"role": "user", "content": "Sure?"}]
    with searching("anthropic") as played:
        played.replies = [
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "claude-sonnet-4-6",
                "content": [{"type": "text", "text": "Yes."}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }
        ]
        ask_claude(played, stream=False, model="claude-sonnet-4-6", messages=history)
    kinds = [block["type"] for block in played.bodies[0]["messages"][1]["content"]]
    assert kinds == ["text", "text"]
    assert "The sky is blue." in json.dumps(played.bodies[0])


def test_a_key_that_a_service_repeats_is_shown_to_nobody() -> None:
    with searching("deepseek") as played:
        played.pages = {"results": [{**PAGE, "content": f"your key is {SEARCH_KEY}"}]}
        played.replies = two_rounds(False)
        message = ask_claude(played, stream=False)
    assert SEARCH_KEY not in json.dumps(played.bodies)
    assert SEARCH_KEY not in message.model_dump_json()


def test_without_a_search_service_the_tool_is_refused() -> None:
    with searching("deepseek", search="") as played, pytest.raises(anthropic.BadRequestError, match="web_search"):
        ask_claude(played, stream=False)


def test_a_model_that_can_searches_for_one_that_cannot() -> None:
    answer = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "gpt-5.4",
        "output": [
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [
                    {
                        "type": "output_text",
                        "text": "It is blue.",
                        "annotations": [
                            {
                                "type": "url_citation",
                                "url": PAGE["url"],
                                "title": "A page",
                                "start_index": 0,
                                "end_index": 11,
                            }
                        ],
                    }
                ],
            }
        ],
        "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
    }
    with searching("openai", search='model = "gpt-5.4"\nalways = true') as played:
        played.replies = [
            {
                **answer,
                "output": [
                    {
                        "type": "function_call",
                        "id": "fc_1",
                        "call_id": "call_1",
                        "name": "web_search",
                        "arguments": '{"query": "sky"}',
                        "status": "completed",
                    }
                ],
            },
            answer,
            answer,
        ]
        message = ask_claude(played, stream=False, model="gpt-5.4")
    assert played.bodies[1]["tools"][0]["type"] == "web_search"
    assert message.content[1].content[0].url == PAGE["url"]
    assert message.content[2].text == "It is blue."

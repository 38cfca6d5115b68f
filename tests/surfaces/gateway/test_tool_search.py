"""Tools that are loaded when a search finds them, over providers without such a search, as the official libraries use them."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import pytest

from bardo.simulators import Script, ToolCall, Turn
from support.gateway import House, Remembering, house, model_of
from support.patience import PATIENCE
from support.sdk import openai_client
from surfaces.gateway.cells import whole_and_streamed

CITY = {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the town"}}}
PLAIN = (
    ("get_weather", "Tells the weather of a place"),
    ("send_mail", "Sends a letter"),
    ("list_files", "Lists a folder"),
)
CLAUDE_TOOLS: list[Any] = [
    {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
    {"name": "clock", "description": "Tells the time", "input_schema": {"type": "object", "properties": {}}},
    *({"name": name, "description": told, "input_schema": CITY, "defer_loading": True} for name, told in PLAIN),
]
FUNCTIONS = [
    {"type": "function", "name": name, "description": told, "parameters": CITY, "strict": False, "defer_loading": True}
    for name, told in PLAIN
]
OPENAI_TOOLS: list[Any] = [
    {"type": "tool_search"},
    {
        "type": "function",
        "name": "clock",
        "description": "Tells the time",
        "parameters": {"type": "object"},
        "strict": False,
    },
    {"type": "namespace", "name": "crm", "description": "Customers", "tools": FUNCTIONS[:2]},
    FUNCTIONS[2],
]
OTHERS = ("deepseek", "gemini", "mistral", "bedrock", "openrouter", "cohere", "ollama")


def search(name: str, **arguments: Any) -> Turn:
    return Turn(text="I look.", reasoning="Which tool?", tool_calls=(ToolCall(name, arguments),))


def script(name: str, tool: str, **arguments: Any) -> Script:
    call = Turn(reasoning="This one.", tool_calls=(ToolCall(tool, {"city": "Paris"}),))
    return Script((search(name, **arguments), call, Turn(reasoning="Done.", text="It is sunny.")), in_order=True)


def names_sent(running: House, provider: str) -> list[list[str]]:
    """Return the names of the tools of each request that a provider got."""
    found = []
    for incoming in running.arrived(provider):
        body = json.loads(incoming.raw)
        listed = body.get("tools") or body.get("toolConfig", {}).get("tools") or []
        each = [one for tool in listed for one in tool.get("functionDeclarations", [tool])]
        found.append([(one.get("function") or one.get("toolSpec") or one)["name"] for one in each])
    return found


def said(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages of a Chat request without thinking, which the client gave none back of."""
    texts = [
        one
        if isinstance(one.get("content"), str) or not one.get("content")
        else {**one, "content": one["content"][-1]["text"]}
        for one in messages
    ]
    return [{name: value for name, value in one.items() if name not in ("reasoning", "thinking")} for one in texts]


def claude(running: House) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=running.address, api_key="k", max_retries=0, timeout=PATIENCE)


def ask_claude(client: anthropic.Anthropic, *, stream: bool, **asked: Any) -> Any:
    if not stream:
        return client.messages.create(max_tokens=900, **asked)
    with client.messages.stream(max_tokens=900, **asked) as events:
        return events.get_final_message()


def dumped(items: Any) -> list[Any]:
    return [one.model_dump(mode="json", exclude_none=True, warnings=False) for one in items]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("provider", OTHERS)
@whole_and_streamed
def test_a_client_of_claudes_finds_a_tool_and_calls_it(provider: str, stream: bool) -> None:
    upstream = Remembering(provider, script=script("tool_search_tool_bm25", "get_weather", query="weather in a town"))
    with house([upstream]) as running, claude(running) as client:
        asked: dict[str, Any] = {"model": model_of(provider), "tools": CLAUDE_TOOLS}
        turns: list[Any] = [{"role": "user", "content": "The weather in Paris?"}]
        found = ask_claude(client, stream=stream, messages=turns, **asked)
        shown = {block.type: block for block in found.content}
        use, result, call = (shown[kind] for kind in ("server_tool_use", "tool_search_tool_result", "tool_use"))
        assert (use.name, use.input, use.id) == (
            "tool_search_tool_bm25",
            {"query": "weather in a town"},
            result.tool_use_id,
        )
        assert result.content.tool_references[0].tool_name == call.name == "get_weather"
        assert (found.stop_reason, call.input) == ("tool_use", {"city": "Paris"})
        answer: dict[str, Any] = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}
        turns += [{"role": "assistant", "content": dumped(found.content)}, {"role": "user", "content": [answer]}]
        assert "sunny" in "".join(
            block.text
            for block in ask_claude(client, stream=stream, messages=turns, **asked).content
            if block.type == "text"
        )
        before, *after = names_sent(running, provider)
        assert before == ["clock", "tool_search_tool_bm25"]
        assert after[0][: len(before) + 1] == [*before, "get_weather"]
        assert after[0] == after[1], "the next turn offers what the search of this one found, in the same order"
        if provider in ("mistral", "ollama"):
            turns_sent = [json.loads(incoming.raw)["messages"] for incoming in running.arrived(provider)]
            assert said(turns_sent[2])[: len(turns_sent[1])] == said(turns_sent[1]), "what was cached is sent again"
        rows = running.log.rows
        assert [row.outcome for row in rows] == ["ok", "ok"]
        assert rows[0].input_tokens == found.usage.input_tokens
        assert "tool tool_search_tool_bm25" in [one["what"] for one in rows[0].degraded]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("provider", ["anthropic", *OTHERS])
@whole_and_streamed
def test_a_client_of_openais_finds_a_function_of_a_namespace_and_calls_it(provider: str, stream: bool) -> None:
    upstream = Remembering(provider, script=script("tool_search", "crm__get_weather", query="weather"))
    with house([upstream]) as running, openai_client(running.address) as client:
        asked: dict[str, Any] = {"model": model_of(provider), "tools": OPENAI_TOOLS, "store": False, "stream": stream}

        def ask(items: list[Any]) -> Any:
            made = client.responses.create(input=items, **asked)
            return [*made][-1].response if stream else made

        items: list[Any] = [{"role": "user", "content": "The weather in Paris?"}]
        found = ask(items)
        shown = {item.type: item for item in found.output}
        searched, output, call = (shown[kind] for kind in ("tool_search_call", "tool_search_output", "function_call"))
        assert (searched.execution, searched.arguments, searched.status) == (
            "server",
            {"query": "weather"},
            "completed",
        )
        [space] = dumped(output.tools)
        assert (space["name"], space["description"], [one["name"] for one in space["tools"]]) == (
            "crm",
            "Customers",
            ["get_weather"],
        )
        assert space["tools"][0]["parameters"] == CITY
        assert (call.name, call.namespace) == ("get_weather", "crm")
        result: dict[str, Any] = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
        assert "sunny" in ask([*items, *dumped(found.output), result]).output_text
        before, *after = names_sent(running, provider)
        assert before == ["clock", "tool_search"]
        assert after == [[*before, "crm__get_weather"]] * 2


def two_searches(name: str, tool: str) -> Script:
    both = tuple(ToolCall(name, {"query": words}) for words in ("weather", "letter"))
    call = Turn(tool_calls=(ToolCall(tool, {"city": "Paris"}),))
    return Script((Turn(text="I look.", tool_calls=both), call, Turn(text="It is sunny.")), in_order=True)


def assert_cached_again(running: House) -> None:
    """Assert that the third request begins as the second one was."""
    _, before, after = [json.loads(incoming.raw)["messages"] for incoming in running.arrived("mistral")]
    assert [one["role"] for one in before] == ["user", "assistant", "tool", "tool"]
    assert said(after)[: len(before)] == said(before)


def test_two_searches_of_one_turn_are_one_turn_again_for_a_client_of_claudes() -> None:
    upstream = Remembering("mistral", script=two_searches("tool_search_tool_bm25", "get_weather"))
    with house([upstream]) as running, claude(running) as client:
        asked: dict[str, Any] = {"model": model_of("mistral"), "tools": CLAUDE_TOOLS}
        turns: list[Any] = [{"role": "user", "content": "The weather in Paris?"}]
        found = ask_claude(client, stream=False, messages=turns, **asked)
        answer: dict[str, Any] = {"type": "tool_result", "tool_use_id": found.content[-1].id, "content": "sunny"}
        turns += [{"role": "assistant", "content": dumped(found.content)}, {"role": "user", "content": [answer]}]
        ask_claude(client, stream=False, messages=turns, **asked)
        assert_cached_again(running)


def test_two_searches_of_one_turn_are_one_turn_again_for_a_client_of_openais() -> None:
    upstream = Remembering("mistral", script=two_searches("tool_search", "crm__get_weather"))
    with house([upstream]) as running, openai_client(running.address) as client:
        asked: dict[str, Any] = {"model": model_of("mistral"), "tools": OPENAI_TOOLS, "store": False}
        items: list[Any] = [{"role": "user", "content": "The weather in Paris?"}]
        found = client.responses.create(input=items, **asked).output
        result: Any = {"type": "function_call_output", "call_id": dumped(found)[-1]["call_id"], "output": "sunny"}
        sent_back: list[Any] = [{name: value for name, value in one.items() if name != "id"} for one in dumped(found)]
        client.responses.create(input=[*items, *sent_back, result], **asked)
        assert_cached_again(running)


def test_a_model_that_only_searches_is_stopped_and_told() -> None:
    upstream = Remembering("gemini", script=Script((search("tool_search_tool_bm25", query="weather"),)))
    with house([upstream]) as running, claude(running) as client:
        message = ask_claude(
            client,
            stream=False,
            model=model_of("gemini"),
            tools=CLAUDE_TOOLS,
            messages=[{"role": "user", "content": "Hi"}],
        )
        contents = [block.content for block in message.content if block.type == "tool_search_tool_result"]
        kinds = [content.type for content in contents]
        assert kinds.count("tool_search_tool_search_result") == 8
        assert contents[-1].error_code == "too_many_requests"
        assert message.stop_reason == "end_turn"
        assert len(running.arrived("gemini")) <= 11


@pytest.mark.parametrize("arguments", [{"query": "("}, {"pattern": "("}, {}])
def test_a_search_that_cannot_be_made_is_told_to_client_and_model(arguments: dict[str, Any]) -> None:
    tools = [{"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}, *CLAUDE_TOOLS[1:]]
    turns = (search("tool_search_tool_regex", **arguments), Turn(text="I cannot."))
    with house([Remembering("gemini", script=Script(turns, in_order=True))]) as running, claude(running) as client:
        message = ask_claude(
            client, stream=False, model=model_of("gemini"), tools=tools, messages=[{"role": "user", "content": "Hi"}]
        )
        [content] = [block.content for block in message.content if block.type == "tool_search_tool_result"]
        assert (content.type, content.error_code) == ("tool_search_tool_result_error", "invalid_tool_input")
        assert "invalid_tool_input" in running.arrived("gemini")[-1].raw.decode()


@whole_and_streamed
def test_a_provider_that_searches_itself_gets_the_tools_as_they_came(stream: bool) -> None:
    with house([Remembering("anthropic", script=Script((Turn(text="Hello."),)))]) as running, claude(running) as client:
        turns: list[Any] = [{"role": "user", "content": "Hi"}]
        ask_claude(client, stream=stream, model=model_of("anthropic"), tools=CLAUDE_TOOLS, messages=turns)
        assert running.last("anthropic")["tools"] == CLAUDE_TOOLS
        assert running.log.rows[-1].degraded == ()
    with house([Remembering("openai_responses", script=Script((Turn(text="Hello."),)))]) as running:
        with openai_client(running.address) as client_of_openai:
            client_of_openai.responses.create(
                model=model_of("openai_responses"), input="Hi", tools=OPENAI_TOOLS, store=False
            )
        assert running.last("openai_responses")["tools"] == OPENAI_TOOLS


def test_a_conversation_that_began_at_claude_goes_on_elsewhere_with_what_was_found() -> None:
    references = [{"type": "tool_reference", "tool_name": "send_mail"}]
    content = {"type": "tool_search_tool_search_result", "tool_references": references}
    searched: list[Any] = [
        {"type": "server_tool_use", "id": "srvtoolu_01", "name": "tool_search_tool_bm25", "input": {"query": "mail"}},
        {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_01", "content": content},
        {"type": "text", "text": "Found."},
    ]
    turns: list[Any] = [
        {"role": "user", "content": "Write to Bob"},
        {"role": "assistant", "content": searched},
        {"role": "user", "content": "Go on"},
    ]
    with house([Remembering("mistral", script=Script((Turn(text="Sent."),)))]) as running, claude(running) as client:
        ask_claude(client, stream=False, model=model_of("mistral"), tools=CLAUDE_TOOLS, messages=turns)
        assert names_sent(running, "mistral") == [["clock", "tool_search_tool_bm25", "send_mail"]]
        assert "Sends a letter" in json.dumps(running.last("mistral")["messages"])


def test_a_client_that_searches_itself_is_offered_what_it_referred_to() -> None:
    """As Claude Code does it: a tool of its own answers with references, and all others are deferred."""
    own = {"name": "ToolSearch", "description": "Finds tools", "input_schema": {"type": "object", "properties": {}}}
    tools = [own, *CLAUDE_TOOLS[1:]]
    reference = {"type": "tool_reference", "tool_name": "list_files"}
    turns: list[Any] = [
        {"role": "user", "content": "What is here?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "ToolSearch", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [reference]}]},
    ]
    with house([Remembering("gemini", script=Script((Turn(text="Hello."),)))]) as running, claude(running) as client:
        for messages in (turns[:1], turns):
            ask_claude(client, stream=False, model=model_of("gemini"), tools=tools, messages=messages)
        assert names_sent(running, "gemini") == [["ToolSearch", "clock"], ["ToolSearch", "clock", "list_files"]]

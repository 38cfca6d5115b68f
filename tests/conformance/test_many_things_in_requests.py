"""A request with thousands of anything takes time in proportion, from its bytes to the bytes that its provider gets.

A new kind of thing is one line of the table of its dialect.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from bardo.adapters.stores.state import MemoryStore
from support.growth import check_growth
from support.sampling import sample
from support.scripted import Scripted, reply
from support.talk import body_for, path_for
from support.upstream_replies import REPLIES

# Ten times as many: what copies or searches a list for each thing shows beside the rest of the work only where there are thousands.
FEW, MANY, BELOW = 1_000, 10_000, 30
BY_DAY = 2
OBJECT: dict[str, Any] = {"type": "object", "properties": {}}
MARK = {"type": "ephemeral"}
WEB = "https://example.com"
TEXT = {"type": "text", "text": "x"}

Body = dict[str, Any]
Kinds = dict[str, Callable[[int], Body]]


def each(count: int, make: Callable[[int], Any]) -> list[Any]:
    return [make(number) for number in range(count)]


def several(count: int, make: Callable[[int], Sequence[Any]]) -> list[Any]:
    """Return what is made for each number, one behind the other."""
    return [one for number in range(count) for one in make(number)]


def names(count: int) -> list[str]:
    return each(count, lambda n: f"n{n}")


def schema(count: int) -> Body:
    return {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names(count)},
        "required": names(count),
    }


def schema_of_references(count: int) -> Body:
    kinds = {name: {"type": "string"} for name in names(count)}
    return {
        "type": "object",
        "$defs": kinds,
        "properties": {name: {"$ref": f"#/$defs/{name}"} for name in kinds},
    }


def answer_form(given: Body) -> Body:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": given}}}


def chat_tool(name: str, parameters: Body = OBJECT) -> Body:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def chat_call(number: int) -> Body:
    return {"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def chat_turns(*turns: Body) -> Body:
    return {"messages": [{"role": "user", "content": "q"}, *turns]}


def chat_result(number: int) -> Body:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": "r"}


def chat_allowed(count: int) -> Body:
    listed = [{"type": "function", "function": {"name": name}} for name in names(count)]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": listed}}
    return {"tools": [chat_tool(name) for name in names(count)], "tool_choice": choice}


CHAT: Kinds = {
    "blocks": lambda n: {"messages": [{"role": "user", "content": [TEXT] * n}]},
    "messages": lambda n: {"messages": [{"role": "user", "content": "x"}] * n},
    "texts of the system": lambda n: {
        "messages": [*[{"role": "system", "content": "x"}] * n, *chat_turns()["messages"]]
    },
    "cache markers": lambda n: {"messages": [{"role": "user", "content": [{**TEXT, "cache_control": MARK}] * n}]},
    "files": lambda n: {
        "messages": [
            {
                "role": "user",
                "content": each(
                    n,
                    lambda i: {
                        "type": "file",
                        "file": {"filename": f"{i}.pdf", "file_data": "data:application/pdf;base64,AAAA"},
                    },
                ),
            }
        ]
    },
    "calls": lambda n: chat_turns({"role": "assistant", "tool_calls": each(n, chat_call)}, *each(n, chat_result)),
    "calls of one id": lambda n: chat_turns({"role": "assistant", "tool_calls": [chat_call(0)] * n}, chat_result(0)),
    "results in another order": lambda n: chat_turns(
        {"role": "assistant", "tool_calls": each(n, chat_call)}, *reversed(each(n, chat_result))
    ),
    "blocks of one result": lambda n: chat_turns(
        {"role": "assistant", "tool_calls": [chat_call(0)]}, {**chat_result(0), "content": [TEXT] * n}
    ),
    "results of one call": lambda n: chat_turns(
        {"role": "assistant", "tool_calls": [chat_call(0)]}, *[chat_result(0)] * n
    ),
    "results of no call": lambda n: chat_turns(*each(n, chat_result)),
    "calls without results": lambda n: chat_turns(
        *each(n, lambda i: {"role": "assistant", "tool_calls": [chat_call(i)]})
    ),
    "turns": lambda n: chat_turns(
        *several(
            n,
            lambda i: (
                {"role": "assistant", "reasoning_content": "t", "tool_calls": [chat_call(i)]},
                chat_result(i),
            ),
        )
    ),
    "answers in a row": lambda n: chat_turns(
        *[{"role": "assistant", "content": "x", "reasoning_content": "t"}] * n, {"role": "user", "content": "q"}
    ),
    "unknown fields of blocks": lambda n: {
        "messages": [{"role": "user", "content": each(n, lambda i: {**TEXT, f"f{i}": i})}]
    },
    "unknown fields of messages": lambda n: {
        "messages": each(n, lambda i: {"role": "user", "content": "q", f"f{i}": i})
    },
    "entries of thinking": lambda n: chat_turns(
        {
            "role": "assistant",
            "content": "x",
            "reasoning_details": each(
                n, lambda i: {"type": "reasoning.text", "text": "t", "index": i, "signature": "s"}
            ),
        },
        {"role": "user", "content": "q"},
    ),
    "tools": lambda n: {"tools": [chat_tool(name) for name in names(n)]},
    "tools of one name": lambda n: {"tools": [chat_tool("t")] * n},
    "tools with long names": lambda n: {"tools": [chat_tool("a.b/" * 20 + name) for name in names(n)]},
    "allowed tools": chat_allowed,
    "properties": lambda n: {"tools": [chat_tool("t", schema(n))]},
    "references of a tool": lambda n: {"tools": [chat_tool("t", schema_of_references(n))]},
    "properties of an answer": lambda n: answer_form(schema(n)),
    "references of an answer": lambda n: answer_form(schema_of_references(n)),
    "choices of an answer": lambda n: answer_form(
        {"type": "object", "properties": {"a": {"anyOf": [{"const": name} for name in names(n)]}}}
    ),
    "stop sequences": lambda n: {"stop": names(n)},
    "metadata": lambda n: {"metadata": dict.fromkeys(names(n), "v")},
    "unknown fields": lambda n: dict.fromkeys(names(n), 1),
    "unknown blocks": lambda n: {"messages": [{"role": "user", "content": [{"type": name} for name in names(n)]}]},
}


def message_turns(*turns: list[Body]) -> Body:
    said = [[TEXT], *turns]
    return {
        "messages": [
            {"role": ("user", "assistant")[place % 2], "content": content} for place, content in enumerate(said)
        ]
    }


def message_call(number: int) -> Body:
    return {"type": "tool_use", "id": f"c{number}", "name": "f", "input": {}}


def message_result(number: int) -> Body:
    return {"type": "tool_result", "tool_use_id": f"c{number}", "content": "r"}


MESSAGES: Kinds = {
    "blocks": lambda n: {"messages": [{"role": "user", "content": [TEXT] * n}]},
    "cache markers": lambda n: {"messages": [{"role": "user", "content": [{**TEXT, "cache_control": MARK}] * n}]},
    "cache markers of the system": lambda n: {"system": [{**TEXT, "cache_control": MARK}] * n},
    "cache markers of tools": lambda n: {
        "tools": [{"name": name, "input_schema": OBJECT, "cache_control": MARK} for name in names(n)]
    },
    "documents": lambda n: {
        "messages": [
            {
                "role": "user",
                "content": [
                    {
                        "type": "document",
                        "title": t,
                        "source": {"type": "text", "media_type": "text/plain", "data": "x"},
                    }
                    for t in names(n)
                ],
            }
        ]
    },
    "search results": lambda n: {
        "messages": [
            {
                "role": "user",
                "content": [{"type": "search_result", "source": WEB, "title": t, "content": [TEXT]} for t in names(n)],
            }
        ]
    },
    "calls": lambda n: message_turns(each(n, message_call), each(n, message_result)),
    "results of one call": lambda n: message_turns([message_call(0)], [message_result(0)] * n),
    "turns": lambda n: message_turns(
        *several(
            n,
            lambda i: (
                [{"type": "thinking", "thinking": "t", "signature": "s"}, message_call(i)],
                [message_result(i)],
            ),
        )
    ),
    "answers in a row": lambda n: {
        "messages": [*[{"role": "assistant", "content": [TEXT]}] * n, {"role": "user", "content": "q"}]
    },
    "results of no call": lambda n: message_turns([TEXT], each(n, message_result)),
    "unknown fields of blocks": lambda n: {
        "messages": [{"role": "user", "content": each(n, lambda i: {**TEXT, f"f{i}": i})}]
    },
    "blocks of one result": lambda n: message_turns([message_call(0)], [{**message_result(0), "content": [TEXT] * n}]),
    "thinking": lambda n: message_turns([{"type": "thinking", "thinking": "t", "signature": "s"}] * n, [TEXT]),
    "redacted thinking": lambda n: message_turns([{"type": "redacted_thinking", "data": "s"}] * n, [TEXT]),
    "stop sequences": lambda n: {"stop_sequences": names(n)},
    "tools": lambda n: {"tools": [{"name": name, "input_schema": OBJECT} for name in names(n)]},
    "metadata": lambda n: {"metadata": dict.fromkeys(names(n), "v")},
}


def gemini_turns(*turns: list[Body]) -> Body:
    said = [[{"text": "q"}], *turns]
    return {"contents": [{"role": ("user", "model")[place % 2], "parts": parts} for place, parts in enumerate(said)]}


def gemini_tools(count: int) -> Body:
    return {"tools": [{"functionDeclarations": [{"name": name} for name in names(count)]}]}


GEMINI: Kinds = {
    "parts": lambda n: {"contents": [{"role": "user", "parts": [{"text": "x"}] * n}]},
    "calls": lambda n: gemini_turns(
        [{"functionCall": {"name": "f", "args": {}}}] * n, [{"functionResponse": {"name": "f", "response": {}}}] * n
    ),
    "turns": lambda n: gemini_turns(
        *several(
            n,
            lambda i: (
                [
                    {"text": "t", "thought": True},
                    {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2lnbmVk"},
                ],
                [{"functionResponse": {"name": "f", "response": {}}}],
            ),
        )
    ),
    "answers in a row": lambda n: {
        "contents": [
            *each(n, lambda _: {"role": "model", "parts": [{"text": "x"}]}),
            {"role": "user", "parts": [{"text": "q"}]},
        ]
    },
    "calls of many names": lambda n: gemini_turns(
        [{"functionCall": {"name": name, "args": {}}} for name in names(n)],
        [{"functionResponse": {"name": name, "response": {}}} for name in reversed(names(n))],
    ),
    "tools": gemini_tools,
    "lists of tools": lambda n: {"tools": [{"functionDeclarations": [{"name": name}]} for name in names(n)]},
    "allowed tools": lambda n: {
        **gemini_tools(n),
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": names(n)}},
    },
    "properties": lambda n: {"tools": [{"functionDeclarations": [{"name": "t", "parameters": schema(n)}]}]},
    "stop sequences": lambda n: {"generationConfig": {"stopSequences": names(n)}},
    "safety settings": lambda n: {"safetySettings": [{"category": name, "threshold": "OFF"} for name in names(n)]},
}


def response_items(*items: Body) -> Body:
    return {"input": [{"role": "user", "content": "q"}, *items, {"role": "user", "content": "q"}]}


def response_tool(name: str) -> Body:
    return {"type": "function", "name": name, "parameters": OBJECT}


def namespaces(count: int) -> list[Body]:
    return [{"type": "namespace", "name": name, "tools": [response_tool("t")]} for name in names(count)]


def response_allowed(tools: list[Body]) -> Body:
    listed = [{"type": tool["type"], "name": tool["name"]} for tool in tools]
    return {"tools": tools, "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": listed}}


RESPONSES: Kinds = {
    "parts": lambda n: response_items({"role": "user", "content": [{"type": "input_text", "text": "x"}] * n}),
    "calls": lambda n: response_items(
        *each(n, lambda i: {"type": "function_call", "call_id": f"c{i}", "name": "f", "arguments": "{}"}),
        *each(n, lambda i: {"type": "function_call_output", "call_id": f"c{i}", "output": "r"}),
    ),
    "reasoning": lambda n: response_items(
        *each(n, lambda i: {"type": "reasoning", "id": f"r{i}", "summary": [{"type": "summary_text", "text": "t"}]}),
        {"role": "assistant", "content": "x"},
    ),
    "encrypted reasoning": lambda n: response_items(
        *each(n, lambda i: {"type": "reasoning", "id": f"r{i}", "summary": [], "encrypted_content": f"gAAAA{i}"}),
    ),
    "turns": lambda n: response_items(
        *several(
            n,
            lambda i: (
                {"type": "reasoning", "id": f"r{i}", "summary": [], "encrypted_content": f"gAAAA{i}"},
                {"type": "function_call", "call_id": f"c{i}", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": f"c{i}", "output": "r"},
            ),
        )
    ),
    "outputs of one call": lambda n: response_items(
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        *[{"type": "function_call_output", "call_id": "c", "output": "r"}] * n,
    ),
    "answers in a row": lambda n: response_items(*[{"role": "assistant", "content": "x"}] * n),
    "unknown items": lambda n: response_items(*({"type": name, "id": name} for name in names(n))),
    "tools": lambda n: {"tools": [response_tool(name) for name in names(n)]},
    "custom tools": lambda n: {"tools": [{"type": "custom", "name": name} for name in names(n)]},
    "namespaces": lambda n: {"tools": namespaces(n)},
    "allowed tools": lambda n: response_allowed([response_tool(name) for name in names(n)]),
    "allowed custom tools": lambda n: response_allowed([{"type": "custom", "name": name} for name in names(n)]),
    "allowed namespaces": lambda n: response_allowed(namespaces(n)),
    "metadata": lambda n: {"metadata": dict.fromkeys(names(n), "v")},
}


def converse_turns(*turns: list[Body]) -> Body:
    said = [[{"text": "q"}], *turns]
    return {
        "messages": [{"role": ("user", "assistant")[place % 2], "content": blocks} for place, blocks in enumerate(said)]
    }


def converse_call(number: int) -> Body:
    return {"toolUse": {"toolUseId": f"c{number}", "name": "f", "input": {}}}


def converse_result(number: int) -> Body:
    return {"toolResult": {"toolUseId": f"c{number}", "content": [{"text": "r"}]}}


def converse_tool(name: str) -> Body:
    return {"toolSpec": {"name": name, "inputSchema": {"json": OBJECT}}}


CONVERSE: Kinds = {
    "blocks": lambda n: converse_turns([{"text": "x"}] * n),
    "turns": lambda n: converse_turns(
        *several(
            n,
            lambda i: (
                [{"reasoningContent": {"reasoningText": {"text": "t", "signature": "s"}}}, converse_call(i)],
                [converse_result(i)],
            ),
        )
    ),
    "results of one call": lambda n: converse_turns([converse_call(0)], [converse_result(0)] * n),
    "cache points": lambda n: converse_turns([{"text": "x"}, {"cachePoint": {"type": "default"}}] * n),
    "tools": lambda n: {"toolConfig": {"tools": [converse_tool(name) for name in names(n)]}},
}


def cohere_call(number: int) -> Body:
    return {
        "role": "assistant",
        "tool_plan": "t",
        "tool_calls": [{"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }


COHERE: Kinds = {
    "blocks": lambda n: {"messages": [{"role": "user", "content": [TEXT] * n}]},
    "turns": lambda n: chat_turns(*several(n, lambda i: (cohere_call(i), chat_result(i)))),
    "results of one call": lambda n: chat_turns(cohere_call(0), *[chat_result(0)] * n),
    "documents": lambda n: {"documents": each(n, lambda i: {"id": f"d{i}", "data": {"text": "x"}})},
    "tools": lambda n: {"tools": [chat_tool(name) for name in names(n)]},
}

OLLAMA: Kinds = {
    "messages": lambda n: {"messages": [{"role": "user", "content": "x"}] * n},
    "turns": lambda n: chat_turns(
        *several(
            n,
            lambda _: (
                {
                    "role": "assistant",
                    "thinking": "t",
                    "content": "",
                    "tool_calls": [{"function": {"name": "f", "arguments": {}}}],
                },
                {"role": "tool", "tool_name": "f", "content": "r"},
            ),
        )
    ),
    "results of one call": lambda n: chat_turns(
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
        *[{"role": "tool", "tool_name": "f", "content": "r"}] * n,
    ),
    "pictures": lambda n: {"messages": [{"role": "user", "content": "x", "images": ["iVBORw0KGgo="] * n}]},
    "tools": lambda n: {"tools": [chat_tool(name) for name in names(n)]},
}


def interaction_items(*items: Body) -> Body:
    return {"input": [{"type": "user_input", "content": [TEXT]}, *items, {"type": "user_input", "content": [TEXT]}]}


INTERACTIONS: Kinds = {
    "parts": lambda n: {"input": [{"type": "user_input", "content": [TEXT] * n}]},
    "turns": lambda n: interaction_items(
        *several(
            n,
            lambda i: (
                {"type": "thought", "signature": "c2lnbmVk", "summary": [TEXT]},
                {"type": "function_call", "id": f"c{i}", "name": "f", "arguments": {}},
                {"type": "function_result", "call_id": f"c{i}", "name": "f", "result": "r"},
            ),
        )
    ),
    "answers in a row": lambda n: interaction_items(*[{"type": "model_output", "content": [TEXT]}] * n),
    "tools": lambda n: {"tools": [{"type": "function", "name": name, "parameters": OBJECT} for name in names(n)]},
}

REQUESTS: dict[str, Kinds] = {
    "openai_chat": CHAT,
    "openai_responses": RESPONSES,
    "anthropic_messages": MESSAGES,
    "gemini": GEMINI,
    "bedrock_converse": CONVERSE,
    "cohere": COHERE,
    "ollama": OLLAMA,
    "gemini_interactions": INTERACTIONS,
}


class InThisThread(Executor):
    """Does the work where it is given, so that its time is this thread's."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work(*args, **kwargs))
        except BaseException as problem:  # noqa: BLE001
            done.set_exception(problem)
        return done


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("client", REQUESTS)
def test_a_request_of_many_things_takes_time_in_proportion(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bardo.adapters.long_work._LONG_WORK", InThisThread())
    cells = [f"{kind} to {provider}" for kind in REQUESTS[client] for provider in REPLIES]
    always = {"openai_responses": "allowed tools to openai_chat"}.get(client)
    for cell in sample(cells, BY_DAY, law=f"many things {client}", always=lambda one: one == always):
        kind, _, provider = cell.partition(" to ")
        given = REQUESTS[client][kind]

        def ask(count: int, provider: str = provider, given: Callable[[int], Body] = given) -> None:
            # Where nothing is kept, no reply in a history is looked for.
            kept = MemoryStore()
            kept.put("", ["t" + "0" * 32], b"{}", now=time.time())
            gateway = Scripted(
                provider, lambda _: reply(provider, [REPLIES[provider].whole], stream=False), replay=kept
            )
            body = json.dumps({**body_for(client, "m1"), **given(count)}).encode()
            answer = gateway.post(path_for(client, "m1"), body)
            # A reply of plain text is no answer in a form: whether it was asked for in time is what is measured.
            assert answer.status in (200, 400) or answer.headers["x-bardo-error"] == "no_json", answer.body

        try:
            check_growth(ask, FEW, MANY, below=BELOW)
        except AssertionError as problem:
            raise AssertionError(f"{cell}: {problem}") from problem

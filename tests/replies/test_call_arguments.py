"""A call without arguments has an empty object, in every dialect and both directions."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import bardo
from bardo.dialects import dialect
from bardo.replies.reply_reader import row_reader
from bardo.streams.eventstream import encode_event
from bardo.surfaces.library.decoding import provider_row
from bardo.values.events import Event, ToolCallChunk
from bardo.values.request import Request
from bardo.values.wire import Arrival

NONE = {"nothing": "", "space": " \n ", "null": "null", "null in space": " null\n"}
CLIENTS = ("openai_chat", "openai_responses", "anthropic_messages", "gemini")


def _sse(*bodies: Any) -> bytes:
    named = [
        (f"event: {one['type']}\n" if "type" in one else "").encode() + b"data: " + msgspec.json.encode(one)
        for one in bodies
    ]
    return b"\n\n".join([*named, b""])


def chat(pieces: list[str]) -> bytes:
    first = {"index": 0, "id": "c1", "type": "function", "function": {"name": "now", "arguments": ""}}
    deltas: list[Any] = [{"tool_calls": [first]}]
    deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces]
    choices: list[dict[str, Any]] = [{"index": 0, "delta": one, "finish_reason": None} for one in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    return _sse(*({"id": "r", "model": "m", "choices": [one]} for one in choices)) + b"data: [DONE]\n\n"


def anthropic(pieces: list[str]) -> bytes:
    message = {"id": "r", "type": "message", "role": "assistant", "model": "m", "content": []}
    block = {"type": "tool_use", "id": "c1", "name": "now", "input": {}}
    return _sse(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}
            for piece in pieces
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    )


def responses(pieces: list[str]) -> bytes:
    item = {"id": "f1", "type": "function_call", "call_id": "c1", "name": "now", "status": "completed"}
    whole = {**item, "arguments": "".join(pieces)}
    reply = {"id": "r", "object": "response", "model": "m", "status": "completed", "output": [whole]}
    return _sse(
        {"type": "response.created", "response": {**reply, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}},
        *(
            {"type": "response.function_call_arguments.delta", "item_id": "f1", "output_index": 0, "delta": piece}
            for piece in pieces
        ),
        {"type": "response.output_item.done", "output_index": 0, "item": whole},
        {"type": "response.completed", "response": reply},
    )


def cohere(pieces: list[str]) -> bytes:
    call = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": ""}}
    return _sse(
        {"type": "message-start", "id": "r", "delta": {"message": {"role": "assistant"}}},
        {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": call}}},
        *(
            {
                "type": "tool-call-delta",
                "index": 0,
                "delta": {"message": {"tool_calls": {"function": {"arguments": piece}}}},
            }
            for piece in pieces
        ),
        {"type": "tool-call-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}},
    )


def converse(pieces: list[str]) -> bytes:
    def message(name: str, **fields: Any) -> bytes:
        return encode_event(msgspec.json.encode(fields), {":event-type": name, ":message-type": "event"})

    start = {"toolUse": {"toolUseId": "c1", "name": "now"}}
    return b"".join(
        [
            message("messageStart", role="assistant"),
            message("contentBlockStart", contentBlockIndex=0, start=start),
            *(message("contentBlockDelta", contentBlockIndex=0, delta={"toolUse": {"input": one}}) for one in pieces),
            message("contentBlockStop", contentBlockIndex=0),
            message("messageStop", stopReason="tool_use"),
        ]
    )


STREAMED = {"deepseek": chat, "anthropic": anthropic, "openai": responses, "cohere": cohere, "bedrock": converse}
CUTS = {
    "in one piece": lambda text: [text],
    "letter by letter": list,
    "behind an empty piece": lambda text: ["", text],
    "in no piece": lambda text: [],
}


def read(provider: str, body: bytes, *, stream: bool) -> tuple[list[Event], str]:
    reader = row_reader(provider_row(provider), streamed=stream)
    events = [*reader.feed(body), *reader.finish()]
    reply = reader.fold.response()
    assert reply.error is None
    (call,) = reply.tool_calls
    assert (call.name, call.arguments, call.malformed) == ("now", {}, False)
    return events, call.raw_arguments


def arguments_for(client: str, events: list[Event]) -> Any:
    """Return the arguments that a client of this dialect reads in the stream written for it."""
    encoder = dialect(client).open_encoder(Request(model="m", messages=(), dialect=client), Arrival(framing="sse"))
    written = b"".join([piece for event in events for piece in encoder.feed(event)] + list(encoder.finish()))
    assert b"INVALID_JSON" not in written
    preset = {"openai_chat": "openai-chat", "openai_responses": "openai", "anthropic_messages": "anthropic"}
    (call,) = bardo.decode(written, preset.get(client, client), streamed=True).tool_calls
    return call.raw_arguments


@pytest.mark.parametrize("provider", STREAMED)
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("none", NONE.values(), ids=NONE)
def test_streamed_arguments_that_say_nothing_are_an_empty_object(provider: str, none: str, cut: Any) -> None:
    events, raw = read(provider, STREAMED[provider](cut(none)), stream=True)
    assert raw == "{}"
    assert "".join(one.arguments for one in events if isinstance(one, ToolCallChunk)) == "{}"
    for client in CLIENTS:
        assert arguments_for(client, events) == "{}"


def whole(provider: str, value: Any) -> bytes:
    function = {"name": "now", "arguments": value}
    call = {"id": "c1", "type": "function", "function": function}
    use = {"type": "tool_use", "id": "c1", "name": "now", "input": value}
    bodies: dict[str, Any] = {
        "deepseek": {"choices": [{"index": 0, "message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]},
        "anthropic": {"type": "message", "id": "r", "content": [use], "stop_reason": "tool_use"},
        "openai": {
            "object": "response",
            "status": "completed",
            "output": [{"type": "function_call", "call_id": "c1", **function}],
        },
        "gemini": {
            "candidates": [
                {"content": {"parts": [{"functionCall": {"name": "now", "args": value}}]}, "finishReason": "STOP"}
            ]
        },
        "ollama": {"model": "m", "message": {"content": "", "tool_calls": [{"function": function}]}, "done": True},
        "cohere": {"id": "r", "message": {"tool_calls": [call]}, "finish_reason": "TOOL_CALL"},
        "bedrock": {
            "output": {"message": {"content": [{"toolUse": {"toolUseId": "c1", "name": "now", "input": value}}]}},
            "stopReason": "tool_use",
        },
        "gemini-interactions": {
            "object": "interaction",
            "status": "requires_action",
            "steps": [{"type": "function_call", "id": "c1", **function}],
        },
    }
    return msgspec.json.encode(bodies[provider])


WHOLE = ("deepseek", "anthropic", "openai", "gemini", "ollama", "cohere", "bedrock", "gemini-interactions")


@pytest.mark.parametrize("provider", WHOLE)
@pytest.mark.parametrize("value", [None, *NONE.values()], ids=["null itself", *NONE])
def test_whole_arguments_that_say_nothing_are_an_empty_object(provider: str, value: Any) -> None:
    if value is not None and provider in ("gemini", "gemini-interactions"):
        pytest.skip("its arguments are an object")
    events, raw = read(provider, whole(provider, value), stream=False)
    assert raw == "{}"
    for client in CLIENTS:
        assert arguments_for(client, events) == "{}"


@pytest.mark.parametrize("text", ["nul", "nulls", "[]", '"null"', "none", "0"])
def test_what_is_no_object_is_no_empty_one(text: str) -> None:
    (call,) = bardo.decode(chat([text]), "deepseek", streamed=True).tool_calls
    assert (call.raw_arguments, call.malformed) == (text, True)


PROVIDERS = ("deepseek", "anthropic", "openai", "gemini", "ollama", "cohere", "bedrock")


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("arguments", NONE.values(), ids=NONE)
def test_a_client_that_sends_no_arguments_back_sends_an_empty_object(provider: str, arguments: str) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "now", "arguments": arguments}}
    turns = [
        {"role": "user", "content": "What time is it?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "noon"},
    ]
    tools = [{"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}]
    asked = {"model": "m", "messages": turns, "tools": tools}
    found = bardo.explain(asked, dialect="openai_chat", provider=provider)
    written = msgspec.json.encode(found.body)
    assert b"INVALID_JSON" not in written
    assert b"_raw" not in written
    assert not [one for one in found.degraded if "arguments" in one.what]
    assert b'"arguments":"null"' not in written
    assert b'"arguments":""' not in written

"""Requests of clients that speak the Responses dialect."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.dialects.openai_responses import DIALECT
from bardo.dialects.shared.states import seal
from bardo.values.blocks import (
    Carried,
    ImageBlock,
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.errors import CallerError, InvalidRequest
from bardo.values.request import Message, OutputFormat, ReasoningPolicy, Request, Sampling, Tool, ToolChoice
from bardo.values.wire import Arrival

pytestmark = pytest.mark.each_python

NAME = "openai_responses"
FORMAT = "openai-responses-v1"


def decode(arrival: Arrival = Arrival(), **fields: Any) -> Request:  # noqa: B008 - a frozen value
    return DIALECT.decode_request(msgspec.json.encode({"model": "gpt-6", "input": "hi", **fields}), arrival)


def carried(**fields: Any) -> Carried:
    return Carried(NAME, fields)


def test_the_shortest_request() -> None:
    request = decode()
    assert request.messages == (Message("user", (TextBlock("hi"),)),)
    assert (request.model, request.dialect, request.stream, request.extra) == ("gpt-6", NAME, False, {})
    assert request.body == {"model": "gpt-6", "input": "hi"}


def test_instructions_come_first() -> None:
    roles = [message.role for message in decode(instructions="Be brief").messages]
    assert roles == ["system", "user"]


ITEMS: dict[str, tuple[list[Any], tuple[Message, ...]]] = {
    "the easy form": ([{"role": "user", "content": "hi"}], (Message("user", (TextBlock("hi"),)),)),
    "developer": (
        [{"role": "developer", "content": "Be brief"}],
        (Message("system", (TextBlock("Be brief"),), carried(role="developer")),),
    ),
    "parts": (
        [
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "look", "prompt_cache_breakpoint": {"mode": "explicit"}},
                    {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "low"},
                    {"type": "input_image", "image_url": "https://x.test/a.png"},
                    {"type": "input_image", "file_id": "file_1"},
                    {"type": "input_file", "file_id": "file_2"},
                ],
            }
        ],
        (
            Message(
                "user",
                (
                    TextBlock("look", carried=carried(prompt_cache_breakpoint={"mode": "explicit"})),
                    ImageBlock(media_type="image/png", data="QUJD", detail="low"),
                    ImageBlock(url="https://x.test/a.png"),
                    UnknownBlock(NAME, {"type": "input_image", "file_id": "file_1"}),
                    UnknownBlock(NAME, {"type": "input_file", "file_id": "file_2"}),
                ),
            ),
        ),
    ),
    "a turn with everything": (
        [
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "s"}],
                "encrypted_content": "x",
            },
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "phase": "commentary",
                "content": [
                    {"type": "output_text", "text": "Hi", "annotations": []},
                    {"type": "refusal", "refusal": "no"},
                ],
            },
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "c1",
                "name": "f",
                "arguments": "{}",
                "status": "completed",
            },
            {"type": "web_search_call", "id": "ws_1"},
            {"type": "function_call_output", "call_id": "c1", "output": "found"},
            {"type": "function_call_output", "call_id": "c0", "output": [{"type": "input_text", "text": "a"}]},
            {"role": "user", "content": "go on"},
        ],
        (
            Message(
                "assistant",
                (
                    ReasoningBlock(
                        summary=("s",),
                        format=FORMAT,
                        opaque=(Opaque("id", "rs_1", FORMAT), Opaque("encrypted", "x", FORMAT)),
                    ),
                    TextBlock("Hi", carried=carried(item={"id": "msg_1", "phase": "commentary"})),
                    RefusalBlock("no", carried=carried(item={"id": "msg_1", "phase": "commentary"})),
                    ToolCallBlock(id="c1", name="f", arguments="{}", carried=carried(id="fc_1", status="completed")),
                    UnknownBlock(NAME, {"type": "web_search_call", "id": "ws_1"}),
                ),
            ),
            Message(
                "user",
                (
                    ToolResultBlock(call_id="c1", name="f", content=(TextBlock("found"),)),
                    ToolResultBlock(call_id="c0", content=(TextBlock("a"),)),
                ),
            ),
            Message("user", (TextBlock("go on"),)),
        ),
    ),
    "full thinking": (
        [{"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}],
        (Message("assistant", (ReasoningBlock(text="hm", format=FORMAT, opaque=(Opaque("id", "rs_1", FORMAT),)),)),),
    ),
    "a router's format": (
        [{"type": "reasoning", "summary": [], "encrypted_content": "x", "format": "google-gemini-v1"}],
        (
            Message(
                "assistant",
                (
                    ReasoningBlock(
                        format="google-gemini-v1",
                        opaque=(Opaque("encrypted", "x", "google-gemini-v1"),),
                        carried=carried(format="google-gemini-v1"),
                    ),
                ),
            ),
        ),
    ),
    "sealed state": (
        [
            {
                "type": "reasoning",
                "id": "rs_bardo_1",
                "summary": [],
                "content": [{"type": "reasoning_text", "text": "hm"}],
                "encrypted_content": seal([Opaque("signature", "S", "anthropic-claude-v1")]),
            }
        ],
        (
            Message(
                "assistant",
                (
                    ReasoningBlock(
                        text="hm",
                        format="anthropic-claude-v1",
                        opaque=(Opaque("signature", "S", "anthropic-claude-v1"),),
                    ),
                ),
            ),
        ),
    ),
    "a reference": (
        [{"id": "msg_1"}],
        (Message("assistant", (UnknownBlock(NAME, {"id": "msg_1"}),)),),
    ),
}


@pytest.mark.parametrize("name", ITEMS)
def test_items_are_messages(name: str) -> None:
    items, messages = ITEMS[name]
    assert decode(input=items).messages == messages


FIELDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "limit": ({"max_output_tokens": 50}, {"max_output_tokens": 50}),
    "sampling": (
        {"temperature": 1, "top_p": 0.5, "top_k": 3, "seed": 7, "stop": "x"},
        {"sampling": Sampling(temperature=1, top_p=0.5, top_k=3, seed=7, stop=("x",))},
    ),
    "stream": ({"stream": True}, {"stream": True}),
    "others": ({"store": True, "user": None, "new": [1]}, {"extra": {"store": True, "new": [1]}}),
    "verbosity": ({"text": {"verbosity": "low"}}, {"extra": {"text": {"verbosity": "low"}}, "output_format": None}),
    "any object": (
        {"text": {"format": {"type": "json_object"}}},
        {"output_format": OutputFormat(mode="json_object"), "extra": {}},
    ),
    "a schema": (
        {"text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}}},
        {"output_format": OutputFormat(mode="json_schema", name="n", schema={"type": "object"}, strict=True)},
    ),
    "tools": (
        {
            "tools": [
                {
                    "type": "function",
                    "name": "f",
                    "description": "d",
                    "parameters": {"a": 1},
                    "strict": True,
                    "defer": 1,
                },
                {"type": "web_search", "size": 1},
                {"type": "custom", "name": "c"},
            ]
        },
        {
            "tools": (
                Tool(name="f", description="d", schema={"a": 1}, strict=True, carried=carried(defer=1)),
                Tool(name="web_search", hosted=True, carried=carried(type="web_search", size=1)),
                Tool(name="c", hosted=True, carried=carried(type="custom", name="c")),
            )
        },
    ),
    "choice": (
        {"tool_choice": "required", "parallel_tool_calls": False},
        {"tool_choice": ToolChoice(mode="required", parallel=False), "extra": {}},
    ),
    "a named choice": (
        {"tool_choice": {"type": "function", "name": "f"}},
        {"tool_choice": ToolChoice(mode="named", name="f"), "extra": {}},
    ),
    "a choice of its own": (
        {"tool_choice": {"type": "web_search"}},
        {"tool_choice": None, "extra": {"tool_choice": {"type": "web_search"}}},
    ),
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_become_values(name: str) -> None:
    given_fields, expected = FIELDS[name]
    request = decode(**given_fields)
    assert {field: getattr(request, field) for field in expected} == expected


def test_reasoning_becomes_a_policy() -> None:
    policy = ReasoningPolicy(
        mode="effort",
        effort="high",
        visible=True,
        carried=carried(**{"reasoning.summary": "detailed"}),
        raw_fields={"reasoning": {"effort": "high"}},
    )
    assert decode(reasoning={"effort": "high", "summary": "detailed"}).reasoning == policy
    assert decode().reasoning is None


def test_excluded_reasoning_is_omitted() -> None:
    request = decode(reasoning={"effort": "low", "exclude": True}, bardo={"include": ["receipt"]})
    assert request.options.omit_reasoning
    assert request.options.include == ("receipt",)
    assert request.body is not None
    assert "bardo" not in request.body
    assert "bardo" not in request.extra


def test_the_address_may_name_model_and_streaming() -> None:
    request = decode(Arrival(model="other", stream=True))
    assert (request.model, request.stream) == ("other", True)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no model": ({"model": None}, "model"),
    "no input": ({"input": None}, "input"),
    "input": ({"input": 3}, "input"),
    "an item": ({"input": ["x"]}, "input[0]"),
    "no type": ({"input": [{"x": 1}]}, "input[0].type"),
    "a role": ({"input": [{"role": "bot", "content": "x"}]}, "input[0].role"),
    "no content": ({"input": [{"role": "user"}]}, "input[0].content"),
    "a part": ({"input": [{"role": "user", "content": [1]}]}, "input[0].content[0]"),
    "a text": (
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": 1}]}]},
        "input[0].content[0].text",
    ),
    "a call": ({"input": [{"type": "function_call", "name": "f"}]}, "input[0].call_id"),
    "a summary": ({"input": [{"type": "reasoning", "summary": [{"text": 1}]}]}, "input[0].summary[0].text"),
    "a result": ({"input": [{"type": "function_call_output", "call_id": "c"}]}, "input[0].output"),
    "a tool": ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools[0].name"),
    "temperature": ({"temperature": "hot"}, "temperature"),
    "limit": ({"max_output_tokens": 0}, "max_output_tokens"),
    "format": ({"text": {"format": {"type": "yaml"}}}, "text.format.type"),
    "schema": ({"text": {"format": {"type": "json_schema"}}}, "text.format.schema"),
    "choice": ({"tool_choice": "maybe"}, "tool_choice"),
    "stream": ({"stream": "yes"}, "stream"),
    "options": ({"bardo": {"include": ["all"]}}, "bardo.include[0]"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name: str) -> None:
    fields, param = WRONG[name]
    with pytest.raises(InvalidRequest) as caught:
        decode(**fields)
    assert caught.value.param == param


def test_a_stored_prompt_needs_no_input() -> None:
    assert decode(input=None, previous_response_id="resp_1").messages == ()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_PART = st.dictionaries(
    st.sampled_from(["type", "text", "image_url", "detail", "refusal"]), _JSON | st.just("input_text")
)
_ITEM = st.fixed_dictionaries(
    {"type": st.sampled_from(["message", "reasoning", "function_call", "function_call_output", "x"])},
    optional={
        "role": st.sampled_from(["user", "assistant", "system"]) | _JSON,
        "content": st.lists(_PART, max_size=2) | _JSON,
        "summary": st.lists(_PART, max_size=2) | _JSON,
        "output": st.lists(_PART, max_size=2) | _JSON,
        **dict.fromkeys(("id", "call_id", "name", "arguments", "encrypted_content", "format", "status"), _JSON),
    },
)
BODY = st.fixed_dictionaries(
    {"model": st.just("m"), "input": st.lists(_ITEM, max_size=4) | _JSON},
    optional=dict.fromkeys(
        (
            "tools",
            "tool_choice",
            "reasoning",
            "thinking",
            "text",
            "stop",
            "stream",
            "bardo",
            "instructions",
            "seed",
            "new",
        ),
        _JSON,
    ),
)


@given(BODY)
def test_no_shape_of_a_request_raises_anything_else(body: dict[str, Any]) -> None:
    with contextlib.suppress(CallerError):
        assert DIALECT.decode_request(msgspec.json.encode(body), Arrival()).model == "m"


@given(st.binary(max_size=60))
def test_no_bytes_of_a_request_raise_anything_else(body: bytes) -> None:
    with pytest.raises(CallerError):
        DIALECT.decode_request(body, Arrival())

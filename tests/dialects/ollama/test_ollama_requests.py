"""Ollama requests, read from clients and written for servers."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.values.blocks import Carried, ImageBlock, Opaque, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.errors import CallerError, InvalidRequest
from bardo.values.request import Control, Message, OutputFormat, ReasoningPolicy, Request, Sampling, Tool, ToolChoice
from bardo.values.wire import Arrival
from dialects.ollama.replies import ARRIVAL, DIALECT, ROW
from dialects.told import as_told

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "look", "description": "Look", "parameters": {"type": "object", "properties": {}}},
}
PIXEL = "iVBORw0KGgoAAAANSUhEUg=="


def decode(body: dict[str, Any], arrival: Arrival = ARRIVAL) -> Request:
    return DIALECT.decode_request(json.dumps(body).encode(), arrival)


def asked(**fields: Any) -> dict[str, Any]:
    return {"model": "qwen3:4b", "messages": [{"role": "user", "content": "hi"}], **fields}


def encode(request: Request) -> dict[str, Any]:
    wire = DIALECT.encode_request(request, ROW)
    assert wire.path == "chat"
    body: dict[str, Any] = json.loads(wire.body)
    return body


def lost(request: Request) -> dict[str, Any]:
    return {one.what: one.sent for one in DIALECT.encode_request(request, ROW).degraded}


@pytest.mark.parametrize(("said", "stream"), [({}, True), ({"stream": None}, True), ({"stream": False}, False)])
def test_silence_means_a_stream(said: dict[str, Any], stream: bool) -> None:
    assert decode(asked(**said)).stream is stream


FULL = asked(
    messages=[
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is this?", "images": [PIXEL]},
        {
            "role": "assistant",
            "content": "Let me look.",
            "thinking": "Hm.",
            "tool_calls": [{"id": "c1", "function": {"index": 0, "name": "look", "arguments": {"n": 1}}}],
        },
        {"role": "tool", "content": "a cat", "tool_name": "look", "tool_call_id": "c1"},
    ],
    tools=[TOOL],
    options={
        "temperature": 0.5, "top_p": 0.9, "top_k": 40.0, "min_p": 0.1, "num_predict": 100, "seed": 7,
        "stop": ["END"], "presence_penalty": 0.1, "frequency_penalty": 0.2, "repeat_penalty": 1.1, "num_ctx": 4096,
    },
    format={"type": "object"},
    think="high",
    stream=False,
    keep_alive="5m",
    truncate=False,
    logprobs=True,
)  # fmt: skip


def test_a_full_request_is_read() -> None:
    request = decode(FULL)
    assert request.sampling == Sampling(
        temperature=0.5,
        top_p=0.9,
        top_k=40,
        min_p=0.1,
        repetition_penalty=1.1,
        seed=7,
        stop=("END",),
        presence_penalty=0.1,
        frequency_penalty=0.2,
    )
    assert request.max_output_tokens == 100
    assert request.output_format == OutputFormat(mode="json_schema", name="answer", schema={"type": "object"})
    assert request.reasoning == ReasoningPolicy(mode="effort", effort="high", raw_fields={"think": "high"})
    assert request.tools[0].name == "look"
    assert request.extra == {
        "keep_alive": "5m", "truncate": False, "logprobs": True, "options": {"num_ctx": 4096},
    }  # fmt: skip
    system, user, assistant, tool = request.messages
    assert (system.role, user.role, assistant.role, tool.role) == ("system", "user", "assistant", "user")
    assert user.blocks == (TextBlock("What is this?"), ImageBlock(media_type="image/png", data=PIXEL))
    assert assistant.blocks[:2] == (ReasoningBlock(text="Hm.", format="thinking"), TextBlock("Let me look."))
    assert tool.blocks == (ToolResultBlock(call_id="c1", name="look", content=(TextBlock("a cat"),)),)


def test_a_full_request_is_written_back_as_it_was() -> None:
    expected = json.loads(json.dumps(FULL))
    expected["options"]["top_k"] = 40
    assert encode(as_told(decode(FULL))) == expected
    assert DIALECT.encode_request(as_told(decode(FULL)), ROW).degraded == ()


def test_a_loop_without_ids_is_numbered_and_written_back_without() -> None:
    call = {"function": {"name": "look", "arguments": {}}}
    other = {"function": {"name": "hear", "arguments": {}}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "", "tool_calls": [call, other]},
        {"role": "tool", "content": "noise", "tool_name": "hear"},
        {"role": "tool", "content": "cat"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "dog", "tool_name": "look"},
    ]
    request = decode(asked(messages=messages, stream=False))
    calls = [block.id for message in request.messages for block in message.blocks if isinstance(block, ToolCallBlock)]
    results = [
        (block.call_id, block.name, block.text)
        for message in request.messages
        for block in message.blocks
        if isinstance(block, ToolResultBlock)
    ]
    assert calls == ["call_0", "call_1", "call_2"]
    assert results == [("call_1", "hear", "noise"), ("call_0", "look", "cat"), ("call_2", "look", "dog")]
    written = encode(request)["messages"]
    assert [message.get("tool_calls") for message in written] == [message.get("tool_calls") for message in messages]
    assert all("tool_call_id" not in message for message in written)


@pytest.mark.parametrize(
    ("think", "mode", "effort"),
    [(True, "auto", None), (False, "off", None), ("low", "effort", "low"), ("max", "effort", "max")],
)
def test_thinking_is_read(think: Any, mode: str, effort: str | None) -> None:
    policy = decode(asked(think=think)).reasoning
    assert policy is not None
    assert (policy.mode, policy.effort, policy.raw_fields) == (mode, effort, {"think": think})


def test_the_control_is_laid_into_what_is_there() -> None:
    fields = {"think": "low", "options": {"repeat_penalty": 1.1}}
    request = Request(
        model="m",
        messages=(),
        max_output_tokens=9,
        reasoning=ReasoningPolicy(mode="effort", effort="high"),
        control=Control(fields=fields),
    )
    body = encode(request)
    assert (body["think"], body["options"]) == ("low", {"num_predict": 9, "repeat_penalty": 1.1})
    assert "think" not in encode(msgspec.structs.replace(request, control=None))


def test_words_of_another_dialects_thinking_are_reported() -> None:
    policy = ReasoningPolicy(mode="auto", carried=Carried("anthropic_messages", {"block_binding": "strict"}))
    assert lost(Request(model="m", messages=(), reasoning=policy)) == {"block_binding": None}


@pytest.mark.parametrize(
    ("limit", "tokens", "extra"),
    [(5, 5, {}), (-1, None, {"options": {"num_predict": -1}}), (0, None, {"options": {"num_predict": 0}})],
)
def test_a_limit_below_one_is_no_limit(limit: int, tokens: int | None, extra: dict[str, Any]) -> None:
    request = decode(asked(options={"num_predict": limit}))
    assert (request.max_output_tokens, request.extra) == (tokens, extra)
    assert encode(request)["options"] == {"num_predict": limit}


def test_json_without_a_schema() -> None:
    request = decode(asked(format="json"))
    assert request.output_format == OutputFormat(mode="json_object")
    assert encode(request)["format"] == "json"
    assert decode(asked(format="")).output_format is None


def test_bardos_own_object_is_read_and_stays_here() -> None:
    request = decode(asked(bardo={"include": ["receipt"], "reasoning": "omit"}))
    assert request.options.include == ("receipt",)
    assert request.options.omit_reasoning
    assert "bardo" not in encode(request)


def test_a_model_is_loaded_without_messages() -> None:
    assert decode({"model": "m"}).messages == ()


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"model": None}, "model"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [1]}, "messages[0]"),
        ({"messages": [{"role": "robot"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": [1]}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "images": [1]}]}, "messages[0].images[0]"),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages[0].tool_calls[0].function"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "x"}}]}]},
            "messages[0].tool_calls[0].function.arguments",
        ),
        ({"options": {"temperature": "hot"}}, "options.temperature"),
        ({"options": {"top_k": 1.5}}, "options.top_k"),
        ({"options": {"stop": [1]}}, "options.stop[0]"),
        ({"think": "hard"}, "think"),
        ({"think": 3}, "think"),
        ({"format": "xml"}, "format"),
        ({"format": 3}, "format"),
        ({"stream": "yes"}, "stream"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode(asked(**change))
    assert caught.value.param == param


GPT = Opaque("encrypted", "C", "openai-responses-v1")


def test_what_ollama_cannot_say_is_told() -> None:
    request = Request(
        model="m",
        dialect="openai_chat",
        messages=(
            Message(
                "user",
                (
                    TextBlock("hi", carried=Carried("anthropic_messages", {"cache_control": {}})),
                    ImageBlock(url="https://x/y.png"),
                ),
            ),
            Message(
                "assistant",
                (
                    ReasoningBlock(text="Hm.", format="openai-responses-v1", opaque=(GPT,)),
                    ToolCallBlock(id="c", name="look"),
                ),
            ),
            Message("user", (ToolResultBlock(call_id="c", content=(TextBlock("no"),), is_error=True),)),
        ),
        tools=(
            Tool(name="look", strict=True),
            Tool(name="web", hosted=True, carried=Carried("openai_chat", {"type": "web"})),
        ),
        tool_choice=ToolChoice(mode="required", parallel=False),
        choices=2,
        extra={"logit_bias": {}},
    )
    assert lost(request) == {
        "cache_control": None,
        "image": None,
        "reasoning": "text",
        "tool_result.is_error": None,
        "tools.strict": None,
        "tool web": None,
        "tool_choice": None,
        "parallel_tool_calls": None,
        "n": 1,
        "logit_bias": None,
    }
    body = encode(request)
    assert body["messages"] == [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": "",
            "thinking": "Hm.",
            "tool_calls": [{"id": "c", "function": {"index": 0, "name": "look", "arguments": {}}}],
        },
        {"role": "tool", "content": "no", "tool_name": "look", "tool_call_id": "c"},
    ]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["look"]
    assert body["stream"] is False


@pytest.mark.parametrize(
    ("choice", "offered"),
    [
        (ToolChoice(mode="auto"), ["look", "hear"]),
        (ToolChoice(mode="none"), []),
        (ToolChoice(mode="named", name="hear"), ["hear"]),
    ],
    ids=["auto", "none", "named"],
)
def test_the_choice_of_tools_is_made_by_offering_them(choice: ToolChoice, offered: list[str]) -> None:
    tools = (Tool(name="look"), Tool(name="hear"))
    request = Request(model="m", messages=(), tools=tools, tool_choice=choice)
    assert [tool["function"]["name"] for tool in encode(request).get("tools", [])] == offered
    assert ("tool_choice" in lost(request)) is (choice.mode != "auto")


def test_a_picture_in_an_address_is_data() -> None:
    picture = ImageBlock(url=f"data:image/png;base64,{PIXEL}")
    body = encode(Request(model="m", messages=(Message("user", (picture,)),)))
    assert body["messages"] == [{"role": "user", "content": "", "images": [PIXEL]}]


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_callers_errors(body: bytes) -> None:
    _tolerates(body)


NAMES = [
    "role", "content", "thinking", "images", "tool_calls", "function", "name", "arguments",
    "id", "signature", "tool_name", "tool_call_id", "type", "temperature", "stop", "num_predict",
]  # fmt: skip
hostile = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(NAMES),
            inner | st.sampled_from(["user", "assistant", "tool", "system", "function"]),
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(
    st.dictionaries(
        st.sampled_from(["messages", "tools", "options", "format", "think", "stream", "bardo", "keep_alive"]),
        hostile | st.lists(hostile, max_size=3),
    )
)
def test_no_shapes_raise_anything_but_callers_errors(fields: dict[str, Any]) -> None:
    _tolerates(json.dumps({"model": "m", **fields}).encode())


@pytest.mark.parametrize("depth", [150, 1000, 100_000])
@pytest.mark.parametrize("field", ["messages", "format", "options", "think", "extra"])
def test_deep_nesting_is_refused_or_carried(field: str, depth: int) -> None:
    for opened, closed in ((b"[", b"]"), (b'{"a":', b"}")):
        nested = opened * depth + b"1" + closed * depth
        _tolerates(b'{"model": "m", "' + field.encode() + b'": ' + nested + b"}")


def _tolerates(body: bytes) -> None:
    try:
        request = DIALECT.decode_request(body, ARRIVAL)
    except CallerError:
        return
    DIALECT.encode_request(request, ROW)


def test_further_fields_of_a_tool_are_written_back() -> None:
    tool = {**TOOL, "cache": True, "function": {**TOOL["function"], "examples": [1]}}
    assert encode(decode(asked(tools=[tool])))["tools"] == [tool]


def test_a_tool_of_another_kind_is_written_back_whole() -> None:
    tool = {"type": "web_search", "depth": 3}
    request = decode(asked(tools=[tool]))
    assert request.tools[0].hosted
    assert encode(request)["tools"] == [tool]


@pytest.mark.parametrize("seed", range(20))
def test_a_result_answers_the_call_of_its_id_or_of_its_tool_that_waited_longest(seed: int) -> None:
    chance = random.Random(seed)
    waiting: list[tuple[str, str]] = []
    messages: list[dict[str, Any]] = []
    expected: list[tuple[str, str]] = []
    for number in range(40):
        name, call_id = chance.choice(("f", "g", "h")), chance.choice(("", "", "a", "b"))
        if chance.random() < 0.5:
            call = {"function": {"name": name, "arguments": {}}, **({"id": call_id} if call_id else {})}
            messages.append({"role": "assistant", "tool_calls": [call]})
            numbered = sum("tool_calls" in message for message in messages) - 1
            waiting.append((call_id or f"call_{numbered}", name))
            continue
        name = chance.choice((name, ""))
        messages.append({"role": "tool", "content": str(number), "tool_name": name, "tool_call_id": call_id})
        named = [one for one in waiting if one[1] == name] or waiting
        fitting = [one for one in waiting if one[0] == call_id] if call_id else named
        if fitting:
            expected.append((fitting[0][0], name or fitting[0][1]))
            waiting.remove(fitting[0])
        else:
            earlier = [call for one in messages for call in one.get("tool_calls", ()) if call.get("id") == call_id]
            expected.append((call_id, name or (earlier[-1]["function"]["name"] if call_id and earlier else "")))
    found = [block for message in decode({"model": "m", "messages": messages}).messages for block in message.blocks]
    assert [(block.call_id, block.name) for block in found if isinstance(block, ToolResultBlock)] == expected

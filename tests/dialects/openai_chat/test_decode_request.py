"""What a client asks, read; and what it may not ask."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.dialects.openai_chat import DIALECT
from bardo.dialects.openai_chat.request_in import decode_tool
from bardo.values.blocks import (
    Block,
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
from bardo.values.request import BardoOptions, Message, OutputFormat, Sampling, Tool, ToolChoice
from bardo.values.wire import Arrival
from dialects.openai_chat.chat import asked

pytestmark = pytest.mark.each_python

CHAT, CLAUDE = "openai_chat", "anthropic-claude-v1"


def blocks_of(**fields: Any) -> tuple[Block, ...]:
    return asked(messages=[fields]).messages[0].blocks


def test_the_plainest_request() -> None:
    request = asked(messages=[{"role": "user", "content": "Hi"}])
    assert (request.model, request.dialect, request.stream, request.choices) == ("m", CHAT, False, 1)
    assert request.messages == (Message("user", (TextBlock("Hi"),)),)
    assert (request.reasoning, request.tool_choice, request.output_format, request.max_output_tokens) == (None,) * 4
    assert request.extra == {}
    assert request.body == {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize(
    ("wire", "role"), [("system", "system"), ("developer", "system"), ("user", "user"), ("assistant", "assistant")]
)
def test_roles(wire: str, role: str) -> None:
    assert asked(messages=[{"role": wire, "content": "a"}]).messages == (Message(role, (TextBlock("a"),)),)  # type: ignore[arg-type]


PNG = "data:image/png;base64,AAAA"
CONTENTS: dict[str, tuple[Any, tuple[Block, ...]]] = {
    "text": ("a", (TextBlock("a"),)),
    "nothing": (None, ()),
    "an empty text": ("", ()),
    "parts": ([{"type": "text", "text": "a"}, "b"], (TextBlock("a"), TextBlock("b"))),
    "parts of the Responses dialect": ([{"type": "input_text", "text": "a"}], (TextBlock("a"),)),
    "an image": (
        [{"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}}],
        (ImageBlock(url="https://x/y.png", detail="low"),),
    ),
    "an image as text": ([{"type": "image_url", "image_url": "https://x/y.png"}], (ImageBlock(url="https://x/y.png"),)),
    "an image as data": ([{"type": "image_url", "image_url": {"url": PNG}}], (ImageBlock(media_type="image/png", data="AAAA"),)),
    "a cached part": (
        [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}],
        (TextBlock("a", carried=Carried(CHAT, {"cache_control": {"type": "ephemeral"}})),),
    ),
    "sound": ([{"type": "input_audio", "input_audio": {}}], (UnknownBlock(CHAT, {"type": "input_audio", "input_audio": {}}),)),
    "a refusal": ([{"type": "refusal", "refusal": "No."}], (RefusalBlock("No."),)),
    "thinking": (
        [{"type": "thinking", "thinking": [{"type": "text", "text": "x"}], "signature": "s"}],
        (ReasoningBlock(text="x", format="content_list", opaque=(Opaque("signature", "s", "content_list"),)),),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("content", "blocks"), CONTENTS.values(), ids=CONTENTS.keys())
def test_content(content: Any, blocks: tuple[Block, ...]) -> None:
    assert blocks_of(role="assistant", content=content) == blocks


REPLAYS: dict[str, tuple[dict[str, Any], tuple[Block, ...]]] = {
    "reasoning_content": ({"reasoning_content": "x"}, (ReasoningBlock(text="x", format="reasoning_content"),)),
    "reasoning": ({"reasoning": "x"}, (ReasoningBlock(text="x", format="reasoning"),)),
    "both": ({"reasoning": "x", "reasoning_content": "x"}, (ReasoningBlock(text="x", format="reasoning_content"),)),
    "details as text": ({"reasoning_details": "x"}, (ReasoningBlock(text="x", format="reasoning_details"),)),
    "details beside the plain field": (
        {
            "reasoning_content": "x",
            "reasoning_details": [{"type": "reasoning.text", "text": "x", "signature": "s", "format": CLAUDE, "index": 0}],
        },
        (ReasoningBlock(text="x", format=CLAUDE, opaque=(Opaque("signature", "s", CLAUDE),)),),
    ),
    "state alone beside the plain field": (
        {"reasoning_content": "x", "reasoning_details": [{"type": "reasoning.text", "signature": "s", "format": CLAUDE, "index": 0}]},
        (ReasoningBlock(text="x", format=CLAUDE, opaque=(Opaque("signature", "s", CLAUDE),)),),
    ),
    "fragments, as a stream gave them": (
        {
            "reasoning_details": [
                {"type": "reasoning.summary", "summary": "x", "format": "o", "index": 0},
                {"type": "reasoning.summary", "summary": "y", "index": 0},
                {"type": "reasoning.summary", "summary": "\n\nz", "index": 0, "part": 1},
                {"type": "reasoning.encrypted", "data": "d", "id": "rs", "index": 0},
            ]
        },
        (ReasoningBlock(summary=("xy", "z"), format="o", opaque=(Opaque("id", "rs", "o"), Opaque("encrypted", "d", "o"))),),
    ),
    "fragments, joined by a library": (
        {"reasoning_details": [{"type": "reasoning.encrypted", "summary": "xy", "data": "d", "id": "rs", "format": "o", "index": 0}]},
        (ReasoningBlock(summary=("xy",), format="o", opaque=(Opaque("id", "rs", "o"), Opaque("encrypted", "d", "o"))),),
    ),
    "several blocks": (
        {"reasoning_details": [{"type": "reasoning.text", "text": word, "index": place} for place, word in enumerate("xy")]},
        (ReasoningBlock(text="x", format="unknown"), ReasoningBlock(text="y", format="unknown")),
    ),
    "details of no text": ({"reasoning_content": "x", "reasoning_details": ""}, ()),
    "no details beside text": (
        {"reasoning": "x", "reasoning_details": []},
        (ReasoningBlock(text="x", format="reasoning"),),
    ),
    "nothing": ({"reasoning": None, "reasoning_content": "", "reasoning_details": []}, ()),
}  # fmt: skip


@pytest.mark.parametrize(("fields", "blocks"), REPLAYS.values(), ids=REPLAYS.keys())
def test_earlier_thinking(fields: dict[str, Any], blocks: tuple[Block, ...]) -> None:
    assert blocks_of(role="assistant", **fields) == blocks


GEMINI = Opaque("signature", "sig", "google-gemini-v1")
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLS: dict[str, tuple[dict[str, Any], tuple[Block, ...]]] = {
    "a call": ({"tool_calls": [CALL]}, (ToolCallBlock(id="c", name="f", arguments="{}"),)),
    "Gemini's signature": (
        {"tool_calls": [{**CALL, "extra_content": {"google": {"thought_signature": "sig"}}}]},
        (ToolCallBlock(id="c", name="f", arguments="{}", opaque=(GEMINI,)),),
    ),
    "anybody's state": (
        {"tool_calls": [{**CALL, "extra_content": {"bardo": {"opaque": {"id": {"data": "fc", "format": "o"}}}}}]},
        (ToolCallBlock(id="c", name="f", arguments="{}", opaque=(Opaque("id", "fc", "o"),)),),
    ),
    "further fields": (
        {"tool_calls": [{**CALL, "index": 0, "vendor": 1}]},
        (ToolCallBlock(id="c", name="f", arguments="{}", carried=Carried(CHAT, {"vendor": 1})),),
    ),
    "a custom tool": (
        {"tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "sql", "input": "select"}}]},
        (ToolCallBlock(id="c", name="sql", arguments="select", carried=Carried(CHAT, {"type": "custom"})),),
    ),
    "a call of a type nobody knows": (
        {"tool_calls": [{"id": "c", "type": "map"}]},
        (UnknownBlock(CHAT, {"tool_call": {"id": "c", "type": "map"}}),),
    ),
    "the older field": (
        {"function_call": {"name": "f", "arguments": "{}"}},
        (ToolCallBlock(id="", name="f", arguments="{}", carried=Carried(CHAT, {"function_call": True})),),
    ),
    "a refusal": ({"refusal": "No."}, (RefusalBlock("No."),)),
    "state of the text": (
        {"content": "a", "extra_content": {"google": {"thought_signature": "sig"}}},
        (TextBlock("a", (GEMINI,)),),
    ),
    "state without text": ({"extra_content": {"google": {"thought_signature": "sig"}}}, (TextBlock("", (GEMINI,)),)),
}


@pytest.mark.parametrize(("fields", "blocks"), CALLS.values(), ids=CALLS.keys())
def test_turns_of_the_assistant(fields: dict[str, Any], blocks: tuple[Block, ...]) -> None:
    assert blocks_of(role="assistant", **fields) == blocks


RESULTS: dict[str, tuple[dict[str, Any], ToolResultBlock]] = {
    "text": ({"role": "tool", "tool_call_id": "c", "content": "sunny"}, ToolResultBlock(call_id="c", content=(TextBlock("sunny"),))),
    "parts": (
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": "u"}]},
        ToolResultBlock(call_id="c", content=(TextBlock("a"), ImageBlock(url="u"))),
    ),
    "a name": (
        {"role": "tool", "tool_call_id": "c", "name": "f", "content": ""},
        ToolResultBlock(call_id="c", name="f", carried=Carried(CHAT, {"name": "f"})),
    ),
    "the older role": ({"role": "function", "name": "f", "content": "a"}, ToolResultBlock(call_id="", name="f", content=(TextBlock("a"),))),
}  # fmt: skip


@pytest.mark.parametrize(("fields", "result"), RESULTS.values(), ids=RESULTS.keys())
def test_tool_results_are_the_users(fields: dict[str, Any], result: ToolResultBlock) -> None:
    assert asked(messages=[fields]).messages == (Message("user", (result,)),)


def test_fields_of_a_message_are_carried() -> None:
    [message] = asked(messages=[{"role": "user", "content": "a", "name": "ann", "x": None}]).messages
    assert message.carried == Carried(CHAT, {"name": "ann"})


CHOICES: dict[str, tuple[dict[str, Any], ToolChoice | None, dict[str, Any]]] = {
    "nothing": ({}, None, {}),
    "a word": ({"tool_choice": "required"}, ToolChoice(mode="required"), {}),
    "a name": (
        {"tool_choice": {"type": "function", "function": {"name": "f"}}},
        ToolChoice(mode="named", name="f"),
        {},
    ),
    "one at a time": ({"parallel_tool_calls": False}, ToolChoice(parallel=False), {}),
    "the older word": ({"function_call": "none"}, ToolChoice(mode="none"), {}),
    "the older name": ({"function_call": {"name": "f"}}, ToolChoice(mode="named", name="f"), {}),
    "a list": ({"tool_choice": {"type": "allowed_tools"}}, None, {"tool_choice": {"type": "allowed_tools"}}),
}


@pytest.mark.parametrize(("fields", "choice", "extra"), CHOICES.values(), ids=CHOICES.keys())
def test_tool_choices(fields: dict[str, Any], choice: ToolChoice | None, extra: dict[str, Any]) -> None:
    request = asked(**fields)
    assert (request.tool_choice, request.extra) == (choice, extra)


SCHEMA = {"type": "object", "properties": {}}
TOOLS: dict[str, tuple[dict[str, Any], Tool]] = {
    "a function": (
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True}},
        Tool(name="f", description="d", schema=SCHEMA, strict=True),
    ),
    "without a type": ({"function": {"name": "f"}}, Tool(name="f")),
    "further fields": (
        {"type": "function", "function": {"name": "f"}, "cache_control": {}},
        Tool(name="f", carried=Carried(CHAT, {"cache_control": {}})),
    ),
    "a tool the provider runs": (
        {"type": "web_search", "x": 1},
        Tool(name="web_search", carried=Carried(CHAT, {"type": "web_search", "x": 1}), hosted=True),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("value", "tool"), TOOLS.values(), ids=TOOLS.keys())
def test_tools(value: dict[str, Any], tool: Tool) -> None:
    assert asked(tools=[value]).tools == (tool,)
    assert decode_tool(value, "tools[0]") == tool


def test_older_functions_are_tools() -> None:
    assert asked(functions=[{"name": "f", "parameters": SCHEMA}]).tools == (Tool(name="f", schema=SCHEMA),)


def test_sampling_and_limits() -> None:
    numbers: dict[str, Any] = {
        "temperature": 0.5,
        "top_p": 1,
        "top_k": 4,
        "min_p": 0.1,
        "frequency_penalty": 1.5,
        "presence_penalty": -1,
    }
    request = asked(**numbers, seed=3, stop="END", max_tokens=9, n=2)
    assert request.sampling == Sampling(**numbers, seed=3, stop=("END",))
    assert (request.max_output_tokens, request.choices) == (9, 2)
    assert asked(max_tokens=9, max_completion_tokens=8).max_output_tokens == 8
    assert asked(stop=["a", "b"]).sampling.stop == ("a", "b")


def test_streaming() -> None:
    request = asked(stream=True, stream_options={"include_usage": True, "include_obfuscation": False})
    assert (request.stream, request.stream_usage) == (True, True)
    assert request.extra == {"stream_options": {"include_obfuscation": False}}
    assert asked(stream=True).stream_usage is False


FORMATS: dict[str, tuple[dict[str, Any], OutputFormat | None]] = {
    "text": ({"type": "text"}, None),
    "any object": ({"type": "json_object"}, OutputFormat(mode="json_object")),
    "a schema": (
        {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True, "description": "d"}},
        OutputFormat(mode="json_schema", name="n", schema=SCHEMA, strict=True, description="d"),
    ),
    "a schema without a name": (
        {"type": "json_schema", "json_schema": {"schema": SCHEMA}},
        OutputFormat(mode="json_schema", name="answer", schema=SCHEMA),
    ),
}


@pytest.mark.parametrize(("wanted", "expected"), FORMATS.values(), ids=FORMATS.keys())
def test_formats(wanted: dict[str, Any], expected: OutputFormat | None) -> None:
    assert asked(response_format=wanted).output_format == expected


def test_fields_without_a_word_here_are_kept() -> None:
    assert asked(logit_bias={"1": 2}, user="u", store=None).extra == {"logit_bias": {"1": 2}, "user": "u"}


def test_what_is_asked_of_bardo_is_not_sent_on() -> None:
    request = asked(bardo={"include": ["receipt"], "reasoning": "omit"})
    assert request.options == BardoOptions(include=("receipt",), omit_reasoning=True, chose_display=True)
    assert request.body is not None
    assert "bardo" not in request.body


USER = {"role": "user"}
REFUSED: dict[str, tuple[dict[str, Any], str | None]] = {
    "no model": ({"model": None}, "model"),
    "a model that is no text": ({"model": 3}, "model"),
    "no messages": ({"messages": None}, "messages"),
    "messages that are no list": ({"messages": "hi"}, "messages"),
    "a message that is no object": ({"messages": ["hi"]}, "messages[0]"),
    "no role": ({"messages": [{"content": "a"}]}, "messages[0].role"),
    "an unknown role": ({"messages": [{"role": "robot"}]}, "messages[0].role"),
    "content of another type": ({"messages": [{**USER, "content": 3}]}, "messages[0].content"),
    "a part of another type": ({"messages": [USER, {**USER, "content": [3]}]}, "messages[1].content[0]"),
    "a part without type": ({"messages": [{**USER, "content": [{"text": "a"}]}]}, "messages[0].content[0].type"),
    "a text that is none": ({"messages": [{**USER, "content": [{"type": "text", "text": 3}]}]}, "messages[0].content[0].text"),
    "an image without address": (
        {"messages": [{**USER, "content": [{"type": "image_url", "image_url": {}}]}]},
        "messages[0].content[0].image_url.url",
    ),
    "a thought that is none": (
        {"messages": [{**USER, "content": [{"type": "thinking", "thinking": [3]}]}]},
        "messages[0].content[0].thinking[0]",
    ),
    "a call without name": (
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]},
        "messages[0].tool_calls[0].function.name",
    ),
    "arguments that are no text": (
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}]},
        "messages[0].tool_calls[0].function.arguments",
    ),
    "a result without call": ({"messages": [{"role": "tool", "content": "a"}]}, "messages[0].tool_call_id"),
    "thinking in a result": (
        {"messages": [{"role": "tool", "tool_call_id": "c", "content": [{"type": "thinking", "thinking": "x"}]}]},
        "messages[0].content[0]",
    ),
    "reasoning that is no text": ({"messages": [{"role": "assistant", "reasoning_content": 3}]}, "messages[0].reasoning_content"),
    "a detail that is no object": ({"messages": [{"role": "assistant", "reasoning_details": [3]}]}, "messages[0].reasoning_details[0]"),
    "tools that are no list": ({"tools": {}}, "tools"),
    "a function without name": ({"tools": [{"function": {}}]}, "tools[0].function.name"),
    "a tool without function": ({"tools": [{"type": "function"}]}, "tools[0].function"),
    "a schema that is none": ({"tools": [{"function": {"name": "f", "parameters": []}}]}, "tools[0].function.parameters"),
    "a choice that is none": ({"tool_choice": "maybe"}, "tool_choice"),
    "a choice of another shape": ({"tool_choice": {"type": "function", "name": "f"}}, "tool_choice"),
    "no choices": ({"n": 0}, "n"),
    "no tokens": ({"max_tokens": 0}, "max_tokens"),
    "half a token": ({"max_completion_tokens": 1.5}, "max_completion_tokens"),
    "a temperature that is none": ({"temperature": "hot"}, "temperature"),
    "a flag that is none": ({"stream": "yes"}, "stream"),
    "a stop that is none": ({"stop": [1]}, "stop[0]"),
    "a format nobody knows": ({"response_format": {"type": "xml"}}, "response_format.type"),
    "a schema format without schema": ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
    "a wrong schema": ({"response_format": {"type": "json_schema", "json_schema": {"schema": 3}}}, "response_format.json_schema.schema"),
}  # fmt: skip


@pytest.mark.parametrize(("fields", "param"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_is_named(fields: dict[str, Any], param: str | None) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        asked(**fields)
    assert refusal.value.param == param
    assert param is None or param.rpartition(".")[2].partition("[")[0] in refusal.value.message


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"\xff",
        b"[" * 100_000,
        b'{"model":' + b"[" * 5000,
        b'{"a": NaN}',
        b'{"n": 1e999}',
    ],
    ids=lambda body: body[:12].decode("latin-1"),
)
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        DIALECT.decode_request(body, Arrival())


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
NAMES = [
    "role", "content", "type", "text", "image_url", "url", "tool_calls", "function", "name", "arguments", "id", "tool_call_id",
    "reasoning", "reasoning_content", "reasoning_details", "summary", "format", "signature", "data", "index", "part", "thinking",
    "extra_content", "google", "bardo", "opaque", "thought_signature", "refusal", "function_call", "custom", "effort", "max_tokens",
]  # fmt: skip
WORDS = [
    "user",
    "assistant",
    "tool",
    "system",
    "function",
    "text",
    "thinking",
    "image_url",
    "custom",
    "reasoning.summary",
    "a",
]
shaped = st.recursive(
    junk | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=15,
)
TOP = [
    "model", "messages", "tools", "functions", "tool_choice", "function_call", "parallel_tool_calls", "n", "stream", "stop",
    "stream_options", "max_tokens", "temperature", "reasoning", "reasoning_effort", "include_reasoning", "response_format", "bardo",
    "thinking", "enable_thinking", "thinking_budget", "think", "chat_template_kwargs",
]  # fmt: skip


@given(st.dictionaries(st.sampled_from(TOP), shaped, max_size=6), st.lists(shaped, max_size=3))
def test_nothing_but_a_callers_error_is_raised(fields: dict[str, Any], messages: list[Any]) -> None:
    body = json.dumps({"model": "m", "messages": messages, **fields}).encode()
    try:
        request = DIALECT.decode_request(body, Arrival())
    except CallerError:
        return
    assert request.dialect == CHAT


@given(st.binary(max_size=80))
def test_no_bytes_raise_anything_else(body: bytes) -> None:
    with pytest.raises(CallerError):
        DIALECT.decode_request(body, Arrival())

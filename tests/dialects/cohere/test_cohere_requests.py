"""Cohere requests, read from clients and written for the API."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.values.blocks import (
    Block,
    Carried,
    ImageBlock,
    Opaque,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.errors import CallerError, InvalidRequest
from bardo.values.request import Control, Message, OutputFormat, ReasoningPolicy, Request, Sampling, Tool, ToolChoice
from dialects.cohere.replies import ARRIVAL, DIALECT, ROW
from dialects.told import as_told

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "look", "description": "Look", "parameters": {"type": "object", "properties": {}}},
}
PLAN = "cohere-tool-plan"


def decode(body: dict[str, Any]) -> Request:
    return DIALECT.decode_request(json.dumps(body).encode(), ARRIVAL)


def asked(**fields: Any) -> dict[str, Any]:
    return {"model": "command-a-03-2025", "messages": [{"role": "user", "content": "hi"}], **fields}


def encode(request: Request) -> dict[str, Any]:
    wire = DIALECT.encode_request(request, ROW)
    assert wire.path == "chat"
    body: dict[str, Any] = json.loads(wire.body)
    return body


def lost(request: Request) -> dict[str, Any]:
    return {one.what: one.sent for one in DIALECT.encode_request(request, ROW).degraded}


def foreign(**fields: Any) -> Request:
    return Request(model="m", messages=(Message("user", (TextBlock("hi"),)),), dialect="openai_chat", **fields)


FULL = asked(
    messages=[
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "Hm."}],
            "tool_plan": "I will look.",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"n":1}'}}],
        },
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": [{"type": "document", "document": {"id": "d", "data": {"x": "a cat"}}}],
        },
        {"role": "assistant", "content": "A cat.", "citations": [{"start": 0, "end": 5}]},
        {"role": "user", "content": "And now?"},
    ],
    tools=[TOOL],
    strict_tools=True,
    tool_choice="REQUIRED",
    max_tokens=100,
    temperature=0.5,
    p=0.9,
    k=40,
    seed=7,
    frequency_penalty=0.1,
    presence_penalty=0.2,
    stop_sequences=["END"],
    thinking={"type": "enabled", "token_budget": 50},
    response_format={"type": "json_object", "json_schema": {"type": "object"}},
    documents=["d"],
    citation_options={"mode": "FAST"},
    safety_mode="STRICT",
    logprobs=True,
    stream=True,
)


def test_a_full_request_is_read() -> None:
    request = decode(FULL)
    assert request.sampling == Sampling(
        temperature=0.5, top_p=0.9, top_k=40, seed=7, frequency_penalty=0.1, presence_penalty=0.2, stop=("END",)
    )
    assert (request.max_output_tokens, request.stream) == (100, True)
    assert request.tools == (
        Tool(name="look", description="Look", schema={"type": "object", "properties": {}}, strict=True),
    )
    assert request.tool_choice == ToolChoice(mode="required")
    assert request.output_format == OutputFormat(
        mode="json_schema", name="answer", schema={"type": "object"}, strict=True
    )
    assert request.reasoning is not None
    assert (request.reasoning.mode, request.reasoning.budget) == ("budget", 50)
    assert sorted(request.extra) == ["citation_options", "documents", "logprobs", "safety_mode"]
    _, user, called, result, answer, _ = request.messages
    assert user.blocks == (
        TextBlock("What is this?"),
        ImageBlock(media_type="image/png", data="aGk=", detail="low"),
    )
    assert called.blocks == (
        ReasoningBlock(text="Hm.", format="thinking"),
        ReasoningBlock(text="I will look.", format=PLAN),
        ToolCallBlock(id="c1", name="look", arguments='{"n":1}'),
    )
    document = {"type": "document", "document": {"id": "d", "data": {"x": "a cat"}}}
    told = TextBlock('{"x":"a cat"}', carried=Carried("cohere", {"document": document["document"]}))
    assert result.blocks == (ToolResultBlock(call_id="c1", name="look", content=(told,)),)
    assert answer.carried == Carried("cohere", {"citations": [{"start": 0, "end": 5}]})


def test_a_full_request_is_written_back_as_it_was() -> None:
    assert encode(as_told(decode(FULL))) == FULL
    assert DIALECT.encode_request(as_told(decode(FULL)), ROW).degraded == ()


@pytest.mark.parametrize(
    ("said", "mode", "effort", "budget"),
    [
        ({"thinking": {"type": "enabled"}}, "auto", None, None),
        ({"thinking": {"type": "disabled"}}, "off", None, None),
        ({"reasoning_effort": "high"}, "effort", "high", None),
        ({"reasoning_effort": "none"}, "off", None, None),
        ({"thinking": {"type": "enabled", "token_budget": 9}, "reasoning_effort": "high"}, "budget", "high", 9),
        ({"thinking": {"type": "enabled"}, "reasoning_effort": "low"}, "effort", "low", None),
        ({"thinking": {"type": "disabled"}, "reasoning_effort": "low"}, "off", "low", None),
    ],
    ids=str,
)
def test_thinking_is_read(said: dict[str, Any], mode: str, effort: str | None, budget: int | None) -> None:
    policy = decode(asked(**said)).reasoning
    assert policy is not None
    assert (policy.mode, policy.effort, policy.budget, policy.raw_fields) == (mode, effort, budget, said)


def test_further_words_of_thinking_stay_beside_its_type() -> None:
    request = decode(asked(thinking={"type": "enabled", "token_budget": 9, "depth": 1}))
    fields = {"thinking": {"type": "enabled", "token_budget": 5}}
    said = msgspec.structs.replace(request, control=Control(fields=fields))
    assert encode(said)["thinking"] == {"type": "enabled", "token_budget": 5, "depth": 1}
    other = msgspec.structs.replace(request, control=Control(fields={"reasoning_effort": "high"}))
    assert (encode(other).get("thinking"), lost(other)) == (None, {"thinking": None})


def test_of_thinking_only_the_control_is_said() -> None:
    policy = ReasoningPolicy(mode="off", carried=Carried("anthropic_messages", {"block_binding": "strict"}))
    request = foreign(reasoning=policy)
    assert (encode(request), lost(request)) == (encode(foreign()), {"block_binding": None})


@pytest.mark.parametrize(
    ("sampling", "sent", "told"),
    [
        (Sampling(top_p=0.5, top_k=9), {"p": 0.5, "k": 9}, {}),
        (Sampling(min_p=0.1, temperature=1.5), {"temperature": 1.5}, {"min_p": None}),
        (Sampling(stop=("a",), seed=0), {"stop_sequences": ["a"], "seed": 0}, {}),
    ],
)
def test_sampling_goes_by_coheres_names(sampling: Sampling, sent: dict[str, Any], told: dict[str, Any]) -> None:
    request = foreign(sampling=sampling)
    body = encode(request)
    assert {name: value for name, value in body.items() if name not in ("model", "messages")} == sent
    assert lost(request) == told


@pytest.mark.parametrize(
    ("choice", "offered", "word"),
    [
        (ToolChoice(mode="auto"), ["look", "hear"], None),
        (ToolChoice(mode="none"), ["look", "hear"], "NONE"),
        (ToolChoice(mode="required"), ["look", "hear"], "REQUIRED"),
        (ToolChoice(mode="named", name="hear"), ["hear"], "REQUIRED"),
    ],
    ids=["auto", "none", "required", "named"],
)
def test_the_choice_of_tools(choice: ToolChoice, offered: list[str], word: str | None) -> None:
    request = foreign(tools=(Tool(name="look"), Tool(name="hear")), tool_choice=choice)
    body = encode(request)
    assert [tool["function"]["name"] for tool in body["tools"]] == offered
    assert body.get("tool_choice") == word
    assert lost(request) == ({"tool_choice": "REQUIRED"} if choice.mode == "named" else {})


def test_strictness_is_for_all_tools_or_none() -> None:
    mixed = foreign(tools=(Tool(name="look", strict=True), Tool(name="hear")))
    assert encode(mixed)["strict_tools"] is True
    assert lost(mixed) == {"tools.strict": True}
    assert "strict_tools" not in encode(foreign(tools=(Tool(name="look"),)))


def test_a_format_does_not_go_with_tools() -> None:
    wanted = OutputFormat(mode="json_schema", name="city", schema={"type": "object"}, strict=True)
    assert encode(foreign(output_format=wanted))["response_format"] == {
        "type": "json_object",
        "json_schema": {"type": "object"},
    }
    both = foreign(output_format=wanted, tools=(Tool(name="look"),))
    assert "response_format" not in encode(both)
    assert lost(both) == {"response_format": None}
    assert encode(foreign(output_format=OutputFormat(mode="json_object")))["response_format"] == {"type": "json_object"}


def test_the_older_name_of_the_schema_is_read() -> None:
    request = decode(asked(response_format={"type": "json_object", "schema": {"type": "object"}}))
    assert request.output_format is not None
    assert request.output_format.schema == {"type": "object"}
    assert decode(asked(response_format={"type": "text"})).output_format is None


GPT = Opaque("encrypted", "C", "openai-responses-v1")
CLAUDE = Opaque("signature", "S", "anthropic-claude-v1")


def test_what_cohere_cannot_say_is_told() -> None:
    request = Request(
        model="m",
        dialect="openai_chat",
        messages=(
            Message("user", (TextBlock("hi", carried=Carried("anthropic_messages", {"cache_control": {}})),)),
            Message(
                "assistant",
                (
                    ReasoningBlock(format="openai-responses-v1", opaque=(GPT,)),
                    ReasoningBlock(text="Hm.", format="anthropic-claude-v1", opaque=(CLAUDE,)),
                    ReasoningBlock(text="I will.", format=PLAN),
                    UnknownBlock("gemini", {"type": "code"}),
                    ToolCallBlock(id="c", name="look"),
                ),
            ),
            Message(
                "user",
                (
                    ToolResultBlock(call_id="c", content=(TextBlock("no"), ImageBlock(data="aGk=")), is_error=True),
                    TextBlock("Go on."),
                ),
            ),
        ),
        tools=(Tool(name="look"), Tool(name="web", hosted=True, carried=Carried("openai_chat", {"type": "web"}))),
        tool_choice=ToolChoice(parallel=False),
        choices=2,
        extra={"logit_bias": {}},
    )
    degraded = DIALECT.encode_request(request, ROW).degraded
    assert [(one.what, one.asked, one.sent) for one in degraded if one.what == "reasoning"] == [
        ("reasoning", "openai-responses-v1", None),
        ("reasoning", "anthropic-claude-v1", "text"),
    ]
    assert set(lost(request)) == {
        "cache_control",
        "reasoning",
        "content.code",
        "tool_result.image",
        "tool_result.is_error",
        "tool web",
        "parallel_tool_calls",
        "n",
        "logit_bias",
    }
    assert encode(request)["messages"] == [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "Hm."}],
            "tool_plan": "I will.",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "no"},
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
                {"type": "text", "text": "Go on."},
            ],
        },
    ]


@pytest.mark.parametrize(
    "block",
    [
        ReasoningBlock(format="openai-responses-v1", opaque=(GPT,)),
        TextBlock("Done.", (GPT,)),
        ToolCallBlock(id="c", name="look", opaque=(GPT,)),
    ],
    ids=["a thought", "a text", "a call"],
)
def test_state_of_another_model_is_lost_and_told(block: Block) -> None:
    messages = (Message("user", (TextBlock("hi"),)), Message("assistant", (block,)))
    degraded = DIALECT.encode_request(Request(model="m", messages=messages), ROW).degraded
    assert [(one.what, one.asked, one.sent) for one in degraded] == [("reasoning", "openai-responses-v1", None)]


def test_a_plan_without_calls_is_thinking() -> None:
    message = Message("assistant", (ReasoningBlock(text="I will.", format=PLAN), TextBlock("Done.")))
    (written,) = encode(Request(model="m", messages=(message,)))["messages"]
    assert written["content"] == [{"type": "thinking", "thinking": "I will."}, {"type": "text", "text": "Done."}]


def test_bardos_own_object_is_read_and_stays_here() -> None:
    request = decode(asked(bardo={"include": ["receipt"], "reasoning": "omit"}))
    assert request.options.include == ("receipt",)
    assert request.options.omit_reasoning
    assert "bardo" not in encode(request)
    assert request.body is not None
    assert "bardo" not in request.body


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"model": None}, "model"),
        ({"messages": None}, "messages"),
        ({"messages": [1]}, "messages[0]"),
        ({"messages": [{"role": "robot"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": [1]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "c"}]}]}, "messages[0].tool_calls[0].function"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0].image_url"),
        ({"tool_choice": "AUTO"}, "tool_choice"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"temperature": "hot"}, "temperature"),
        ({"k": 1.5}, "k"),
        ({"stop_sequences": [1]}, "stop_sequences[0]"),
        ({"thinking": {"type": "adaptive"}}, "thinking.type"),
        ({"thinking": {"type": "enabled", "token_budget": 0}}, "thinking.token_budget"),
        ({"reasoning_effort": "hard"}, "reasoning_effort"),
        ({"response_format": {"type": "json_schema"}}, "response_format.type"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode(asked(**change))
    assert caught.value.param == param


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_callers_errors(body: bytes) -> None:
    _tolerates(body)


NAMES = [
    "role", "content", "type", "text", "thinking", "tool_plan", "tool_calls", "function", "name", "arguments", "id",
    "signature", "tool_call_id", "image_url", "url", "token_budget", "json_schema",
]  # fmt: skip
WORDS = ["user", "assistant", "tool", "system", "function", "text", "thinking", "image_url", "enabled", "json_object"]
hostile = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES), inner | st.sampled_from(WORDS), max_size=4)
    ),
    max_leaves=15,
)
FIELDS = [
    "messages",
    "tools",
    "strict_tools",
    "tool_choice",
    "thinking",
    "response_format",
    "stream",
    "bardo",
    "documents",
]


@given(st.dictionaries(st.sampled_from(FIELDS), hostile | st.lists(hostile, max_size=3)))
def test_no_shapes_raise_anything_but_callers_errors(fields: dict[str, Any]) -> None:
    _tolerates(json.dumps({"model": "m", "messages": [], **fields}).encode())


@pytest.mark.parametrize("depth", [150, 1000, 100_000])
@pytest.mark.parametrize("field", ["messages", "thinking", "response_format", "documents"])
def test_deep_nesting_is_refused_or_carried(field: str, depth: int) -> None:
    for opened, closed in ((b"[", b"]"), (b'{"a":', b"}")):
        nested = opened * depth + b"1" + closed * depth
        _tolerates(b'{"model": "m", "messages": [], "' + field.encode() + b'": ' + nested + b"}")


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

"""Converse requests: from clients, to Bedrock, and what each family of models is told."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.dialects.shared.states import seal
from bardo.values.blocks import (
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
from bardo.values.request import (
    BardoOptions,
    Control,
    Effort,
    Message,
    OutputFormat,
    ReasoningPolicy,
    Request,
    Sampling,
    Tool,
    ToolChoice,
)
from bardo.values.wire import Arrival, WireRequest
from dialects.bedrock_converse.replies import DIALECT, ROW

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
CLAUDE_46 = "us.anthropic.claude-sonnet-4-6"
CLAUDE_5 = "global.anthropic.claude-opus-5"
GPT = "openai.gpt-oss-120b-1:0"
NOVA = "us.amazon.nova-micro-v1:0"
NOVA_2 = "us.amazon.nova-2-lite-v1:0"
QWEN = "qwen.qwen3-32b-v1:0"
MINIMAX = "minimax.minimax-m2"
PROFILE = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc"
ASK = Message("user", (TextBlock("Hi"),))
SIGNED = Opaque("signature", "c2ln", "bedrock-v1")
REDACTED = Opaque("redacted", "YWJj", "bedrock-v1")
WEATHER = Tool(name="weather", description="d", schema={"type": "object", "properties": {"city": {"type": "string"}}})


def send(model: str = CLAUDE, *messages: Message, dialect: str = "openai_chat", **fields: Any) -> WireRequest:
    request = Request(model=model, messages=messages or (ASK,), dialect=dialect, **fields)
    return DIALECT.encode_request(request, ROW)


def body(wire: WireRequest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(wire.body)
    return found


def lost(wire: WireRequest) -> dict[str, Any]:
    return {one.what: one.sent for one in wire.degraded}


def decode(fields: Any, model: str = CLAUDE, stream: bool = False) -> Request:
    return DIALECT.decode_request(json.dumps(fields).encode(), Arrival(model=model, stream=stream))


def decode_messages(*messages: dict[str, Any]) -> tuple[Message, ...]:
    return decode({"messages": list(messages)}).messages


def test_the_path_holds_the_model_and_the_streaming() -> None:
    assert send(CLAUDE).path == "model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse"
    assert send(GPT, stream=True).path == "model/openai.gpt-oss-120b-1%3A0/converse-stream"
    assert send(PROFILE).path.endswith("application-inference-profile%2Fabc/converse")
    assert body(send(GPT)) == {"messages": [{"role": "user", "content": [{"text": "Hi"}]}]}


def test_a_conversation_keeps_its_shape() -> None:
    wire = send(
        CLAUDE,
        Message("system", (TextBlock("Be brief."),)),
        ASK,
        Message(
            "assistant",
            (
                ReasoningBlock(text="Hm", opaque=(SIGNED,)),
                ReasoningBlock(opaque=(REDACTED,)),
                TextBlock("Calling."),
                ToolCallBlock(id="t1", name="weather", arguments='{"city": "Paris"}'),
            ),
        ),
        Message(
            "user",
            (
                TextBlock("and"),
                ToolResultBlock(
                    call_id="t1", content=(TextBlock("18"), ImageBlock(media_type="image/png", data="aGk="))
                ),
            ),
        ),
        Message("user", (TextBlock("?"),)),
        tools=(WEATHER,),
    )
    assert not wire.degraded
    assert body(wire)["system"] == [{"text": "Be brief."}]
    assert body(wire)["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "c2ln"}}},
                {"reasoningContent": {"redactedContent": "YWJj"}},
                {"text": "Calling."},
                {"toolUse": {"toolUseId": "t1", "name": "weather", "input": {"city": "Paris"}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "toolResult": {
                        "toolUseId": "t1",
                        "content": [{"text": "18"}, {"image": {"format": "png", "source": {"bytes": "aGk="}}}],
                    }
                },
                {"text": "and"},
                {"text": "?"},
            ],
        },
    ]
    assert body(wire)["toolConfig"] == {
        "tools": [{"toolSpec": {"name": "weather", "description": "d", "inputSchema": {"json": WEATHER.schema}}}]
    }


@pytest.mark.parametrize(
    ("block", "kept"),
    [
        (ReasoningBlock(text="Hm", opaque=(Opaque("signature", "x", "anthropic-claude-v1"),)), False),
        (ReasoningBlock(text="Hm", opaque=(Opaque("encrypted", "x", "openai-responses-v1"),)), False),
        (ReasoningBlock(text="Hm"), False),
        (ReasoningBlock(text="", opaque=(SIGNED,)), True),
    ],
    ids=["anthropic", "openai", "unsigned", "signed-empty"],
)
def test_only_thinking_bedrock_signed_goes_back_to_claude(block: ReasoningBlock, kept: bool) -> None:
    wire = send(CLAUDE, ASK, Message("assistant", (block, TextBlock("x"))), ASK)
    assert ("reasoningContent" in body(wire)["messages"][1]["content"][0]) is kept
    assert ("reasoning" in lost(wire)) is not kept


@pytest.mark.parametrize(
    ("model", "kept"), [(MINIMAX, True), (NOVA_2, True), (GPT, False), ("us.deepseek.r1-v1:0", False)]
)
def test_unsigned_thinking_goes_back_where_it_is_taken(model: str, kept: bool) -> None:
    wire = send(model, ASK, Message("assistant", (ReasoningBlock(text="Hm"), TextBlock("x"))), ASK)
    expected = {"reasoningContent": {"reasoningText": {"text": "Hm"}}}
    assert (expected in body(wire)["messages"][1]["content"]) is kept
    assert ("reasoning" in lost(wire)) is not kept


def test_claudes_signature_is_not_for_another_model() -> None:
    turn = Message("assistant", (ReasoningBlock(text="Hm", opaque=(SIGNED,)), TextBlock("x")))
    wire = send(MINIMAX, ASK, turn, ASK)
    assert body(wire)["messages"][1]["content"] == [{"text": "x"}]
    assert lost(wire) == {"reasoning": None}


def test_a_turn_that_is_thinking_alone_is_left_out() -> None:
    wire = send(CLAUDE, ASK, Message("assistant", (ReasoningBlock(text="Hm", opaque=(SIGNED,)),)), ASK)
    assert body(wire)["messages"] == [{"role": "user", "content": [{"text": "Hi"}, {"text": "Hi"}]}]
    assert "reasoning" in lost(wire)


ENABLED = {"type": "enabled", "budget_tokens": 2048}


def additional(**fields: Any) -> Control:
    return Control(fields={"additionalModelRequestFields": fields})


def test_only_the_control_speaks_of_thinking() -> None:
    policy = ReasoningPolicy(mode="effort", effort="high")
    wire = send(GPT, reasoning=policy, control=additional(reasoning_effort="low"))
    assert body(wire)["additionalModelRequestFields"] == {"reasoning_effort": "low"}
    assert not wire.degraded
    assert "additionalModelRequestFields" not in body(send(GPT, reasoning=policy))


def test_budgeted_claude_does_not_think_where_the_calls_thinking_is_lost() -> None:
    call, result = ToolCallBlock(id="t", name="weather"), ToolResultBlock(call_id="t", content=(TextBlock("x"),))
    answer = Message("user", (result,))
    control = additional(thinking=ENABLED)
    without = send(CLAUDE, ASK, Message("assistant", (call,)), answer, control=control, tools=(WEATHER,))
    assert body(without)["additionalModelRequestFields"]["thinking"] == {"type": "disabled"}
    assert lost(without) == {"reasoning": "off"}
    thought = Message("assistant", (ReasoningBlock(text="Hm", opaque=(SIGNED,)), call))
    with_it = send(CLAUDE, ASK, thought, answer, control=control, tools=(WEATHER,))
    assert body(with_it)["additionalModelRequestFields"]["thinking"] == ENABLED


def test_top_k_goes_where_the_control_puts_it_or_as_the_caller_had_it() -> None:
    sampling = Sampling(top_k=5)
    wire = send(GPT, sampling=sampling)
    assert "additionalModelRequestFields" not in body(wire)
    assert lost(wire) == {"top_k": None}
    own = send(GPT, sampling=sampling, dialect="bedrock_converse")
    assert body(own)["additionalModelRequestFields"] == {"top_k": 5}


def test_what_converse_cannot_say_is_reported() -> None:
    wire = send(
        GPT,
        choices=2,
        sampling=Sampling(min_p=0.1, seed=1, frequency_penalty=0.1, presence_penalty=0.1),
        extra={"user": "me"},
        tools=(WEATHER, Tool(name="search", hosted=True, carried=Carried("openai_responses", {"type": "web_search"}))),
        tool_choice=ToolChoice(mode="auto", parallel=False),
        output_format=OutputFormat(mode="json_object"),
    )
    assert set(lost(wire)) == {
        "n",
        "min_p",
        "seed",
        "frequency_penalty",
        "presence_penalty",
        "user",
        "tool search",
        "parallel_tool_calls",
        "response_format",
    }


def test_structured_output_has_its_schema_as_text() -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    wire = send(GPT, output_format=OutputFormat(mode="json_schema", name="n", schema=schema, description="d"))
    inner = body(wire)["outputConfig"]["textFormat"]
    assert inner["type"] == "json_schema"
    assert json.loads(inner["structure"]["jsonSchema"].pop("schema")) == schema
    assert inner["structure"]["jsonSchema"] == {"name": "n", "description": "d"}


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ToolChoice(mode="auto"), {"auto": {}}),
        (ToolChoice(mode="required"), {"any": {}}),
        (ToolChoice(mode="named", name="weather"), {"tool": {"name": "weather"}}),
        (None, None),
    ],
)
def test_tool_choices(choice: ToolChoice | None, expected: Any) -> None:
    assert body(send(GPT, tools=(WEATHER,), tool_choice=choice))["toolConfig"].get("toolChoice") == expected


def test_no_tools_are_offered_where_none_may_be_called() -> None:
    wire = send(GPT, tools=(WEATHER,), tool_choice=ToolChoice(mode="none"))
    assert "toolConfig" not in body(wire)
    assert not wire.degraded


def test_calls_in_the_conversation_need_tools() -> None:
    call, result = ToolCallBlock(id="t", name="weather", arguments="{}"), ToolResultBlock(call_id="t")
    history = (ASK, Message("assistant", (call,)), Message("user", (result,)))
    wire = send(GPT, *history)
    assert [tool["toolSpec"]["name"] for tool in body(wire)["toolConfig"]["tools"]] == ["weather"]
    assert lost(wire) == {"tools": ["weather"]}
    none = send(GPT, *history, tools=(WEATHER,), tool_choice=ToolChoice(mode="none"))
    assert "toolChoice" not in body(none)["toolConfig"]
    assert lost(none) == {"tool_choice": "auto"}


def test_strict_tools_say_so() -> None:
    tool = Tool(name="f", schema={"type": "object"}, strict=True)
    assert body(send(GPT, tools=(tool,)))["toolConfig"]["tools"][0]["toolSpec"]["strict"] is True


@pytest.mark.parametrize(
    ("call_id", "start", "kept"),
    [("call_1", "call_1", True), ("functions.f:0", "functions.f:0", True), ("a|b", "a_b_", False)],
)
def test_tool_ids_are_written_in_converses_letters(call_id: str, start: str, kept: bool) -> None:
    call, result = ToolCallBlock(id=call_id, name="f", arguments="{}"), ToolResultBlock(call_id=call_id)
    wire = send(GPT, ASK, Message("assistant", (call,)), Message("user", (result,)), tools=(WEATHER,))
    _, assistant, user = body(wire)["messages"]
    used = assistant["content"][0]["toolUse"]["toolUseId"]
    assert user["content"][0]["toolResult"]["toolUseId"] == used
    assert used.startswith(start)
    assert (used == call_id) is kept
    assert ("tool call id" in lost(wire)) is not kept


def test_a_long_tool_id_is_cut_and_stays_unlike_others() -> None:
    long = ["x" * 80 + end for end in "ab"]
    calls = tuple(ToolCallBlock(id=one, name="f", arguments="{}") for one in long)
    results = tuple(ToolResultBlock(call_id=one) for one in long)
    wire = send(GPT, ASK, Message("assistant", calls), Message("user", results), tools=(WEATHER,))
    used = [block["toolUse"]["toolUseId"] for block in body(wire)["messages"][1]["content"]]
    assert len(set(used)) == 2
    assert all(len(one) <= 64 for one in used)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (ImageBlock(media_type="image/jpeg", data="eA=="), {"format": "jpeg", "source": {"bytes": "eA=="}}),
        (ImageBlock(url="data:image/webp;base64,eA=="), {"format": "webp", "source": {"bytes": "eA=="}}),
        (ImageBlock(url="s3://b/k.jpg"), {"format": "jpeg", "source": {"s3Location": {"uri": "s3://b/k.jpg"}}}),
        (ImageBlock(url="https://x/y.png"), None),
        (ImageBlock(media_type="image/tiff", data="eA=="), None),
    ],
)
def test_pictures_are_bytes(image: ImageBlock, expected: Any) -> None:
    wire = send(GPT, Message("user", (TextBlock("see"), image)))
    pictures = [block["image"] for block in body(wire)["messages"][0]["content"] if "image" in block]
    assert pictures == ([expected] if expected else [])
    assert ("image" in lost(wire)) is (expected is None)


def test_blank_text_and_late_system_text_are_reported() -> None:
    wire = send(
        GPT, ASK, Message("assistant", (TextBlock(" \n"), TextBlock("x"))), Message("system", (TextBlock("S"),))
    )
    assert body(wire)["messages"][1:] == [
        {"role": "assistant", "content": [{"text": "x"}]},
        {"role": "user", "content": [{"text": "S"}]},
    ]
    assert lost(wire) == {"history.empty_text": None, "system": "user"}


def test_blocks_and_fields_of_other_dialects_are_reported() -> None:
    block = TextBlock("x", carried=Carried("anthropic_messages", {"cache_control": {"type": "ephemeral"}}))
    unknown = UnknownBlock("anthropic_messages", {"type": "document", "source": {}})
    wire = send(GPT, Message("user", (block, block, unknown)))
    assert body(wire)["messages"][0]["content"] == [{"text": "x"}, {"text": "x"}]
    assert lost(wire) == {"cache_control": None, "content.document": None}


def test_arguments_that_are_no_object_are_wrapped() -> None:
    call = ToolCallBlock(id="t", name="f", arguments="{oops")
    wire = send(
        GPT, ASK, Message("assistant", (call,)), Message("user", (ToolResultBlock(call_id="t"),)), tools=(WEATHER,)
    )
    assert body(wire)["messages"][1]["content"][0]["toolUse"]["input"] == {"INVALID_JSON": "{oops"}
    assert "tool arguments" in lost(wire)


FULL: dict[str, Any] = {
    "system": [{"text": "S"}, {"cachePoint": {"type": "default", "ttl": "1h"}}],
    "messages": [
        {
            "role": "user",
            "content": [{"text": "a"}, {"guardContent": {"text": {"text": "g"}}}, {"cachePoint": {"type": "default"}}],
        },
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "t", "signature": "c2ln"}}},
                {"toolUse": {"toolUseId": "t", "name": "f", "input": {"a": 1}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "toolResult": {
                        "toolUseId": "t",
                        "content": [{"json": {"b": [1, None]}}, {"text": "x"}],
                        "status": "success",
                    }
                },
                {"document": {"format": "pdf", "name": "d", "source": {"bytes": "eA=="}}},
                {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://b/k", "bucketOwner": "1"}}}},
            ],
        },
    ],
    "inferenceConfig": {"maxTokens": 9, "temperature": 0.5, "topP": 0.5, "stopSequences": ["END"], "newer": 1},
    "toolConfig": {
        "tools": [
            {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object", "properties": {}}}, "strict": False}},
            {"systemTool": {"name": "nova_grounding"}},
            {"cachePoint": {"type": "default"}},
        ],
        "toolChoice": {"any": {}},
    },
    "additionalModelRequestFields": {
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "top_k": 3,
        "anthropic_beta": ["x"],
    },
    "additionalModelResponseFieldPaths": ["/stop_sequence"],
    "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"},
    "performanceConfig": {"latency": "optimized"},
    "requestMetadata": {"a": "b"},
}


def test_a_callers_own_request_goes_on_as_it_came() -> None:
    control = additional(thinking={"type": "enabled", "budget_tokens": 1024})
    wire = DIALECT.encode_request(msgspec.structs.replace(decode(FULL), control=control), ROW)
    assert body(wire) == FULL
    assert not wire.degraded


def test_a_request_is_read() -> None:
    request = decode({**FULL, "bardo": {"include": ["receipt"]}}, stream=True)
    assert (request.model, request.stream, request.dialect) == (CLAUDE, True, "bedrock_converse")
    assert request.max_output_tokens == 9
    assert request.sampling == Sampling(temperature=0.5, top_p=0.5, top_k=3, stop=("END",))
    assert request.reasoning is not None
    assert (request.reasoning.mode, request.reasoning.budget) == ("budget", 1024)
    assert request.tool_choice == ToolChoice(mode="required")
    assert [(tool.name, tool.hosted) for tool in request.tools] == [
        ("f", False),
        ("nova_grounding", True),
        ("cachePoint", True),
    ]
    assert request.options == BardoOptions(include=("receipt",))
    assert request.body is not None
    assert "bardo" not in request.body
    system, _, assistant, user = request.messages
    assert system.text == "S"
    assert assistant.blocks[0] == ReasoningBlock(text="t", format="bedrock-v1", opaque=(SIGNED,))
    result = user.blocks[0]
    assert isinstance(result, ToolResultBlock)
    assert (result.name, result.text) == ("f", '{"b":[1,null]}x')


def test_a_failed_tool_is_read_and_written() -> None:
    turn = {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [], "status": "error"}}]}
    (message,) = decode_messages(turn)
    assert message.blocks == (ToolResultBlock(call_id="t", is_error=True),)
    assert body(send(GPT, message))["messages"] == [turn]


@pytest.mark.parametrize(
    ("additional", "mode", "effort", "budget", "visible"),
    [
        ({"thinking": {"type": "disabled"}}, "off", None, None, None),
        ({"thinking": {"type": "adaptive", "display": "omitted"}}, "auto", None, None, False),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}, "effort", "high", None, None),
        ({"reasoning_effort": "low"}, "effort", "low", None, None),
        ({"reasoning": {"effort": "medium"}}, "effort", "medium", None, None),
        ({"reasoning_config": "high"}, "effort", "high", None, None),
        ({"reasoning_config": "none"}, "off", None, None, None),
        ({"reasoning_config": {"type": "enabled", "budget_tokens": 2000}}, "budget", None, 2000, None),
        ({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}}, "effort", "low", None, None),
        ({"reasoningConfig": {"type": "disabled"}}, "off", None, None, None),
        ({"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}}, "off", "high", None, None),
    ],
)
def test_every_familys_words_for_thinking_are_read(
    additional: dict[str, Any], mode: str, effort: Effort | None, budget: int | None, visible: bool | None
) -> None:
    told = {"additionalModelRequestFields": additional}
    policy = decode({"messages": [], **told}).reasoning
    assert policy is not None
    assert (policy.mode, policy.effort, policy.budget, policy.visible) == (mode, effort, budget, visible)
    assert (policy.raw_fields, policy.carried) == (told, None)


def test_an_effort_alone_wakes_nothing_and_thinking_between_tools_is_read() -> None:
    alone = decode({"messages": [], "additionalModelRequestFields": {"output_config": {"effort": "low"}}}).reasoning
    between = decode(
        {"messages": [], "additionalModelRequestFields": {"thinking": {"type": "between_tools"}}}
    ).reasoning
    assert alone is not None
    assert between is not None
    assert (alone.enables_thinking, alone.between_tools, between.enables_thinking, between.between_tools) == (
        False,
        False,
        True,
        True,
    )


@pytest.mark.parametrize(
    ("told", "control", "sent", "left"),
    [
        (
            {"thinking": {"type": "adaptive", "display": "summarized", "newer": 1}},
            {"thinking": {"type": "adaptive"}},
            {"thinking": {"type": "adaptive", "display": "summarized", "newer": 1}},
            set(),
        ),
        (
            {"reasoning": {"effort": "max", "newer": 1}},
            {"reasoning": {"effort": "high"}},
            {"reasoning": {"effort": "high", "newer": 1}},
            set(),
        ),
        (
            {"reasoning": {"effort": "high", "newer": 1}},
            {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}},
            {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}},
            {"reasoning"},
        ),
    ],
    ids=["beside thinking", "the control wins", "another family's"],
)
def test_the_callers_own_words_stand_beside_the_control(
    told: dict[str, Any], control: dict[str, Any], sent: dict[str, Any], left: set[str]
) -> None:
    request = decode({"messages": FULL["messages"][:1], "additionalModelRequestFields": told})
    wire = DIALECT.encode_request(msgspec.structs.replace(request, control=additional(**control)), ROW)
    assert body(wire)["additionalModelRequestFields"] == sent
    assert set(lost(wire)) == left


def test_sealed_state_comes_back_to_its_blocks() -> None:
    state = Opaque("encrypted", "gAAA", "openai-responses-v1")
    owners = [seal([state, Opaque("id", owner, "bardo-block")]) for owner in ("", "t")]
    (message,) = decode_messages(
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "h", "signature": seal([state])}}},
                {"text": "x"},
                {"reasoningContent": {"redactedContent": owners[0]}},
                {"toolUse": {"toolUseId": "t", "name": "f", "input": {}}},
                {"reasoningContent": {"redactedContent": owners[1]}},
            ],
        }
    )
    assert message.blocks == (
        ReasoningBlock(text="h", format="openai-responses-v1", opaque=(state,)),
        TextBlock("x", (state,)),
        ToolCallBlock(id="t", name="f", arguments="{}", opaque=(state,)),
    )


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ([], None),
        ({}, "messages"),
        ({"messages": 1}, "messages"),
        ({"messages": ["x"]}, "messages[0]"),
        ({"messages": [{"role": "system", "content": []}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": "x"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"text": 5}]}]}, "messages[0].content[0].text"),
        (
            {"messages": [{"role": "user", "content": [{"toolUse": {"name": "f"}}]}]},
            "messages[0].content[0].toolUse.toolUseId",
        ),
        (
            {"messages": [{"role": "user", "content": [{"toolUse": {"toolUseId": "a", "name": "f", "input": "x"}}]}]},
            "messages[0].content[0].toolUse.input",
        ),
        (
            {"messages": [{"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": ["x"]}}]}]},
            "messages[0].content[0].toolResult.content[0]",
        ),
        (
            {"messages": [{"role": "user", "content": [{"reasoningContent": {"redactedContent": 1}}]}]},
            "messages[0].content[0].reasoningContent.redactedContent",
        ),
        ({"messages": [], "system": "x"}, "system"),
        ({"messages": [], "inferenceConfig": {"maxTokens": 0}}, "inferenceConfig.maxTokens"),
        ({"messages": [], "inferenceConfig": {"topP": "x"}}, "inferenceConfig.topP"),
        ({"messages": [], "toolConfig": {"tools": [{"toolSpec": {}}]}}, "toolConfig.tools[0].toolSpec.name"),
        ({"messages": [], "toolConfig": {"toolChoice": {}}}, "toolConfig.toolChoice"),
        ({"messages": [], "outputConfig": {"textFormat": {"type": "x"}}}, "outputConfig.textFormat.type"),
        (
            {"messages": [], "additionalModelRequestFields": {"thinking": 1}},
            "additionalModelRequestFields.thinking",
        ),
        (
            {"messages": [], "additionalModelRequestFields": {"reasoning_effort": "lots"}},
            "additionalModelRequestFields",
        ),
    ],
)
def test_a_wrong_request_names_the_field(fields: Any, param: str | None) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode(fields)
    assert caught.value.param == param


def test_a_model_that_stands_in_neither_place_is_missed() -> None:
    with pytest.raises(InvalidRequest, match="modelId"):
        DIALECT.decode_request(b'{"messages":[]}', Arrival())
    assert DIALECT.decode_request(b'{"messages":[],"modelId":"m"}', Arrival()).model == "m"


NAMES = (
    *("messages", "system", "role", "content", "text", "toolUse", "toolResult", "reasoningContent", "reasoningText"),
    *("redactedContent", "citationsContent", "image", "format", "source", "bytes", "inferenceConfig", "maxTokens"),
    *(
        "toolConfig",
        "tools",
        "toolSpec",
        "toolChoice",
        "additionalModelRequestFields",
        "thinking",
        "type",
        "outputConfig",
    ),
    *("textFormat", "structure", "jsonSchema", "schema", "user", "toolUseId", "name", "input", "json", "bardo"),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(NAMES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=5), st.sampled_from([CLAUDE, NOVA_2, GPT, PROFILE]))
def test_no_request_makes_it_raise_anything_else(fields: dict[str, Any], model: str) -> None:
    fields = {"messages": [{"role": "user", "content": [fields]}], **fields}
    try:
        request = DIALECT.decode_request(json.dumps(fields).encode(), Arrival(model=model))
    except CallerError:
        return
    DIALECT.encode_request(request, ROW)


@given(st.binary(max_size=80))
def test_no_bytes_make_it_raise_anything_else(data: bytes) -> None:
    with pytest.raises(CallerError):
        DIALECT.decode_request(data, Arrival(model=CLAUDE))


@pytest.mark.parametrize(
    "data", [b"[" * 100_000, b'{"messages":' * 5000, b'{"messages":[],"x":' + b"[" * 900 + b"]" * 900 + b"}"]
)
def test_hostile_nesting_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRequest):
        DIALECT.decode_request(data, Arrival(model=CLAUDE))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"messages": [{"role": "user", "content": "Hi"}]}, "messages[0].content must be an array, not a string"),
        (
            {"messages": [{"role": "user", "content": [{"toolUse": {"name": "f"}}]}]},
            "messages[0].content[0].toolUse.toolUseId is required",
        ),
        (
            {"messages": [], "toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": []}}}]}},
            "toolConfig.tools[0].toolSpec.inputSchema.json must be an object, not an array",
        ),
        (
            {"messages": [], "inferenceConfig": {"topP": True}},
            "inferenceConfig.topP must be a number, not a boolean",
        ),
        (
            {"messages": [], "additionalModelRequestFields": {"reasoning_config": 5}},
            "additionalModelRequestFields.reasoning_config must be a string or an object, not a number",
        ),
        (
            {"messages": [], "outputConfig": {"textFormat": {"type": "json_schema"}}},
            "outputConfig.textFormat.structure is required",
        ),
    ],
)
def test_a_wrong_field_is_named_with_its_path(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode(fields)
    assert caught.value.message == words
    assert words.startswith(str(caught.value.param))


def test_names_are_read_in_converses_spelling_alone() -> None:
    (message,) = decode_messages({"role": "user", "content": [{"tool_use": {"name": "f"}}]})
    assert message.blocks == (UnknownBlock("bedrock_converse", {"tool_use": {"name": "f"}}),)


def test_a_call_of_bedrocks_own_tool_is_kept_whole_and_names_no_result() -> None:
    use = {"toolUse": {"toolUseId": "t1", "name": "nova_grounding", "type": "server_tool_use", "input": {}}}
    own = {"toolResult": {"toolUseId": "t1", "type": "nova_grounding_result", "content": []}}
    result = {"toolResult": {"toolUseId": "t1", "content": []}}
    (message,) = decode_messages({"role": "user", "content": [use, own, result]})
    assert message.blocks[:2] == (UnknownBlock("bedrock_converse", use), UnknownBlock("bedrock_converse", own))
    assert message.blocks[2] == ToolResultBlock(call_id="t1")


def test_a_result_has_the_name_of_a_call_that_stands_behind_it() -> None:
    result = {"toolResult": {"toolUseId": "t1", "content": []}}
    call = {"toolUse": {"toolUseId": "t1", "name": "f", "input": {}}}
    first, _ = decode_messages({"role": "user", "content": [result]}, {"role": "assistant", "content": [call]})
    assert first.blocks == (ToolResultBlock(call_id="t1", name="f"),)


def test_a_document_from_two_places_is_kept_whole() -> None:
    document = {"document": {"format": "txt", "name": "n", "source": {"text": "a", "s3Location": {"uri": "s3://b"}}}}
    (message,) = decode_messages({"role": "user", "content": [document]})
    assert message.blocks == (UnknownBlock("bedrock_converse", document),)

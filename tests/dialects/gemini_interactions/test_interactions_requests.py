"""Requests, read and written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
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
from bardo.values.errors import InvalidRequest, UpstreamRefused, UpstreamTimeout
from bardo.values.request import Control, Message, OutputFormat, ReasoningPolicy, Request, Sampling, Tool, ToolChoice
from dialects.gemini_interactions.replies import ARRIVAL, DIALECT, ROW
from dialects.told import as_told

NAME = "gemini_interactions"
CLAUDE_ROW = ProviderRow(id="anthropic", name="Anthropic", dialect="anthropic_messages")
SIGNATURE = Opaque("signature", "c2ln", "google-gemini-v1")
CLAUDE = Opaque("signature", "Y2w", "anthropic-claude-v1")


def asked(**fields: Any) -> Request:
    body = {"model": "gemini-3-flash-preview", "input": "hi", **fields}
    return DIALECT.decode_request(json.dumps(body).encode(), ARRIVAL)


def sent(request: Request) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(DIALECT.encode_request(request, ROW).body)
    return body


def lost(request: Request) -> dict[str, Any]:
    return {one.what: one.asked for one in DIALECT.encode_request(request, ROW).degraded}


def foreign(*messages: Message, **fields: Any) -> Request:
    given = messages or (Message("user", (TextBlock("hi"),)),)
    return Request(**{"model": "gemini-3-flash-preview", "messages": given, "dialect": "openai_chat", **fields})


CONVERSATION: list[dict[str, Any]] = [
    {"type": "user_input", "content": [{"type": "text", "text": "weather?"}, {"type": "image", "uri": "gs://a"}]},
    {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "hm"}]},
    {"type": "function_call", "id": "c", "name": "f", "arguments": {"a": 1}},
    {"type": "function_call", "id": "d", "name": "f", "arguments": {}},
    {"type": "google_search_call", "id": "s", "arguments": {"queries": ["q"]}},
    {"type": "function_result", "call_id": "c", "name": "f", "result": {"sun": True}},
    {"type": "function_result", "call_id": "d", "result": [{"type": "text", "text": "no"}], "is_error": True},
    {"type": "model_output", "content": [{"type": "text", "text": "sunny"}]},
]


def test_a_conversation_becomes_messages_and_comes_back() -> None:
    request = asked(input=CONVERSATION, system_instruction="Be brief.")
    assert request.messages == (
        Message("system", (TextBlock("Be brief."),)),
        Message("user", (TextBlock("weather?"), ImageBlock(url="gs://a"))),
        Message(
            "assistant",
            (
                ReasoningBlock(summary=("hm",), format="google-gemini-v1", opaque=(SIGNATURE,)),
                ToolCallBlock(id="c", name="f", arguments='{"a":1}'),
                ToolCallBlock(id="d", name="f", arguments="{}"),
                UnknownBlock(NAME, CONVERSATION[4]),
            ),
        ),
        Message(
            "user",
            (
                ToolResultBlock(call_id="c", name="f", content=(TextBlock('{"sun":true}'),)),
                ToolResultBlock(call_id="d", content=(TextBlock("no"),), is_error=True),
            ),
        ),
        Message("assistant", (TextBlock("sunny"),)),
    )
    written = sent(request)
    assert written["system_instruction"] == "Be brief."
    assert written["input"] == CONVERSATION


STEPS: list[dict[str, Any]] = [
    *CONVERSATION,
    {"type": "user_input", "content": [{"type": "function_result", "call_id": "c", "result": "x"}]},
    {"type": "model_output", "content": [{"type": "audio", "data": "YQ=="}], "signature": "c2ln"},
    {"type": "model_output", "content": [{"type": "text", "text": "a", "own": 1}], "signature": "c2ln"},
    {"type": "model_output", "content": []},
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step["type"])
def test_what_nobody_knows_of_a_step_comes_back_and_is_reported_to_a_provider_of_another_dialect(
    step: dict[str, Any],
) -> None:
    calls = [one for one in CONVERSATION if one["type"] == "function_call" and f"'{one['id']}'" in str(step)]
    last = {"type": "user_input", "content": "go on"}
    request = asked(input=[*CONVERSATION[:1], *calls, {**step, "unheard_of": 1}, last])
    assert {key: value for one in sent(request)["input"] for key, value in one.items()}["unheard_of"] == 1
    told = {one.what for one in dialect("anthropic_messages").encode_request(request, CLAUDE_ROW).degraded}
    whole = {"reasoning", "content.model_output", "content.google_search_call"}
    assert told & {"unheard_of", "step", "messages.unheard_of", *whole}, told


def test_controls_are_read_and_come_back() -> None:
    config = {
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 7,
        "stop_sequences": ["x"],
        "max_output_tokens": 100,
        "thinking_level": "low",
        "thinking_summaries": "auto",
        "tool_choice": {"allowed_tools": {"mode": "any", "tools": ["f"]}},
        "speech_config": {"voice": "v"},
    }
    shape = {"type": "text", "mime_type": "application/json", "schema": {"type": "object"}}
    tools = [
        {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "defer_loading": True},
        {"type": "google_search"},
    ]
    fields = {"generation_config": config, "response_format": shape, "tools": tools, "previous_interaction_id": "v1_0"}
    request = asked(**fields, stream=True, store=True)
    assert request.sampling == Sampling(temperature=0.5, top_p=0.9, seed=7, stop=("x",))
    told = {"generation_config": {"thinking_level": "low", "thinking_summaries": "auto"}}
    assert request.reasoning == ReasoningPolicy(mode="effort", effort="low", visible=True, raw_fields=told)
    assert request.tool_choice == ToolChoice(mode="named", name="f")
    assert request.output_format == OutputFormat(mode="json_schema", schema={"type": "object"})
    assert [tool.hosted for tool in request.tools] == [False, True]
    assert (request.max_output_tokens, request.stream) == (100, True)
    written = sent(as_told(request))
    assert {name: written[name] for name in fields} == fields
    assert (written["stream"], written["store"]) == (True, True)
    assert lost(request) == {}


@pytest.mark.parametrize(
    "choice", ["auto", "any", "none", "validated", {"allowed_tools": {"mode": "auto", "tools": ["f", "g"]}}]
)
def test_tool_choices_come_back(choice: Any) -> None:
    assert sent(asked(generation_config={"tool_choice": choice}))["generation_config"]["tool_choice"] == choice


SHAPES: dict[str, dict[str, Any]] = {
    "any object": {"response_format": {"type": "text", "mime_type": "application/json"}},
    "a list of shapes": {"response_format": [{"type": "text"}, {"type": "image"}]},
    "an image": {"response_format": {"type": "image", "aspect_ratio": "1:1"}},
}


@pytest.mark.parametrize("case", SHAPES)
def test_shapes_of_the_answer_come_back(case: str) -> None:
    assert sent(asked(**SHAPES[case]))["response_format"] == SHAPES[case]["response_format"]


def test_the_older_form_of_a_schema_is_understood() -> None:
    request = asked(response_format={"type": "object"}, response_mime_type="application/json")
    assert request.output_format == OutputFormat(mode="json_schema", schema={"type": "object"})


def test_an_agent_stands_in_the_place_of_a_model() -> None:
    body = {"agent": "deep-research", "input": "hi", "background": True}
    request = DIALECT.decode_request(json.dumps(body).encode(), ARRIVAL)
    assert request.model == "deep-research"
    assert "model" not in sent(request)
    assert sent(request)["agent"] == "deep-research"


def test_what_bardo_sealed_is_opened_again() -> None:
    thought = {"type": "thought", "summary": [{"type": "text", "text": "let "}, {"type": "text", "text": "me"}]}
    request = asked(
        input=[
            {**thought, "signature": seal([CLAUDE])},
            {"type": "model_output", "content": [{"type": "text", "text": "a"}], "signature": seal([CLAUDE])},
            {"type": "function_call", "id": "c", "name": "f", "arguments": {"_raw": "{a"}, "signature": "c2ln"},
        ]
    )
    assert request.messages[0].blocks == (
        ReasoningBlock(text="let me", format="anthropic-claude-v1", opaque=(CLAUDE,)),
        TextBlock("a", opaque=(CLAUDE,)),
        ToolCallBlock(id="c", name="f", arguments="{a", opaque=(SIGNATURE,)),
    )


def test_who_only_asks_for_summaries_does_not_ask_for_thinking() -> None:
    policy = asked(generation_config={"thinking_summaries": "auto"}).reasoning
    assert policy is not None
    assert (policy.mode, policy.visible, policy.enables_thinking) == ("auto", True, False)


def test_a_foreign_request_is_stored_nowhere_and_thinks_as_its_control_says() -> None:
    request = foreign(
        Message("system", (TextBlock("Be brief."),)),
        Message("user", (TextBlock("hi"),)),
        Message("assistant", (ReasoningBlock(text="hm", opaque=(CLAUDE,)), TextBlock("a", opaque=(CLAUDE,)))),
        Message("system", (TextBlock("Now."),)),
        sampling=Sampling(top_k=3, min_p=0.1),
        tools=(Tool(name="f", strict=True), Tool(name="web", hosted=True)),
        tool_choice=ToolChoice(mode="required", parallel=False),
        output_format=OutputFormat(mode="json_object"),
        extra={"logit_bias": {}},
        choices=2,
        reasoning=ReasoningPolicy(mode="effort", effort="high"),
        control=Control(fields={"generation_config": {"thinking_summaries": "auto"}}),
    )
    assert sent(request) == {
        "model": "gemini-3-flash-preview",
        "input": [
            {"type": "user_input", "content": [{"type": "text", "text": "hi"}]},
            {"type": "model_output", "content": [{"type": "text", "text": "a"}]},
            {"type": "user_input", "content": [{"type": "text", "text": "Now."}]},
        ],
        "system_instruction": "Be brief.",
        "tools": [{"type": "function", "name": "f"}],
        "response_format": {"type": "text", "mime_type": "application/json"},
        "generation_config": {"thinking_summaries": "auto", "tool_choice": "any"},
        "store": False,
    }
    assert set(lost(request)) == {
        *("reasoning", "text.opaque", "messages.role", "top_k", "min_p", "tools.strict", "tool web"),
        *("parallel_tool_calls", "logit_bias", "n"),
    }


def test_foreign_fields_of_blocks_are_reported_by_name() -> None:
    block = TextBlock("hi", carried=Carried("anthropic_messages", {"cache_control": {"type": "ephemeral"}}))
    request = foreign(Message("user", (block, block, UnknownBlock("anthropic_messages", {"type": "document"}))))
    assert set(lost(request)) == {"cache_control", "content.document"}


def test_pictures_are_sent_inline_or_by_address() -> None:
    pictures = (ImageBlock(url="data:image/png;base64,AAAA"), ImageBlock(url="https://example.org/a.png"))
    (step,) = sent(foreign(Message("user", pictures)))["input"]
    assert step["content"] == [
        {"type": "image", "mime_type": "image/png", "data": "AAAA"},
        {"type": "image", "uri": "https://example.org/a.png"},
    ]


INVALID: dict[str, dict[str, Any]] = {
    "model": {"model": None},
    "input": {"input": 3},
    "input[0]": {"input": [3]},
    "input[0].type": {"input": [{}]},
    "input[0].content[0].text": {"input": [{"type": "user_input", "content": [{"type": "text"}]}]},
    "input[0].id": {"input": [{"type": "function_call", "name": "f"}]},
    "input[0].result": {"input": [{"type": "function_result", "call_id": "c"}]},
    "input[0].summary[0]": {"input": [{"type": "thought", "summary": [1]}]},
    "system_instruction": {"system_instruction": {}},
    "tools[0].name": {"tools": [{"type": "function"}]},
    "generation_config.seed": {"generation_config": {"seed": 1.5}},
    "generation_config.thinking_level": {"generation_config": {"thinking_level": "huge"}},
    "generation_config.tool_choice": {"generation_config": {"tool_choice": "maybe"}},
    "generation_config.stop_sequences[0]": {"generation_config": {"stop_sequences": [1]}},
    "stream": {"stream": "yes"},
}


@pytest.mark.parametrize("place", INVALID)
def test_wrong_fields_are_named(place: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        asked(**INVALID[place])
    assert caught.value.param == place


def test_errors_are_read_in_the_providers_words() -> None:
    body = b'{"error":{"message":"Please upgrade.","code":"invalid_request"}}'
    error = DIALECT.decode_error(400, body, {"retry-after": "3"}, "gemini-interactions")
    assert (error.status, error.message, error.upstream_code) == (400, "Please upgrade.", "invalid_request")
    assert (error.kind, error.retry_after) == ("invalid_request", "3")
    assert json.loads(DIALECT.encode_error(error))["error"]["code"] == "invalid_request"


def test_errors_are_written_with_the_dialects_codes() -> None:
    written = json.loads(DIALECT.encode_error(InvalidRequest("no", param="input")))["error"]
    assert written == {
        "code": "invalid_request",
        "message": "no",
        "bardo": {"code": "invalid_request", "param": "input"},
    }
    assert json.loads(DIALECT.encode_error(UpstreamTimeout("slow")))["error"]["code"] == "deadline_exceeded"
    foreign_code = UpstreamRefused("no", status=429, upstream_code="rate_limit_error")
    assert json.loads(DIALECT.encode_error(foreign_code))["error"]["code"] == "resource_exhausted"

"""What a provider is sent, and what is reported as unsayable."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

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
from bardo.values.request import Control, Message, OutputFormat, ReasoningPolicy, Request, Sampling, Tool, ToolChoice
from dialects.openai_chat.chat import asked, request_of, row_with, sent
from dialects.told import with_unheard_of

CHAT, CLAUDE = "openai_chat", "anthropic-claude-v1"
CACHE = Carried("anthropic_messages", {"cache_control": {"type": "ephemeral"}})
SIGNED = Opaque("signature", "sig", CLAUDE)
GEMINI = Opaque("signature", "sig", "google-gemini-v1")


def message_sent(
    *blocks: Block, role: Any = "assistant", **quirks: Any
) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
    """Return the one message that is sent, and what was reported."""
    body, wire = sent(request_of(Message(role, blocks)), row_with(**quirks))
    [message] = body["messages"]
    return message, [(lost.what, lost.asked) for lost in wire.degraded]


def controlled(request: Request, **fields: Any) -> Request:
    """Return the request with what it was decided to say of thinking."""
    return msgspec.structs.replace(request, control=Control(fields=fields))


def test_the_plainest_request() -> None:
    body, wire = sent(request_of(Message("user", (TextBlock("Hi"),))))
    assert body == {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    assert (wire.path, wire.headers, wire.degraded) == ("chat/completions", {}, ())


CONVERSATION = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "https://x/y.png"}}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}, "vendor": 1},
            {"id": "d", "type": "custom", "custom": {"name": "sql", "input": "select"}},
            {"id": "e", "type": "map", "map": {}},
        ],
    },
    {"role": "tool", "tool_call_id": "c", "content": "1", "name": "f"},
    {"role": "tool", "tool_call_id": "d", "content": [{"type": "text", "text": "2", "cache_control": {}}]},
    {"role": "assistant", "content": "Done.", "audio": {"id": "a"}},
    {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AA"}}], "name": "ann"},
    {"role": "assistant", "content": [{"type": "text", "text": "a", "cache_control": {}}, {"type": "text", "text": "b"}]},
    {"role": "assistant", "content": None, "refusal": "No."},
    {"role": "assistant", "content": "Calling.", "function_call": {"name": "f", "arguments": "{}"}},
    {"role": "function", "name": "f", "content": "3"},
]  # fmt: skip
FIELDS: dict[str, Any] = {
    "tools": [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}, "x": 1},
        {"type": "web_search", "options": {}},
    ],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "parallel_tool_calls": False,
    "max_tokens": 9,
    "temperature": 0.5,
    "seed": 3,
    "stop": ["END"],
    "n": 2,
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True}},
    "stream": True,
    "stream_options": {"include_usage": True, "include_obfuscation": False},
    "logit_bias": {"1": 2},
    "service_tier": "flex",
}  # fmt: skip


def test_a_request_of_this_dialect_is_sent_as_it_came() -> None:
    request = asked(messages=CONVERSATION, reasoning_effort="low", **FIELDS)
    body, wire = sent(controlled(request, reasoning_effort="low"))
    assert body == {"model": "m", "messages": CONVERSATION, "reasoning_effort": "low", **FIELDS}
    assert wire.degraded == ()


PARTS = [{"type": "text", "text": "a"}, {"type": "x", "tool_call": {}}, {"type": "refusal", "refusal": "No."}]
ODD = [
    *CONVERSATION[:2],
    {"role": "assistant", "content": PARTS},
    {"role": "user", "content": PARTS[1:2]},
    {"role": "assistant", "content": "Calling.", "function_call": {"name": "f", "arguments": "{}"}},
    {"role": "function", "name": "f", "content": "3"},
]


@pytest.mark.parametrize(
    ("place", "messages"),
    [*with_unheard_of(CONVERSATION), *with_unheard_of(ODD)],
    ids=lambda one: str(one) if isinstance(one, tuple) else "",
)
def test_a_field_that_nobody_knows_is_sent_as_it_came_or_reported(place: tuple[Any, ...], messages: list[Any]) -> None:
    body, wire = sent(asked(messages=messages))
    at: Any = body["messages"]
    try:
        for key in place:
            at = at[key]
        was_sent = at["unheard_of"] == 1
    except (LookupError, TypeError):
        was_sent = False
    assert was_sent or any("unheard_of" in lost.what for lost in wire.degraded)


def test_a_request_of_openrouters_form_is_sent_as_it_came() -> None:
    details = [
        {"type": "reasoning.text", "text": "x", "signature": "s", "format": CLAUDE, "index": 0},
        {"type": "reasoning.summary", "summary": "y", "format": "openai-responses-v1", "index": 1},
        {"type": "reasoning.encrypted", "data": "d", "id": "rs", "format": "openai-responses-v1", "index": 1},
    ]
    control = {"max_tokens": 2000, "exclude": True}
    fields: dict[str, Any] = {
        "messages": [{"role": "assistant", "content": "a", "reasoning_details": details}],
        "reasoning": {**control, "summary": "auto"},
    }
    body, wire = sent(controlled(asked(**fields), reasoning=control), row_with(replay="reasoning_details"))
    assert body == {"model": "m", **fields}
    assert wire.degraded == ()


def test_fields_of_another_dialect_are_reported() -> None:
    body, wire = sent(request_of(extra={"thinking": {"type": "adaptive"}, "top_a": 1}))
    assert "thinking" not in body
    assert [(lost.what, lost.asked) for lost in wire.degraded] == [("thinking", {"type": "adaptive"}), ("top_a", 1)]


def test_carried_fields_of_another_dialect_are_reported_once_by_name() -> None:
    other = Carried(
        "anthropic_messages", {"cache_control": {"type": "ephemeral", "ttl": "1h"}, "citations": {"enabled": True}}
    )
    result = ToolResultBlock(call_id="c", content=(TextBlock("r", carried=CACHE),), carried=CACHE)
    request = request_of(
        Message("system", (TextBlock("s", carried=CACHE),), CACHE),
        Message("assistant", (TextBlock("b", carried=CACHE), ToolCallBlock(id="c", name="f", carried=CACHE))),
        Message("user", (TextBlock("a", carried=other), result, ImageBlock(url="u", carried=CACHE))),
        tools=(Tool(name="f", carried=CACHE),),
    )
    body, wire = sent(request)
    assert sorted(lost.what for lost in wire.degraded) == ["cache_control", "citations"]
    assert "cache_control" not in str(body)


# Earlier reasoning

PLAIN = ReasoningBlock(text="x", format="reasoning_content")
CLAUDES = ReasoningBlock(text="x", format=CLAUDE, opaque=(SIGNED,))
SEALED = ReasoningBlock(format="openai-responses-v1", opaque=(Opaque("encrypted", "d", "openai-responses-v1"),))
SUMMARY = ReasoningBlock(summary=("x", "y"), format="openai-responses-v1")

REPLAYS: dict[str, tuple[str, tuple[Block, ...], dict[str, Any], list[tuple[str, Any]]]] = {
    "none": ("none", (PLAIN, TextBlock("a")), {"content": "a"}, [("reasoning", "reasoning_content")]),
    "none, signed": ("none", (CLAUDES, CLAUDES, TextBlock("a")), {"content": "a"}, [("reasoning", CLAUDE)]),
    "none, two formats": (
        "none",
        (CLAUDES, SEALED, PLAIN),
        {"content": ""},
        [("reasoning", CLAUDE), ("reasoning", "openai-responses-v1"), ("reasoning", "reasoning_content")],
    ),
    "none, nothing": ("none", (TextBlock("a"),), {"content": "a"}, []),
    "reasoning_content": ("reasoning_content", (PLAIN, TextBlock("a")), {"content": "a", "reasoning_content": "x"}, []),
    "reasoning_content, several": (
        "reasoning_content",
        (PLAIN, TextBlock("a"), PLAIN),
        {"content": "a", "reasoning_content": "x\n\nx"},
        [],
    ),
    "reasoning_content, a summary": (
        "reasoning_content",
        (SUMMARY, TextBlock("a")),
        {"content": "a", "reasoning_content": "x\n\ny"},
        [],
    ),
    "reasoning_content, signed": (
        "reasoning_content",
        (CLAUDES, TextBlock("a")),
        {"content": "a", "reasoning_content": "x"},
        [("reasoning", CLAUDE)],
    ),
    "reasoning_content, sealed": (
        "reasoning_content",
        (SEALED, TextBlock("a")),
        {"content": "a"},
        [("reasoning", "openai-responses-v1")],
    ),
    "reasoning": ("reasoning", (PLAIN, TextBlock("a")), {"content": "a", "reasoning": "x"}, []),
    "details": (
        "reasoning_details",
        (CLAUDES, SEALED, SUMMARY, PLAIN, TextBlock("a")),
        {
            "content": "a",
            "reasoning_details": [
                {"type": "reasoning.text", "text": "x", "format": CLAUDE, "index": 0, "signature": "sig"},
                {"type": "reasoning.encrypted", "data": "d", "format": "openai-responses-v1", "index": 1},
                {"type": "reasoning.summary", "summary": "x", "format": "openai-responses-v1", "index": 2},
                {"type": "reasoning.summary", "summary": "y", "format": "openai-responses-v1", "index": 2},
                {"type": "reasoning.text", "text": "x", "format": "unknown", "index": 3},
            ],
        },
        [],
    ),
    "a content list": (
        "content_list",
        (PLAIN, TextBlock("a")),
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "x"}]}, {"type": "text", "text": "a"}]},
        [],
    ),
    "a content list, signed": (
        "content_list",
        (ReasoningBlock(text="x", format="content_list", opaque=(Opaque("signature", "s", "content_list"),)),),
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "x"}], "signature": "s"}]},
        [],
    ),
    "think tags": ("think_tags", (PLAIN, TextBlock("a")), {"content": "<think>x</think>a"}, []),
    "think tags before another part": (
        "think_tags",
        (PLAIN, TextBlock("a"), UnknownBlock("openai_chat", {"type": "refusal", "refusal": "no"})),
        {
            "content": [
                {"type": "text", "text": "<think>x</think>"},
                {"type": "text", "text": "a"},
                {"type": "refusal", "refusal": "no"},
            ]
        },
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("form", "blocks", "fields", "lost"), REPLAYS.values(), ids=REPLAYS.keys())
def test_earlier_reasoning(
    form: str, blocks: tuple[Block, ...], fields: dict[str, Any], lost: list[tuple[str, Any]]
) -> None:
    message, reported = message_sent(*blocks, replay=form)
    assert message == {"role": "assistant", **fields}
    assert reported == lost


def test_reasoning_that_is_lost_everywhere_is_reported_once() -> None:
    turns = [Message("assistant", (CLAUDES, TextBlock("a"))) for _ in range(5)]
    assert [lost.what for lost in sent(request_of(*turns))[1].degraded] == ["reasoning"]


# Turns of the assistant

CALL = ToolCallBlock(id="c", name="f", arguments="{}")
WIRE_CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TURNS: dict[str, tuple[tuple[Block, ...], dict[str, Any], list[tuple[str, Any]]]] = {
    "texts are one answer": ((TextBlock("a"), TextBlock("b")), {"content": "ab"}, []),
    "an empty answer": ((), {"content": ""}, []),
    "a call": ((TextBlock("a"), CALL), {"content": "a", "tool_calls": [WIRE_CALL]}, []),
    "a call without words": ((CALL,), {"content": None, "tool_calls": [WIRE_CALL]}, []),
    "a call without arguments": ((ToolCallBlock(id="c", name="f"),), {"content": None, "tool_calls": [WIRE_CALL]}, []),
    "a refusal": ((RefusalBlock("No"), RefusalBlock(".")), {"content": None, "refusal": "No."}, []),
    "a call's state": (
        (ToolCallBlock(id="c", name="f", arguments="{}", opaque=(GEMINI,)),),
        {"content": None, "tool_calls": [WIRE_CALL]},
        [("reasoning", "google-gemini-v1")],
    ),
    "a text's state": ((TextBlock("a", (GEMINI,)),), {"content": "a"}, [("reasoning", "google-gemini-v1")]),
    "a block of another dialect": (
        (TextBlock("a"), UnknownBlock("other", {"type": "map"})),
        {"content": "a"},
        [("content.map", "map")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("blocks", "fields", "lost"), TURNS.values(), ids=TURNS.keys())
def test_turns_of_the_assistant(blocks: tuple[Block, ...], fields: dict[str, Any], lost: list[tuple[str, Any]]) -> None:
    message, reported = message_sent(*blocks)
    assert message == {"role": "assistant", **fields}
    assert reported == lost


def test_gemini_gets_its_signatures_back() -> None:
    foreign = Opaque("id", "fc", "openai-responses-v1")
    call = ToolCallBlock(id="c", name="f", arguments="{}", opaque=(GEMINI, foreign))
    message, reported = message_sent(TextBlock("a", (GEMINI,)), call, thought_signatures=True)
    signature = {"extra_content": {"google": {"thought_signature": "sig"}}}
    assert message == {"role": "assistant", "content": "a", "tool_calls": [{**WIRE_CALL, **signature}], **signature}
    assert reported == [("reasoning", "openai-responses-v1")]


# Turns of the user

RESULT = ToolResultBlock(call_id="c", content=(TextBlock("1"),))
IMAGE = ImageBlock(url="u")
WIRE_IMAGE = {"type": "image_url", "image_url": {"url": "u"}}


def test_results_are_messages_of_their_own_and_go_first() -> None:
    request = request_of(
        Message("user", (TextBlock("and?"), RESULT, ToolResultBlock(call_id="d", content=(TextBlock("2"),))))
    )
    assert sent(request)[0]["messages"] == [
        {"role": "tool", "tool_call_id": "c", "content": "1"},
        {"role": "tool", "tool_call_id": "d", "content": "2"},
        {"role": "user", "content": "and?"},
    ]


def test_a_picture_in_a_result_follows_in_a_message_of_the_user() -> None:
    seen = ToolResultBlock(call_id="c", content=(TextBlock("see"), IMAGE))
    body, wire = sent(request_of(Message("user", (seen, RESULT, TextBlock("and?")))))
    assert body["messages"] == [
        {"role": "tool", "tool_call_id": "c", "content": "see"},
        {"role": "tool", "tool_call_id": "c", "content": "1"},
        {"role": "user", "content": [WIRE_IMAGE, {"type": "text", "text": "and?"}]},
    ]
    assert [lost.what for lost in wire.degraded] == ["tool_result.image"]


def test_a_failed_tool_is_told_in_its_text_only() -> None:
    body, wire = sent(
        request_of(Message("user", (ToolResultBlock(call_id="c", content=(TextBlock("no"),), is_error=True),)))
    )
    assert body["messages"] == [{"role": "tool", "tool_call_id": "c", "content": "no"}]
    assert [lost.what for lost in wire.degraded] == ["tool_result.is_error"]


def test_a_document_is_reported() -> None:
    message, reported = message_sent(
        TextBlock("a"), UnknownBlock("anthropic_messages", {"type": "document"}), role="user"
    )
    assert message == {"role": "user", "content": "a"}
    assert reported == [("content.document", "document")]


# Everything else


def test_tools_of_another_providers_own_are_reported() -> None:
    hosted = Tool(
        name="web_search", carried=Carried("anthropic_messages", {"type": "web_search_20250305"}), hosted=True
    )
    body, wire = sent(request_of(tools=(hosted,), tool_choice=ToolChoice(mode="auto")))
    assert "tools" not in body
    assert "tool_choice" not in body
    assert [(lost.what, lost.asked) for lost in wire.degraded] == [("tool web_search", "web_search")]


CHOICES = [
    (ToolChoice(mode="auto"), {"tool_choice": "auto"}),
    (ToolChoice(mode="none"), {"tool_choice": "none"}),
    (ToolChoice(mode="required", parallel=False), {"tool_choice": "required", "parallel_tool_calls": False}),
    (ToolChoice(mode="named", name="f"), {"tool_choice": {"type": "function", "function": {"name": "f"}}}),
    (ToolChoice(parallel=True), {"parallel_tool_calls": True}),
    (None, {}),
]


@pytest.mark.parametrize(("choice", "fields"), CHOICES)
def test_tool_choices(choice: ToolChoice | None, fields: dict[str, Any]) -> None:
    body, _ = sent(request_of(tools=(Tool(name="f"),), tool_choice=choice))
    assert {name: body[name] for name in ("tool_choice", "parallel_tool_calls") if name in body} == fields


def test_how_to_think_is_laid_into_the_body() -> None:
    request = asked(chat_template_kwargs={"enable_thinking": True, "documents": [1]}, user="u")
    body, wire = sent(controlled(request, chat_template_kwargs={"thinking": False}, reasoning_effort="low"))
    assert body["chat_template_kwargs"] == {"documents": [1], "thinking": False}
    assert (body["reasoning_effort"], body["user"], wire.degraded) == ("low", "u", ())


def test_without_control_nothing_is_said_of_thinking() -> None:
    body, _ = sent(asked(reasoning_effort="low", enable_thinking=True, reasoning={"summary": "auto"}))
    assert body == {"model": "m", "messages": []}


def test_words_that_go_with_another_field_are_reported() -> None:
    body, wire = sent(
        controlled(asked(reasoning={"effort": "low", "summary": "detailed"}), thinking={"type": "enabled"})
    )
    assert body["thinking"] == {"type": "enabled"}
    assert "reasoning" not in body
    assert [(lost.what, lost.asked) for lost in wire.degraded] == [("reasoning.summary", "detailed")]


def test_words_of_another_dialects_policy_are_reported() -> None:
    policy = ReasoningPolicy(mode="auto", carried=Carried("anthropic_messages", {"display": "omitted"}))
    _, wire = sent(request_of(reasoning=policy))
    assert [(lost.what, lost.asked) for lost in wire.degraded] == [("display", "omitted")]


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_the_limit_has_the_providers_name(field: Any) -> None:
    body, _ = sent(request_of(max_output_tokens=9), row_with(output_limit_field=field))
    assert body[field] == 9


def test_sampling_is_sent_as_it_is() -> None:
    sampling = Sampling(temperature=0.5, top_k=3, stop=("END",))
    body, _ = sent(request_of(sampling=sampling))
    assert {name: body[name] for name in ("temperature", "top_k", "stop")} == {
        "temperature": 0.5,
        "top_k": 3,
        "stop": ["END"],
    }
    assert "top_p" not in body


@pytest.mark.parametrize(("asks", "options"), [(True, {"include_usage": True}), (False, None)])
def test_usage_of_a_stream_is_asked_for_where_it_must_be(asks: bool, options: Any) -> None:
    body, _ = sent(request_of(stream=True), row_with(stream_usage=asks))
    assert body["stream"] is True
    assert body.get("stream_options") == options


OBJECT = {"type": "object"}
FORMATS: list[tuple[OutputFormat, dict[str, Any]]] = [
    (OutputFormat(mode="json_object"), {"type": "json_object"}),
    (
        OutputFormat(mode="json_schema", schema=OBJECT),
        {"type": "json_schema", "json_schema": {"name": "answer", "schema": OBJECT}},
    ),
    (
        OutputFormat(mode="json_schema", name="n", strict=False, description="d"),
        {"type": "json_schema", "json_schema": {"name": "n", "strict": False, "description": "d"}},
    ),
]


@pytest.mark.parametrize(("wanted", "expected"), FORMATS)
def test_formats(wanted: OutputFormat, expected: dict[str, Any]) -> None:
    assert sent(request_of(output_format=wanted))[0]["response_format"] == expected


def test_a_request_of_the_library_has_no_dialect() -> None:
    body, wire = sent(Request(model="m", messages=(), extra={"x": 1}))
    assert (body["x"], wire.degraded) == (1, ())

"""Requests to Anthropic: what is sent, and what is reported as not sent."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

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
from bardo.values.request import Control, Message, OutputFormat, ReasoningPolicy, Request, Sampling, Tool, ToolChoice
from dialects.anthropic_messages.replies import ARRIVAL, DIALECT, ROW

NAME = "anthropic_messages"
HI = (Message("user", (TextBlock("hi"),)),)
TOOL = Tool(name="f", schema={"type": "object", "properties": {"a": {"type": "integer"}}})
SIGNED = ReasoningBlock(
    text="t", format="anthropic-claude-v1", opaque=(Opaque("signature", "S", "anthropic-claude-v1"),)
)
FOREIGN = ReasoningBlock(
    text="t", format="openai-responses-v1", opaque=(Opaque("encrypted", "E", "openai-responses-v1"),)
)
CALL = ToolCallBlock(id="t", name="f", arguments='{"a":1}')
RESULT = ToolResultBlock(call_id="t", content=(TextBlock("42"),))


def encode(
    model: str = "claude-sonnet-5", messages: tuple[Message, ...] = HI, **fields: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the body, and what was lost: each thing's name and what was sent instead."""
    wire = DIALECT.encode_request(Request(model=model, messages=messages, **fields), ROW)
    assert wire.path == "messages"
    return json.loads(wire.body), {one.what: one.sent for one in wire.degraded}


def test_a_plain_request() -> None:
    body, lost = encode(messages=(Message("system", (TextBlock("Be brief."),)), *HI), stream=True)
    assert body == {
        "model": "claude-sonnet-5",
        "max_tokens": 8192,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
    }
    assert not lost


ROUND = {
    "model": "claude-sonnet-5",
    "max_tokens": 4000,
    "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "q"},
                {"type": "document", "source": {"type": "file", "file_id": "f"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "", "signature": "S"},
                {"type": "redacted_thinking", "data": "R"},
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 1}},
                {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
                {"type": "text", "text": "so", "citations": [{"n": 1}]},
                {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}, "caller": {"type": "direct"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t",
                    "content": "42",
                    "is_error": True,
                    "cache_control": {"type": "ephemeral"},
                },
                {"type": "image", "source": {"type": "url", "url": "https://x/y"}},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}},
            ],
        },
        {"role": "system", "content": [], "output_config": {"effort": "low"}},
        {"role": "user", "content": "go on"},
    ],
    "tools": [
        {
            "name": "f",
            "description": "d",
            "input_schema": {"type": "object"},
            "strict": True,
            "cache_control": {"type": "ephemeral"},
        },
        {"type": "web_search_20260209", "name": "web_search", "max_uses": 3},
    ],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "thinking": {"type": "adaptive", "display": "updates", "block_binding": {"prefix_mismatch_behavior": "drop_block"}},
    "output_config": {
        "effort": "high",
        "format": {"type": "json_schema", "schema": {"type": "object"}},
        "task_budget": {"total": 20000},
    },
    "stop_sequences": ["END"],
    "stream": True,
    "metadata": {"user_id": "u"},
    "service_tier": "auto",
    "context_management": {"edits": []},
}


def test_a_request_of_the_dialect_goes_on_as_it_came() -> None:
    request = DIALECT.decode_request(json.dumps(ROUND).encode(), ARRIVAL)
    control = Control(fields={"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}})
    wire = DIALECT.encode_request(msgspec.structs.replace(request, control=control), ROW)
    assert json.loads(wire.body) == ROUND
    assert wire.degraded == ()


BINDING = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
ADAPTIVE = {"type": "adaptive", "display": "summarized"}
ENABLED = {"type": "enabled", "budget_tokens": 2000}
OFF = {"type": "disabled"}


@pytest.mark.parametrize(
    ("told", "control", "sent", "lost"),
    [
        ({"type": "adaptive", "display": "updates"}, ADAPTIVE, {"type": "adaptive", "display": "updates"}, set()),
        ({**ENABLED, "display": "summarized"}, ENABLED, {**ENABLED, "display": "summarized"}, set()),
        ({**ENABLED, **BINDING}, {"type": "adaptive"}, {"type": "adaptive", **BINDING}, set()),
        ({**ENABLED, "display": "omitted", **BINDING}, OFF, {**OFF, **BINDING}, set()),
        ({**OFF, **BINDING}, None, None, {"thinking.block_binding"}),
    ],
    ids=["updates", "the default said aloud", "another mode", "off has no display", "nothing is said"],
)
def test_the_callers_own_words_stand_beside_the_control(
    told: dict[str, Any], control: dict[str, Any] | None, sent: dict[str, Any] | None, lost: set[str]
) -> None:
    body = {"model": "m", "max_tokens": 4000, "messages": [{"role": "user", "content": "hi"}], "thinking": told}
    request = DIALECT.decode_request(json.dumps(body).encode(), ARRIVAL)
    fields = {"thinking": control} if control else {}
    wire = DIALECT.encode_request(msgspec.structs.replace(request, control=Control(fields=fields)), ROW)
    assert json.loads(wire.body).get("thinking") == sent
    assert {one.what for one in wire.degraded} == lost


def test_only_the_control_speaks_of_thinking() -> None:
    policy = ReasoningPolicy(mode="effort", effort="high")
    fields = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}
    shape = OutputFormat(mode="json_schema", schema={"type": "object"})
    body, lost = encode(reasoning=policy, control=Control(fields=fields), output_format=shape)
    assert body["thinking"] == {"type": "adaptive"}
    assert body["output_config"] == {
        "effort": "low",
        "format": {"type": "json_schema", "schema": {"type": "object"}},
    }
    assert not lost
    silent, _ = encode(reasoning=policy)
    assert not silent.keys() & {"thinking", "output_config"}


def test_turns_alternate_and_results_come_first() -> None:
    messages = (
        Message("user", (TextBlock("a"),)),
        Message("user", (TextBlock("b"),)),
        Message("assistant", (TextBlock("c"),)),
        Message("assistant", (CALL,)),
        Message("user", (TextBlock("and"),)),
        Message("user", (RESULT,)),
    )
    body, lost = encode(messages=messages, tools=(TOOL,))
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]
    assert [block["type"] for block in body["messages"][1]["content"]] == ["text", "tool_use"]
    assert body["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "t", "content": "42"},
        {"type": "text", "text": "and"},
    ]
    assert lost == {"history.turns_of_one_role": "joined"}


def test_a_system_message_amid_the_conversation_becomes_the_users() -> None:
    messages = (*HI, Message("assistant", (TextBlock("yes"),)), Message("system", (TextBlock("Be brief."),)))
    body, lost = encode(messages=messages, dialect="openai_chat")
    assert "system" not in body
    assert body["messages"][-1] == {"role": "user", "content": "Be brief."}
    assert lost == {"system": "user"}


def test_foreign_reasoning_is_dropped_once_and_told() -> None:
    gemini = Opaque("signature", "G", "google-gemini-v1")
    unsigned = ReasoningBlock(text="u", format="reasoning_content")
    messages = (
        *HI,
        Message("assistant", (FOREIGN, unsigned, TextBlock("x", opaque=(gemini,)))),
        Message("user", (TextBlock("more"),)),
        Message("assistant", (FOREIGN,)),
        Message("user", (TextBlock("and more"),)),
    )
    wire = DIALECT.encode_request(Request(model="claude-sonnet-5", messages=messages), ROW)
    assert [one.asked for one in wire.degraded] == ["openai-responses-v1", "unsigned", "google-gemini-v1"]
    assert {one.what for one in wire.degraded} == {"reasoning"}
    assert json.loads(wire.body)["messages"] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "x"},
        {"role": "user", "content": [{"type": "text", "text": "more"}, {"type": "text", "text": "and more"}]},
    ]


def test_own_reasoning_goes_back_as_it_was() -> None:
    redacted = ReasoningBlock(format="anthropic-claude-v1", opaque=(Opaque("redacted", "R", "anthropic-claude-v1"),))
    empty = ReasoningBlock(format="anthropic-claude-v1", opaque=(Opaque("signature", "S2", "anthropic-claude-v1"),))
    body, lost = encode(messages=(*HI, Message("assistant", (SIGNED, redacted, empty))))
    assert body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "t", "signature": "S"},
        {"type": "redacted_thinking", "data": "R"},
        {"type": "thinking", "thinking": "", "signature": "S2"},
    ]
    assert not lost


def test_blocks_of_other_dialects() -> None:
    blocks = (
        UnknownBlock("openai_chat", {"type": "input_audio"}),
        TextBlock("x", carried=Carried("openai_chat", {"prediction": 1})),
        RefusalBlock("no"),
        TextBlock(""),
        TextBlock(" \n"),
        ImageBlock(url="data:image/gif;base64,QQ==", detail="high"),
    )
    body, lost = encode(messages=(Message("user", blocks),))
    assert body["messages"][0]["content"] == [
        {"type": "text", "text": "x"},
        {"type": "text", "text": "no"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "QQ=="}},
    ]
    assert set(lost) == {"content.input_audio", "prediction", "history.empty_text", "image.detail"}


def test_arguments_that_are_no_json_stand_in_an_object() -> None:
    call = ToolCallBlock(id="toolu_1", name="look", arguments="not json")
    result = ToolResultBlock(call_id="toolu_1", name="look")
    body, lost = encode(messages=(*HI, Message("assistant", (call,)), Message("user", (result,))), tools=(TOOL,))
    (used,) = body["messages"][1]["content"]
    assert used["input"] == {"INVALID_JSON": "not json"}
    assert set(lost) == {"tool arguments"}


def test_what_the_dialect_cannot_say() -> None:
    body, lost = encode(
        sampling=Sampling(min_p=0.1, frequency_penalty=1.0, presence_penalty=1.0, seed=7, stop=("END", "\n")),
        choices=2,
        dialect="openai_chat",
        extra={"logit_bias": {"1": 2}},
        output_format=OutputFormat(mode="json_object"),
        tools=(
            Tool(
                name="code_interpreter", hosted=True, carried=Carried("openai_responses", {"type": "code_interpreter"})
            ),
        ),
        tool_choice=ToolChoice(mode="required"),
    )
    assert body == {
        "model": "claude-sonnet-5",
        "max_tokens": 8192,
        "messages": [{"role": "user", "content": "hi"}],
        "stop_sequences": ["END"],
    }
    assert set(lost) == {
        *("min_p", "frequency_penalty", "presence_penalty", "seed", "stop", "n", "logit_bias", "response_format"),
        *("tool code_interpreter", "tool_choice"),
    }


def test_tools_and_their_choice() -> None:
    body, lost = encode(tools=(TOOL, Tool(name="g")), tool_choice=ToolChoice(mode="named", name="f", parallel=True))
    assert body["tools"] == [
        {"name": "f", "input_schema": TOOL.schema},
        {"name": "g", "input_schema": {"type": "object", "properties": {}}},
    ]
    assert body["tool_choice"] == {"type": "tool", "name": "f", "disable_parallel_tool_use": False}
    assert not lost


def test_a_schema_for_the_answer() -> None:
    shape = OutputFormat(mode="json_schema", name="answer", schema={"type": "object"})
    body, lost = encode(output_format=shape)
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": {"type": "object"}}}
    assert not lost
    body, lost = encode("claude-3-5-haiku-latest", output_format=shape)
    assert "output_config" not in body
    assert set(lost) == {"response_format"}


def test_a_budget_gives_way_to_a_turn_whose_thinking_is_lost() -> None:
    control = Control(fields={"thinking": ENABLED}, thinks=True)
    loop = (*HI, Message("assistant", (FOREIGN, CALL)), Message("user", (RESULT,)))
    wire = DIALECT.encode_request(Request(model="m", messages=loop, tools=(TOOL,), control=control), ROW)
    assert json.loads(wire.body)["thinking"] == OFF
    assert [one.sent for one in wire.degraded if one.what == "reasoning"] == [None, "off"]
    adaptive, _ = encode(messages=loop, tools=(TOOL,), control=Control(fields={"thinking": ADAPTIVE}))
    assert adaptive["thinking"] == ADAPTIVE
    loop = (*HI, Message("assistant", (SIGNED, CALL)), Message("user", (RESULT,)))
    kept, lost = encode(messages=loop, tools=(TOOL,), control=control)
    assert (kept["thinking"], lost) == (ENABLED, {})


@pytest.mark.parametrize(
    ("firsts", "thinks"),
    [
        ([SIGNED, None], True),
        ([None, SIGNED], True),
        ([SIGNED, None, None], True),
        ([None, None], False),
        ([SIGNED, "asked", None], False),
    ],
    ids=["thinks first", "thinks last", "thinks at the beginning alone", "never thinks", "thinks in an earlier loop"],
)
def test_a_budget_stays_where_a_loop_of_tools_has_thinking(firsts: list[Any], thinks: bool) -> None:
    control = Control(fields={"thinking": ENABLED}, thinks=True)
    loop: list[Message] = [*HI]
    for place, first in enumerate(firsts):
        if first == "asked":
            loop += [Message("assistant", (TextBlock("Done."),)), *HI]
            continue
        call = msgspec.structs.replace(CALL, id=f"t{place}")
        thought = () if first is None else (first,)
        result = msgspec.structs.replace(RESULT, call_id=call.id)
        loop += [Message("assistant", (*thought, call)), Message("user", (result,))]
    body, lost = encode(messages=tuple(loop), tools=(TOOL,), control=control)
    assert body["thinking"] == (ENABLED if thinks else OFF)
    assert set(lost) == (set() if thinks else {"reasoning"})


def test_an_id_that_a_host_gave_to_thinking_is_not_sent_in_a_signature() -> None:
    style = "anthropic-claude-v1"
    signature, name = Opaque("signature", "EqMs", style), Opaque("id", "rs_1", style)
    for states in ((signature, name), (name, signature)):
        turn = Message("assistant", (ReasoningBlock(text="hm", format=style, opaque=states), TextBlock("yes")))
        body, lost = encode(messages=(*HI, turn, *HI))
        assert body["messages"][1]["content"] == [
            {"type": "thinking", "thinking": "hm", "signature": "EqMs"},
            {"type": "text", "text": "yes"},
        ]
        assert not lost
    only = Message("assistant", (ReasoningBlock(text="hm", format=style, opaque=(name,)), TextBlock("yes")))
    body, lost = encode(messages=(*HI, only, *HI))
    assert body["messages"][1]["content"] == "yes"
    assert set(lost) == {"reasoning"}


@pytest.mark.parametrize("dialect", [NAME, "openai_chat"])
@pytest.mark.parametrize("text", [" ", "\n\t", "", "42"])
def test_a_result_of_nothing_but_space_is_its_clients_own(dialect: str, text: str) -> None:
    result = msgspec.structs.replace(RESULT, content=(TextBlock(text),))
    loop = (*HI, Message("assistant", (CALL,)), Message("user", (result,)))
    body, lost = encode(messages=loop, tools=(TOOL,), dialect=dialect)
    kept = bool(text) and (dialect == NAME or not text.isspace())
    assert body["messages"][2]["content"][0].get("content") == (text if kept else None)
    assert set(lost) == ({"history.empty_text"} if text and not kept else set())

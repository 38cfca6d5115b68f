"""Requests for providers of the Responses dialect."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given

from bardo.catalog.rows import ProviderRow
from bardo.dialects.openai_responses import DIALECT
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
from bardo.values.errors import CallerError
from bardo.values.request import Control, Message, OutputFormat, ReasoningPolicy, Request, Sampling, Tool, ToolChoice
from bardo.values.wire import Arrival
from dialects.openai_responses.replies import ROW, TEXT_REPLAYING
from dialects.openai_responses.test_decode_request import BODY, ITEMS


def told(reasoning: dict[str, Any]) -> ReasoningPolicy | None:
    """Return the policy of a client that said so."""
    body = msgspec.json.encode({"model": "m", "input": "hi", "reasoning": reasoning})
    return DIALECT.decode_request(body, Arrival()).reasoning


HELLO = (Message("user", (TextBlock("hi"),)),)
FORMAT = "openai-responses-v1"
ID = Opaque("id", "rs_1", FORMAT)
CIPHER = Opaque("encrypted", "x", FORMAT)


def encode(row: ProviderRow = ROW, **fields: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the body, and what was degraded as (asked, sent) by name."""
    request = Request(**{"model": "gpt-6", "messages": HELLO, "dialect": "anthropic_messages", **fields})
    wire = DIALECT.encode_request(request, row)
    assert wire.path == "responses"
    return msgspec.json.decode(wire.body), {one.what: (one.asked, one.sent) for one in wire.degraded}


def items(*blocks: Block, role: str = "assistant", row: ProviderRow = ROW, **fields: Any) -> list[dict[str, Any]]:
    # The turns before are kept elsewhere: results are of their calls.
    asked = {"extra": {"previous_response_id": "resp_0"}, **fields}
    body, _ = encode(row, messages=(Message(role, blocks), *HELLO), **asked)  # type: ignore[arg-type]
    written: list[dict[str, Any]] = body["input"][:-1]
    return written


def test_the_shortest_request_stores_nothing() -> None:
    body, degraded = encode()
    assert body == {
        "model": "gpt-6",
        "input": [{"type": "message", "role": "user", "content": "hi"}],
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    assert not degraded


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({"store": True}, {"store": True}),
        ({"store": False, "include": []}, {"store": False, "include": []}),
        ({"include": ["x"]}, {"store": False, "include": ["x"]}),
        ({"previous_response_id": "resp_1"}, {}),
    ],
    ids=["stored", "nothing included", "something included", "continued"],
)
def test_what_the_caller_says_of_storage_stands(extra: dict[str, Any], expected: dict[str, Any]) -> None:
    body, _ = encode(dialect="openai_responses", extra=extra)
    assert {name: body[name] for name in ("store", "include") if name in body} == expected


@pytest.mark.parametrize("name", [name for name in ITEMS if name != "sealed state"])
def test_items_come_out_as_they_came_in(name: str) -> None:
    given_items, _ = ITEMS[name]
    called = {item["call_id"] for item in given_items if item.get("type") == "function_call"}
    answered = [item["call_id"] for item in given_items if str(item.get("type")).endswith("function_call_output")]
    calls = [
        {"type": "function_call", "call_id": one, "name": "f", "arguments": "{}"}
        for one in answered
        if one not in called
    ]
    body = msgspec.json.encode({"model": "m", "input": [*calls, *given_items, {"role": "user", "content": "end"}]})
    wire = DIALECT.encode_request(DIALECT.decode_request(body, Arrival()), ROW)
    written = msgspec.json.decode(wire.body)
    assert not wire.degraded
    again = DIALECT.decode_request(msgspec.json.encode({"model": "m", "input": written["input"]}), Arrival())
    assert again.messages == DIALECT.decode_request(body, Arrival()).messages


def test_leading_system_messages_are_instructions() -> None:
    system = [Message("system", (TextBlock(text),)) for text in ("one", "two", "three")]
    body, _ = encode(messages=(system[0], system[1], *HELLO, system[2]))
    assert body["instructions"] == "one\n\ntwo"
    assert [item["role"] for item in body["input"]] == ["user", "system"]


def test_a_developers_message_stays_one() -> None:
    message = Message("system", (TextBlock("Be brief"),), Carried("openai_responses", {"role": "developer"}))
    body, _ = encode(messages=(message, *HELLO), dialect="openai_responses")
    assert body["input"][0] == {"type": "message", "role": "developer", "content": "Be brief"}
    assert "instructions" not in body


def test_a_foreign_turn_is_written() -> None:
    assert items(
        TextBlock("I look", carried=Carried("anthropic_messages", {"cache_control": {}})),
        ToolCallBlock(id="toolu_1", name="f"),
        RefusalBlock("no"),
    ) == [
        {"type": "message", "role": "assistant", "content": "I look"},
        {"type": "function_call", "call_id": "toolu_1", "name": "f", "arguments": "{}"},
        {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
    ]


def test_results_come_before_what_the_user_says_after_them() -> None:
    image = ImageBlock(media_type="image/png", data="QUJD")
    assert items(
        ToolResultBlock(call_id="c1", content=(TextBlock("found"),)),
        ToolResultBlock(call_id="c2", content=(TextBlock("a"), image)),
        ToolResultBlock(call_id="c3"),
        TextBlock("go on"),
        image,
        role="user",
    ) == [
        {"type": "function_call_output", "call_id": "c1", "output": "found"},
        {
            "type": "function_call_output",
            "call_id": "c2",
            "output": [
                {"type": "input_text", "text": "a"},
                {"type": "input_image", "image_url": "data:image/png;base64,QUJD"},
            ],
        },
        {"type": "function_call_output", "call_id": "c3", "output": ""},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "go on"},
                {"type": "input_image", "image_url": "data:image/png;base64,QUJD"},
            ],
        },
    ]


def test_reasoning_goes_back_by_its_ciphertext_alone() -> None:
    fields = Carried("openai_responses", {"status": "completed"})
    block = ReasoningBlock(text="plain", summary=("s",), format=FORMAT, opaque=(ID, CIPHER), carried=fields)
    summary = [{"type": "summary_text", "text": "s"}]
    written = items(block, TextBlock("Hi"))
    assert written[0] == {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "x"}
    assert items(ReasoningBlock(opaque=(CIPHER,)), TextBlock("Hi"))[0]["summary"] == []


REFUSED: dict[str, tuple[ReasoningBlock, str]] = {
    "signed elsewhere": (
        ReasoningBlock(text="hm", format="a", opaque=(Opaque("signature", "S", "anthropic-claude-v1"),)),
        "anthropic-claude-v1",
    ),
    "another's ciphertext": (
        ReasoningBlock(opaque=(Opaque("encrypted", "S", "google-gemini-v1"),)),
        "google-gemini-v1",
    ),
    "plain text": (ReasoningBlock(text="hm", format="reasoning_content"), "reasoning_content"),
    "an id that was not stored": (ReasoningBlock(summary=("s",), format=FORMAT, opaque=(ID,)), FORMAT),
}


@pytest.mark.parametrize("name", REFUSED)
def test_reasoning_that_cannot_be_read_there_is_reported_once(name: str) -> None:
    block, form = REFUSED[name]
    body, degraded = encode(messages=(Message("assistant", (block, block, TextBlock("Hi"))), *HELLO))
    assert [item.get("type") for item in body["input"]] == ["message", "message"]
    assert degraded == {"reasoning": (form, None)}


def test_servers_without_ciphertext_get_the_text_back() -> None:
    block = ReasoningBlock(text="hm", format=FORMAT, opaque=(ID,))
    content = [{"type": "reasoning_text", "text": "hm"}]
    expected = {"type": "reasoning", "id": "rs_1", "summary": [], "content": content}
    assert items(block, TextBlock("Hi"), row=TEXT_REPLAYING)[0] == expected
    assert items(block, TextBlock("Hi"), dialect="openai_responses")[0] == expected


def test_reasoning_that_led_to_nothing_is_left_out() -> None:
    blocks = (TextBlock("Hi"), ReasoningBlock(format=FORMAT, opaque=(CIPHER,)))
    body, degraded = encode(messages=(Message("assistant", blocks), *HELLO))
    assert [item["type"] for item in body["input"]] == ["message", "message"]
    assert degraded == {"reasoning": (FORMAT, None)}


def test_foreign_state_on_other_blocks_is_reported() -> None:
    state = (Opaque("signature", "G", "google-gemini-v1"),)
    blocks = (TextBlock("Hi", opaque=state), ToolCallBlock(id="c", name="f", opaque=state))
    _, degraded = encode(messages=(*HELLO, Message("assistant", blocks)))
    assert degraded == {"reasoning": ("google-gemini-v1", None)}


LOST: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "sampling": (
        {"sampling": Sampling(top_k=3, min_p=0.1, seed=7, stop=("x",), frequency_penalty=0.5, presence_penalty=0.5)},
        {
            "top_k": (3, None),
            "min_p": (0.1, None),
            "seed": (7, None),
            "stop": (["x"], None),
            "frequency_penalty": (0.5, None),
            "presence_penalty": (0.5, None),
        },
    ),
    "choices": ({"choices": 3}, {"n": (3, 1)}),
    "extra": ({"extra": {"thinking_mode": 1}}, {"thinking_mode": (1, None)}),
    "carried": (
        {"messages": (Message("user", (TextBlock("hi", carried=Carried("anthropic_messages", {"citations": 1})),)),)},
        {"citations": (1, None)},
    ),
    "unknown": (
        {"messages": (Message("user", (UnknownBlock("gemini", {"type": "video"}), TextBlock("hi"))),)},
        {"content.video": ("video", None)},
    ),
    "a tool of another": ({"tools": (Tool(name="bash", hosted=True),)}, {"tool bash": ("bash", None)}),
    "a failed tool": (
        {"messages": (Message("user", (ToolResultBlock(call_id="c", is_error=True),)),)},
        {"tool_result.is_error": (True, None)},
    ),
    "a picture of the model's": (
        {"messages": (Message("assistant", (ImageBlock(url="u"),)), *HELLO)},
        {"image": ("assistant", "user")},
    ),
}


@pytest.mark.parametrize("name", LOST)
def test_what_cannot_be_said_is_reported(name: str) -> None:
    fields, expected = LOST[name]
    assert encode(**fields)[1] == expected


def test_fields_of_the_same_dialect_go_on() -> None:
    extra = {"metadata": {"a": "b"}, "text": {"verbosity": "low"}, "tool_choice": {"type": "web_search"}}
    body, degraded = encode(
        dialect="openai_responses",
        extra=extra,
        sampling=Sampling(temperature=0.5, top_k=3),
        output_format=OutputFormat(mode="json_schema", schema={"type": "object"}, strict=True),
        stream=True,
        max_output_tokens=50,
    )
    form = {"type": "json_schema", "name": "answer", "schema": {"type": "object"}, "strict": True}
    assert body["text"] == {"verbosity": "low", "format": form}
    assert (body["metadata"], body["tool_choice"]) == (extra["metadata"], extra["tool_choice"])
    assert (body["temperature"], body["top_k"], body["stream"], body["max_output_tokens"]) == (0.5, 3, True, 50)
    assert not degraded


def test_tools_and_choices_are_written() -> None:
    hosted = Tool(name="web_search", hosted=True, carried=Carried("openai_responses", {"type": "web_search"}))
    tool = Tool(name="f", description="d", schema={"type": "object"})
    body, _ = encode(tools=(tool, hosted), tool_choice=ToolChoice(mode="named", name="f", parallel=False))
    function = {"type": "function", "name": "f", "parameters": {"type": "object"}, "description": "d", "strict": False}
    assert body["tools"] == [function, {"type": "web_search"}]
    assert (body["tool_choice"], body["parallel_tool_calls"]) == ({"type": "function", "name": "f"}, False)
    own, _ = encode(tools=(tool,), dialect="openai_responses")
    assert "strict" not in own["tools"][0]


CONTROLS: dict[str, tuple[ReasoningPolicy | None, dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "nothing": (None, {}, {}, {}),
    "what is given": (None, {"reasoning": {"effort": "low"}}, {"reasoning": {"effort": "low"}}, {}),
    "its own words beside": (
        told({"effort": "low", "mode": "pro"}),
        {"reasoning": {"effort": "low"}},
        {"reasoning": {"effort": "low", "mode": "pro"}},
        {},
    ),
    "its own summary": (
        told({"effort": "low", "summary": "detailed"}),
        {"reasoning": {"effort": "low", "summary": "auto"}},
        {"reasoning": {"effort": "low", "summary": "detailed"}},
        {},
    ),
    "a summary alone": (told({"summary": "detailed"}), {}, {"reasoning": {"summary": "detailed"}}, {}),
    "words of an object that is not sent": (
        told({"effort": "low", "summary": "detailed"}),
        {"thinking": {"type": "enabled"}},
        {"thinking": {"type": "enabled"}},
        {"reasoning.summary": ("detailed", None)},
    ),
    "words of another dialect": (
        ReasoningPolicy(mode="auto", carried=Carried("anthropic_messages", {"display": "omitted"})),
        {"reasoning": {"effort": "low"}},
        {"reasoning": {"effort": "low"}},
        {"display": ("omitted", None)},
    ),
}


@pytest.mark.parametrize("name", CONTROLS)
def test_how_to_think_is_laid_into_the_body(name: str) -> None:
    policy, fields, expected, lost = CONTROLS[name]
    body, degraded = encode(reasoning=policy, control=Control(fields=fields), dialect="openai_responses")
    assert {name: body[name] for name in ("reasoning", "thinking") if name in body} == expected
    assert degraded == lost


def test_without_control_nothing_is_said_of_thinking() -> None:
    body, degraded = encode(reasoning=ReasoningPolicy(mode="effort", effort="low"))
    assert "reasoning" not in body
    assert not degraded


@given(BODY)
def test_whatever_was_understood_can_be_sent_on(body: dict[str, Any]) -> None:
    try:
        request = DIALECT.decode_request(msgspec.json.encode(body), Arrival())
    except CallerError:
        return
    assert msgspec.json.decode(DIALECT.encode_request(request, ROW).body)["model"] == "m"

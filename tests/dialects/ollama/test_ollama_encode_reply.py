"""Events of other dialects as Ollama's replies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.values.blocks import Opaque, ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.errors import BrokenStream, InvalidRequest
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    Extension,
    Failed,
    Finish,
    OpaqueState,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
    UsageUpdate,
)
from bardo.values.fold import fold
from bardo.values.usage import Usage
from dialects.ollama.replies import ARRIVAL, DIALECT, REQUEST, lines_of, read, write_stream

GPT = Opaque("encrypted", "CIPHER", "openai-responses-v1")
CLAUDE = Opaque("signature", "SIG", "anthropic-claude-v1")
GEMINI = Opaque("signature", "G", "google-gemini-v1")
FOREIGN: list[Event] = [
    ReplyStart(id="resp_1", model="gpt-6", created=1786082903),
    ThinkStart(0, "openai-responses-v1"),
    ThinkChunk(0, "first", part=0),
    ThinkChunk(0, "then", part=1),
    OpaqueState(0, GPT),
    ThinkEnd(0),
    ContentChunk(1, "Let me "),
    ContentChunk(1, "look."),
    OpaqueState(1, GEMINI),
    ToolCallStart(2, "call_1", "look"),
    ToolCallChunk(2, '{"where":\n'),
    ToolCallChunk(2, '"there"}'),
    OpaqueState(2, GEMINI),
    ToolCallEnd(2),
    Finish("tool_calls", "completed"),
    UsageUpdate(Usage(input_tokens=12, output_tokens=9, reasoning_tokens=4, cached_input_tokens=2)),
]


def test_a_stream_is_lines_and_the_last_is_done() -> None:
    lines = lines_of(write_stream(FOREIGN))
    assert {(line["model"], line["created_at"]) for line in lines} == {("gpt-6", "2026-08-07T06:08:23Z")}
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    said = [{name: value for name, value in line["message"].items() if name != "role"} for line in lines[:-1]]
    assert said == [
        {"content": "", "thinking": "first"},
        {"content": "", "thinking": "\n\nthen"},
        {"content": "Let me "},
        {"content": "look."},
        {
            "content": "",
            "tool_calls": [{"id": "call_1", "function": {"index": 0, "name": "look", "arguments": {"where": "there"}}}],
        },
    ]
    assert (lines[-1]["done_reason"], lines[-1]["prompt_eval_count"], lines[-1]["eval_count"]) == ("stop", 12, 9)


def test_a_whole_reply_says_the_same() -> None:
    whole = json.loads(DIALECT.encode_response(fold(FOREIGN), REQUEST))
    lines = lines_of(write_stream(FOREIGN))
    for name in ("thinking", "content"):
        assert whole["message"][name] == "".join(line["message"].get(name, "") for line in lines)
    assert whole["message"]["tool_calls"] == lines[4]["message"]["tool_calls"]
    assert whole["message"]["signature"] == lines[-1]["message"]["signature"]
    assert {**whole, "message": None} == {**lines[-1], "message": None}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_opaque_state_comes_back_with_the_message(streamed: bool) -> None:
    request = DIALECT.decode_request(json.dumps(sent_back(FOREIGN, streamed=streamed)).encode(), ARRIVAL)
    assert request.messages[0].blocks == (
        ReasoningBlock(text="first\n\nthen", format="openai-responses-v1", opaque=(GPT,)),
        TextBlock("Let me look.", (GEMINI,)),
        ToolCallBlock(
            id="call_1",
            name="look",
            arguments='{"where":"there"}',
            opaque=(GEMINI,),
            carried=request.messages[0].blocks[2].carried,  # type: ignore[union-attr]
        ),
    )


SEVERAL: list[Event] = [
    ThinkStart(0, "anthropic-claude-v1"),
    ThinkChunk(0, "one"),
    OpaqueState(0, CLAUDE),
    ThinkStart(1, "anthropic-claude-v1"),
    OpaqueState(1, Opaque("redacted", "R", "anthropic-claude-v1")),
    ThinkStart(2, "anthropic-claude-v1"),
    ThinkChunk(2, "two "),
    ThinkChunk(2, "three"),
    OpaqueState(2, CLAUDE),
    ContentChunk(3, "x"),
    ThinkStart(4, "anthropic-claude-v1"),
    ThinkChunk(4, "four"),
    OpaqueState(4, CLAUDE),
    Finish("stop", "end_turn"),
]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_each_stretch_of_thinking_gets_back_its_own_state(streamed: bool) -> None:
    message = sent_back(SEVERAL, streamed=streamed)
    request = DIALECT.decode_request(json.dumps(message).encode(), ARRIVAL)
    thoughts = [block for block in request.messages[0].blocks if isinstance(block, ReasoningBlock)]
    assert thoughts == [block for block in fold(SEVERAL).blocks if isinstance(block, ReasoningBlock)]


def test_thinking_that_a_client_changed_loses_its_state() -> None:
    body = sent_back(SEVERAL, streamed=False)
    body["messages"][0]["thinking"] += "!"
    thoughts = DIALECT.decode_request(json.dumps(body).encode(), ARRIVAL).messages[0].blocks
    assert thoughts[0] == ReasoningBlock(text=body["messages"][0]["thinking"], format="thinking")


def sent_back(events: list[Event], *, streamed: bool) -> dict[str, Any]:
    """Return the request of a client that sends the message back as it came, put together where it was streamed."""
    if not streamed:
        message = json.loads(DIALECT.encode_response(fold(events), REQUEST))["message"]
        return {"model": "m", "messages": [message]}
    message = {"role": "assistant", "content": "", "thinking": "", "tool_calls": []}
    for line in lines_of(write_stream(events)):
        for name, value in line["message"].items():
            message[name] = message.get(name, type(value)()) + value if name != "role" else value
    return {"model": "m", "messages": [message]}


def test_pieces_of_two_calls_may_alternate() -> None:
    events: list[Event] = [
        ToolCallStart(0, "a", "f"),
        ToolCallStart(1, "b", "g"),
        ToolCallChunk(0, '{"x":'),
        ToolCallChunk(1, "{}"),
        ToolCallChunk(0, "1}"),
        ToolCallEnd(1),
        ToolCallEnd(0),
        Finish("tool_calls"),
    ]
    calls = [call for line in lines_of(write_stream(events)) for call in line["message"].get("tool_calls", ())]
    assert [(call["id"], call["function"]["index"], call["function"]["arguments"]) for call in calls] == [
        ("a", 0, {"x": 1}),
        ("b", 1, {}),
    ]


def test_a_call_that_did_not_end_is_not_written() -> None:
    lines = lines_of(write_stream([ToolCallStart(0, "a", "f"), Finish("length")]))
    assert [line["message"] for line in lines] == [{"role": "assistant", "content": ""}]
    assert lines[-1]["done_reason"] == "length"


def test_arguments_that_are_no_object_are_wrapped() -> None:
    events: list[Event] = [ToolCallStart(0, "a", "f"), ToolCallChunk(0, "{brok\n"), ToolCallEnd(0)]
    stream = write_stream(events)
    assert lines_of(stream)[0]["message"]["tool_calls"][0]["function"]["arguments"] == {"INVALID_JSON": "{brok\n"}
    call = read(stream, stream=True).blocks[0]
    assert isinstance(call, ToolCallBlock)
    assert call.arguments == "{brok\n"


def test_a_refusal_is_text() -> None:
    events: list[Event] = [RefusalChunk(0, "I "), RefusalChunk(0, "won't."), Finish("refusal", "content_filter")]
    assert "".join(line["message"]["content"] for line in lines_of(write_stream(events))) == "I won't."
    assert json.loads(DIALECT.encode_response(fold(events), REQUEST))["message"]["content"] == "I won't."
    assert lines_of(write_stream(events))[-1]["done_reason"] == "stop"


def test_what_belongs_to_others_is_left_out() -> None:
    events: list[Event] = [
        UnknownContent(0, "anthropic_messages", {"type": "x"}),
        BlockFields(1, "anthropic_messages", {"citations": [1]}),
        ReplyFields("openai_chat", {"system_fingerprint": "f"}),
        ContentChunk(1, "a"),
        ContentChunk(0, "other", choice=1),
        Finish("length", "max_tokens"),
        Finish("stop", "stop", choice=1),
    ]
    lines = lines_of(write_stream(events))
    assert [line["message"]["content"] for line in lines] == ["a", ""]
    assert lines[-1]["done_reason"] == "length"
    assert "system_fingerprint" not in lines[-1]


def test_what_bardo_has_to_say_stands_in_the_last_line() -> None:
    lines = lines_of(write_stream([ContentChunk(0, "a"), Finish("stop"), Extension({"request_id": "r"})]))
    assert lines[-1]["bardo"] == {"request_id": "r"}
    assert all("bardo" not in line for line in lines[:-1])


def test_a_failure_is_a_line_and_the_end() -> None:
    encoder = DIALECT.open_encoder(REQUEST, ARRIVAL)
    encoder.feed(ContentChunk(0, "a"))
    (line,) = encoder.feed(Failed(BrokenStream("it stopped")))
    assert json.loads(line) == {"error": "it stopped", "code": "broken_stream"}
    assert [*encoder.feed(ContentChunk(0, "b")), *encoder.finish()] == []


def test_an_empty_reply_is_well_formed() -> None:
    (line,) = lines_of(write_stream([]))
    assert (line["done"], line["message"]) == (True, {"role": "assistant", "content": ""})


def test_nothing_is_one_line_but_ends_of_lines() -> None:
    text = "a\nb\u2028c\r\u0085"
    assert write_stream([ContentChunk(0, text), Finish("stop")]).count(b"\n") == 2


def test_an_error_body_has_the_message_and_the_code() -> None:
    body = DIALECT.encode_error(InvalidRequest("model is required", hint="name one", param="model"))
    assert json.loads(body) == {"error": "model is required (name one)", "code": "invalid_request"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": "model \\"x\\" not found"}', 'model "x" not found'),
        (b'{"StatusCode": 400, "error": "no"}', "no"),
        (b'{"error": {"message": "inner"}}', "inner"),
        (b"404 page not found", "404 page not found"),
        (b"", "the provider answered 404 without a word"),
        (b"x" * 4000, "x" * 300 + "…"),
    ],
)
def test_error_answers_are_read(body: bytes, message: str) -> None:
    error = DIALECT.decode_error(404, body, {"retry-after": "7"}, "ollama")
    assert (error.message, error.status, error.retry_after, error.provider) == (message, 404, "7", "ollama")

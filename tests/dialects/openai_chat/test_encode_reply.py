"""Events to replies, streamed and whole."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from bardo.dialects.openai_chat import DIALECT
from bardo.dialects.openai_chat.thinking import decode_details, encode_details
from bardo.dialects.openai_chat.wire import decode_states
from bardo.values.blocks import (
    Carried,
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    ReplyBlock,
    TextBlock,
    ToolCallBlock,
    UnknownBlock,
)
from bardo.values.errors import BrokenStream
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    Extension,
    Failed,
    Finish,
    FinishReason,
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
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.usage import Usage
from bardo.values.wire import Arrival
from dialects.openai_chat.chat import DONE, REQUEST, events_of, written, written_body, written_chunks

START = ReplyStart(id="r", model="m", created=7)
STOP = Finish("stop", "stop")
CLAUDE, OPENAI = "anthropic-claude-v1", "openai-responses-v1"
SIGNATURE = Opaque("signature", "sig", CLAUDE)
USAGE = Usage(input_tokens=3, output_tokens=5, reasoning_tokens=2)


def back(said: list[Event]) -> Response:
    """Write events and read them again."""
    return fold(events_of([written(said)], sse=True))


def deltas(said: list[Event]) -> list[dict[str, Any]]:
    return [choice["delta"] for one in written_chunks(said) for choice in one["choices"]]


def test_a_stream_to_the_byte() -> None:
    head = b'data: {"id":"r","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":'
    assert written([START, ContentChunk(0, "Hé"), ContentChunk(0, "!"), STOP]) == (
        head
        + b'{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
        + head
        + '{"content":"Hé"},"finish_reason":null}]}\n\n'.encode()
        + head
        + b'{"content":"!"},"finish_reason":null}]}\n\n'
        + head
        + b'{},"finish_reason":"stop"}]}\n\n'
        + b"data: [DONE]\n\n"
    )


def test_plain_thinking_is_reasoning_content_alone() -> None:
    said: list[Event] = [START, ThinkStart(0, "reasoning"), ThinkChunk(0, "x"), ThinkEnd(0), STOP]
    assert deltas(said)[1:] == [{"reasoning_content": "x"}, {}]


def test_thinking_of_a_known_format_is_in_details_as_well() -> None:
    said: list[Event] = [
        ThinkStart(4, CLAUDE),
        ThinkChunk(4, "pl"),
        ThinkChunk(4, "an"),
        OpaqueState(4, SIGNATURE),
        ThinkEnd(4),
        ContentChunk(5, "a"),
        STOP,
    ]
    assert deltas([START, *said])[1:] == [
        {
            "reasoning_content": "pl",
            "reasoning_details": [{"type": "reasoning.text", "text": "pl", "format": CLAUDE, "index": 0}],
        },
        {"reasoning_content": "an", "reasoning_details": [{"type": "reasoning.text", "text": "an", "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.text", "signature": "sig", "index": 0}]},
        {"content": "a"},
        {},
    ]


def test_a_provisional_state_gives_way_to_the_final_one() -> None:
    said: list[Event] = [
        ThinkStart(0, OPENAI),
        OpaqueState(0, Opaque("id", "rs", OPENAI)),
        OpaqueState(0, Opaque("encrypted", "short", OPENAI)),
        ThinkChunk(0, "x", 0),
        OpaqueState(0, Opaque("encrypted", "long", OPENAI)),
        ThinkEnd(0),
        STOP,
    ]
    pieces = [piece for delta in deltas([START, *said]) for piece in delta.get("reasoning_details", ())]
    assert [piece["data"] for piece in pieces if "data" in piece] == ["long"]
    assert [piece["id"] for piece in pieces if "id" in piece] == ["rs"]


BLOCKS: dict[str, tuple[list[Event], tuple[ReplyBlock, ...]]] = {
    "a signature of plain thinking": (
        [ThinkStart(0, "reasoning_content"), ThinkChunk(0, "x"), OpaqueState(0, SIGNATURE)],
        (ReasoningBlock(text="x", format="reasoning_content", opaque=(SIGNATURE,)),),
    ),
    "a signature that comes late": (
        [ThinkStart(0, CLAUDE), ThinkChunk(0, "x"), ThinkEnd(0), ContentChunk(1, "a"), OpaqueState(0, SIGNATURE), ContentChunk(1, "b")],
        (ReasoningBlock(text="x", format=CLAUDE, opaque=(SIGNATURE,)), TextBlock("ab")),
    ),
    "a signature that comes last": (
        [ThinkStart(0, "reasoning_content"), ThinkChunk(0, "x"), ThinkEnd(0), ContentChunk(1, "a"), OpaqueState(0, SIGNATURE)],
        (ReasoningBlock(text="x", format="reasoning_content", opaque=(SIGNATURE,)), TextBlock("a")),
    ),
    "a signature without text": (
        [ThinkStart(0, CLAUDE), OpaqueState(0, SIGNATURE), ThinkEnd(0), ContentChunk(1, "a")],
        (ReasoningBlock(format=CLAUDE, opaque=(SIGNATURE,)), TextBlock("a")),
    ),
    "redacted blocks": (
        [ThinkStart(0, CLAUDE), OpaqueState(0, Opaque("redacted", "d0", CLAUDE)), ThinkEnd(0),
         ThinkStart(1, CLAUDE), OpaqueState(1, Opaque("redacted", "d1", CLAUDE)), ThinkEnd(1)],
        tuple(ReasoningBlock(format=CLAUDE, opaque=(Opaque("redacted", f"d{block}", CLAUDE),)) for block in (0, 1)),
    ),
    "the parts of a summary": (
        [ThinkStart(0, OPENAI), *(ThinkChunk(0, text, part) for text, part in (("a", 0), ("b", 0), ("c", 1), ("d", 1), ("e", 2)))],
        (ReasoningBlock(summary=("ab", "cd", "e"), format=OPENAI),),
    ),
    "a summary of no format": (
        [ThinkStart(0, ""), ThinkChunk(0, "a", 0), ThinkChunk(0, "b", 1)],
        (ReasoningBlock(summary=("a", "b"), format="unknown"),),
    ),
    "text, then a summary": (
        [ThinkStart(0, OPENAI), ThinkChunk(0, "a"), ThinkChunk(0, "b", 0)],
        (ReasoningBlock(text="a", summary=("b",), format=OPENAI),),
    ),
    "a name and a ciphertext": (
        [ThinkStart(0, OPENAI), OpaqueState(0, Opaque("id", "rs", OPENAI)), OpaqueState(0, Opaque("encrypted", "d", OPENAI))],
        (ReasoningBlock(format=OPENAI, opaque=(Opaque("id", "rs", OPENAI), Opaque("encrypted", "d", OPENAI))),),
    ),
    "a name alone": (
        [ThinkStart(0, OPENAI), OpaqueState(0, Opaque("id", "rs", OPENAI)), ThinkEnd(0)],
        (ReasoningBlock(format=OPENAI, opaque=(Opaque("id", "rs", OPENAI),)),),
    ),
    "state of another format than its block": (
        [ThinkStart(0, CLAUDE), ThinkChunk(0, "x"), OpaqueState(0, Opaque("encrypted", "d", "other-v1"))],
        (ReasoningBlock(text="x", format=CLAUDE, opaque=(Opaque("encrypted", "d", "other-v1"),)),),
    ),
    "thinking in turns with text": (
        [ThinkStart(0, "reasoning_content"), ThinkChunk(0, "x"), ContentChunk(1, "a"),
         ThinkStart(2, "reasoning_content"), ThinkChunk(2, "y")],
        (ReasoningBlock(text="x", format="reasoning_content"), TextBlock("a"), ReasoningBlock(text="y", format="reasoning_content")),
    ),
    "two calls in turns": (
        [ToolCallStart(0, "c", "f"), ToolCallStart(1, "d", "g"), ToolCallChunk(0, "{"), ToolCallChunk(1, "{}"), ToolCallChunk(0, "}"),
         ToolCallEnd(0), ToolCallEnd(1)],
        (ToolCallBlock(id="c", name="f", arguments="{}"), ToolCallBlock(id="d", name="g", arguments="{}")),
    ),
    "a call that learns its name later": (
        [ToolCallStart(0, "c", ""), ToolCallStart(0, "c", "f"), ToolCallChunk(0, "{}"), ToolCallEnd(0)],
        (ToolCallBlock(id="c", name="f", arguments="{}"),),
    ),
    "state and fields of a call": (
        [
            ToolCallStart(0, "c", "f"),
            OpaqueState(0, Opaque("signature", "s", "google-gemini-v1")),
            OpaqueState(0, Opaque("id", "fc_1", OPENAI)),
            BlockFields(0, "openai_chat", {"vendor": 1, "function": {"strict": True}}),
            ToolCallEnd(0),
        ],
        (
            ToolCallBlock(
                id="c",
                name="f",
                opaque=(Opaque("signature", "s", "google-gemini-v1"), Opaque("id", "fc_1", OPENAI)),
                carried=Carried("openai_chat", {"vendor": 1, "function": {"strict": True}}),
            ),
        ),
    ),
    "state of a text": (
        [ContentChunk(0, "a"), OpaqueState(0, Opaque("signature", "s", "google-gemini-v1"))],
        (TextBlock("a", (Opaque("signature", "s", "google-gemini-v1"),)),),
    ),
    "fields of thinking": (
        [ThinkStart(0, CLAUDE), ThinkChunk(0, "x"), BlockFields(0, "openai_chat", {"provider": "azure"})],
        (ReasoningBlock(text="x", format=CLAUDE, carried=Carried("openai_chat", {"provider": "azure"})),),
    ),
    "blocks of this dialect nobody knows": (
        [ContentChunk(0, "a"), UnknownContent(1, "openai_chat", {"type": "map"}), UnknownContent(2, "openai_chat", "x")],
        (TextBlock("a"), UnknownBlock("openai_chat", {"type": "map"}), UnknownBlock("openai_chat", "x")),
    ),
    "a refusal": ([RefusalChunk(0, "No"), RefusalChunk(0, ".")], (RefusalBlock("No."),)),
}  # fmt: skip


@pytest.mark.parametrize(("said", "blocks"), BLOCKS.values(), ids=BLOCKS.keys())
def test_what_is_streamed_reads_back(said: list[Event], blocks: tuple[ReplyBlock, ...]) -> None:
    assert back([START, *said, STOP]).blocks == blocks


@pytest.mark.parametrize(("said", "blocks"), BLOCKS.values(), ids=BLOCKS.keys())
def test_what_is_written_whole_reads_back(said: list[Event], blocks: tuple[ReplyBlock, ...]) -> None:
    body = DIALECT.encode_response(fold([START, *said, STOP]), REQUEST)
    found = fold(events_of([body], sse=False)).blocks
    if sum(isinstance(block, TextBlock | ReasoningBlock) for block in blocks) < 3:
        assert found == blocks
    else:
        # The fields of a message tell no order of thinking and text.
        first, second = (ReasoningBlock(text=text, format="reasoning_content") for text in "xy")
        assert found == (first, second, TextBlock("a"))


def test_what_other_dialects_carry_is_left_out() -> None:
    said: list[Event] = [
        START,
        ContentChunk(0, "a"),
        BlockFields(0, "other", {"x": 1}),
        UnknownContent(1, "other", {"x": 1}),
        ReplyFields("other", {"x": 1}),
        ReplyFields("other", {"x": 1}, 0),
        STOP,
    ]
    assert b'"x"' not in written(said)
    assert b'"x"' not in DIALECT.encode_response(fold(said), REQUEST)


# Fields of the reply and of its choices


def test_small_fields_stand_in_every_frame_and_large_ones_in_one() -> None:
    large = {"citations": ["u" * 300]}
    said: list[Event] = [
        START,
        ReplyFields("openai_chat", {"tier": "x", **large}),
        ContentChunk(0, "a"),
        ContentChunk(0, "b"),
        STOP,
    ]
    chunks = written_chunks(said)
    assert [one.get("tier") for one in chunks] == ["x"] * 4
    assert sum("citations" in one for one in chunks) == 1
    assert all(one["choices"] for one in chunks)
    assert back(said).carried == Carried("openai_chat", {"tier": "x", **large})


def test_fields_that_come_later_are_in_what_follows() -> None:
    said: list[Event] = [
        START,
        ContentChunk(0, "a"),
        ReplyFields("openai_chat", {"tier": "x", "results": [1]}),
        ReplyFields("openai_chat", {"results": [2]}),
        ContentChunk(0, "b"),
        ReplyFields("openai_chat", {"tier": "y", "more": {"z": 1}}),
        STOP,
    ]
    chunks = written_chunks(said)
    assert [one.get("tier") for one in chunks] == [None, None, "x", "y"]
    assert back(said).carried == Carried("openai_chat", {"tier": "y", "results": [1, 2], "more": {"z": 1}})


def test_fields_of_a_choice_read_back() -> None:
    fields = {"message.audio": [{"transcript": "Hi"}], "logprobs.content": [{"token": "a"}], "stop_reason": 3, "a.b": 1}
    said: list[Event] = [START, ContentChunk(0, "a"), ReplyFields("openai_chat", fields, 0), STOP]
    expected = Carried("openai_chat", fields)
    assert back(said).choice_carried == expected
    body = DIALECT.encode_response(fold(said), REQUEST)
    assert fold(events_of([body], sse=False)).choice_carried == expected


def test_the_pieces_of_sound_are_one_in_a_whole_reply() -> None:
    pieces = [{"id": "a", "transcript": "Hel"}, {"transcript": "lo", "data": "AA"}, {"data": "BB"}]
    said: list[Event] = [START, ReplyFields("openai_chat", {"message.audio": pieces}, 0), STOP]
    message = written_body(fold(said))["choices"][0]["message"]
    assert message["audio"] == {"id": "a", "transcript": "Hello", "data": "AABB"}


def test_a_late_id_is_in_every_later_frame() -> None:
    said: list[Event] = [ReplyStart(model="m"), ContentChunk(0, "a"), ReplyStart(id="late"), ContentChunk(0, "b"), STOP]
    assert [one["id"] for one in written_chunks(said)] == ["", "", "late", "late"]


# Ends


WORDS: list[tuple[FinishReason, str, str]] = [
    ("stop", "end_turn", "stop"),
    ("length", "max_tokens", "length"),
    ("tool_calls", "tool_use", "tool_calls"),
    ("tool_calls", "stop", "tool_calls"),
    ("refusal", "refusal", "content_filter"),
    ("pause", "pause_turn", "stop"),
    ("error", "error", "stop"),
    ("unknown", "", "stop"),
]


@pytest.mark.parametrize(("reason", "raw", "word"), WORDS)
def test_finish_reasons_are_words_an_openai_client_knows(reason: FinishReason, raw: str, word: str) -> None:
    said: list[Event] = [START, ContentChunk(0, "a"), Finish(reason, raw)]
    assert written_chunks(said)[-1]["choices"][0]["finish_reason"] == word
    assert written_body(fold(said))["choices"][0]["finish_reason"] == word


@pytest.mark.parametrize(("raw", "word"), [("refusal", "stop"), ("content_filter", "content_filter")])
def test_a_refusal_in_words_ends_as_openais_own_do(raw: str, word: str) -> None:
    said: list[Event] = [START, RefusalChunk(0, "No."), Finish("refusal", raw)]
    assert written_chunks(said)[-1]["choices"][0]["finish_reason"] == word
    assert written_body(fold(said))["choices"][0]["finish_reason"] == word


def test_usage_is_written_where_it_was_asked_for() -> None:
    said: list[Event] = [START, ContentChunk(0, "a"), UsageUpdate(USAGE), STOP]
    *_, last = written_chunks(said)
    assert last["choices"] == []
    assert (last["usage"]["prompt_tokens"], last["usage"]["completion_tokens"], last["usage"]["total_tokens"]) == (
        3,
        5,
        8,
    )
    quiet = msgspec.structs.replace(REQUEST, stream_usage=False)
    assert b"usage" not in written(said, quiet)


def test_usage_may_come_after_the_finish() -> None:
    assert back([START, ContentChunk(0, "a"), STOP, UsageUpdate(USAGE)]).usage.total_tokens == 8


@pytest.mark.parametrize("usage", [True, False])
def test_bardos_object_stands_in_the_last_frame(usage: bool) -> None:
    request = msgspec.structs.replace(REQUEST, stream_usage=usage)
    said: list[Event] = [
        START,
        ContentChunk(0, "a"),
        UsageUpdate(USAGE),
        STOP,
        Extension({"a": 1}),
        Extension({"b": 2}),
    ]
    chunks = written_chunks(said, request)
    assert [one.get("bardo") for one in chunks] == [None] * (len(chunks) - 1) + [{"a": 1, "b": 2}]
    assert written(said, request).endswith(DONE)
    assert written_body(fold(said))["bardo"] == {"a": 1, "b": 2}


def test_a_reply_that_failed_ends_with_the_error() -> None:
    encoder = DIALECT.open_encoder(REQUEST, Arrival())
    list(encoder.feed(ContentChunk(0, "a")))
    [frame] = encoder.feed(Failed(BrokenStream("cut", hint="ask again")))
    assert json.loads(frame[6:]) == {
        "error": {"message": "cut (ask again)", "type": "server_error", "param": None, "code": "broken_stream"}
    }
    assert list(encoder.feed(UsageUpdate(USAGE))) == list(encoder.finish()) == []


def test_a_reply_without_a_word_is_well_formed() -> None:
    chunks = written_chunks([])
    assert chunks[-1]["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    assert written([]).endswith(DONE)


def test_every_choice_has_its_finish() -> None:
    said: list[Event] = [START, ContentChunk(0, "b", 1), ContentChunk(0, "a", 0), Finish("length", choice=1)]
    ends = [c for one in written_chunks(said) for c in one["choices"] if c["finish_reason"]]
    assert [(end["index"], end["finish_reason"]) for end in ends] == [(0, "stop"), (1, "length")]


def test_a_whole_reply_to_the_field() -> None:
    response = fold(
        [
            START,
            ThinkStart(0, CLAUDE),
            ThinkChunk(0, "plan"),
            OpaqueState(0, SIGNATURE),
            ContentChunk(1, "Hi"),
            ToolCallStart(2, "c", "f"),
            ToolCallChunk(2, "{}"),
            ToolCallEnd(2),
            Finish("tool_calls", "tool_use"),
            UsageUpdate(USAGE),
        ]
    )
    assert written_body(response) == {
        "id": "r",
        "object": "chat.completion",
        "created": 7,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Hi",
                    "refusal": None,
                    "reasoning_content": "plan",
                    "reasoning_details": [
                        {"type": "reasoning.text", "text": "plan", "format": CLAUDE, "index": 0, "signature": "sig"}
                    ],
                    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {
            "prompt_tokens": 3,
            "completion_tokens": 5,
            "total_tokens": 8,
            "completion_tokens_details": {"reasoning_tokens": 2},
        },
    }


def test_alternatives_are_choices() -> None:
    said: list[Event] = [
        START,
        ContentChunk(0, "a", 0),
        ContentChunk(0, "b", 1),
        Finish("stop"),
        Finish("length", choice=1),
    ]
    choices = written_body(fold(said))["choices"]
    assert [(one["index"], one["message"]["content"], one["finish_reason"]) for one in choices] == [
        (0, "a", "stop"),
        (1, "b", "length"),
    ]


def test_no_cost_grows_with_the_reply() -> None:
    encoder = DIALECT.open_encoder(Request(model="m", messages=()), Arrival())
    encoder.feed(ReplyFields("openai_chat", {"citations": ["u" * 10_000]}))
    frames = [b"".join(encoder.feed(ContentChunk(0, "word"))) for _ in range(100)]
    assert len({len(frame) for frame in frames[1:]}) == 1
    assert len(frames[-1]) < 200


def test_stretches_of_thinking_are_paragraphs_in_a_stream_as_in_a_whole_reply() -> None:
    said: list[Event] = [START]
    for block, text in enumerate(("one", "two")):
        said += [
            ThinkStart(block, "google-gemini-v1"),
            ThinkChunk(block, text[:1]),
            ThinkChunk(block, text[1:]),
            ThinkEnd(block),
        ]
    deltas = [one["choices"][0]["delta"].get("reasoning_content", "") for one in written_chunks(said)]
    assert "".join(deltas) == "one\n\ntwo"
    assert written_body(fold(said))["choices"][0]["message"]["reasoning_content"] == "one\n\ntwo"


def test_the_signatures_of_several_texts_stay_apart() -> None:
    signed = [Opaque("signature", data, "google-gemini-v1") for data in ("one", "two", "three")]
    said: list[Event] = [START]
    for block, state in enumerate(signed):
        said += [ContentChunk(block, "x"), OpaqueState(block, state)]
    told = [one["choices"][0]["delta"].get("extra_content") or {} for one in written_chunks(said)]
    assert [one["google"] for one in told if "google" in one] == [{"thought_signature": "one"}]
    assert [list(one["bardo"]["opaque"]) for one in told if "bardo" in one] == [["signature 1"], ["signature 2"]]
    assert [state for one in told for state in decode_states(one)[0]] == signed
    [whole] = written_body(fold(said))["choices"]
    assert decode_states(whole["message"]["extra_content"])[0] == tuple(signed)


def test_redacted_thinking_of_bedrock_comes_back_redacted() -> None:
    block = ReasoningBlock(format="bedrock-v1", opaque=(Opaque("redacted", "cipher", "bedrock-v1"),))
    assert [one.block for one in decode_details(encode_details(block, 0))] == [block]


SIGNED = ToolCallStart(0, "c", "f", state_follows=True)
STATE = OpaqueState(0, Opaque("signature", "sig", "google-gemini-v1"))
GOOGLE = {"google": {"thought_signature": "sig"}}


def calls_told(*said: Event) -> list[dict[str, Any]]:
    deltas = [choice["delta"] for one in written_chunks([START, *said]) for choice in one["choices"]]
    return [call for delta in deltas for call in delta.get("tool_calls", ())]


@pytest.mark.parametrize(
    "between", [(), (BlockFields(0, "gemini", {"functionCall": {"id": None}}),)], ids=["at once", "behind fields"]
)
def test_state_that_follows_a_call_stands_in_its_first_delta(between: tuple[Event, ...]) -> None:
    [first, second] = calls_told(SIGNED, *between, STATE, ToolCallChunk(0, "{}"), ToolCallEnd(0), STOP)
    assert (first["id"], first["function"]["name"], first["extra_content"]) == ("c", "f", GOOGLE)
    assert second == {"index": 0, "function": {"arguments": "{}"}}


@pytest.mark.parametrize(
    "then",
    [
        (ToolCallChunk(0, "{}"), STATE),
        (BlockFields(0, "openai_chat", {"x": 1}), STATE),
        (OpaqueState(1, SIGNATURE), STATE),
        (ToolCallStart(1, "d", "g"), STATE),
        (),
    ],
    ids=["arguments", "own fields", "another's state", "another call", "nothing"],
)
def test_a_call_whose_state_does_not_follow_is_begun_all_the_same(then: tuple[Event, ...]) -> None:
    [first, *others] = calls_told(SIGNED, *then)
    assert first == {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    assert [one["extra_content"] for one in others if "extra_content" in one] == [GOOGLE] * bool(then)


def test_a_call_without_state_is_begun_before_its_arguments() -> None:
    encoder = DIALECT.open_encoder(REQUEST, Arrival())
    assert b'"name":"f"' in b"".join(encoder.feed(ToolCallStart(0, "c", "f")))

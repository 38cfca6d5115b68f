"""A reply is the same whole and streamed, as each dialect's official library reads it: with its thinking, and where that is left out."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import openai
import pytest

from bardo.dialects import dialect
from bardo.replies.citations import citations_between
from bardo.replies.reply_reader import ReplyHandling, row_reader
from bardo.replies.reply_stages import ThinkingInTags, WithoutReasoning, WithoutUnasked
from bardo.replies.translation_stages import ForeignContent
from bardo.streams.stage import Stage
from bardo.values.blocks import Carried, Opaque, ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    Finish,
    OpaqueState,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UsageUpdate,
)
from bardo.values.fold import fold
from bardo.values.request import ReasoningPolicy, Request
from bardo.values.response import Response
from bardo.values.usage import Usage
from bardo.values.wire import Arrival
from conformance.block_clients import BLOCK_CLIENTS
from conformance.clients import READERS
from conformance.heard import answer, http
from conformance.replies import ALL, STAMP, in_fewer_pieces, reply_of, row_of
from recordings import Recording, each_recording
from support.sampling import sample

pytestmark = [pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")]
CLIENTS = (*READERS, *BLOCK_CLIENTS)
ESTIMATED = 77
"""The tokens of the prompt that a client is told where a stream begins, and of a reply that nobody counted."""
NOT_ALIKE = (
    "vercel-gateway/gemini-3-pro-preview-stream-thinking-a9a84cc4.sse",
    "anthropic-messages/claude-sonnet-4-0-thinking-servertool-2122c011.json",
    "openrouter/o4-mini-stream-thinking-09211809.sse",
)
"""State for a thought that comes after the answer, which no stream can put back; a call of an MCP server's tool, whose input Anthropic's
library leaves empty when it comes in a delta; and thinking whose id comes after its text."""


@pytest.mark.parametrize("shown", ["asked for", "asked for as a summary", "not asked for", "omitted"])
@each_recording(sample(ALL, 12, law="whole equals streamed"), together=6)
def test_a_reply_is_the_same_whole_and_streamed(recording: Recording, shown: str) -> None:
    if recording.file in NOT_ALIKE:
        pytest.skip("a stream has no place for what comes so late")
    for client in CLIENTS:
        events, response = _read(recording, client, shown)
        if response.error is not None or not _has_whole_calls(response):
            continue
        whole, stream = _written(events, response, _request(client, shown))
        # Messages and Converse have no place for the state of a last text behind it, and say so.
        told = client in ("anthropic_messages", "bedrock_converse") and b'"opaque state"' in stream
        if not told:
            assert _heard(client, stream, stream=True) == _heard(client, whole, stream=False), client


@each_recording([one for one in ALL if "truncated" in one.file])
def test_all_but_a_call_in_which_a_reply_broke_off_is_the_same_whole_and_streamed(recording: Recording) -> None:
    for client, reader in READERS.items():
        events, response = _read(recording, client, "asked for")
        if _has_whole_calls(response):
            continue
        whole, stream = _written(events, response, _request(client, "asked for"))
        heard = [reader(body, stream=body is stream) for body in (whole, stream)]
        first, second = [(one.text, one.refusal, one.thinking, one.finish, one.counts, one.id) for one in heard]
        assert first == second, client
        # A call that is there whole is there in the stream; one that a whole reply leaves out has begun there.
        assert {call[0] for call in heard[0].calls} <= {call[0] for call in heard[1].calls}


def test_each_of_several_choices_is_the_same_whole_and_streamed() -> None:
    events: list[Event] = [ReplyStart(id="r", model="m", created=1)]
    for choice, text in enumerate(("Soup.", "Stew.")):
        events += [
            ThinkStart(0, "reasoning_content", choice),
            ThinkChunk(0, f"{text}?", choice=choice),
            ThinkEnd(0, choice),
            ContentChunk(1, text, choice),
            ToolCallStart(2, f"call_{choice}", "cook", choice),
            ToolCallChunk(2, "{}", choice),
            ToolCallEnd(2, choice),
            Finish("tool_calls", "tool_calls", choice=choice),
        ]
    whole, stream = _written(events, fold(events), _request("openai_chat", "asked for"))
    answer(whole, stream=False, status=200)
    client = openai.OpenAI(api_key="k", base_url="http://bardo.test/v1", http_client=http(), max_retries=0)
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    told = [_plain(choice) for choice in client.chat.completions.create(**asked).choices]
    answer(stream, stream=True, status=200)
    with client.chat.completions.stream(**asked) as pieces:
        heard = [_plain(choice) for choice in pieces.until_done().current_completion_snapshot.choices]
    for choice in heard:
        for call in choice["message"]["tool_calls"]:
            call.pop("index")
    assert heard == told
    assert [choice["message"]["content"] for choice in told] == ["Soup.", "Stew."]


def _written(events: list[Event], response: Response, request: Request) -> tuple[bytes, bytes]:
    """Return a reply as its client gets it whole and as a stream."""
    language = dialect(request.dialect)
    encoder = language.open_encoder(request, Arrival())
    if language.starts_with_usage:
        encoder.feed(UsageUpdate(Usage(input_tokens=ESTIMATED)))
        if response.usage.input_tokens is None:
            usage = msgspec.structs.replace(response.usage, input_tokens=ESTIMATED)
            response = msgspec.structs.replace(response, usage=usage)
    stream = b"".join([frame for event in in_fewer_pieces(events) for frame in encoder.feed(event)])
    return language.encode_response(response, request), stream + b"".join(encoder.finish())


def _read(recording: Recording, client: str, shown: str) -> tuple[list[Event], Response]:
    row = row_of(recording)
    stages: list[Stage[Event, Event]] = [
        *citations_between(row.dialect, client, reply_of(recording).response.model),
        ForeignContent(client),
    ]
    thinking = WithoutUnasked() if shown == "not asked for" else None
    streamed = recording.framing != "json"
    reader = row_reader(row, streamed=streamed, handling=ReplyHandling(thinking=thinking, stamp=STAMP, stages=stages))
    events = [*reader.feed(recording.body), *reader.finish()]
    return events, reader.response()


def _request(client: str, shown: str) -> Request:
    summary = Carried("openai_responses", {"reasoning.summary": "auto"})
    policies = {
        "omitted": ReasoningPolicy(mode="auto", visible=False),
        "asked for as a summary": ReasoningPolicy(mode="auto", carried=summary),
    }
    return Request(model="m", messages=(), dialect=client, reasoning=policies.get(shown))


def _has_whole_calls(response: Response) -> bool:
    return all(block.complete for block in response.blocks if isinstance(block, ToolCallBlock))


def _heard(client: str, body: bytes, *, stream: bool) -> Any:
    """Return what a library made of a reply, without what differs in each reading of it."""
    if client in BLOCK_CLIENTS:
        read = BLOCK_CLIENTS[client][stream](body)
        read.pop("created_at", None)
        return _plain(read)
    heard = READERS[client](body, stream=stream)
    turn = _plain(heard.turn())
    for message in turn.get("messages", ()):
        for call in message.get("tool_calls") or ():
            call.pop("index", None)
    for content in turn.get("contents", ()):
        content["parts"] = _with_signatures(content["parts"])
    for item in turn.get("input", ()):
        item.pop("status", None)
    return turn, heard.text, heard.refusal, heard.thinking, heard.finish, heard.counts, heard.id, heard.model


def _with_signatures(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return Gemini's parts with a signature that came in an empty part on the part that it follows, as clients keep it."""
    kept: list[dict[str, Any]] = []
    for part in parts:
        before = kept[-1] if kept else {}
        bare = part.get("text") == "" and "thoughtSignature" in part and "thoughtSignature" not in before
        if bare and "text" in before and before.get("thought") == part.get("thought"):
            kept[-1] = {**part, "text": before["text"]}
        else:
            kept.append(part)
    return kept


def _plain(value: Any) -> Any:
    def write(held: Any) -> Any:
        return held.decode("latin-1") if isinstance(held, bytes) else held.model_dump(exclude_none=True)

    return json.loads(json.dumps(value, default=write, sort_keys=True))


THOUGHT: tuple[Event, ...] = (
    ReplyStart(id="r", model="m", created=1),
    ThinkStart(0, "openai-responses-v1"),
    OpaqueState(0, Opaque("id", "rs_1", "openai-responses-v1")),
    ThinkChunk(0, "Salt first."),
    BlockFields(0, "openai_responses", {"status": "completed"}),
    ThinkEnd(0),
    ContentChunk(1, "Soup."),
    Finish("stop", "completed"),
)


@pytest.mark.parametrize("stage", [WithoutReasoning, WithoutUnasked])
def test_nothing_of_a_thought_that_is_left_out_begins_a_text(stage: type[WithoutReasoning]) -> None:
    without = stage()
    passed = [one for event in THOUGHT for one in without.feed(event)]
    assert fold(passed).blocks == (TextBlock("Soup."),)


def test_fields_of_a_thought_that_begins_with_its_text_are_left_out_with_it() -> None:
    without = WithoutReasoning()
    passed = [one for event in THOUGHT if type(event) is not ThinkStart for one in without.feed(event) if one != event]
    assert [type(one).__name__ for one in passed] == ["WithheldThought"]


def test_fields_of_a_thought_that_is_shown_in_tags_are_no_fields_of_its_text() -> None:
    tags = ThinkingInTags()
    passed = [one for event in THOUGHT for one in tags.feed(event)] + list(tags.finish())
    assert not [one for one in passed if isinstance(one, BlockFields | OpaqueState)]


def test_fields_of_a_text_pass_where_thinking_is_left_out() -> None:
    fields = BlockFields(1, "openai_responses", {"annotations": []})
    without = WithoutReasoning()
    passed = [one for event in (*THOUGHT[:-1], fields) for one in without.feed(event)]
    assert passed[-1] == fields


@each_recording(ALL, by_day=0.05)
def test_no_field_and_no_state_of_a_thought_comes_before_it_is_known_to_be_one(recording: Recording) -> None:
    """Who leaves thinking out passes on what comes before."""
    begun: set[tuple[int, int]] = set()
    thoughts = {
        (one.choice, one.block) for one in reply_of(recording).events if isinstance(one, ThinkStart | ThinkChunk)
    }
    for event in reply_of(recording).events:
        if isinstance(event, ThinkStart | ThinkChunk):
            begun.add((event.choice, event.block))
        elif isinstance(event, BlockFields | OpaqueState) and (place := (event.choice, event.block)) in thoughts:
            assert place in begun
    assert len(thoughts) == len({*begun})


def test_a_ciphertext_behind_a_summary_has_an_index_and_a_format_of_its_own_for_chat_clients() -> None:
    events = (
        *THOUGHT[:3],
        ThinkChunk(0, "Salt.", 0),
        OpaqueState(0, Opaque("encrypted", "gAAA", "openai-responses-v1")),
    )
    events = (*events, *THOUGHT[5:])
    encoder = dialect("openai_chat").open_encoder(_request("openai_chat", "asked for"), Arrival())
    frames = b"".join([frame for event in events for frame in encoder.feed(event)]).split(b"data: ")
    chunks = [msgspec.json.decode(frame) for frame in frames if frame.strip()]
    pieces = [piece for chunk in chunks for piece in chunk["choices"][0]["delta"].get("reasoning_details", ()) if piece]
    assert [piece["index"] for piece in pieces] == [0, 1]
    assert [piece["format"] for piece in pieces] == ["openai-responses-v1"] * 2
    body = dialect("openai_chat").encode_response(fold(events), _request("openai_chat", "asked for"))
    message = msgspec.json.decode(body)["choices"][0]["message"]
    assert [(one["type"], one["index"]) for one in message["reasoning_details"]] == [
        ("reasoning.summary", 0),
        ("reasoning.encrypted", 1),
    ]
    back = {"model": "m", "messages": [message]}
    [turn] = dialect("openai_chat").decode_request(json.dumps(back).encode(), Arrival()).messages
    [thought, _] = turn.blocks
    assert isinstance(thought, ReasoningBlock)
    assert thought.summary == ("Salt.",)
    assert {state.kind for state in thought.opaque} == {"id", "encrypted"}


def test_a_chat_stream_that_begins_with_a_call_has_no_content_as_the_whole_reply_has_none() -> None:
    for first, content in ((ThinkChunk(0, "hm"), None), (ContentChunk(0, "Soup."), "")):
        encoder = dialect("openai_chat").open_encoder(_request("openai_chat", "asked for"), Arrival())
        [opening, *_] = encoder.feed(first)
        assert msgspec.json.decode(opening.removeprefix(b"data: "))["choices"][0]["delta"]["content"] == content


@pytest.mark.parametrize("shown", ["asked for", "asked for as a summary"])
def test_a_thought_without_text_has_no_part_for_responses_clients(shown: str) -> None:
    signed = OpaqueState(0, Opaque("signature", "c2ln", "anthropic-claude-v1"))
    events = (THOUGHT[0], ThinkStart(0, "anthropic-claude-v1"), ThinkChunk(0, ""), signed, *THOUGHT[5:])
    request = _request("openai_responses", shown)
    encoder = dialect("openai_responses").open_encoder(request, Arrival())
    stream = b"".join([*[frame for event in events for frame in encoder.feed(event)], *encoder.finish()])
    whole = dialect("openai_responses").encode_response(fold(events), request)
    assert b"reasoning_text" not in stream
    assert b"summary_text" not in stream
    assert _heard("openai_responses", stream, stream=True) == _heard("openai_responses", whole, stream=False)


def test_a_thought_without_text_is_its_state_alone_for_chat_clients_whole_and_streamed() -> None:
    signed = OpaqueState(0, Opaque("signature", "c2ln", "anthropic-claude-v1"))
    events = (THOUGHT[0], ThinkStart(0, "anthropic-claude-v1"), ThinkChunk(0, ""), signed, *THOUGHT[5:])
    request = _request("openai_chat", "asked for")
    encoder = dialect("openai_chat").open_encoder(request, Arrival())
    stream = b"".join([frame for event in events for frame in encoder.feed(event)])
    assert b"reasoning_content" not in stream
    assert b"reasoning_content" not in dialect("openai_chat").encode_response(fold(events), request)
    assert stream.count(b'"signature":"c2ln"') == 1


def test_an_id_behind_a_summary_leaves_it_a_summary_for_chat_clients() -> None:
    # xAI gives the id of its thinking behind the text (2026-11).
    events = (*THOUGHT[:2], ThinkChunk(0, "Salt.", 0), THOUGHT[2], *THOUGHT[5:])
    encoder = dialect("openai_chat").open_encoder(_request("openai_chat", "asked for"), Arrival())
    frames = b"".join([frame for event in events for frame in encoder.feed(event)]).split(b"data: ")
    deltas = [msgspec.json.decode(frame)["choices"][0]["delta"] for frame in frames if frame.strip()]
    pieces = [piece for delta in deltas for piece in delta.get("reasoning_details", ())]
    assert [(piece["type"], piece["index"], "text" in piece) for piece in pieces] == [
        ("reasoning.summary", 0, False)
    ] * 2
    assert pieces[1]["id"] == "rs_1"

"""A call in which a reply broke off is executed by nobody: the official libraries hear no end of it, in no dialect."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import anthropic
import httpx
import ollama
import openai
import pytest
from botocore import eventstream  # type: ignore[import-untyped]
from google.genai import errors as google_errors

from bardo.adapters.net.fake import FakeReply
from bardo.dialects import dialect
from bardo.replies.forwarding import Forwarding
from bardo.replies.reply_reader import ReplyHandling, row_reader
from bardo.replies.reply_stages import CallArguments
from bardo.streams.frames import Frame
from bardo.surfaces.library.decoding import provider_row
from bardo.values.errors import BrokenStream
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Degraded,
    Event,
    Failed,
    Finish,
    FinishReason,
    ReplyStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
)
from bardo.values.fold import fold
from bardo.values.request import Request
from bardo.values.wire import Arrival
from conformance import anthropic_library, block_clients, google_library, openai_library
from conformance.heard import answer
from conformance.replies import ALL, STAMP, read, reply_of
from recordings import OWN, Recording, each_recording
from support.sampling import COVERED, NIGHTLY, seed
from support.scripted import Scripted, reply

Call = tuple[str, Any]
"""The id of a call, and its arguments as an object."""
BROKEN = (
    openai.OpenAIError,
    anthropic.AnthropicError,
    google_errors.APIError,
    ollama.ResponseError,
    httpx.HTTPError,
)
AT_A_TIME = 3
SMALL = 4_000


def _chat(body: bytes) -> Iterator[Call]:
    answer(body, stream=True, status=200)
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    with openai_library._openai().chat.completions.stream(**asked) as events:
        events.until_done()
    for call in events.current_completion_snapshot.choices[0].message.tool_calls or ():
        if events.current_completion_snapshot.choices[0].finish_reason != "length":
            yield call.id, json.loads(call.function.arguments or "{}")


def _responses(body: bytes) -> Iterator[Call]:
    answer(body, stream=True, status=200)
    with openai_library._openai().responses.stream(model="m", input="hi") as events:
        event: Any
        told: list[Call] = []
        for event in events:
            done = [event.item] if event.type == "response.output_item.done" else []
            ended = event.response.output if event.type in _RESPONSE_ENDS else ()
            for item in (*done, *ended):
                if item.type == "function_call" and (item in done or item.status != "incomplete"):
                    call = item.call_id, json.loads(item.arguments or "{}")
                    if item in done or call not in told:
                        yield call
                    told.append(call)


_RESPONSE_ENDS = ("response.completed", "response.failed", "response.incomplete")


def _messages(body: bytes) -> Iterator[Call]:
    answer(body, stream=True, status=200)
    with anthropic_library._anthropic().messages.stream(**anthropic_library._ASKED) as events:
        event: Any
        for event in events:
            if event.type == "content_block_stop" and event.content_block.type == "tool_use":
                yield event.content_block.id, event.content_block.input


def _gemini(body: bytes) -> Iterator[Call]:
    answer(body, stream=True, status=200)
    for chunk in google_library._gemini().models.generate_content_stream(model="m", contents="hi"):
        for candidate in chunk.candidates or ():
            for part in (candidate.content and candidate.content.parts) or ():
                if part.function_call:
                    yield part.function_call.id or "", part.function_call.args or {}


def _ollama(body: bytes) -> Iterator[Call]:
    block_clients._answer(body, "application/x-ndjson")
    for part in block_clients._ollama().chat(**block_clients._ASKED, stream=True):
        for call in part.message.tool_calls or ():
            yield "", dict(call.function.arguments)


def _cohere(body: bytes) -> Iterator[Call]:
    block_clients._answer(body, "text/event-stream")
    calls: dict[int, list[str]] = {}
    event: Any
    for event in block_clients._cohere().chat_stream(**block_clients._ASKED):
        index = getattr(event, "index", 0) or 0
        if event.type == "tool-call-start":
            call = event.delta.message.tool_calls
            calls[index] = [call.id, call.function.arguments or ""]
        elif event.type == "tool-call-delta":
            calls[index][1] += event.delta.message.tool_calls.function.arguments or ""
        elif event.type == "tool-call-end":
            yield calls[index][0], json.loads(calls[index][1])


def _converse(body: bytes) -> Iterator[Call]:
    buffer = eventstream.EventStreamBuffer()
    buffer.add_data(body)
    calls: dict[int, list[str]] = {}
    for event in buffer:
        kind, payload = event.headers.get(":event-type"), json.loads(event.payload)
        use = payload.get("start", payload.get("delta", {})).get("toolUse")
        index = payload.get("contentBlockIndex", -1)
        if kind == "contentBlockStart" and use and use.get("type") != "server_tool_use":
            calls[index] = [use["toolUseId"], ""]
        elif kind == "contentBlockDelta" and use and index in calls:
            calls[index][1] += use["input"]
        elif kind == "contentBlockStop" and index in calls:
            yield calls[index][0], json.loads(calls[index][1] or "{}")


def _interactions(body: bytes) -> Iterator[Call]:
    calls: dict[int, list[Any]] = {}
    for line in body.decode().splitlines():
        if not line.startswith("data: {"):
            continue
        event = json.loads(line.removeprefix("data: "))
        kind, index = event["event_type"], event.get("index", -1)
        if kind == "step.start" and event["step"].get("type") == "function_call":
            calls[index] = [event["step"]["id"], ""]
        elif kind == "step.delta" and index in calls:
            calls[index][1] += event["delta"].get("arguments") or ""
        elif kind == "step.stop" and index in calls:
            yield calls[index][0], json.loads(calls[index][1] or "{}")


EXECUTED: dict[str, Callable[[bytes], Iterator[Call]]] = {
    "openai_chat": _chat,
    "openai_responses": _responses,
    "anthropic_messages": _messages,
    "gemini": _gemini,
    "ollama": _ollama,
    "cohere": _cohere,
    "bedrock_converse": _converse,
    "gemini_interactions": _interactions,
}
"""The calls that a program which reads one dialect's stream by the official library finds complete, of the clients that bardo has."""


def executed(client: str, body: bytes) -> list[Call]:
    """Return the calls that a program would execute until the library says that the reply failed."""
    found: list[Call] = []
    try:
        for call in EXECUTED[client](body):
            found.append(call)
    except BROKEN:
        COVERED["failures that a library raised"] += 1
    return found


def written(client: str, events: list[Event]) -> bytes:
    encoder = dialect(client).open_encoder(Request(model="asked", messages=(), dialect=client, stream=True), Arrival())
    return b"".join([*(piece for event in events for piece in encoder.feed(event)), *encoder.finish()])


def calls_of(events: tuple[Event, ...] | list[Event], *, ended: bool) -> dict[str, list[str]]:
    """Return the arguments of the calls by their id, only of those that ended where that is asked."""
    names = {(one.choice, one.block): one.id for one in events if type(one) is ToolCallStart}
    ends = {(one.choice, one.block) for one in events if type(one) is ToolCallEnd}
    said: dict[str, list[str]] = {}
    for place, name in names.items():
        pieces = [one.arguments for one in events if type(one) is ToolCallChunk and (one.choice, one.block) == place]
        if place in ends or not ended:
            said.setdefault(name, []).append("".join(pieces))
    return said


CALLING = [
    one for one in ALL if one.framing != "json" and any(type(event) is ToolCallStart for event in reply_of(one).events)
]


def places(recording: Recording) -> list[int]:
    """Return where a stream is cut: at night at every event, a short one at every byte; by day at a few of each."""
    body = recording.body
    ends = [place + 1 for place in range(len(body)) if body[place : place + 1] == b"\n"]
    if NIGHTLY:
        return [*range(1, len(body))] if len(body) < SMALL else ends
    chance = random.Random(f"{seed()} {recording.file}")
    first = next((place for place in range(len(body)) if body[place : place + 4] == b"tool"), 0)
    later = [place for place in ends if place > first] or ends or [1]
    return [
        *(chance.choice(later) for _ in range(AT_A_TIME)),
        *(chance.randint(first, len(body) - 1) for _ in range(AT_A_TIME)),
    ]


@each_recording(CALLING, by_day=0.05)
def test_a_stream_that_is_cut_ends_no_call_that_its_provider_did_not_end(recording: Recording) -> None:
    complete = calls_of(reply_of(recording).events, ended=True)
    clients = random.Random(f"{seed()} {recording.file}").sample(sorted(EXECUTED), len(EXECUTED) if NIGHTLY else 3)
    heard: dict[str, bytes] = {}
    for place in places(recording):
        events, response = read(recording, [recording.body[:place]])
        ended = calls_of(events, ended=True)
        for name, arguments in ended.items():
            assert set(arguments) <= set(complete[name]), "a call was ended with fewer arguments than it has"
        assert len(response.tool_calls) == sum(map(len, ended.values()))
        stamped: list[Event] = [STAMP, *(one for one in events if type(one) is not ReplyStart)]
        allowed = [json.loads(one) for arguments in ended.values() for one in arguments if one.startswith("{")]
        for client in clients:
            body = written(client, stamped)
            if heard.get(client) == body:
                continue  # A cut within a frame says what the cut before it does.
            heard[client] = body
            COVERED["cuts of a call, by client"] += 1
            for _, arguments in executed(client, body):
                assert arguments in allowed, f"a client of {client} would execute {arguments}"


FORWARDED = [name for name in EXECUTED if name != "bedrock_converse"]
"""The dialects whose streams may be forwarded: the messages of an event stream are always written anew."""
_DONE = re.compile(rb"(event: done\n)?data: \[DONE\]\n\n")
STRANGE = (AssertionError, TypeError, RuntimeError)
"""What the official library raises at streams of other servers that are not quite of its dialect."""


def given_on(folder: str, body: bytes, *, size: int = 0) -> bytes:
    """Return what a client of the provider's own dialect gets of a stream that is forwarded, `size` bytes at a time."""
    row = provider_row(folder)
    reader = row_reader(row, streamed=True, handling=ReplyHandling(stamp=STAMP, forward=True))
    forwarding = Forwarding(reader, forward=True, withhold_usage=False, hold_end=False)
    size = size or len(body) or 1
    updates = [forwarding.update(body[begin : begin + size]) for begin in range(0, len(body), size)]
    updates.append(forwarding.rest())
    asked = Request(model="asked", messages=(), dialect=row.dialect, stream=True)
    encoder = dialect(row.dialect).open_encoder(asked, Arrival())
    failed = [event for update in updates for event in update.events if type(event) is Failed]
    return b"".join([*(update.raw for update in updates), *(part for one in failed for part in encoder.feed(one))])


def _is_forwarded(recording: Recording) -> bool:
    language = dialect(provider_row(recording.file.split("/")[0]).dialect)
    return language.name in FORWARDED and language.stream_framing == recording.framing


@each_recording([one for one in CALLING if _is_forwarded(one)], by_day=0.05)
def test_a_stream_that_is_cut_ends_no_call_that_is_not_complete_where_it_is_forwarded(recording: Recording) -> None:
    folder = recording.file.split("/")[0]
    client = provider_row(folder).dialect
    for place in places(recording):
        events, _ = read(recording, [recording.body[:place]])
        ended = [one for arguments in calls_of(events, ended=True).values() for one in arguments]
        allowed = [json.loads(one) for one in ended if one.startswith("{")]
        COVERED["cuts of a call that is forwarded"] += 1
        try:
            found = executed(client, given_on(folder, recording.body[:place]))
        except STRANGE:
            found = []
        except json.JSONDecodeError:
            assert client == "openai_chat", f"cut at {place}, a call is ended that is no JSON"
            found = []
        for _, arguments in found:
            assert arguments in allowed, f"cut at {place}, a program would execute {arguments}"


@pytest.mark.parametrize("recording", [one for one in CALLING if _is_forwarded(one) and one.root is OWN], ids=str)
def test_a_stream_that_is_complete_is_forwarded_as_it_came(recording: Recording) -> None:
    folder = recording.file.split("/")[0]
    for size in (0, 7):
        given = given_on(folder, recording.body, size=size)
        # Bardo adds the word that ends a stream where Chat's servers leave it out, and elsewhere it is behind the last event.
        assert _DONE.sub(b"", given) == _DONE.sub(b"", recording.body)


BEGUN: list[Event] = [ReplyStart(id="r", model="m"), ContentChunk(0, "I look."), ToolCallStart(1, "c1", "look")]
PIECES: dict[str, list[str]] = {
    "no arguments": [],
    "an empty object in place of arguments": ["{}"],
    "half of a text": ['{"path": "/etc', "/pass"],
    "an object without its end": ['{"path": "/etc/passwd"'],
}
FAILED = Failed(BrokenStream("the stream ended before its end", provider="p"))
OBJECTS = [name for name in EXECUTED if name not in ("openai_chat", "openai_responses")]


def passed(events: list[Event]) -> list[Event]:
    """Return events as the gateway gives them on."""
    calls = CallArguments()
    return [*calls.feed(events), *calls.finish()]


@pytest.mark.parametrize("client", EXECUTED)
@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES)
@pytest.mark.parametrize("order", ["the call ends first", "the finish comes first", "the call does not end"])
def test_a_reply_that_ends_by_its_length_inside_a_call_says_so_and_gives_no_call(
    client: str, pieces: list[str], order: str
) -> None:
    said: list[Event] = [*BEGUN, *(ToolCallChunk(1, piece) for piece in pieces)]
    end, finish = ToolCallEnd(1), Finish("length", "")
    ending: dict[str, list[Event]] = {
        "the call ends first": [end, finish],
        "the finish comes first": [finish, end],
        "the call does not end": [finish],
    }
    events = passed([*said, *ending[order]])
    assert [one.degradation.what for one in events if type(one) is Degraded] == ["tool_calls"]
    assert executed(client, written(client, events)) == []
    response = fold(events)
    assert response.finish.reason == "length"
    assert response.tool_calls == []
    whole = dialect(client).encode_response(response, Request(model="asked", messages=(), dialect=client))
    assert not any(empty in whole for empty in (b'"arguments":"{}"', b'"arguments":{}', b'"input":{}', b'"args":{}'))
    assert any(word in whole for word in (b"length", b"max_tokens", b"MAX_TOKENS", b"max_output_tokens", b"incomplete"))
    if client in OBJECTS:
        assert b"c1" not in whole


@pytest.mark.parametrize("client", EXECUTED)
@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES)
def test_a_reply_that_fails_inside_a_call_gives_no_call(client: str, pieces: list[str]) -> None:
    events = passed([*BEGUN, *(ToolCallChunk(1, piece) for piece in pieces), FAILED])
    assert executed(client, written(client, events)) == []


NATIVE = {
    "openai_chat": "openai-chat",
    "openai_responses": "openai-responses",
    "anthropic_messages": "anthropic-messages",
    "gemini": "gemini",
    "ollama": "ollama",
    "cohere": "cohere",
    "gemini_interactions": "gemini-interactions",
}
ENDS: dict[str, list[Event]] = {
    "nothing more": [],
    "an error": [Failed(BrokenStream("overloaded", provider="p"))],
    "its length": [Finish("length")],
    "a good reason": [Finish("tool_calls")],
}


@pytest.mark.parametrize("ending", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES)
@pytest.mark.parametrize("client", FORWARDED)
def test_a_providers_own_end_of_a_torn_call_is_not_forwarded(
    client: str, pieces: list[str], ending: list[Event]
) -> None:
    encoder = dialect(client).open_encoder(Request(model="m", messages=(), dialect=client, stream=True), Arrival())
    said: list[Event] = [*BEGUN, *(ToolCallChunk(1, piece) for piece in pieces), ToolCallEnd(1), *ending]
    body = b"".join(piece for event in said for piece in encoder.feed(event))
    if ending and type(ending[-1]) is Finish:
        body += b"".join(encoder.finish())
    nothing = not "".join(pieces).strip("{}")
    for size in (0, 1, 50):
        given = given_on(NATIVE[client], body, size=size)
        found = executed(client, given)
        assert nothing or b"_arguments.done" not in given
        whole = nothing and ending == ENDS["a good reason"]
        assert all(arguments == {} for _, arguments in found)
        assert bool(found) == whole, body


def test_an_item_that_its_provider_calls_incomplete_is_not_forwarded_as_the_end_of_a_call() -> None:
    torn = {"type": "function_call", "id": "f", "call_id": "c", "name": "add", "arguments": '{"x":48'}
    frames: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "r", "model": "m", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**torn, "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "f", "delta": '{"x":48'},
        {"type": "response.output_item.done", "output_index": 0, "item": {**torn, "status": "incomplete"}},
        {
            "type": "response.incomplete",
            "response": {"id": "r", "model": "m", "output": [], "incomplete_details": {"reason": "max_output_tokens"}},
        },
    ]
    told = [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in frames]
    assert given_on("openai-responses", b"".join(told)) == b"".join([*told[:3], told[4]])
    whole = [told[0], told[1], *(one.replace(b"48", b"48}") for one in told[2:4]), told[4]]
    assert given_on("openai-responses", b"".join(whole)) == b"".join(whole)


@pytest.mark.parametrize("status", ["completed", "in_progress", None])
@pytest.mark.parametrize("said", ['{"x":48', "", "{}", "null"])
def test_a_call_in_which_a_forwarded_reply_broke_off_is_called_incomplete_in_its_last_frame(
    said: str, status: str | None
) -> None:
    own = {} if status is None else {"status": status}
    first = {"type": "function_call", "id": "f", "call_id": "c", "name": "add", "arguments": "{}", **own}
    torn = {**first, "id": "g", "call_id": "d", "arguments": said}
    details = {"reason": "max_output_tokens"}
    frames: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "r", "model": "m", "output": []}},
        *(
            {"type": "response.output_item.added", "output_index": place, "item": {**item, "arguments": ""}}
            for place, item in enumerate((first, torn))
        ),
        {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "f", "delta": "{}"},
        {"type": "response.output_item.done", "output_index": 0, "item": first},
        {"type": "response.function_call_arguments.delta", "output_index": 1, "item_id": "g", "delta": said},
        {"type": "response.output_item.done", "output_index": 1, "item": torn},
        {"type": "response.incomplete", "response": {"id": "r", "model": "m", "output": [first, torn]}},
    ]
    frames[-1]["response"] |= {"status": "incomplete", "incomplete_details": details}
    body = b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in frames)
    for size in (0, 9):
        given = given_on("openai-responses", body, size=size)
        last = json.loads(given.rstrip().rpartition(b"data: ")[2])["response"]
        assert last == {**frames[-1]["response"], "output": [first, {**torn, "status": "incomplete"}]}
        assert [name for name, _ in executed("openai_responses", given)] == ["c"]


def _in_one_frame(client: str, calls: list[dict[str, Any]], *, finished: bool) -> tuple[bytes, bytes]:
    """Return a frame with a text and calls, and why the reply ended or another frame that says so."""
    if client == "ollama":
        message = {"role": "assistant", "content": "I look.", "tool_calls": [{"function": call} for call in calls]}
        end = {"done": True, "done_reason": "length", "prompt_eval_count": 3, "eval_count": 5}
        first: dict[str, Any] = {"model": "m", "message": message, "done": False, **(end if finished else {})}
        last: dict[str, Any] = {"model": "m", "message": {"role": "assistant", "content": ""}, **end}
        return json.dumps(first).encode() + b"\n", b"" if finished else json.dumps(last).encode() + b"\n"
    parts = [{"text": "I look."}, *({"functionCall": {"name": one["name"], "args": one["arguments"]}} for one in calls)]
    usage = {"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 5}}
    ended = {"finishReason": "MAX_TOKENS"}
    said = {"content": {"role": "model", "parts": parts}, "index": 0, **(ended if finished else {})}
    chunks = [{"candidates": [said], **usage}, {"candidates": [{"index": 0, **ended}], **usage}]
    first_frame, last_frame = (b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n" for chunk in chunks)
    return first_frame, b"" if finished else last_frame


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("finished", [True, False], ids=["with the finish", "before the finish"])
@pytest.mark.parametrize("client", ["gemini", "ollama"])
def test_a_torn_call_is_taken_out_of_a_frame_that_says_other_things_too(client: str, finished: bool, size: int) -> None:
    whole, torn = {"name": "look", "arguments": {"a": 1}}, {"name": "look", "arguments": {}}
    for calls, left in (([torn], []), ([whole, torn], [{"a": 1}]), ([whole], [{"a": 1}])):
        first, last = _in_one_frame(client, calls, finished=finished)
        given = given_on(NATIVE[client], first + last, size=size)
        assert [arguments for _, arguments in executed(client, given)] == left
        assert b"I look." in given
        assert b"MAX_TOKENS" in given or b'"length"' in given
        assert b"candidatesTokenCount" in given or b"eval_count" in given
        if torn not in calls:
            assert given == first + last


def test_a_torn_call_is_taken_out_of_chunks_in_other_forms() -> None:
    first, _ = _in_one_frame("gemini", [{"name": "look", "arguments": {}}], finished=True)
    chunk = first.removeprefix(b"data: ").strip()
    lines = b"".join(b"data: " + line + b"\n" for line in json.dumps(json.loads(chunk), indent=1).encode().split(b"\n"))
    for body in (lines + b"\n", b"data: [" + chunk + b"]\n\n"):
        given = given_on("gemini", body)
        assert b"functionCall" not in given
        assert b"I look." in given
        assert b"MAX_TOKENS" in given
    spoken = dialect("gemini").without_calls
    assert spoken is not None
    second = {"index": 1, "content": {"parts": [{"text": "b"}, {"functionCall": {"name": "look", "args": {}}}]}}
    both = json.dumps({"candidates": [*json.loads(chunk)["candidates"], second]}).encode()
    assert [len(one["content"]["parts"]) for one in json.loads(spoken(both, {1}))["candidates"]] == [2, 1]


def _given(answer: FakeReply, call: object) -> FakeReply:
    return answer


def test_a_whole_reply_that_ends_inside_a_call_is_not_forwarded_as_it_came() -> None:
    call = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
    message: dict[str, Any] = {
        "id": "r",
        "type": "message",
        "role": "assistant",
        "model": "m1",
        "content": [{"type": "text", "text": "I look."}, call],
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }
    for reason, calls in (("max_tokens", 0), ("tool_use", 1)):
        answer = reply("anthropic_messages", [json.dumps({**message, "stop_reason": reason}).encode()], stream=False)
        upstream = Scripted("anthropic_messages", partial(_given, answer))
        said = json.loads(upstream.ask("anthropic_messages", stream=False).body)
        assert said["stop_reason"] == reason
        assert len([one for one in said["content"] if one["type"] == "tool_use"]) == calls


@pytest.mark.parametrize("client", EXECUTED)
def test_a_call_that_waits_behind_an_open_one_is_not_written_after_a_failure(client: str) -> None:
    events: list[Event] = [
        *BEGUN, ToolCallChunk(1, '{"a":'),
        ToolCallStart(2, "c2", "look"), ToolCallChunk(2, '{"b":2}'), ToolCallEnd(2),
        FAILED,
    ]  # fmt: skip
    found = executed(client, written(client, passed(events)))
    assert [arguments for _, arguments in found] in ([], [{"b": 2}])


@pytest.mark.parametrize("client", EXECUTED)
def test_a_complete_call_of_a_reply_that_ends_by_its_length_is_given(client: str) -> None:
    events: list[Event] = [
        *BEGUN, ToolCallChunk(1, '{"a":1}'), ToolCallEnd(1),
        ToolCallStart(2, "c2", "look"), ToolCallChunk(2, '{"b":'), ToolCallEnd(2), Finish("length"),
    ]  # fmt: skip
    response = fold(passed(events))
    assert [call.arguments for call in response.tool_calls] == [{"a": 1}]
    if client != "openai_chat":
        assert [arguments for _, arguments in executed(client, written(client, passed(events)))] == [{"a": 1}]


@pytest.mark.parametrize("folder", ["anthropic-messages", "bedrock-converse", "openai-responses"])
def test_a_call_of_the_providers_own_tool_that_broke_off_is_left_out(folder: str) -> None:
    start: dict[str, dict[str, Any]] = {
        "anthropic-messages": {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        },
        "bedrock-converse": {
            "contentBlockIndex": 0,
            "start": {"toolUse": {"toolUseId": "s", "name": "web_search", "type": "server_tool_use"}},
        },
        "openai-responses": {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"type": "local_shell_call", "id": "s", "status": "in_progress", "action": {"command": ["rm"]}},
        },
    }
    decoder = dialect(provider_row(folder).dialect).open_decoder(provider_row(folder))
    data = json.dumps(start[folder]).encode()
    decoder.feed(Frame(event="contentBlockStart" if folder == "bedrock-converse" else "", data=data, raw=data))
    assert [type(one) for one in decoder.finish()] == [Failed]


@pytest.mark.parametrize("reason", ["stop", "tool_calls", "unknown"])
def test_a_call_without_arguments_of_a_reply_that_ends_well_has_an_empty_object(reason: FinishReason) -> None:
    for ending in ([ToolCallEnd(1), Finish(reason)], [Finish(reason), ToolCallEnd(1)], [ToolCallEnd(1)]):
        [call] = fold(passed([*BEGUN, *ending])).tool_calls
        assert (call.arguments, call.raw_arguments) == ({}, "{}")


def test_a_call_without_arguments_that_something_follows_is_complete() -> None:
    events: list[Event] = [*BEGUN, ToolCallEnd(1), ContentChunk(2, "and"), Finish("length")]
    given = passed(events)
    assert [call.arguments for call in fold(given).tool_calls] == [{}]
    assert given.index(ToolCallEnd(1)) < given.index(ContentChunk(2, "and"))


def test_free_text_is_cut_only_in_the_last_call() -> None:
    free = {"type": "custom"}
    events: list[Event] = [
        *BEGUN, BlockFields(1, "openai_chat", free), ToolCallChunk(1, "one"),
        ToolCallStart(2, "c2", "look"), BlockFields(2, "openai_chat", free), ToolCallChunk(2, "tw"),
        Finish("length"), ToolCallEnd(1), ToolCallEnd(2),
    ]  # fmt: skip
    given = passed(events)
    assert [one.block for one in given if type(one) is ToolCallEnd] == [1]


def test_an_error_inside_a_call_is_a_failure_and_nothing_follows_it() -> None:
    given = passed([*BEGUN, ToolCallChunk(1, '{"a'), Finish("error", "network_error"), ToolCallEnd(1)])
    assert [type(one) for one in given[-2:]] == [ToolCallChunk, Failed]


@pytest.mark.parametrize("reason", ["stop", "tool_calls", "unknown"])
@pytest.mark.parametrize("arguments", ['{"a": 1', '{"a": "x', '{"a": "x\ny', '{"a": -', '{"a": 1.', "[1,", "{"])
def test_a_reply_that_ends_well_inside_the_arguments_of_a_call_has_broken_off(
    arguments: str, reason: FinishReason
) -> None:
    end, finish, said = ToolCallEnd(1), Finish(reason), ToolCallChunk(1, arguments)
    for given in (passed([*BEGUN, said, end, finish]), passed([*BEGUN, said, finish, end])):
        assert type(given[-1]) is Failed
        assert not any(type(one) in (ToolCallEnd, Finish) for one in given)


@pytest.mark.parametrize("arguments", ["{'a': 1}", '{"a": 1}}', '{"a": "x\ny"}', '{"a": }', "[1]", "nul", "a text"])
def test_wrong_arguments_that_came_to_their_end_stay_as_the_model_wrote_them(arguments: str) -> None:
    [call] = fold(passed([*BEGUN, ToolCallChunk(1, arguments), ToolCallEnd(1), Finish("tool_calls")])).tool_calls
    assert (call.raw_arguments, call.malformed) == (arguments, True)

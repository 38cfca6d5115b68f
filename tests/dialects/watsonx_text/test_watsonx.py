"""Text generation of watsonx: recorded replies, what is written reads back, and requests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.streams.frames import Frame, WholeBody
from bardo.streams.sse import SseDecoder
from bardo.values.blocks import ImageBlock, TextBlock
from bardo.values.errors import (
    BrokenStream,
    CallerError,
    InvalidRequest,
    MalformedReply,
    UpstreamRefused,
    UpstreamTimeout,
)
from bardo.values.events import ContentChunk, Event, Extension, Failed, Finish, ReplyStart, UsageUpdate
from bardo.values.fold import fold
from bardo.values.request import Message, Request, Sampling, Tool
from bardo.values.response import Response
from bardo.values.usage import Usage
from bardo.values.wire import Arrival
from recordings import Recording, each_recording, rows

DIALECT = dialect("watsonx_text")
ROW = ProviderRow(id="watsonx", name="watsonx", dialect="watsonx_text")
REQUEST = Request(model="google/flan-ul2", messages=())
ALL = rows("watsonx")
each = each_recording(ALL)


def events_of(body: bytes, *, stream: bool) -> list[Event]:
    framing = SseDecoder() if stream else WholeBody()
    decoder = DIALECT.open_decoder(ROW)
    frames = [*framing.feed(body), *framing.finish()]
    return [*(event for frame in frames for event in decoder.feed(frame)), *decoder.finish()]


def read(body: bytes, *, stream: bool = False) -> Response:
    return fold(events_of(body, stream=stream), provider="watsonx")


def write_stream(events: list[Event]) -> bytes:
    encoder = DIALECT.open_encoder(REQUEST, Arrival())
    return b"".join([*(piece for event in events for piece in encoder.feed(event)), *encoder.finish()])


@each
def test_what_is_written_reads_back_whole_and_streamed(recording: Recording) -> None:
    whole = read(recording.body, stream=recording.stream)
    assert whole.error is None
    assert read(write_stream(events_of(recording.body, stream=recording.stream)), stream=True) == whole
    assert read(DIALECT.encode_response(whole, REQUEST)) == whole


@each
def test_text_counts_and_end_are_the_recorded_ones(recording: Recording) -> None:
    lines = recording.body.decode().splitlines()
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith(("data: ", "{"))]
    results = [chunk["results"][0] for chunk in chunks]
    response = read(recording.body, stream=recording.stream)
    assert response.text == "".join(result["generated_text"] for result in results)
    assert response.usage.input_tokens == results[0]["input_token_count"]
    assert response.usage.output_tokens == results[-1]["generated_token_count"]
    assert response.finish == Finish("stop", "eos_token")
    assert response.model == chunks[0]["model_id"]
    assert response.carried is not None
    assert response.carried.fields == {"system": chunks[0]["system"]}


@each_recording([one for one in ALL if one.stream])
def test_a_stream_that_is_cut_off_says_so(recording: Recording) -> None:
    response = read(recording.body[: recording.body.rindex(b"id: 12")], stream=True)
    assert isinstance(response.error, BrokenStream)
    assert response.text == "the sun is the most important star in the sky"


@each
def test_what_was_asked_is_written_as_it_was(recording: Recording) -> None:
    asked = recording.meta["request_body"]
    request = DIALECT.decode_request(json.dumps(asked).encode(), Arrival(stream=recording.stream))
    wire = DIALECT.encode_request(request, ROW)
    assert json.loads(wire.body) == asked
    assert wire.degraded == ()
    assert wire.path.startswith("text/generation_stream?" if recording.stream else "text/generation?")


def test_parameters_are_read_and_come_back() -> None:
    parameters = {
        "max_new_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 3,
        "random_seed": 1,
        "stop_sequences": ["x"],
        "decoding_method": "sample",
    }
    body = {"model_id": "m", "input": "hi", "project_id": "p", "parameters": parameters}
    request = DIALECT.decode_request(json.dumps(body).encode(), Arrival())
    assert request.sampling == Sampling(temperature=0.5, top_p=0.9, top_k=3, seed=1, stop=("x",))
    assert request.max_output_tokens == 9
    assert json.loads(DIALECT.encode_request(request, ROW).body) == body


def test_what_a_prompt_cannot_say_is_reported() -> None:
    request = Request(
        model="m",
        messages=(
            Message("system", (TextBlock("Be brief."),)),
            Message("user", (TextBlock("hi"), ImageBlock(url="u"))),
        ),
        tools=(Tool(name="f"),),
        dialect="openai_chat",
        extra={"logit_bias": {}},
    )
    wire = DIALECT.encode_request(request, ROW)
    assert json.loads(wire.body) == {"model_id": "m", "input": "Be brief.\n\nhi"}
    assert {one.what for one in wire.degraded} == {"messages.role", "image", "tools", "logit_bias"}


EVENTS: list[Event] = [
    ReplyStart(model="m", created=1_700_000_000),
    ContentChunk(0, "a"),
    ContentChunk(0, "b\n"),
    UsageUpdate(Usage(input_tokens=3, output_tokens=2)),
    Finish("length", "max_output_tokens"),
    Extension({"receipt": 1}),
]


def test_a_foreign_reply_says_the_same_whole_and_streamed() -> None:
    whole, streamed = read(DIALECT.encode_response(fold(EVENTS), REQUEST)), read(write_stream(EVENTS), stream=True)
    for told in (whole, streamed):
        assert (told.text, told.model, told.created) == ("ab\n", "m", 1_700_000_000)
        assert told.finish == Finish("length", "max_tokens")
        assert (told.usage.input_tokens, told.usage.output_tokens) == (3, 2)
        assert told.carried is not None
        assert told.carried.fields == {"bardo": {"receipt": 1}}


def test_several_results_are_several_choices() -> None:
    results = [
        {"generated_text": text, "generated_token_count": 1, "input_token_count": 4, "stop_reason": "max_tokens"}
        for text in "ab"
    ]
    response = read(json.dumps({"model_id": "m", "results": results}).encode())
    assert (response.text, response.alternatives[0].text, response.finish.reason) == ("a", "b", "length")
    assert (response.usage.input_tokens, response.usage.output_tokens) == (4, 2)


def test_a_reply_in_the_chat_form_is_read() -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
    response = read(json.dumps({"id": "c", "choices": [choice]}).encode())
    assert (response.text, response.finish.reason, response.error) == ("hi", "stop", None)


REFUSED = {"errors": [{"code": "authentication_token_expired", "message": "expired"}], "trace": "t", "status_code": 401}


def test_errors_are_read_and_written() -> None:
    inside = read(json.dumps(REFUSED).encode()).error
    answered = DIALECT.decode_error(401, json.dumps(REFUSED).encode(), {}, "watsonx")
    for error in (inside, answered):
        assert isinstance(error, UpstreamRefused)
        assert (error.status, error.message, error.upstream_code) == (401, "expired", "authentication_token_expired")
    assert DIALECT.decode_error(503, b"<html>", {"retry-after": "2"}, "watsonx").message == "<html>"
    assert json.loads(DIALECT.encode_error(UpstreamTimeout("slow"))) == {
        "errors": [{"code": "upstream_timeout", "message": "slow"}],
        "status_code": 504,
    }
    stream = write_stream([ContentChunk(0, "a"), Failed(UpstreamTimeout("slow")), ContentChunk(0, "b")])
    told = read(stream, stream=True)
    assert told.text == "a"
    assert isinstance(told.error, UpstreamRefused)


@pytest.mark.parametrize("body", [b"[]", b"no", b'{"results":[1]}', b'{"a":1}'], ids=str)
def test_what_is_no_reply_is_malformed(body: bytes) -> None:
    assert isinstance(read(body).error, MalformedReply)


@pytest.mark.parametrize(
    "body", [b"{}", b'{"model_id":"m"}', b'{"model_id":"m","input":1}', b'{"model_id":1,"input":""}']
)
def test_wrong_requests_are_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        DIALECT.decode_request(body, Arrival())


LEAVES = some.none() | some.booleans() | some.integers() | some.text(max_size=5) | some.just("not_finished")
NAMES = (
    "results",
    "generated_text",
    "stop_reason",
    "generated_token_count",
    "errors",
    "parameters",
    "input",
    "model_id",
)
VALUES = some.recursive(
    LEAVES,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.sampled_from(NAMES), inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(some.lists(some.binary(max_size=40) | VALUES.map(lambda value: json.dumps(value).encode()), max_size=4))
def test_whatever_arrives_is_read_to_an_end(frames: list[bytes]) -> None:
    decoder = DIALECT.open_decoder(ROW)
    events = [*(event for data in frames for event in decoder.feed(Frame(data))), *decoder.finish()]
    assert [event for event in events if isinstance(event, Failed)] in ([], events[-1:])
    assert write_stream(events)


@settings(max_examples=100, deadline=None)
@given(
    some.binary(max_size=40)
    | some.dictionaries(some.sampled_from(NAMES), VALUES).map(lambda one: json.dumps(one).encode())
)
def test_whatever_is_asked_is_read_or_refused(body: Any) -> None:
    try:
        request = DIALECT.decode_request(body, Arrival())
    except CallerError:
        return
    assert json.loads(DIALECT.encode_request(request, ROW).body)

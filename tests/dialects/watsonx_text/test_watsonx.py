"""Text generation of watsonx: recorded replies and requests."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.streams.frames import Frame, WholeBody
from bardo.streams.sse import SseDecoder
from bardo.values.blocks import ImageBlock, TextBlock
from bardo.values.errors import BrokenStream, MalformedReply, Unsupported, UpstreamRefused
from bardo.values.events import Event, Failed, Finish
from bardo.values.fold import fold
from bardo.values.request import Message, Request, Sampling, Tool
from bardo.values.response import Response
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
    whole = read(recording.body, stream=True)
    response = read(recording.body[: recording.body.rindex(b"id: ")], stream=True)
    assert isinstance(response.error, BrokenStream)
    assert whole.text.startswith(response.text)
    assert response.text


@each
def test_what_was_asked_is_written_as_it_was(recording: Recording) -> None:
    asked = recording.meta["request_body"]
    scope = {name: asked[name] for name in ("project_id", "space_id") if name in asked}
    row = msgspec.structs.replace(ROW, scope=scope)
    request = Request(
        model=asked["model_id"],
        messages=(Message("user", (TextBlock(asked["input"]),)),),
        max_output_tokens=asked.get("parameters", {}).get("max_new_tokens"),
        stream=recording.stream,
    )
    wire = DIALECT.encode_request(request, row)
    assert json.loads(wire.body) == asked
    assert wire.degraded == ()
    assert wire.path.startswith("text/generation_stream?" if recording.stream else "text/generation?")


def test_sampling_is_written_as_parameters() -> None:
    sampling = Sampling(temperature=0.5, top_p=0.9, top_k=3, seed=1, stop=("x",))
    asked = Request(model="m", messages=(Message("user", (TextBlock("hi"),)),), sampling=sampling, max_output_tokens=9)
    assert json.loads(DIALECT.encode_request(asked, ROW).body)["parameters"] == {
        "max_new_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 3,
        "random_seed": 1,
        "stop_sequences": ["x"],
    }


def test_no_client_speaks_it() -> None:
    with pytest.raises(Unsupported):
        DIALECT.decode_request(b"{}", Arrival())


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


def test_errors_are_read() -> None:
    inside = read(json.dumps(REFUSED).encode()).error
    answered = DIALECT.decode_error(401, json.dumps(REFUSED).encode(), {}, "watsonx")
    for error in (inside, answered):
        assert isinstance(error, UpstreamRefused)
        assert (error.status, error.message, error.upstream_code) == (401, "expired", "authentication_token_expired")
    assert DIALECT.decode_error(503, b"<html>", {"retry-after": "2"}, "watsonx").message == "<html>"


@pytest.mark.parametrize("body", [b"[]", b"no", b'{"results":[1]}', b'{"a":1}'], ids=str)
def test_what_is_no_reply_is_malformed(body: bytes) -> None:
    assert isinstance(read(body).error, MalformedReply)


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

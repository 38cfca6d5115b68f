"""A secret that a provider quotes reaches neither the client nor the log, wherever in a reply it stands and however it is written."""

from __future__ import annotations

import json
import logging
from base64 import b64encode
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from bardo.adapters.net.fake import FakeReply
from bardo.dialects import dialect
from bardo.streams.eventstream import encode_event
from bardo.surfaces.gateway import generate
from bardo.values.events import ContentChunk, Event, Finish, ReplyStart, UsageUpdate
from bardo.values.fold import fold
from bardo.values.request import Request
from bardo.values.usage import Usage
from bardo.values.wire import Arrival
from support.scripted import KEY, Scripted, reply
from support.talk import CLIENTS, Answer
from surfaces.gateway.cells import whole_and_streamed

PROVIDERS = (
    "openai_chat",
    "openai_responses",
    "anthropic_messages",
    "gemini",
    "ollama",
    "cohere",
    "bedrock_converse",
    "gemini_interactions",
)
each_client = pytest.mark.parametrize("client", CLIENTS)
each_provider = pytest.mark.parametrize("provider", PROVIDERS)

WRITTEN: dict[str, str] = {
    "as it is": KEY,
    "URL-encoded": quote(KEY, safe=""),
    "URL-encoded in small letters": quote(KEY, safe="")
    .replace("%2F", "%2f")
    .replace("%2B", "%2b")
    .replace("%3D", "%3d"),
    "JSON-escaped": json.dumps(KEY)[1:-1].replace("/", r"\/"),
    "base64": b64encode(KEY.encode()).decode(),
    "base64 with a name": b64encode(f"name:{KEY}".encode()).decode(),
    "base64 with a longer name": b64encode(f"names:{KEY}:x".encode()).decode(),
    "base64 at the third place": b64encode(f"ab:cd{KEY}".encode()).decode(),
}
each_form = pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)


def error_object(provider: str, message: str) -> Any:
    """Return an error as the provider writes it, in a body or an event."""
    match provider:
        case "anthropic_messages":
            return {"type": "error", "error": {"type": "authentication_error", "message": message}}
        case "gemini" | "gemini_interactions":
            details = [{"@type": "x/ErrorInfo", "reason": message, "metadata": {"key": message}}]
            return {"error": {"code": 401, "message": message, "status": "UNAUTHENTICATED", "details": details}}
        case "openai_responses":
            return {"error": {"type": message, "code": message, "param": message, "message": message}}
        case "ollama":
            return {"error": message}
        case "cohere" | "bedrock_converse":
            return {"message": message}
    return {"error": {"message": message, "type": message, "code": message, "param": message}}


def error_event(provider: str, message: str) -> bytes:
    """Return an error in the middle of a stream."""
    found = error_object(provider, message)
    match provider:
        case "anthropic_messages":
            return b"event: error\ndata: " + msgspec.json.encode(found) + b"\n\n"
        case "openai_responses":
            failed = {"type": "response.failed", "response": {"id": "r", "status": "failed", **found}}
            return b"event: response.failed\ndata: " + msgspec.json.encode(failed) + b"\n\n"
        case "ollama":
            return msgspec.json.encode(found) + b"\n"
        case "cohere":
            ended = {"type": "message-end", "delta": {"finish_reason": "ERROR", "error": message}}
            return b"data: " + msgspec.json.encode(ended) + b"\n\n"
        case "bedrock_converse":
            headers = {":message-type": "exception", ":exception-type": "throttlingException"}
            return encode_event(msgspec.json.encode(found), headers)
        case "gemini_interactions":
            return b"event: error\ndata: " + msgspec.json.encode({"event_type": "error", **found}) + b"\n\n"
    return b"data: " + msgspec.json.encode(found) + b"\n\n"


def beginning(provider: str) -> list[bytes]:
    """Return the first pieces of a good stream."""
    encoder = dialect(provider).open_encoder(Request(model="m1", messages=(), stream=True), Arrival())
    events: list[Event] = [ReplyStart(id="r1", model="m1"), ContentChunk(0, "Hello"), ContentChunk(0, " world")]
    return [piece for event in events for piece in encoder.feed(event)]


def scene(provider: str, place: str, message: str, *, stream: bool) -> Callable[[Any], FakeReply]:
    """Return how a provider answers that quotes `message` at `place`."""
    body = msgspec.json.encode(error_object(provider, message))
    match place:
        case "a refusal":
            chunks, status = [body], 401
        case "a body of status 200":
            chunks, status = [body], 200
        case "the first event":
            chunks, status = [error_event(provider, message)], 200
        case _:
            chunks, status = [*beginning(provider), error_event(provider, message)], 200
    streamed = stream and place not in ("a refusal", "a body of status 200")
    return lambda _: reply(provider, chunks, stream=streamed, status=status)


def holds_no_secret(gateway: Scripted, answer: Answer, *forms: str) -> None:
    texts = [answer.text, str(dict(answer.headers)), *(repr(row) for row in gateway.rows)]
    for form in (KEY, KEY[3:], *forms):
        assert not any(form in text for text in texts), form


PLACES = ("a refusal", "a body of status 200")
STREAMED_PLACES = (*PLACES, "the first event", "the middle of a stream")


@each_client
@each_provider
@pytest.mark.parametrize(
    ("place", "stream"), [*((place, False) for place in PLACES), *((place, True) for place in STREAMED_PLACES)]
)
def test_a_quoted_key_is_taken_out(provider: str, client: str, place: str, stream: bool) -> None:
    message = f"Incorrect API key provided: {KEY}. You can find yours in the console."
    gateway = Scripted(provider, scene(provider, place, message, stream=stream))
    answer = gateway.ask(client, stream=stream)
    holds_no_secret(gateway, answer)
    (row,) = gateway.rows
    assert row.outcome in ("error", "broken")
    assert "[key]" in answer.text
    assert "[key]" in str(row.error_message)


@each_form
@pytest.mark.parametrize("place", ["a refusal", "the middle of a stream"])
def test_it_is_found_however_it_is_written(written: str, place: str) -> None:
    gateway = Scripted("openai_chat", scene("openai_chat", place, f"no: {written}, not", stream=True))
    answer = gateway.ask("anthropic_messages", stream=True)
    holds_no_secret(gateway, answer, written)
    assert "no: [key], not" in answer.text


@pytest.mark.parametrize("masked", ["sk-…cdef", "sk-proj-Rec***def=", "sk-proj-…", "sk-p**************ef="])
def test_a_masked_quote_stays(masked: str) -> None:
    gateway = Scripted("openai_chat", scene("openai_chat", "a refusal", f"wrong key {masked}", stream=False))
    assert masked in gateway.ask("openai_chat", stream=False).json["error"]["message"]


OTHERS = {
    "a secret header": "hunter2-header-secret",
    "a password in the address": "pass%20word-of-url",
    "a query of the address": "query-secret-77",
    "the client's own key": "client-key-of-the-caller",
    "somebody's OpenAI key": "sk-svcacct-abcdefghij0123456789",
    "somebody's Google key": "AIzaSyA0123456789abcdefghijklmnopqrstu",
    "somebody's AWS key": "AKIAIOSFODNN7EXAMPLE",
    "somebody's Groq key": "gsk_abcdefghij0123456789ABCDEF",
}


@pytest.mark.parametrize("secret", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("place", ["a refusal", "the middle of a stream"])
def test_other_secrets_are_taken_out_too(secret: str, place: str) -> None:
    shown = secret.replace("%20", " ")
    gateway = Scripted(
        "openai_chat",
        scene("openai_chat", place, f"quoted: {shown}", stream=True),
        headers={"x-portkey-token": "Bearer hunter2-header-secret", "x-team": "blue"},
        base_url="http://user:pass%20word-of-url@provider.invalid/v1?api_key=query-secret-77",
    )
    answer = gateway.ask("openai_chat", stream=True, headers={"authorization": "Bearer client-key-of-the-caller"})
    holds_no_secret(gateway, answer, shown)
    assert "quoted: [key]" in answer.text


@pytest.mark.parametrize(
    ("name", "value", "is_shown"),
    [("x-team", "blue", True), ("x-title", "blue-team-2026", True), ("x-team", "blue-team-2026", False)],
)
def test_a_configured_header_is_no_secret_where_its_name_or_its_value_says_so(
    name: str, value: str, is_shown: bool
) -> None:
    gateway = Scripted(
        "openai_chat", scene("openai_chat", "a refusal", f"team {value} unknown", stream=False), headers={name: value}
    )
    assert (f"team {value} unknown" in gateway.ask("openai_chat", stream=False).text) is is_shown


@each_client
def test_a_client_that_sends_its_key_as_a_model_does_not_find_it_in_the_log(client: str) -> None:
    gateway = Scripted("openai_chat", lambda _: reply("openai_chat", [], stream=False))
    key = "caller-secret-0123456789"
    body: dict[str, Any] = {"model": key, "messages": [], "input": "x", "max_tokens": 5, "contents": []}
    paths = {
        "openai_chat": "/v1/chat/completions",
        "openai_responses": "/v1/responses",
        "gemini": f"/v1beta/models/{key}:generateContent",
    }
    answer = gateway.post(paths.get(client, "/v1/messages"), body, {"x-api-key": key})
    assert key not in answer.text
    assert all(key not in str(row.error_message) for row in gateway.rows)


def _good(provider: str, quoted: str, *, in_answer: str = "Hello") -> list[bytes]:
    """Return a stream whose warning quotes a key."""
    chunk = {"id": "c", "object": "chat.completion.chunk", "model": "m1", "warnings": [f"old key {quoted}"]}
    text = {**chunk, "choices": [{"index": 0, "delta": {"role": "assistant", "content": in_answer}}]}
    plain = {"id": "c", "model": "m1", "choices": [{"index": 0, "delta": {"content": "!"}}]}
    end = {
        **chunk,
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "note": quoted},
    }
    return [*(b"data: " + msgspec.json.encode(one) + b"\n\n" for one in (text, plain, end)), b"data: [DONE]\n\n"]


@each_client
@pytest.mark.parametrize("cut", [None, 40, 7], ids=["whole frames", "cut", "cut small"])
def test_a_warning_of_a_good_stream_gives_no_key_away(client: str, cut: int | None) -> None:
    raw = b"".join(_good("openai_chat", KEY))
    chunks = [raw[at : at + cut] for at in range(0, len(raw), cut)] if cut else _good("openai_chat", KEY)
    gateway = Scripted("openai_chat", lambda _: reply("openai_chat", chunks, stream=True))
    answer = gateway.ask(client, stream=True)
    holds_no_secret(gateway, answer)
    assert "Hello" in answer.text
    assert gateway.rows[0].outcome == "ok"


@each_client
def test_a_warning_of_a_good_whole_reply_gives_no_key_away(client: str) -> None:
    message = {"role": "assistant", "content": "Hello"}
    body = {
        "id": "c",
        "model": "m1",
        "warnings": [KEY],
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    gateway = Scripted("openai_chat", lambda _: reply("openai_chat", [msgspec.json.encode(body)], stream=False))
    answer = gateway.ask(client, stream=False)
    holds_no_secret(gateway, answer)
    assert "Hello" in answer.text


@each_client
@whole_and_streamed
def test_what_the_model_wrote_is_never_changed(client: str, stream: bool) -> None:
    said = f"OPENAI_API_KEY={KEY}"
    events: list[Event] = [
        ReplyStart(id="r1", model="m1"),
        ContentChunk(0, said),
        UsageUpdate(Usage()),
        Finish("stop", "stop"),
    ]
    request = Request(model="m1", messages=(), stream=stream)
    if stream:
        encoder = dialect("openai_chat").open_encoder(request, Arrival())
        chunks = [piece for event in events for piece in encoder.feed(event)] + [*encoder.finish()]
    else:
        chunks = [dialect("openai_chat").encode_response(fold(events), request)]
    gateway = Scripted("openai_chat", lambda _: reply("openai_chat", chunks, stream=stream))
    answer = gateway.ask(client, stream=stream)
    assert KEY in answer.text or json.dumps(KEY)[1:-1].replace("/", r"\/") in answer.text


def test_a_line_of_the_log_gives_no_key_away(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = Scripted("openai_chat", lambda _: reply("openai_chat", [], stream=False))

    def fail(*_: object) -> None:
        raise ValueError(f"cannot read {KEY}")

    with monkeypatch.context() as patch, caplog.at_level(logging.DEBUG):
        patch.setattr(generate, "with_headers", fail)
        assert gateway.ask("openai_chat", stream=False).status == 500
    shown = "\n".join(logging.Formatter().format(record) for record in caplog.records)
    assert "cannot read [key]" in shown
    assert KEY not in shown

"""Where a reply begins, where it ends, and what of its bytes a client of the same dialect gets."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import msgspec
import pytest

from bardo.adapters.config.settings import ProviderEntry
from bardo.adapters.net.fake import FakeReply
from bardo.call import upstream
from bardo.call.reply import LiveReply
from bardo.replies.forwarding import ReplyUpdate
from bardo.values.errors import BrokenStream, MalformedReply, UpstreamRefused, UpstreamTimeout
from bardo.values.events import ContentChunk, Failed
from call.test_runner import DONE, JSON, SSE, STREAM, WHOLE, Bench, chunk, failed, opened, request
from support.upstream_replies import REPLIES, TEXT

QUIET = {
    "a comment": b": hello\n\n",
    "an empty line": b"\n\n",
    "a retry line": b"retry: 3000\n\n",
    "a byte order mark": b"\xef\xbb\xbf",
    "an empty event": b"data:\n\n",
    "many comments": b": hello\n\n" * 5000,
}
USAGE = b'data: {"id":"c1","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}\n\n'


def texts(steps: list[ReplyUpdate]) -> str:
    return "".join(one.text for step in steps for one in step.events if isinstance(one, ContentChunk))


def raw(steps: list[ReplyUpdate]) -> bytes:
    return b"".join(step.raw for step in steps)


def read(chunks: list[Any], headers: dict[str, str] = SSE, **asked: Any) -> tuple[LiveReply, list[ReplyUpdate]]:
    return opened(Bench({"one": FakeReply(headers=headers, chunks=chunks)}), request(**asked))


@pytest.mark.parametrize("quiet", QUIET.values(), ids=QUIET)
@pytest.mark.parametrize(
    "end", [[BrokenStream("cut")], [UpstreamTimeout("stalled")], []], ids=["cut", "stalled", "over"]
)
def test_what_is_no_event_does_not_end_failover(quiet: bytes, end: list[Any]) -> None:
    bench = Bench(
        {
            "first": FakeReply(headers=SSE, chunks=[quiet, *end]),
            "second": FakeReply(headers=SSE, chunks=[*STREAM, DONE]),
        }
    )
    live, steps = opened(bench, request())
    assert live.attempt.target.provider.id == "second"
    assert (texts(steps), raw(steps)) == ("Four.", b"".join([*STREAM, DONE]))


@pytest.mark.parametrize("half", [b'data: {"id":"c1","cho', b"data: ", b": alive", b'event: x\ndata: {"a"'])
@pytest.mark.parametrize("end", [[BrokenStream("cut")], []], ids=["cut", "over"])
def test_an_error_does_not_follow_half_a_frame(half: bytes, end: list[Any]) -> None:
    live, steps = read([STREAM[0], STREAM[1], half, *end])
    assert raw(steps) == STREAM[0] + STREAM[1]
    assert isinstance(live.response().error, BrokenStream)
    assert isinstance(steps[-1].events[-1], Failed)


WITHOUT_END = {
    "over": STREAM,
    "over in the middle of an empty line": [*STREAM[:-1], STREAM[-1].rstrip(b"\n")],
    "cut behind the finish": [*STREAM, BrokenStream("cut")],
}


@pytest.mark.parametrize("chunks", WITHOUT_END.values(), ids=WITHOUT_END)
def test_the_client_of_a_forwarded_stream_gets_the_end_that_its_provider_left_out(chunks: list[Any]) -> None:
    live, steps = read(chunks)
    assert live.forwarded
    assert live.response().error is None
    assert raw(steps) == b"".join([*STREAM, DONE])


@pytest.mark.parametrize("line_end", [b"\n\n", b"\n", b""])
def test_an_end_that_the_provider_wrote_is_not_written_again(line_end: bytes) -> None:
    _, steps = read([*STREAM, DONE.rstrip() + line_end])
    assert raw(steps) == b"".join(STREAM) + DONE.rstrip() + line_end


def test_a_forwarded_stream_that_broke_does_not_end_as_if_it_were_whole() -> None:
    _, steps = read(STREAM[:2])
    assert raw(steps) == b"".join(STREAM[:2])


BROKEN = {
    "no UTF-8": b"F\xff\xfeour",
    "a lone surrogate": b"F\\ud800our",
    "a control character": b"F\x01our",
    "a tab": b"F\tour",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("place", [1, 2])
def test_a_forwarded_frame_that_a_strict_reader_refuses_is_mended_and_reported(text: bytes, place: int) -> None:
    frames = [*STREAM, DONE]
    frames[place] = chunk({"content": "here"}).replace(b"here", text)
    live, steps = read(frames)
    said = raw(steps).decode()
    for line in said.split("\n\n"):
        if line and line != "data: [DONE]":
            msgspec.json.decode(line.removeprefix("data: "))
    assert "our" in texts(steps)
    assert live.forwarded
    assert [one.what for one in live.response().degraded] == ["reply.bytes"]


def test_a_number_that_is_none_is_mended_in_a_forwarded_frame() -> None:
    frames = [*STREAM, DONE]
    frames[1] = frames[1].replace(b'"id"', b'"score":NaN,"id"')
    live, steps = read(frames)
    assert b"NaN" not in raw(steps)
    assert b'"score":null' in raw(steps)
    assert [one.what for one in live.response().degraded] == ["reply.bytes"]


def test_a_whole_forwarded_body_is_mended_too() -> None:
    live, steps = read([WHOLE.replace(b"Four", b"F\xffour")], JSON, stream=False)
    assert live.forwarded
    assert msgspec.json.decode(raw(steps))["choices"][0]["message"]["content"] == "F\ufffdour."
    assert [one.what for one in live.response().degraded] == ["reply.bytes"]


@pytest.mark.parametrize("dialect", REPLIES)
@pytest.mark.parametrize("put", [b"\xff\xfe", b"\\ud800", b"\x01"], ids=["no UTF-8", "surrogate", "control"])
def test_one_bad_byte_costs_no_reply_and_is_reported_once(dialect: str, put: bytes) -> None:
    if dialect == "bedrock_converse":
        pytest.skip("its frames have checksums")
    upstream = REPLIES[dialect]
    body = upstream.stream.replace(b"ur.", put + b"ur.")
    live, steps = read_from(dialect, [body])
    assert texts(steps).endswith("ur.")
    assert live.response().error is None
    assert [one.what for one in live.response().degraded].count("reply.bytes") == 1


def read_from(dialect: str, chunks: list[Any], **asked: Any) -> tuple[LiveReply, list[ReplyUpdate]]:
    upstream = REPLIES[dialect]
    bench = Bench({"one": FakeReply(headers={"content-type": upstream.content_type}, chunks=chunks)})
    one = ProviderEntry(id="one", preset=upstream.preset, base_url="http://upstream", models=("m",), api_key_env="KEY")
    bench.configure(one)
    return opened(bench, request(**asked))


@pytest.mark.parametrize("dialect", [name for name, one in REPLIES.items() if one.says_end])
@pytest.mark.parametrize("language", ["openai_chat", "anthropic_messages"])
def test_a_reply_ends_at_its_own_last_event(dialect: str, language: str) -> None:
    never = asyncio.Event()
    live, steps = read_from(dialect, [*REPLIES[dialect].frames, never], language=language)
    reply = live.response()
    assert (texts(steps), reply.error, reply.usage.output_tokens) == (TEXT, None, 3)


@pytest.mark.parametrize("dialect", REPLIES)
def test_a_break_behind_the_end_of_a_reply_is_no_failure(dialect: str) -> None:
    live, steps = read_from(dialect, [*REPLIES[dialect].frames, BrokenStream("cut")])
    assert (texts(steps), live.response().error) == (TEXT, None)


def test_usage_behind_the_finish_reason_is_read() -> None:
    live, steps = read([*STREAM, USAGE, DONE], stream_options={"include_usage": True})
    assert live.response().usage.output_tokens == 3
    assert raw(steps) == b"".join([*STREAM, USAGE, DONE])


@pytest.mark.parametrize("end", [BrokenStream("cut"), UpstreamTimeout("stalled")])
def test_a_break_between_the_finish_reason_and_the_end_is_no_failure(end: Any) -> None:
    live, _ = read([*STREAM, end])
    assert (live.response().text, live.response().error) == ("Four.", None)


def test_a_server_that_stays_open_behind_the_finish_reason_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "_BEHIND_THE_END_SECONDS", 0.01)
    live, _ = read([*STREAM, USAGE, asyncio.Event()])
    assert (live.response().text, live.response().error) == ("Four.", None)
    assert live.response().usage.output_tokens == 3


@pytest.mark.parametrize("body", [[DONE], [USAGE, DONE], [b": hello\n\n", DONE], [chunk({"role": "assistant"}), DONE]])
@pytest.mark.parametrize("language", ["openai_chat", "anthropic_messages"])
def test_an_end_without_an_answer_is_no_success(body: list[bytes], language: str) -> None:
    bench = Bench(
        {"first": FakeReply(headers=SSE, chunks=body), "second": FakeReply(headers=SSE, chunks=[*STREAM, DONE])}
    )
    live, _ = opened(bench, request(language=language))
    if live.attempt.target.provider.id == "first":
        assert "is empty" in str(live.response().error)
    else:
        assert "is empty" in live.response().degraded[0].why


PAGE = b"<!DOCTYPE html><html>\n<title>Sign in</title>\x1b[31m" + b"<p>" * 2000
FOREIGN = {
    "a page": (PAGE, "<title>Sign in</title>"),
    "text": (b"no healthy upstream\r\n", "no healthy upstream"),
    "a compressed body": (gzip.compress(b"{}", mtime=0), "\ufffd"),
    "binary": (b"\x89PNG\r\n\x1a\n\0\0", "PNG"),
}


@pytest.mark.parametrize(("body", "quoted"), FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("dialect", REPLIES)
@pytest.mark.parametrize("stream", [True, False])
def test_what_is_no_reply_is_quoted_and_its_sender_named(dialect: str, body: bytes, quoted: str, stream: bool) -> None:
    upstream = REPLIES[dialect]
    kind = upstream.content_type if stream else "application/json"
    bench = Bench({"one": FakeReply(headers={"content-type": kind}, chunks=[body])})
    one = ProviderEntry(id="one", preset=upstream.preset, base_url="http://upstream", models=("m",), api_key_env="KEY")
    bench.configure(one)
    error = failed(bench, request(stream=stream))
    assert isinstance(error, MalformedReply)
    assert error.provider == "one"
    assert quoted in error.message
    assert error.message.isprintable()
    assert len(error.message) < 600
    if stream:
        assert "one" in error.message


@pytest.mark.parametrize("dialect", REPLIES)
@pytest.mark.parametrize("stream", [True, False])
def test_an_error_under_the_content_type_of_a_stream_is_the_providers_error(dialect: str, stream: bool) -> None:
    upstream = REPLIES[dialect]
    bench = Bench({"one": FakeReply(headers={"content-type": upstream.content_type}, chunks=[upstream.error])})
    one = ProviderEntry(id="one", preset=upstream.preset, base_url="http://upstream", models=("m",), api_key_env="KEY")
    bench.configure(one)
    error = failed(bench, request(stream=stream))
    assert isinstance(error, UpstreamRefused)
    assert "The engine is overloaded" in error.message


@pytest.mark.parametrize("dialect", REPLIES)
@pytest.mark.parametrize("stream", [True, False])
def test_a_reply_in_the_other_form_than_its_head_says_is_read(dialect: str, stream: bool) -> None:
    upstream = REPLIES[dialect]
    body, kind = (upstream.whole, upstream.content_type) if stream else (upstream.stream, "application/json")
    bench = Bench({"one": FakeReply(headers={"content-type": kind}, chunks=[body])})
    one = ProviderEntry(id="one", preset=upstream.preset, base_url="http://upstream", models=("m",), api_key_env="KEY")
    bench.configure(one)
    live, _ = opened(bench, request(stream=stream))
    assert (live.response().text, live.response().error) == (TEXT, None)
    if dialect != "ollama" or not stream:
        assert not live.forwarded


def test_a_page_that_says_so_is_quoted() -> None:
    bench = Bench({"one": FakeReply(headers={"content-type": "text/html"}, chunks=[PAGE, PAGE])})
    error = failed(bench, request())
    assert "“Sign in”" in error.message
    assert error.message.isprintable()

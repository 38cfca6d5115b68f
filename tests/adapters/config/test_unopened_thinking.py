"""Replies that may begin inside thinking, live: what a client gets whole and streamed, and what later calls to the server learn of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from bardo.adapters.config.settings import LogSettings, ProviderEntry, ReasoningSettings, Settings
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.call.open import open_call
from bardo.dialects import dialect
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival
from bardo.wiring import assemble

THOUGHT, CLOSED, ANSWER = "First I multiply.", "</think>\n\n", "1161"
OPENED = f"{THOUGHT}{CLOSED}{ANSWER}"
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
TYPED = {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA, "strict": True}}}
OFF, LOW = {"reasoning_effort": "none"}, {"reasoning_effort": "low"}


class Heard(msgspec.Struct, frozen=True):
    """One reply, and which kinds of events came before the last piece of it was there."""

    response: Response
    early: frozenset[str]

    @property
    def parts(self) -> tuple[str | None, str]:
        return self.response.reasoning.content, self.response.text


def talk(
    preset: str,
    model: str,
    replies: Sequence[tuple[str, str]],
    *,
    stream: bool,
    bodies: Sequence[Mapping[str, Any]] = ({},),
) -> list[Heard]:
    """Ask one server once for each reply: its text, and why it ended. `bodies` are what is asked besides, the last for all that follow."""
    waiting = iter(replies)
    write = _ollama if preset == "ollama" else _chat
    entry = ProviderEntry(id="lab", preset=preset, base_url="http://127.0.0.1:9/v1", models=(model,))
    silent = ReasoningSettings(introspect=False)
    settings = Settings(providers=(entry,), log=LogSettings(enabled=False), reasoning=silent)
    transport = FakeTransport(lambda _: write(*next(waiting), stream=stream))
    asked = [_request(model, stream, bodies[min(place, len(bodies) - 1)]) for place in range(len(replies))]
    return asyncio.run(_heard(settings, transport, asked))


def _request(model: str, stream: bool, further: Mapping[str, Any]) -> Request:
    turns = [{"role": "user", "content": "?"}]
    body = {"model": f"lab/{model}", "messages": turns, "stream": stream, "bardo": {"include": ["receipt"]}, **further}
    return dialect("openai_chat").decode_request(json.dumps(body).encode(), Arrival())


async def _heard(settings: Settings, transport: FakeTransport, asked: Sequence[Request]) -> list[Heard]:
    assembly = assemble(settings, transport=transport, environment={})
    heard = []
    for request in asked:
        live = await open_call(assembly.services, request, may_forward=True)
        early: set[str] = set()
        async for step in live.updates():
            if live.response().finish.reason == "unknown":
                early |= {type(event).__name__ for event in step.events}
        await live.close()
        heard.append(Heard(live.response(), frozenset(early)))
    await assembly.close()
    return heard


def _pieces(text: str) -> Iterator[str]:
    return (text[place : place + 3] for place in range(0, len(text), 3))


def _chat(text: str, finish: str, *, stream: bool) -> FakeReply:
    usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
    if not stream:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
        whole = {"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}
        return FakeReply(headers={"content-type": "application/json"}, chunks=[json.dumps(whole).encode()])
    deltas: list[dict[str, Any]] = [{"delta": {"content": piece}} for piece in _pieces(text)]
    deltas.append({"delta": {}, "finish_reason": finish})
    bodies = [{"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, **delta}]} for delta in deltas]
    frames = [f"data: {json.dumps(body)}\n\n".encode() for body in bodies]
    return FakeReply(headers={"content-type": "text/event-stream"}, chunks=[*frames, b"data: [DONE]\n\n"])


def _ollama(text: str, finish: str, *, stream: bool) -> FakeReply:
    def line(content: str, **more: Any) -> bytes:
        message = {"role": "assistant", "content": content}
        return json.dumps({"model": "m", "message": message, "done": False, **more}).encode() + b"\n"

    end = {"done": True, "done_reason": finish, "prompt_eval_count": 9, "eval_count": 9}
    chunks = [*map(line, _pieces(text)), line("", **end)] if stream else [line(text, **end)]
    return FakeReply(headers={"content-type": "application/x-ndjson"}, chunks=chunks)


whole_and_streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
SERVERS = ("llama-server", "vllm", "sglang", "lmstudio", "openai-compatible", "ollama-openai", "ollama")


@whole_and_streamed
@pytest.mark.parametrize("server", SERVERS)
def test_thinking_that_a_server_leaves_in_the_text_is_thinking(server: str, stream: bool) -> None:
    [heard] = talk(server, "deepseek-r1", [(OPENED, "stop")], stream=stream)
    assert heard.parts == (THOUGHT, f"\n\n{ANSWER}")


@whole_and_streamed
@pytest.mark.parametrize("asked", [{}, OFF, LOW], ids=["nothing", "off", "low"])
@pytest.mark.parametrize("server", SERVERS)
def test_a_finished_reply_that_closes_nothing_is_the_answer(server: str, asked: dict[str, Any], stream: bool) -> None:
    [heard] = talk(server, "deepseek-r1", [(ANSWER, "stop")], stream=stream, bodies=[asked])
    assert heard.parts == (None, ANSWER)


@whole_and_streamed
@pytest.mark.parametrize("server", SERVERS)
def test_a_typed_answer_without_thinking_is_the_answer(server: str, stream: bool) -> None:
    [heard] = talk(server, "deepseek-r1", [('{"a": 1}', "stop")], stream=stream, bodies=[TYPED])
    assert heard.response.error is None
    assert json.loads(heard.response.text) == {"a": 1}
    assert heard.response.reasoning.content is None


@whole_and_streamed
def test_a_typed_answer_after_thinking_is_the_answer(stream: bool) -> None:
    [heard] = talk("vllm", "deepseek-r1", [(f'{THOUGHT}{CLOSED}{{"a": 1}}', "stop")], stream=stream, bodies=[TYPED])
    assert heard.response.reasoning.content == THOUGHT
    assert json.loads(heard.response.text) == {"a": 1}


@whole_and_streamed
def test_thinking_that_is_cut_at_the_limit_stays_thinking_where_the_server_leaves_it(stream: bool) -> None:
    [guessed] = talk("vllm", "deepseek-r1", [(THOUGHT, "length")], stream=stream)
    assert guessed.parts == (THOUGHT, "")
    [separated] = talk("llama-server", "deepseek-r1", [(ANSWER, "length")], stream=stream)
    assert separated.parts == (None, ANSWER)
    _, learned = talk("llama-server", "deepseek-r1", [(OPENED, "stop"), (THOUGHT, "length")], stream=stream)
    assert learned.parts == (THOUGHT, "")


@whole_and_streamed
@pytest.mark.parametrize("server", ["ollama", "ollama-openai", "vllm"])
def test_thinking_that_came_though_off_was_asked_contradicts(server: str, stream: bool) -> None:
    [heard] = talk(server, "qwen3:4b", [(OPENED, "stop")], stream=stream, bodies=[OFF])
    assert heard.parts == (THOUGHT, f"\n\n{ANSWER}")
    assert _receipt(heard)["verdict"] == "contradicted"


@whole_and_streamed
@pytest.mark.parametrize("pair", ["<think>\n\n</think>\n\n", "<think></think>", "</think>\n\n", "\n</think>"])
@pytest.mark.parametrize("server", ["ollama", "llama-server"])
def test_an_empty_pair_is_no_thinking_and_honours_off(server: str, pair: str, stream: bool) -> None:
    [heard] = talk(server, "qwen3:4b", [(f"{pair}{ANSWER}", "stop")], stream=stream, bodies=[OFF])
    assert heard.response.reasoning.content is None
    assert heard.response.text.strip() == ANSWER
    told = _receipt(heard)
    assert (told["verdict"], told["observed"]["reasoning_tokens"]) == ("honoured", 0)


@whole_and_streamed
def test_a_receipt_says_that_text_was_seen_though_it_was_left_out(stream: bool) -> None:
    omit = {"bardo": {"include": ["receipt"], "reasoning": "omit"}}
    [heard] = talk("vllm", "qwen3-8b", [(f"<think>{OPENED}", "stop")], stream=stream, bodies=[omit])
    assert heard.parts == (None, f"\n\n{ANSWER}")
    assert _receipt(heard)["observed"]["text_seen"] is True
    [silent] = talk("vllm", "qwen3-8b", [(ANSWER, "stop")], stream=stream, bodies=[omit])
    assert _receipt(silent)["observed"]["text_seen"] is False


def _receipt(heard: Heard) -> dict[str, Any]:
    told: dict[str, Any] = heard.response.bardo["receipt"]
    return told


LONG = "word " * 1_000


def test_where_thinking_stands_is_learned_of_a_model_that_nobody_knows() -> None:
    thinking, text = LONG[:2_000], f"{LONG[:2_000]}{CLOSED}{ANSWER}"
    first, second, third = talk("vllm", "lab-model", [(text, "stop"), (text, "stop"), (ANSWER, "stop")], stream=True)
    assert first.parts == (None, text)
    assert second.parts == (thinking, f"\n\n{ANSWER}")
    assert "ThinkChunk" in second.early
    assert third.parts == (None, ANSWER)


def test_an_answer_that_quotes_a_tag_teaches_nothing() -> None:
    quoted = "Write `</think>` to close it."
    _, second = talk("vllm", "lab-model", [(quoted, "stop"), (LONG, "stop")], stream=True)
    assert second.parts == (None, LONG)


def test_what_off_came_to_is_learned_so_that_later_answers_stream_at_once() -> None:
    first, second = talk("ollama", "qwen3:4b", [(LONG, "stop")] * 2, stream=True, bodies=[OFF])
    assert first.parts == second.parts == (None, LONG)
    assert "ContentChunk" not in first.early
    assert "ContentChunk" in second.early


def test_a_prompt_that_nobody_expects_to_open_thinking_streams_at_once() -> None:
    for asked in ({}, LOW):
        [heard] = talk("vllm", "llama-3.1-8b", [(LONG, "stop")], stream=True, bodies=[asked])
        assert heard.parts == (None, LONG)
        assert "ContentChunk" in heard.early


def test_thinking_that_the_server_separates_is_learned_and_its_text_streams_at_once() -> None:
    def separated(_: str, __: str, *, stream: bool) -> FakeReply:
        assert stream
        deltas = [{"reasoning": THOUGHT}, *({"content": piece} for piece in _pieces(LONG))]
        frames = [
            f"data: {json.dumps({'id': 'c', 'choices': [{'index': 0, 'delta': delta}]})}\n\n".encode()
            for delta in deltas
        ]
        end = b'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
        kind = {"content-type": "text/event-stream"}
        return FakeReply(headers=kind, chunks=[*frames, end, b"data: [DONE]\n\n"])

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "_chat", separated)
        [heard] = talk("vllm", "deepseek-r1", [("", "")], stream=True)
    assert heard.parts == (THOUGHT, LONG)
    assert "ContentChunk" in heard.early


def test_a_long_answer_that_streamed_as_thinking_is_given_as_the_answer_too_and_said() -> None:
    [heard] = talk("vllm", "deepseek-r1", [(LONG, "stop")], stream=True)
    assert heard.parts == (LONG, LONG)
    assert "inline_reasoning" in [one.what for one in heard.response.degraded]
    [whole] = talk("vllm", "deepseek-r1", [(LONG, "stop")], stream=False)
    assert whole.parts == (None, LONG)

"""Typed answers over a transport that says what a test tells it: refusals of a mode, second tries that fail, clients that leave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any, TypeVar

import msgspec
import pytest

import bardo
from bardo.adapters.config.settings import LogSettings, ProviderEntry, Settings
from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.call.open import open_call
from bardo.dialects import dialect
from bardo.planning.planner import plan as plan_attempt
from bardo.replies.typed_stream import grown
from bardo.structured import UnusableAnswer
from bardo.values.blocks import TextBlock
from bardo.values.errors import UpstreamRefused
from bardo.values.request import Message, OutputFormat, Request
from bardo.values.response import Response
from bardo.values.wire import Arrival
from bardo.wiring import assemble
from support.typed import BAD, GOOD, PLACE

pytestmark = pytest.mark.each_python

T = TypeVar("T")
JSON = {"content-type": "application/json"}
STREAM = {"content-type": "text/event-stream"}


def said(text: str, *, tokens: int | None = 5) -> FakeReply:
    message = {"role": "assistant", "content": text}
    body: dict[str, Any] = {"id": "c", "model": "m", "choices": [{"index": 0, "message": message}]}
    body["choices"][0]["finish_reason"] = "stop"
    if tokens is not None:
        body["usage"] = {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens}
    return FakeReply(headers=JSON, chunks=[json.dumps(body).encode()])


def refusing(message: str, status: int = 400) -> FakeReply:
    return FakeReply(status=status, headers=JSON, chunks=[json.dumps({"error": {"message": message}}).encode()])


def in_turn(*replies: FakeReply) -> FakeTransport:
    """A transport that answers each call with the next reply, and the last for ever."""
    waiting = list(replies)

    def answer(call: Call) -> FakeReply:
        if not call.url.endswith("/chat/completions"):
            return FakeReply(headers=JSON, chunks=[b'{"data": []}'])
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    return FakeTransport(answer)


def asking(transport: FakeTransport, work: Callable[[bardo.AsyncClient], Coroutine[Any, Any, T]]) -> T:
    entry = ProviderEntry(id="lab", preset="vllm", base_url="http://lab.test/v1", models=("m",))
    settings = Settings(providers=(entry,), log=LogSettings(enabled=False))

    async def run() -> T:
        async with bardo.AsyncClient(settings, transport=transport) as client:
            return await work(client)

    return asyncio.run(run())


def bodies(transport: FakeTransport) -> list[Any]:
    return [msgspec.json.decode(call.body) for call in transport.calls if call.url.endswith("/chat/completions")]


async def place(client: bardo.AsyncClient) -> Any:
    return await client.respond("Where?", model="lab/m", response_type=PLACE)


def test_a_mode_that_is_refused_is_left_and_not_tried_again() -> None:
    transport = in_turn(refusing("json_schema is not supported"), said(json.dumps(GOOD)))

    async def twice(client: bardo.AsyncClient) -> list[Any]:
        return [await place(client), await place(client)]

    first, second = asking(transport, twice)
    assert (first.parsed, second.parsed) == (GOOD, GOOD)
    assert first.provenance.mode == "prompt_guided"
    kinds = [body["response_format"]["type"] for body in bodies(transport)]
    assert kinds == ["json_schema", "json_object", "json_object"]
    assert any(one.what == "response_format" for one in second.degraded)


REFUSALS_OF_SERVERS: dict[str, tuple[int, str, int]] = {
    "llama-cpp-python, a format it does not know": (
        500,
        "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text' or 'json_object'\"}]",
        3,
    ),
    "llama-cpp-python, a schema its grammars cannot say": (500, "Unrecognized schema: {'not': {}}", 4),
    "llama-server, a schema its grammars cannot say": (
        400,
        "JSON schema conversion failed:\nUnrecognized schema: {}",
        4,
    ),
    "llama-server, a grammar that is none": (400, "Failed to initialize samplers: failed to parse grammar", 4),
}


@pytest.mark.parametrize(("status", "message", "calls"), REFUSALS_OF_SERVERS.values(), ids=REFUSALS_OF_SERVERS)
def test_a_servers_refusal_of_a_schema_is_one_mode_down(status: int, message: str, calls: int) -> None:
    replies = [refusing(message, status), said(json.dumps(GOOD))]
    transport = in_turn(*replies, *([refusing(message, status), said(json.dumps(GOOD))] if calls == 4 else []))

    async def twice(client: bardo.AsyncClient) -> list[Any]:
        return [await place(client), await place(client)]

    first, second = asking(transport, twice)
    assert (first.parsed, second.parsed) == (GOOD, GOOD)
    assert first.provenance.mode == "prompt_guided"
    kinds = [body["response_format"]["type"] for body in bodies(transport)]
    # A refusal of the one schema says nothing of the next call.
    assert kinds == ["json_schema", "json_object", *(["json_schema"] if calls == 4 else []), "json_object"]


def test_a_server_whose_prompt_takes_no_grammar_is_asked_without_one() -> None:
    transport = in_turn(refusing("Failed to initialize samplers: std::exception"), said(json.dumps(GOOD)))
    assert asking(transport, place).parsed == GOOD
    assert [body.get("response_format", {}).get("type") for body in bodies(transport)] == ["json_schema", None]


def test_another_failure_of_a_server_is_not_about_the_schema() -> None:
    transport = in_turn(refusing("CUDA out of memory", 500), refusing("CUDA out of memory", 500))
    with pytest.raises(UpstreamRefused, match="memory"):
        asking(transport, place)
    first, again = bodies(transport)
    assert first == again


def test_a_mode_is_left_once_only() -> None:
    transport = in_turn(refusing("response_format is not supported"))
    with pytest.raises(UpstreamRefused):
        asking(transport, place)
    assert len(bodies(transport)) == 2


def test_tokens_of_both_tries_are_added() -> None:
    transport = in_turn(said(json.dumps(BAD), tokens=7), said(json.dumps(GOOD), tokens=5))
    response = asking(transport, place)
    assert (response.parsed, response.provenance.attempts) == (GOOD, 2)
    assert (response.usage.input_tokens, response.usage.output_tokens) == (20, 12)


def test_tokens_that_nobody_counted_are_not_made_up() -> None:
    transport = in_turn(said(json.dumps(BAD), tokens=None), said(json.dumps(GOOD), tokens=None))
    assert asking(transport, place).usage.output_tokens is None


def test_a_second_try_that_fails_leaves_the_first_answer_and_its_error() -> None:
    transport = in_turn(said(json.dumps(BAD)), refusing("overloaded", 503))
    with pytest.raises(UnusableAnswer) as caught:
        asking(transport, place)
    assert (caught.value.code, caught.value.extraction.text) == ("invalid", json.dumps(BAD))
    assert transport.open_calls == []


def test_the_second_try_gets_the_same_mode() -> None:
    transport = in_turn(said(json.dumps(BAD)), said(json.dumps(GOOD)))
    asking(transport, place)
    first, second = bodies(transport)
    assert first["response_format"] == second["response_format"]
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert second["messages"][-2]["content"] == json.dumps(BAD)


def test_a_client_that_leaves_during_the_second_try_ends_it() -> None:
    asked_twice = asyncio.Event()

    def answer(call: Call) -> FakeReply:
        if not any(one.url.endswith("/chat/completions") for one in transport.calls[:-1]):
            return said(json.dumps(BAD))
        asked_twice.set()
        return FakeReply(headers=JSON, chunks=[asyncio.Event()])

    transport = FakeTransport(answer)

    async def leave(client: bardo.AsyncClient) -> None:
        waiting = asyncio.create_task(place(client))
        await asked_twice.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asking(transport, leave)
    assert transport.open_calls == []


def streamed(*pieces: str, end: bool = True, reason: str = "stop") -> FakeReply:
    chunks = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    frames = [b"data: " + json.dumps({"id": "c", "model": "m", **chunk}).encode() + b"\n\n" for chunk in chunks]
    last = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    frames += [b"data: " + json.dumps(last).encode() + b"\n\n", b"data: [DONE]\n\n"] if end else []
    return FakeReply(headers=STREAM, chunks=frames)


def test_a_stream_that_breaks_while_the_answer_waits_gives_what_came() -> None:
    transport = in_turn(refusing("json_schema is not supported"), streamed('{"city": "Par', end=False))

    async def read(client: bardo.AsyncClient) -> Any:
        async with client.stream("Where?", model="lab/m", response_type=PLACE) as reply:
            return await reply.response()

    response = asking(transport, read)
    assert response.error is not None
    assert response.text == '{"city": "Par'


def test_a_stream_that_was_refused_behind_its_answer_is_refused() -> None:
    transport = in_turn(streamed(json.dumps(GOOD), reason="content_filter"))

    async def read(client: bardo.AsyncClient) -> Any:
        async with client.stream("Where?", model="lab/m", response_type=PLACE) as reply:
            return await reply.parsed

    with pytest.raises(bardo.UnusableAnswer, match="refused"):
        asking(transport, read)


def test_a_stream_whose_schema_is_enforced_shows_its_answer_at_once() -> None:
    whole = json.dumps(GOOD)
    transport = in_turn(streamed(whole[:9], whole[9:]))

    async def read(client: bardo.AsyncClient) -> list[str]:
        async with client.stream("Where?", model="lab/m", response_type=PLACE) as reply:
            texts = [text async for text in reply.text_stream]
            assert await reply.parsed == GOOD
            return texts

    assert asking(transport, read) == [whole[:9], whole[9:]]


def test_partial_answers_of_a_second_try_take_nothing_back() -> None:
    first, second = {"city": "Paris", "size": "many"}, {"city": "Paris", "size": 3}
    other = {"city": "Lyon", "size": 3}

    async def read(client: bardo.AsyncClient) -> tuple[list[Any], Any]:
        async with client.stream("Where?", model="lab/m", response_type=PLACE) as reply:
            return [partial async for partial in reply.partial_stream], await reply.parsed

    for good in (second, other):
        no_schema = refusing("json_schema is not supported")
        transport = in_turn(no_schema, streamed(json.dumps(first)), streamed(json.dumps(good)))
        partials, parsed = asking(transport, read)
        assert all(grown(one, later) for one, later in pairwise(partials))
        assert partials
        assert parsed == good


def test_a_further_choice_is_text_too() -> None:
    call = {"type": "function", "id": "c", "function": {"name": "respond_answer", "arguments": json.dumps(GOOD)}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choices = [{"index": index, "message": message, "finish_reason": "tool_calls"} for index in (0, 1)]
    body = json.dumps({"id": "c", "model": "m", "choices": choices}).encode()
    transport = in_turn(FakeReply(headers=JSON, chunks=[body]))
    entry = ProviderEntry(id="lab", preset="minimax", base_url="http://lab.test/v1", api_key_env="K", models=("m",))
    settings = Settings(providers=(entry,), log=LogSettings(enabled=False))
    shape = OutputFormat(mode="json_schema", schema=PLACE)
    turn = (Message("user", (TextBlock("Where?"),)),)

    async def ask() -> Response:
        assembly = assemble(settings, transport=transport, environment={"K": "k"})
        request = Request(model="lab/m", messages=turn, output_format=shape, choices=2)
        live = await open_call(assembly.services, request)
        async for _ in live.updates():
            pass
        await assembly.close()
        return live.response()

    response = asyncio.run(ask())
    assert [json.loads(one.text) for one in (response, *response.alternatives)] == [GOOD, GOOD]
    assert [one.finish.reason for one in (response, *response.alternatives)] == ["stop", "stop"]


def test_a_reply_that_was_cut_at_its_limit_is_not_asked_again_and_stays_as_it_came() -> None:
    block = {"type": "text", "text": '{"city": "Par'}
    usage = {"input_tokens": 4, "output_tokens": 3}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [block], "usage": usage}
    reply = FakeReply(headers=JSON, chunks=[json.dumps({**message, "stop_reason": "max_tokens"}).encode()])
    listing = FakeReply(headers=JSON, chunks=[b'{"data": []}'])
    transport = FakeTransport(lambda call: reply if call.method == "POST" else listing)
    entry = ProviderEntry(
        id="lab", preset="anthropic", base_url="http://lab.test/v1", api_key_env="K", models=("claude-sonnet-4-5",)
    )
    settings = Settings(providers=(entry,), log=LogSettings(enabled=False))
    shape = {"output_config": {"format": {"type": "json_schema", "schema": PLACE}}}
    asked = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "Where?"}]}
    request = dialect("anthropic_messages").decode_request(msgspec.json.encode({**asked, **shape}), Arrival())

    async def ask() -> tuple[Response, bool]:
        assembly = assemble(settings, transport=transport, environment={"K": "k"})
        live = await open_call(assembly.services, request)
        async for _ in live.updates():
            pass
        await assembly.close()
        return live.response(), live.forwarded

    response, forward = asyncio.run(ask())
    assert forward
    assert (response.text, response.finish.reason, response.usage.output_tokens) == ('{"city": "Par', "length", 3)
    assert len([call for call in transport.calls if call.method == "POST"]) == 1


@pytest.mark.parametrize("preset", ["llama-server", ""])
@pytest.mark.parametrize("language", ["anthropic_messages", "openai_responses"])
def test_a_route_of_llama_server_that_ignores_schemas_is_never_said_to_enforce_one(language: Any, preset: str) -> None:
    entry = ProviderEntry(
        id="llama-server",
        preset=preset,
        dialect=language,
        base_url="http://lab.test/v1",
        models=("m",),
        api_key_env="K",
    )
    settings = Settings(providers=(entry,), log=LogSettings(enabled=False))
    shape = OutputFormat(mode="json_schema", schema=PLACE)
    request = Request(model="m", messages=(Message("user", (TextBlock("Where?"),)),), output_format=shape)
    transport = FakeTransport(lambda call: refusing("no", 400) if call.method == "POST" else FakeReply(headers=JSON))

    async def ask() -> Any:
        assembly = assemble(settings, transport=transport, environment={"K": "k"})
        [target] = await assembly.services.directory.targets("llama-server/m")
        await assembly.close()
        return plan_attempt(request, target)

    attempt = asyncio.run(ask())
    assert attempt.answer.plan.mode == "tool_use_workaround"

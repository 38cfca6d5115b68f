"""Work at long requests and replies is done in a thread, whole and in each client's dialect, and what is short stays where it is."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from bardo.adapters.long_work import LONG_BYTES, in_slices, run_by_size, size_of, size_of_body, size_of_reply
from bardo.planning import exchange
from bardo.replies.reply_reader import ReplyReader
from bardo.simulators import Script, Turn
from bardo.surfaces.gateway import generate
from bardo.values.blocks import ReasoningBlock, ReplyBlock, TextBlock, ToolCallBlock
from bardo.values.request import Message, Request, Tool
from bardo.values.response import Response
from support.any_model import Simulator
from support.gateway import House, house

THREAD = "bardo-long"
TEXT = "some words of a long text, " * 20_000
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
    "gemini": "/v1beta/models/vllm%2Fm1:generateContent",
    "ollama": "/api/chat",
    "cohere": "/v2/chat",
    "bedrock_converse": "/model/vllm%2Fm1/converse",
}


def body_of(language: str, text: str) -> dict[str, Any]:
    """Return a request of a dialect that says a text."""
    asked: dict[str, Any] = {"model": "vllm/m1"}
    match language:
        case "openai_responses":
            return {**asked, "input": text}
        case "gemini":
            return {"contents": [{"role": "user", "parts": [{"text": text}]}]}
        case "bedrock_converse":
            return {"messages": [{"role": "user", "content": [{"text": text}]}]}
        case "ollama":
            asked["stream"] = False
        case "anthropic_messages":
            asked["max_tokens"] = 100
    return {**asked, "messages": [{"role": "user", "content": text}]}


@pytest.fixture(scope="module")
def running() -> Iterator[House]:
    with house([Simulator("vllm")]) as started:
        yield started


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What was done to requests, and the name of the thread that did it."""
    noted: list[tuple[str, str]] = []
    work = [(exchange, "decide"), (exchange, "attempt_of"), (ReplyReader, "read_whole")]
    for owner, name in (*work, (generate, "decoded_request"), (generate, "named_as_asked")):
        monkeypatch.setattr(owner, name, _noting(getattr(owner, name), name, noted))
    return noted


def _noting(original: Any, name: str, noted: list[tuple[str, str]]) -> Any:
    def noting(*given: Any, **options: Any) -> Any:
        noted.append((name, threading.current_thread().name))
        return original(*given, **options)

    return noting


def post(running: House, language: str, text: str) -> None:
    data = json.dumps(body_of(language, text)).encode()
    asked = urllib.request.Request(
        running.address + PATHS[language], data, {"content-type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(asked) as reply:
        assert reply.status == 200
        reply.read()


@pytest.mark.parametrize("language", PATHS)
def test_a_long_request_is_read_and_planned_in_a_thread(
    running: House, threads: list[tuple[str, str]], language: str
) -> None:
    post(running, language, TEXT)
    done = [(name, thread) for name, thread in threads if name in ("decoded_request", "decide", "attempt_of")]
    assert {name for name, _ in done} >= {"decoded_request", "attempt_of"}
    assert [one for one in done if not one[1].startswith(THREAD)] == []


@pytest.mark.parametrize("language", PATHS)
def test_a_short_request_stays_on_the_event_loop(running: House, threads: list[tuple[str, str]], language: str) -> None:
    post(running, language, f"a short text in {language}")
    assert threads
    assert [one for one in threads if one[1].startswith(THREAD)] == []


@pytest.mark.parametrize(("text", "in_thread"), [(TEXT, True), ("short", False)])
def test_a_long_whole_reply_is_read_and_written_in_a_thread(
    threads: list[tuple[str, str]], text: str, in_thread: bool
) -> None:
    with house([Simulator("vllm", script=Script((Turn(text=text),)))]) as started:
        post(started, "cohere", "a question")
    read = [thread.startswith(THREAD) for name, thread in threads if name in ("read_whole", "named_as_asked")]
    assert len(read) > 1
    assert set(read) == {in_thread}


def test_work_is_done_in_a_thread_from_its_size_on() -> None:
    def thread() -> str:
        return threading.current_thread().name

    async def both() -> tuple[str, str]:
        return await run_by_size(LONG_BYTES - 1, thread), await run_by_size(LONG_BYTES, thread)

    short, long = asyncio.run(both())
    assert short == threading.current_thread().name
    assert long.startswith(THREAD)


def test_no_garbage_is_collected_during_long_work_and_all_after_it_also_where_it_fails() -> None:
    def fails() -> None:
        raise ValueError(gc.isenabled())

    with pytest.raises(ValueError, match="False"):
        asyncio.run(run_by_size(LONG_BYTES, fails))
    assert gc.isenabled()


def test_very_many_messages_are_long_though_their_body_is_not_known() -> None:
    message = Message(role="user", blocks=(TextBlock("hello"),))
    assert size_of(Request(model="m", messages=(message,) * 1_001)) >= LONG_BYTES
    assert size_of(Request(model="m", messages=(message,) * 1_000)) < LONG_BYTES


def test_very_many_parts_and_tools_are_long() -> None:
    message = Message(role="user", blocks=(TextBlock("hello"),) * 20)
    tools = tuple(Tool(name=f"t{place}") for place in range(10))
    assert size_of(Request(model="m", messages=(message,) * 100, tools=tools)) >= LONG_BYTES
    assert size_of(Request(model="m", messages=(message,) * 99, tools=tools)) < LONG_BYTES


@pytest.mark.parametrize(
    ("unit", "is_long"),
    [(b'{"type":"text","text":"a"},', True), (b'{"type":"text","text":"' + b"a" * 500 + b'"},', False)],
)
def test_a_body_is_long_by_its_bytes_and_by_its_objects(unit: bytes, is_long: bool) -> None:
    body = unit * (250_000 // len(unit))
    assert (size_of_body(body) >= LONG_BYTES) == is_long
    assert size_of_body(unit * (60_000 // len(unit))) < LONG_BYTES
    assert size_of_body(b"a" * LONG_BYTES) >= LONG_BYTES


@pytest.mark.parametrize(
    "blocks",
    [
        (ToolCallBlock(id="c", name="f", arguments="x" * LONG_BYTES),),
        (TextBlock("x" * LONG_BYTES),),
        (ReasoningBlock(text="x" * LONG_BYTES),),
        (TextBlock("short"),) * 501,
    ],
    ids=["arguments", "text", "thinking", "many blocks"],
)
def test_a_reply_is_long_by_what_the_model_wrote_and_by_its_blocks(blocks: tuple[ReplyBlock, ...]) -> None:
    assert size_of_reply(Response(blocks=blocks)) >= LONG_BYTES
    assert size_of_reply(Response(blocks=blocks[: len(blocks) - 1])) < LONG_BYTES


def test_others_have_a_turn_between_slices() -> None:
    async def turns_of_another() -> int:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        waiting = asyncio.ensure_future(other())
        assert [one async for one in in_slices(range(1000))] == [*range(1000)]
        waiting.cancel()
        return turns

    assert asyncio.run(turns_of_another()) >= 9

"""`bardo.Client` and `bardo.AsyncClient`: the engine without a server."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest

import bardo
from bardo.adapters.config.settings import LogSettings, Settings, TimeoutSettings
from bardo.adapters.stores.log import LogReader
from bardo.simulators import Fault, Incoming, Running, running_many
from bardo.surfaces.library.stream import AsyncReplyStream, ReplyStream
from bardo.values.blocks import TextBlock
from bardo.values.errors import (
    BrokenStream,
    ConfigError,
    InvalidRequest,
    MissingKey,
    UnknownModel,
    UpstreamRefused,
    UpstreamTimeout,
)
from bardo.values.events import Finish
from support.any_model import Simulator
from support.gateway import KEY_VARIABLE, Watched, entry, model_of
from support.patience import PATIENCE

pytestmark = pytest.mark.each_python

T = TypeVar("T")
QUESTION = "What is 27 * 43?"
THOUGHT = "First 27 * 40 = 1080."
PRESETS = ("anthropic", "deepseek", "gemini", "inline_think", "openai_responses", "openrouter")
WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "k")


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Running]]:
    with pytest.MonkeyPatch.context() as patch, running_many(map(Simulator, PRESETS)) as running:
        patch.setenv(KEY_VARIABLE, "k")
        yield dict(running)


def settings_for(servers: dict[str, Running], log: LogSettings | None = None) -> Settings:
    entries = tuple(entry(Simulator(name), server.base_url) for name, server in servers.items())
    return Settings(providers=entries, log=log or LogSettings(enabled=False), timeouts=TimeoutSettings(idle=3))


@pytest.fixture(scope="module")
def client(servers: dict[str, Running]) -> Iterator[bardo.Client]:
    with bardo.Client(settings_for(servers)) as made:
        yield made


def asynchronously(servers: dict[str, Running], work: Callable[[bardo.AsyncClient], Coroutine[Any, Any, T]]) -> T:
    async def run() -> T:
        async with bardo.AsyncClient(settings_for(servers)) as made:
            return await work(made)

    return asyncio.run(run())


def last(servers: dict[str, Running], provider: str) -> Incoming:
    return [incoming for incoming in servers[provider].requests if incoming.method == "POST"][-1]


@pytest.mark.parametrize("provider", PRESETS)
def test_a_whole_reply(client: bardo.Client, provider: str) -> None:
    response = client.respond(QUESTION, model=model_of(provider), reasoning="low")
    assert response.text.strip() == "1161"
    assert THOUGHT in str(response.reasoning.content)
    assert "".join(step.content for step in response.reasoning.steps) == response.reasoning.content
    assert response.finish.reason == "stop"
    assert response.error is None
    assert response.provider == provider
    assert response.usage.output_tokens
    assert response.bardo["provider"] == provider
    assert response.bardo["request_id"].startswith("req_")
    assert response.bardo["receipt"]["intent"] == "low"


@pytest.mark.parametrize("provider", PRESETS)
def test_asyncio_gets_the_same(servers: dict[str, Running], provider: str) -> None:
    response = asynchronously(servers, lambda made: made.respond(QUESTION, model=model_of(provider), reasoning="low"))
    assert response.text.strip() == "1161"
    assert THOUGHT in str(response.reasoning.content)


def test_options_reach_the_provider(client: bardo.Client, servers: dict[str, Running]) -> None:
    client.respond("Hi.", model="deepseek/m", system="Be brief.", max_output_tokens=9, temperature=0.5, stop="END")
    body = last(servers, "deepseek").fields
    assert body["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi."}]
    assert (body["max_tokens"], body["temperature"], body["stop"]) == (9, 0.5, ["END"])


@pytest.mark.parametrize("provider", ["anthropic", "gemini", "openai_responses", "openrouter"])
def test_a_reply_is_the_next_prompts_turn(client: bardo.Client, servers: dict[str, Running], provider: str) -> None:
    question = {"role": "user", "content": "What is the weather in Paris?"}
    first = client.respond([question], model=model_of(provider), tools=[WEATHER], reasoning="low")
    (call,) = first.tool_calls
    assert (call.name, call.arguments) == ("weather", {"city": "Paris"})
    sealed = [state.data for block in first.blocks for state in getattr(block, "opaque", ()) if len(state.data) > 24]
    assert sealed
    result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
    second = client.respond([question, first, result], model=model_of(provider), tools=[WEATHER], reasoning="low")
    assert "sunny" in second.text
    assert all(state in last(servers, provider).raw.decode() for state in sealed)


def test_errors_are_raised(client: bardo.Client) -> None:
    with pytest.raises(UnknownModel, match="no provider here serves 'zzz'"):
        client.respond("x", model="zzz")
    with pytest.raises(UpstreamRefused) as caught:
        client.respond("x", model="deepseek/m+fault:status=429,retry-after=4")
    assert (caught.value.status, caught.value.retry_after) == (429, "4")
    with pytest.raises(UpstreamTimeout):
        client.respond("x", model="anthropic/m+fault:stall")
    with pytest.raises(InvalidRequest, match="reasoning is 'deep'"):
        client.respond("x", model="deepseek/m", reasoning="deep")
    with pytest.raises(TypeError, match="unknown option"):
        client.respond("x", model="deepseek/m", temprature=1)  # type: ignore[call-overload]
    assert client.respond(QUESTION, model="deepseek/m").text == "1161"


def test_a_missing_key_is_raised(servers: dict[str, Running]) -> None:
    settings = Settings(
        providers=(entry(Simulator("deepseek"), servers["deepseek"].base_url, api_key_env="BARDO_NOT_SET"),),
        log=LogSettings(enabled=False),
    )
    with bardo.Client(settings) as made, pytest.raises(MissingKey, match="set BARDO_NOT_SET"):
        made.respond("x", model="deepseek/m")


ORDERS: dict[str, Callable[[ReplyStream], tuple[str, str]]] = {
    "thoughts first": lambda reply: ("".join(reply.reasoning_stream), "".join(reply.text_stream)),
    "answer first": lambda reply: ("".join(reply.text_stream), "".join(reply.reasoning_stream))[::-1],
    "by turns": lambda reply: _by_turns(reply),
    "after the whole": lambda reply: (
        str(reply.response().reasoning.content) and "".join(reply.reasoning_stream),
        "".join(reply.text_stream),
    ),
}


def _by_turns(reply: ReplyStream) -> tuple[str, str]:
    thoughts, texts = "", ""
    reasoning, answer = reply.reasoning_stream, reply.text_stream
    for thought in reasoning:
        thoughts += thought
        texts += next(answer, "")
    return thoughts, texts + "".join(answer)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("provider", PRESETS)
def test_a_stream_is_read_in_any_order(client: bardo.Client, provider: str, order: str) -> None:
    with client.stream(QUESTION, model=model_of(provider), reasoning="low") as reply:
        thoughts, texts = ORDERS[order](reply)
        response = reply.response()
    assert thoughts == response.reasoning.content
    assert texts == response.text
    assert THOUGHT in thoughts
    assert texts.strip() == "1161"


def test_every_event_can_be_had(client: bardo.Client) -> None:
    with client.stream(QUESTION, model="deepseek/m") as reply:
        events = list(reply.events)
        assert [event for event in events if isinstance(event, Finish)]
        assert "".join(reply.text_stream) == "1161"
        assert reply.response().bardo["receipt"]["observed"]["reasoning_tokens"] == 30


def test_asyncio_reads_both_streams_side_by_side(servers: dict[str, Running]) -> None:
    async def work(made: bardo.AsyncClient) -> tuple[str, str]:
        async with made.stream(QUESTION, model="anthropic/m+fault:drip=40", reasoning="low") as reply:
            return tuple(await asyncio.gather(joined(reply.reasoning_stream), joined(reply.text_stream)))  # type: ignore[return-value]

    thoughts, texts = asynchronously(servers, work)
    assert THOUGHT in thoughts
    assert texts == "1161"


async def joined(pieces: AsyncIterator[str]) -> str:
    return "".join([piece async for piece in pieces])


def test_threads_read_both_streams_side_by_side(client: bardo.Client) -> None:
    with (
        client.stream(QUESTION, model="anthropic/m+fault:drip=40", reasoning="low") as reply,
        ThreadPoolExecutor(2) as pool,
    ):
        thoughts = pool.submit(lambda: "".join(reply.reasoning_stream))
        texts = pool.submit(lambda: "".join(reply.text_stream))
        assert THOUGHT in thoughts.result(PATIENCE)
        assert texts.result(PATIENCE) == "1161"


def test_a_refused_stream_raises_when_entered(client: bardo.Client) -> None:
    with pytest.raises(UpstreamRefused), client.stream("x", model="deepseek/m+fault:status=500"):
        pytest.fail("there is nothing to read")


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("cut,after=8", BrokenStream),
        ("early-end,after=8", BrokenStream),
        ("stall,after=8", UpstreamTimeout),
        ("error-event,after=8", UpstreamRefused),
    ],
)
def test_a_stream_that_breaks_raises_where_it_breaks(
    client: bardo.Client, fault: str, expected: type[Exception]
) -> None:
    with client.stream(QUESTION, model=f"anthropic/m+fault:{fault}", reasoning="low") as reply:
        heard: list[str] = []
        with pytest.raises(expected):
            heard.extend(reply.reasoning_stream)
        with pytest.raises(expected):
            list(reply.text_stream)
        response = reply.response()
        assert isinstance(response.error, expected)
        assert str(response.reasoning.content).startswith("I need")


def test_a_stream_must_be_entered(client: bardo.Client, servers: dict[str, Running]) -> None:
    unentered = client.stream("x", model="deepseek/m")
    for read in (lambda: list(unentered.text_stream), unentered.response):
        with pytest.raises(RuntimeError, match="enter the stream first"):
            read()

    async def work(made: bardo.AsyncClient) -> None:
        stream: AsyncReplyStream = made.stream("x", model="deepseek/m")
        with pytest.raises(RuntimeError, match="enter the stream first"):
            await stream.response()

    asynchronously(servers, work)


def test_leaving_a_stream_hangs_up(tmp_path: Path, servers: dict[str, Running]) -> None:
    provider = Watched("deepseek", fault=Fault("stall", after=12))
    log = LogSettings(path=str(tmp_path / "log.db"))
    with provider.running() as server:
        with bardo.Client(settings_for({"deepseek": server}, log)) as made:
            with made.stream(QUESTION, model="deepseek/m") as reply:
                assert next(reply.reasoning_stream)
            assert provider.over.wait(PATIENCE)
        with LogReader(log.path) as written:
            assert [row.outcome for row in written.recent(5)] == ["cancelled"]


def test_many_threads_share_a_client(client: bardo.Client) -> None:
    def one(number: int) -> str:
        model = model_of(PRESETS[number % len(PRESETS)])
        if number % 2:
            return client.respond(QUESTION, model=model).text
        with client.stream(QUESTION, model=model) as reply:
            return "".join(reply.text_stream)

    with ThreadPoolExecutor(12) as pool:
        assert {text.strip() for text in pool.map(one, range(48))} == {"1161"}


MANY_CLIENTS = """
import asyncio, contextlib, gc, os, sys, threading
import bardo
from bardo.adapters.stores.log import LogReader
from bardo.adapters.config.settings import LogSettings, ProviderEntry, Settings
from bardo.simulators import simulate
from bardo.values.errors import ConfigError

log = LogSettings(path=sys.argv[2])

def settings_for(base_url):
    entry = ProviderEntry(id="it", preset="anthropic", base_url=base_url, models=("m",), api_key_env="BARDO_TEST_KEY")
    return Settings(providers=(entry,), log=log)

def blocking(server):
    with bardo.Client(settings_for(server.base_url)) as made:
        made.respond("2+2?", model="it/m")
        with made.stream("2+2?", model="it/m") as reply:
            next(reply.text_stream)
    made.close()

def asynchronous(server):
    async def use():
        async with bardo.AsyncClient(settings_for(server.base_url)) as made:
            await made.respond("2+2?", model="it/m")
            async with made.stream("2+2?", model="it/m") as reply:
                await anext(reply.text_stream)
        await made.close()
    asyncio.run(use())

def wrong(server):
    for kind in (bardo.Client, bardo.AsyncClient):
        for config in ("missing.toml", settings_for("ftp://x")):
            with contextlib.suppress(ConfigError):
                kind(config)
                raise AssertionError("it is not refused")

def left_after(rounds):
    for _ in range(rounds):
        with simulate("anthropic", models=["m"]) as server:
            globals()[sys.argv[1]](server)
    gc.collect()
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

few = left_after(2)
many = left_after(8)
if sys.argv[1] != "wrong":
    with LogReader(log.path) as written:
        assert len(written.recent(100)) == 20
print(many - few, *[thread.name for thread in threading.enumerate()])
"""


@pytest.mark.parametrize("kind", ["blocking", "asynchronous", "wrong"])
def test_clients_leave_nothing_behind(kind: str, tmp_path: Path) -> None:
    # In a process of its own: other tests, and what they have left, open files and start threads as well.
    done = subprocess.run(
        [sys.executable, "-c", MANY_CLIENTS, kind, str(tmp_path / "log.db")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    files, *threads = done.stdout.split()
    assert threads == ["MainThread"]
    assert int(files) < 4, "eight clients leave no file each"


@pytest.mark.parametrize(
    "config",
    ["missing.toml", Settings(providers=(entry(Simulator("vllm"), "ftp://x"),))],
    ids=["no file", "no address"],
)
def test_a_configuration_that_is_wrong_leaves_nothing_behind(
    config: str | Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for kind in (bardo.Client, bardo.AsyncClient):
        with pytest.raises(ConfigError):
            kind(config)
    assert list(tmp_path.iterdir()) == []


def test_a_closed_client_says_so(servers: dict[str, Running]) -> None:
    made = bardo.Client(settings_for(servers))
    made.close()
    with pytest.raises(RuntimeError, match="this client is closed"):
        made.respond("x", model="deepseek/m")


def test_the_configuration_may_be_a_file_or_found(
    servers: dict[str, Running], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = servers["deepseek"].base_url
    file = tmp_path / "bardo.toml"
    file.write_text(
        f'[log]\nenabled = false\n[[providers]]\nid = "lab"\npreset = "deepseek"\n'
        f'base_url = "{server}"\napi_key_env = "{KEY_VARIABLE}"\n'
    )
    monkeypatch.setenv(KEY_VARIABLE, "k")
    monkeypatch.chdir(tmp_path)
    for config in (file, str(file), None):
        with bardo.Client(config) as made:
            response = made.respond(QUESTION, model="lab/m")
            assert response.blocks[-1] == TextBlock("1161")

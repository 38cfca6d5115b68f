"""Exchanges over a transport whose answers are values: what is sent, what is read, what is noted."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import msgspec
import pytest

from bardo.adapters.config.accounts import Account
from bardo.adapters.config.routing import SearchSettings
from bardo.adapters.config.settings import ProviderEntry, Settings
from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.adapters.net.keys import Keyring
from bardo.adapters.stores.log import LogRow, PendingCall
from bardo.call.open import open_call
from bardo.call.reply import LiveReply
from bardo.call.search import ModelSearch
from bardo.call.unary import embed
from bardo.dialects import dialect
from bardo.planning.route import Target
from bardo.replies.citations import SearchWeb
from bardo.replies.forwarding import ReplyUpdate
from bardo.services.facts.directory import Placement, ProviderDirectory
from bardo.values.errors import (
    BardoError,
    BrokenStream,
    MalformedReply,
    MissingKey,
    OverBudget,
    UnknownModel,
    Unreachable,
    UpstreamRefused,
)
from bardo.values.events import ContentChunk, Failed
from bardo.values.request import Request
from bardo.values.wire import Arrival
from bardo.wiring import make_services
from support.failover import NO_PAUSES
from support.mistakes import dialect_with

if TYPE_CHECKING:
    from bardo.services.accounts.call_gate import CallGate

pytestmark = pytest.mark.each_python

T = TypeVar("T")
SSE = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json; charset=utf-8"}


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    body = {"id": "c1", "model": "real", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return b"data: " + msgspec.json.encode(body) + b"\n\n"


STREAM = [chunk({"role": "assistant"}), chunk({"content": "Four"}), chunk({"content": "."}), chunk({}, "stop")]
DONE = b"data: [DONE]\n\n"
WHOLE = msgspec.json.encode(
    {
        "id": "c1",
        "model": "real",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Four."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }
)


@dataclass
class Bench:
    """The services over fake replies, one for each provider id, and its log."""

    replies: dict[str, FakeReply | BardoError]
    rows: list[LogRow] = field(default_factory=list)
    now: float = 1000.0
    jump: float = 0.0
    watched: float = 0.0

    def __post_init__(self) -> None:
        self.transport = FakeTransport(self._answer)
        self.configure(
            *(ProviderEntry(id=name, preset="deepseek", dialect="openai_chat", models=("m",)) for name in self.replies)
        )

    def configure(self, *entries: ProviderEntry) -> None:
        """Take these providers, in this order."""
        keyring = Keyring({"DEEPSEEK_API_KEY": "sk-1", "KEY": "sk-2", "AWS_REGION": "eu-west-1"})
        directory = ProviderDirectory.of(Settings(providers=entries), self.transport, keyring, clock=self.clock)
        self.services = make_services(
            directory, self.transport, keyring, log=self, clock=self.clock, watch=self.watch, failover=NO_PAUSES
        )

    def clock(self) -> float:
        self.now += self.jump
        return self.now

    def watch(self) -> float:
        self.watched += 0.25
        return self.watched

    def write(self, row: LogRow) -> None:
        self.rows.append(row)

    def _answer(self, call: Call) -> FakeReply:
        reply = self.replies[call.provider]
        if isinstance(reply, BardoError):
            raise reply
        return reply


def request(*, stream: bool = True, language: str = "openai_chat", **fields: Any) -> Request:
    turns = [{"role": "user", "content": "2+2?"}]
    body = {"model": "m", "messages": turns, "stream": stream, "max_tokens": 90, **fields}
    return dialect(language).decode_request(msgspec.json.encode(body), Arrival())


async def read(live: LiveReply) -> list[ReplyUpdate]:
    try:
        return [step async for step in live.updates()]
    finally:
        await live.close()


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return asyncio.run(work())


def opened(bench: Bench, asked: Request) -> tuple[LiveReply, list[ReplyUpdate]]:
    async def work() -> tuple[LiveReply, list[ReplyUpdate]]:
        live = await open_call(bench.services, asked)
        return live, await read(live)

    result = run(work)
    assert not bench.transport.open_calls
    return result


def failed(bench: Bench, asked: Request) -> BardoError:
    async def work() -> BardoError:
        with pytest.raises(BardoError) as caught:
            await open_call(bench.services, asked)
        return caught.value

    error = run(work)
    assert not bench.transport.open_calls
    return error


def test_a_call_carries_its_key_and_the_dialects_headers() -> None:
    bench = Bench({"one": FakeReply(headers=JSON, chunks=[WHOLE])})
    opened(bench, request(stream=False))
    (call,) = bench.transport.calls
    assert call.method == "POST"
    assert call.url == "https://api.deepseek.com/chat/completions"
    assert call.headers["authorization"] == "Bearer sk-1"
    assert call.headers["content-type"] == "application/json"


@pytest.mark.parametrize("kept", [False, True], ids=["dropped", "kept for the log"])
def test_the_body_that_was_sent_is_held_by_an_open_reply_only_for_the_log(kept: bool) -> None:
    bench = Bench({"one": FakeReply(headers=SSE, chunks=[*STREAM, DONE])})
    services = replace(bench.services, limits=msgspec.structs.replace(bench.services.limits, keep_content=kept))

    async def work() -> bytes:
        live = await open_call(services, request(language="anthropic_messages"))
        held = live.attempt.wire.body
        await read(live)
        return held

    held = run(work)
    assert held == (bench.transport.calls[0].body if kept else b"")
    assert ("2+2?" in (bench.rows[0].sent_content or "")) is kept


def test_the_body_that_was_sent_is_held_as_long_as_a_step_behind_the_answer_may_send_it_again() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    bench = Bench({"one": FakeReply(headers=SSE, chunks=[*STREAM, DONE])})

    async def work() -> bytes:
        live = await open_call(bench.services, request(response_format=form))
        assert live.answer is not None
        await live.close()
        return live.attempt.wire.body

    assert run(work) == bench.transport.calls[0].body


@pytest.mark.parametrize("language", ["openai_chat", "anthropic_messages"], ids=["forwarded", "translated"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_call_that_ended_is_in_no_circle_of_references(stream: bool, language: str) -> None:
    """Such a circle holds the request and the reply until the garbage collector comes."""
    reply = FakeReply(headers=SSE, chunks=[*STREAM, DONE]) if stream else FakeReply(headers=JSON, chunks=[WHOLE])
    bench = Bench({"one": reply})
    gc.disable()
    try:
        live, _ = opened(bench, request(stream=stream, language=language))
        held: list[weakref.ref[Any]] = [weakref.ref(live), weakref.ref(live.reader)]
        del live
        assert [one() for one in held] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("language", ["openai_chat", "anthropic_messages"], ids=["forwarded", "translated"])
@pytest.mark.parametrize(
    "chunks",
    [
        [*STREAM, DONE],
        [b"".join([*STREAM, DONE])],
        [b"".join([*STREAM, DONE]).rstrip(b"\n")],
        [b": hello\n\n", *STREAM, DONE],
        [piece for frame in (*STREAM, DONE) for piece in (frame[:9], frame[9:])],
    ],
    ids=["frame by frame", "at once", "no last line end", "a comment first", "in halves"],
)
def test_a_stream_says_the_same_however_it_comes(language: str, chunks: list[bytes]) -> None:
    bench = Bench({"one": FakeReply(headers=SSE, chunks=chunks)})
    live, steps = opened(bench, request(language=language))
    events = [event for step in steps for event in step.events]
    assert "".join(event.text for event in events if isinstance(event, ContentChunk)) == "Four."
    assert live.response().text == "Four."
    assert not [event for event in events if isinstance(event, Failed)]
    (row,) = bench.rows
    assert (row.outcome, row.finish_raw, row.passed_through) == ("ok", "stop", language == "openai_chat")
    if language == "openai_chat":
        assert b"".join(step.raw for step in steps) == b"".join(chunks)


@pytest.mark.parametrize("language", ["openai_chat", "anthropic_messages"])
def test_a_stream_that_was_answered_whole_is_still_a_stream(language: str) -> None:
    bench = Bench({"one": FakeReply(headers=JSON, chunks=[WHOLE])})
    live, steps = opened(bench, request(language=language))
    # The provider's bytes are no stream, so they are not the client's.
    assert not live.forwarded
    assert live.response().text == "Four."
    assert any(isinstance(event, ContentChunk) for step in steps for event in step.events)
    assert bench.rows[0].input_tokens == 7


@pytest.mark.parametrize("language", ["openai_chat", "anthropic_messages"])
def test_a_whole_reply_that_was_streamed_is_still_whole(language: str) -> None:
    bench = Bench({"one": FakeReply(headers=SSE, chunks=[*STREAM, DONE])})
    live, _ = opened(bench, request(stream=False, language=language))
    assert not live.forwarded
    assert live.response().text == "Four."


@pytest.mark.parametrize("kind", ["text/html", "text/html; charset=utf-8", "application/xml"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_page_is_no_reply(kind: str, stream: bool) -> None:
    bench = Bench({"one": FakeReply(headers={"content-type": kind}, chunks=[b"<html>"])})
    error = failed(bench, request(stream=stream))
    assert isinstance(error, MalformedReply)
    assert error.provider == "one"
    assert "check base_url" in str(error)
    assert bench.transport.abandoned


@pytest.mark.parametrize("status", [301, 302, 307])
def test_a_redirect_is_the_operators_to_mend(status: int) -> None:
    error = failed(Bench({"one": FakeReply(status=status, headers={"location": "https://x"})}), request())
    assert (error.status, type(error)) == (502, MalformedReply)
    assert f"status {status}, a redirect" in error.message


def test_a_refusal_whose_body_breaks_keeps_its_status() -> None:
    reply = FakeReply(status=429, headers={**JSON, "retry-after": "5"}, chunks=[b'{"err', BrokenStream("cut")])
    error = failed(Bench({"one": reply}), request())
    assert isinstance(error, UpstreamRefused)
    assert (error.status, error.retry_after) == (429, "5")


def test_a_refusal_that_quotes_the_key_does_not_give_it_away() -> None:
    body = b'{"error": {"message": "Incorrect API key provided: sk-1"}}'
    bench = Bench({"one": FakeReply(status=401, headers=JSON, chunks=[body])})
    error = failed(bench, request())
    assert "sk-1" not in str(error) + repr(bench.rows)
    assert "Incorrect API key provided: [key]" in error.message


def test_an_attempt_that_failed_lets_go_before_the_next() -> None:
    bench = Bench(
        {
            "page": FakeReply(headers={"content-type": "text/html"}, chunks=[b"<html>"]),
            "cut": FakeReply(headers=SSE, chunks=[BrokenStream("cut")]),
            "down": Unreachable("down"),
            "good": FakeReply(headers=SSE, chunks=[*STREAM, DONE]),
        }
    )
    live, _ = opened(bench, request())
    assert live.attempt.target.provider.id == "good"
    assert [one.asked for one in live.response().degraded] == ["page", "cut", "down"]
    assert (bench.rows[0].attempts, len(bench.rows)) == (6, 1)


def test_times_are_measured() -> None:
    bench = Bench({"one": FakeReply(headers=SSE, chunks=[*STREAM, DONE])})
    opened(bench, request())
    (row,) = bench.rows
    assert row.started_at == 1000.0
    # Each look at the watch of this test moves it by a quarter of a second, and nothing else does.
    assert 0 < (row.first_byte_seconds or 0) < row.seconds < 300
    assert row.seconds % 0.25 == 0


@pytest.mark.parametrize("jump", [34_560_000.0, -34_560_000.0], ids=["ahead", "back"])
def test_a_jump_of_the_clock_changes_no_duration(jump: float) -> None:
    bench = Bench({"one": FakeReply(headers=SSE, chunks=[*STREAM, DONE])}, jump=jump)
    opened(bench, request())
    (row,) = bench.rows
    assert 0 <= (row.first_byte_seconds or 0) <= row.seconds <= 300


@pytest.mark.parametrize(
    ("asked", "expected"),
    [(request(model="zzz"), UnknownModel), (request(model="one/zzz"), None)],
    ids=["unknown", "by name"],
)
def test_a_call_that_reaches_nobody_is_noted(asked: Request, expected: type[BardoError] | None) -> None:
    bench = Bench({"one": FakeReply(headers=SSE, chunks=[*STREAM, DONE])})
    if expected is None:
        opened(bench, asked)
    else:
        assert isinstance(failed(bench, asked), expected)
    (row,) = bench.rows
    assert row.error_class == (expected.__name__ if expected else None)
    assert row.attempts == (0 if expected else 1)


def test_a_missing_key_is_noted_and_nothing_is_sent() -> None:
    bench = Bench({"one": FakeReply()})
    bench.services = replace(bench.services, keyring=Keyring({}))
    assert isinstance(failed(bench, request()), MissingKey)
    assert bench.transport.calls == []
    assert (bench.rows[0].error_class, bench.rows[0].status) == ("MissingKey", 401)


def test_a_mistake_is_noted_as_one() -> None:
    bench = Bench({"one": FakeReply()})

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    with dialect_with("openai_chat", open_decoder=broken), pytest.raises(ZeroDivisionError):
        run(lambda: open_call(bench.services, request()))
    (row,) = bench.rows
    assert (row.outcome, row.error_class, row.error_message) == (
        "error",
        "InternalError",
        "a mistake in bardo: ZeroDivisionError",
    )


def test_cancelling_before_the_reply_is_noted_and_hangs_up() -> None:
    async def work() -> None:
        asked = asyncio.Event()

        async def never(call: Call) -> FakeReply:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError

        bench.transport._handler = never
        task = asyncio.create_task(open_call(bench.services, request()))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert bench.transport.abandoned
        assert [row.outcome for row in bench.rows] == ["cancelled"]

    bench = Bench({"one": FakeReply()})
    run(work)


@pytest.mark.parametrize("operation", ["generate", "embed"])
def test_a_call_that_is_cancelled_while_its_error_is_explained_is_in_the_log(operation: str) -> None:
    """A call that is not leaves what it took of its key's limits taken for good."""

    async def work() -> None:
        listing = asyncio.Event()

        async def refuse(call: Call) -> FakeReply:
            if call.method == "GET":
                listing.set()
                await asyncio.Event().wait()
            return FakeReply(status=404, headers=JSON, chunks=[b'{"error": {"message": "no such model"}}'])

        bench.configure(ProviderEntry(id="one", preset="openai", api_key_env="KEY"))
        bench.transport._handler = refuse
        model = "one/text-embedding-m"
        fields = {"model": model, "input": ["a"]}
        vectors = dialect("openai_chat").embeddings
        assert vectors is not None
        asked = vectors.decode_request(msgspec.json.encode(fields), Arrival())
        task: asyncio.Future[Any]
        if operation == "generate":
            task = asyncio.ensure_future(open_call(bench.services, request(model=model)))
        else:
            task = asyncio.ensure_future(embed(bench.services, asked))
        await listing.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [row.outcome for row in bench.rows] == ["cancelled"]
        await bench.services.directory.close()

    bench = Bench({"one": FakeReply()})
    run(work)


def test_a_search_by_a_model_that_is_cancelled_hangs_up_and_is_in_the_log() -> None:
    async def work() -> None:
        asked, body, reading = request(), asyncio.Event(), asyncio.Event()

        async def open_and_tell(request: Request) -> LiveReply:
            live = await open_call(bench.services, asked)
            reading.set()
            return live

        bench.replies["one"] = FakeReply(headers=SSE, chunks=[*STREAM, body])
        search = ModelSearch(SearchSettings(model="one/m"), open_and_tell)
        task = asyncio.create_task(search.search(SearchWeb(query="sky")))
        await reading.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert bench.transport.abandoned
        assert [row.outcome for row in bench.rows] == ["cancelled"]

    bench = Bench({"one": FakeReply()})
    run(work)


def test_closing_in_mid_stream_is_noted_once_and_hangs_up() -> None:
    async def work() -> None:
        live = await open_call(bench.services, request())
        async for _ in live.updates():
            break
        await live.close()
        await live.close()
        assert bench.transport.abandoned
        assert [row.outcome for row in bench.rows] == ["cancelled"]

    bench = Bench({"one": FakeReply(headers=SSE, chunks=[*STREAM, asyncio.Event()])})
    run(work)


def test_the_row_of_a_broken_stream_says_what_arrived() -> None:
    bench = Bench({"one": FakeReply(headers=SSE, chunks=[*STREAM[:2], BrokenStream("cut")])})
    live, steps = opened(bench, request())
    assert steps[-1].events[-1] == Failed(BrokenStream("cut"))
    assert live.response().error == BrokenStream("cut")
    (row,) = bench.rows
    assert (row.outcome, row.error_class, row.error_message) == ("broken", "BrokenStream", "cut")


def test_a_call_that_the_transport_sent_twice_counts_two_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench({"one": FakeReply(headers=SSE, chunks=[*STREAM, DONE])})
    send = bench.transport.send

    async def resending(*call: Any) -> Any:
        reply: Any = await send(*call)
        reply.resent = True
        return reply

    monkeypatch.setattr(bench.transport, "send", resending)
    opened(bench, request())
    assert bench.rows[0].attempts == 2


class Awaited(asyncio.Event):
    """An event that says when somebody waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()

    async def wait(self) -> Literal[True]:
        self.reached.set()
        return await super().wait()


class WatchingGate:
    """Lets every call through, and holds the last of them as the limits of keys do."""

    live: LiveReply

    def __init__(self) -> None:
        self.accounts = self

    async def admit(self, account: Account, request: Request, placement: Placement, *_: Any, **__: Any) -> Placement:
        return placement

    def watch(self, request_id: str, live: LiveReply) -> None:
        self.live = live

    def with_estimate(self, call: PendingCall, target: Target) -> PendingCall:
        return call

    def settle(self, row: LogRow) -> None:
        return


def test_a_call_is_cut_at_the_attempt_that_is_being_opened_and_not_at_one_that_failed_before_it() -> None:
    waits, gate = Awaited(), WatchingGate()
    broken = FakeReply(headers=SSE, chunks=[STREAM[0], BrokenStream("the first is gone")])
    bench = Bench({"one": broken, "two": FakeReply(headers=SSE, chunks=[STREAM[0], waits, *STREAM[1:], DONE])})
    services = replace(bench.services, gate=cast("CallGate", gate))

    async def work() -> None:
        opening = asyncio.ensure_future(open_call(services, request(), account=Account(id="key_1")))
        await waits.reached.wait()
        gate.live.cut(OverBudget("the budget is spent", limit="usd_per_day"))
        waits.set()
        with pytest.raises(OverBudget):
            await opening

    run(work)
    assert [row.error_class for row in bench.rows] == ["OverBudget"]


def test_a_call_that_is_cut_before_the_head_of_its_reply_ends_with_that() -> None:
    waits, gate = Awaited(), WatchingGate()

    async def answer() -> FakeReply:
        await waits.wait()
        return FakeReply(headers=SSE, chunks=[*STREAM, DONE])

    bench = Bench({"one": cast("FakeReply", answer())})
    services = replace(bench.services, gate=cast("CallGate", gate))

    async def work() -> None:
        opening = asyncio.ensure_future(open_call(services, request(), account=Account(id="key_1")))
        await waits.reached.wait()
        gate.live.cut(OverBudget("the budget is spent", limit="usd_per_day"))
        waits.set()
        with pytest.raises(OverBudget):
            await opening

    run(work)
    assert [row.error_class for row in bench.rows] == ["OverBudget"]
    assert bench.transport.abandoned

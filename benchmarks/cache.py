"""Subject `cache`: what an exact look into the cache of replies takes, what its stores take, what a search for similar questions
takes, and what a hit takes beside a call.

Forwarded calls go to the canned upstream of the benchmarks, on the same machine, which answers at once: a real provider takes a thousand
times as long. The layer is timed without what runs it; `hit` and `forwarded` are whole calls of the library's engine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from shutil import which
from subprocess import DEVNULL, Popen
from typing import Any

from bardo.adapters.config.settings import parse_settings
from bardo.call.open import open_call
from bardo.context.cache.entries import CacheBounds, CacheEntry, ReplyStore, encode_kept, identity_of
from bardo.context.cache.layer import CacheLayer, CacheRules, refusal_of
from bardo.context.cache.similar import FLOORS
from bardo.context.layer import KeptReply, LayerFacts
from bardo.services.pipeline.reply_cache.opening import MemoryReplies, open_replies
from bardo.services.pipeline.reply_cache.similarity import VectorIndex, VectorRow, numpy_or_none
from bardo.values.blocks import TextBlock
from bardo.values.request import BardoOptions, CacheOptions, Message, Request, Sampling
from bardo.wiring import assemble
from benchmarks.bench import Bench
from benchmarks.figures import Figure, Row, Table
from benchmarks.figures import Target as Aim

LIMIT = 15
QUESTIONS, DIMENSIONS = 100_000, 384
LOOKUP = f"a search among {QUESTIONS:,} questions"
HIT = "a hit in memory, without the driver: 25 words"
_FAR = 2.0e10
_TICK = 0.001
_SYSTEM = "You answer questions of travellers about trains, in one sentence. " * 4
_QUESTION = "Which train goes from Basel to Milan, and where does one change? "
_SETTINGS = """
[log]
enabled = false
[[providers]]
id = "bench"
dialect = "openai_chat"
base_url = "http://127.0.0.1:{port}/v1"
[inference.pipeline.profiles.own]
layers = ["cache"]
"""
_REPLY = KeptReply(
    provider="bench",
    model="whole",
    dialect="openai_chat",
    content_type="application/json",
    body=b"x" * 2000,
    streamed=False,
    kept_at=1.0,
)


def run(bench: Bench) -> tuple[list[Table], list[Aim]]:
    """Time the layer, the stores and whole calls."""
    many = 500 if bench.pace.quick else 5000
    layer = {name: _timed(bench, work, many) for name, work in _layer_works().items()}
    tables = [
        _table("The layer", layer, "Processor time of one thread. `25 words` is a question, `2,000 words` a long one."),
        _table("Stores", _stores(bench, many), "A look or a put from this thread, of a reply of 2 kB. Elapsed time."),
        _table("Calls", asyncio.run(_calls(bench)), "Elapsed time of one call after the other, to a whole reply."),
    ]
    similar = asyncio.run(_similar(bench))
    if similar:
        notes = (
            f"Vectors of {DIMENSIONS} numbers in one scope, half of them in 200 topics; a search for what is near one of them, with numpy.",
            "The search runs in a thread: the second row is by how much a task that sleeps for 1 ms woke too late meanwhile.",
        )
        rows = [Row(measure=name, unit="ms", figures={"bardo": figure}) for name, figure in similar.items()]
        title = "Similar questions"
        tables.append(Table(subject="cache", title=title, columns=("bardo",), rows=tuple(rows), notes=notes))
    looked = similar.get(LOOKUP)
    return tables, [
        Aim(says=HIT, limit=LIMIT, unit="µs", found=layer[HIT].median),
        Aim(says=f"{LOOKUP}, off the event loop", limit=15, unit="ms", found=looked.median if looked else None),
    ]


def _layer_works() -> dict[str, Callable[[], object]]:
    short, long = _asking(_QUESTION * 2), _asking(_QUESTION * 165)
    timed = _asking(_QUESTION + "today")
    layer, store = CacheLayer(CacheRules()), MemoryReplies()
    found = {}
    for request in (short, long):
        identity = _identity(layer, request)
        store.put(_entry(identity), now=0)
        found[id(request)] = identity
    return {
        HIT: lambda: _hit(layer, short, store),
        "a hit in memory: 2,000 words": lambda: _hit(layer, long, store),
        "identity: 25 words": lambda: identity_of(short, "t"),
        "identity: 2,000 words": lambda: identity_of(long, "t"),
        "reasons of refusal: 25 words": lambda: refusal_of(short, (), 1.0),
        "reasons of refusal: 2,000 words": lambda: refusal_of(long, (), 1.0),
        "a refusal: 25 words": lambda: refusal_of(timed, (), 1.0),
    }


def _asking(question: str) -> Request:
    turns = (Message("system", (TextBlock(_SYSTEM),)), Message("user", (TextBlock(question),)))
    return Request(model="bench/whole", messages=turns, sampling=Sampling(temperature=0.2), dialect="openai_chat")


_FACTS = LayerFacts(
    tenant="t", session="", now=2.0, profile="own", count_tokens=lambda request, target: 0, models=("bench/whole",)
)


def _identity(layer: CacheLayer, request: Request) -> bytes:
    identity: bytes = next(layer.steps(request, _FACTS)).identity  # type: ignore[attr-defined]
    return identity


def _hit(layer: CacheLayer, request: Request, store: ReplyStore) -> None:
    steps = layer.steps(request, _FACTS)
    asked = next(steps)
    assert store.find("t", asked.identity, now=2.0)  # type: ignore[attr-defined]
    try:
        steps.send(_REPLY)
    except StopIteration:
        return
    raise AssertionError("a kept reply is no answer")


def _entry(identity: bytes) -> CacheEntry:
    return CacheEntry(
        tenant="t", identity=identity, value=encode_kept(_REPLY), expires=_FAR, model="m", answered_by="bench/whole"
    )


def _stores(bench: Bench, many: int) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    with ExitStack() as stack:
        places = {"memory": "memory", "SQLite": str(bench.folder / "replies.db")}
        if which("redis-server"):
            places["Redis"] = stack.enter_context(_redis(bench.folder))
        for name, place in places.items():
            store = open_replies(place, CacheBounds())
            stack.callback(store.close)
            found |= _store(bench, name, store, many if place == "memory" else many // 10)
    return found


def _store(bench: Bench, name: str, store: ReplyStore, many: int) -> dict[str, Figure]:
    numbers, first = count(), (0).to_bytes(32, "big")
    puts = _timed(bench, lambda: store.put(_entry(next(numbers).to_bytes(32, "big")), now=2.0), many, time.perf_counter)
    finds = _timed(bench, lambda: store.find("t", first, now=2.0), many, time.perf_counter)
    return {f"{name}: find": finds, f"{name}: put": puts}


@contextmanager
def _redis(folder: Path) -> Iterator[str]:
    """Run a Redis server without a port."""
    socket = folder / "redis.sock"
    options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no", "--dir", str(folder)]
    server = Popen(["redis-server", *options], stdout=DEVNULL, stderr=DEVNULL)
    try:
        while not socket.exists() and server.poll() is None:
            time.sleep(0.01)
        yield f"unix://{socket}"
    finally:
        server.terminate()
        server.wait()


async def _similar(bench: Bench) -> dict[str, Figure]:
    """Time searches in a thread, and the longest stop of the event loop meanwhile; nothing where numpy is not there."""
    numpy = numpy_or_none()
    if numpy is None:
        return {}
    index, vectors = _filled_index(numpy)
    loop, searches = asyncio.get_running_loop(), 10 if bench.pace.quick else 40
    times: list[float] = []
    worked: list[float] = []
    stops: list[float] = []
    with ThreadPoolExecutor(1) as thread:
        for place in range(searches + 1):
            asked = tuple(map(float, vectors[place]))
            search = partial(index.search, b"scope", asked, least=FLOORS["static"], most=8, now=0.0)
            watching = asyncio.create_task(_longest_stop())
            await asyncio.sleep(0)
            began = time.perf_counter()
            worked.append(1_000 * await loop.run_in_executor(thread, _processor_seconds, search))
            times.append((time.perf_counter() - began) * 1_000)
            watching.cancel()
            stops.append(await watching * 1_000)
    figures = {
        LOOKUP: Figure.of(times[1:]),
        "the longest stop of the event loop": Figure.of(stops[1:]),
        "of the search, work of the processor in its thread": Figure.of(worked[1:]),
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def _processor_seconds(work: Callable[[], object]) -> float:
    """Return for how long the processor worked in this thread: other programs on a busy machine change little of it."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


async def _longest_stop() -> float:
    """Return by how many seconds the event loop woke this task too late at most, until it is cancelled."""
    late = 0.0
    while True:
        began = time.perf_counter()
        try:
            await asyncio.sleep(_TICK)
        except asyncio.CancelledError:
            return late
        late = max(late, time.perf_counter() - began - _TICK)


def _filled_index(numpy: Any) -> tuple[VectorIndex, Any]:
    """Return an index of questions, and their vectors: all have something in common, and half of them a topic."""
    random = numpy.random.default_rng(16)
    topics = random.standard_normal((200, DIMENSIONS))
    made = random.standard_normal((QUESTIONS, DIMENSIONS)) + 0.5 * random.standard_normal(DIMENSIONS)
    made[::2] += 1.5 * topics[random.integers(0, 200, QUESTIONS // 2)]
    vectors = (made / numpy.linalg.norm(made, axis=1, keepdims=True)).astype("<f4")
    index = VectorIndex(QUESTIONS, numpy=numpy)
    for number, vector in enumerate(vectors, 1):
        index.add(b"scope", vector.tobytes(), VectorRow(number, number.to_bytes(16, "big"), "q", "a", _FAR))
    return index, vectors


async def _calls(bench: Bench) -> dict[str, Figure]:
    assembly = assemble(parse_settings(_SETTINGS.format(port=bench.upstream_port)), environment={})
    requests = 100 if bench.pace.quick else 1000
    plain = _asking(_QUESTION * 2)
    off = BardoOptions(pipeline="own", cache=CacheOptions(mode="refresh"))
    chosen = {
        "forwarded, without layers": BardoOptions(),
        "forwarded, and kept": off,
        "hit": BardoOptions(pipeline="own"),
    }
    try:
        found = {}
        for name, options in chosen.items():
            request = Request(
                **{one: getattr(plain, one) for one in ("model", "messages", "sampling", "dialect")}, options=options
            )

            async def call(request: Request = request) -> None:
                live = await open_call(assembly.services, request)
                try:
                    await live.read()
                finally:
                    await live.close()

            await call()
            rounds = [1e6 * await _elapsed(call, requests) for _ in range(bench.pace.rounds)]
            found[name] = _figure(rounds)
        return found
    finally:
        await assembly.close()


async def _elapsed(call: Callable[[], Awaitable[None]], many: int) -> float:
    begin = time.perf_counter()
    for _ in range(many):
        await call()
    return (time.perf_counter() - begin) / many


def _timed(
    bench: Bench, work: Callable[[], object], many: int, clock: Callable[[], float] = time.thread_time
) -> Figure:
    work()
    rounds = []
    for _ in range(bench.pace.rounds):
        begin = clock()
        for _ in range(many):
            work()
        rounds.append(1e6 * (clock() - begin) / many)
    return _figure(rounds)


def _figure(rounds: list[float]) -> Figure:
    figure = Figure.of(rounds)
    assert figure is not None
    return figure


def _table(title: str, figures: dict[str, Figure], note: str) -> Table:
    rows = tuple(Row(measure=name, unit="µs", figures={"bardo": figure}) for name, figure in figures.items())
    return Table(subject="cache", title=f"Kept replies: {title}", columns=("bardo",), rows=rows, notes=(note,))

"""A fleet of gateways over one PostgreSQL server: what a call waits for the store, and what the store does for a call.

Twenty gateways share a log, a key with limits and a budget, earlier reasoning and responses. Their way to the server is a proxy that holds
each piece for some milliseconds, as a network between machines does.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from bardo.accounting.limits import KeyLimits
from bardo.adapters.config.accounts import Account
from bardo.adapters.config.settings import parse_settings
from bardo.services.accounts.key_store import KeyStore, open_keys
from bardo.surfaces.gateway.main import ConfiguredGateway
from benchmarks.bench import Bench
from benchmarks.contestants import Contestant, Lane, Place
from benchmarks.figures import Row, Table
from benchmarks.throwaway_postgres import Postgres, can_run_postgres, postgres

GATEWAYS = 20
_CALLS_A_SECOND = 100
_DELAYS_MS = (0, 5, 20)
_KEY = "FLEET_KEY"
_CONFIG = """\
[log]
url = "{store}"
[replay]
store = "{store}"
[responses]
store = "{store}"
[refresh]
hours = 0
[[providers]]
id = "plain"
preset = "deepseek"
base_url = "{upstream}"
api_key_env = "FLEET_KEY"
models = ["whole"]
[[prices]]
match = "*"
input = 1.0
output = 10.0
"""


class FleetResult(msgspec.Struct, frozen=True, kw_only=True):
    """What calls of a fleet took: milliseconds; transactions and microseconds of the store for one call; connections of one gateway."""

    p50: float
    p99: float
    transactions: float
    processor: float
    connections: float
    failed: int


def measure_fleet(bench: Bench) -> list[Table]:
    """Measure a fleet by the distance of its store, and what a row of the log takes of that. Nothing where PostgreSQL is not installed."""
    if not can_run_postgres():
        bench.note("scale: the fleet and the rows of PostgreSQL are left out, PostgreSQL is not installed")
        return []
    return [_fleets(bench), _rows(bench)]


def _fleets(bench: Bench) -> Table:
    seconds = 2.0 if bench.pace.quick else 20.0
    results: dict[str, FleetResult] = {}
    for delay in _DELAYS_MS:
        bench.tell(f"scale: {GATEWAYS} gateways, their store {delay} ms away")
        with postgres() as server, tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with _delayed(server, folder, delay / 1e3) as store:
                text = _CONFIG.format(store=store, upstream=f"http://127.0.0.1:{bench.upstream_port}")
                results[f"{delay} ms away"] = asyncio.run(_fleet(server, text, folder, seconds))
    for name, result in results.items():
        if result.failed:
            bench.note(f"scale: {result.failed} calls of the fleet failed, the store {name}")
    rows = (
        Row.of_one_round("a call, p50", "ms", {name: one.p50 for name, one in results.items()}),
        Row.of_one_round("a call, p99", "ms", {name: one.p99 for name, one in results.items()}),
        Row.of_one_round(
            "transactions of the store for a call", "number", {name: one.transactions for name, one in results.items()}
        ),
        Row.of_one_round(
            "processor of the store for a call", "µs", {name: one.processor for name, one in results.items()}
        ),
        Row.of_one_round(
            "connections of a gateway", "number", {name: one.connections for name, one in results.items()}
        ),
    )
    notes = (
        f"{GATEWAYS} gateways in one process, {_CALLS_A_SECOND} calls a second together, of one key with limits and a budget. "
        "The store answers after twice the time it is away.",
    )
    title = "scale: a fleet over one PostgreSQL server"
    return Table(subject="scale", title=title, columns=tuple(results), rows=rows, notes=notes)


async def _fleet(server: Postgres, text: str, folder: Path, seconds: float) -> FleetResult:
    engine = open_keys(server.address)
    try:
        limits = KeyLimits(requests_per_minute=1_000_000, usd_per_day=1_000_000 * 10**9)
        key = KeyStore(engine).create(Account(id="", limits=limits))[1].text
    finally:
        engine.dispose()
    taken: list[float] = []
    statuses: list[int] = []
    # A gateway has the threads of its process to itself, and these share one.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(8 * GATEWAYS))
    async with AsyncExitStack() as stack:
        gateways = [
            await stack.enter_async_context(_gateway(text, folder / f"gateway-{number}")) for number in range(GATEWAYS)
        ]
        for gateway in gateways:
            await _ask(gateway, key)
        before, begun = await asyncio.to_thread(_transactions, server), server.cpu_seconds()

        async def ask(number: int) -> None:
            begin = time.perf_counter()
            statuses.append(await _ask(gateways[number], key))
            taken.append((time.perf_counter() - begin) * 1e3)

        order = random.Random(7)
        async with asyncio.TaskGroup() as group:
            for _ in range(int(seconds * _CALLS_A_SECOND)):
                group.create_task(ask(order.randrange(GATEWAYS)))
                await asyncio.sleep(order.expovariate(_CALLS_A_SECOND))
        connections = (await asyncio.to_thread(_connections, server)) / GATEWAYS
    # What was still to be written is written when the gateways have ended.
    transactions = (_transactions(server) - before) / len(taken)
    processor = (server.cpu_seconds() - begun) * 1e6 / len(taken)
    taken.sort()
    return FleetResult(
        p50=taken[len(taken) // 2],
        p99=taken[len(taken) * 99 // 100],
        transactions=transactions,
        processor=processor,
        connections=connections,
        failed=sum(status != 200 for status in statuses),
    )


@asynccontextmanager
async def _gateway(text: str, folder: Path) -> AsyncIterator[ConfiguredGateway]:
    gateway = ConfiguredGateway(parse_settings(text), {_KEY: "any", "XDG_DATA_HOME": str(folder)})
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.stop()


async def _ask(gateway: ConfiguredGateway, key: str) -> int:
    """Send one call with a tool's result, whose reply is kept, and return the status of the answer."""
    call = {"id": "call_7Hq2", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    body = {
        "model": "plain/whole",
        "messages": [
            {"role": "user", "content": f"Name animal {random.random()}."},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": "a quokka"},
        ],
    }
    parts = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]
    headers = [
        (b"host", b"127.0.0.1"),
        (b"content-type", b"application/json"),
        (b"authorization", f"Bearer {key}".encode()),
    ]
    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": headers, "query_string": b""}
    statuses: list[int] = []

    async def receive() -> Any:
        return parts.pop() if parts else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await gateway.application({**scope, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)}, receive, send)
    return statuses[0]


@contextmanager
def _delayed(server: Postgres, folder: Path, delay: float) -> Iterator[str]:
    """Yield an address of the server behind a proxy, in a thread of its own, that holds each piece for `delay` seconds."""
    loop = asyncio.new_event_loop()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def read() -> None:
            piece = b"first"
            while piece:
                piece = await reader.read(65536)
                pieces.put_nowait((loop.time() + delay, piece))

        reading = asyncio.ensure_future(read())
        while True:
            due, piece = await pieces.get()
            await asyncio.sleep(due - loop.time())
            if not piece:
                break
            writer.write(piece)
        writer.close()
        await reading

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        own_reader, own_writer = await asyncio.open_unix_connection(f"{server.folder}/.s.PGSQL.5432")
        with suppress(asyncio.CancelledError, OSError):
            await asyncio.gather(pass_on(reader, own_writer), pass_on(own_reader, writer))

    proxy = loop.run_until_complete(asyncio.start_unix_server(connected, folder / ".s.PGSQL.5432"))
    running = threading.Thread(target=loop.run_forever)
    running.start()
    try:
        yield f"postgresql+psycopg://bardo@/postgres?host={folder}"
    finally:
        loop.call_soon_threadsafe(proxy.close)
        loop.call_soon_threadsafe(loop.stop)
        running.join()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left))
        loop.close()


def _transactions(server: Postgres) -> int:
    import psycopg

    with psycopg.connect(server.libpq, autocommit=True) as connection:
        # Each connection tells what it did when it ends, or after a second.
        time.sleep(1.5)
        found = connection.execute("select sum(xact_commit + xact_rollback) from pg_stat_database").fetchone()
    assert found is not None
    return int(found[0])


def _connections(server: Postgres) -> int:
    import psycopg

    with psycopg.connect(server.libpq) as connection:
        found = connection.execute(
            "select count(*) from pg_stat_activity where backend_type = 'client backend'"
        ).fetchone()
    assert found is not None
    return int(found[0]) - 1


def _rows(bench: Bench) -> Table:
    """Measure calls whose rows PostgreSQL keeps, and what it takes of the processor for one."""
    bench.tell("scale: rows of the log in PostgreSQL")
    with postgres() as server, _logged(bench, server) as (gateway, asked):
        bench.measure(gateway, asked, concurrency=16, seconds=0.5, least=50)
        before = server.cpu_seconds()
        sample = bench.measure(gateway, asked, concurrency=16, seconds=bench.pace.seconds * 4, least=200)
        time.sleep(2.0)
        store = (server.cpu_seconds() - before) * 1e6 / max(1, sample.result.requests)
    rows = (
        Row.of_one_round("bardo's processor", "µs", {"a call": sample.cpu}),
        Row.of_one_round("PostgreSQL's processor", "µs", {"a call": store}),
        Row.of_one_round("rows a second that a core of PostgreSQL takes", "number", {"a call": 1e6 / max(store, 1.0)}),
    )
    title = "scale: calls whose rows PostgreSQL keeps"
    return Table(subject="scale", title=title, columns=("a call",), rows=rows)


@contextmanager
def _logged(bench: Bench, server: Postgres) -> Iterator[tuple[Any, Any]]:
    def command(place: Place) -> list[str]:
        config = place.folder / "bardo.toml"
        config.write_text(_CONFIG.format(store=server.address, upstream=place.upstream))
        return [place.python, "-m", "bardo", "serve", "--config", str(config), "--port", str(place.port)]

    lane = Lane(name="forwarded", model="plain/{}")
    contestant = Contestant(name="bardo, rows in PostgreSQL", lanes=(lane,), command=command, environment={_KEY: "any"})
    gateway = bench.start(contestant)
    assert gateway is not None
    try:
        yield gateway, (lane.asked("whole"),)
    finally:
        gateway.stop()

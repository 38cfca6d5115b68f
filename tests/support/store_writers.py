"""What a process writes into one of bardo's stores, so that a test can have several do it at once, and what is found there afterwards.

As a program it takes orders from its input, one JSON object a line: a store, its place, and a name for what it writes.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal, NamedTuple

WRITES = 40
NOW = 1_795_435_200.0
Write = Callable[[str], Awaitable[object]]
Read = Callable[[], Awaitable[list[str]]]


class Opened(NamedTuple):
    """An open store: `write` keeps a name in it, and `read` returns the names that are kept there, each as often as it is."""

    write: Write
    read: Read


Opening = Callable[[str], AsyncIterator[Opened]]


async def payments(place: str) -> AsyncIterator[Opened]:
    from bardo.accounting.payments import Payer
    from bardo.services.payments.ledger import LedgerEntry, day_of, open_ledger

    ledger = open_ledger(place)

    def entry(name: str, ordinal: int) -> LedgerEntry:
        return LedgerEntry(
            payment_id=name, purchase=name, ordinal=ordinal, request_id=name, provider="seller", state="reserved", proof="bardo",
            created_at=NOW, changed_at=NOW, day=day_of(NOW), tenant="", subsystem="", payer="0xaa", recipient="0xbb", network="n",
            asset="0xcc", symbol="USDC", amount="1", nanos=1, nonce="0x1", valid_before=int(NOW) + 60,
        )  # fmt: skip

    async def write(name: str) -> None:
        await asyncio.to_thread(ledger.reserve, name, lambda ordinal: entry(name, ordinal), lambda _: ("", ""))

    async def read() -> list[str]:
        assert ledger.spent(day_of(NOW), Payer()).day == len(ledger.unproven())
        return [one.payment_id for one in ledger.unproven()]

    yield Opened(write, read)
    ledger.close()


async def limits(place: str) -> AsyncIterator[Opened]:
    from bardo.accounting.limits import day_number
    from bardo.services.accounts.key_store import open_keys
    from bardo.services.accounts.lease_store import SqlLeaseStore
    from bardo.services.accounts.leases import Estimate, LeaseStore
    from bardo.services.accounts.redis_leases import RedisLeaseStore

    def nothing(account: str, first_day: int, last_day: int) -> int:
        return 0

    worker, engine = f"worker {time.monotonic()}", None
    if place.startswith("unix:"):
        store: LeaseStore = RedisLeaseStore(place, worker, nothing)
    else:
        engine = open_keys(place)
        store = SqlLeaseStore(engine, worker, nothing)

    async def write(_: str) -> None:
        await asyncio.to_thread(store.sync, [], [Estimate("k", day_number(NOW), 1)], NOW)

    async def read() -> list[str]:
        return _numbered(store.used("k", NOW).total("usd_per_day", NOW))

    yield Opened(write, read)
    store.close()
    if engine is not None:
        engine.dispose()


async def log(place: str) -> AsyncIterator[Opened]:
    from bardo.adapters.stores.log import LogReader, LogRow, LogWriter

    writer = LogWriter(place, batch=3, flush_seconds=0.001)

    async def write(name: str) -> None:
        writer.write(LogRow(request_id=name, started_at=NOW, cost_nanos=1))

    async def read() -> list[str]:
        with LogReader(place) as reader:
            found = [row.request_id for row in reader.recent(10_000)]
            assert sum(group.sums.cost_nanos for group in reader.costs()) == len(found)
        return found

    yield Opened(write, read)
    writer.close()
    assert writer.dropped == 0


async def feedback(place: str) -> AsyncIterator[Opened]:
    from bardo.adapters.stores.log import Feedback, LogReader, LogRow, LogWriter
    from bardo.adapters.stores.log.feedback import FeedbackStore

    request_id = f"call of {time.monotonic()}"
    with LogWriter(place) as writer:
        writer.write(LogRow(request_id=request_id, started_at=NOW, tenant="t"))
    store = FeedbackStore(place)

    async def write(name: str) -> None:
        given = Feedback(request_id=request_id, given_at=NOW, score=1.0, comment=name)
        assert await asyncio.to_thread(store.add, given, "t")

    async def read() -> list[str]:
        with LogReader(place) as reader:
            calls = [row.request_id for row in reader.recent(10)]
            return [one.comment or "" for call in calls for one in reader.feedback(call)]

    yield Opened(write, read)
    store.close()


async def memory(place: str) -> AsyncIterator[Opened]:
    from bardo.adapters.stores.log import LogWriter
    from support.episodes import Kept, draft

    LogWriter(place).close()
    with Kept(place) as kept:

        async def write(name: str) -> None:
            kept.writer.write(draft(name, "what", f"thought of {name}", "so"))

        async def read() -> list[str]:
            from sqlalchemy import text

            from bardo.adapters.stores.database.engines import address_of, open_for_reading

            engine = open_for_reading(address_of(place))
            with engine.connect() as connection:
                found = [*connection.scalars(text("SELECT request_id FROM memory_episodes"))]
            engine.dispose()
            return found

        yield Opened(write, read)


async def keys(place: str) -> AsyncIterator[Opened]:
    from bardo.adapters.config.accounts import Account
    from bardo.services.accounts.key_store import opened_keys

    with opened_keys(place) as store:

        async def write(name: str) -> None:
            await asyncio.to_thread(store.create, Account(id="", name=name), own_name=True)

        async def read() -> list[str]:
            revision, stored = store.load()
            assert revision == len(stored)
            return [one.account.name for one in stored]

        yield Opened(write, read)


async def batches(place: str) -> AsyncIterator[Opened]:
    from bardo.adapters.stores.database.revisions import migrate
    from bardo.adapters.stores.migrations import BATCHES_BRANCH
    from bardo.batches.batch_store import BatchStore
    from bardo.batches.records import BatchRecord
    from bardo.batches.schema import metadata
    from support.databases import open_database

    engine = open_database(place)
    migrate(engine, BATCHES_BRANCH, metadata=metadata)
    store = BatchStore(engine)

    async def write(name: str) -> None:
        made = BatchRecord(
            id=name, tenant="t", dialect="openai", endpoint="/v1/x", created_at=NOW, expires_at=NOW + 86_400
        )
        await asyncio.to_thread(store.add, made)

    async def read() -> list[str]:
        return [one.id for one in store.listed("t", "openai", limit=10_000)]

    yield Opened(write, read)
    engine.dispose()


async def files(place: str) -> AsyncIterator[Opened]:
    from bardo.adapters.stores.database.revisions import migrate
    from bardo.adapters.stores.migrations import BATCHES_BRANCH
    from bardo.batches.file_store import FileStore
    from bardo.batches.records import FileRecord
    from bardo.batches.schema import metadata
    from support.databases import open_database

    engine = open_database(place)
    migrate(engine, BATCHES_BRANCH, metadata=metadata)
    store = FileStore(engine)

    async def write(name: str) -> None:
        def upload(state: Literal["uploading", "ready"]) -> FileRecord:
            return FileRecord(
                id=name, tenant="t", state=state, purpose="batch", name=name, size=1, created_at=NOW, expires_at=None
            )

        await asyncio.to_thread(store.begin, upload("uploading"))
        await asyncio.to_thread(store.add, name, 0, name.encode())
        await asyncio.to_thread(store.finish, upload("ready"))

    async def read() -> list[str]:
        found = store.listed("t", NOW, purpose="batch", limit=10_000, after=None, newest_first=False)
        return [b"".join(store.pieces(one.id)).decode() for one in found]

    yield Opened(write, read)
    engine.dispose()


async def replies(place: str) -> AsyncIterator[Opened]:
    from bardo.context.cache.entries import CacheBounds, CacheEntry
    from bardo.services.pipeline.reply_cache.opening import open_replies

    store = open_replies(place, CacheBounds())

    async def write(name: str) -> None:
        entry = CacheEntry(tenant="t", identity=name.encode(), value=name.encode(), expires=NOW + 60, index=b"i")
        assert await asyncio.to_thread(store.put, entry, now=NOW)

    async def read() -> list[str]:
        found = [one.identity for one in store.indexed(0, 10_000, now=NOW)]
        assert store.totals()[0] == len(found)
        return [(store.find("t", one, now=NOW) or b"").decode() for one in found]

    yield Opened(write, read)
    store.close()


async def replay(place: str) -> AsyncIterator[Opened]:
    from bardo.adapters.stores.state import Bounds, open_store
    from bardo.adapters.stores.state.calls import StateCalls

    store = open_store(place, Bounds())
    assert store is not None
    calls = StateCalls(store, name="earlier reasoning", area="replay", holds_writes=True)

    async def write(name: str) -> None:
        assert await calls.put("t", [name, f"{name} again"], name.encode(), now=NOW, reply=name)

    async def read() -> list[str]:
        found = await calls.find("t", _both(), now=NOW) or {}
        assert store.totals()[0] == len(found)
        return [value.decode() for value in found.values()]

    yield Opened(write, read)
    calls.close()


async def responses(place: str) -> AsyncIterator[Opened]:
    from bardo.adapters.stores.response_store import ResponseStore
    from bardo.adapters.stores.state import Bounds, open_store
    from bardo.dialects.openai_responses.stored import StoredResponse

    kept = open_store(place, Bounds(), space="responses")
    assert kept is not None
    store = ResponseStore(kept, clock=lambda: NOW)

    async def write(name: str) -> None:
        assert await store.put("t", StoredResponse(response={"id": name, "output": []}, input=[], earlier=()))

    async def read() -> list[str]:
        return list(await store.responses("t", _both()))

    yield Opened(write, read)
    store.close()


async def conversations(place: str) -> AsyncIterator[Opened]:
    from bardo.adapters.stores.response_store import ResponseStore, StoredConversation
    from bardo.adapters.stores.state import Bounds, open_store

    kept = open_store(place, Bounds(), space="responses")
    assert kept is not None
    store = ResponseStore(kept, clock=lambda: NOW)
    if await store.conversation("t", "c") is None:
        await store.put_conversation("t", StoredConversation(id="c", created_at=int(NOW)))

    async def write(name: str) -> None:
        assert await store.append("t", "c", [{"id": name}])

    async def read() -> list[str]:
        found = await store.conversation("t", "c")
        return [] if found is None else [one["id"] for one in found.items]

    yield Opened(write, read)
    store.close()


async def provider_ids(place: str) -> AsyncIterator[Opened]:
    from bardo.adapters.config.settings import parse_settings
    from bardo.services.facts.provider_ids import open_provider_ids
    from bardo.values.errors import BardoError
    from bardo.values.request import Request

    ids = open_provider_ids(parse_settings(f"[provider_ids]\nstore = {json.dumps(place)}\n"))

    async def write(name: str) -> None:
        await ids.keep("t", [name])

    async def read() -> list[str]:
        known = []
        for name in _both():
            try:
                await ids.check(
                    Request(dialect="openai_responses", model="m", messages=(), body={"previous_response_id": name}),
                    "t",
                )
            except BardoError:
                continue
            known.append(name)
        return known

    yield Opened(write, read)
    ids.close()


async def health(place: str) -> AsyncIterator[Opened]:
    from bardo.services.facts.health_sharing import Exchange, FileExchange, RedisExchange

    exchange: Exchange
    if place.startswith("unix:"):
        exchange = RedisExchange(place, space="health", past_seconds=600.0)
    else:
        exchange = FileExchange(place, past_seconds=600.0)

    async def write(name: str) -> None:
        await asyncio.to_thread(exchange.exchange, name.encode(), hold=["a target"])

    async def read() -> list[str]:
        return [one.data.decode() for one in exchange.exchange(b"").messages]

    yield Opened(write, read)
    exchange.close()


async def similar_questions(place: str) -> AsyncIterator[Opened]:
    from bardo.services.pipeline.reply_cache.evidence import SimilarEvidence

    evidence = SimilarEvidence(Path(place))

    async def write(_: str) -> None:
        evidence.count("f", "served")
        await asyncio.to_thread(evidence.store)

    async def read() -> list[str]:
        evidence.store()
        return _numbered(evidence.figures()[0].served)

    yield Opened(write, read)


async def agent_steps(place: str) -> AsyncIterator[Opened]:
    from bardo.services.accounts.agent_calls import SessionSteps

    steps = SessionSteps(Path(place), lambda: NOW)

    async def write(_: str) -> None:
        await steps.next("session")

    async def read() -> list[str]:
        return _numbered(await steps.next("session"))

    yield Opened(write, read)


async def learned_routing(place: str) -> AsyncIterator[Opened]:
    from bardo.adapters.config.settings import parse_settings
    from bardo.adapters.stores.log import LogRow
    from bardo.services.facts import learned_routing as module
    from bardo.services.facts.learned_routing import LearnedRouting

    module.STORED_EVERY = 5
    settings = parse_settings(f"[routing.learned]\nfile = {json.dumps(place)}\n")
    learned = LearnedRouting.of(settings)

    async def write(name: str) -> None:
        import msgspec

        pending = learned.router.choose("2 + 2?", {"p/a": 0.1, "p/b": 0.2}, request_id=name, at=NOW)
        provider, _, model = pending.choice.asked.partition("/")
        learned.note(
            LogRow(
                request_id=name,
                started_at=NOW,
                provider=provider,
                model=model,
                route={"learned": msgspec.to_builtins(pending)},
            )
        )

    async def read() -> list[str]:
        state = LearnedRouting.of(settings).router.state
        route = state.routes["default"]
        count = route.routed.count + route.single.count
        assert round(sum(row.whole.count for row in state.rows.values())) == count
        return _numbered(count)

    yield Opened(write, read)
    learned.close()


async def lists_of_models(place: str) -> AsyncIterator[Opened]:
    from bardo.services.facts.listings import Listing, ListingStore

    store = ListingStore(Path(place))

    async def write(name: str) -> None:
        # All write the same file, too: it is one of theirs at any time.
        for file in (name, "common"):
            assert await asyncio.to_thread(store.save, f"{file}.json", Listing(source=name, at=NOW, models={}))

    async def read() -> list[str]:
        assert store.load("common.json") is not None
        found = [store.load(f"{name}.json") for name in _both()]
        return [one.source for one in found if one is not None]

    yield Opened(write, read)


def names_of(writer: str) -> list[str]:
    """Return what a process of this name writes."""
    return [f"{writer}{number}" for number in range(WRITES)]


def _both() -> list[str]:
    return [*names_of("a"), *names_of("b")]


def _numbered(count: int) -> list[str]:
    """Return as many names as were counted, for a store that keeps numbers alone: the first of those that are written."""
    return [*_both(), *(f"one too many {number}" for number in range(count))][:count]


STORES: dict[str, Opening] = {
    opening.__name__: opening
    for opening in (
        payments, limits, log, feedback, memory, keys, batches, files, replies, replay, responses, conversations, provider_ids, health,
        similar_questions, agent_steps, learned_routing, lists_of_models,
    )
}  # fmt: skip
OVER_POSTGRES = tuple(STORES)[:13]
OVER_REDIS = ("limits", "replies", "replay", "responses", "conversations", "provider_ids", "health")


async def _write_all(store: str, place: str, writer: str) -> list[str]:
    problems = []
    async with asynccontextmanager(STORES[store])(place) as one:
        print("ready", flush=True)
        sys.stdin.readline()
        for name in names_of(writer):
            try:
                await one.write(name)
            except Exception as problem:  # noqa: BLE001 - the test names it.
                problems.append(f"{name}: {type(problem).__module__}.{type(problem).__name__}: {problem}")
    return problems


def main() -> None:
    """Do what is ordered until there are no more orders."""
    while line := sys.stdin.readline():
        order = json.loads(line)
        print(json.dumps(asyncio.run(_write_all(**order))), flush=True)


if __name__ == "__main__":
    main()

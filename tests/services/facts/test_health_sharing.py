"""Gateways that share health over a server, and workers over a file: what one saw others know, and a server that is away stops nothing."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from bardo.adapters.config.routing import HealthSettings, health_store
from bardo.adapters.config.settings import parse_settings
from bardo.adapters.stores.database.store_calls import StoreCalls
from bardo.routing.circuit import AttemptOutcome
from bardo.routing.health_news import TargetCounts, TargetDown, decode_news, encode_news
from bardo.routing.shared_health import STALE_COUNTS_SECONDS, SharedHealth
from bardo.services.facts.health import HealthKeeper
from bardo.services.facts.health_sharing import (
    LEASE_SECONDS,
    Exchange,
    ExchangeResult,
    FileExchange,
    HealthSharing,
    RedisExchange,
    open_sharing,
)
from bardo.values.errors import ConfigError
from support.patience import PATIENCE
from support.redis import run_redis
from support.two_gateways import exchange_at

OK = AttemptOutcome(seconds=0.5)
SERVER = AttemptOutcome(error="server", status=500)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, PATIENCE))


@pytest.fixture(params=["redis", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return where gateways share health: a real server, or a file of one machine."""
    return str(tmp_path / "health.db" if request.param == "file" else request.getfixturevalue("redis_url"))


class Gateway:
    """One gateway's health, shared at an address, with a clock that is set."""

    def __init__(self, address: str) -> None:
        self.now = 1000.0
        self.store = SharedHealth()
        self.keeper = HealthKeeper(self.store)
        self.server = exchange_at(address)
        calls: StoreCalls[Exchange] = StoreCalls(
            lambda: self.server, in_memory=False, watch=lambda: self.now, name="shared health", area="health"
        )
        self.sharing = HealthSharing(self.keeper, self.store, calls, watch=lambda: self.now)

    def fail(self, times: int = 5, model: str = "m") -> None:
        for _ in range(times):
            self.keeper.note("p", model, SERVER, self.now)

    def state(self, model: str = "m") -> str:
        return self.keeper.state("p", model, self.now)


async def begin(*gateways: Gateway) -> None:
    for gateway in gateways:
        assert await gateway.sharing.exchange()


async def end(*gateways: Gateway) -> None:
    for gateway in gateways:
        await gateway.sharing.close()


def test_failures_that_no_gateway_is_sure_of_alone_take_a_target_down_for_all(place: str) -> None:
    async def check() -> None:
        gateways = [Gateway(place) for _ in range(3)]
        await begin(*gateways)
        for gateway in gateways:
            gateway.fail(2)
        assert {gateway.state() for gateway in gateways} == {"unknown"}
        for _ in range(2):
            await begin(*gateways)
        assert {gateway.state() for gateway in gateways} == {"down"}
        await end(*gateways)

    run(check())


def test_what_goes_down_while_a_gateway_joins_the_others_is_told(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def check() -> None:
        one, other = Gateway(place), Gateway(place)
        await begin(other)
        exchange, asked, answers = one.server.exchange, asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def exchange_slowly(*words: Any, **fields: Any) -> ExchangeResult:
            result = exchange(*words, **fields)
            loop.call_soon_threadsafe(asked.set)
            assert answers.wait(PATIENCE)
            return result

        monkeypatch.setattr(one.server, "exchange", exchange_slowly)
        joining = asyncio.ensure_future(one.sharing.exchange())
        await asked.wait()
        one.fail()
        answers.set()
        assert await joining
        await begin(one, other)
        assert other.state() == "down"
        await end(one, other)

    run(check())


def test_one_gateway_of_three_tries_what_is_down_and_its_answer_brings_it_back_for_all(place: str) -> None:
    async def check() -> None:
        gateways = [Gateway(place) for _ in range(3)]
        await begin(*gateways)
        gateways[0].fail()
        await begin(*gateways, *gateways, *gateways)
        for gateway in gateways:
            gateway.now += 20
            assert not gateway.keeper.may_try("p", "m", gateway.now), "nobody holds the trial yet"
        await begin(*gateways)
        tries = [gateway for gateway in gateways if gateway.keeper.may_try("p", "m", gateway.now)]
        assert len(tries) == 1
        tries[0].keeper.note("p", "m", OK, tries[0].now)
        await begin(*gateways, *gateways)
        assert "down" not in {gateway.state() for gateway in gateways}
        assert all(gateway.keeper.may_try("p", "m", gateway.now) for gateway in gateways)
        await end(*gateways)

    run(check())


def test_a_trial_that_is_not_used_goes_to_another_gateway(place: str) -> None:
    async def check() -> None:
        one, other = Gateway(place), Gateway(place)
        await begin(one, other)
        one.fail()
        await begin(one, other, one, other)
        one.now = other.now = 1020.0
        assert not one.keeper.may_try("p", "m", one.now)
        assert not other.keeper.may_try("p", "m", other.now)
        await begin(one, other)
        one.now = other.now = 1026.0
        await begin(one, other)
        assert not one.keeper.may_try("p", "m", one.now)
        assert other.keeper.may_try("p", "m", other.now)
        await end(one, other)

    run(check())


def test_the_trial_of_a_gateway_that_died_is_free_after_a_while(redis_url: str) -> None:
    one, other = (RedisExchange(redis_url, space="health", past_seconds=300.0) for _ in range(2))
    assert one.exchange(b"", hold=["t"]).held == ["t"]
    assert other.exchange(b"", hold=["t"]).held == []
    import redis

    with redis.Redis.from_url(redis_url) as server:
        (name,) = server.keys("bardo:{health}:lease:*")
        assert 0 < server.pttl(name) <= LEASE_SECONDS * 1000
        server.delete(name)  # as the server does when that time is over
    assert other.exchange(b"", hold=["t"]).held == ["t"]
    assert one.exchange(b"", hold=["t"], give_back=["t"]).held == [], (
        "what another holds now is neither kept nor given back"
    )
    for exchange in (one, other):
        exchange.close()


def test_a_gateway_that_begins_learns_what_others_saw_before(place: str) -> None:
    async def check() -> None:
        one = Gateway(place)
        await begin(one)
        one.fail()
        one.keeper.note("p", "limited", AttemptOutcome(error="rate_limited", rest_seconds=60.0), one.now)
        for _ in range(20):
            one.keeper.note("p", "well", OK, one.now)
        await begin(one)
        late = Gateway(place)
        await begin(late)
        assert [late.state(model) for model in ("m", "limited", "well")] == ["down", "degraded", "healthy"]
        assert late.keeper.latency("p", "well").calls == 10
        await end(one, late)

    run(check())


def test_a_key_that_rests_for_one_gateway_rests_for_all_until_it_is_taken(place: str) -> None:
    refused = AttemptOutcome(error="key_refused", status=401, key="KEY")

    async def check() -> None:
        one, other = Gateway(place), Gateway(place)
        for gateway in (one, other):
            gateway.store.rests.register("p", ("KEY", "OTHER_KEY"))
        await begin(one, other)
        one.keeper.note("p", "m", refused, one.now)
        await begin(one, other)
        rest = other.store.rests.rest("p", "KEY", "any", other.now)
        assert rest is not None
        assert rest.refused
        assert 59 < rest.until - other.now <= 60
        assert other.store.rests.rest("p", "OTHER_KEY", "any", other.now) is None
        one.now = other.now = 1061.0
        other.keeper.note("p", "m", AttemptOutcome(seconds=1.0, key="KEY"), other.now)
        await begin(other, one)
        assert not one.store.troubled
        one.keeper.note("p", "m", refused, one.now)
        assert one.store.rests.rest("p", "KEY", "m", one.now + 59) is not None
        assert one.store.rests.rest("p", "KEY", "m", one.now + 61) is None, "the rests begin with the shortest again"
        await end(one, other)

    run(check())


def test_a_server_that_is_stopped_leaves_each_gateway_with_what_it_sees_and_comes_back_by_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, redis_program: str
) -> None:
    address, servers = f"unix://{tmp_path}/socket", [run_redis(redis_program, tmp_path)]

    async def check() -> None:
        one, other = Gateway(address), Gateway(address)
        await begin(one, other)
        assert one.keeper.sharing == "shared"
        servers[0].kill()
        servers[0].wait(PATIENCE)
        assert not await one.sharing.exchange()
        assert not await other.sharing.exchange()
        assert one.keeper.sharing == other.keeper.sharing == "alone"
        one.fail()
        assert (one.state(), other.state()) == ("down", "unknown")
        assert one.keeper.may_try("p", "m", one.now + 20), "no trial is asked for of a server that is away"
        (tmp_path / "socket").unlink(missing_ok=True)
        servers.append(run_redis(redis_program, tmp_path))
        one.now = other.now = 1010.0
        assert await one.sharing.exchange()
        assert await other.sharing.exchange()
        assert (one.state(), other.state()) == ("down", "down"), "what is down by then is told"
        assert one.keeper.sharing == other.keeper.sharing == "shared"
        await end(one, other)

    try:
        run(check())
    finally:
        for server in servers:
            server.kill()
            server.wait(PATIENCE)
    said = [record.message for record in caplog.records if "the store of shared health" in record.message]
    assert len(said) == 4, "each gateway says once that it begins, and once that it is over"


def test_an_absent_server_fails_no_start(tmp_path: Path) -> None:
    async def check() -> None:
        settings = HealthSettings(store=f"unix://{tmp_path}/none")
        keeper = HealthKeeper(health_store(settings))
        sharing = open_sharing(settings, keeper)
        sharing.start()
        await asyncio.sleep(0)
        for _ in range(5):
            keeper.note("p", "m", SERVER, 0.0)
        assert keeper.state("p", "m", 0.0) == "down"
        await sharing.close()
        assert keeper.sharing == "alone"

    run(check())


def test_what_a_gateway_tells_last_is_sent_when_it_ends(place: str) -> None:
    async def check() -> None:
        one, other = Gateway(place), Gateway(place)
        await begin(one, other)
        one.sharing.start()
        one.fail()
        await one.sharing.close()
        await begin(other)
        assert other.state() == "down"
        await end(other)

    run(check())


@pytest.mark.parametrize("sent", [b"", b"\xc1", b"\x91\x80", encode_news(()), b"x" * 10_000], ids=str)
def test_a_message_that_cannot_be_read_changes_nothing_and_is_said_once(
    redis_url: str, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def check() -> None:
        one = Gateway(redis_url)
        await begin(one)
        import redis

        with redis.Redis.from_url(redis_url) as server:
            for _ in range(3):
                server.xadd("bardo:{health}:messages", {"from": "somebody", "data": sent})
            server.xadd("bardo:{health}:messages", {"other": "field"})
        await begin(one)
        assert not one.store.troubled
        assert list(one.store.targets()) == []
        await end(one)

    run(check())
    said = [one for one in caplog.records if "cannot read" in one.message]
    assert len(said) == (0 if sent == encode_news(()) else 1)


def test_changes_that_others_saw_are_logged(place: str, caplog: pytest.LogCaptureFixture) -> None:
    async def check() -> None:
        one, other = Gateway(place), Gateway(place)
        await begin(one, other)
        one.fail()
        await begin(one)
        with caplog.at_level(logging.WARNING):
            caplog.clear()
            await begin(other)
        await end(one, other)

    run(check())
    assert [one.message for one in caplog.records] == ["p/m is down: calls of other gateways to it fail"]


def test_news_are_as_old_as_their_way_took() -> None:
    store = SharedHealth()
    news = [TargetDown(provider="p", model="m", rest_seconds=15.0, due_in=15.0, fault="server")]
    store.take(news, age=4.0, now=100.0)
    assert store.down("p", "m", 100.0) == 111.0
    late = SharedHealth()
    late.take(news, age=16.0, now=100.0)
    assert not late.troubled, "it was to be tried again before that"
    counts = TargetCounts(provider="p", model="m", faults={"server": 9})
    late.take([counts], age=STALE_COUNTS_SECONDS, now=100.0)
    assert not late.troubled


def test_news_are_read_as_they_were_written() -> None:
    store = SharedHealth()
    store.in_step = True
    for outcome in (OK, *[SERVER] * 5, AttemptOutcome(error="rate_limited", rest_seconds=3.0, key="K")):
        store.note("p", "m", outcome, 50.0)
    news = store.outgoing(51.0)
    assert decode_news(encode_news(news)) == news
    assert {type(one).__name__ for one in news} == {"TargetCounts", "TargetDown", "KeyRests"}
    assert store.outgoing(52.0) == ()


def test_what_is_to_be_told_is_bounded_whatever_models_clients_name() -> None:
    store = SharedHealth()
    store.in_step = True
    for place in range(20_000):
        store.note("p", f"m{place}", SERVER if place % 2 else OK, 0.0)
    assert len(store.outgoing(1.0)) <= 2048


def test_the_trial_of_a_worker_that_died_is_free_after_a_while(tmp_path: Path) -> None:
    now = [1000.0]
    one, other = (FileExchange(tmp_path / "h.db", past_seconds=300.0, clock=lambda: now[0]) for _ in range(2))
    assert one.exchange(b"", hold=["t"]).held == ["t"]
    now[0] += LEASE_SECONDS - 1
    assert other.exchange(b"", hold=["t"]).held == []
    now[0] += 1
    assert other.exchange(b"", hold=["t"]).held == ["t"]
    assert one.exchange(b"", hold=["t"], give_back=["t"]).held == [], (
        "what another holds now is neither kept nor given back"
    )
    for exchange in (one, other):
        exchange.close()


def test_a_file_keeps_messages_for_workers_that_begin_and_not_longer(tmp_path: Path) -> None:
    now = [1000.0]

    def exchange() -> FileExchange:
        return FileExchange(tmp_path / "h.db", past_seconds=300.0, clock=lambda: now[0])

    one = exchange()
    for sent in (b"first", b"second", b"third"):
        one.exchange(sent)
        now[0] += 200
    late = exchange()
    assert late.exchange(b"").messages == [(200.0, b"third")]
    one.exchange(b"fourth")
    assert late.exchange(b"").messages == [(0.0, b"fourth")]
    assert one.exchange(b"").messages == [], "a worker does not hear itself"
    with sqlite3.connect(tmp_path / "h.db") as rows:
        kept = [data for (data,) in rows.execute("SELECT data FROM messages ORDER BY id")]
    rows.close()
    assert kept == [b"third", b"fourth"], "older ones are removed"
    assert (tmp_path / "h.db").stat().st_mode & 0o077 == 0
    for worker in (one, late):
        worker.close()


def test_a_file_that_cannot_be_written_leaves_each_worker_with_what_it_sees(tmp_path: Path) -> None:
    async def check() -> None:
        (tmp_path / "something").touch()
        settings = HealthSettings(store=str(tmp_path))
        keeper = HealthKeeper(health_store(settings))
        sharing = open_sharing(settings, keeper)
        assert not await sharing.exchange()
        assert keeper.sharing == "alone"
        await sharing.close()

    run(check())


@pytest.mark.parametrize("store", ["postgresql://db/bardo", "http://x"])
def test_a_store_that_health_cannot_be_shared_over_is_refused_with_its_line(store: str) -> None:
    with pytest.raises(ConfigError, match="line 2: health is shared over Redis or Valkey"):
        parse_settings(f'[health]\nstore = "{store}"\n')


def test_the_store_may_be_named_by_a_variable() -> None:
    settings = HealthSettings(store_env="SHARED")
    keeper = HealthKeeper(health_store(settings))
    with pytest.raises(ConfigError, match="SHARED, which holds the store of health, is not set"):
        open_sharing(settings, keeper, {})
    with pytest.raises(ConfigError, match="SHARED: health is shared over Redis"):
        open_sharing(settings, keeper, {"SHARED": "postgresql://db/bardo"})

"""Limits that are counted in Redis or Valkey: what names the server, and what holds while it is away or has lost its data."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from bardo.accounting.limits import KeyLimits, LeaseRequest
from bardo.adapters.config.accounts import Account
from bardo.adapters.config.settings import parse_settings
from bardo.adapters.stores.database.problems import DatabaseUnusable
from bardo.services.accounts.admissions import Admissions
from bardo.services.accounts.call_facts import CallFacts
from bardo.services.accounts.leases import Estimate, Lease, LeaseGrant
from bardo.services.accounts.opening import open_accounts
from bardo.services.accounts.redis_leases import RedisLeaseStore
from bardo.values.errors import ConfigError, RateLimited
from support.patience import PATIENCE
from support.redis import run_redis

NOON = 1_795_435_200.0
TEAM = Account(id="team", limits=KeyLimits(concurrency=40))
KEYS = '[[keys]]\nid = "team"\nkey_env = "TEAM_KEY"\nconcurrency = 1\n'


class OwnServer:
    """A server of one test, which it may stop and start again without its data."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program, self._folder = program, folder
        self.address = f"unix://{folder}/socket"
        self.start()

    def start(self) -> None:
        self._process = run_redis(self._program, self._folder)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE)


@pytest.fixture
def server(redis_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServer]:
    found = OwnServer(redis_program, tmp_path_factory.mktemp("redis"))
    yield found
    found.stop()


def nothing_spent(account: str, first_day: int, last_day: int) -> int:
    return 0


def test_a_server_that_lost_its_data_is_told_again_what_is_leased(server: OwnServer) -> None:
    one, other = (RedisLeaseStore(server.address, name, nothing_spent) for name in ("one", "other"))
    want = LeaseRequest("concurrency", 0, 2, 0, 2)
    assert isinstance(one.claim("team", [], [want], NOON), LeaseGrant)
    server.stop()
    server.start()
    assert one.sync([], [], NOON + 1) == 1
    assert not isinstance(other.claim("team", [], [want._replace(need=1)], NOON + 1), LeaseGrant)
    one.close()
    other.close()


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("unanswered", [0, 1])
def test_what_was_lost_is_stored_by_the_next_question_where_the_first_one_failed(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, unanswered: int, is_done: bool
) -> None:
    one, other = (RedisLeaseStore(redis_url, name, nothing_spent) for name in ("one", "other"))
    want = LeaseRequest("concurrency", 0, 2, 0, 2)
    assert isinstance(one.claim("team", [], [want], NOON), LeaseGrant)
    one._server.flushall()
    asked: list[int] = []
    evaluate = one._server.eval

    def fails(*arguments: object) -> object:
        asked.append(len(asked))
        answer = evaluate(*arguments) if asked[-1] < unanswered or is_done else None
        if asked[-1] >= unanswered:
            raise redis.ConnectionError("the server was stopped")
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(one._server, "eval", fails)
        with pytest.raises(DatabaseUnusable):
            one.sync([], [], NOON + 1)
    assert one.sync([], [], NOON + 2) == 1
    assert not isinstance(other.claim("team", [], [want._replace(need=1)], NOON + 2), LeaseGrant)
    one.close()
    other.close()


def test_what_is_leased_is_given_out_while_the_server_is_away(server: OwnServer) -> None:
    async def run() -> None:
        store = RedisLeaseStore(server.address, "one", nothing_spent)
        admissions = Admissions(store, None, clock=lambda: NOON)
        await admissions.admit(TEAM, CallFacts(request_id="1"))
        server.stop()
        await admissions.admit(TEAM, CallFacts(request_id="2"))
        with pytest.raises(DatabaseUnusable, match="store of limits"):
            await admissions.admit(TEAM, CallFacts(request_id="3"))
        server.start()
        later = Admissions(store, None, clock=lambda: NOON + 5)
        await later.admit(TEAM, CallFacts(request_id="4"))
        store.close()

    asyncio.run(run())


def test_rows_of_past_minutes_and_of_processes_that_are_over_are_removed(redis_url: str) -> None:
    gone, left = (RedisLeaseStore(redis_url, name, nothing_spent, by_server=False) for name in ("gone", "left"))
    gone.claim("team", [], [LeaseRequest("concurrency", 0, 9, 0, 1)], NOON)
    gone.claim("team", [], [LeaseRequest("requests_per_minute", int(NOON), 9, 0, 1)], NOON)
    later = NOON + 200
    left.clean(later)
    left.claim("team", [], [LeaseRequest("concurrency", 0, 9, 0, 1)], later)
    with redis.Redis.from_url(redis_url) as server:
        assert list(server.hgetall("bardo:{limits}:leases:team")) == [b"concurrency|0|left"]
        assert server.zrange("bardo:{limits}:workers", 0, -1) == [b"left"]
    gone.close()
    left.close()


def test_processes_whose_clocks_differ_see_each_other_by_the_servers_clock(redis_url: str) -> None:
    ahead, behind = (RedisLeaseStore(redis_url, name, nothing_spent) for name in ("ahead", "behind"))
    assert behind.sync([Lease("team", ("concurrency", 0), 4)], (), NOON - 60) == 1
    assert ahead.sync((), (), NOON) == 2
    ahead.clean(NOON)
    assert ahead.used("team", NOON).total("concurrency", NOON) == 4
    want = LeaseRequest("concurrency", 0, 10, 0, 7)
    assert not isinstance(ahead.claim("team", (), [want], NOON), LeaseGrant)
    with redis.Redis.from_url(redis_url) as server:
        server.zincrby("bardo:{limits}:workers", -11, "behind")
    assert ahead.used("team", NOON).total("concurrency", NOON) == 0
    ahead.clean(NOON)
    assert behind.sync((), (), NOON - 60) == 2, "it was away, and stores its rows anew"
    assert ahead.used("team", NOON).total("concurrency", NOON) == 4
    ahead.close()
    behind.close()


@pytest.mark.parametrize("is_done", [True, False])
def test_an_estimate_whose_answer_was_lost_counts_once(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    one = RedisLeaseStore(redis_url, "one", nothing_spent)
    evaluate, given = one._server.eval, [Estimate("team", 20261123, 7)]

    def fails(*arguments: object) -> None:
        if is_done:
            evaluate(*arguments)
        raise redis.ConnectionError("the answer was lost")

    for nanos in (10, 100):
        with monkeypatch.context() as patch:
            patch.setattr(one._server, "eval", fails)
            with pytest.raises(DatabaseUnusable):
                one.sync((), given, NOON)
        given = [*given, Estimate("team", 20261123, nanos)]
    one.sync((), given, NOON)
    assert one.used("team", NOON).total("usd_per_day", NOON) == 117
    one.sync((), given[:1], NOON)
    assert one.used("team", NOON).total("usd_per_day", NOON) == 124
    one.leave()
    assert not one._server.keys("*stored*")
    one.close()


def test_two_gateways_that_name_a_server_share_the_limits_of_a_key(redis_url: str, tmp_path: Path) -> None:
    async def run() -> None:
        environment = {"TEAM_KEY": "sk-team-0123456789", "REDIS": redis_url}
        gateways = []
        for name in ("a", "b"):
            # Logs and state of their own, as two machines have them that share nothing but the server.
            text = f'[log]\npath = "{tmp_path / name}.db"\n[budgets]\nstore_env = "REDIS"\n{KEYS}'
            gateways.append(open_accounts(parse_settings(text), environment))
        one, other = (gateway for gateway in gateways if gateway is not None)
        account = one.authenticate("sk-team-0123456789")
        assert account is not None
        admission = await one.admit(account, CallFacts(request_id="1"))
        with pytest.raises(RateLimited):
            await other.admit(account, CallFacts(request_id="2"))
        assert admission is not None
        one.release(admission)
        await one.stop()
        until = time.monotonic() + PATIENCE
        while True:
            try:
                await other.admit(account, CallFacts(request_id="3"))
                break
            except RateLimited:
                assert time.monotonic() < until
                await asyncio.sleep(0.05)
        await other.stop()

    asyncio.run(run())


@pytest.mark.parametrize("store", ["postgresql://db/bardo", "limits.db", "memory", "mysql://x"])
def test_limits_are_counted_in_no_other_store(store: str) -> None:
    with pytest.raises(ConfigError, match="line 2: limits are counted in Redis or Valkey"):
        parse_settings(f'[budgets]\nstore = "{store}"\n')


def test_a_variable_that_holds_no_such_address_is_named(tmp_path: Path) -> None:
    settings = parse_settings(f'[log]\npath = "{tmp_path / "log.db"}"\n[budgets]\nstore_env = "REDIS"\n{KEYS}')
    with pytest.raises(ConfigError, match="REDIS: limits are counted in Redis"):
        open_accounts(settings, {"TEAM_KEY": "sk-team-0123456789", "REDIS": "postgresql://db/x"})
    with pytest.raises(ConfigError, match="REDIS, which holds the store of limits, is not set"):
        open_accounts(settings, {"TEAM_KEY": "sk-team-0123456789"})

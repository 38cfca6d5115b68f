"""`usd_per_session`: each session of a key has its own budget, which several processes share."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bardo.accounting.limits import KeyLimits, day_number, session_account, session_of_id
from bardo.adapters.config.accounts import Account, BudgetSettings
from bardo.adapters.stores.log.row import LogRow, RunningUsage
from bardo.services.accounts.admissions import Admission, Admissions, StreamMeter
from bardo.services.accounts.call_facts import CallFacts
from bardo.services.accounts.key_store import open_keys
from bardo.services.accounts.lease_store import SqlLeaseStore
from bardo.services.accounts.leases import LeaseStore, Spend
from bardo.services.accounts.redis_leases import RedisLeaseStore
from bardo.values.errors import BardoError, OverBudget

NOON = 1_795_435_200.0
OpenStore = Callable[[str, Spend], LeaseStore]


class Log:
    """What calls have cost by the log, by session and day; rows that wait are not among it yet."""

    def __init__(self) -> None:
        self.spent: dict[tuple[str, int], int] = defaultdict(int)
        self.rows: list[LogRow] = []

    @property
    def waiting(self) -> int:
        return len(self.rows)

    def note_growth(self, request_id: str, used: RunningUsage) -> None:
        """Nothing ends here before its calls do."""

    def store(self) -> None:
        for row in self.rows:
            of_key = str(row.key_id)
            for account in (of_key, session_account(of_key, row.session or "", row.started_at).id):
                self.spent[account, day_number(row.started_at)] += row.cost_nanos or 0
        self.rows.clear()

    def __call__(self, account: str, first_day: int, last_day: int) -> int:
        return sum(nanos for (own, day), nanos in self.spent.items() if own == account and first_day <= day <= last_day)


class Process:
    """One process that serves calls, at a time of the test's."""

    def __init__(self, stores: OpenStore, name: str, log: Log, **budgets: Any) -> None:
        self.now, self.log, self.name = NOON, log, name
        budget = BudgetSettings(**budgets)
        self.admissions = Admissions(stores(name, log), log, budgets=budget, clock=lambda: self.now)
        self._calls = 0

    async def call(self, account: Account, session: str, nanos: int) -> Admission:
        self._calls += 1
        facts = CallFacts(request_id=f"{self.name}-{self._calls}", nanos=nanos, session=session)
        return await self.admissions.admit(account, facts)

    def end(self, call: Admission, nanos: int | None, **said: Any) -> None:
        facts = call.facts
        row = LogRow(
            request_id=facts.request_id, started_at=self.now, key_id=call.account.id, session=facts.session or None,
            cost_nanos=nanos, **said,
        )  # fmt: skip
        self.admissions.settle(row)
        self.log.rows.append(row)


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    if request.param == "redis":
        address = str(request.getfixturevalue("redis_url"))
        opened: list[RedisLeaseStore] = []

        def open_redis(name: str, log: Spend) -> LeaseStore:
            opened.append(RedisLeaseStore(address, name, log, by_server=False))
            return opened[-1]

        yield open_redis
        for one in opened:
            one.close()
        return
    place = str(tmp_path / "state.db") if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))
    engine = open_keys(place)
    yield lambda name, log: SqlLeaseStore(engine, name, log, clock=":now")
    engine.dispose()


def key(own_id: str = "team", **limits: int) -> Account:
    return Account(id=own_id, limits=KeyLimits(usd_per_session=3_000, **limits))


async def refused(process: Process, account: Account, session: str, nanos: int) -> OverBudget:
    with pytest.raises(OverBudget) as caught:
        await process.call(account, session, nanos)
    return caught.value


def test_processes_share_the_budget_of_a_session_and_each_session_and_key_has_its_own(stores: OpenStore) -> None:
    async def run() -> None:
        log = Log()
        processes = [Process(stores, f"worker-{number}", log) for number in range(3)]

        async def let_through(account: Account, session: str) -> int:
            work = [processes[number % 3].call(account, session, 1_000) for number in range(12)]
            found = await asyncio.gather(*work, return_exceptions=True)
            assert all(isinstance(one, Admission | BardoError) for one in found), found
            return sum(isinstance(one, Admission) for one in found)

        assert await let_through(key(), "a") == 3
        assert await let_through(key(), "b") == 3
        assert await let_through(key("other"), "a") == 3
        assert await let_through(key(), "") == 3

    asyncio.run(run())


def test_a_session_is_over_for_good_and_calls_without_one_begin_anew_each_day(stores: OpenStore) -> None:
    async def run() -> None:
        log = Log()
        one = Process(stores, "one", log)
        for session in ("a", ""):
            one.end(await one.call(key(), session, 2_500), 2_500)
        log.store()
        await one.admissions.sync()
        problem = await refused(one, key(), "a", 1_000)
        assert (problem.limit, problem.retry_after) == ("usd_per_session", None)
        assert "session" in problem.message
        assert "new session" in problem.hint
        assert (await refused(one, key(), "", 1_000)).retry_after == 43_200
        one.now += 40 * 86_400
        assert (await refused(one, key(), "a", 1_000)).limit == "usd_per_session"
        await one.call(key(), "", 1_000)
        await one.call(key(), "b", 1_000)

    asyncio.run(run())


def test_a_cost_counts_once_while_its_row_waits_and_once_it_is_stored(stores: OpenStore) -> None:
    async def run() -> None:
        log = Log()
        one, two = Process(stores, "one", log), Process(stores, "two", log)
        one.end(await one.call(key(), "a", 500), 1_500)
        await one.admissions.sync()
        assert "0.000001" in (await refused(two, key(), "a", 2_000)).message.replace("1.5e-06", "0.000001")
        log.store()
        await one.admissions.sync()
        await two.call(key(), "a", 1_500)
        await refused(one, key(), "a", 1)

    asyncio.run(run())


def test_a_call_of_unknown_cost_counts_as_its_estimate_in_its_session(stores: OpenStore) -> None:
    async def run() -> None:
        log = Log()
        one, two = Process(stores, "one", log), Process(stores, "two", log)
        facts = CallFacts(request_id="x", nanos=2_800, likely_nanos=2_500, session="a")
        call = await one.admissions.admit(key(), facts)
        one.end(call, None, outcome="cancelled")
        log.store()
        await one.admissions.sync()
        await refused(two, key(), "a", 1_000)
        await two.call(key(), "b", 1_000)

    asyncio.run(run())


def test_what_a_session_took_comes_back_where_the_key_has_too_little_left(stores: OpenStore) -> None:
    async def run() -> None:
        one = Process(stores, "one", Log())
        poor = key(usd_per_day=1_000)
        assert (await refused(one, poor, "a", 2_000)).limit == "usd_per_day"
        assert (await refused(one, poor, "a", 2_000)).limit == "usd_per_day"
        await one.call(poor, "a", 900)

    asyncio.run(run())


def test_a_session_may_be_charged_less_than_its_key_for_what_others_have_reserved(stores: OpenStore) -> None:
    async def run() -> None:
        one = Process(stores, "one", Log())
        facts = CallFacts(request_id="b", requests=0, nanos=50_000, session="batch b", session_nanos=2_000)
        one.admissions.release(await one.admissions.admit(key(usd_per_day=100_000), facts))
        with pytest.raises(OverBudget) as caught:
            await one.admissions.admit(key(usd_per_day=10_000), facts)
        assert caught.value.limit == "usd_per_day"

    asyncio.run(run())


def test_nothing_is_kept_of_sessions_without_calls(stores: OpenStore) -> None:
    async def run() -> None:
        log = Log()
        one = Process(stores, "one", log)
        calls = [await one.call(key(), f"s{number}", 1_000) for number in range(20)]
        await refused(one, key(), "s0", 9_000)
        for number, call in enumerate(calls):
            one.end(call, 10 if number % 2 else 0)
        log.store()
        await one.admissions.sync()
        await one.admissions.sync()
        kept = [own for own in one.admissions._allowances if session_of_id(own) is not None]
        assert kept == []
        assert one.admissions._refusals == {}
        await one.call(key(), "s1", 2_990)
        await refused(one, key(), "s1", 100)

    asyncio.run(run())


class Running:
    """A reply that is being read, of which `used` has come."""

    def __init__(self) -> None:
        self.used = RunningUsage(0, 0, 0)
        self.ended: BardoError | None = None
        self.meter: StreamMeter | None = None

    def so_far(self, prompt_tokens: int) -> RunningUsage:
        return self.used

    def cut(self, error: BardoError) -> None:
        self.ended = error

    def count(self, meter: StreamMeter) -> None:
        self.meter = meter


def test_an_answer_that_goes_beyond_its_session_is_cut_and_that_of_another_session_is_not(stores: OpenStore) -> None:
    async def run() -> None:
        one = Process(stores, "one", Log(), overrun="cut")
        replies = {}
        for session in ("a", "b"):
            call = await one.call(key(usd_per_day=100_000), session, 100)
            replies[session] = Running()
            one.admissions.watch(call.facts.request_id, replies[session])
        meter = replies["a"].meter
        assert meter is not None
        assert meter.allow(100) == 100
        replies["a"].used = RunningUsage(1, 50, 3_500)
        await one.admissions.sync()
        cut = replies["a"].ended
        assert isinstance(cut, OverBudget)
        assert (cut.limit, cut.retry_after) == ("usd_per_session", None)
        assert replies["b"].ended is None

    asyncio.run(run())


def test_a_session_is_remembered_while_a_call_of_it_runs_that_may_cost_nothing(stores: OpenStore) -> None:
    async def run() -> None:
        one, reply = Process(stores, "one", Log(), overrun="cut"), Running()
        call = await one.call(key(), "a", 0)
        await one.admissions.sync()
        one.admissions.watch(call.facts.request_id, reply)
        await one.admissions.sync()
        assert reply.meter is not None
        assert reply.meter.allow(100) == 100
        reply.used = RunningUsage(1, 50, 3_500)
        await one.admissions.sync()
        assert isinstance(reply.ended, OverBudget)
        one.end(call, 3_500)
        one.log.store()
        await one.admissions.sync()
        await one.admissions.sync()
        assert list(one.admissions._allowances) == ["team"]

    asyncio.run(run())


def test_an_account_of_a_session_reads_back() -> None:
    for session in (session_account("team", "a", NOON), session_account("odd\x1fkey", "", NOON)):
        assert session_of_id(session.id) == session
    assert session_of_id("team") is None

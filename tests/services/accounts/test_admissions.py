"""Limits that several processes share, in each store of them: SQLite always, PostgreSQL and Redis where one can be started."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest

from bardo.accounting.limits import COUNTED_SECONDS, KeyLimits, day_number
from bardo.adapters.config.accounts import Account, BudgetSettings
from bardo.adapters.stores.database.problems import DatabaseUnusable
from bardo.adapters.stores.log.row import LogRow, RunningUsage
from bardo.services.accounts.access_keys import make_key
from bardo.services.accounts.accounts import SYNC_SECONDS, Accounts
from bardo.services.accounts.admissions import Admission, Admissions, StreamMeter
from bardo.services.accounts.call_facts import CallFacts
from bardo.services.accounts.key_store import KeyStore, open_keys
from bardo.services.accounts.lease_store import SqlLeaseStore
from bardo.services.accounts.leases import STALE_SECONDS, LeaseStore
from bardo.services.accounts.redis_leases import RedisLeaseStore
from bardo.values.attempts import AttemptRecord
from bardo.values.errors import BardoError, OverBudget, RateLimited, Unauthorized, Unavailable

pytestmark = pytest.mark.each_python

NOON = 1_795_435_200.0


class Spent:
    """What the log says that calls have cost, by account and day; rows that wait are not among it yet."""

    def __init__(self) -> None:
        self.days: dict[tuple[str, int], int] = defaultdict(int)
        self.rows: list[LogRow] = []
        self.growth: dict[str, RunningUsage] = {}

    @property
    def waiting(self) -> int:
        return len(self.rows)

    def note_growth(self, request_id: str, used: RunningUsage) -> None:
        self.growth[request_id] = used

    def store(self) -> None:
        for row in self.rows:
            self.days[row.key_id or "", day_number(row.started_at)] += row.cost_nanos or 0
        self.rows.clear()

    def __call__(self, account: str, first_day: int, last_day: int) -> int:
        return sum(
            spent for (whose, day), spent in self.days.items() if whose == account and first_day <= day <= last_day
        )


OpenStore = Callable[[str, Spent], LeaseStore]


def away(*_: object) -> NoReturn:
    raise DatabaseUnusable("it does not answer")


class Process:
    """One process that serves calls, at a time of the test's."""

    def __init__(self, stores: OpenStore, name: str, spent: Spent, **budgets: Any) -> None:
        self.now = NOON
        self.spent = spent
        self.store = store = stores(name, spent)
        self.admissions = Admissions(store, spent, budgets=BudgetSettings(**budgets), clock=lambda: self.now)
        self._calls = 0
        self.name = name

    async def call(self, account: Account, *, tokens: int = 0, nanos: int | None = None) -> Admission:
        self._calls += 1
        request = f"{self.name}-{self._calls}"
        return await self.admissions.admit(account, CallFacts(request_id=request, tokens=tokens, nanos=nanos))

    def end(self, call: Admission, **said: object) -> None:
        fields = {
            "outcome": "ok",
            "key_id": call.account.id,
            "started_at": self.now,
            "request_id": call.facts.request_id,
        }
        row = LogRow(**{**fields, **said})  # type: ignore[arg-type]
        self.admissions.settle(row)
        self.spent.rows.append(row)


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    """Return what opens the store of one process, given its name and what the log says was spent."""
    if request.param == "redis":
        address = str(request.getfixturevalue("redis_url"))
        opened: list[RedisLeaseStore] = []

        def open_store(name: str, spent: Spent) -> LeaseStore:
            opened.append(RedisLeaseStore(address, name, spent, by_server=False))
            return opened[-1]

        yield open_store
        for one in opened:
            one.close()
        return
    place = str(tmp_path / "state.db") if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))
    engine = open_keys(place)
    yield lambda name, spent: SqlLeaseStore(engine, name, spent, clock=":now")
    engine.dispose()


def account(**limits: int) -> Account:
    return Account(id="team", limits=KeyLimits(**limits))


def counted(results: list[Admission | BaseException]) -> tuple[int, int]:
    """Return how many calls were let through and how many refused; anything else fails the test."""
    refused = [one for one in results if isinstance(one, BardoError)]
    let_through = [one for one in results if isinstance(one, Admission)]
    assert len(refused) + len(let_through) == len(results), results
    return len(let_through), len(refused)


async def at_once(processes: list[Process], team: Account, calls: int, **facts: int) -> list[Admission | BaseException]:
    work = [processes[number % len(processes)].call(team, **facts) for number in range(calls)]
    return list(await asyncio.gather(*work, return_exceptions=True))


def test_fifty_calls_at_once_share_a_budget_for_three(stores: OpenStore) -> None:
    async def run() -> None:
        spent = Spent()
        processes = [Process(stores, f"worker-{number}", spent) for number in range(4)]
        results = await at_once(processes, account(usd_per_day=3_000), 50, nanos=1_000)
        assert counted(results) == (3, 47)
        assert {one.limit for one in results if isinstance(one, OverBudget)} == {"usd_per_day"}

    asyncio.run(run())


@pytest.mark.parametrize(
    ("limits", "through"),
    [({"requests_per_minute": 7}, 7), ({"concurrency": 5}, 5), ({"tokens_per_minute": 95}, 9)],
    ids=["requests", "concurrency", "tokens"],
)
def test_processes_together_let_no_more_through_than_the_limit(
    stores: OpenStore, limits: dict[str, int], through: int
) -> None:
    async def run() -> None:
        spent = Spent()
        processes = [Process(stores, f"worker-{number}", spent) for number in range(3)]
        results = await at_once(processes, account(**limits), 30, tokens=10)
        assert counted(results) == (through, 30 - through)
        refused = next(one for one in results if isinstance(one, RateLimited))
        assert refused.limit in limits
        assert 0 < refused.retry_after <= COUNTED_SECONDS

    asyncio.run(run())


def test_a_call_that_ends_makes_room_also_for_another_process(stores: OpenStore) -> None:
    async def run() -> None:
        spent, team = Spent(), account(concurrency=1)
        one, other = Process(stores, "one", spent), Process(stores, "other", spent)
        await one.admissions.sync()
        await other.admissions.sync()
        await one.admissions.sync()
        for _ in range(3):
            call = await one.call(team)
            with pytest.raises(RateLimited):
                await other.call(team)
            one.end(call)
            other.end(await other.call(team))

    asyncio.run(run())


def test_spent_money_is_counted_once_while_it_moves_into_the_log(stores: OpenStore) -> None:
    async def run() -> None:
        spent, team = Spent(), account(usd_per_day=10_000)
        one, other = Process(stores, "one", spent), Process(stores, "other", spent)
        for _ in range(9):
            one.end(await one.call(team, nanos=500), cost_nanos=1_000)
        for is_stored in (False, True, True):
            if is_stored:
                spent.store()
            await one.admissions.sync()
            with pytest.raises(OverBudget):
                await other.call(team, nanos=1_001)
            call = await other.call(team, nanos=1_000)
            other.admissions.release(call)
            await other.admissions.sync()

    asyncio.run(run())


def test_a_call_of_unknown_cost_counts_as_its_estimate_for_good(stores: OpenStore) -> None:
    async def run() -> None:
        spent, team = Spent(), account(usd_per_day=1_000)
        one = Process(stores, "one", spent)
        one.end(await one.call(team, nanos=900), output_tokens=5)
        spent.store()
        await one.admissions.sync()
        await one.admissions.leave()
        later = Process(stores, "later", spent)
        with pytest.raises(OverBudget):
            await later.call(team, nanos=101)
        await later.call(team, nanos=100)

    asyncio.run(run())


@pytest.mark.parametrize("fails", [False, True], ids=["", "after-a-failure"])
def test_an_estimate_is_seen_once_whether_or_not_the_log_has_stored_its_call(stores: OpenStore, fails: bool) -> None:
    async def run() -> None:
        spent, team = Spent(), account(usd_per_day=1_000)
        one = Process(stores, "one", spent)
        one.end(await one.call(team, nanos=900), output_tokens=5)
        if fails:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(one.store, "sync", away)
                with pytest.raises(DatabaseUnusable):
                    await one.admissions.sync()
            one.now += 2
            with pytest.raises(OverBudget):
                await one.call(team, nanos=101)
        for is_stored in (False, True):
            if is_stored:
                spent.store()
            await one.admissions.sync()
            assert one.store.used(team.id, one.now).total("usd_per_day", one.now) == 900

    asyncio.run(run())


def test_a_call_of_unknown_cost_may_count_as_nothing(stores: OpenStore) -> None:
    async def run() -> None:
        spent, team = Spent(), account(usd_per_day=1_000)
        one = Process(stores, "one", spent, unknown_cost="allow")
        one.end(await one.call(team, nanos=900), input_tokens=5, output_tokens=5)
        await one.admissions.sync()
        await Process(stores, "later", spent).call(team, nanos=1_000)

    asyncio.run(run())


def test_a_call_that_was_refused_by_its_provider_costs_nothing(stores: OpenStore) -> None:
    async def run() -> None:
        one, team = Process(stores, "one", Spent()), account(usd_per_month=1_000, tokens_per_minute=100)
        for _ in range(3):
            one.end(await one.call(team, nanos=900, tokens=100), outcome="error", status=500, cost_nanos=0)

    asyncio.run(run())


def test_a_call_that_failed_while_its_provider_may_have_worked_counts_as_its_estimate(stores: OpenStore) -> None:
    async def run() -> None:
        one, team = Process(stores, "one", Spent()), account(usd_per_month=1_000, tokens_per_minute=200)
        one.end(await one.call(team, nanos=900, tokens=100), outcome="error", status=504)
        with pytest.raises(OverBudget):
            await one.call(team, nanos=101, tokens=1)
        with pytest.raises(RateLimited):
            await one.call(team, nanos=1, tokens=101)

    asyncio.run(run())


def test_the_tokens_of_attempts_that_broke_count_in_the_limit_of_a_minute(stores: OpenStore) -> None:
    async def run() -> None:
        one, team = Process(stores, "one", Spent()), account(tokens_per_minute=200)
        broken = AttemptRecord(cause="first", provider="p", model="m", input_tokens=10, output_tokens=100)
        answered = AttemptRecord(cause="failover", provider="q", model="m", input_tokens=10, output_tokens=20)
        records = (broken, answered)
        one.end(await one.call(team, tokens=1), input_tokens=10, output_tokens=20, attempt_records=records)
        with pytest.raises(RateLimited):
            await one.call(team, tokens=61)
        await one.call(team, tokens=60)

    asyncio.run(run())


class Running:
    """A call whose reply is being read, at the figures of the test."""

    def __init__(self) -> None:
        self.tokens = self.nanos = 0
        self.error: BardoError | None = None
        self.meter: StreamMeter | None = None

    def so_far(self, prompt_tokens: int) -> RunningUsage:
        return RunningUsage(prompt_tokens, self.tokens, self.nanos)

    def cut(self, error: BardoError) -> None:
        self.error = error

    def count(self, meter: StreamMeter) -> None:
        self.meter = meter

    def feed(self, nanos: int) -> bool:
        """Have a piece of the reply come that costs so much, and return whether it was read at once."""
        assert self.meter is not None
        if not self.meter.allow(1_000_000):
            return False
        self.nanos += nanos
        return True

    async def read(self, nanos: int) -> None:
        if not self.feed(nanos):
            assert self.meter is not None
            await self.meter.wait()
            self.nanos += 0 if self.error else nanos


def test_what_a_running_call_costs_beyond_its_estimate_is_refused_to_new_calls_at_once(stores: OpenStore) -> None:
    async def run() -> None:
        spent, team = Spent(), account(usd_per_day=1_000)
        one, other = Process(stores, "one", spent), Process(stores, "other", spent)
        call, running = await one.call(team, nanos=100), Running()
        one.admissions.watch(call.facts.request_id, running)
        running.nanos = 950
        one.now += 0.06
        with pytest.raises(OverBudget):
            await one.call(team, nanos=51)
        await one.admissions.sync()
        with pytest.raises(OverBudget):
            await other.call(team, nanos=51)
        await other.call(team, nanos=50)
        # The truth at the end goes before what was counted on the way.
        one.end(call, input_tokens=1, output_tokens=1, cost_nanos=40)
        spent.store()
        await one.admissions.sync()
        other.now += 1
        await other.call(team, nanos=900)

    asyncio.run(run())


def test_tokens_of_a_running_call_count_in_the_limit_of_a_minute(stores: OpenStore) -> None:
    async def run() -> None:
        one, team = Process(stores, "one", Spent()), account(tokens_per_minute=100)
        call, running = await one.call(team, tokens=10), Running()
        one.admissions.watch(call.facts.request_id, running)
        running.tokens = 90
        one.now += 0.06
        with pytest.raises(RateLimited):
            await one.call(team, tokens=11)
        await one.call(team, tokens=10)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("overrun", "nanos", "ends"), [("cut", 1_001, True), ("cut", 1_000, False), ("finish", 5_000, False)]
)
def test_running_calls_end_when_their_budget_is_spent_where_the_operator_says_so(
    stores: OpenStore, overrun: str, nanos: int, ends: bool
) -> None:
    async def run() -> None:
        one = Process(stores, "one", Spent(), overrun=overrun)
        team, rich = account(usd_per_day=1_000), Account(id="rich", limits=KeyLimits(usd_per_day=1_000_000))
        calls = [(await one.call(who, nanos=100), Running()) for who in (team, team, rich)]
        for call, running in calls:
            one.admissions.watch(call.facts.request_id, running)
        calls[0][1].nanos, calls[1][1].nanos = nanos - 50, 50
        calls[2][1].nanos = 5_000
        await one.admissions.sync()
        assert [type(running.error) for _, running in calls] == [OverBudget if ends else type(None)] * 2 + [type(None)]

    asyncio.run(run())


def watched(one: Process, call: Admission) -> Running:
    running = Running()
    one.admissions.watch(call.facts.request_id, running)
    return running


def test_the_piece_of_an_answer_behind_a_spent_budget_is_not_read(stores: OpenStore) -> None:
    async def run() -> None:
        one, team = Process(stores, "one", Spent(), overrun="cut"), account(usd_per_day=1_000)
        calls = [watched(one, await one.call(team, nanos=100)) for _ in range(10)]
        for call in calls:
            assert call.feed(100)
        assert not [call for call in calls if call.error]
        assert calls[0].feed(1)
        await calls[1].read(100)
        assert calls[1].nanos == 100
        assert {type(call.error) for call in calls} == {OverBudget}

    asyncio.run(run())


def test_money_that_is_taken_for_running_calls_and_not_used_ends_no_other(stores: OpenStore) -> None:
    async def run() -> None:
        one, team = Process(stores, "one", Spent(), overrun="cut"), account(usd_per_day=1_000)
        idle, long = [watched(one, await one.call(team, nanos=450)) for _ in range(2)]
        await long.read(900)
        await long.read(100)
        await long.read(1)
        assert not [call for call in (idle, long) if call.error]
        await long.read(1)
        assert type(long.error) is OverBudget

    asyncio.run(run())


def test_no_piece_is_held_where_answers_are_brought_to_their_end(stores: OpenStore) -> None:
    async def run() -> None:
        one, team = Process(stores, "one", Spent()), account(usd_per_day=1_000)
        call = watched(one, await one.call(team, nanos=100))
        assert call.feed(5_000)
        assert call.feed(5_000)
        assert call.error is None

    asyncio.run(run())


def test_money_that_the_log_has_stored_meanwhile_ends_no_call(stores: OpenStore) -> None:
    async def run() -> None:
        spent, team = Spent(), account(usd_per_day=1_000)
        one = Process(stores, "one", spent, overrun="cut")
        ended = await one.call(team, nanos=400)
        one.end(ended, input_tokens=1, output_tokens=1, cost_nanos=400)
        spent.store()  # Now it is in the log, and for this process as well.
        running = watched(one, await one.call(team, nanos=100))
        await running.read(550)
        await running.read(50)
        await running.read(1)
        assert not [call for call in (running,) if call.error]
        await running.read(1)
        assert type(running.error) is OverBudget

    asyncio.run(run())


def test_what_another_process_spends_is_seen_while_an_answer_comes(stores: OpenStore) -> None:
    async def run() -> None:
        spent, team = Spent(), account(usd_per_day=10_000)
        one, other = (Process(stores, name, spent, overrun="cut") for name in ("one", "other"))
        here, there = watched(one, await one.call(team, nanos=10)), watched(other, await other.call(team, nanos=10))
        for process in (one, other):
            await process.admissions.sync()
        while here.error is None and there.error is None:
            await here.read(100)
            await there.read(100)
        # No more than four pieces of each go beyond it, though neither is told of the other's.
        assert here.nanos + there.nanos <= 10_000 + 8 * 100

    asyncio.run(run())


@pytest.mark.parametrize(("tokens", "noted"), [(1_000, False), (1_001, True)])
def test_the_log_is_told_of_an_answer_that_is_longer_than_it_was_taken_to_be(
    stores: OpenStore, tokens: int, noted: bool
) -> None:
    async def run() -> None:
        spent, team = Spent(), account(usd_per_day=1_000)
        one = Process(stores, "one", spent)
        facts = CallFacts(request_id="1", nanos=1, prompt_tokens=7, likely_output=1_000)
        running = watched(one, await one.admissions.admit(team, facts))
        running.tokens, running.nanos = tokens, 5
        await one.admissions.sync()
        assert spent.growth == ({"1": RunningUsage(7, tokens, 5)} if noted else {})

    asyncio.run(run())


def test_a_running_call_of_unknown_cost_counts_as_it_is_assumed(stores: OpenStore) -> None:
    async def run() -> None:
        one = Process(stores, "one", Spent(), overrun="cut", unknown_cost="estimate")
        team = account(usd_per_day=1_000_000)
        running = watched(one, await one.call(team, nanos=100))
        running.so_far = lambda prompt_tokens: RunningUsage(prompt_tokens, running.tokens, None)  # type: ignore[method-assign]
        await running.read(0)
        running.tokens = 41  # At 25 dollars a million.
        await running.read(0)
        assert type(running.error) is OverBudget

    asyncio.run(run())


def test_a_process_that_is_gone_holds_no_calls_and_no_money(stores: OpenStore) -> None:
    async def run() -> None:
        spent, team = Spent(), account(concurrency=1, usd_per_day=1_000)
        gone, left = Process(stores, "gone", spent), Process(stores, "left", spent)
        await gone.call(team, nanos=1_000)
        left.now += STALE_SECONDS - 1
        with pytest.raises((RateLimited, OverBudget)):
            await left.call(team, nanos=1_000)
        left.now += 2
        await left.admissions.clean()
        await left.call(team, nanos=1_000)

    asyncio.run(run())


def test_requests_of_a_process_that_is_gone_count_on_for_their_minute(stores: OpenStore) -> None:
    async def run() -> None:
        team = account(requests_per_minute=1)
        gone, left = Process(stores, "gone", Spent()), Process(stores, "left", Spent())
        await gone.call(team)
        left.now += STALE_SECONDS + 5
        await left.admissions.clean()
        with pytest.raises(RateLimited):
            await left.call(team)
        left.now = NOON + COUNTED_SECONDS
        await left.call(team)

    asyncio.run(run())


def test_a_process_that_was_away_counts_again_when_it_is_back(stores: OpenStore) -> None:
    async def run() -> None:
        spent, team = Spent(), account(concurrency=2, usd_per_day=1_000)
        away, left = Process(stores, "away", spent), Process(stores, "left", spent)
        await away.call(team, nanos=600)
        left.now += STALE_SECONDS + 1
        await left.admissions.clean()
        left.end(await left.call(team, nanos=1_000), cost_nanos=0)
        await left.admissions.sync()
        away.now = left.now
        await away.admissions.sync()
        with pytest.raises(OverBudget):
            await left.call(team, nanos=401)
        await left.call(team, nanos=400)
        with pytest.raises(RateLimited):
            await left.call(team)

    asyncio.run(run())


def test_a_process_that_ends_returns_calls_and_money_at_once(stores: OpenStore) -> None:
    async def run() -> None:
        spent, team = Spent(), account(concurrency=1, usd_per_day=1_000, requests_per_minute=2)
        one, other = Process(stores, "one", spent), Process(stores, "other", spent)
        one.end(await one.call(team, nanos=1_000), cost_nanos=0)
        await one.admissions.leave()
        await other.call(team, nanos=1_000)
        used = other.store.used("team", NOON)
        assert used.total("concurrency", NOON) == 1
        assert used.total("requests_per_minute", NOON) == 2

    asyncio.run(run())


def test_money_beyond_what_a_float_can_count_is_exact(stores: OpenStore) -> None:
    async def run() -> None:
        limit, team = 2**60 + 1, account(usd_per_month=2**60 + 1)
        one = Process(stores, "one", Spent())
        await one.call(team, nanos=limit)
        assert one.store.used("team", NOON).total("usd_per_month", NOON) == limit
        with pytest.raises(OverBudget):
            await Process(stores, "other", Spent()).call(team, nanos=1)

    asyncio.run(run())


def test_a_cancelled_call_takes_nothing(stores: OpenStore) -> None:
    async def run() -> None:
        team, one = account(concurrency=1), Process(stores, "one", Spent())
        asking = asyncio.ensure_future(one.call(team))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await one.admissions.sync()
        one.end(await one.call(team))

    asyncio.run(run())


def test_limits_that_change_hold_at_once(stores: OpenStore) -> None:
    async def run() -> None:
        one = Process(stores, "one", Spent())
        await one.call(account(requests_per_minute=100))
        with pytest.raises(RateLimited):
            await one.call(account(requests_per_minute=1))
        await one.call(account(requests_per_minute=2))
        await one.call(account())

    asyncio.run(run())


def test_a_free_call_is_let_through_where_another_costs_more_than_estimated_meanwhile(
    stores: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        team, one = account(usd_per_day=10_000, requests_per_minute=9), Process(stores, "one", Spent())
        dear = await one.call(team, nanos=1_000)
        claim = one.store.claim
        asked: list[tuple[Any, ...]] = []

        def claim_while_the_other_call_ends(*words: Any) -> Any:
            found = claim(*words)
            if not asked:
                one.end(dear, cost_nanos=3_000)
            asked.append(words)
            return found

        monkeypatch.setattr(one.store, "claim", claim_while_the_other_call_ends)
        one.now += COUNTED_SECONDS
        free = await one.admissions.admit(team, CallFacts(request_id="free", free=True))
        assert free.shares
        assert len(asked) == 2, "what was leased first was not enough"

    asyncio.run(run())


def test_a_refusal_is_repeated_without_asking_the_store_again(
    stores: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        one, team = Process(stores, "one", Spent()), account(requests_per_minute=1)
        await one.call(team)
        with pytest.raises(RateLimited):
            await one.call(team)
        one.now += 0.1
        with monkeypatch.context() as patched:
            patched.setattr(one.store, "claim", None)
            for _ in range(100):
                with pytest.raises(RateLimited):
                    await one.call(team)

    asyncio.run(run())


class Question:
    """The next question to a store: what it asks for is done, and `answer` lets it return, or fail where it `fails`."""

    def __init__(self, patch: pytest.MonkeyPatch, store: LeaseStore, name: str, *, fails: bool = False) -> None:
        loop, ask = asyncio.get_running_loop(), getattr(store, name)
        self._answered = threading.Event()
        self.asked = asyncio.Event()
        self.times = 0

        def wait_for_the_test(*words: Any) -> Any:
            self.times += 1
            found = ask(*words)
            loop.call_soon_threadsafe(self.asked.set)
            assert self._answered.wait(60)
            return away() if fails else found

        patch.setattr(store, name, wait_for_the_test)

    def answer(self) -> None:
        self._answered.set()


def test_an_estimate_that_was_stored_for_somebody_who_has_left_is_stored_once(
    stores: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        team, one = account(usd_per_day=1_000), Process(stores, "one", Spent())
        one.end(await one.call(team, nanos=400), output_tokens=5)
        with monkeypatch.context() as patch:
            question = Question(patch, one.store, "sync")
            asking = asyncio.ensure_future(one.admissions.sync())
            await question.asked.wait()
            asking.cancel()
            await asyncio.sleep(0)
            question.answer()
            with pytest.raises(asyncio.CancelledError):
                await asking
        await one.admissions.sync()
        assert one.store.used(team.id, one.now).total("usd_per_day", one.now) == 400

    asyncio.run(run())


@pytest.mark.parametrize("cancelled", [False, True], ids=["the-store-failed-behind-it", "its-caller-has-left"])
def test_what_the_store_was_told_last_is_not_taken_for_what_it_was_told_before(
    stores: OpenStore, monkeypatch: pytest.MonkeyPatch, cancelled: bool
) -> None:
    async def run() -> None:
        spent, team = Spent(), account(usd_per_day=1_000)
        one, other = Process(stores, "one", spent), Process(stores, "other", spent)
        # A twentieth of the limit is leased: 50, of which 10 are kept.
        running = watched(one, await one.call(team, nanos=10))
        with monkeypatch.context() as patch:
            question = Question(patch, one.store, "sync", fails=not cancelled)
            asking = asyncio.ensure_future(one.admissions.sync())
            await question.asked.wait()
            if cancelled:
                asking.cancel()
            question.answer()
            with pytest.raises(asyncio.CancelledError if cancelled else DatabaseUnusable):
                await asking
        running.nanos = 50
        one.now = other.now = NOON + 2
        await one.admissions.sync()
        with pytest.raises(OverBudget):
            await other.call(team, nanos=951)
        await other.call(team, nanos=950)

    asyncio.run(run())


def test_money_that_others_may_lease_is_not_given_out_here_too(stores: OpenStore) -> None:
    async def run() -> None:
        spent, team = Spent(), account(usd_per_day=10_000)
        one, other = (Process(stores, name, spent, overrun="cut") for name in ("one", "other"))
        for process in (other, one):
            await process.admissions.sync()
        running = watched(one, await one.call(team, nanos=10))
        assert running.feed(0)
        await other.call(team, nanos=6_000)
        # A twentieth of the limit is leased at once: 9 of that are left here, and the next look sees that far less is left at all.
        await one.call(team, nanos=491)
        assert running.meter is not None
        while running.meter.allow(1_000_000):
            pass
        await running.meter.wait()
        await other.call(team, nanos=3_499)
        with pytest.raises(OverBudget):
            await one.call(team, nanos=9)

    asyncio.run(run())


def test_a_question_that_nobody_waits_for_any_more_is_still_the_only_one(
    stores: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        team, one = account(requests_per_minute=5), Process(stores, "one", Spent())
        with monkeypatch.context() as patch:
            question = Question(patch, one.store, "claim")
            asking = asyncio.ensure_future(one.call(team))
            await question.asked.wait()
            for _ in range(2):
                # Its client has left, and then the gateway stops.
                asking.cancel()
                for _ in range(5):
                    await asyncio.sleep(0)
            next_one = asyncio.ensure_future(one.call(team))
            for _ in range(5):
                await asyncio.sleep(0)
            assert not asking.done()
            assert question.times == 1
            question.answer()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await next_one

    asyncio.run(run())


@pytest.mark.parametrize("happens", ["a call ends", "the limits change"])
def test_a_refusal_is_not_repeated_where_what_it_is_about_has_changed_meanwhile(
    stores: OpenStore, monkeypatch: pytest.MonkeyPatch, happens: str
) -> None:
    async def run() -> None:
        team, one = account(usd_per_day=1_000), Process(stores, "one", Spent())
        first = await one.call(team, nanos=1_000)
        with monkeypatch.context() as patch:
            question = Question(patch, one.store, "claim")
            asking = asyncio.ensure_future(one.call(team, nanos=500))
            await question.asked.wait()
            if happens == "a call ends":
                one.admissions.release(first)
            else:
                team = account(usd_per_day=2_000)
                waits = asyncio.ensure_future(one.call(team, nanos=500))
                await asyncio.sleep(0)
                waits.cancel()
            question.answer()
            with pytest.raises(OverBudget):
                await asking
        await one.call(team, nanos=500)

    asyncio.run(run())


def test_a_key_that_may_be_new_is_not_refused_while_the_database_is_away() -> None:
    class Away:
        def revision(self) -> int:
            raise DatabaseUnusable("the state database at db.internal cannot be used")

    key = make_key().text
    accounts = Accounts({}, store=cast("KeyStore", Away()))
    with pytest.raises(Unavailable) as caught:
        asyncio.run(accounts.account_of(key))
    assert "db.internal" not in str(caught.value)
    with pytest.raises(Unauthorized):
        asyncio.run(accounts.account_of("no-key-of-ours"))


def test_calls_do_not_wait_for_a_database_that_is_away_one_after_the_other() -> None:
    class Away:
        asked = 0

        def claim(self, *_: object) -> NoReturn:
            self.asked += 1
            raise DatabaseUnusable("it does not answer")

    async def run() -> None:
        store, now = Away(), [NOON]
        admissions = Admissions(cast("LeaseStore", store), None, clock=lambda: now[0])
        team = account(requests_per_minute=5)
        work = [admissions.admit(team, CallFacts(request_id=str(number))) for number in range(20)]
        results = await asyncio.gather(*work, return_exceptions=True)
        assert {type(one) for one in results} == {DatabaseUnusable}
        assert store.asked == 1, "the others are told what the first found out"
        now[0] += 2
        with pytest.raises(DatabaseUnusable):
            await admissions.admit(team, CallFacts(request_id="later"))
        assert store.asked == 2

    asyncio.run(run())


def test_what_counts_no_longer_is_removed_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting:
        syncs = 0

        def __init__(self) -> None:
            self.cleaned_after: list[int] = []
            self.enough = asyncio.Event()

        async def sync(self) -> None:
            self.syncs += 1
            if self.syncs == 125:
                self.enough.set()

        async def clean(self) -> None:
            self.cleaned_after.append(self.syncs)

        async def leave(self) -> None:
            """Return nothing."""

    async def run() -> None:
        admissions = Counting()
        accounts = Accounts({}, admissions=cast("Admissions", admissions))
        accounts.start()
        await admissions.enough.wait()
        await accounts.stop()
        assert admissions.cleaned_after == [1, 61, 121]

    assert SYNC_SECONDS * 60 == 60
    monkeypatch.setattr("bardo.services.accounts.accounts.SYNC_SECONDS", 0)
    asyncio.run(run())

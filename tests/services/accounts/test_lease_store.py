"""Leases in PostgreSQL: nobody waits for leases of another key, or for another's way to the server, and nothing is given out twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError, OperationalError

from bardo.accounting.limits import LeaseRequest, LimitName, Shortage, period_of
from bardo.adapters.stores.database.engines import Statement, execute_together, transaction, without_turns
from bardo.adapters.stores.database.problems import DatabaseProblem
from bardo.services.accounts.key_store import KeyStore, open_keys
from bardo.services.accounts.lease_store import SqlLeaseStore
from bardo.services.accounts.leases import Estimate, Lease, LeaseGrant

NOW = 1_764_500_000.0
PATIENCE = 60.0
MONTH: LimitName = "usd_per_month"


@pytest.fixture
def engine(postgres_url: str) -> Iterator[Engine]:
    engine = open_keys(postgres_url)
    yield engine
    engine.dispose()


def want(name: LimitName, limit: int, need: int, used: int = 0) -> LeaseRequest:
    return LeaseRequest(name, period_of(name, NOW), limit, used, need)


def nothing(account: str, first_day: int, last_day: int) -> int:
    return 0


def seen(engine: Engine, name: str, spend: object = nothing) -> SqlLeaseStore:
    """Return the leases of a process that others have seen."""
    store = SqlLeaseStore(engine, name, spend, clock=":now")  # type: ignore[arg-type]
    store.sync((), (), NOW)
    return store


def locks(engine: Engine) -> int:
    """Return how many locks of accounts are held."""
    with without_turns(engine).connect() as connection:
        return int(connection.scalar(text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")) or 0)


def test_a_key_is_leased_of_while_another_key_is_changed_and_leased_of(engine: Engine) -> None:
    first, second = seen(engine, "first"), seen(engine, "second")
    asked, go = threading.Event(), threading.Event()

    def spend(account: str, *_: int) -> int:
        asked.set()
        assert go.wait(PATIENCE)
        return 0

    slow = seen(engine, "slow", spend)
    with ThreadPoolExecutor(1) as pool, transaction(engine):  # The lock that changes of keys take.
        waiting = pool.submit(slow.claim, "slow", (), [want("usd_per_day", 100, 90)], NOW)
        assert asked.wait(PATIENCE)
        assert isinstance(first.claim("team", (), [want("requests_per_minute", 100, 1)], NOW), LeaseGrant)
        assert second.sync([Lease("team", ("requests_per_minute", int(NOW)), 3)], (), NOW) == 3
        assert KeyStore(engine).revision() == 0
        go.set()
        assert isinstance(waiting.result(PATIENCE), LeaseGrant)


@pytest.mark.parametrize(("need", "in_turn"), [(10, False), (500, False), (501, True), (1_001, True)])
def test_the_last_of_a_budget_is_leased_in_turn(engine: Engine, need: int, in_turn: bool) -> None:
    held: list[int] = []

    def spend(account: str, *_: int) -> int:
        held.append(locks(engine))
        return 0

    found = seen(engine, "one", spend).claim("team", (), [want("usd_per_day", 1_000, need)], NOW)
    assert isinstance(found, Shortage if need > 1_000 else LeaseGrant)
    assert held[0] == 0
    assert (held[-1] == 1) == in_turn
    assert locks(engine) == 0


def test_what_others_lease_meanwhile_is_not_given_out_again(engine: Engine) -> None:
    other = seen(engine, "other")
    left = [700]

    def spend(account: str, *_: int) -> int:
        # While this process reads what was spent, the other one leases.
        if left:
            taken = other.claim("team", (), [want("usd_per_day", 1_000, left.pop())], NOW)
            assert isinstance(taken, LeaseGrant)
        return 0

    found = seen(engine, "one", spend).claim("team", (), [want("usd_per_day", 1_000, 400)], NOW)
    assert isinstance(found, Shortage)
    assert (found.name, found.limit, found.left) == ("usd_per_day", 1_000, 300)
    both = [want("requests_per_minute", 10, 1), want("usd_per_day", 1_000, 301)]
    assert isinstance(seen(engine, "two").claim("team", (), both, NOW), Shortage)
    assert other.used("team", NOW).total("requests_per_minute", NOW) == 0, "all is leased, or nothing"


def test_what_moves_to_the_log_and_is_leased_anew_meanwhile_is_not_given_out_again(engine: Engine) -> None:
    other = seen(engine, "other")
    other.sync([Lease("team", (MONTH, period_of(MONTH, NOW)), 500)], (), NOW)
    logged = [0]

    def spend(account: str, *_: int) -> int:
        spent = logged[-1]
        if not spent:
            # While this process has read what was spent, the costs of the other are logged, and it leases again.
            logged.append(500)
            other.sync([Lease("team", (MONTH, period_of(MONTH, NOW)), 0)], (), NOW)
            assert isinstance(moved.claim("team", (), [want(MONTH, 1_000, 450)], NOW), LeaseGrant)
        return spent

    moved = SqlLeaseStore(engine, "other", lambda *_: logged[-1], clock=":now")
    found = seen(engine, "one", spend).claim("team", (), [want(MONTH, 1_000, 100)], NOW)
    assert isinstance(found, Shortage)
    assert (found.left, moved.used("team", NOW).total(MONTH, NOW)) == (50, 950)


def test_many_processes_lease_no_more_than_there_is(engine: Engine) -> None:
    stores = [seen(engine, f"process {number}") for number in range(8)]
    wants = [want("requests_per_minute", 100, 5), want("usd_per_day", 1_000, 300), want("concurrency", 200, 1)]

    def claim(number: int) -> LeaseGrant | Shortage:
        return stores[number % 8].claim(f"team {number % 2}", (), wants, NOW + number // 8 / 100)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(claim, range(160)))
    assert {type(one) for one in found} == {LeaseGrant, Shortage}
    for team in ("team 0", "team 1"):
        used = stores[0].used(team, NOW)
        # A process that leases twice has one row, which holds what it leased last.
        assert used.total("requests_per_minute", NOW) <= 100
        assert used.total("usd_per_day", NOW) <= 1_000
        assert used.total("concurrency", NOW) <= 200


def test_rows_of_a_process_that_was_away_are_stored_anew(engine: Engine) -> None:
    one, other = seen(engine, "one"), seen(engine, "other")
    row = Lease("team", ("concurrency", 0), 4)
    one.sync([row], (), NOW)
    other.sync((), (), NOW + 60)
    other.clean(NOW + 60)
    assert other.used("team", NOW + 60).total("concurrency", NOW + 60) == 0
    assert one.sync((), [Estimate("team", 20251130, 7)], NOW + 61) == 2
    assert other.used("team", NOW + 61).total("concurrency", NOW + 61) == 4
    other.sync((), (), NOW + 120)
    other.clean(NOW + 120)
    assert isinstance(one.claim("team", (), [want("concurrency", 10, 1)], NOW + 121), LeaseGrant)
    # What it held before is in the rows again, and replaced by the lease.
    assert one.used("team", NOW + 121).total("concurrency", NOW + 121) == 1


def test_processes_whose_clocks_differ_see_each_other_by_the_servers_clock(engine: Engine) -> None:
    ahead, behind = (SqlLeaseStore(engine, name, nothing) for name in ("ahead", "behind"))
    assert behind.sync([Lease("team", ("concurrency", 0), 4)], (), NOW - 60) == 1
    assert ahead.sync((), (), NOW) == 2
    ahead.clean(NOW)
    assert ahead.used("team", NOW).total("concurrency", NOW) == 4
    assert isinstance(ahead.claim("team", (), [want("concurrency", 10, 7)], NOW), Shortage)
    with transaction(engine) as connection:
        connection.execute(text("UPDATE limit_workers SET seen_at = seen_at - 11 WHERE worker = 'behind'"))
    assert ahead.used("team", NOW).total("concurrency", NOW) == 0
    ahead.clean(NOW)
    assert behind.sync((), (), NOW - 60) == 2, "it was away, and stores its rows anew"
    assert ahead.used("team", NOW).total("concurrency", NOW) == 4


@pytest.mark.parametrize("need", [1, 9])
def test_a_lease_after_an_absence_stores_what_is_held_of_other_keys_too(engine: Engine, need: int) -> None:
    one, other = seen(engine, "one"), seen(engine, "other")
    one.sync([Lease("first", ("concurrency", 0), 4), Lease("second", ("concurrency", 0), 3)], (), NOW)
    other.sync((), (), NOW + 60)
    other.clean(NOW + 60)
    assert isinstance(one.claim("third", (), [want("concurrency", 10, need)], NOW + 61), LeaseGrant)
    held = [other.used(name, NOW + 61).total("concurrency", NOW + 61) for name in ("first", "second", "third")]
    assert held == [4, 3, need]


@pytest.mark.parametrize("leases", [True, False])
@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("unanswered", [0, 1])
def test_what_was_lost_is_stored_by_the_next_question_where_the_first_one_failed(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, unanswered: int, leases: bool, is_done: bool
) -> None:
    one, other = seen(engine, "one"), seen(engine, "other")
    one.sync([Lease("first", ("concurrency", 0), 4)], (), NOW)
    other.sync((), (), NOW + 60)
    other.clean(NOW + 60)
    asked: list[int] = []

    def fails(*statements: Any, **options: Any) -> Any:
        asked.append(len(asked))
        if asked[-1] < unanswered or is_done:
            answer = execute_together(*statements, **options)
        if asked[-1] >= unanswered:
            raise OperationalError("", {}, Exception("the server was stopped"))
        return answer

    with monkeypatch.context() as patch:
        patch.setattr("bardo.services.accounts.lease_store.execute_together", fails)
        with pytest.raises(DatabaseProblem):
            one.claim("third", (), [want("concurrency", 10, 1)], NOW + 61) if leases else one.sync((), (), NOW + 61)
    assert one.sync((), (), NOW + 62) == 2
    assert other.used("first", NOW + 62).total("concurrency", NOW + 62) == 4


@pytest.mark.parametrize("is_done", [True, False])
def test_an_estimate_whose_answer_was_lost_counts_once(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    one = seen(engine, "one")
    given = [Estimate("team", 20251130, 7)]

    def fails(*statements: Any, **options: Any) -> None:
        if is_done:
            execute_together(*statements, **options)
        raise OperationalError("", {}, Exception("the connection was lost"))

    for nanos in (10, 100):
        with monkeypatch.context() as patch:
            patch.setattr("bardo.services.accounts.lease_store.execute_together", fails)
            with pytest.raises(DatabaseProblem):
                one.sync((), given, NOW)
        given = [*given, Estimate("team", 20251130, nanos)]
    one.sync((), given, NOW)
    assert one.used("team", NOW).total("usd_per_day", NOW) == 117
    one.sync((), given[:1], NOW)
    assert one.used("team", NOW).total("usd_per_day", NOW) == 124


def test_an_estimate_of_which_the_server_does_not_know_yet_waits(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = seen(engine, "one")
    given = [Estimate("team", 20251130, 7)]
    with without_turns(engine).connect() as held:
        number = held.scalar(text("SELECT txid_current()"))
        one._unknown = (number, 1)
        with pytest.raises(DatabaseProblem, match="has not ended"):
            one.sync((), given, NOW)
    one.sync((), given, NOW)
    assert one.used("team", NOW).total("usd_per_day", NOW) == 7


def test_statements_that_go_together_are_one_transaction(engine: Engine) -> None:
    put = text("INSERT INTO limit_workers (worker, seen_at) VALUES (:worker, :now)")
    count = text("SELECT COUNT(*) FROM limit_workers")
    with transaction(engine) as connection:
        several = [{"worker": "a", "now": 1.0}, {"worker": "b", "now": 2.0}]
        assert execute_together(connection, [(put, several), (count, {})]) == [[], [(2,)]]
    with pytest.raises(DBAPIError, match="duplicate"), engine.begin() as connection:
        execute_together(
            connection, [(put, {"worker": "c", "now": 1.0}), (put, {"worker": "a", "now": 1.0})], commits=True
        )
    with engine.begin() as connection:
        assert execute_together(connection, [(count, {})]) == [[(2,)]]


@pytest.mark.parametrize("commits", [True, False])
def test_a_connection_that_is_lost_among_statements_says_why_in_one_line(
    engine: Engine, commits: bool, caplog: pytest.LogCaptureFixture
) -> None:
    count: Statement = (text("SELECT COUNT(*) FROM limit_workers"), {})
    ends: Statement = (text("SELECT pg_terminate_backend(pg_backend_pid())"), {})
    with (
        pytest.raises(DatabaseProblem, match=r"terminating connection|server closed"),
        transaction(engine) as connection,
    ):
        execute_together(connection, [count, ends, count], commits=commits)
    assert not [one for one in caplog.records if one.exc_info], "the operator's log has no traces of the pool"
    with transaction(engine) as connection:
        assert execute_together(connection, [count]) == [[(0,)]]


def test_a_server_that_has_closed_its_connections_is_asked_over_a_new_one(engine: Engine, postgres_url: str) -> None:
    with engine.connect() as first, engine.connect() as second:
        ends = text(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )
        pids = {connection.connection.dbapi_connection.info.backend_pid for connection in (first, second)}  # type: ignore[union-attr]
    other = open_keys(postgres_url)
    try:
        with other.connect() as connection:
            connection.execute(ends)
            gone = text("SELECT count(*) FROM pg_stat_activity WHERE pid = ANY (:pids)")
            while connection.scalar(gone, {"pids": list(pids)}):
                connection.rollback()
    finally:
        other.dispose()
    assert SqlLeaseStore(engine, "one", nothing).sync((), (), NOW) == 1
    assert KeyStore(engine).revision() == 0

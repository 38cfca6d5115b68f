"""The ledger over SQLite and PostgreSQL: one open payment for a purchase, caps that hold side by side, and nothing lost by kill -9."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from bardo.accounting.payments import Payer, Spending
from bardo.adapters.stores.database import engines
from bardo.adapters.stores.database.problems import DatabaseNewer, DatabaseUnusable
from bardo.services.payments.ledger import CapReached, Ledger, LedgerEntry, day_of, find_ledger, open_ledger
from support.patience import PATIENCE
from support.paying import opened

pytestmark = pytest.mark.each_python

NOW = 1_764_000_000.0


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Return where a ledger is made."""
    return tmp_path / "state.db" if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


def entry(purchase: str, ordinal: int, nanos: int = 1_000, tenant: str = "", subsystem: str = "") -> LedgerEntry:
    return LedgerEntry(
        payment_id=f"pay_{purchase}_{ordinal}", purchase=purchase, ordinal=ordinal, request_id="req_1", provider="seller",
        state="reserved", proof="bardo", created_at=NOW, changed_at=NOW, day=day_of(NOW), tenant=tenant, subsystem=subsystem,
        payer="0xaa", recipient="0xbb", network="eip155:84532", asset="0xcc", symbol="USDC", amount="1", nanos=nanos,
        nonce=f"0x{ordinal}", valid_before=int(NOW) + 60,
    )  # fmt: skip


def free(_: Spending) -> tuple[str, str]:
    return "", ""


def up_to(cap: int, nanos: int = 1_000) -> Callable[[Spending], tuple[str, str]]:
    return lambda spent: ("over", "usd_per_day") if spent.day + nanos > cap else ("", "")


def reserve(
    ledger: Ledger, purchase: str, refusal: Callable[[Spending], tuple[str, str]] = free
) -> tuple[LedgerEntry, bool]:
    return ledger.reserve(purchase, lambda ordinal: entry(purchase, ordinal), refusal)


def test_many_payments_at_once_over_two_connections_all_get_their_turn(tmp_path: Path) -> None:
    place = tmp_path / "state.db"
    with opened(place) as one, opened(place) as other, ThreadPoolExecutor(20) as threads:

        def pay(number: int) -> bool:
            ledger = (one, other)[number % 2]
            made, _ = reserve(ledger, f"p{number}")
            sent = ledger.move(made.payment_id, "delivered", among=("reserved",), now=NOW)
            return (
                sent is not None and ledger.move(sent.payment_id, "settled", among=("delivered",), now=NOW) is not None
            )

        assert all(threads.map(pay, range(40)))


def test_a_writer_waits_for_longer_than_one_statement_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "state.db"
    with opened(place):
        pass
    monkeypatch.setattr(engines, "BUSY_SECONDS", 0.0)
    with opened(place) as ledger, closing(sqlite3.connect(place, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(reserve, ledger, "a")
            with pytest.raises(TimeoutError):
                waiting.result(timeout=0.2)
            other.execute("COMMIT")
            assert waiting.result(PATIENCE)[1]


def test_a_ledger_that_stays_locked_says_so_in_bardos_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "state.db"
    with opened(place):
        pass
    monkeypatch.setattr(engines, "BUSY_SECONDS", 0.0)
    monkeypatch.setattr(engines, "LONGEST_WAIT_SECONDS", 0.01)
    with opened(place) as ledger, closing(sqlite3.connect(place, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseUnusable, match="locked"):
            reserve(ledger, "a")
        other.execute("COMMIT")
        assert reserve(ledger, "a")[1]


def test_a_purchase_has_one_payment_until_it_is_known_what_became_of_it(place: Path | str) -> None:
    with opened(place) as ledger:
        first, made = reserve(ledger, "a")
        assert made
        for state in ("delivered", "unknown"):
            again, made = reserve(ledger, "a")
            assert (again.payment_id, made) == (first.payment_id, False)
            assert ledger.move(first.payment_id, state, among=("reserved", "delivered"), now=NOW) is not None
        assert not reserve(ledger, "a")[1]
        ledger.move(first.payment_id, "settled", among=("unknown",), now=NOW, proof="network")
        second, made = reserve(ledger, "a")
        assert (second.ordinal, made) == (1, True)
        assert ledger.spent(day_of(NOW), Payer()).day == 2_000


def test_what_was_released_is_never_delivered(place: Path | str) -> None:
    with opened(place) as ledger:
        one, _ = reserve(ledger, "a")
        assert ledger.move(one.payment_id, "released", among=("reserved",), now=NOW) is not None
        assert ledger.move(one.payment_id, "delivered", among=("reserved",), now=NOW) is None
        assert ledger.spent(day_of(NOW), Payer()).day == 0


def test_reservations_side_by_side_stay_below_a_cap(place: Path | str) -> None:
    with opened(place) as first, opened(place) as second, ThreadPoolExecutor(8) as pool:

        def one(number: int) -> bool:
            try:
                return reserve((first, second)[number % 2], f"p{number}", up_to(5_000))[1]
            except CapReached:
                return False

        assert sum(pool.map(one, range(24))) == 5
        assert first.spent(day_of(NOW), Payer()).day == 5_000


def test_what_was_spent_is_counted_by_tenant_and_subsystem(place: Path | str) -> None:
    with opened(place) as ledger:
        for number, (tenant, subsystem) in enumerate([("a", "dream"), ("a", ""), ("b", "dream")]):
            made = entry(f"p{number}", 0, 1_000 * (number + 1), tenant, subsystem)
            ledger.reserve(made.purchase, lambda _, made=made: made, free)  # type: ignore[misc]
        assert ledger.spent(day_of(NOW), Payer(tenant="a", subsystem="dream")) == Spending(
            day=6_000, tenant=3_000, subsystem=4_000
        )
        assert ledger.spent_by("tenant", "0000", "9999") == {"a": 3_000, "b": 3_000}
        assert ledger.spent_by("day", "0000", "9999") == {day_of(NOW): 6_000}


def test_a_ledger_of_a_newer_bardo_is_left_alone(place: Path | str) -> None:
    from sqlalchemy import text

    ledger = open_ledger(place)
    with ledger._engine.begin() as connection:
        connection.execute(text("UPDATE bardo_revisions SET version_num = 'payments_9999'"))
    ledger.close()
    with pytest.raises(DatabaseNewer):
        open_ledger(place)


def test_a_ledger_in_a_file_writes_each_change_to_the_disk(tmp_path: Path) -> None:
    for _ in ("made", "opened"):
        with opened(tmp_path / "state.db") as ledger, ledger._engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_looking_for_a_ledger_makes_none(tmp_path: Path) -> None:
    assert find_ledger(tmp_path / "state.db") is None
    assert list(tmp_path.iterdir()) == []


CHILD = """
import sys
from bardo.services.payments.ledger import open_ledger
from edge_ledger import entry, free, NOW
ledger = open_ledger(sys.argv[1])
run = sys.argv[2]
for number in range(10_000):
    one, made = ledger.reserve(f"{run}.{number}", lambda ordinal: entry(f"{run}.{number}", ordinal), free)
    ledger.move(one.payment_id, "delivered", among=("reserved",), now=NOW)
    print(one.payment_id, flush=True)  # The signature leaves.
    ledger.move(one.payment_id, "settled", among=("delivered",), now=NOW)
    print("settled", one.payment_id, flush=True)
"""


@pytest.mark.sampled(1)
def test_a_process_that_is_killed_at_any_moment_loses_nothing_that_left(place: Path | str, tmp_path: Path) -> None:
    (tmp_path / "edge_ledger.py").write_text(Path(__file__).read_text())
    (tmp_path / "child.py").write_text(CHILD)
    left: list[str] = []
    settled: list[str] = []
    tests = Path(__file__).resolve().parents[2]
    for run in range(6):
        child = subprocess.Popen(
            [sys.executable, str(tmp_path / "child.py"), str(place), str(run)],
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": f"{tmp_path}:{tests}:{tests.parent / 'src'}"},
        )
        assert child.stdout is not None
        for _ in range(3 + 2 * run):
            line = child.stdout.readline().split()
            assert line, "the child ended by itself"
            (settled if line[0] == "settled" else left).append(line[-1])
        child.send_signal(signal.SIGKILL)
        child.wait()
        rest = [line.split() for line in child.stdout.read().splitlines()]
        left += [words[0] for words in rest if len(words) == 1 and words[0].startswith("pay_")]
        settled += [words[-1] for words in rest if words[:1] == ["settled"] and len(words) == 2]
        child.stdout.close()
    with opened(place) as ledger:
        states = {one.payment_id: one.state for one in ledger.latest(100_000)}
        assert {states.get(name) for name in left} <= {"delivered", "settled"}, "what left is known to have left"
        assert {states.get(name) for name in settled} == {"settled"}
        assert len(states) >= len(set(left))
        for name in [one for one, state in states.items() if state == "delivered"]:
            purchase = name.split("_")[1]
            assert not reserve(ledger, purchase)[1], "and is not paid again"

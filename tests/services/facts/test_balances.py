"""What a provider says of the money that is left is kept, DIEM until its day ends."""

from __future__ import annotations

import pytest

from bardo.services.facts.balances import Balances
from bardo.surfaces.library.decoding import provider_row

ROW = provider_row("venice")
DIEM, USD = "x-venice-balance-diem", "x-venice-balance-usd"
LATE = 86_400.0 * 20_000 - 1


def test_the_last_balance_counts_and_diem_ends_with_its_day() -> None:
    known = Balances()
    assert known.of("v", LATE) == {}
    known.note("v", ROW, {DIEM: "2.5", USD: "7"}, LATE - 9)
    known.note("v", ROW, {DIEM: "0"}, LATE)
    assert known.of("v", LATE) == {"diem": 0.0, "usd": 7.0}
    assert known.is_spent("v", "diem", LATE)
    assert not known.is_spent("other", "diem", LATE)
    assert known.of("v", LATE + 1) == {"usd": 7.0}
    assert not known.is_spent("v", "diem", LATE + 1)


@pytest.mark.parametrize("text", ["", "nan", "inf", "many", "1,5"])
def test_what_is_no_number_says_nothing(text: str) -> None:
    known = Balances()
    known.note("v", ROW, {DIEM: "1"}, LATE)
    known.note("v", ROW, {DIEM: text}, LATE)
    assert known.of("v", LATE) == {"diem": 1.0}


def test_the_revision_changes_where_money_runs_out_or_comes_back() -> None:
    known, seen = Balances(), []
    for amount in ("5", "4", "0", "-1", "3"):
        known.note("v", ROW, {DIEM: amount}, LATE)
        seen.append(known.revision)
    assert seen == [0, 0, 1, 1, 2]

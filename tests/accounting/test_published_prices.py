"""Calls cost what the providers' price pages say, by the table of hand-worked examples beside this file."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from bardo.catalog.load import builtin
from bardo.planning.route import Provider
from bardo.services.facts.price_book import PriceBook
from bardo.values.usage import Usage, UsageDetails
from support.offenders import each_case

CALLS: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("price_table.toml").read_text(encoding="utf-8"))[
    "call"
]
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC).timestamp()
BOOK = PriceBook()


def usage_of(counts: dict[str, Any]) -> Usage:
    beside = {name: value for name, value in counts.items() if name in UsageDetails.__struct_fields__}
    plain = {name: value for name, value in counts.items() if name not in beside}
    return Usage(details=UsageDetails(**beside) if beside else None, **plain)


@each_case("call", CALLS, ids=[f"{call['model']}: {call['working']}" for call in CALLS])
def test_a_call_costs_what_the_page_says(call: dict[str, Any]) -> None:
    row = next(one for one in builtin().providers if one.id == call["provider"])
    provider = Provider(id=row.id, row=row, base_url=row.base_url)
    cost = BOOK.cost(provider, call["model"], usage_of(call["usage"]), NOW, batch=call.get("batch", False))
    exact = Decimal(call["usd"]) * 10**9
    assert cost.nanos is not None
    assert abs(cost.nanos - exact) <= Decimal("0.5")
    assert sum(cost.parts.values()) == cost.nanos


@each_case("call", CALLS, ids=[f"{call['model']}: {call['working']}" for call in CALLS])
def test_the_table_adds_up(call: dict[str, Any]) -> None:
    products = (term.split("*") for term in call["working"].split(" + "))
    total = sum((Decimal(one) * Decimal(other) for one, other in products), Decimal(0))
    assert total == Decimal(call["usd"]) * 10**6


def test_there_are_sixty_calls_with_a_source_each() -> None:
    assert len(CALLS) >= 60
    assert all(call["source"] for call in CALLS)

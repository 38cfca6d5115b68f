"""The shipped table charges what genai-prices charges, for every model it has and all kinds of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from genai_prices import Usage as TheirUsage
from genai_prices import data, types

from bardo.accounting.cost import PriceTable, TableModel, computed_cost, listed_price, price_table
from bardo.catalog.load import builtin
from bardo.catalog.prices import price_lists
from bardo.values.usage import Usage, UsageDetails

DAY, MINUTE = "2026-11-23", 12 * 60
MOMENT = datetime(2026, 11, 23, 12, tzinfo=UTC)
TABLE = price_table()
THEIRS = {one.id: one for one in data.providers}
# Ours on the left, theirs on the right; both count the cache and the modalities inside the input.
USAGES: list[tuple[str, Usage, dict[str, int]]] = [
    ("plain", Usage(input_tokens=1234, output_tokens=567), {"input_tokens": 1234, "output_tokens": 567}),
    (
        "cache",
        Usage(input_tokens=9000, output_tokens=10, cached_input_tokens=5000, cache_write_tokens=3000),
        {"input_tokens": 9000, "output_tokens": 10, "cache_read_tokens": 5000, "cache_write_tokens": 3000},
    ),
    (
        "long",
        Usage(input_tokens=600_001, output_tokens=321, cached_input_tokens=500_000),
        {"input_tokens": 600_001, "output_tokens": 321, "cache_read_tokens": 500_000},
    ),
    (
        "thinking",
        Usage(input_tokens=10, output_tokens=5000, reasoning_tokens=4000),
        {"input_tokens": 10, "output_tokens": 5000, "output_reasoning_tokens": 4000},
    ),
    (
        "cache of an hour",
        Usage(input_tokens=7000, output_tokens=1, cache_write_tokens=7000, details=UsageDetails(cache_write_1h_tokens=4000)),
        {"input_tokens": 7000, "output_tokens": 1, "cache_write_tokens": 7000, "cache_write_1h_tokens": 4000},
    ),
    (
        "sound",
        Usage(input_tokens=900, output_tokens=80, details=UsageDetails(audio_input_tokens=700, audio_output_tokens=60)),
        {"input_tokens": 900, "output_tokens": 80, "input_audio_tokens": 700, "output_audio_tokens": 60},
    ),
]  # fmt: skip
CONTEXTS: list[tuple[str, dict[str, str]]] = [
    ("batch", {"processing": "batch"}),
    ("flex", {"service_tier": "flex"}),
    ("priority", {"service_tier": "priority"}),
]


def models() -> Iterator[tuple[str, TableModel, types.ModelInfo]]:
    for seller, rows in TABLE.sellers.items():
        for row in rows:
            yield seller, row, next(one for one in THEIRS[seller].models if one.id == row.id)


def names_of(model: types.ModelInfo) -> Iterator[str]:
    """Yield the ids that a model is asked for by, as far as its clauses name whole ones."""
    clauses = model.match.or_ if isinstance(model.match, types.ClauseOr) else [model.match]
    return (clause.equals for clause in clauses if isinstance(clause, types.ClauseEquals))


def their_nanos(price: Any, counts: dict[str, int]) -> int:
    total: Decimal = price.calc_price(TheirUsage(**counts))["total_price"]
    return round(total * 10**9)


@pytest.mark.parametrize(("usage", "counts"), [case[1:] for case in USAGES], ids=[case[0] for case in USAGES])
def test_a_call_costs_what_genai_prices_says(usage: Usage, counts: dict[str, int]) -> None:
    compared = 0
    for seller, row, model in models():
        price = row_price(row)
        if price is None or price.schedule.rates.output is None:
            continue
        ours = computed_cost(price, usage).nanos
        theirs = their_nanos(model.get_prices(MOMENT), counts)
        assert ours is not None
        # Rates that are no whole nano-dollars per million tokens are rounded once.
        assert abs(ours - theirs) <= 1, (seller, row.id)
        compared += 1
    assert compared > 1000


@pytest.mark.parametrize(("variant", "context"), CONTEXTS, ids=[case[0] for case in CONTEXTS])
def test_a_variant_costs_what_genai_prices_says(variant: str, context: dict[str, str]) -> None:
    compared = 0
    for seller, row, model in models():
        price = row_price(row)
        other, usual = model.get_prices(MOMENT, context), model.get_prices(MOMENT)
        if price is None or price.schedule.rates.output is None or other == usual:
            continue
        usage, counts = USAGES[1][1], USAGES[1][2]
        if variant == "batch":
            ours = computed_cost(price, usage, batch=True).nanos
        else:
            named = UsageDetails(service_tier=variant)
            ours = computed_cost(price, Usage(**{**fields_of(usage), "details": named})).nanos
        assert ours == their_nanos(other, counts), (seller, row.id)
        compared += 1
    assert compared > 3


def fields_of(usage: Usage) -> dict[str, Any]:
    return {name: getattr(usage, name) for name in usage.__struct_fields__}


def row_price(row: TableModel) -> Any:
    alone = PriceTable(version="", checked="", sellers={"one": (TableModel(row.id, ("=it",), row.prices),)})
    return alone.find("one", "it", DAY, MINUTE)


def test_a_name_finds_the_model_that_it_finds_there() -> None:
    found = 0
    for seller, rows in TABLE.sellers.items():
        for model in THEIRS[seller].models:
            for name in names_of(model):
                theirs = THEIRS[seller].find_model(name)
                ours = next((row for row in rows if row.fits(name.lower())), None)
                if theirs is not None and any(row.id == theirs.id for row in rows):
                    assert ours is not None, (seller, name)
                    assert ours.id == theirs.id, (seller, name)
                    found += 1
    assert found > 1000


@pytest.mark.parametrize(
    ("word", "name", "fits"),
    [
        ("^family-4", "family-4", True),
        ("^family-4", "family-4-fast", True),
        ("^family-4", "family-40", False),
        ("^family-4", "family-4.5", False),
        ("^family-4", "family-4-5-20260101", False),
        ("^family-4", "family-4-20260101", True),
        ("^family-4", "family-4-0613", True),
        ("^family-4", "family-4-8b", True),
        ("^line-2024", "line-2024-05-13", True),
        ("~line-7", "a-line-7-b", True),
        ("~line-7", "a-line-72", False),
        ("~line-7", "line-71-line-7", True),
        ("$2b", "x-2b", True),
        ("$2b", "x-12b", False),
        ("^a&$z", "abz", True),
        ("^a&$z", "aby", False),
        ("/^a-\\d{2}$", "a-12", True),
    ],
)
def test_a_version_in_a_name_is_never_split(word: str, name: str, fits: bool) -> None:
    assert TableModel("one", (word,), ()).fits(name) is fits


def test_each_provider_that_charges_by_a_list_has_a_row_and_each_list_is_there() -> None:
    rows = {row.id for row in builtin().providers}
    for one in price_lists():
        assert set(one.providers) <= rows
        assert set(one.lists) <= TABLE.sellers.keys()


def test_a_tier_that_costs_the_usual_price_is_known_as_such() -> None:
    flex = UsageDetails(service_tier="flex")
    usage = Usage(input_tokens=1000, output_tokens=100, details=flex)
    name = next(word[1:] for row in TABLE.sellers["groq"] for word in row.match if word.startswith("="))
    price = listed_price("groq", name, DAY, MINUTE)
    assert price is not None
    assert computed_cost(price, usage).nanos == computed_cost(price, Usage(input_tokens=1000, output_tokens=100)).nanos


def test_a_price_of_some_hours_holds_in_these() -> None:
    prices = {
        minute: listed_price("deepseek", "deepseek-chat", "2025-03-01", minute)
        for minute in (0, 29, 30, 989, 990, 1439)
    }
    rates = {minute: price and price.schedule.rates.input for minute, price in prices.items()}
    # DeepSeek halved its prices from 16:30 to 00:30 UTC (api-docs.deepseek.com, "Models & Pricing", 2025).
    assert rates == {
        0: 135_000_000,
        29: 135_000_000,
        30: 270_000_000,
        989: 270_000_000,
        990: 135_000_000,
        1439: 135_000_000,
    }


def test_a_price_holds_from_its_date() -> None:
    row = next(row for row in TABLE.sellers["openrouter"] if len({price.since for price in row.prices}) > 1)
    later = row.prices[-1]
    name = next(word[1:] for word in row.match if word.startswith("="))
    found = TABLE.find("openrouter", name, later.since, 0)
    assert found is not None
    assert found.valid_from == later.since

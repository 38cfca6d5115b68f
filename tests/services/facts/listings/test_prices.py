"""Prices of kept lists in the book of prices: those of the provider, from the day of the list, below the operator's own."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from bardo.catalog.load import builtin
from bardo.catalog.prices import PriceRow
from bardo.planning.route import Provider
from bardo.services.facts.listings import ListedModel, ListedPrice, ListedRates, Listing, Listings
from bardo.services.facts.listings.listings import feed_prices
from bardo.services.facts.price_book import PriceBook
from bardo.values.usage import Usage

NOW = 1_790_000_000.0
LATER = NOW + 1000


def provider(preset: str = "venice", **changes: Any) -> Provider:
    row = builtin().provider(preset)
    assert row is not None
    return Provider(**{"id": preset, "row": row, "base_url": row.base_url, **changes})


def listing(model: str = "qwen3-235b", **price: Any) -> Listing:
    models = {model: ListedModel(price=ListedPrice(**price)), "unpriced": ListedModel(), "odd*": ListedModel()}
    return Listing(source="venice", at=NOW, models=models)


def book(*operator: PriceRow) -> tuple[PriceBook, Listings]:
    prices, listings = PriceBook(operator), Listings()
    listings.take(provider(), listing(input=2_000_000_000, output=8_000_000_000, cache_read=200_000_000, request=5))
    feed_prices(listings, prices, [provider()])
    return prices, listings


def test_a_call_costs_what_the_list_says() -> None:
    prices, _ = book()
    cost = prices.cost(provider(), "qwen3-235b", Usage(input_tokens=1000, output_tokens=500), LATER)
    assert (cost.nanos, cost.source) == (1000 * 2000 + 500 * 8000 + 5, "listing")
    found = prices.price(provider(), "qwen3-235b", LATER)
    assert found is not None
    assert found.valid_from == "2026-09-21"
    assert found.page == "the list of models of venice"


def test_a_newer_list_replaces_the_prices_of_the_older_one() -> None:
    prices, listings = book()
    listings.take(provider(), listing("other", input=1, output=1))
    assert prices.price(provider(), "other", LATER) is not None
    gone = prices.price(provider(), "qwen3-235b", LATER)
    assert gone is None or gone.source != "listing"


def test_the_operators_price_goes_before() -> None:
    own = PriceRow(match=("qwen3-*",), input=Decimal(1), output=Decimal(1))
    found = book(own)[0].price(provider(), "qwen3-235b", LATER)
    assert found is not None
    assert found.source == "operator"


def test_prices_for_long_prompts_are_taken_over() -> None:
    prices, listings = book()
    long = ListedRates(input=4_000_000_000, output=9_000_000_000)
    listings.take(provider(), listing(input=2_000_000_000, output=8_000_000_000, threshold=100, long=long))
    short, longer = (
        prices.cost(provider(), "qwen3-235b", Usage(input_tokens=tokens, output_tokens=0), LATER).nanos
        for tokens in (100, 101)
    )
    assert (short, longer) == (100 * 2000, 101 * 4000)


def test_a_list_of_another_address_is_only_about_its_own_provider() -> None:
    prices, listings = PriceBook(), Listings()
    relay = provider(id="relay", base_url="https://relay.example/v1")
    feed_prices(listings, prices, [])
    listings.take(relay, listing("private-name", input=1, output=1))
    assert prices.price(relay, "private-name", LATER) is not None
    assert prices.price(provider(), "private-name", LATER) is None
    listings.take(provider("openrouter"), listing("router-name", input=1, output=1))
    assert prices.price(provider("openrouter-responses"), "router-name", LATER) is not None


def test_a_variant_of_a_model_keeps_its_own_price() -> None:
    prices, listings = PriceBook(), Listings()
    models = {
        "maker/m": ListedModel(price=ListedPrice(input=5, output=5)),
        "maker/m:free": ListedModel(price=ListedPrice(input=0, output=0)),
    }
    feed_prices(listings, prices, [])
    listings.take(provider("openrouter"), Listing(source="openrouter", at=NOW, models=models))
    rates = [prices.price(provider("openrouter"), name, LATER) for name in models]
    assert [None if one is None else one.schedule.rates.input for one in rates] == [5, 0]

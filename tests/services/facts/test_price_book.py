"""Which price a model has at a provider: of which source, and since when."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from bardo.catalog.load import builtin
from bardo.catalog.prices import PriceRow
from bardo.planning.route import Provider
from bardo.services.facts.price_book import PriceBook


def at(day: str) -> float:
    return datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()


NOW = at("2026-11-23")


def provider(row: str, name: str = "") -> Provider:
    found = next(one for one in builtin().providers if one.id == row)
    return Provider(id=name or row, row=found, base_url=found.base_url)


def row(dollars: str, **fields: object) -> PriceRow:
    return PriceRow(match=("some-model*",), input=Decimal(dollars), output=Decimal(0), **fields)  # type: ignore[arg-type]


def input_rate(book: PriceBook, at: Provider, model: str = "some-model", now: float = NOW) -> int | None:
    price = book.price(at, model, now)
    return None if price is None else price.schedule.rates.input


def test_a_model_that_nobody_prices_has_no_price() -> None:
    assert PriceBook().price(provider("openai"), "some-model", NOW) is None


def test_the_operator_goes_before_a_listing() -> None:
    book = PriceBook([row("2")])
    book.set_listing("somewhere", [row("1")])
    price = book.price(provider("openai"), "some-model", NOW)
    assert price is not None
    assert (price.schedule.rates.input, price.source) == (2_000_000_000, "operator")


def test_a_new_listing_is_heeded_at_once_and_raises_the_revision() -> None:
    book = PriceBook()
    assert input_rate(book, provider("openai")) is None
    before = book.revision
    book.set_listing("somewhere", [row("1")])
    assert input_rate(book, provider("openai")) == 1_000_000_000
    assert book.revision > before


def test_a_price_holds_from_its_date_until_the_next_one() -> None:
    book = PriceBook([row("1", valid_from="2026-01-01"), row("2", valid_from="2026-11-24")])
    days = ("2025-12-31", "2026-11-23", "2026-11-24")
    found = [input_rate(book, provider("openai"), now=at(day)) for day in days]
    assert found == [None, 1_000_000_000, 2_000_000_000]


def test_a_row_about_a_provider_goes_before_one_about_all() -> None:
    book = PriceBook([row("1"), row("2", providers=("open*",))])
    assert input_rate(book, provider("openai")) == 2_000_000_000
    assert input_rate(book, provider("groq")) == 1_000_000_000


def test_a_row_may_name_a_provider_by_its_id_in_the_configuration() -> None:
    book = PriceBook([row("2", providers=("mine",))])
    assert input_rate(book, provider("openai", "mine")) == 2_000_000_000
    assert input_rate(book, provider("openai")) is None


@pytest.mark.parametrize(("model", "free"), [("qwen3:8b", True), ("gpt-oss:120b-cloud", False)])
def test_a_server_of_ones_own_sends_no_bill(model: str, free: bool) -> None:
    assert input_rate(PriceBook(), provider("ollama"), model) == (0 if free else None)


def test_the_cheapest_servers_cost_the_models_listed_price_and_the_fastest_have_no_known_one() -> None:
    book, openrouter = PriceBook(), provider("openrouter")
    plain = book.price(openrouter, "qwen/qwen-plus", NOW)
    assert plain is not None
    assert book.price(openrouter, "qwen/qwen-plus:floor", NOW) == plain
    assert book.price(openrouter, "qwen/qwen-plus:nitro", NOW) is None
    assert book.price(openrouter, "nobody/knows:floor", NOW) is None

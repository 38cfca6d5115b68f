"""Kept lists as rows for the book of prices."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from bardo.catalog.prices import PriceRow, PriceTier
from bardo.planning.route import Provider
from bardo.services.facts.listings.listings import Listings, source_of
from bardo.services.facts.listings.store import file_name
from bardo.services.facts.listings.values import ListedPrice, ListedRates, Listing
from bardo.services.facts.price_book import PriceBook

_NANOS = Decimal(10**9)
_WILDCARDS = frozenset("*?[")


def feed_prices(listings: Listings, book: PriceBook, providers: list[Provider]) -> None:
    """Put the prices of every list that is kept, or taken over later, into the book."""

    def take(provider: Provider, listing: Listing) -> None:
        source = source_of(provider)
        if source is not None:
            book.set_listing(file_name(source, provider), price_rows_of(provider, listing))

    listings.on_change(take, providers)


def price_rows_of(provider: Provider, listing: Listing) -> Iterator[PriceRow]:
    """Yield a row for each model with a price, for the provider, and for others that are asked at the same usual address."""
    source, row = source_of(provider), provider.row
    usual = provider.base_url.rstrip("/") == row.base_url.rstrip("/")
    names = (provider.id, *(source.providers if usual and source is not None else ()))
    for model, said in listing.models.items():
        if said.price is not None and not _WILDCARDS & set(model):
            yield _row(model, said.price, names, listing)


def _row(model: str, price: ListedPrice, names: tuple[str, ...], listing: Listing) -> PriceRow:
    return PriceRow(
        match=(model,),
        providers=names,
        valid_from=listing.date.isoformat(),
        source=f"the list of models of {listing.source}",
        input=_dollars(price.input),
        cached_input=_dollars(price.cache_read),
        cache_write=_dollars(price.cache_write),
        output=_dollars(price.output),
        request_fee=_dollars(price.request),
        tiers=() if price.threshold is None or price.long is None else (_tier(price.threshold, price.long),),
    )


def _tier(above: int, rates: ListedRates) -> PriceTier:
    return PriceTier(
        above=above,
        input=_dollars(rates.input),
        cached_input=_dollars(rates.cache_read),
        cache_write=_dollars(rates.cache_write),
        output=_dollars(rates.output),
    )


def _dollars(nanos: int | None) -> Decimal | None:
    return None if nanos is None else Decimal(nanos) / _NANOS

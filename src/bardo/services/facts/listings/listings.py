"""Models and prices as providers list them, kept as rows: what one listing says, and what is known of them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import NamedTuple

from bardo.catalog.models import ModelRow
from bardo.catalog.prices import PriceRow, PriceTier
from bardo.planning.route import Provider
from bardo.reasoning.control import Layer
from bardo.services.facts.introspect.live import LiveFacts
from bardo.services.facts.listings.rows import ListingSource, sources_by_provider
from bardo.services.facts.listings.store import ListingStore, file_name
from bardo.services.facts.listings.values import ListedModel, ListedPrice, ListedRates, Listing
from bardo.services.facts.price_book import PriceBook

_Place = tuple[str, str]
OnChange = Callable[[Provider, Listing], None]


class _CachedListing(NamedTuple):
    """A list in memory, and the stamp of the file it was read from."""

    listing: Listing | None
    stamp: tuple[int, int] | None


class Listings:
    """Lists by provider. `store` None: nothing is kept on disk. `revision` changes with every list that is taken over, or is gone."""

    def __init__(self, store: ListingStore | None = None) -> None:
        self._store = store
        self._held: dict[_Place, _CachedListing] = {}
        self._on_change: list[OnChange] = []
        self.revision = 0

    def of(self, provider: Provider) -> Listing | None:
        """Return the last good list of a provider, or None if there is none."""
        held = self._held.get((provider.row.id, provider.base_url))
        return self._load(provider).listing if held is None else held.listing

    def model(self, provider: Provider, model: str) -> ListedModel | None:
        """Return what the provider's list says of a model."""
        listing = self.of(provider)
        return None if listing is None else listing.models.get(model)

    def take(self, provider: Provider, listing: Listing) -> None:
        """Take over a list, in memory and on disk."""
        stamp = None
        if self._store is not None and (source := source_of(provider)) is not None:
            name = file_name(source, provider)
            self._store.save(name, listing)
            stamp = self._store.stamp(name)
        self._hold(provider, _CachedListing(listing, stamp))

    def renew(self, provider: Provider) -> None:
        """Read the list of a provider again where another process wrote it since."""
        held, source = self._held.get((provider.row.id, provider.base_url)), source_of(provider)
        if held is None or self._store is None or source is None:
            return
        if self._store.stamp(file_name(source, provider)) != held.stamp:
            self._load(provider)

    def on_change(self, told: OnChange, providers: Iterable[Provider] = ()) -> None:
        """Have `told` called with every list that is taken over, and now with those of `providers`."""
        self._on_change.append(told)
        for provider in providers:
            listing = self.of(provider)
            if listing is not None:
                told(provider, listing)

    def _load(self, provider: Provider) -> _CachedListing:
        held, source = _CachedListing(None, None), source_of(provider)
        if self._store is not None and source is not None:
            name = file_name(source, provider)
            # The stamp first: a file that is replaced meanwhile is read again.
            stamp = self._store.stamp(name)
            held = _CachedListing(None if stamp is None else self._store.load(name), stamp)
        self._hold(provider, held)
        return held

    def _hold(self, provider: Provider, held: _CachedListing) -> None:
        before = self._held.get((provider.row.id, provider.base_url))
        self._held[provider.row.id, provider.base_url] = held
        if held.listing is not None or (before is not None and before.listing is not None):
            self.revision += 1
        if held.listing is not None:
            for told in self._on_change:
                told(provider, held.listing)


def layers_of_list(listed: ListedModel | None) -> tuple[Layer, ...]:
    """Return what a list says of a model as a layer of control; none where it says nothing of thinking."""
    return () if listed is None or listed.facts.silent else (Layer("listing", listed.facts),)


def features_of(live: LiveFacts | None, listed: ListedModel | None) -> dict[str, bool]:
    """Return what is said of features: by the server now, or in the list that was kept."""
    kept = {} if listed is None else dict(listed.facts.features)
    return kept if live is None else {**kept, **dict(live.features)}


def context_of(own: Iterable[ModelRow], live: LiveFacts | None, listed: ListedModel | None) -> int | None:
    """Return how many tokens a prompt and its answer may have: by the operator, the server now, or the list that was kept."""
    said = (*(row.context for row in own), live and live.context, listed and listed.facts.context)
    return next((tokens for tokens in said if tokens), None)


def source_of(provider: Provider) -> ListingSource | None:
    """Return the row that says how a provider's list is read, or None if its list says nothing beside names."""
    return sources_by_provider().get(provider.row.id)


_NANOS_OF_USD = Decimal(10**9)
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
    return None if nanos is None else Decimal(nanos) / _NANOS_OF_USD

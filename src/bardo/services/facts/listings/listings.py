"""Models and prices as providers list them, kept as rows: what one listing says, and the facts about them all.

Providers are asked for their lists of models, and what passes the checks is taken over: on demand, and every hour in a gateway that
runs. One list that cannot be had leaves the others alone, and its last good version still holds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

import msgspec

from bardo.adapters.chance import CHANCE
from bardo.adapters.net.client import Call, Deadlines, Transport
from bardo.adapters.net.keys import Keyring
from bardo.catalog.models import ModelRow
from bardo.catalog.prices import PriceRow, PriceTier
from bardo.planning.route import Provider
from bardo.reasoning.control import Layer
from bardo.services.facts.introspect.answer_values import NotAnAnswer
from bardo.services.facts.introspect.live import LiveFacts
from bardo.services.facts.listings.read import MOST_BYTES, check, read_listing
from bardo.services.facts.listings.rows import (
    ListedModel,
    ListedPrice,
    ListedRates,
    Listing,
    ListingSource,
    sources_by_provider,
)
from bardo.services.facts.listings.store import WRONG_CLOCK_SECONDS, ListingStore, file_name
from bardo.services.facts.price_book import PriceBook
from bardo.values.error_cleaning import cleaned_text
from bardo.values.errors import BardoError, MalformedReply

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
    """Return the facts of a model in a list as a layer of control, or none if it has no facts about thinking."""
    return () if listed is None or listed.facts.silent else (Layer("listing", listed.facts),)


def features_of(live: LiveFacts | None, listed: ListedModel | None) -> dict[str, bool]:
    """Return the stated features: by the server now, or in the stored list."""
    features = {} if listed is None else dict(listed.facts.features)
    return features if live is None else {**features, **dict(live.features)}


def context_of(own: Iterable[ModelRow], live: LiveFacts | None, listed: ListedModel | None) -> int | None:
    """Return how many tokens a prompt and its answer may have: by the operator, the server now, or the list that was kept."""
    sizes = (*(row.context for row in own), live and live.context, listed and listed.facts.context)
    return next((tokens for tokens in sizes if tokens), None)


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
    for model, listed in listing.models.items():
        if listed.price is not None and not _WILDCARDS & set(model):
            yield _row(model, listed.price, names, listing)


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


SECONDS = 30.0
"""How long one list may take."""
FIRST_SECONDS = 30.0
"""How long a gateway serves before it asks for the first time: one that is started for a moment asks no provider."""
_DEADLINES = Deadlines(connect=5.0, first_byte=15.0, idle=10.0, total=SECONDS)
_LONGEST_REASON = 500
_SPREAD = 0.05
_log = logging.getLogger("bardo.catalog")


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of asking one provider: `listing` is the part taken over, or that would be; `problem` is why nothing is.

    `refused`: a list came and cannot be believed. `held` are models that keep their price of before; `before` is the list that held.
    """

    provider: str
    source: str
    listing: Listing | None = None
    before: Listing | None = None
    held: tuple[str, ...] = ()
    problem: str = ""
    refused: bool = False


class CatalogRefresh:
    """Refreshes the lists of providers. `clock` gives Unix time."""

    def __init__(
        self, listings: Listings, transport: Transport, keyring: Keyring, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._listings = listings
        self._transport = transport
        self._keyring = keyring
        self._clock = clock

    async def refresh(self, providers: Sequence[Provider], *, accept: bool = False, dry: bool = False) -> list[Outcome]:
        """Ask each provider and take over what can be believed; with `dry` nothing is taken over. `accept`: all is believed."""
        return list(
            await asyncio.gather(*(self._refresh_provider(provider, accept, dry) for provider in askable(providers)))
        )

    async def _refresh_provider(self, provider: Provider, accept: bool, dry: bool) -> Outcome:
        source = source_of(provider)
        assert source is not None
        about = Outcome(provider=provider.id, source=source.name, before=self._listings.of(provider))
        try:
            async with asyncio.timeout(SECONDS):
                new = await self._ask(provider, source)
        except (BardoError, NotAnAnswer, TimeoutError) as problem:
            return msgspec.structs.replace(about, problem=self._problem_text(problem, provider))
        outcome = check(new, about.before, accept=accept)
        if outcome.listing is not None and not dry:
            self._listings.take(provider, outcome.listing)
        return msgspec.structs.replace(
            about, listing=outcome.listing, held=outcome.held, problem=outcome.refused, refused=bool(outcome.refused)
        )

    async def _ask(self, provider: Provider, source: ListingSource) -> Listing:
        """Return the list as it came. Raises BardoError and NotAnAnswer."""
        headers = {**provider.row.headers, "accept": "application/json"}
        call = Call(method="GET", url=provider.url(source.path), headers=headers, provider=provider.id)
        if not (source.public and self._keyring.lacks(provider)):
            await self._keyring.prepare(provider)
            call = self._keyring.sign(call, provider, clock=self._clock)
        reply = await self._transport.send(call, _DEADLINES)
        try:
            body = await reply.read(MOST_BYTES)
        finally:
            await reply.close()
        if reply.status != 200:
            raise MalformedReply(f"its list answered with status {reply.status}", provider=provider.id)
        return read_listing(source, body, self._clock())

    def _problem_text(self, problem: BaseException, provider: Provider) -> str:
        if isinstance(problem, TimeoutError):
            return f"no answer within {SECONDS:g} seconds"
        why = problem.message if isinstance(problem, BardoError) else str(problem)
        return cleaned_text(why, self._keyring.secrets([provider]), _LONGEST_REASON)


def askable(providers: Sequence[Provider]) -> list[Provider]:
    """Return the providers whose lists are read, each list once."""
    by_source: dict[tuple[str, str], Provider] = {}
    for provider in providers:
        source = source_of(provider)
        if source is not None:
            by_source.setdefault((source.name, provider.base_url), provider)
    return list(by_source.values())


class HourlyRefresh:
    """Refreshes in the background every `seconds`, each list once among all processes that share the folder."""

    def __init__(
        self,
        refresh: CatalogRefresh,
        listings: Listings,
        providers: Callable[[], Sequence[Provider]],
        *,
        seconds: float,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._refresh = refresh
        self._listings = listings
        self._providers = providers
        self._seconds = seconds
        self._clock = clock
        self._sleep = sleep
        self._failed: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in the event loop that runs."""
        if self._task is None and self._seconds > 0:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Stop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        # Processes that were started together do not ask together.
        await self._sleep(FIRST_SECONDS * (1 + CHANCE.random()))
        while True:
            try:
                await self.refresh_due()
            except Exception:  # noqa: BLE001 - a mistake of ours must not end the refreshing of a process that runs for months
                _log.exception("the lists of models could not be refreshed")
            await self._sleep(self._seconds * (1 + _SPREAD * CHANCE.random()))

    async def refresh_due(self) -> list[Outcome]:
        """Refresh the lists that are old, and take over what another process has refreshed."""
        due = []
        for provider in askable(self._providers()):
            self._listings.renew(provider)
            listing = self._listings.of(provider)
            age = None if listing is None else self._clock() - listing.at
            if age is None or age >= (1 - _SPREAD) * self._seconds or age < -WRONG_CLOCK_SECONDS:
                due.append(provider)
        outcomes = await self._refresh.refresh(due)
        for outcome in outcomes:
            self._report(outcome)
        return outcomes

    def _report(self, outcome: Outcome) -> None:
        """Warn of a list that cannot be believed, and note once that one cannot be had: a machine may be without a network."""
        about = {"provider": outcome.provider, "source": outcome.source, "why": outcome.problem}
        if outcome.refused:
            _log.warning(
                "the list of models of %s is not taken over: %s; see `bardo catalog diff`",
                outcome.provider,
                outcome.problem,
                extra=about,
            )
        elif outcome.held:
            names = ", ".join(outcome.held[:5])
            _log.warning("prices of %s changed more than tenfold and stay: %s", outcome.provider, names, extra=about)
        elif outcome.problem and outcome.provider not in self._failed:
            _log.info("no list of models of %s: %s; the last one holds", outcome.provider, outcome.problem, extra=about)
        if outcome.problem:
            self._failed.add(outcome.provider)
        else:
            self._failed.discard(outcome.provider)

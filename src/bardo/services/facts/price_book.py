"""The current prices of models: the operator's prices, then refreshed listings, then the rows that come with bardo, then its table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from bardo.accounting.cost import Price, PriceList, Rates, Schedule, cost_of, listed_price, price_of
from bardo.catalog.prices import PriceRow, price_rows
from bardo.planning.route import Provider
from bardo.values.usage import CallCost, Usage

_MOST_KEPT = 4096
# Prices change at midnight, and some at the half hour: an answer holds until the next one.
_HALF_HOUR = 1800.0


# The client pays its provider itself, by a subscription or by its own key.
_SUBSCRIPTION = "subscription"
_BY_SUBSCRIPTION = CallCost(nanos=0, source=_SUBSCRIPTION)
_NO_PRICE = Price(schedule=Schedule(rates=Rates(input=0, output=0)), source=_SUBSCRIPTION)


class _Answer(NamedTuple):
    price: Price | None
    begins: float
    ends: float


class PriceBook:
    """Finds prices, and keeps what it found. `revision` goes up with each change of the rows."""

    def __init__(self, operator: Iterable[PriceRow] = ()) -> None:
        self.revision = 0
        self._operator = PriceList(operator, "operator")
        self._listings: dict[str, PriceList] = {}
        self._own: PriceList | None = None
        self._known: dict[tuple[str, str], _Answer] = {}

    def price(self, provider: Provider, model: str, now: float) -> Price | None:
        """Return what a model costs at a provider at a Unix time, or None if that is not known."""
        if provider.row.auth == "client":
            return _NO_PRICE
        answer = self._known.get((provider.id, model))
        if answer is not None and answer.begins <= now < answer.ends:
            return answer.price
        return self._find(provider, model, now)

    def cost(self, provider: Provider, model: str, usage: Usage, now: float, *, batch: bool = False) -> CallCost:
        """Return what a call to a model cost by what it used."""
        if provider.row.auth == "client":
            return _BY_SUBSCRIPTION
        return cost_of(self.price(provider, model, now), usage, batch=batch)

    def set_listing(self, source: str, rows: Iterable[PriceRow]) -> None:
        """Take the prices of one listing, in the place of those that it gave before. A later source goes after the earlier ones."""
        self._listings[source] = PriceList(rows, "listing")
        self._known.clear()
        self.revision += 1

    def _find(self, provider: Provider, model: str, now: float) -> Price | None:
        begins = now - now % _HALF_HOUR
        price = self._look_up(provider, model, begins)
        if len(self._known) >= _MOST_KEPT:
            self._known.clear()
        self._known[provider.id, model] = _Answer(price, begins, begins + _HALF_HOUR)
        return price

    def _look_up(self, provider: Provider, model: str, now: float) -> Price | None:
        moment, ids = datetime.fromtimestamp(now, UTC), (provider.id, provider.row.id)
        day = moment.date().isoformat()
        for layer in self._layers():
            row = layer.find(ids, model, day)
            if row is not None:
                return price_of(row, layer.source)
        price = listed_price(provider.row.id, model, day, moment.hour * 60 + moment.minute)
        plain, _, variant = model.rpartition(":")
        if price is None and provider.row.model_variants.get(variant):
            return self._look_up(provider, plain, now)
        return price

    def _layers(self) -> Iterator[PriceList]:
        yield self._operator
        yield from self._listings.values()
        if self._own is None:
            self._own = PriceList(price_rows(), "catalog")
        yield self._own

"""What calls cost in a batch: by the price of the model where that says it, else by the provider's usual part of the single price."""

from __future__ import annotations

from fractions import Fraction

from msgspec.structs import asdict, replace

from bardo.accounting.cost import BATCH, Price, Rates, Schedule, cost_of
from bardo.catalog.batch_rows import batch_row
from bardo.planning.route import Provider
from bardo.services.facts.price_book import PriceBook
from bardo.values.usage import CallCost, Usage


class BatchPrices(PriceBook):
    """The prices of a book, for items of batches."""

    def __init__(self, book: PriceBook) -> None:
        super().__init__()
        self._book = book

    def price(self, provider: Provider, model: str, now: float) -> Price | None:
        """Return what a model costs, with its price in batches; None where that is not known."""
        price = self._book.price(provider, model, now)
        row = batch_row(provider.row)
        if price is None or row is None or BATCH in price.variants:
            return price
        return replace(price, variants={**price.variants, BATCH: _scaled(price.schedule, row.price_factor)})

    def cost(self, provider: Provider, model: str, usage: Usage, now: float, *, batch: bool = True) -> CallCost:
        """Return what an item cost by what it used."""
        return cost_of(self.price(provider, model, now), usage, batch=True)


def _scaled(schedule: Schedule, factor: float) -> Schedule:
    part = Fraction(str(factor))
    tiers = tuple([replace(tier, rates=_part_of(tier.rates, part)) for tier in schedule.tiers])
    return Schedule(rates=_part_of(schedule.rates, part), tiers=tiers)


def _part_of(rates: Rates, part: Fraction) -> Rates:
    return Rates(**{name: None if rate is None else round(rate * part) for name, rate in asdict(rates).items()})

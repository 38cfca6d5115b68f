"""Rows of prices, and which of them is the price of a model at a provider on a day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_EVEN, Decimal

import msgspec

from bardo.accounting.price import BATCH, Price, Rates, Schedule, Tier
from bardo.catalog.matching import matches_any, plain_id, specificity
from bardo.catalog.prices import TOKEN_PRICES, PriceRow, TokenPrices
from bardo.values.cost import nanos_of


class PriceList:
    """The rows of one source. A row about some providers goes before one about all, then the most specific glob, then the latest date."""

    def __init__(self, rows: Iterable[PriceRow], source: str) -> None:
        self.rows = tuple(
            msgspec.structs.replace(row, match=tuple(plain_id(glob) for glob in row.match)) for row in rows
        )
        self.source = source
        # Lists of providers name each of their models: looked up by name, not compared with hundreds of globs.
        self._exact: dict[str, list[PriceRow]] = {}
        for row in self.rows:
            if _is_exact(row):
                for name in row.match:
                    self._exact.setdefault(name, []).append(row)
        self._globs = [row for row in self.rows if not _is_exact(row)]

    def find(self, providers: Sequence[str], model: str, day: str) -> PriceRow | None:
        """Return the row about a model at a provider, which goes by any of the ids, on a day (ISO date); None where there is none."""
        name = plain_id(model)
        rows = (*self._exact.get(name, ()), *self._globs)
        fitting = [row for row in rows if row.valid_from <= day and _is_about(row, providers, name)]
        return max(
            fitting, key=lambda row: (bool(row.providers), _specificity(name, row), row.valid_from), default=None
        )


def price_of(row: PriceRow, source: str) -> Price | None:
    """Return the price that a row gives; None where it says that the price is not known."""
    if row.input is None:
        return None
    usual = Schedule(rates=_rates(row), tiers=tuple(_tier(tier, row) for tier in sorted(row.tiers, key=_above)))
    factors = {**row.service_tiers, **({} if row.batch_factor is None else {BATCH: row.batch_factor})}
    return Price(
        schedule=usual,
        variants={name: scaled(usual, factor) for name, factor in factors.items()},
        request_fee=0 if row.request_fee is None else nanos_of(row.request_fee),
        search_fee=None if row.search_fee is None else nanos_of(row.search_fee),
        search_fee_once=row.search_fee_once,
        valid_from=row.valid_from,
        source=source,
        page=row.source,
    )


def scaled(schedule: Schedule, factor: Decimal) -> Schedule:
    """Return a schedule at a share of its rates."""
    return Schedule(
        rates=_scaled(schedule.rates, factor),
        tiers=tuple(Tier(above=tier.above, rates=_scaled(tier.rates, factor)) for tier in schedule.tiers),
    )


def _scaled(rates: Rates, factor: Decimal) -> Rates:
    return Rates(*(None if rate is None else _whole(rate * factor) for rate in msgspec.structs.astuple(rates)))


def _whole(amount: Decimal) -> int:
    return int(amount.quantize(Decimal(1), rounding=ROUND_HALF_EVEN))


def _rates(prices: TokenPrices) -> Rates:
    return Rates(*(None if (dollars := getattr(prices, name)) is None else nanos_of(dollars) for name in TOKEN_PRICES))


def _tier(tier: TokenPrices, row: PriceRow) -> Tier:
    named = {name: getattr(tier, name) for name in TOKEN_PRICES if getattr(tier, name) is not None}
    below = TokenPrices(**{name: getattr(row, name) for name in TOKEN_PRICES})
    return Tier(above=_above(tier), rates=_rates(msgspec.structs.replace(below, **named)))


def _above(tier: TokenPrices) -> int:
    above: int = getattr(tier, "above", 0)
    return above


def _is_exact(row: PriceRow) -> bool:
    return not any(letter in glob for glob in row.match for letter in "*?[")


def _is_about(row: PriceRow, providers: Sequence[str], model: str) -> bool:
    if row.providers and not any(matches_any(provider, row.providers) for provider in providers):
        return False
    return matches_any(model, row.match)


def _specificity(model: str, row: PriceRow) -> tuple[bool, int, int]:
    return max(specificity(glob) for glob in row.match if matches_any(model, (glob,)))

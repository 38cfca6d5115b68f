"""The table of prices that ships with bardo, made from genai-prices by `tools/build_price_table.py`: who charges what, since when.

The table is read once, when the first price is looked up. A seller's models stand in genai-prices' order; the first that fits decides.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

import msgspec

from bardo.accounting.price import Price, Rates, Schedule, Tier
from bardo.catalog.matching import matches_any
from bardo.catalog.prices import PriceListRow, price_lists

SOURCE = "genai-prices"
_DAY = 24 * 60
_YEAR = re.compile(r"\d{4}$")
_FURTHER = re.compile(r"\d|[.-]\d{1,2}(?![\da-z])")


class TableTier(msgspec.Struct, frozen=True, array_like=True):
    """The rates of requests with more input tokens than `above`."""

    above: int
    rates: Rates


class TableSchedule(msgspec.Struct, frozen=True, array_like=True):
    """Rates, and those of longer requests. `variant` is the service tier that it is for, empty for the usual one."""

    variant: str
    rates: Rates
    tiers: tuple[TableTier, ...] = ()


class TablePrice(msgspec.Struct, frozen=True, array_like=True):
    """What a model costs since a date, in some minutes of the day (UTC; from the first until before the second, maybe over midnight)."""

    since: str
    schedules: tuple[TableSchedule, ...]
    request_fee: int = 0
    search_fee: int | None = None
    minutes: tuple[int, int] = (0, _DAY)

    def holds(self, day: str, minute: int) -> bool:
        """Whether this is a price of that day (ISO date) and minute of it."""
        first, last = self.minutes
        inside = first <= minute < last if first < last else minute >= first or minute < last
        return inside and self.since <= day


class TableModel(msgspec.Struct, frozen=True, array_like=True):
    """One model. Of `match` any word has to fit, and of that each part between `&`.

    `=` is followed by a whole id, `^` by its beginning, `$` by its end, `~` by a part of it and `/` by a regular expression.

    The last of `prices` that holds decides.
    """

    id: str
    match: tuple[str, ...]
    prices: tuple[TablePrice, ...]

    def fits(self, name: str) -> bool:
        """Whether an id in small letters is one of this model."""
        return any(all(_fits(part, name) for part in word.split("&")) for word in self.match)


class PriceTable(msgspec.Struct, frozen=True):
    """All models by whose price list they stand in. `version` is that of genai-prices and `checked` the day of the build."""

    version: str
    checked: str
    sellers: dict[str, tuple[TableModel, ...]]

    def find(self, seller: str, model: str, day: str, minute: int) -> Price | None:
        """Return the price of a model on a seller's list on a day (ISO date) and minute of it; None where it is not on the list."""
        name = model.lower()
        for row in self.sellers.get(seller, ()):
            if row.fits(name):
                held = [price for price in row.prices if price.holds(day, minute)]
                return _price_of(held[-1], self) if held else None
        return None


@cache
def price_table() -> PriceTable:
    """Return the table that comes with bardo."""
    return msgspec.json.decode(files("bardo.catalog").joinpath("data/price_table.json").read_bytes(), type=PriceTable)


def listed_price(provider: str, model: str, day: str, minute: int) -> Price | None:
    """Return the price of a model at a provider (the id of its row) by the table; None where it does not stand there."""
    row = _list_of(provider)
    if row is None:
        return None
    for seller in row.lists:
        price = price_table().find(seller, model, day, minute)
        if price is not None:
            once = matches_any(model, row.search_fee_once)
            return msgspec.structs.replace(price, usual_tiers=price.usual_tiers | row.usual_tiers, search_fee_once=once)
    return None


@cache
def _list_of(provider: str) -> PriceListRow | None:
    return next((row for row in price_lists() if provider in row.providers), None)


def _fits(part: str, name: str) -> bool:
    """Whether a clause fits. `x-4` does not begin `x-40` or `x-4.5`, which are other models, but it begins `x-4-20260110`."""
    kind, text = part[0], part[1:]
    if kind == "=":
        return name == text
    if kind == "/":
        return re.search(text, name) is not None
    if kind == "^":
        return name.startswith(text) and _ends_there(name, len(text))
    if kind == "$":
        return name.endswith(text) and _begins_there(name, len(name) - len(text))
    return any(
        _begins_there(name, found.start()) and _ends_there(name, found.end())
        for found in re.finditer(re.escape(text), name)
    )


def _begins_there(name: str, at: int) -> bool:
    return at == 0 or not (name[at - 1].isdigit() and name[at].isdigit())


def _ends_there(name: str, at: int) -> bool:
    """Whether no number is split at a place, and no number of a version goes on behind it: one or two digits are no date."""
    if not name[at - 1].isdigit() or _YEAR.search(name, 0, at):
        return True
    return _FURTHER.match(name, at) is None


def _price_of(found: TablePrice, table: PriceTable) -> Price:
    schedules = {one.variant: _schedule(one) for one in found.schedules}
    return Price(
        schedule=schedules.pop(""),
        variants=schedules,
        request_fee=found.request_fee,
        search_fee=found.search_fee,
        valid_from=found.since,
        source=SOURCE,
        page=f"version {table.version}, taken over {table.checked}",
    )


def _schedule(one: TableSchedule) -> Schedule:
    return Schedule(rates=one.rates, tiers=tuple(Tier(above=tier.above, rates=tier.rates) for tier in one.tiers))

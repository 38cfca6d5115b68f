"""Prices of models as rows and as a table, and what a model's tokens cost at a time, in nano-dollars."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from functools import cache, cached_property
from importlib.resources import files
from typing import NamedTuple

import msgspec

from bardo.catalog.matching import matches_any, plain_id, specificity
from bardo.catalog.prices import TOKEN_PRICES, PriceListRow, PriceRow, TokenPrices, price_lists
from bardo.values.usage import nanos_of

USUAL_TIERS = frozenset({"", "auto", "default", "standard", "on_demand", "standard_only"})
"""Names that providers have for the service tier without a price of its own."""
BATCH = "batch"


PER_MILLION = 1_000_000


class PlainRates(NamedTuple):
    """Nano-dollars per token, of requests with no more than `most_input` tokens."""

    most_input: float

    input: int
    cache_read: int
    cache_write: int
    answer: int
    thinking: int


class Rates(msgspec.Struct, frozen=True, array_like=True):
    """Nano-dollars per million tokens of each kind. None: the tokens cost what the kind costs that they are a part of.

    `cache_write` is for a cache of five minutes, or of the provider's only duration, and `cache_write_1h` for one of an hour.
    `thinking_mode_output` is for all output of a call that thought, the answer too.
    """

    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cache_write_1h: int | None = None
    output: int | None = None
    reasoning: int | None = None
    audio_input: int | None = None
    cached_audio: int | None = None
    audio_output: int | None = None
    image_input: int | None = None
    image_output: int | None = None
    thinking_mode_output: int | None = None

    @property
    def cache_discount(self) -> int:
        """By how much less a million input tokens cost that are read from a cache; 0 where that is not known."""
        return 0 if self.input is None or self.cache_read is None else max(0, self.input - self.cache_read)


class Tier(msgspec.Struct, frozen=True, kw_only=True):
    """The rates of requests with more input tokens than `above`: all of their tokens cost these.

    No provider is known to charge only the tokens above a threshold (price pages of Anthropic, Google, OpenAI, xAI and Alibaba, 2026-11).
    """

    above: int
    rates: Rates


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """Rates, and those of longer requests: `tiers` ascend by `above`."""

    rates: Rates
    tiers: tuple[Tier, ...] = ()


class Price(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What one model costs. Fees are nano-dollars: `request_fee` of each call, `search_fee` of each search that the provider made, or of
    all in a call together (`search_fee_once`).

    `variants` are the schedules of calls that are billed otherwise, by the name of the service tier; `batch` is that of batches. A call of
    another tier costs nobody knows what, unless it is one of `usual_tiers`. `valid_from` is a date, `source` the layer of the price and
    `page` where it was read.
    """

    schedule: Schedule
    variants: dict[str, Schedule] = {}
    request_fee: int = 0
    search_fee: int | None = None
    search_fee_once: bool = False
    usual_tiers: frozenset[str] = USUAL_TIERS
    valid_from: str = ""
    source: str = ""
    page: str = ""

    @cached_property
    def plain(self) -> PlainRates | None:
        """The rates of the first tier where they are whole nano-dollars a token, and no fee is asked; None for any other price."""
        rates, tiers = self.schedule.rates, self.schedule.tiers
        if self.request_fee or rates.input is None or rates.output is None or rates.thinking_mode_output is not None:
            return None
        read = rates.input if rates.cache_read is None else rates.cache_read
        write = rates.input if rates.cache_write is None else rates.cache_write
        thinking = rates.output if rates.reasoning is None else rates.reasoning
        every = (rates.input, read, write, rates.output, thinking)
        if any(rate % PER_MILLION for rate in every):
            return None
        most = min((tier.above for tier in tiers), default=math.inf)
        return PlainRates(most, *(rate // PER_MILLION for rate in every))


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

"""Work out what a call cost, in exact whole numbers: from the price of its model and the tokens that the provider counted.

Prices are rows, the table of genai-prices that comes with bardo, or both. Tokens times nano-dollars per million tokens are whole millionths
of a nano-dollar: only the total is rounded, half to even, and the parts are rounded so that they add up to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from functools import cache, cached_property
from importlib.resources import files
from typing import NamedTuple, TypeAlias

import msgspec

from bardo.catalog.matching import best_specificity, matches_any, plain_id
from bardo.catalog.prices import TOKEN_PRICES, PriceListRow, PriceRow, TokenPrices, price_lists
from bardo.values.attempts import AttemptCause
from bardo.values.usage import UNKNOWN_COST, CallCost, Cause, Usage, UsageDetails, add_costs, apportion, nanos_of

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
    """The price of one model. Fees are nano-dollars: `request_fee` of each call, `search_fee` of each search that the provider made, or of
    all in a call together (`search_fee_once`).

    `variants` are the schedules of calls that are billed otherwise, by the name of the service tier; `batch` is that of batches. The cost
    of a call of another tier is unknown, unless it is one of `usual_tiers`. `valid_from` is a date, `source` the layer of the price and
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
        """Return the row about a model at a provider, which goes by any of the ids, on a day (ISO date), or None if there is none."""
        name = plain_id(model)
        rows = (*self._exact.get(name, ()), *self._globs)
        fitting = [row for row in rows if row.valid_from <= day and _is_about(row, providers, name)]
        return max(
            fitting,
            key=lambda row: (bool(row.providers), best_specificity(name, row.match), row.valid_from),
            default=None,
        )


def price_of(row: PriceRow, source: str) -> Price | None:
    """Return the price that a row gives, or None if it says that the price is not known."""
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
    """The price of a model since a date, in some minutes of the day (UTC; from the first until before the second, maybe over midnight)."""

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
        """Return the price of a model on a seller's list on a day (ISO date) and minute of it, or None if it is not on the list."""
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
    """Return the price of a model at a provider (the id of its row) by the table, or None if it does not stand there."""
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
        _begins_there(name, match.start()) and _ends_there(name, match.end())
        for match in re.finditer(re.escape(text), name)
    )


def _begins_there(name: str, at: int) -> bool:
    return at == 0 or not (name[at - 1].isdigit() and name[at].isdigit())


def _ends_there(name: str, at: int) -> bool:
    """Whether no number is split at a place, and no number of a version goes on behind it: one or two digits are no date."""
    if not name[at - 1].isdigit() or _YEAR.search(name, 0, at):
        return True
    return _FURTHER.match(name, at) is None


def _price_of(row: TablePrice, table: PriceTable) -> Price:
    schedules = {schedule.variant: _schedule(schedule) for schedule in row.schedules}
    return Price(
        schedule=schedules.pop(""),
        variants=schedules,
        request_fee=row.request_fee,
        search_fee=row.search_fee,
        valid_from=row.since,
        source=SOURCE,
        page=f"version {table.version}, taken over {table.checked}",
    )


def _schedule(row: TableSchedule) -> Schedule:
    return Schedule(rates=row.rates, tiers=tuple(Tier(above=tier.above, rates=tier.rates) for tier in row.tiers))


def plain_cost(price: Price, usage: Usage) -> CallCost | None:
    """Return what a call cost by its price; None for a price or a call that is not plain.

    Most calls are plain: whole nano-dollars a token, and nothing with a price of its own. This gives at once what `step_by_step` works out
    for any call; a test holds both equal.
    """
    rates = price.plain
    if rates is None:
        return None
    given, output, details = usage.input_tokens, usage.output_tokens, usage.details
    if given is None or output is None or given > rates.most_input:
        return None
    if details is not None:
        tier = details.service_tier
        if tier in price.variants or tier not in price.usual_tiers:
            return None
        if details.billed_input_tokens is not None or details.billed_output_tokens is not None:
            return None
        if (
            details.searches
            or details.unpriced_tools
            or details.cache_write_1h_tokens
            or details.audio_input_tokens
            or details.cached_audio_tokens
            or details.audio_output_tokens
            or details.image_input_tokens
            or details.image_output_tokens
        ):
            return None
    cached, written, thought = usage.cached_input_tokens, usage.cache_write_tokens, usage.reasoning_tokens
    thought = min(thought or 0, output)
    saved = None
    if cached is not None or written is not None:
        cached, written = cached or 0, written or 0
        saved = given * rates.input
    fresh = max(0, given - (cached or 0) - (written or 0))
    amounts: tuple[tuple[Cause, int], ...] = (
        ("input", fresh * rates.input),
        ("cache_read", (cached or 0) * rates.cache_read),
        ("cache_write", (written or 0) * rates.cache_write),
        ("answer", (output - thought) * rates.answer),
        ("thinking", thought * rates.thinking),
    )
    parts: dict[Cause, int] = {}
    for cause, nanos in amounts:
        if nanos:
            parts[cause] = nanos
    total = sum(parts.values())
    if saved is not None:
        saved -= total - (output - thought) * rates.answer - thought * rates.thinking
    return CallCost(nanos=total, parts=parts, computed_nanos=total, saved_nanos=saved, source=price.source)


_PER_MILLION = 1_000_000
_NO_DETAILS = UsageDetails()
# What a token costs beside one of plain input where no price is known: the usual relation in the shipped table of prices.
_USUAL_RATES = Rates(input=100, cache_read=10, cache_write=125, output=400)


_Line: TypeAlias = tuple[Cause, int, int | None]
"""The part of the cost that tokens belong to, their number, and their price per million, or None if unknown."""


def cost_of(price: Price | None, usage: Usage, *, batch: bool = False) -> CallCost:
    """Return what a call cost: as the provider reports it, else by its price; unknown where neither is known.

    Where both are known the provider's figure is the cost, and ours splits it. Where only the provider's is known it is split by the usual
    relation of prices, so the parts are an estimate then. `batch`: the call was part of a batch.
    """
    computed = UNKNOWN_COST if price is None else computed_cost(price, usage, batch=batch)
    if usage.cost_usd is None or usage.cost_usd < 0:
        return computed
    reported = nanos_of(usage.cost_usd)
    weights = computed.parts if computed.nanos else _parts(Schedule(rates=_USUAL_RATES), usage) or {}
    parts = _split(reported, weights) or ({"fee": reported} if reported else {})
    return msgspec.structs.replace(computed, nanos=reported, parts=parts, reported_nanos=reported, source="provider")


def computed_cost(price: Price, usage: Usage, *, batch: bool = False) -> CallCost:
    """Return what a call cost by its price; unknown where a count, a rate or the price of its service tier is missing."""
    plain = None if batch else plain_cost(price, usage)
    return step_by_step(price, usage, batch=batch) if plain is None else plain


def step_by_step(price: Price, usage: Usage, *, batch: bool = False) -> CallCost:
    """Return what `computed_cost` does, for any price and any call."""
    usage = _billed(usage)
    tier = BATCH if batch else (usage.details or _NO_DETAILS).service_tier
    schedule = price.variants.get(tier) or (price.schedule if tier in price.usual_tiers else None)
    if schedule is None or usage.input_tokens is None:
        return UNKNOWN_COST
    parts = _parts(schedule, usage)
    details = usage.details or _NO_DETAILS
    searches = details.searches or 0
    if parts is None or details.unpriced_tools or (searches and price.search_fee is None):
        return UNKNOWN_COST
    if price.search_fee_once:
        searches = min(searches, 1)
    fee = price.request_fee + searches * (price.search_fee or 0)
    if fee:
        parts["fee"] = fee * _PER_MILLION
    total = _rounded(sum(parts.values()))
    return CallCost(
        nanos=total,
        parts=_split(total, parts),
        computed_nanos=total,
        saved_nanos=_saved(schedule, usage),
        source=price.source,
    )


def estimate(price: Price | None, input_tokens: int | None, most_output_tokens: int | None) -> int | None:
    """Return the nano-dollars of a call that gives all tokens it may, nothing of it cached, or None if that is not known."""
    if price is None or input_tokens is None or most_output_tokens is None:
        return None
    if price.plain is not None and input_tokens <= price.plain.most_input:
        return input_tokens * price.plain.input + most_output_tokens * price.plain.answer
    return computed_cost(price, Usage(input_tokens=input_tokens, output_tokens=most_output_tokens)).nanos


def _billed(usage: Usage) -> Usage:
    """Return the tokens that the provider charges for, where it says that these are other ones."""
    details = usage.details
    if details is None or (details.billed_input_tokens is None and details.billed_output_tokens is None):
        return usage
    billed = _first(details.billed_input_tokens, usage.input_tokens)
    cached = usage.cached_input_tokens
    return msgspec.structs.replace(
        usage,
        input_tokens=billed,
        cached_input_tokens=cached if cached is None or billed is None else min(cached, billed),
        output_tokens=_first(details.billed_output_tokens, usage.output_tokens),
    )


def _parts(schedule: Schedule, usage: Usage) -> dict[Cause, int] | None:
    """Return millionths of nano-dollars by cause, or None if a rate that is needed is not known."""
    parts: dict[Cause, int] = {}
    # The rates of all tokens of a call: those of the last tier that its input is above.
    reached = [tier for tier in schedule.tiers if (usage.input_tokens or 0) > tier.above]
    for cause, tokens, rate in _lines(usage, reached[-1].rates if reached else schedule.rates):
        if tokens and rate is None:
            return None
        if tokens and rate:
            parts[cause] = parts.get(cause, 0) + tokens * rate
    return parts


def _lines(usage: Usage, rates: Rates) -> Iterator[_Line]:
    """Yield the tokens of a call by what they cost. A kind without a rate costs what the kind does that it is a part of."""
    details = usage.details or _NO_DETAILS
    cached, written = usage.cached_input_tokens or 0, usage.cache_write_tokens or 0
    read_rate, write_rate = _first(rates.cache_read, rates.input), _first(rates.cache_write, rates.input)
    heard, seen = details.audio_input_tokens or 0, details.image_input_tokens or 0
    heard_cached = min(details.cached_audio_tokens or 0, heard, cached)
    long_lived = min(details.cache_write_1h_tokens or 0, written)
    fresh = max(0, (usage.input_tokens or 0) - cached - written)
    fresh_heard = min(heard - heard_cached, fresh)
    fresh_seen = min(seen, fresh - fresh_heard)
    yield ("input", fresh - fresh_heard - fresh_seen, rates.input)
    yield ("input", fresh_heard, _first(rates.audio_input, rates.input))
    yield ("input", fresh_seen, _first(rates.image_input, rates.input))
    yield ("cache_read", cached - heard_cached, read_rate)
    yield ("cache_read", heard_cached, _first(rates.cached_audio, read_rate))
    yield ("cache_write", written - long_lived, write_rate)
    yield ("cache_write", long_lived, _first(rates.cache_write_1h, write_rate))
    yield from _output_lines(usage, details, rates)


def _output_lines(usage: Usage, details: UsageDetails, rates: Rates) -> Iterator[_Line]:
    output = usage.output_tokens
    if output is None:
        # Models without a price of output give none: vectors are counted by their input alone.
        yield ("answer", int(rates.output is not None), None)
        return
    thought = min(usage.reasoning_tokens or 0, output)
    if thought and rates.thinking_mode_output is not None:
        rates = msgspec.structs.replace(rates, output=rates.thinking_mode_output, reasoning=None)
    spoken = min(details.audio_output_tokens or 0, output - thought)
    drawn = min(details.image_output_tokens or 0, output - thought - spoken)
    yield ("answer", output - thought - spoken - drawn, rates.output)
    yield ("answer", spoken, _first(rates.audio_output, rates.output))
    yield ("answer", drawn, _first(rates.image_output, rates.output))
    yield ("thinking", thought, _first(rates.reasoning, rates.output))


def _saved(schedule: Schedule, usage: Usage) -> int | None:
    """Return what the cache saved, beside the same tokens as plain input, or None if the provider counts no cache."""
    if usage.cached_input_tokens is None and usage.cache_write_tokens is None:
        return None
    plain = msgspec.structs.replace(usage, cached_input_tokens=None, cache_write_tokens=None)
    without, with_cache = _parts(schedule, plain), _parts(schedule, usage)
    if without is None or with_cache is None:
        return None
    return _rounded(sum(without.values()) - sum(with_cache.values()))


def _split(total: int, parts: Mapping[Cause, int]) -> dict[Cause, int]:
    return {cause: nanos for cause, nanos in apportion(total, parts).items() if nanos}


def _rounded(amount: int) -> int:
    """Return millionths of a nano-dollar as whole nano-dollars, half to even."""
    whole, rest = divmod(amount, _PER_MILLION)
    return whole + (rest * 2 > _PER_MILLION or (rest * 2 == _PER_MILLION and whole % 2 == 1))


def _first(rate: int | None, other: int | None) -> int | None:
    return other if rate is None else rate


NO_COST = CallCost(nanos=0)
"""An attempt that cost nothing: it was refused before any work, or never sent."""


_GOES_ON = frozenset({"search", "tools"})
"""Causes of attempts by which the model goes on with its answer."""
_WITHIN_ANSWER = _GOES_ON | {"repair"}


class AttemptCost(NamedTuple):
    """The cost of one attempt, and why it was made. `answered`: its reply is not known to have failed, or to have come too late."""

    cause: AttemptCause
    cost: CallCost
    answered: bool = True


def call_cost(attempts: Sequence[AttemptCost]) -> CallCost:
    """Return what the attempts of one call cost together, by cause; the parts add up to the total where it is known.

    The answering attempt keeps its own parts: the last that answered, else the last of all, and so do those that go on after a search,
    of the web or for tools. One that repairs a typed answer is not it.
    The cost of an attempt that failed goes under what it led to: `retry`, `failover` or `hedge`.

    The client was answered by one attempt; each other one is a part by its cause.
    """
    if len(attempts) == 1:
        return attempts[0].cost
    own = [place for place, attempt in enumerate(attempts) if attempt.cause not in _WITHIN_ANSWER]
    answered = [place for place in own if attempts[place].answered]
    answering = (answered or own or [0])[-1]
    costs = [
        attempt.cost
        if place == answering or attempt.cause in _GOES_ON
        else as_part(attempt.cost, _cause(attempts, place))
        for place, attempt in enumerate(attempts)
    ]
    paid = [cost for cost in costs if cost is not NO_COST]
    return add_costs(paid) if paid else NO_COST


def with_escalations(cost: CallCost, earlier: Sequence[int | None]) -> CallCost:
    """Return what a request cost whose earlier calls, each with nano-dollars, had answers that were not good enough."""
    known_nanos = sum(nanos for nanos in earlier if nanos is not None)
    parts = cost.parts | ({"escalation": known_nanos} if known_nanos else UNKNOWN_COST.parts)
    nanos = None if cost.nanos is None or None in earlier else cost.nanos + known_nanos
    # What providers reported, and what the price rows say, is told of the answering call alone.
    return msgspec.structs.replace(cost, nanos=nanos, parts=parts)


def as_part(cost: CallCost, cause: Cause) -> CallCost:
    """Return a cost as one part by what led to it, as far as it is known."""
    nanos = sum(cost.parts.values()) if cost.nanos is None else cost.nanos
    return cost if cost is NO_COST else msgspec.structs.replace(cost, parts={cause: nanos} if nanos else {})


def _cause(attempts: Sequence[AttemptCost], place: int) -> Cause:
    """Return what the cost of an attempt that did not answer is for."""
    own = attempts[place].cause
    if own == "repair" or own == "hedge":
        return own
    for later in attempts[place + 1 :]:
        if later.cause == "retry" or later.cause == "failover" or later.cause == "hedge":
            return later.cause
    return "failover" if own == "failover" else "retry"

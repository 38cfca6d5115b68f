"""Make src/bardo/catalog/data/price_table.json from the installed genai-prices: the sellers that prices.toml names, all their models.

genai-prices is asked what it would charge on each day on which something changes, so its own rules decide and not a reading of its data.
Run: .venv/bin/python tools/build_price_table.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from genai_prices import data, types

from bardo.accounting.cost import BATCH, PriceTable, Rates, TableModel, TablePrice, TableSchedule, TableTier
from bardo.catalog.prices import price_lists

PLACE = Path(__file__).resolve().parent.parent / "src/bardo/catalog/data/price_table.json"
KINDS = (
    "input_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok", "output_mtok", "output_reasoning_mtok",
    "input_audio_mtok", "cache_audio_read_mtok", "output_audio_mtok", "input_image_mtok", "output_image_mtok",
)  # fmt: skip
"""The units of genai-prices in the order of `Rates`."""
NEVER_REPORTED = frozenset({"output_citation_mtok", "audio_hours", "input_audio_hours"})
"""Units that are billed beside tokens and that no reply counts in a way bardo reads: the price of such a model is not known."""
VARIANTS = {
    BATCH: {"processing": "batch"},
    "flex": {"service_tier": "flex"},
    "priority": {"service_tier": "priority"},
    "fast": {"service_tier": "fast", "speed": "fast"},
}
FIRST_DAY = date(2000, 1, 1)
DAY = 24 * 60
NANOS = 1_000_000_000


def main() -> None:
    """Write the table."""
    wanted = {name for one in price_lists() for name in one.lists}
    sellers = {one.id: tuple(models_of(one)) for one in data.providers if one.id in wanted}
    if missing := wanted - sellers.keys():
        sys.exit(f"genai-prices has no list called {', '.join(sorted(missing))}")
    day = datetime.now(UTC).date().isoformat()
    table = PriceTable(version=version("genai-prices"), checked=day, sellers=sellers)
    PLACE.write_bytes(lines_of(table))
    sys.stdout.write(
        f"{sum(map(len, sellers.values()))} models of {len(sellers)} sellers, {PLACE.stat().st_size:,} bytes\n"
    )


def lines_of(table: PriceTable) -> bytes:
    """Return the table as JSON with a line for each model, so that changes can be read."""
    head = msgspec.json.encode({"version": table.version, "checked": table.checked})[:-1]
    sellers = [
        msgspec.json.encode(name) + b":[\n" + b",\n".join(map(_line, models)) + b"\n]"
        for name, models in sorted(table.sellers.items())
    ]
    return head + b',"sellers":{\n' + b",\n".join(sellers) + b"\n}}\n"


def _line(model: TableModel) -> bytes:
    return msgspec.json.encode(_without_defaults(model))


def _without_defaults(value: Any) -> Any:
    """Return a value as JSON has it, each list of fields without those at its end that say nothing: a third of the table."""
    if isinstance(value, tuple):
        return [_without_defaults(one) for one in value]
    if not isinstance(value, msgspec.Struct):
        return value
    fields = [getattr(value, name) for name in value.__struct_fields__]
    defaults = list(value.__struct_defaults__)
    while defaults and fields[-1] == defaults.pop():
        fields.pop()
    return [_without_defaults(one) for one in fields]


def models_of(seller: types.Provider) -> Iterator[TableModel]:
    """Yield the models of a seller that are billed by tokens."""
    for model in seller.models:
        prices = tuple(prices_of(model))
        if prices:
            yield TableModel(model.id, tuple(words_of(model.match)), prices)


def words_of(clause: object) -> Iterator[str]:
    """Yield a clause as words of which any may fit."""
    match clause:
        case types.ClauseOr(or_=clauses):
            for one in clauses:
                yield from words_of(one)
        case types.ClauseAnd(and_=clauses):
            yield "&".join(word for one in clauses for word in words_of(one))
        case types.ClauseEquals(equals=text):
            yield f"={text.lower()}"
        case types.ClauseStartsWith(starts_with=text):
            yield f"^{text.lower()}"
        case types.ClauseEndsWith(ends_with=text):
            yield f"${text.lower()}"
        case types.ClauseContains(contains=text):
            yield f"~{text.lower()}"
        case types.ClauseRegex(regex=pattern):
            yield f"/{pattern}"
        case _:
            sys.exit(f"cannot write {clause!r}")


def prices_of(model: types.ModelInfo) -> Iterator[TablePrice]:
    """Yield the prices of a model, each where it differs from the one before it."""
    before: dict[tuple[int, int], TablePrice] = {}
    for day in days_of(model):
        for minutes in hours_of(model):
            price = price_at(model, day, minutes)
            known = before.get(minutes)
            if price is not None and (known is None or msgspec.structs.replace(known, since=price.since) != price):
                before[minutes] = price
                yield price


def price_at(model: types.ModelInfo, day: date, minutes: tuple[int, int]) -> TablePrice | None:
    """Return what a model costs on a day, at the first of some minutes; None where it is not billed by tokens alone."""
    moment = datetime.combine(day, time(minutes[0] // 60, minutes[0] % 60), UTC)
    usual = model.get_prices(moment)
    if usual.input_mtok is None or NEVER_REPORTED & usual.__dict__.keys():
        return None
    schedules = [schedule_of("", usual)]
    for name, context in VARIANTS.items():
        other = model.get_prices(moment, context)
        if other != usual:
            schedules.append(schedule_of(name, other))
    since = "" if day == FIRST_DAY else day.isoformat()
    fees = (fee_of(usual.requests_kcount) or 0, fee_of(usual.web_searches_kcount))
    return TablePrice(since, tuple(schedules), *fees, minutes)


def schedule_of(name: str, price: types.ModelPrice) -> TableSchedule:
    """Return the rates of one variant, with a tier for each threshold that one of them has."""
    thresholds = sorted({tier.start for kind in KINDS for tier in getattr(getattr(price, kind), "tiers", ())})
    tiers = tuple(TableTier(above, rates_above(price, above)) for above in thresholds)
    return TableSchedule(name, rates_above(price, -1), tiers)


def rates_above(price: types.ModelPrice, tokens: int) -> Rates:
    """Return the rates of a request whose input is above so many tokens."""
    return Rates(*(nanos_of(rate_above(getattr(price, kind), tokens)) for kind in KINDS))


def rate_above(price: Decimal | types.TieredPrices | None, tokens: int) -> Decimal | None:
    """Return one rate of a request whose input is above so many tokens."""
    if not isinstance(price, types.TieredPrices):
        return price
    return next((tier.price for tier in reversed(price.tiers) if tokens >= tier.start), price.base)


def nanos_of(dollars: Decimal | None) -> int | None:
    """Return dollars as whole nano-dollars, half to even: some rates are thirds of a cent."""
    return None if dollars is None else round(dollars * NANOS)


def fee_of(per_thousand: Decimal | types.TieredPrices | None) -> int | None:
    """Return the fee of one thing that is priced by the thousand."""
    return nanos_of(per_thousand / 1000) if isinstance(per_thousand, Decimal) else None


def days_of(model: types.ModelInfo) -> list[date]:
    """Return the days on which a price of the model changes, and one before all of them."""
    conditions = [one.constraint for one in model.prices] if isinstance(model.prices, list) else []
    conditions += [one.constraint for one in model.price_variants or ()]
    return sorted({FIRST_DAY, *(one.start_date for one in conditions if isinstance(one, types.StartDateConstraint))})


def hours_of(model: types.ModelInfo) -> list[tuple[int, int]]:
    """Return the parts of a day between which a price of the model changes, in minutes: the whole day for most."""
    conditions = [one.constraint for one in model.prices] if isinstance(model.prices, list) else []
    edges = sorted(
        {
            minute_of(moment)
            for one in conditions
            if isinstance(one, types.TimeOfDateConstraint)
            for moment in (one.start_time, one.end_time)
        }
    )
    if not edges:
        return [(0, DAY)]
    return list(zip(edges, [*edges[1:], edges[0]], strict=True))


def minute_of(moment: time) -> int:
    """Return the minute of the day in UTC."""
    shift = moment.utcoffset() or timedelta()
    return (moment.hour * 60 + moment.minute - int(shift.total_seconds() // 60)) % DAY


if __name__ == "__main__":
    main()

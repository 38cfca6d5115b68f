"""A model's price in words and as JSON: what each kind of token costs, since when, and who says so."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.accounting.price_table import Price, Rates, Schedule
from bardo.catalog.prices import TOKEN_PRICES
from bardo.surfaces.render.wording import NOT_REPORTED
from bardo.values.cost import usd

_SHOWN = {"input": "input", "cached_input": "read from the cache", "cache_write": "written to it", "output": "output"}


def price_text(price: Price | None) -> str:
    """Return what a model costs, in US dollars per million tokens."""
    if price is None:
        return "not known"
    prices = _named_rates(price.schedule.rates)
    told = ", ".join(f"{word} {_dollars(prices[name])}" for name, word in _SHOWN.items() if name in prices)
    tiers = "".join(_tier_text(tier.above, tier.rates) for tier in price.schedule.tiers)
    since = f"; since {price.valid_from}" if price.valid_from else ""
    return f"{told} per million tokens{tiers} ({' '.join(filter(None, (price.source, price.page)))}{since})"


def short_price(price: Price | None) -> str:
    """Return what a million tokens of input and of output cost; a dash where nobody knows."""
    prices = {} if price is None else _named_rates(price.schedule.rates)
    return " / ".join(_dollars(prices[name]) for name in ("input", "output") if name in prices) or NOT_REPORTED


def price_json(price: Price | None) -> dict[str, Any] | None:
    """Return a price as JSON, in US dollars; None where it is not known."""
    if price is None:
        return None
    return {
        "usd_per_million_tokens": _named_rates(price.schedule.rates),
        "tiers": _tiers(price.schedule),
        "variants": {
            name: {"usd_per_million_tokens": _named_rates(one.rates), "tiers": _tiers(one)}
            for name, one in price.variants.items()
        },
        "request_fee_usd": usd(price.request_fee),
        "search_fee_usd": None if price.search_fee is None else usd(price.search_fee),
        "source": price.source,
        "page": price.page or None,
        "from": price.valid_from or None,
    }


def _tiers(schedule: Schedule) -> list[dict[str, Any]]:
    return [{"above": tier.above, "usd_per_million_tokens": _named_rates(tier.rates)} for tier in schedule.tiers]


def _named_rates(rates: Rates) -> dict[str, float]:
    """Return the rates that are known, in US dollars, by the names that `[[prices]]` has for them."""
    pairs = zip(TOKEN_PRICES, msgspec.structs.astuple(rates), strict=True)
    return {name: usd(rate) for name, rate in pairs if rate is not None}


def _tier_text(above: int, rates: Rates) -> str:
    prices = _named_rates(rates)
    told = ", ".join(f"{name} {_dollars(prices[name])}" for name in ("input", "output") if name in prices)
    return f"; above {above:,} tokens of input {told}"


def _dollars(amount: float) -> str:
    return f"${amount:.10f}".rstrip("0").rstrip(".")

"""Price rows as people write them: of `catalog/data/prices.toml`, and `[[prices]]` of the operator's `bardo.toml`.

Prices are US dollars per million tokens, fees dollars each. Rows are dated and never edited: a new price is a further row.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Annotated

import msgspec
import tomli

from bardo.values.errors import ConfigError

TOKEN_PRICES = (
    "input", "cached_input", "cache_write", "cache_write_1h", "output", "reasoning", "audio_input", "cached_audio", "audio_output",
    "image_input", "image_output", "thinking_mode_output",
)  # fmt: skip


class TokenPrices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dollars per million tokens of each kind. A kind without a price costs what the kind does that it is a part of.

    `thinking_mode_output` is for all output of a call that thought.
    """

    input: Decimal | None = None
    cached_input: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None
    output: Decimal | None = None
    reasoning: Decimal | None = None
    audio_input: Decimal | None = None
    cached_audio: Decimal | None = None
    audio_output: Decimal | None = None
    image_input: Decimal | None = None
    image_output: Decimal | None = None
    thinking_mode_output: Decimal | None = None


class PriceTier(TokenPrices, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The prices of all tokens of a request with more input than `above`; those that are not named are as below it."""

    above: Annotated[int, msgspec.Meta(ge=0)]


class PriceRow(
    TokenPrices,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"valid_from": "from", "providers": "provider"},
):
    """The price of some models, by globs of their ids, everywhere or at some providers (globs of ids), since a date.

    A row without any price says that the price is not known. `batch_factor` and the factors of `service_tiers` stand for the share of the
    usual prices that such calls cost; `request_fee` is for each call, `search_fee` for each search that the provider makes, or with
    `search_fee_once` for all searches of a call together.
    """

    match: tuple[str, ...]
    providers: tuple[str, ...] = ()
    valid_from: str = ""
    source: str = ""
    request_fee: Decimal | None = None
    search_fee: Decimal | None = None
    search_fee_once: bool = False
    batch_factor: Decimal | None = None
    service_tiers: dict[str, Decimal] = {}
    tiers: tuple[PriceTier, ...] = ()


class PriceListRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which lists of the shipped table some providers (ids of rows) charge by; the first list that has the model decides.

    `usual_tiers` are service tiers that cost what the usual one does. Of the models of `search_fee_once` (globs) all searches of a call
    cost one fee together.
    """

    providers: tuple[str, ...]
    lists: tuple[str, ...]
    usual_tiers: frozenset[str] = frozenset()
    search_fee_once: tuple[str, ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`prices.toml`."""

    list: tuple[PriceListRow, ...]
    price: tuple[PriceRow, ...]


@cache
def price_rows() -> tuple[PriceRow, ...]:
    """Return the rows that come with bardo, without those of the shipped table."""
    return _file().price


@cache
def price_lists() -> tuple[PriceListRow, ...]:
    """Return which providers charge by which lists of the shipped table."""
    return _file().list


@cache
def _file() -> _File:
    text = files("bardo.catalog").joinpath("data/prices.toml").read_text(encoding="utf-8")
    read = msgspec.convert(tomli.loads(text, parse_float=Decimal), _File)
    for row in read.price:
        if problem := problem_of(row):
            raise ConfigError(f"prices.toml: {row.match}: {problem[1]}")
    return read


def problem_of(row: PriceRow) -> tuple[str, str] | None:
    """Return the key of a row that is wrong and its faults, or None if none is."""
    if not row.match or not all(row.match):
        return "match", "the row fits no model"
    if row.valid_from and not _is_day(row.valid_from):
        return "from", "from is not a day, like 2026-11-23"
    for key, amount in _amounts(row):
        if not amount.is_finite() or amount < 0:
            return key, f"{key} is below 0 or no number"
        if row.input is None:
            return key, f"{key} has a price or a factor, and input has none"
    return None


def _amounts(row: PriceRow) -> Iterator[tuple[str, Decimal]]:
    for key in (*TOKEN_PRICES, "request_fee", "search_fee", "batch_factor"):
        if (amount := getattr(row, key)) is not None:
            yield key, amount
    for amount in row.service_tiers.values():
        yield "service_tiers", amount
    for tier in row.tiers:
        for name in TOKEN_PRICES:
            if (amount := getattr(tier, name)) is not None:
                yield "tiers", amount


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False

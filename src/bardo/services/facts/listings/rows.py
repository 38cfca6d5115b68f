"""The rows of `catalog/data/listings.toml`: whose lists of models are kept, and where each says what."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec
import tomli

from bardo.values.errors import ConfigError


class RatePaths(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a row of a list names its prices; empty where it names none."""

    input: str = ""
    output: str = ""
    cache_read: str = ""
    cache_write: str = ""


class PricePaths(RatePaths, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`request` is the price of each call, in USD."""

    request: str = ""


class LongPricePaths(RatePaths, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices that hold for prompts of more tokens than stand at `threshold`."""

    threshold: str = ""


class ListingSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a list of models is, and what its rows mean.

    `providers` are ids of catalog rows, `path` is below the base URL. The list stands at the first of `lists` that is one, the empty name
    being the whole answer; where there is a `kind`, only rows with one of `kinds` in it count. A model goes by each of the fields `ids`,
    without `prefix`. `public`: it is given without a key. `unit` is of how many tokens a price in USD is. `context` is where the length of
    the context stands, for lists that live introspection does not read.
    """

    name: str
    providers: tuple[str, ...]
    path: str
    ids: tuple[str, ...]
    lists: tuple[str, ...] = ("data",)
    prefix: str = ""
    kind: str = ""
    kinds: tuple[str, ...] = ()
    public: bool = False
    unit: Literal["token", "million"] = "million"
    price: PricePaths | None = None
    long_price: LongPricePaths | None = None
    context: str = ""


class _Rows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    listing: tuple[ListingSource, ...]


@cache
def listing_sources() -> dict[str, ListingSource]:
    """Return the rows by name."""
    text = files("bardo.catalog").joinpath("data/listings.toml").read_text(encoding="utf-8")
    try:
        rows = msgspec.convert(tomli.loads(text), _Rows).listing
    except msgspec.ValidationError as problem:
        raise ConfigError(f"listings.toml: {problem}") from problem
    return {row.name: row for row in rows}


@cache
def sources_by_provider() -> dict[str, ListingSource]:
    """Return the rows by the ids of the provider rows they are about."""
    return {provider: row for row in listing_sources().values() for provider in row.providers}

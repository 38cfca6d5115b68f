"""The rows of `catalog/data/listings.toml`: whose lists of models are kept, and where each says what; and a list as bardo keeps it.

It holds what the provider says of each model, when it was read, and where it is from.
"""

from __future__ import annotations

import datetime
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

import msgspec
import tomli

from bardo.services.facts.introspect.live import LiveFacts
from bardo.values.errors import ConfigError

FORMAT = 1
"""The version of the form on disk."""
_NANOS = 10**9
MOST_PER_MILLION = 10_000 * _NANOS
"""USD 10,000 for a million tokens; the dearest model of 2026 asks for 600."""
MOST_PER_REQUEST = 100 * _NANOS
_LAST_SECOND = 4_102_444_800
# A file that was changed by hand, or damaged, is held to the same bounds as what a provider answers.
Rate = Annotated[int, msgspec.Meta(ge=0, le=MOST_PER_MILLION)]
Fee = Annotated[int, msgspec.Meta(ge=0, le=MOST_PER_REQUEST)]
Second = Annotated[float, msgspec.Meta(ge=0, le=_LAST_SECOND)]
"""Unix time, before the year 2100."""


class ListedRates(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices in nano-dollars per million tokens, or None if the list does not say."""

    input: Rate | None = None
    output: Rate | None = None
    cache_read: Rate | None = None
    cache_write: Rate | None = None


class ListedPrice(ListedRates, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The price of a model. `request` is in nano-dollars for each call; `long` holds for prompts of more than `threshold` tokens."""

    request: Fee | None = None
    threshold: int | None = None
    long: ListedRates | None = None


class ListedModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The entry of one model in a list."""

    facts: LiveFacts = LiveFacts()
    price: ListedPrice | None = None


class Listing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A list of models. `source` is its row in `listings.toml`, `at` Unix time; `odd` counts the prices that could not be believed."""

    source: str
    at: Second
    models: dict[str, ListedModel]
    odd: int = 0
    format: int = FORMAT

    @property
    def date(self) -> datetime.date:
        """The day, in UTC, on which it was read."""
        return datetime.datetime.fromtimestamp(self.at, datetime.UTC).date()


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

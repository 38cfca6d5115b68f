"""A provider's list of models as bardo keeps it: what it says of each model, when it was read, and where it is from."""

from __future__ import annotations

import datetime
from typing import Annotated

import msgspec

from bardo.services.facts.introspect.live import LiveFacts

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
    """What a model costs. `request` is in nano-dollars for each call; `long` holds for prompts of more than `threshold` tokens."""

    request: Fee | None = None
    threshold: int | None = None
    long: ListedRates | None = None


class ListedModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a list says of one model."""

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

"""Which providers take requests in batches, in which form, and how many of them at once."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec
import tomli

from bardo.catalog.matching import matches_any
from bardo.catalog.rows import ProviderRow

BatchFormName = Literal["openai_files", "message_batches", "inline_operations", "mistral_jobs"]


class BatchRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The batch API of some providers.

    `paths` are globs of the paths below the base URL whose requests it takes. A job holds at most `max_items` requests and `max_bytes` of
    them, and ends within `hours`. `price_factor` is what a request costs there, as a part of its usual price, where the price of its model
    does not say. `purpose` is the provider's word for an uploaded file of requests. `tagged`: a job bears a tag of ours, by which it is
    found again in the provider's list.
    """

    providers: tuple[str, ...]
    form: BatchFormName
    paths: tuple[str, ...]
    max_items: int
    max_bytes: int
    hours: int = 24
    price_factor: float
    purpose: str = "batch"
    tagged: bool = True

    def takes(self, path: str) -> bool:
        """Whether requests to a path below the provider's base URL are taken."""
        return matches_any(path, self.paths)


class _Table(msgspec.Struct, forbid_unknown_fields=True):
    batch: tuple[BatchRow, ...]


@cache
def batch_rows() -> tuple[BatchRow, ...]:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/batch.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomli.loads(text), _Table).batch


def batch_row(row: ProviderRow) -> BatchRow | None:
    """Return how a provider takes batches, or None if it takes none."""
    return next((batch for batch in batch_rows() if row.id in batch.providers), None)


def batch_providers() -> tuple[str, ...]:
    """Return the ids of all providers that take batches."""
    return tuple(name for row in batch_rows() for name in row.providers)

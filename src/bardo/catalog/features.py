"""The features of a model at a provider, by name, from `catalog/data/features.toml`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal

import msgspec
import tomli

from bardo.catalog.matching import matches_any, plain_id
from bardo.catalog.models import builtin_models

Fact = Literal[
    "thinks", "adaptive", "low_effort", "schema", "tool_format", "field:web_search", "field:predicted_output", "private"
]
"""What other rows, an operator or the server itself say of a model: whether it thinks, decides itself how much, can be told to think
little, is held to a JSON Schema, writes tool calls in a known form, takes a field of a profile (profile_fields.toml), or is run by a
provider that keeps nothing (providers.toml) or on one's own machine."""


_ANYWHERE = ("*",)


class Place(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Models (globs of plain ids) at providers (globs of row ids)."""

    models: tuple[str, ...] = ("*",)
    providers: tuple[str, ...] = ("*",)

    def holds(self, provider: str, names: Collection[str]) -> bool:
        """Whether a model of one of these names at a provider is among them."""
        return matches_any(provider, self.providers) and any(matches_any(name, self.models) for name in names)


class Feature(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One feature. A model at a provider has it where its `fact` holds or `at` says so, but nowhere that `not_at` says."""

    name: str
    about: str
    fact: Fact | None = None
    at: tuple[Place, ...] = ()
    not_at: tuple[Place, ...] = ()


class Features(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All features. `no_chat` are globs of plain ids of models that answer no conversation."""

    feature: tuple[Feature, ...]
    no_chat: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all features, in the order of the rows."""
        return tuple([row.name for row in self.feature])

    def of(
        self, provider: str, names: Collection[str], facts: Collection[Fact], said: Mapping[str, bool] = {}
    ) -> frozenset[str]:
        """Return what a model can do at a provider.

        `provider` is the id of a catalog row, `names` the plain ids that the model goes by. `said` is what the server itself or the
        operator says of features, which goes before the rows.
        """
        return frozenset([row.name for row in self.feature if said.get(row.name, _has(row, provider, names, facts))])

    def answers_chats(self, names: Collection[str]) -> bool:
        """Whether a model of these plain ids answers conversations, as far as is known."""
        return not any(matches_any(name, self.no_chat) for name in names)


def _has(row: Feature, provider: str, names: Collection[str], facts: Collection[Fact]) -> bool:
    here = row.fact in facts or any(place.holds(provider, names) for place in row.at)
    return here and not any(place.holds(provider, names) for place in row.not_at)


@cache
def features() -> Features:
    """Return the rows that come with bardo, their globs spelled as plain ids."""
    text = files("bardo.catalog").joinpath("data/features.toml").read_text(encoding="utf-8")
    rows = msgspec.convert(tomli.loads(text), Features)
    return msgspec.structs.replace(
        rows, feature=tuple(map(_plain, rows.feature)), no_chat=tuple(map(plain_id, rows.no_chat))
    )


@lru_cache(maxsize=1024)
def shows_summaries(model: str) -> bool:
    """Whether what a model shows of its thinking is a summary and not the thinking itself, by the rows of `visible_thinking`."""
    if not model:
        return False
    row = next(row for row in features().feature if row.name == "visible_thinking")
    names = (plain_id(model), plain_id(builtin_models().spelled(model)))
    return any(
        matches_any(name, place.models) for place in row.not_at for name in names if place.providers == _ANYWHERE
    )


def _plain(row: Feature) -> Feature:
    def spelled(place: Place) -> Place:
        return msgspec.structs.replace(place, models=tuple(map(plain_id, place.models)))

    return msgspec.structs.replace(row, at=tuple(map(spelled, row.at)), not_at=tuple(map(spelled, row.not_at)))

"""The rows by which the endpoint of a provider is chosen, and what a dialect writes for some models only.

The rows are in `catalog/data/endpoint_choice.toml` (how much each difference matters, and the words of a server that has no such endpoint)
and `catalog/data/dialect_models.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal

import msgspec
import tomli

from bardo.catalog.matching import matches_any, plain_id
from bardo.catalog.rows import DialectName
from bardo.values.degradation import UNLISTED, Degradation

LossRank = Literal["answer", "reasoning", "cache", "cosmetic", "none"]
RANKS: tuple[LossRank, ...] = ("answer", "reasoning", "cache", "cosmetic")
"""The ranks, the most severe first: the answer changes; thinking or signatures are lost; cache markers are lost; only metadata is.

A renamed field that says the same has the rank `none`, and is not counted.
"""
LossCounts = tuple[int, int, int, int]
"""How much is lost at each rank, in the order of `RANKS`: of two plans the one that compares less loses less."""
_LOST, _CHANGED = 2, 1


class LossRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rank of the differences whose names fit one of these globs."""

    rank: LossRank
    names: tuple[str, ...]


class _Rows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    loss: tuple[LossRow, ...]
    missing_endpoint: tuple[str, ...]


def loss_counts(degraded: Iterable[Degradation]) -> LossCounts:
    """Return how much is lost at each rank: one for each difference, two where a setting of thinking, or thinking itself, is lost whole.

    Differences that a full list only counts are of the first rank.
    """
    counts = [0] * len(RANKS)
    for degradation in degraded:
        unlisted = degradation.what == UNLISTED and type(degradation.sent) is int
        rank = loss_rank(degradation.what)
        if rank != "none":
            counts[RANKS.index(rank)] += degradation.sent if unlisted else _weight(degradation, rank)
    return (counts[0], counts[1], counts[2], counts[3])


def _weight(degradation: Degradation, rank: LossRank) -> int:
    """Return what a difference counts: a level that became the nearest one says more than a mere switch, or nothing."""
    return _LOST if rank == "reasoning" and degradation.sent in (None, "on") else _CHANGED


@lru_cache(maxsize=2048)
def loss_rank(what: str) -> LossRank:
    """Return the rank of a difference by its name; one that no row names changes the answer."""
    return next((row.rank for row in choice_rows().loss if matches_any(what, row.names)), "answer")


def names_missing_endpoint(message: str) -> bool:
    """Whether a refusal's words say that the server has no such endpoint."""
    return _missing_endpoint().search(message) is not None


@cache
def _missing_endpoint() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in choice_rows().missing_endpoint), re.IGNORECASE)


@cache
def choice_rows() -> _Rows:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/endpoint_choice.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomli.loads(text), _Rows)


class DialectModels(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules for some models of one dialect.

    `models` are globs of ids in small letters with dashes for dots. `binds_schemas`: the model has structured output, for answers and for
    the arguments of tools. `system_turns`: it takes messages with the role `system` between the others. `earlier_reasoning`: it is taken
    back with its signature only, or also without one; empty where it is not taken back. `payload` is the dialect of the body that a
    wrapping dialect holds; empty for a body of the model's own.
    `markers` are those of other dialects that the model takes, in the form of this one, and how many of each.
    """

    dialect: DialectName
    models: tuple[str, ...]
    binds_schemas: bool = False
    system_turns: bool = False
    earlier_reasoning: Literal["", "signed", "unsigned"] = ""
    payload: DialectName | Literal[""] = ""
    markers: dict[str, int] = {}
    source: str = ""


@lru_cache(maxsize=4096)
def dialect_models(dialect: DialectName, model: str) -> DialectModels:
    """Return the first row of a dialect that fits a model; one without any of these abilities where none does."""
    name = plain_id(model)
    rows = (row for row in builtin_dialect_models() if row.dialect == dialect and matches_any(name, row.models))
    return next(rows, DialectModels(dialect=dialect, models=()))


@cache
def builtin_dialect_models() -> tuple[DialectModels, ...]:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/dialect_models.toml").read_text(encoding="utf-8")
    return tuple(msgspec.convert(tomli.loads(text)["models"], list[DialectModels]))

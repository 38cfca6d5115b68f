"""What a dialect writes for one model and not for another: rows of globs of model ids, in `dialect_models.toml`."""

from __future__ import annotations

import tomllib
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal

import msgspec

from bardo.catalog.matching import matches_any, plain_id
from bardo.catalog.rows import DialectName


class DialectModels(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What holds for some models of one dialect.

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
    return tuple(msgspec.convert(tomllib.loads(text)["models"], list[DialectModels]))

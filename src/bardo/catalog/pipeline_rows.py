"""The layers that may work on a call before it is sent, and the profiles that name them, from `catalog/data/pipeline.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

import msgspec

LayerPlace = Literal["before_route", "after_route"]
Level = Annotated[int, msgspec.Meta(ge=1, le=8)]


class LayerRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One layer. `level` is its number in the profiles, `place` whether it works before or after it is known who is asked.

    `reads_session`: it needs to know which calls belong to one conversation.
    """

    name: str
    level: Level
    place: LayerPlace
    purpose: str
    reads_session: bool = False


class ProfileRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One profile: all layers of its levels. Level 4 is routing, which is no layer: it works in every profile."""

    name: str
    levels: tuple[Level, ...]
    purpose: str


class CapRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What some calls may not ask: those of `workloads` (globs; none: of all), of an agent whose vitality is below a bound.

    They may ask `models` (globs; none: all), whose prompts cost no more than so many dollars for a million tokens, with prompts of at most
    so many tokens. `why` is told to the caller.
    """

    workloads: tuple[str, ...] = ()
    vitality_below: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    models: tuple[str, ...] = ()
    most_usd_per_million: Annotated[float, msgspec.Meta(ge=0)] | None = None
    most_prompt_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    why: str = ""


class SessionRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where clients say which conversation a call belongs to: in a `header`, or in a `field` of the body, by its path.

    `pattern` finds the id in it, in its first group; empty: all of it is the id.
    """

    header: str = ""
    field: str = ""
    pattern: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`pipeline.toml`."""

    layer: tuple[LayerRow, ...]
    profile: tuple[ProfileRow, ...]
    session: tuple[SessionRow, ...] = ()


@cache
def layer_rows() -> dict[str, LayerRow]:
    """Return the rows of the layers by their names, in the order in which layers work on a call."""
    return {row.name: row for row in _file().layer}


@cache
def profile_rows() -> dict[str, ProfileRow]:
    """Return the profiles by their names."""
    return {row.name: row for row in _file().profile}


def session_rows() -> tuple[SessionRow, ...]:
    """Return where clients say which conversation a call belongs to, the surest first."""
    return _file().session


def layers_of_profile(name: str) -> tuple[str, ...]:
    """Return the names of the layers of a profile, in order. Raises KeyError."""
    levels = profile_rows()[name].levels
    return tuple(row.name for row in _file().layer if row.level in levels)


@cache
def _file() -> _File:
    text = files("bardo.catalog").joinpath("data/pipeline.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _File)

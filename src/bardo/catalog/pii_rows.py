"""Kinds of personal data, from `catalog/data/pii.toml`: how each is written, what checks it, and what stands in its place."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec


class PiiPattern(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way in which a value is written.

    `match` is a regular expression of bounded length; case does not matter, and no letter or digit stands before or after a value.
    `score`, from 0 to 1, is how likely a match is such a value. `check` names a test of check digits: what fails it is no match, and
    what passes it has `score`. `left` are characters that do not stand before a value besides. `begins`: what every
    match begins with, if that is known; a pattern is not tried elsewhere. `anywhere`: a match need not hold a digit, and may begin at any
    word; such a pattern is an operator's own, and how long it takes depends on how it is written.
    """

    match: str
    score: float
    check: str = ""
    left: str = ""
    begins: Literal["", "digit", "letter"] = ""
    anywhere: bool = False


class PiiEntity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of personal data.

    `label` is the word in its placeholders. `country` is an ISO 3166 code, empty for kinds without one. A word of `context` near a
    value gives it the score `near`. `usual` False: it is looked for only where it is named. `scanner` names a function that finds the
    values instead of patterns.
    """

    name: str
    label: str
    country: str = ""
    near: float = 0.75
    context: tuple[str, ...] = ()
    usual: bool = True
    scanner: str = ""
    patterns: tuple[PiiPattern, ...] = ()


class PhoneNear(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What phone numbers are read by: the regions whose national numbers are known, unless others are configured."""

    regions: tuple[str, ...]


@cache
def _tables() -> Mapping[str, Any]:
    return tomllib.loads(files("bardo.catalog").joinpath("data/pii.toml").read_text(encoding="utf-8"))


@cache
def pii_entities() -> dict[str, PiiEntity]:
    """Return the rows that come with bardo, by name."""
    return {row.name: row for row in msgspec.convert(_tables()["entity"], list[PiiEntity])}


@cache
def iban_rows() -> dict[str, str]:
    """Return the form of the national part of account numbers, by country: counts of n (digits), a (letters) and c (either)."""
    return msgspec.convert(_tables()["iban"], dict[str, str])


@cache
def top_level_domains() -> tuple[str, ...]:
    """Return the endings by which an address without a scheme is known as one."""
    return tuple(msgspec.convert(_tables()["domains"]["endings"], list[str]))


@cache
def phone_regions() -> tuple[str, ...]:
    """Return the regions whose national phone numbers are recognised."""
    return msgspec.convert(_tables()["phones"], PhoneNear).regions

"""What layers that shorten or order a prompt go by, from `catalog/data/context.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from bardo.catalog.matching import matches_any, plain_id

NO_HEADERS: Mapping[str, str] = {}
_DIGIT = re.compile(r"\d")


class Volatile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What shows that a part of a system prompt differs from call to call: a regular expression, and what it finds, which has a digit."""

    name: str
    pattern: str


class ProviderCompaction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How providers are asked to shorten a long conversation themselves.

    `fields` are merged into the body, `headers` are sent with it. Nothing is asked where the body has the field `unless` already.
    `when_headers` are headers that the client has to send itself, each a list that has this value: it can read what comes back then.
    `least_trigger` is the lowest number of tokens that the provider takes.
    """

    providers: tuple[str, ...]
    dialects: tuple[str, ...]
    models: tuple[str, ...]
    unless: str
    fields: dict[str, Any]
    headers: dict[str, str] = {}
    when_headers: dict[str, str] = {}
    least_trigger: int = 0

    def filled(self, trigger: int, keep: int) -> dict[str, Any]:
        """Return the fields with the number of tokens from which on the provider acts, and of the calls of tools that stay."""
        numbers = {"$trigger": max(trigger, self.least_trigger), "$keep": keep}
        filled: dict[str, Any] = _filled(self.fields, numbers)
        return filled

    def is_expected(self, headers: Mapping[str, str]) -> bool:
        """Whether a client with these headers can read what the provider answers."""
        return all(
            value in [one.strip() for one in headers.get(name, "").split(",")]
            for name, value in self.when_headers.items()
        )


class Enrichment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said again at the end of a long prompt about a domain."""

    domain: str
    text: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`context.toml`."""

    volatile: tuple[Volatile, ...]
    provider_compaction: tuple[ProviderCompaction, ...]
    enrichment: tuple[Enrichment, ...]


def volatile_part(text: str) -> str:
    """Return what in a text differs from call to call, as the row names it; empty where nothing is found."""
    if _DIGIT.search(text) is None:
        return ""
    return next((name for name, pattern in _patterns() if pattern.search(text)), "")


def provider_compaction(
    row: str, dialect: str, model: str, headers: Mapping[str, str] = NO_HEADERS
) -> ProviderCompaction | None:
    """Return how a provider, by the id of its row, is asked to shorten conversations itself; None where it does not.

    `headers` are those of the client's request.
    """
    return next(
        (
            one
            for one in _file().provider_compaction
            if matches_any(row, one.providers)
            and matches_any(dialect, one.dialects)
            and matches_any(plain_id(model), one.models)
            and one.is_expected(headers)
        ),
        None,
    )


def enrichment_of(domain: str) -> str:
    """Return what is said again about a domain; empty where nothing is."""
    return next((row.text for row in _file().enrichment if row.domain == domain), "")


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((row.name, re.compile(row.pattern)) for row in _file().volatile)


@cache
def _file() -> _File:
    text = files("bardo.catalog").joinpath("data/context.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _File)


def _filled(value: Any, numbers: dict[str, int]) -> Any:
    match value:
        case dict():
            return {key: _filled(inner, numbers) for key, inner in value.items()}
        case list():
            return [_filled(inner, numbers) for inner in value]
        case str():
            return numbers.get(value, value)
        case _:
            return value

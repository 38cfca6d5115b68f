"""How providers are told what of a prompt to cache, from `catalog/data/prompt_caching.toml`."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal

import msgspec
import tomli

from bardo.catalog.matching import matches_any, plain_id, specificity

Form = Literal["messages", "converse", "chat", "key"]
CachePlace = Literal["tools", "system", "messages"]
CLIENTS_MARKER = "cache_control"
"""What Anthropic's clients mark what shall be cached by, and OpenRouter's."""
ALL_PLACES: tuple[CachePlace, ...] = ("tools", "system", "messages")


class CachingRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How some models at some providers are told.

    `form`: by markers in blocks of Messages, by blocks of Converse, by markers in parts of Chat Completions, or by a key in a `field`.
    Markers may stand in `places`, and there are at most `most`. A marker is the field `marker` with this `value`, which stands where a
    client has another one too. `long_field` is set to `long_value` where a client's markers ask for an hour.
    """

    providers: tuple[str, ...]
    dialects: tuple[str, ...]
    form: Form
    models: tuple[str, ...] = ("*",)
    places: tuple[CachePlace, ...] = ALL_PLACES
    most: int = 4
    field: str = ""
    marker: str = CLIENTS_MARKER
    value: dict[str, str] = msgspec.field(default_factory=lambda: {"type": "ephemeral"})
    long_field: str = ""
    long_value: str = ""

    def fits(self, provider: str, dialect: str, model: str) -> bool:
        """Whether the rule is about a model, by its plain id, at a provider in a dialect."""
        return (
            matches_any(provider, self.providers)
            and matches_any(dialect, self.dialects)
            and matches_any(model, self.models)
        )


class CacheMinimum(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From how many tokens on a prefix is cached, by globs of model ids. The most specific glob decides."""

    match: tuple[str, ...]
    tokens: int


class CachingTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`prompt_caching.toml`."""

    rule: tuple[CachingRule, ...]
    minimum: tuple[CacheMinimum, ...]


@lru_cache(maxsize=1024)
def caching_rules(provider: str, dialect: str, model: str) -> tuple[CachingRule, ...]:
    """Return the rules about a model at a provider (the id of its row) in a dialect."""
    return tuple(rule for rule in caching_table().rule if rule.fits(provider, dialect, plain_id(model)))


@lru_cache(maxsize=1024)
def breakpoint_rule(provider: str, dialect: str, model: str) -> CachingRule | None:
    """Return the rule by which a model's markers have a name of their own, or None if there is none."""
    return next((rule for rule in caching_rules(provider, dialect, model) if rule.marker != CLIENTS_MARKER), None)


@lru_cache(maxsize=1024)
def least_cached(model: str) -> int:
    """Return from how many tokens on a prefix of a model's prompts is cached."""
    name = plain_id(model)
    globs = [
        (specificity(glob), row.tokens)
        for row in caching_table().minimum
        for glob in row.match
        if matches_any(name, (glob,))
    ]
    return max(globs)[1]


@cache
def caching_table() -> CachingTable:
    """Return all rows."""
    text = files("bardo.catalog").joinpath("data/prompt_caching.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomli.loads(text), CachingTable)

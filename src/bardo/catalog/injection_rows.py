"""What instructions in text that nobody vouches for look like, from `catalog/data/injection.toml`: words, marks and patterns."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec


class ProbeVocabulary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The words that the features of a sentence are made from."""

    verbs: frozenset[str]
    leading: frozenset[str]
    questions: frozenset[str]
    answers: frozenset[str]
    code: frozenset[str]
    declarative: frozenset[str]
    page: frozenset[str]
    ours: frozenset[str]
    mine: frozenset[str]


class QuoteMarks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How people show that text is not their own: the names of tags around it, and lines with which it begins, in lower case."""

    tags: frozenset[str]
    headers: tuple[str, ...]


class OverrideRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pattern of text that would replace the rules of a conversation. Weights add up to at most 1.

    `trusted`: it is looked for in what the user says, too.
    """

    name: str
    weight: float
    trusted: bool
    pattern: str


class InjectionRows(msgspec.Struct, frozen=True, kw_only=True):
    """All rows. `template_tokens` are pieces of chat templates, which no document holds by chance."""

    probe: ProbeVocabulary
    quoted: QuoteMarks
    template_tokens: tuple[str, ...]
    overrides: tuple[OverrideRow, ...]


@cache
def injection_rows() -> InjectionRows:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/injection.toml").read_text(encoding="utf-8")
    tables: dict[str, Any] = tomllib.loads(text)
    quoted = {"tags": tables["quoted"]["tags"].split(), "headers": tables["quoted"]["headers"]}
    return msgspec.convert(
        {
            "probe": {name: words.split() for name, words in tables["probe"].items()},
            "quoted": quoted,
            "template_tokens": tables["template"]["tokens"],
            "overrides": tables["override"],
        },
        InjectionRows,
    )

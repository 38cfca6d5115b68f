"""The words and patterns for which a call is not answered by a kept reply."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec


class LiveRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a call is known for which the provider looks into the web: by `fields` of its body, and by globs of `models`."""

    fields: tuple[str, ...]
    models: tuple[str, ...]


class TimeWordsRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words of one language by which a question is about the time at which it is asked, in lower case.

    `words` are whole words, and `phrases` are several words with one space between them. `parts` are found inside other text: they are of
    languages without spaces between words.
    """

    language: str
    words: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


class PersonalDataRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of data about persons: a regular expression, and a check of the digits that it finds; an empty `check` is none."""

    name: str
    pattern: str
    check: Literal["", "luhn", "iban"] = ""


class CacheRows(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All rows."""

    live: LiveRow
    time_words: tuple[TimeWordsRow, ...]
    personal_data: tuple[PersonalDataRow, ...]


@cache
def cache_rows() -> CacheRows:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/cache_refusals.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), CacheRows)

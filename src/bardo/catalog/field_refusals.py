"""The words of providers that refuse one field of a request, from `catalog/data/field_refusals.toml`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import tomli

from bardo.values.errors import ConfigError

_LONGEST = 4000
_MOST_LOOKED_AT = 8


class FieldRefusal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words of a refusal: the group `field` of `pattern` is the field that is not taken, `instead` its name at this provider.

    `of_param`: the field is the one that the provider's error object names, where `pattern` fits the text. `for_good`: the field is
    refused whatever its value is, so the next call need not send it. `camel`: the provider writes `topK` for the field `top_k`.
    """

    pattern: str
    of_param: bool = False
    for_good: bool = False
    camel: bool = False


class NamedField(NamedTuple):
    """A field that a refusal names, the name to send it under (empty: none), and whether it is refused whatever its value is.

    `camel`: the provider may write it in camel case.
    """

    name: str
    instead: str = ""
    for_good: bool = False
    camel: bool = False


class FieldRefusals(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All rows. `keep` are the fields that no request goes without, `of_messages` those that messages of Chat do go without.

    `never_learned` are fields that every call sends, whatever an earlier one was told. `relation` are the words of a refusal that is about
    how fields go together, `forced_tool` those of one that is about a forced tool beside thinking, `everywhere` the names that any refusal
    may have in it, `roots` what may stand before the name of a field. `required_defaults` are the default fields of an operator, by dotted
    paths, without which a provider that refuses them is not asked; `required_for_vectors` are those of them that are about vectors too.
    """

    refusal: tuple[FieldRefusal, ...]
    keep: tuple[str, ...]
    of_messages: tuple[str, ...] = ()
    never_learned: tuple[str, ...] = ()
    relation: str = r"(?!)"
    forced_tool: str = r"(?!)"
    everywhere: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    required_defaults: tuple[str, ...] = ()
    required_for_vectors: tuple[str, ...] = ()

    def is_about_relation(self, said: str) -> bool:
        """Whether a refusal is about how fields go together."""
        return _compiled(self.relation).search(said[:_LONGEST]) is not None

    def is_about_forced_tool(self, said: str) -> bool:
        """Whether a refusal is about a tool that is forced while the model thinks."""
        return _compiled(self.forced_tool).search(said[:_LONGEST]) is not None

    def named(self, said: str, param: str, is_quoted: Callable[[str], bool]) -> list[NamedField]:
        """Return the fields that a refusal may be about, the likeliest first.

        `param` is what its error object names, `is_quoted` tells of words whether they are the caller's.
        """
        text = said[:_LONGEST]
        fields: list[NamedField] = []
        for pattern, row in _patterns(self.refusal):
            matches = islice(pattern.finditer(text), _MOST_LOOKED_AT)
            match = next((match_of for match_of in matches if not is_quoted(match_of[0])), None)
            if match is None:
                continue
            groups = match.groupdict()
            name = param if row.of_param else groups["field"].rstrip(".")
            if name:
                fields.append(NamedField(name, groups.get("instead") or "", row.for_good, row.camel))
        return fields


@cache
def _patterns(rows: tuple[FieldRefusal, ...]) -> tuple[tuple[re.Pattern[str], FieldRefusal], ...]:
    return tuple((re.compile(row.pattern), row) for row in rows)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@cache
def builtin_field_refusals() -> FieldRefusals:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/field_refusals.toml").read_text(encoding="utf-8")
    return read_field_refusals(tomli.loads(text))


def read_field_refusals(data: Mapping[str, Any]) -> FieldRefusals:
    """Return typed rows. Raises ConfigError naming the mistake."""
    try:
        return msgspec.convert(data, FieldRefusals)
    except msgspec.ValidationError as problem:
        raise ConfigError(f"field_refusals.toml: {problem}") from problem

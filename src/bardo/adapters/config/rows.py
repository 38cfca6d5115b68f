"""The `[[reasoning_formats]]` and `[[models]]` of `bardo.toml`: the user's own rows, with the keys of the built-in ones.

`bardo probe` writes rows of models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from bardo.adapters.config.problems import Place, explain
from bardo.catalog.matching import canonical
from bardo.catalog.models import ModelRow
from bardo.reasoning.formats import BadDelimiter, ReasoningFormat
from bardo.values.errors import ConfigError

_FORMATS = "reasoning_formats"


def read_formats(tables: Sequence[Mapping[str, Any]], text: str, source: str) -> tuple[ReasoningFormat, ...]:
    """Return the rows of `text`, which is the file's. Raises ConfigError naming the line."""
    seen: dict[str, str] = {}
    return tuple(_format(table, Place(text, source, _FORMATS, index), seen) for index, table in enumerate(tables))


def _format(table: Mapping[str, Any], place: Place, seen: dict[str, str]) -> ReasoningFormat:
    try:
        row = msgspec.convert(table, ReasoningFormat)
    except msgspec.ValidationError as problem:
        if isinstance(problem.__cause__, BadDelimiter):
            bad = problem.__cause__
            raise ConfigError(f"{place.of(bad.key)}: {bad.message}", hint=bad.hint) from bad
        raise explain(problem, place, ReasoningFormat.__struct_fields__, choices_of(ReasoningFormat)) from problem
    _check_name(row, place, seen)
    for key in _unset(row):
        raise ConfigError(f"{place.of(key)}: format {row.name!r} has no {key!r}", hint=f'add {key} = "…"')
    if not all(pattern.strip() for pattern in row.patterns):
        hint = 'an empty pattern fits every model: write "*" where that is meant'
        raise ConfigError(f"{place.of('patterns')}: format {row.name!r} has an empty pattern", hint=hint)
    return row


def _check_name(row: ReasoningFormat, place: Place, seen: dict[str, str]) -> None:
    name = canonical(row.name)
    if not name:
        raise ConfigError(f"{place.of('name')}: the format's name is empty", hint='give it one: name = "lab"')
    if name in seen:
        hint = "names are unique; case, - and _ make no difference"
        raise ConfigError(f"{place.of('name')}: a second format is called {row.name!r}", hint=hint)
    seen[name] = row.name


def _unset(row: ReasoningFormat) -> list[str]:
    """Return what a format that is read by delimiters lacks; it may have neither, and then leaves text as it is."""
    if row.machine != "delimiters" or not (row.starts or row.ends):
        return []
    return [key for key, given in (("start", row.starts), ("end", row.ends)) if not given]


def choices_of(struct: type[msgspec.Struct]) -> dict[str, tuple[Any, ...]]:
    """Return what may be written for the fields that take one of a few words."""
    hints = get_type_hints(struct)
    return {name: words for name in struct.__struct_fields__ if (words := tuple(_literal_values(hints[name])))}


def _literal_values(hint: Any) -> list[Any]:
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    if get_origin(hint) not in (Union, UnionType):
        return []
    members = get_args(hint)
    words = [word for member in members for word in _literal_values(member)]
    return [True, False, *words] if words and bool in members else words


_MODELS = "models"


def read_models(tables: Sequence[Mapping[str, Any]], text: str, source: str) -> tuple[ModelRow, ...]:
    """Return the rows of `text`, which is the file's. Raises ConfigError naming the line."""
    return tuple(_model(table, Place(text, source, _MODELS, index)) for index, table in enumerate(tables))


def _model(table: Mapping[str, Any], place: Place) -> ModelRow:
    try:
        row = msgspec.convert(table, ModelRow)
    except msgspec.ValidationError as problem:
        raise explain(problem, place, ModelRow.__struct_fields__, choices_of(ModelRow)) from problem
    if row.contradicts_itself:
        hint = "say one of the two: reasoning_wire is the control in one word"
        raise ConfigError(
            f"{place.of('reasoning_wire')}: the row says another control than its reasoning_wire", hint=hint
        )
    if not row.match or not all(row.match):
        hint = 'name models or globs: match = ["my-model*"]'
        raise ConfigError(f"{place.of('match')}: the row fits no model", hint=hint)
    return row

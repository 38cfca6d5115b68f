"""`[[prices]]` of `bardo.toml`: what the operator pays, which goes before all other prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

import msgspec

from bardo.catalog.prices import PriceRow, PriceTier, problem_of
from bardo.edge.settings_problems import Place, explain
from bardo.values.errors import ConfigError

_HINTS = {
    "match": 'name models or globs: match = ["my-model*"]',
    "from": "write the day from which the price holds: from = 2026-11-23",
}
_AMOUNT = "prices are US dollars per million tokens: input = 3.0; leave out what is not known"
_ONE_OR_MORE = ("match", "provider")


def read_prices(tables: Sequence[Mapping[str, Any]], text: str, source: str) -> tuple[PriceRow, ...]:
    """Return the rows of `text`, which is the file's. Raises ConfigError naming the line."""
    return tuple(_price(table, Place(text, source, "prices", index)) for index, table in enumerate(tables))


def _price(table: Mapping[str, Any], place: Place) -> PriceRow:
    try:
        row = msgspec.convert({name: _plain(name, value) for name, value in table.items()}, PriceRow)
    except msgspec.ValidationError as problem:
        known = (*PriceRow.__struct_encode_fields__, *PriceTier.__struct_encode_fields__)
        raise explain(problem, place, tuple(dict.fromkeys(known))) from problem
    if wrong := problem_of(row):
        key, message = wrong
        raise ConfigError(f"{place.of(key)}: {message}", hint=_HINTS.get(key, _AMOUNT))
    return row


def _plain(name: str, value: Any) -> Any:
    """Return a value in the form of the row: a single glob is a list of one, and a day of TOML is its text."""
    if name in _ONE_OR_MORE and isinstance(value, str):
        return [value]
    if name == "from" and isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    return value

"""The built-in rows, read once, and the user's rows over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
import tomli

from bardo.catalog.rows import ProviderRow
from bardo.values.errors import ConfigError


class Catalog:
    """Provider rows in order, found by id or by any other name they go by. Never changed once made."""

    def __init__(self, providers: Iterable[ProviderRow]) -> None:
        self.providers = tuple(providers)
        by_alias = {alias: row for row in reversed(self.providers) for alias in row.aliases}
        self._by_name = by_alias | {row.id: row for row in reversed(self.providers)}
        self._generic: dict[str, ProviderRow] = {row.dialect: row for row in reversed(self.providers) if row.generic}

    def provider(self, name: str) -> ProviderRow | None:
        """Return the row called `name`: an id goes before an alias."""
        return self._by_name.get(name)

    def generic(self, dialect: str) -> ProviderRow | None:
        """Return the row that stands for any server of a dialect."""
        return self._generic.get(dialect)

    def names(self) -> list[str]:
        """Return every name a row goes by, sorted."""
        return sorted(self._by_name)

    def local(self) -> tuple[ProviderRow, ...]:
        """Return the rows of servers that usually run on the user's own machine."""
        return tuple(row for row in self.providers if row.local)

    def serving(self, model: str) -> ProviderRow | None:
        """Return the first row whose globs fit the bare model id."""
        return next((row for row in self.providers if row.serves(model)), None)


@cache
def builtin() -> Catalog:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/providers.toml").read_text(encoding="utf-8")
    return Catalog(read_rows(tomli.loads(text).get("providers", ()), "providers.toml"))


def read_rows(tables: Iterable[Mapping[str, Any]], source: str) -> list[ProviderRow]:
    """Return typed rows. Raises ConfigError naming the row and the field."""
    rows = []
    for table in tables:
        try:
            rows.append(msgspec.convert(table, ProviderRow))
        except msgspec.ValidationError as problem:
            name = table.get("id", "?")
            raise ConfigError(f"provider row {name!r} in {source}: {problem}") from problem
    return rows

"""The `[aliases]` of `bardo.toml`: a name, and what it stands for: a model, several in order, or a table of these with efforts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bardo.edge.settings_problems import Place, explain
from bardo.engine.aliases import AMOUNTS, Alias, Aliases
from bardo.values.errors import ConfigError


def read_aliases(table: Any, text: str, source: str) -> dict[str, Alias]:
    """Return the aliases of a file by their names. Raises ConfigError naming the line."""
    place = Place(text, source, "aliases")
    if not isinstance(table, Mapping):
        raise ConfigError(
            f"{place.of('')}: aliases is not a table", hint='write [aliases] and lines of "name" = "model"'
        )
    found = {name: _alias(name, value, place) for name, value in table.items()}
    try:
        Aliases(found)
    except ConfigError as problem:
        raise ConfigError(f"{place.of('')}: {problem.message}", hint=problem.hint) from problem
    return found


def _alias(name: str, value: Any, place: Place) -> Alias:
    if name.count("*") > 1:
        raise ConfigError(f"{place.of(name)}: alias {name!r} has more than one *", hint="one stands for any text")
    try:
        alias = msgspec.convert(_with_fallbacks(name, value, place), Alias)
    except msgspec.ValidationError as problem:
        choices = dict.fromkeys(("effort", "forced_effort", "max_effort"), AMOUNTS)
        raise explain(problem, place.inside(name), Alias.__struct_fields__, choices) from problem
    for model in (alias.model, *alias.fallbacks):
        if not model or ("*" in model and "*" not in name):
            raise ConfigError(f"{place.of(name)}: alias {name!r} names no model", hint='write "provider/model"')
    return alias


def _with_fallbacks(name: str, value: Any, place: Place) -> Any:
    """Return the table of an alias: a text is its model, and of a list of models those after the first are its fallbacks."""
    table = value if isinstance(value, Mapping) else {"model": value}
    models = table.get("model")
    if not isinstance(models, list):
        return table
    if not models or "fallbacks" in table:
        raise ConfigError(
            f"{place.of(name)}: alias {name!r} names no model, or its fallbacks twice",
            hint='write model = ["provider/model", "provider/other"]',
        )
    return {**table, "model": models[0], "fallbacks": models[1:]}

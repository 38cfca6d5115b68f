"""What is wrong in `bardo.toml`, said so that it can be mended: the file, the line, and what to write instead.

TOML's own reader keeps no lines, so they are looked for in the text: exact for a file written as usual, near where it is not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

import msgspec

from bardo.edge.settings_meant import meant_key
from bardo.edge.settings_secrets import how_to_give_a_key, means_a_key
from bardo.values.errors import ConfigError

_HEADER = re.compile(r"\s{0,200}\[\[?\s{0,200}([^\[\]]{1,500}?)\s{0,200}\]")
_KEY = re.compile(r"\s*([\w.\"-]+)\s*=")
_AT = re.compile(r" - at `\$\.?([^`]*)`$")
_EXPECTED = re.compile(r"Expected `(\w+)[^`]*`(?: (<=|>=|<|>) (\S+))?")
_KINDS: dict[str, str] = {
    "int": "a whole number",
    "float": "a number",
    "str": 'a text in quotes: "…"',
    "bool": "true or false",
    "array": 'a list: ["…", "…"]',
    "object": "a table of keys and values",
}
_BOUNDS = {"<=": "at most", ">=": "at least", "<": "less than", ">": "greater than"}
_NO_CHOICES: Mapping[str, Collection[Any]] = MappingProxyType({})


class Place:
    """A table of a file: the root, a `[table]`, or the `index`-th of several `[[table]]`s."""

    def __init__(self, text: str, source: str, table: str = "", index: int = 0) -> None:
        self._lines = text.splitlines()
        self._source = source
        self._table = table
        self._index = index

    @property
    def table(self) -> str:
        """The name of the table, empty for the root."""
        return self._table

    def of(self, key: str) -> str:
        """Return `file, line n` of a key, else of its table, else only the file."""
        line = self._line(key)
        return f"{self._source}, line {line}" if line else self._source

    def inside(self, table: str) -> Place:
        """Return the place of a table below this one."""
        name = ".".join(part for part in (self._table, table) if part)
        return Place("\n".join(self._lines), self._source, name, self._index)

    def _line(self, key: str) -> int | None:
        """Find a key by its whole name: `[gateway]` and `port`, or `gateway.port`, or at least what it is below, or the table."""
        wanted, near, nearest = _join(self._table, key), None, ""
        seen: Counter[str] = Counter()
        header = ""
        for number, line in enumerate(self._lines, 1):
            match = _HEADER.match(line) or _KEY.match(line)
            if match is None:
                continue
            name = match[1].replace('"', "").replace("'", "")
            if match.re is _HEADER:
                header = name
                seen[name] += 1
            here = header if match.re is _HEADER else _join(header, name)
            outer = self._table.partition(".")[0]
            if seen[outer] not in (0, self._index + 1):
                continue
            if here == wanted:
                return number
            if here and len(here) >= len(nearest) and (here == self._table or wanted.startswith(f"{here}.")):
                near, nearest = number, here
        return near


def _join(table: str, key: str) -> str:
    return ".".join(part for part in (table, key) if part)


def explain(
    problem: msgspec.ValidationError,
    place: Place,
    known: Collection[str],
    choices: Mapping[str, Collection[Any]] = _NO_CHOICES,
    *,
    key_variable: str = "",
) -> ConfigError:
    """Return the error for a table that is not as it should be.

    `known` are the keys there are, and `choices` the words there are for the keys that take one of a few. `key_variable` is the variable
    for the key of a provider, empty in tables of other things.
    """
    said = str(problem)
    at = _AT.search(said)
    path = re.sub(r"\[[^\[\]]*\]", "", at[1]) if at else ""
    said = _AT.sub("", said)
    named = re.search(r"field `(.+?)`", said)
    if named:
        if key_variable and means_a_key(named[1]) and "missing" not in said:
            where = place.inside(path).of(named[1])
            return ConfigError(f"{where}: unknown key {named[1]!r}", hint=how_to_give_a_key(key_variable))
        return _key_problem(named[1], place.inside(path), known, missing="missing" in said)
    table, _, key = path.rpartition(".")
    where = place.inside(table).of(key)
    return ConfigError(
        f"{where}: {path or 'the file'} is not as it should be", hint=_instead(key, said, choices.get(key, ()))
    )


def _key_problem(key: str, place: Place, known: Collection[str], *, missing: bool) -> ConfigError:
    if missing:
        return ConfigError(f"{place.of('')}: {key!r} is missing", hint=f'add {key} = "…"')
    if meant := meant_key(place.table, key):
        return ConfigError(f"{place.of(key)}: unknown key {key!r}", hint=meant)
    near = get_close_matches(key, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(sorted(known))}"
    return ConfigError(f"{place.of(key)}: unknown key {key!r}", hint=hint)


def _instead(key: str, said: str, choices: Collection[Any]) -> str:
    """Turn msgspec's `Expected …` into what to write."""
    if choices:
        return f"use one of {', '.join(msgspec.json.encode(word).decode() for word in choices)}"
    expected = _EXPECTED.search(said)
    if expected is None:
        return said
    kind, sign, bound = expected.groups()
    if sign:
        return f"{key} must be {_BOUNDS[sign]} {bound.removesuffix('.0')}"
    return f"write {_KINDS.get(kind, kind)}"

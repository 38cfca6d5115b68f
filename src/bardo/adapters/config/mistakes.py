"""The mistakes of a `bardo.toml`, found all at once: each with its line and what to write instead."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, get_type_hints

import msgspec

from bardo.adapters.config.problems import TABLES, Place, choices_of, explain, meant_key
from bardo.values.errors import ConfigError

T = TypeVar("T", bound=msgspec.Struct)

_MOST = 50
_LINE = re.compile(r", line (\d+)")
_AT = re.compile(r" - at `\$\.?([^`]*)`$")
_UNKNOWN = re.compile(r"unknown field `(.+?)`")
_YAML = re.compile(r"^(?:---\s*$|[A-Za-z_][\w-]{0,60}:(?:\s|$))", re.MULTILINE)
_NAMED_BY = {
    "providers": 'id = "{}"',
    "keys": 'id = "{}"',
    "models": 'match = ["{}"]',
    "prices": 'match = ["{}"]',
    "reasoning_formats": 'name = "{}"',
}
_MOST_LEVELS = 50
_SYNTAX = (
    ("invalid value", 'texts stand in quotes: host = "127.0.0.1"; true and false are in small letters'),
    ("unescaped", r"a path of Windows stands in single quotes: path = 'C:\logs\bardo.db'"),
    ("hex", r"a path of Windows stands in single quotes: path = 'C:\logs\bardo.db'"),
    (
        "overwrite",
        "the same key stands there twice, or its table as [name] and as [[name]]: keep one; providers are written [[providers]]",
    ),
    ("twice", "the same table stands there twice: join them, or write [[…]] where there may be several"),
)


def read_text(file: Path) -> str:
    """Return the text of a file, without the byte order mark that some editors write. Raises ConfigError where it cannot be read."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise ConfigError(f"cannot read {file}: {problem}", hint="give --config another path") from problem
    except UnicodeDecodeError as problem:
        raise ConfigError(f"cannot read {file}: it is not UTF-8", hint="save it as UTF-8") from problem


def read_tables(text: str, source: str) -> dict[str, Any]:
    """Return what a text says. Raises ConfigError where it is not TOML."""
    try:
        tables = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as problem:
        said = str(problem).lower()
        hint = _other_format(text) or next((fix for word, fix in _SYNTAX if word in said), "correct that line")
        raise ConfigError(f"{source} is not valid TOML: {problem}", hint=hint) from problem
    except RecursionError as problem:
        raise _nested(source) from problem
    except ValueError as problem:
        raise ConfigError(
            f"{source} holds a number of too many digits", hint="write a number that a setting takes"
        ) from problem
    if _is_deeper(tables, _MOST_LEVELS):
        raise _nested(source)
    return tables


def _other_format(text: str) -> str:
    """Return what to do with a file that is JSON or YAML, empty where it is neither."""
    beginning = text.lstrip("\ufeff \t\r\n")[:1]
    named = "JSON" if beginning == "{" else "YAML" if _YAML.search(text) else ""
    return f"this looks like {named}: write it as TOML, as in [gateway] and below it port = 8484" if named else ""


def _nested(source: str) -> ConfigError:
    return ConfigError(
        f"{source} nests deeper than {_MOST_LEVELS} levels",
        hint="no setting nests so deep: look for a bracket or a dot too many",
    )


def _is_deeper(tables: dict[str, Any], levels: int) -> bool:
    level: list[Any] = [tables]
    for _ in range(levels):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
    return bool(level)


@dataclass(frozen=True, slots=True)
class TableRead(Generic[T]):
    """A table as a value, without its keys in which a mistake was found: `wrong` names those. None where no value could be made."""

    value: T | None
    wrong: frozenset[str] = frozenset()


class Mistakes:
    """Reads the tables of one file and collects what is wrong in them. `keys` says under which tables a key may stand."""

    def __init__(self, text: str, source: str, keys: Mapping[str, Sequence[str]]) -> None:
        self._text = text
        self._source = source
        self._keys = keys
        self._found: list[ConfigError] = []

    @property
    def found(self) -> bool:
        """Whether any mistake was found so far."""
        return bool(self._found)

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Keep the ConfigError that the block raises."""
        try:
            yield
        except ConfigError as problem:
            self._found.append(problem)

    @property
    def lines(self) -> frozenset[int]:
        """The lines of the mistakes found so far."""
        return frozenset(map(_line_of, self._found)) - {0}

    @contextmanager
    def collected_elsewhere(self, lines: Collection[int]) -> Iterator[None]:
        """Keep the ConfigError that the block raises, unless it is about one of these lines."""
        try:
            yield
        except ConfigError as problem:
            if _line_of(problem) not in lines:
                self._found.append(problem)

    def read(
        self,
        table: Any,
        kind: type[T],
        place: Place,
        choices: Mapping[str, Collection[Any]] | None = None,
        *,
        key_variable: str = "",
    ) -> TableRead[T]:
        """Return a table as a value. What is wrong is left out, and the rest read again. `key_variable` is as in `explain`."""
        rest, wrong = deepcopy(table), set[str]()
        for _ in range(_MOST):
            try:
                return TableRead(msgspec.convert(rest, kind), frozenset(wrong))
            except msgspec.ValidationError as problem:
                self._add(self._explained(problem, kind, place, choices or {}, key_variable))
                wrong.add(_first_key(problem))
                if not _left_out(rest, problem):
                    break
        return TableRead(None, frozenset(wrong))

    def lists(self, tables: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """Take the lists of tables out of a file: `[[providers]]` and the like."""
        return {name: self._tables_of(name, tables.pop(name, [])) for name in _NAMED_BY}

    def unknown_tables(self, tables: dict[str, Any], known: Collection[str]) -> None:
        """Take out what no table of the file is called."""
        place = Place(self._text, self._source)
        for name in [name for name in tables if name not in known]:
            where = f"{place.of(name)}: unknown key {name!r}"
            if name in TABLES:
                self._found.append(ConfigError(where, hint=meant_key("", name)))
            elif not isinstance(tables[name], dict) and name in self._keys:
                self._found.append(ConfigError(where, hint=f"write it below {self._tables_with(name)}"))
            else:
                message = f"Object contains unknown field `{name}`"
                self._found.append(explain(msgspec.ValidationError(message), place, [*known, *_NAMED_BY]))
            del tables[name]

    def check(self) -> None:
        """Raise what was found: one ConfigError, which names all mistakes where there are several."""
        if not self._found:
            return
        problems = sorted(self._found, key=_line_of)
        if len(problems) == 1:
            raise problems[0]
        told = "".join(f"\n  {problem}" for problem in problems)
        raise ConfigError(f"{self._source} has {len(problems)} mistakes:{told}", problems=tuple(problems))

    def _add(self, problem: ConfigError) -> None:
        if str(problem) not in map(str, self._found):
            self._found.append(problem)

    def _tables_of(self, name: str, value: Any) -> list[dict[str, Any]]:
        place = Place(self._text, self._source)
        if isinstance(value, dict):
            self._found += list(_single(name, value, place))
            return []
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            hint = f"write [[{name}]] and the keys below it"
            self._found.append(ConfigError(f"{place.of(name)}: {name} has a wrong type", hint=hint))
            return []
        return value

    def _explained(
        self,
        problem: msgspec.ValidationError,
        kind: type[msgspec.Struct],
        place: Place,
        choices: Mapping[str, Collection[Any]],
        key_variable: str,
    ) -> ConfigError:
        path = _path(problem)
        known = _struct_at(kind, path).__struct_fields__
        unknown = _UNKNOWN.search(str(problem))
        words = choices_of(_struct_at(kind, path[:-1])) | dict(choices)
        told = explain(problem, place, known, words, key_variable=key_variable)
        if not unknown or unknown[1] in known or "api_key_env" in known or len(self._keys.get(unknown[1], ())) != 1:
            return told
        if meant_key(".".join(part for part in (place.table, *path) if part), unknown[1]):
            return told
        return ConfigError(told.message, hint=f"write it below {self._tables_with(unknown[1])}")

    def _tables_with(self, key: str) -> str:
        return " or ".join(self._keys[key])


def _single(name: str, table: Mapping[str, Any], place: Place) -> Iterator[ConfigError]:
    """Say of `[providers]` and of `[providers.openai]` how they are written."""
    named = [key for key, value in table.items() if isinstance(value, dict)]
    if len(named) < len(table):
        hint = f"write [[{name}]] with two brackets: there may be several"
        yield ConfigError(f"{place.of(name)}: {name} is a single table", hint=hint)
        return
    for key in named:
        hint = f"write [[{name}]] and below it {_NAMED_BY[name].format(key)}"
        yield ConfigError(f"{place.of(f'{name}.{key}')}: {name} have no names in brackets: [{name}.{key}]", hint=hint)


def _path(problem: msgspec.ValidationError) -> list[str]:
    """Return the keys that lead to what is wrong, up to a list or a free key."""
    at = _AT.search(str(problem))
    return [part for part in (at[1] if at else "").partition("[")[0].split(".") if part]


def _first_key(problem: msgspec.ValidationError) -> str:
    """Return the key of the table below which something is wrong, or which is unknown or missing."""
    named = re.search(r"field `(.+?)`", str(problem))
    return next(iter(_path(problem)), named[1] if named else "")


def _left_out(table: Any, problem: msgspec.ValidationError) -> bool:
    """Take out what is wrong; False where it cannot be, as with a key that is missing."""
    unknown = _UNKNOWN.search(str(problem))
    path = [*_path(problem), *([unknown[1]] if unknown else [])]
    if not path or "missing required" in str(problem):
        return False
    for key in path[:-1]:
        table = table.get(key) if isinstance(table, dict) else None
    return isinstance(table, dict) and table.pop(path[-1], None) is not None


def _struct_at(kind: type[msgspec.Struct], path: Sequence[str]) -> type[msgspec.Struct]:
    """Return the table that a path leads to, or the last one on the way."""
    found: type[msgspec.Struct] = kind
    for key in path:
        hint = get_type_hints(found).get(key)
        if not (isinstance(hint, type) and issubclass(hint, msgspec.Struct)):
            break
        found = hint
    return found


def _line_of(problem: ConfigError) -> int:
    line = _LINE.search(problem.message)
    return int(line[1]) if line else 0

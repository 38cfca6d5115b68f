"""The mistakes of a `bardo.toml`, found all at once: each with the file, its line, and what to write instead.

Names that other programs use for settings are rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
import tomli

from bardo.adapters.config.secrets import how_to_give_a_key, means_a_key
from bardo.catalog.matching import broken_class
from bardo.values.errors import ConfigError

_NOTHING = "nothing: "
_LAYERS = "[inference.pipeline]"
_MODELS_OF_A_FALLBACK = 'an alias may list several models: [aliases] NAME = ["first/model", "second/model"]'

TABLES = {
    "server": "[gateway]",
    "http_server": "[gateway]",
    "general": "[gateway]",
    "proxy": "[gateway]",
    "provider": "[[providers]]",
    "upstream": "[[providers]]",
    "upstreams": "[[providers]]",
    "model": "[[models]]",
    "price": "[[prices]]",
    "pricing": "[[prices]]",
    "model_list": "[[providers]] with models",
    "alias": "[aliases]",
    "workload": "[workloads.NAME]",
    "router": "[routing]",
    "router_settings": "[routing]",
    "logging": "[log]",
    "timeout": "[timeouts]",
    "http": f"{_NOTHING}there is one HTTP client, which goes through HTTP_PROXY, HTTPS_PROXY and ALL_PROXY",
    "thinking": "[reasoning]",
    "structured_outputs": "[inference.structured_outputs]",
    "repair_history": "[inference] repair_history",
    "reasoning_format": "[[reasoning_formats]]",
    "formats": "[[reasoning_formats]]",
    "cache": f"[inference.pipeline.cache], and a profile with the layer below {_LAYERS}",
    "caching": "[inference.caching]",
    "embeddings": "[inference.embeddings]",
    "embedding": "[inference.embeddings]",
    "pipeline": _LAYERS,
    "privacy": f"[inference.pipeline.privacy], and a profile with the layer below {_LAYERS}",
    "injection": f"[inference.pipeline.injection], and a profile with the layer below {_LAYERS}",
    "fallback": "[aliases] with a list of models, which are tried in order",
    "fallbacks": "[aliases] with a list of models, which are tried in order",
    "budget": "usd_per_day or usd_per_month in [[keys]], and what holds for all budgets below [budgets]",
    "key": "[[keys]]",
    "api_keys": "[[keys]]",
    "panel": "panel = true or false below [gateway]",
    "dashboard": "panel = true or false below [gateway]",
    "bot": "[telegram] or [discord]",
    "database": "url_env below [log]",
    "rate_limit": "requests_per_minute in [[keys]]",
    "rate_limits": "requests_per_minute in [[keys]]",
    "batch": "[batches]",
    "x402": "[payments]",
    "otel": "[telemetry]",
    "cors": "allowed_origins below [gateway]",
}
"""Replacements for names at the top of the file."""

_KEYS: dict[str, dict[str, str]] = {
    "gateway": {
        "bind": "host",
        "address": "host and port",
        "listen": "host and port",
        "cors": "allowed_origins",
        "origins": "allowed_origins",
        "hosts": "allowed_hosts",
        "budget": "usd_per_day or usd_per_month in [[keys]]",
        "rate_limit": "requests_per_minute in [[keys]]",
        "api_key": "[[keys]], or `bardo keys create NAME`",
        "auth": "[[keys]], or `bardo keys create NAME`",
        "timeout": "[timeouts]",
        "max_body_size": "max_body_bytes",
        "dashboard": "panel",
        "log_level": "nothing: the log level is not configured",
    },
    "log": {
        "file": "path",
        "filename": "path",
        "database": "url_env, the variable that holds the address",
        "level": "nothing: [log] is the log of calls",
        "retention": "retention_days",
    },
    "timeouts": {"read": "first_byte and idle", "request": "total", "timeout": "total", "stream": "idle"},
    "failover": {"fallbacks": "[aliases] with a list of models, which are tried in order"},
    "reasoning": {"effort": "reasoning in [aliases] or [[keys]]", "efort": "reasoning in [aliases] or [[keys]]"},
    "providers": {
        "url": "base_url",
        "api_base": "base_url",
        "endpoint": "base_url",
        "host": "base_url",
        "name": "id",
        "type": "preset, or dialect",
        "kind": "preset, or dialect",
        "provider": "preset",
        "model": 'models = ["…"]',
        "fallbacks": f"nothing: providers are tried in their order; {_MODELS_OF_A_FALLBACK}",
        "budget": "usd_per_day or usd_per_month in [[keys]]",
        "timeout": "[timeouts]",
        "key_env": "api_key_env",
        "rate_limit": "nothing: a provider's own limits are kept by its replies",
    },
    "keys": {
        "name": "id",
        "key": "key_env, the variable that holds the key",
        "env": "key_env",
        "budget": "usd_per_day or usd_per_month",
        "rpm": "requests_per_minute",
        "tpm": "tokens_per_minute",
        "rate_limit": "requests_per_minute",
    },
    "models": {
        "name": 'match = ["…"]',
        "id": 'match = ["…"]',
        "context_window": "context",
        "max_tokens": "output_limit",
    },
}
"""Replacements for keys of a table."""


def meant_key(table: str, key: str) -> str:
    """Return what to write for a key that a table does not have, empty where nothing is known of it."""
    if table.startswith("inference.pipeline.") and key in ("enabled", "enable", "on"):
        layer = table.removeprefix("inference.pipeline.")
        return f"leave it out: the profile below {_LAYERS} names which layers run, and [{table}] says how {layer} does"
    advice = _KEYS.get(table, {}).get(key, "") if table else TABLES.get(key, "")
    if advice.startswith(_NOTHING):
        return f"leave it out: {advice.removeprefix(_NOTHING)}"
    return f"write {advice}" if advice else ""


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
    def source(self) -> str:
        """The name of the file."""
        return self._source

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
    message = str(problem)
    at = _AT.search(message)
    path = re.sub(r"\[[^\[\]]*\]", "", at[1]) if at else ""
    message = _AT.sub("", message)
    named = re.search(r"field `(.+?)`", message)
    if named:
        if key_variable and means_a_key(named[1]) and "missing" not in message:
            where = place.inside(path).of(named[1])
            return ConfigError(f"{where}: unknown key {named[1]!r}", hint=how_to_give_a_key(key_variable))
        return _key_problem(named[1], place.inside(path), known, missing="missing" in message)
    table, _, key = path.rpartition(".")
    where = place.inside(table).of(key)
    return ConfigError(
        f"{where}: {path or 'the file'} is not as it should be", hint=_instead(key, message, choices.get(key, ()))
    )


def _key_problem(key: str, place: Place, keys: Collection[str], *, missing: bool) -> ConfigError:
    if missing:
        return ConfigError(f"{place.of('')}: {key!r} is missing", hint=f'add {key} = "…"')
    if meant := meant_key(place.table, key):
        return ConfigError(f"{place.of(key)}: unknown key {key!r}", hint=meant)
    near = get_close_matches(key, keys, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(sorted(keys))}"
    return ConfigError(f"{place.of(key)}: unknown key {key!r}", hint=hint)


def _instead(key: str, message: str, choices: Collection[Any]) -> str:
    """Turn msgspec's `Expected …` into what to write."""
    if choices:
        return f"use one of {', '.join(msgspec.json.encode(word).decode() for word in choices)}"
    expected = _EXPECTED.search(message)
    if expected is None:
        return message
    kind, sign, bound = expected.groups()
    if sign:
        return f"{key} must be {_BOUNDS[sign]} {bound.removesuffix('.0')}"
    return f"write {_KINDS.get(kind, kind)}"


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


T = TypeVar("T", bound=msgspec.Struct)

_MOST = 50
_LINE = re.compile(r", line (\d+)")
_UNKNOWN = re.compile(r"unknown field `(.+?)`")
_YAML = re.compile(r"^(?:---\s*$|[A-Za-z_][\w-]{0,60}:(?:\s|$))", re.MULTILINE)
_NAMED_BY = {
    "providers": 'id = "{}"',
    "keys": 'id = "{}"',
    "models": 'match = ["{}"]',
    "prices": 'match = ["{}"]',
    "reasoning_formats": 'name = "{}"',
}
GLOBS = (
    "golem.tools", "inference.pipeline.cache.ttl_seconds_at", "inference.pipeline.prefilter.caps.models",
    "inference.pipeline.prefilter.caps.workloads", "inference.pipeline.prefilter.tokenizers",
    "inference.pipeline.privacy.allowed", "models.match", "prices.match", "prices.provider", "provider_ids.shared",
    "providers.model_extra_body", "reasoning_formats.patterns",
)  # fmt: skip
"""The settings that hold globs: texts, lists of them, or tables with a glob as the name of each value."""
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
        tables = tomli.loads(text.removeprefix("\ufeff"))
    except tomli.TOMLDecodeError as problem:
        message = str(problem).lower()
        beginning = text.lstrip("\ufeff \t\r\n")[:1]
        named = "JSON" if beginning == "{" else "YAML" if _YAML.search(text) else ""
        hint = next((fix for word, fix in _SYNTAX if word in message), "correct that line")
        if named:
            hint = f"this looks like {named}: write it as TOML, as in [gateway] and below it port = 8484"
        raise ConfigError(f"{source} is not valid TOML: {problem}", hint=hint) from problem
    except RecursionError as problem:
        raise _nested(source) from problem
    except ValueError as problem:
        raise ConfigError(
            f"{source} holds a number of too many digits", hint="write a number that a setting takes"
        ) from problem
    level: list[Any] = [tables]
    for _ in range(_MOST_LEVELS):
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, dict) else value)
            if isinstance(inner, dict | list)
        ]
    if level:
        raise _nested(source)
    return tables


def _nested(source: str) -> ConfigError:
    return ConfigError(
        f"{source} nests deeper than {_MOST_LEVELS} levels",
        hint="no setting nests so deep: look for a bracket or a dot too many",
    )


class TableRead(msgspec.Struct, Generic[T], frozen=True):
    """A table as a value, without its keys in which a mistake was found: `wrong` names those. None if no value could be made."""

    value: T | None
    wrong: frozenset[str] = frozenset()


class Mistakes:
    """Reads the tables of one file and collects their mistakes. `keys` says under which tables a key may stand."""

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
        """Return a table as a value. Wrong parts are left out, and the rest is read again. `key_variable` is as in `explain`."""
        rest, wrong = deepcopy(table), set[str]()
        for _ in range(_MOST):
            try:
                return TableRead(msgspec.convert(rest, kind), frozenset(wrong))
            except msgspec.ValidationError as problem:
                self._add(self._explained(problem, kind, place, choices or {}, key_variable))
                named = re.search(r"field `(.+?)`", str(problem))
                wrong.add(next(iter(_path(problem)), named[1] if named else ""))
                if not _left_out(rest, problem):
                    break
        return TableRead(None, frozenset(wrong))

    def lists(self, tables: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """Take the lists of tables out of a file: `[[providers]]` and the like."""
        return {name: self._tables_of(name, tables.pop(name, [])) for name in _NAMED_BY}

    def check_globs(self, tables: Mapping[str, Any]) -> None:
        """Find the globs that no text can be matched with."""
        for setting in GLOBS:
            first, *inner = setting.split(".")
            held = tables.get(first)
            for index, table in enumerate(held if isinstance(held, list) else [held]):
                place = Place(self._text, self._source, ".".join((first, *inner[:-1])), index)
                for glob in _texts_at(table, inner):
                    if broken := broken_class(glob):
                        hint = f"write the range of {broken} from its first sign to its last, as in [a-z]"
                        self._add(ConfigError(f"{place.of(inner[-1])}: the glob {glob!r} fits nothing", hint=hint))

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
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
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
        fields = _struct_at(kind, path).__struct_fields__
        unknown = _UNKNOWN.search(str(problem))
        words = choices_of(_struct_at(kind, path[:-1])) | dict(choices)
        told = explain(problem, place, fields, words, key_variable=key_variable)
        if not unknown or unknown[1] in fields or "api_key_env" in fields or len(self._keys.get(unknown[1], ())) != 1:
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


def _texts_at(value: Any, keys: Sequence[str]) -> Iterator[str]:
    """Yield the texts below a key of a table: one, those of a list or of a table's lists, or the names in a table of other values."""
    if isinstance(value, list):
        for item in value:
            yield from _texts_at(item, keys)
    elif isinstance(value, dict) and keys:
        yield from _texts_at(value.get(keys[0]), keys[1:])
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _texts_at(item, ()) if isinstance(item, list) else (name,)
    elif isinstance(value, str) and not keys:
        yield value


def _path(problem: msgspec.ValidationError) -> list[str]:
    """Return the keys that lead to the mistake, up to a list or a free key."""
    at = _AT.search(str(problem))
    return [part for part in (at[1] if at else "").partition("[")[0].split(".") if part]


def _left_out(table: Any, problem: msgspec.ValidationError) -> bool:
    """Remove the wrong part, and return False if it cannot be removed, as with a missing key."""
    unknown = _UNKNOWN.search(str(problem))
    path = [*_path(problem), *([unknown[1]] if unknown else [])]
    if not path or "missing required" in str(problem):
        return False
    for key in path[:-1]:
        table = table.get(key) if isinstance(table, dict) else None
    return isinstance(table, dict) and table.pop(path[-1], None) is not None


def _struct_at(kind: type[msgspec.Struct], path: Sequence[str]) -> type[msgspec.Struct]:
    """Return the table that a path leads to, or the last one on the way."""
    struct: type[msgspec.Struct] = kind
    for key in path:
        hint = get_type_hints(struct).get(key)
        if not (isinstance(hint, type) and issubclass(hint, msgspec.Struct)):
            break
        struct = hint
    return struct


def _line_of(problem: ConfigError) -> int:
    line = _LINE.search(problem.message)
    return int(line[1]) if line else 0

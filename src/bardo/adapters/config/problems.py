"""What is wrong in `bardo.toml`, said so that it can be mended: the file, the line, and what to write instead.

Names that other programs use for settings are rows. Secrets that stand in a configuration are named, and never shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType, UnionType
from typing import Any, Literal, Protocol, Union, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from bardo.values.errors import ConfigError
from bardo.values.redaction import is_secret, looks_like_key, may_be_secret

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
"""What is written in the place of a name at the top of the file."""

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
"""What is written in the place of a key of a table."""


def meant_key(table: str, key: str) -> str:
    """Return what to write for a key that a table does not have, empty where nothing is known of it."""
    if table.startswith("inference.pipeline.") and key in ("enabled", "enable", "on"):
        layer = table.removeprefix("inference.pipeline.")
        return f"leave it out: the profile below {_LAYERS} names which layers run, and [{table}] says how {layer} does"
    found = _KEYS.get(table, {}).get(key, "") if table else TABLES.get(key, "")
    if found.startswith(_NOTHING):
        return f"leave it out: {found.removeprefix(_NOTHING)}"
    return f"write {found}" if found else ""


ADVICE = (
    'name a variable that holds it: api_key_env for the provider\'s key, { env = "VARIABLE" } as the value of a header'
)
"""What to do about a secret in the file."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OTHER_NAMES = re.compile(r"key|token|secret|password|auth|bearer|credential", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?|\{env:(\w+)\}|os\.environ/(\w+)")
# Providers take their keys in these: bardo writes them itself.
_KEY_HEADERS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
_NO_LETTER = re.compile(r"[^A-Za-z0-9]+")


class HeaderVariable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The value of a header that stands in an environment variable: `{ env = "VARIABLE" }`."""

    env: str


class Entry(Protocol):
    """What is looked at of a `[[providers]]` table."""

    @property
    def id(self) -> str: ...
    @property
    def base_url(self) -> str: ...
    @property
    def base_urls(self) -> tuple[str, ...]: ...
    @property
    def api_key_env(self) -> str | tuple[str, ...]: ...
    @property
    def headers(self) -> Mapping[str, str | HeaderVariable]: ...


def variables_of(entry: Entry) -> tuple[str, ...]:
    """Return the variables that hold the keys of a provider: of several, calls take turns."""
    named = entry.api_key_env
    return ((named,) if named else ()) if isinstance(named, str) else named


def check_key_variables(entry: Entry, known: Sequence[str], where: Callable[[str], str]) -> None:
    """Raise ConfigError where `api_key_env` is no name of a variable, or names one twice. `known` are the preset's variables."""
    names = variables_of(entry)
    place = where("api_key_env")
    if not all(_VARIABLE.fullmatch(name) and not looks_like_key(name) for name in names):
        several = "is not the name" if isinstance(entry.api_key_env, str) else "holds what is not the name"
        message = f"{place}: api_key_env of provider {entry.id!r} {several} of an environment variable"
        raise ConfigError(message, hint=how_to_give_a_key(known[0] if known else variable_for(entry.id)))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        message = f"{place}: api_key_env of provider {entry.id!r} names {twice} twice"
        raise ConfigError(message, hint="name each variable once: each holds a key of its own")


def check_headers(entry: Entry, where: Callable[[str], str]) -> None:
    """Raise ConfigError for a header whose variable is none, or that names one as shells or other programs do: it would be sent so."""
    for name, value in entry.headers.items():
        place = f"{where(f'headers.{name}')}: the header {name} of provider {entry.id!r}"
        if isinstance(value, HeaderVariable):
            if not _VARIABLE.fullmatch(value.env) or looks_like_key(value.env):
                hint = f'run `export {variable_for(name, "")}=…` in the shell, and write {{ env = "{variable_for(name, "")}" }}'
                raise ConfigError(f"{place} does not name an environment variable", hint=hint)
        elif named := _REFERENCE.search(value):
            variable = next(filter(None, named.groups()))
            hint = f'write {name} = {{ env = "{variable}" }}'
            if name.lower() in _KEY_HEADERS:
                hint = f'leave the header out, and write api_key_env = "{variable}"'
            raise ConfigError(f"{place} names a variable, and is sent as it is", hint=hint)


def how_to_remove(entry: Entry, places: Sequence[str], known: Sequence[str]) -> str:
    """Say what to do about the secrets of a provider's table: `places` are their places, `known` the variables of its key."""
    if any(place.partition(".")[2].lower() in _KEY_HEADERS for place in places):
        variable = next(iter((*variables_of(entry), *known)), "") or variable_for(entry.id)
        return f"leave it out: {how_to_give_a_key(variable)}"
    return ADVICE


def variable_for(name: str, ending: str = "_API_KEY") -> str:
    """Return a variable that may hold the key of a provider called so, or the value of a header."""
    word = _NO_LETTER.sub("_", name).strip("_").upper() or "PROVIDER"
    return f"{'_' if word[0].isdigit() else ''}{word}{ending}"


def how_to_give_a_key(variable: str) -> str:
    """Say how a key is given to bardo without writing it into the file."""
    return (
        f'keys do not stand in the file: run `export {variable}=…` in the shell, and write api_key_env = "{variable}"'
    )


def means_a_key(name: str) -> bool:
    """Whether an unknown key of a provider's table was meant to hold the provider's key."""
    return _OTHER_NAMES.search(name) is not None


def secrets_of(entry: Entry) -> list[str]:
    """Return where secrets stand in a provider's table, each as it is called there."""
    places = [
        f"headers.{name}" for name, value in entry.headers.items() if isinstance(value, str) and is_secret(name, value)
    ]
    for url in (entry.base_url, *entry.base_urls):
        key = "base_url" if url is entry.base_url else "base_urls"
        try:
            address = urlsplit(url)
        except ValueError:
            continue
        if "@" in address.netloc:
            places.append(f"the user and password of {key}")
        if address.query:
            places.append(f"the query of {key}")
    return list(dict.fromkeys(places))


def address_secrets(settings: msgspec.Struct, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the passwords, and what may be secret of the queries, of all addresses in a configuration and in the variables it names."""
    found: set[str] = set()
    for name, text in _texts(settings, ""):
        for address in (text, environment.get(text, "") if name.endswith("_env") else ""):
            if "://" in address:
                found.update(_secrets_in(address))
    return tuple(sorted(found))


def _texts(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield every text in a configuration, with the name of its field."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            yield from _texts(getattr(value, field), field)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _texts(one, str(key))
    elif isinstance(value, list | tuple | set | frozenset):
        for one in value:
            yield from _texts(one, name)


def _secrets_in(address: str) -> Iterator[str]:
    """Yield what is secret of an address, also of one that is not written as it should be: a password may hold any character."""
    rest = address.partition("://")[2]
    user, at, _ = rest.rpartition("@")
    password = user.partition(":")[2] if at else ""
    for text in (password, *re.split(r"[@/?#:]", password)):
        yield from {text, unquote(text)}
    try:
        pairs = parse_qsl(address.partition("?")[2], keep_blank_values=False)
    except ValueError:
        return
    yield from (value for name, value in pairs if may_be_secret(name, value))


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

"""Secrets in a configuration: where they stand, which variables hold them instead, and how that is said without showing them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from bardo.values.errors import ConfigError
from bardo.values.secrets import is_secret, looks_like_key, may_be_secret

ADVICE = (
    'name a variable that holds it: api_key_env for the provider\'s key, { env = "VARIABLE" } as the value of a header'
)
"""Advice on a secret in the file."""

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
    """The fields read from a `[[providers]]` table."""

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
    secrets: set[str] = set()
    for name, text in _texts(settings, ""):
        for address in (text, environment.get(text, "") if name.endswith("_env") else ""):
            if "://" in address:
                secrets.update(_secrets_in(address))
    return tuple(sorted(secrets))


def _texts(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield every text in a configuration, with the name of its field."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            yield from _texts(getattr(value, field), field)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner, str(key))
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from _texts(inner, name)


def _secrets_in(address: str) -> Iterator[str]:
    """Yield the secrets of an address, also of a malformed one: a password may hold any character."""
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

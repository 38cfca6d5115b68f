"""Fields and parts of a request whose loss changes what the request means, from `catalog/data/meaningful_fields.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
import tomli

from bardo.values.errors import ConfigError
from bardo.values.request import Role


class MeaningfulField(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A field at the top of a body in `dialect`.

    It matters where its value, or what stands at the dotted path `at` inside it, is one of `only` and none of `unless`. `absent_at` are
    providers (globs) that speak the dialect and do not have the field. `code` is the dialect's own code of the refusal, `why` the
    reason, and `instead` what the caller may do.
    """

    dialect: str
    name: str
    at: str = ""
    only: tuple[Any, ...] = ()
    unless: tuple[Any, ...] = ()
    absent_at: tuple[str, ...] = ()
    code: str = ""
    why: str
    instead: str

    def matters(self, value: Any) -> bool:
        """Whether this value of the field changes what the request means."""
        for name in self.at.split(".") if self.at else ():
            value = value.get(name) if isinstance(value, dict) else None
        if value is None or value == "" or value in self.unless:
            return False
        return not self.only or value in self.only

    def absent(self, provider: str) -> bool:
        """Whether a provider that speaks the dialect does not have the field."""
        return any(fnmatchcase(provider, glob) for glob in self.absent_at)


class MeaningfulPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parts of messages of these roles, by their type in `dialect`, or by their first key where parts have no type.

    `name` is what they are called, each by its own kind where it is empty.
    """

    dialect: str
    kinds: tuple[str, ...]
    name: str = ""
    roles: tuple[Role, ...] = ("user",)


class MeaningfulFields:
    """All rows, by dialect. Never changed once made."""

    def __init__(self, fields: tuple[MeaningfulField, ...], parts: tuple[MeaningfulPart, ...]) -> None:
        self.parts = parts
        self.fields: dict[str, tuple[MeaningfulField, ...]] = {}
        for field in fields:
            self.fields[field.dialect] = (*self.fields.get(field.dialect, ()), field)
        self._names = {
            (part.dialect, role, kind): part.name or kind
            for part in parts
            for role in part.roles
            for kind in part.kinds
        }

    def part(self, dialect: str, role: Role, value: Any) -> str:
        """Return what a part that matters is called, empty for any other."""
        return self._names.get((dialect, role, kind_of_part(value)), "")


_BESIDE_CONTENT = frozenset({"thoughtSignature", "thought", "partMetadata", "videoMetadata", "mediaResolution"})


def kind_of_part(value: Any) -> str:
    """Return what a part of a message is in its own dialect. A part without a type is named after its content."""
    if not isinstance(value, dict):
        return ""
    named = value.get("type")
    if isinstance(named, str):
        return named
    return next((name for name in value if name not in _BESIDE_CONTENT), next(iter(value), ""))


@cache
def builtin_meaningful() -> MeaningfulFields:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/meaningful_fields.toml").read_text(encoding="utf-8")
    return read_meaningful(tomli.loads(text))


def read_meaningful(data: Mapping[str, Any]) -> MeaningfulFields:
    """Return typed rows. Raises ConfigError naming the mistake."""
    try:
        return MeaningfulFields(
            msgspec.convert(data.get("field", []), tuple[MeaningfulField, ...]),
            msgspec.convert(data.get("part", []), tuple[MeaningfulPart, ...]),
        )
    except msgspec.ValidationError as problem:
        raise ConfigError(f"meaningful_fields.toml: {problem}") from problem

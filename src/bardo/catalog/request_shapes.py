"""The demands of targets on the shape of a request: rows of `catalog/data/request_shapes.toml`, each with the refusal that tells it."""

from __future__ import annotations

import hashlib
import re
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Literal

import msgspec
import tomli

from bardo.catalog.matching import matches_any
from bardo.catalog.rows import DialectName, ProviderRow

_DIGITS = 8


class NameRule(msgspec.Struct, frozen=True, dict=True):
    """Which names of tools a target takes: `longest` signs of `letters` (empty: any), begun by one of `first`."""

    letters: str
    first: str
    longest: int

    @cached_property
    def _other_letter(self) -> re.Pattern[str]:
        return re.compile(f"[^{self.letters}]" if self.letters else r"(?!)")

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        letter = f"[{self.letters}]" if self.letters else "."
        begin = f"(?=[{self.first}])" if self.first else ""
        return re.compile(f"{begin}{letter}{{1,{self.longest}}}", re.DOTALL)

    def takes(self, name: str) -> bool:
        """Whether the target takes a name. Nothing is said of an empty one."""
        return not name or self._pattern.fullmatch(name) is not None

    def written(self, name: str) -> str:
        """Return a name that is taken: another one keeps what it can of itself, and ends with digits made of the whole name."""
        if self.takes(name):
            return name
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
        plain = self._other_letter.sub("_", name)
        if self.first and not re.match(f"[{self.first}]", plain):
            plain = f"_{plain}"
        return f"{plain[: self.longest - _DIGITS - 1]}_{digest}"


class ShapeRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One demand, and who makes it: the dialects, and the providers and models by globs (none: all), but for `not_providers`.

    `answered_calls`: each call has one result behind it, and each result a call. `unique_calls`: no two calls have one id.
    `tool_schemas`: schemas of tools are written as `subset`, a row of `schema_subsets.toml`, says, with
    `typed` each place has a type, with `objects` it is an object, also where JSON Schema takes true or false, with `modern` what older
    drafts write otherwise is that of 2020-12. `strict_tools`: so are those of tools with `strict: true`, of which there are at most `most`
    (0: any number). `google_schemas`: a schema in Google's own words has `fields` alone.
    `property_keys`: keys of the properties of a tool. `plain_root`: the schema of a tool is an object, without `oneOf` and the like on top.
    `alternating_roles`: no two turns of the user, or of the model, follow each other.
    `no_user_after_tool`: the model speaks between results and the user. `one_system`: text of the system stands at the beginning.
    `user_first`: the user says something before the model does. `assistant_fields`: `fields` of an assistant's message are refused.
    Models are named in small letters. `letters`, `first` and `longest` belong to names and keys (`NameRule`).
    """

    name: Literal[
        "tool_names",
        "property_keys",
        "plain_root",
        "tool_schemas",
        "strict_tools",
        "google_schemas",
        "answered_calls",
        "unique_calls",
        "alternating_roles",
        "no_user_after_tool",
        "one_system",
        "user_first",
        "assistant_fields",
    ]
    dialects: tuple[DialectName, ...]
    providers: tuple[str, ...] = ()
    not_providers: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    letters: str = ""
    first: str = ""
    longest: int = 0
    subset: str = ""
    typed: bool = False
    objects: bool = False
    modern: bool = False
    most: int = 0
    fields: tuple[str, ...] = ()
    refusal: str
    source: str

    def holds_for(self, dialect: str, provider: str, model: str) -> bool:
        """Whether a target makes the demand."""
        return (
            dialect in self.dialects
            and (not self.providers or matches_any(provider, self.providers))
            and not matches_any(provider, self.not_providers)
            and (not self.models or matches_any(model.lower(), self.models))
        )


class RequestShape(msgspec.Struct, frozen=True, kw_only=True):
    """All that one target demands. `tool_names` and `property_keys` are None if any is taken, `rules` are the names of the demands.

    `subset` is what it takes of JSON Schema in tools, empty where all; `typed`: each place of such a schema has a type, `objects`: it is no
    boolean, `modern`: it is none of an older draft. `strict_subset` and `most_strict` say the same of tools with `strict: true`.
    `assistant_fields` are those that no assistant's message may have, `schema_fields` those that a schema in Google's own words may (none:
    any).
    """

    tool_names: NameRule | None = None
    property_keys: NameRule | None = None
    rules: frozenset[str] = frozenset()
    subset: str = ""
    typed: bool = False
    objects: bool = False
    modern: bool = False
    strict_subset: str = ""
    most_strict: int = 0
    assistant_fields: tuple[str, ...] = ()
    schema_fields: frozenset[str] = frozenset()


def shape_at(row: ProviderRow, model: str) -> RequestShape:
    """Return what a model of a provider demands."""
    return _shape_of(row.dialect, row.id, model)


@lru_cache(maxsize=4096)
def _shape_of(dialect: str, provider: str, model: str) -> RequestShape:
    rules = [rule for rule in builtin_shape_rules() if rule.holds_for(dialect, provider, model)]
    named = {rule.name: NameRule(rule.letters, rule.first, rule.longest) for rule in reversed(rules)}
    schemas = next((rule for rule in rules if rule.name == "tool_schemas"), None)
    fields = {name: [rule for rule in rules if rule.name == name] for name in ("assistant_fields", "google_schemas")}
    strict = next((rule for rule in rules if rule.name == "strict_tools"), None)
    return RequestShape(
        tool_names=named.get("tool_names"),
        property_keys=named.get("property_keys"),
        rules=frozenset(named),
        subset="" if schemas is None else schemas.subset,
        typed=schemas is not None and schemas.typed,
        objects=schemas is not None and schemas.objects,
        modern=schemas is not None and schemas.modern,
        strict_subset="" if strict is None else strict.subset,
        most_strict=0 if strict is None else strict.most,
        assistant_fields=tuple(dict.fromkeys(name for rule in fields["assistant_fields"] for name in rule.fields)),
        schema_fields=frozenset(name for rule in fields["google_schemas"] for name in rule.fields),
    )


@cache
def builtin_shape_rules() -> tuple[ShapeRule, ...]:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/request_shapes.toml").read_text(encoding="utf-8")
    return tuple(msgspec.convert(tomli.loads(text)["rule"], list[ShapeRule]))

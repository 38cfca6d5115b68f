"""Fields of a request that several dialects have, from `catalog/data/shared_fields.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec
import tomli

from bardo.catalog.fragments import at_path, merge_fields, value_at, without_path


class ListSwitch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A field that is true or false in `dialect`, and in `in_dialect` an item of a list.

    `implied_by` is a field of both without which the list needs no switch, and with which the switch must be on.
    """

    dialect: str
    name: str
    in_dialect: str
    list: str
    item: str
    implied_by: str = ""


class SharedFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields that `dialects` share.

    `same` are dotted paths that they share, `moved` the paths of one field by dialect. `providers` are ids of the rows that are known to
    take them from a client of the other dialect; `specified`: the specifications of the dialects themselves have them, so that a server of
    which only the dialect is known gets them too, until it refuses one. `longest` are by dialect the most letters of a text. `words` are
    by dialect the only values that a field takes there, and `silent` those that say nothing.
    """

    dialects: tuple[str, ...]
    providers: tuple[str, ...]
    same: tuple[str, ...] = ()
    moved: tuple[dict[str, str], ...] = ()
    switch: tuple[ListSwitch, ...] = ()
    words: dict[str, dict[str, tuple[str, ...]]] = {}
    silent: tuple[str, ...] = ()
    specified: bool = False
    longest: dict[str, dict[str, int]] = {}

    def takes(self, dialect: str, path: str, value: object) -> bool:
        """Whether a field takes this value in a dialect."""
        words = self.words.get(dialect, {}).get(path)
        most = self.longest.get(dialect, {}).get(path)
        if most is not None and (not isinstance(value, str) or len(value) > most):
            return False
        return words is None or value in words

    def paths(self, source: str, target: str) -> list[tuple[str, str]]:
        """Return where each field stands in the one dialect, and where in the other."""
        return [*((path, path) for path in self.same), *((pair[source], pair[target]) for pair in self.moved)]


class GrantedField(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Values of a field of `dialects`, or items of its list, without which nothing is lost. `any` means each value.

    They ask for what every reply has, or are said in other words.
    """

    dialects: tuple[str, ...]
    name: str
    values: tuple[Any, ...] = ()
    any: bool = False


class _Rows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    default_dialect: str
    group: tuple[SharedFields, ...]
    granted: tuple[GrantedField, ...]


class FieldPlace(NamedTuple):
    """Where a dialect has a field of Chat: a dotted path, or an `item` of the list at it."""

    path: str
    item: str = ""

    def value(self, fields: Mapping[str, Any]) -> Any:
        """Return the value of the field, or None if there is none."""
        value = value_at(fields, self.path)
        if not self.item:
            return value
        return True if isinstance(value, list) and self.item in value else None

    def removed(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return `fields` without this one, and without what held nothing else."""
        left = without_path(fields, self.path)
        listed = value_at(fields, self.path) if self.item else None
        others = [other for other in listed if other != self.item] if isinstance(listed, list) else []
        return merge_fields(left, at_path(self.path, others)) if others else left


@cache
def default_dialect() -> str:
    """Return the dialect whose fields a request of the library has, which has no dialect of its own."""
    return _rows().default_dialect


def not_granted(dialect: str, name: str, value: Any) -> Any:
    """Return what of a field's value is lost where another dialect has no such field, or None if nothing is."""
    row = _granted().get((dialect or default_dialect(), name))
    if row is None:
        return value
    if row.any:
        return None
    if isinstance(value, list):
        return [item for item in value if item not in row.values] or None
    return None if any(type(value) is type(row_value) and value == row_value for row_value in row.values) else value


def shared_between(source: str, target: str) -> tuple[SharedFields, ...]:
    """Return the rows that say what two dialects have in common. An empty name is the default dialect."""
    return _by_pair().get((source or default_dialect(), target or default_dialect()), ())


@cache
def chat_fields_elsewhere(dialect: str) -> Mapping[str, FieldPlace]:
    """Return where a dialect has the fields that Chat has under another name or in another place, by Chat's names."""
    chat = default_dialect()
    places: dict[str, FieldPlace] = {}
    for row in shared_between(chat, dialect):
        places |= {pair[chat]: FieldPlace(pair[dialect]) for pair in row.moved}
        places |= {switch.name: FieldPlace(switch.list, switch.item) for switch in row.switch if switch.dialect == chat}
    return places


@cache
def shared_rows() -> tuple[SharedFields, ...]:
    """Return the rows that come with bardo."""
    return _rows().group


@cache
def _rows() -> _Rows:
    text = files("bardo.catalog").joinpath("data/shared_fields.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomli.loads(text), _Rows)


@cache
def _granted() -> dict[tuple[str, str], GrantedField]:
    return {(dialect, row.name): row for row in _rows().granted for dialect in row.dialects}


@cache
def _by_pair() -> dict[tuple[str, str], tuple[SharedFields, ...]]:
    pairs = {(name, other) for row in shared_rows() for name in row.dialects for other in row.dialects if name != other}
    return {pair: tuple(row for row in shared_rows() if {*pair} <= {*row.dialects}) for pair in pairs}

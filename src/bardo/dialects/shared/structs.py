"""Wire formats as structs: a dialect declares what its bodies look like, and what came is read into that.

A value is looked at by msgspec, strictly. Where it has fields that its struct does not have, or blocks of a type that the dialect does not
have, it is looked at a second time: such fields are put beside (`others`), such blocks kept whole (`Unknown`), and the rest is read
into the same structs. So there is one model, and only the rare value pays for the second look.

The files of these structs do without `from __future__ import annotations`: msgspec would evaluate the text of each annotation one by one,
which is half of the processor time of a dialect's first request.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from types import UnionType
from typing import Any, ClassVar, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints, overload

import msgspec

from bardo.dialects.shared.json_values import kind_of
from bardo.values.blocks import Carried
from bardo.values.errors import InvalidRequest

OTHERS = "\uffff"
"""The name under which fields that a struct does not have stand beside it, and the type of blocks that are kept whole. A client that sends
it cannot mean it: what stands there must be of a class that no JSON value has."""


class Others(dict[str, Any]):
    """Fields that a struct does not have, by their names."""


class Whole:
    """A JSON value as it came."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Wire(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, gc=False):
    """A JSON object of a dialect. `others` are the fields that it has no name for, `CARRIED` names those that bardo has no word for.

    `ONE_SPELLING`: in a dialect in camel case, names in snake case are names that it does not have.
    """

    CARRIED: ClassVar[tuple[str, ...]] = ()
    ONE_SPELLING: ClassVar[bool] = False
    others: Others | None = msgspec.field(name=OTHERS, default=None)


class Unknown(msgspec.Struct, tag=OTHERS, gc=False):
    """A block of a type that the dialect does not have: in a union of blocks it stands for all of those."""

    whole: Whole


def names_of(kind: type[Wire]) -> frozenset[str]:
    """Return the names of the fields that a struct reads, without those that it only carries."""
    return frozenset(field.encode_name for field in msgspec.structs.fields(kind)).difference((OTHERS, *kind.CARRIED))


W = TypeVar("W")


@overload
def read(value: Any, kind: type[W], at: str) -> W: ...


@overload
def read(value: Any, kind: UnionType, at: str) -> Any: ...


def read(value: Any, kind: Any, at: str) -> Any:
    """Return a JSON value as a struct. Raises InvalidRequest naming the field, whose path begins with `at`."""
    try:
        return fitted(value, kind)
    except msgspec.ValidationError as problem:
        _refuse(str(problem), at)


def fitted(value: Any, kind: type[W]) -> W:
    """Return a JSON value as a struct. Raises msgspec.ValidationError where it does not fit."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return msgspec.convert(_apart(value, kind), kind)


def read_apart(value: Any, kind: type[W]) -> W:
    """Return a provider's JSON value as a struct; what that has no name for stands beside it. Raises msgspec.ValidationError."""
    return msgspec.convert(_apart(value, kind), kind)


def wrong_field(problem: msgspec.ValidationError) -> tuple[str, str]:
    """Return the path of the field that msgspec found wrong, and what stands there in JSON's words."""
    match = _EXPECTED.fullmatch(str(problem))
    if match is None:
        return "", str(problem)
    return (match["path"] or "").removeprefix("."), _KINDS.get(match["given"], match["given"] or "nothing")


def carried_fields(struct: Wire, misplaced: tuple[str, ...] = ()) -> dict[str, Any] | None:
    """Return the fields of a struct that are only carried, without those that are null, or None if there are none.

    `misplaced` are fields which are read in other messages only: where they say something in this one, they are carried too.
    """
    fields: dict[str, Any] = {}
    for name in misplaced:
        if value := getattr(struct, name):
            fields[name] = as_it_came(value)
    for name in struct.CARRIED:
        if (value := getattr(struct, name)) is not None:
            fields[name] = value
    if struct.others is not None:
        fields.update((name, value) for name, value in struct.others.items() if value is not None)
    return fields or None


def carried(value: Wire | dict[str, Any] | None, dialect: str) -> Carried | None:
    """Return fields of a dialect that are passed on, those of a struct or these, or None if there are none."""
    fields = carried_fields(value) if isinstance(value, Wire) else value
    return Carried(dialect, fields) if fields else None


def carried_with(value: Wire, name: str, inner: object, dialect: str) -> Carried | None:
    """Return fields of a struct that are passed on, among them those of another that it holds under a name."""
    beside = carried_fields(inner) if isinstance(inner, Wire) else None
    return carried({**(carried_fields(value) or {}), name: beside} if beside else value, dialect)


def as_it_came(value: Any) -> Any:
    """Return the JSON value that a struct was read from, without its fields that are null."""
    if isinstance(value, list):
        return [*map(as_it_came, value)]
    if isinstance(value, Unknown):
        return value.whole.value
    if not isinstance(value, Wire):
        return value
    config = value.__struct_config__
    written: dict[str, Any] = {config.tag_field: config.tag} if config.tag_field else {}
    for field in msgspec.structs.fields(value):
        held = getattr(value, field.name)
        if held is not None and field.encode_name != OTHERS:
            written[field.encode_name] = as_it_came(held)
    return written | (value.others or {})


_Part = Callable[[Any], Any]


class _NoSuchType(Exception):
    """A block says that it is of a type which its place does not have."""


def _apart(value: Any, kind: Any) -> Any:
    """Return a value with what its struct does not have put apart."""
    try:
        return _part_of(kind)(value)
    except _NoSuchType:
        return value


@cache
def _part_of(kind: Any) -> _Part:
    """Return a function that moves the fields that a type does not have apart, and leaves other faults of a value alone."""
    if get_origin(kind) is list:
        return _part_of_list(kind)
    if get_origin(kind) in (Union, UnionType):
        return _part_of_union(get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Wire):
        return _part_of_struct(kind)
    return _as_it_is


def _as_it_is(value: Any) -> Any:
    return value


def _part_of_list(kind: Any) -> _Part:
    (item_kind,) = get_args(kind)
    inner = _part_of(item_kind)

    def item_apart(item: Any) -> Any:
        # Of a history most items fit, and one that does is a struct from here on.
        try:
            return msgspec.convert(item, item_kind)
        except msgspec.ValidationError:
            return inner(item)

    # A union is taken apart faster than msgspec looks at its type.
    part = item_apart if isinstance(item_kind, type) and issubclass(item_kind, Wire) else inner

    def put_apart(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        try:
            # An odd field beside a long history does not have all of that looked through.
            msgspec.convert(value, kind)
        except msgspec.ValidationError:
            return [*map(part, value)]
        return value

    return put_apart


def _part_of_struct(kind: type[Wire]) -> _Part:
    types = get_type_hints(kind)
    fields = {field.encode_name: _part_of(types[field.name]) for field in msgspec.structs.fields(kind)}
    fields.pop(OTHERS)
    tag = kind.__struct_config__.tag_field
    if tag:
        fields[tag] = _as_it_is
    looked_at = {name: part for name, part in fields.items() if part is not _as_it_is}
    # Of a dialect in camel case, the other spelling may be read too.
    spelled = {field.name: field.encode_name for field in msgspec.structs.fields(kind) if field.encode_name in fields}
    if kind.ONE_SPELLING:
        spelled.clear()

    def put_apart(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if fields.keys() >= value.keys() and looked_at.keys().isdisjoint(value):
            return value
        apart: dict[str, Any] = {}
        others = Others()
        for name, item in value.items():
            field = name if name in fields else spelled.get(name)
            if field is None:
                others[name] = item
            elif item is not None or field not in apart:
                # A field in both spellings is what the one says that is not null.
                apart[field] = item
        for name, part in looked_at.items():
            if name in apart:
                apart[name] = part(apart[name])
        if others:
            apart[OTHERS] = others
        return apart

    return put_apart


def _part_of_union(kinds: tuple[Any, ...]) -> _Part:
    structs = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Wire)]
    lists = [_part_of(kind) for kind in kinds if get_origin(kind) is list]
    tags = {kind.__struct_config__.tag: _part_of(kind) for kind in structs}
    keeps = Unknown in kinds

    def put_apart(value: Any) -> Any:
        if lists and isinstance(value, list):
            return lists[0](value)
        if not structs or not isinstance(value, dict):
            return value
        if None in tags:
            return tags[None](value)
        tag = value.get("type")
        if type(tag) is not str:
            return value
        try:
            if tag in tags:
                return tags[tag](value)
            raise _NoSuchType
        except _NoSuchType:
            if keeps:
                return {"type": OTHERS, "whole": Whole(value)}
            raise

    return put_apart


_EXPECTED = re.compile(
    r"Expected `(?P<wanted>[^`]*)`(?:, got `(?P<given>[^`]*)`)?(?: - at `\$(?P<path>[^`]*)`)?", re.DOTALL
)
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]*)`(?: - at `\$(?P<path>[^`]*)`)?", re.DOTALL)
_NO_TAG = re.compile(r"Invalid value (?P<value>.*?)(?: - at `\$(?P<path>[^`]*)`)?", re.DOTALL)
# The types that msgspec names, in JSON's words.
_KINDS = {kind.__name__: kind_of(kind()) for kind in (str, bool, int, float, list, dict)}
_KINDS |= {"array": kind_of([]), "object": kind_of({})}


def _refuse(problem: str, at: str) -> NoReturn:
    """Say in the words of all dialects what msgspec found wrong."""
    if match := _MISSING.fullmatch(problem):
        path = _path(at, f"{match['path'] or ''}.{match['name']}")
        raise InvalidRequest(f"{path} is required", param=path)
    if match := _EXPECTED.fullmatch(problem):
        path = _path(at, match["path"] or "")
        if match["given"] in ("null", "NoneType") and not path.endswith("]"):
            raise InvalidRequest(f"{path} is required", param=path)
        wanted = " or ".join(
            dict.fromkeys(_KINDS.get(kind, kind) for kind in match["wanted"].split(" | ") if kind != "null")
        )
        given = match["given"]
        instead = f", not {_KINDS.get(given, given)}" if given else ""
        raise InvalidRequest(f"{path} must be {wanted}{instead}", param=path)
    if match := _NO_TAG.fullmatch(problem):
        path = _path(at, match["path"] or "")
        raise InvalidRequest(f"{path} is {match['value']}", param=path)
    raise InvalidRequest(f"{at or 'the body'} has the wrong shape: {problem}", param=at or None)


def _path(at: str, path: str) -> str:
    return f"{at}{path}" if at else path.removeprefix(".")

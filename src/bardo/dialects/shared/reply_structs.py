"""Replies as structs: what a provider sends is read into them as far as it fits, where what a client sends must fit.

A field of another type than its own stands in `others`, as one does that the struct has no name for. In a list of objects that may be null,
any other value is null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from bardo.dialects.shared.bounded_json import SLICED_BYTES, has_few_brackets
from bardo.dialects.shared.json_values import JsonObject, WrongShape, decode_leniently, kind_of
from bardo.dialects.shared.structs import OTHERS, Others, Unknown, Whole, Wire
from bardo.values.events import Event

W = TypeVar("W", bound=Wire)


class ReplyForm(Generic[W]):
    """How a reply, or a frame of one, is read into its struct."""

    __slots__ = ("_decode", "_struct")

    def __init__(self, struct: type[W]) -> None:
        self._struct = struct
        self._decode: Callable[[bytes], W] = msgspec.json.Decoder(struct).decode

    def decode_strict(self, data: bytes) -> W | None:
        """Return what any strict reader of JSON can read and the struct has names for; None for anything else."""
        if len(data) >= SLICED_BYTES:
            return None
        try:
            reply = self._decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        return reply if has_few_brackets(data) else None

    def decode(self, data: bytes, report: list[Event] | None = None) -> W:
        """Return a JSON object; `report` takes the event that tells of mending. Raises ValueError for no JSON, WrongShape for no object."""
        reply = self.decode_strict(data)
        if reply is not None:
            return reply
        value = decode_leniently(data, report)
        if type(value) is not dict:
            raise WrongShape(f"it is {kind_of(value)}")
        return read_liberally(value, self._struct)


def read_liberally(value: JsonObject, struct: type[W]) -> W:
    """Return an object as a struct of which no field is required."""
    names = _names_of(struct)
    fitting = value
    if not names >= value.keys():
        # Mostly the object's own names alone are odd, and all that they stand beside is read in one go.
        fitting = {}
        others = Others()
        for name, item in value.items():
            (fitting if name in names else others)[name] = item
        fitting[OTHERS] = others
    try:
        return msgspec.convert(fitting, struct)
    except (msgspec.ValidationError, RecursionError):
        read = _reader_of(struct)(value)
        assert isinstance(read, struct)
        return read


def held(struct: Wire, name: str) -> object:
    """Return the value of a field, also one of another type than its own."""
    value: object = getattr(struct, name, None)
    missing = value is None or value is msgspec.UNSET
    return struct.others.get(name) if missing and struct.others is not None else value


@cache
def _names_of(struct: type[Wire]) -> frozenset[str]:
    """Return the names of the fields of an object, and of that which tells its type."""
    config = struct.__struct_config__
    names = {field.encode_name for field in msgspec.structs.fields(struct)} - {OTHERS}
    return frozenset(names | {config.tag_field} if config.tag_field else names)


_Reader = Callable[[object], object]
_UNFIT = object()


@cache
def _reader_of(kind: object) -> _Reader:
    """Return what reads a value of some type: it gives _UNFIT for any other."""
    if kind in (object, Any):
        return lambda value: value
    if kind is Unknown:
        return lambda value: Unknown(Whole(value))
    if isinstance(kind, type) and issubclass(kind, Wire):
        return _struct_reader(kind)
    if get_origin(kind) in (Union, UnionType):
        return _union_reader(get_args(kind))
    if get_origin(kind) is list and get_args(kind)[0] not in (object, Any):
        return _list_reader(get_args(kind)[0])
    plain = get_origin(kind) or kind
    return lambda value: value if type(value) is plain else _UNFIT


def _plain_types(kinds: Sequence[object]) -> frozenset[object]:
    """Return those of these types whose values are taken as they are."""
    return frozenset(kind for kind in kinds if kind in (str, int, float, bool, NoneType))


def _union_reader(kinds: Sequence[object]) -> _Reader:
    plain = _plain_types(kinds)
    # A block of a type that the dialect does not have is what no other member reads.
    others = sorted((kind for kind in kinds if kind not in plain), key=lambda kind: kind is Unknown)
    readers = [_reader_of(kind) for kind in others]

    def read_member(value: object) -> object:
        if type(value) in plain:
            return value
        for reader in readers:
            fitting = reader(value)
            if fitting is not _UNFIT:
                return fitting
        return _UNFIT

    return read_member


def _list_reader(kind: object) -> _Reader:
    reader = _reader_of(kind)
    kinds = get_args(kind)
    holds_objects = NoneType in kinds and any(isinstance(kind, type) and issubclass(kind, Wire) for kind in kinds)
    otherwise = None if holds_objects else _UNFIT

    def read_list(value: object) -> object:
        if type(value) is not list:
            return _UNFIT
        items = [otherwise if (fitting := reader(item)) is _UNFIT else fitting for item in value]
        return _UNFIT if any(item is _UNFIT for item in items) else items

    return read_list


def _struct_reader(struct: type[Wire]) -> _Reader:
    types = get_type_hints(struct)
    fields = {
        field.encode_name: (field.name, _plain_types(get_args(types[field.name])), _reader_of(types[field.name]))
        for field in msgspec.structs.fields(struct)
        if field.encode_name != OTHERS
    }
    required = {field.name for field in msgspec.structs.fields(struct) if field.required}
    tag_field, tag = struct.__struct_config__.tag_field, struct.__struct_config__.tag

    def read_struct(value: object) -> object:
        if type(value) is not dict or (tag_field and value.get(tag_field) != tag):
            return _UNFIT
        values: dict[str, object] = {}
        others: Others | None = None
        for name, item in value.items():
            reading = fields.get(name)
            fitting = _UNFIT
            if reading is not None:
                field, plain, reader = reading
                fitting = item if type(item) in plain else reader(item)
            if fitting is not _UNFIT:
                values[field] = fitting
            elif name != tag_field:
                others = Others() if others is None else others
                others[name] = item
        if required and not required <= values.keys():
            return _UNFIT
        return struct(**values) if others is None else struct(**values, others=others)  # type: ignore[arg-type]

    return read_struct

"""What belongs to a block or a reply and arrives in pieces: fields of a dialect, and opaque state. Each piece takes constant time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Self

from bardo.values.blocks import Carried, Opaque


class CarriedFields:
    """Fields of one dialect: lists are appended to, objects updated, anything else is replaced.

    Fields of another dialect replace them all.
    """

    __slots__ = ("_dialect", "_fields", "_own", "_replaced")

    def __init__(self, dialect: str = "") -> None:
        self._dialect = dialect
        self._replaced = ""
        self._fields: dict[str, Any] = {}
        self._own: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._dialect)

    @property
    def fields(self) -> dict[str, Any]:
        """The fields, to be read and not to be kept."""
        return self._fields

    def merge(self, dialect: str, fields: dict[str, Any]) -> None:
        """Add fields. Once those of a second dialect come, which the client's is, further ones of the first are not kept."""
        if dialect != self._dialect:
            if dialect != self._replaced or not dialect:
                self._replaced, self._dialect = self._dialect, dialect
                self._fields, self._own = dict(fields), set()
            return
        for name, value in fields.items():
            before = self._fields.get(name)
            if isinstance(before, list) and isinstance(value, list):
                self._extend(name, before, value)
            elif isinstance(before, dict) and isinstance(value, dict):
                self._update(name, before, value)
            else:
                self._fields[name] = value
                self._own.discard(name)

    def pop(self, name: str) -> Any:
        """Take a field out; None where it is absent."""
        return self._fields.pop(name, None)

    def carried(self) -> Carried | None:
        """Return the fields as a value, None where none came."""
        if not self._dialect:
            return None
        copied = {name: value.copy() if name in self._own else value for name, value in self._fields.items()}
        return Carried(self._dialect, copied)

    def _extend(self, name: str, before: list[Any], value: list[Any]) -> None:
        if name in self._own:
            before.extend(value)
        else:
            # The first list belongs to the event that brought it.
            self._fields[name] = [*before, *value]
            self._own.add(name)

    def _update(self, name: str, before: dict[str, Any], value: dict[str, Any]) -> None:
        if name in self._own:
            before.update(value)
        else:
            # The first object belongs to the event that brought it.
            self._fields[name] = {**before, **value}
            self._own.add(name)


class OpaqueStates:
    """Opaque state of one block. A later piece of a kind replaces the earlier (OpenAI sends a provisional ciphertext first); redacted
    thinking is kept piece by piece."""

    __slots__ = ("_by_kind",)

    def __init__(self) -> None:
        self._by_kind: dict[str, Opaque] = {}

    @classmethod
    def of(cls, states: Iterable[Opaque]) -> Self:
        """Return what these pieces, in order, amount to."""
        made = cls()
        for opaque in states:
            made.add(opaque)
        return made

    def __bool__(self) -> bool:
        return bool(self._by_kind)

    def __iter__(self) -> Iterator[Opaque]:
        return iter(self._by_kind.values())

    def add(self, opaque: Opaque) -> None:
        """Add a piece."""
        key = f"redacted {len(self._by_kind)}" if opaque.kind == "redacted" else opaque.kind
        self._by_kind.pop(key, None)
        self._by_kind[key] = opaque

    def states(self) -> tuple[Opaque, ...]:
        """Return the pieces in order."""
        return tuple(self._by_kind.values())

    def take(self) -> tuple[Opaque, ...]:
        """Return the pieces in order, and forget them."""
        states = self.states()
        self._by_kind.clear()
        return states

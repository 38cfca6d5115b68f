"""A block of a reply that has begun and not ended, as the readers of Anthropic, Converse and Cohere keep it."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from bardo.values.blocks import Opaque
from bardo.values.events import Event, OpaqueState

KindT = TypeVar("KindT")


class OpenBlock(Generic[KindT]):
    """One block. `kind` is the dialect's own; `has_content`: a piece of it was not empty.

    `initial` are the arguments with which a call began, `pieces` are texts that are joined at its end, and `value` is what a block of an
    unknown kind holds.
    """

    __slots__ = ("has_content", "initial", "kind", "number", "pieces", "value")

    def __init__(self, number: int, kind: KindT) -> None:
        self.number = number
        self.kind = kind
        self.has_content = False
        self.initial = ""
        self.pieces: list[str] = []
        self.value: dict[str, Any] = {}


def add_piece(value: dict[str, Any], piece: dict[str, Any]) -> None:
    """Add a piece to a block of an unknown kind: texts and lists go on, any other field is replaced."""
    for name, more in piece.items():
        held = value.get(name)
        joins = isinstance(held, str | list) and type(held) is type(more)
        value[name] = held + more if joins else more


def add_states(number: int, states: tuple[Opaque, ...], out: list[Event]) -> None:
    """Add opaque states to a block."""
    out.extend(OpaqueState(number, state) for state in states)

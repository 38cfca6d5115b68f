"""What a rewrite says of itself, and what all rewrites of one schema share."""

from __future__ import annotations

import re
from collections import deque
from typing import Any, Literal, TypeAlias

import msgspec

from bardo.structured.subsets import Subset

Effect = Literal["lossless", "narrowing", "widening"]
Schema: TypeAlias = dict[str, Any]
MAX_PLACES = 20_000
"""Places a rewritten schema may have: merging and unrolling multiply them."""
MAX_DEEP = 64
"""Levels of places inside one another."""


class Rewrite(msgspec.Struct, frozen=True, kw_only=True):
    """One change to a schema.

    `path` is a JSON Pointer into the caller's schema, references followed. `effect`: "lossless", all answers stay possible and come
    back as the caller's; "narrowing", every answer is valid and some can no longer be said; "widening", answers that break the
    caller's schema become possible, and only judging them finds those.
    """

    kind: str
    path: str
    effect: Effect
    note: str


class Inexpressible(Exception):
    """The target's subset has no words for the schema; `path` says where."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path or 'the root'}: {reason}")
        self.path = path
        self.reason = reason


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where the walk is: `opened` are the references written out on the way, `optional` whether a property may be left out above."""

    path: str = ""
    depth: int = 0
    opened: tuple[str, ...] = ()
    optional: bool = False

    def inside(self, *parts: str | int, optional: bool = False) -> Place:
        """Return the place of a part of the schema."""
        path = self.path + "".join("/" + escaped(str(part)) for part in parts)
        return Place(path=path, depth=self.depth + 1, opened=self.opened, optional=self.optional or optional)

    def opening(self, reference: str) -> Place:
        """Return the same place with one more reference written out."""
        return Place(path=self.path, depth=self.depth, opened=(*self.opened, reference), optional=self.optional)


class Work:
    """One rewriting: the root, the target's subset, the entries so far, and the definitions that are kept."""

    def __init__(self, root: Schema, subset: Subset, *, recursive: frozenset[str], unroll: bool) -> None:
        self.root = root
        self.subset = subset
        self.recursive = recursive
        self.unroll = unroll
        self.optional_left = subset.limits.optional
        self.waiting: deque[tuple[str, str]] = deque()
        self.definitions: dict[str, Any] = {}
        self._entries: dict[Rewrite, None] = {}
        self._names: dict[str, str] = {}
        self._places = 0

    @property
    def entries(self) -> tuple[Rewrite, ...]:
        """All entries, in order."""
        return tuple(self._entries)

    def note(self, kind: str, place: Place, effect: Effect, note: str) -> None:
        """Add an entry, once."""
        self._entries[Rewrite(kind=kind, path=place.path, effect=effect, note=note)] = None

    def enter(self, place: Place) -> None:
        """Count a place. Raises Inexpressible beyond the bounds."""
        self._places += 1
        if self._places > MAX_PLACES:
            raise Inexpressible(place.path, f"written out, the schema has more than {MAX_PLACES:,} places")
        if place.depth > MAX_DEEP:
            raise Inexpressible(place.path, f"it nests deeper than {MAX_DEEP} levels")

    def kept(self, reference: str) -> str:
        """Return the name under which the target of a reference stands in `$defs`; its body is written later."""
        name = self._names.get(reference)
        if name is None:
            name = self._free_name(reference)
            self._names[reference] = name
            self.waiting.append((reference, name))
        return name

    def _free_name(self, reference: str) -> str:
        last = reference.rsplit("/", 1)[-1].lstrip("#") or "root"
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", last)[:60]
        taken, name, number = set(self._names.values()), plain or "part", 2
        while name in taken:
            name, number = f"{plain}_{number}", number + 1
        return name


def escaped(part: str) -> str:
    """Return one part of a JSON Pointer."""
    return part.replace("~", "~0").replace("/", "~1")

"""Where a rewriting is in its schema, what it says of each change, and what all places of one schema share."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import msgspec

from bardo.structured.extraction import pointer
from bardo.structured.rewrite.facts import needs_unrolling, recursive
from bardo.structured.rewrite.inverse import Inverse, Named
from bardo.structured.rewrite.keywords import Schema
from bardo.structured.subsets import Subset

Effect = Literal["lossless", "narrowing", "widening"]
MAX_PLACES = 20_000
"""Places a rewritten schema may have: merging and unrolling multiply them."""
MAX_DEEP = 64
"""Levels of places inside one another."""
_LONGEST = 200


class Rewrite(msgspec.Struct, frozen=True, kw_only=True):
    """One change to a schema.

    `path` is a JSON Pointer into the caller's schema, references followed. `effect`: "lossless", all answers stay possible and come
    back as the caller's; "narrowing", every answer is valid and some are no longer possible; "widening", answers that break the
    caller's schema become possible, and only judging them finds those.
    """

    kind: str
    path: str
    effect: Effect
    note: str


class Inexpressible(Exception):
    """The target's subset has no keywords for the schema; `path` says where."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path or 'the root'}: {reason}")
        self.path = path
        self.reason = reason


class RewrittenPart(msgspec.Struct, frozen=True):
    """A rewritten schema, and the inverse for a value at its place, or None if the value stays as it is."""

    schema: Schema
    inverse: Inverse | None = None


Build: TypeAlias = "Callable[[Any, Place], RewrittenPart | None]"


class RewriteContext:
    """The common state of all places of one schema: its root, the target's subset, the entries so far, and the kept definitions."""

    def __init__(self, root: Schema, subset: Subset, build: Build) -> None:
        self.root = root
        self.subset = subset
        self.build = build
        self.recursive = recursive(root)
        optional = subset.recursion == "optional" and needs_unrolling(root, self.recursive)
        self.unrolls = optional or subset.recursion == "unroll"
        self.optional_left = subset.limits.optional
        self.waiting: deque[tuple[str, str]] = deque()
        self.definitions: Schema = {}
        self.inverses: Named = {}
        self.entries: dict[Rewrite, None] = {}
        self.small: dict[str, bool] = {}
        self.places = 0
        self._names: dict[str, str] = {}
        self._used: dict[str, int] = {}

    def name_of(self, reference: str) -> str:
        """Return the name under which the target of a reference stands in `$defs`; its body is written later."""
        name = self._names.get(reference)
        if name is None:
            name = self._names[reference] = self._free_name(reference)
            self.waiting.append((reference, name))
        return name

    def _free_name(self, reference: str) -> str:
        last = reference.rsplit("/", 1)[-1].lstrip("#") or "root"
        plain = name = re.sub(r"[^A-Za-z0-9_-]", "_", last)[:60] or "part"
        while name in self._used:
            self._used[plain] += 1
            name = f"{plain}_{self._used[plain]}"
        self._used[name] = 1
        return name


class Place:
    """One place on the walk through a schema. `opened`: the references that were written out on the way to it."""

    __slots__ = ("_dropped", "depth", "opened", "path", "rewriting", "subset")

    def __init__(
        self,
        rewriting: RewriteContext,
        path: str = "",
        depth: int = 0,
        opened: tuple[str, ...] = (),
        dropped: list[str] | None = None,
    ) -> None:
        self.rewriting = rewriting
        self.subset = rewriting.subset
        self.path = path
        self.depth = depth
        self.opened = opened
        self._dropped: list[str] = [] if dropped is None else dropped

    def inside(self, *steps: str | int) -> Place:
        """Return the place of a part of this schema."""
        return Place(self.rewriting, self.path + pointer(steps), self.depth + 1, self.opened)

    def opening(self, reference: str) -> Place:
        """Return the same place with one more reference written out."""
        return Place(self.rewriting, self.path, self.depth, (*self.opened, reference), self._dropped)

    def enter(self) -> None:
        """Count this place. Raises Inexpressible beyond the bounds."""
        self.rewriting.places += 1
        if self.rewriting.places > MAX_PLACES:
            raise Inexpressible(self.path, f"written out, the schema has more than {MAX_PLACES:,} places")
        if self.depth > MAX_DEEP:
            raise Inexpressible(self.path, f"it nests deeper than {MAX_DEEP} levels")

    def build(self, schema: Any, *steps: str | int) -> RewrittenPart | None:
        """Rewrite a part of this schema, or None if no value is valid there. Raises Inexpressible."""
        return self.rewriting.build(schema, self.inside(*steps))

    def note(self, kind: str, effect: Effect, note: str) -> None:
        """Add an entry about this place, once."""
        self.rewriting.entries[Rewrite(kind=kind, path=self.path, effect=effect, note=note)] = None

    def drop(self, keyword: str, value: Any, why: str = "") -> None:
        """Drop a rule whose absence admits more values."""
        written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        self._dropped.append(f"{keyword} {written if len(written) <= _LONGEST else written[:_LONGEST] + '…'}")
        self.note(f"{keyword}_dropped", "widening", why or f"{keyword} is not taken")

    def described(self, schema: Schema) -> Schema:
        """Return a schema whose description names the rules that were dropped here."""
        if not self._dropped:
            return schema
        dropped = f"Must hold: {'; '.join(self._dropped)}."
        before = schema.get("description")
        return {**schema, "description": f"{before} {dropped}" if isinstance(before, str) and before else dropped}

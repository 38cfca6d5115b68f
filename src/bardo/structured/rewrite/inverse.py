"""The way back: what must be done to an answer under the rewritten schema to make it one under the caller's.

An inverse follows the shape of the answer. Where the answer has another shape it is left alone, for judging finds that better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from bardo.structured.rewrite.entries import Schema
from bardo.structured.validation import Checker, checker

Named = Mapping[str, "Inverse | None"]
"""The inverses of kept definitions, by name."""


class Inverse(Protocol):
    """One step back."""

    def restore(self, value: Any, named: Named) -> Any:
        """Return the value as the caller's schema has it; what is given is not changed."""
        ...

    def names(self) -> frozenset[str]:
        """Return the definitions it follows."""
        ...

    def acts(self) -> bool:
        """Return whether it changes anything itself, definitions aside."""
        ...


@dataclass(frozen=True, slots=True)
class Members:
    """Members of an object: those in `dropped` are left out where they are null, the others restored one by one."""

    dropped: frozenset[str]
    each: dict[str, Inverse]

    def restore(self, value: Any, named: Named) -> Any:
        if not isinstance(value, dict):
            return value
        kept = {name: one for name, one in value.items() if not (one is None and name in self.dropped)}
        return {name: self.each[name].restore(one, named) if name in self.each else one for name, one in kept.items()}

    def names(self) -> frozenset[str]:
        return frozenset().union(*(inner.names() for inner in self.each.values()))

    def acts(self) -> bool:
        return bool(self.dropped) or any(inner.acts() for inner in self.each.values())


@dataclass(frozen=True, slots=True)
class Items:
    """Items of an array: the first ones each by its own, all others by `rest`."""

    first: tuple[Inverse | None, ...]
    rest: Inverse | None

    def restore(self, value: Any, named: Named) -> Any:
        if not isinstance(value, list):
            return value
        inner = (self.first[index] if index < len(self.first) else self.rest for index in range(len(value)))
        return [one if step is None else step.restore(one, named) for one, step in zip(value, inner, strict=True)]

    def names(self) -> frozenset[str]:
        return frozenset().union(*(inner.names() for inner in (*self.first, self.rest) if inner is not None))

    def acts(self) -> bool:
        return any(inner.acts() for inner in (*self.first, self.rest) if inner is not None)


@dataclass(frozen=True, slots=True)
class Values:
    """Members of a map beside those with a name of their own."""

    known: frozenset[str]
    members: Inverse | None
    rest: Inverse

    def restore(self, value: Any, named: Named) -> Any:
        if not isinstance(value, dict):
            return value
        others = {name: one if name in self.known else self.rest.restore(one, named) for name, one in value.items()}
        return others if self.members is None else self.members.restore(others, named)

    def names(self) -> frozenset[str]:
        return self.rest.names() | (self.members.names() if self.members is not None else frozenset())

    def acts(self) -> bool:
        return self.rest.acts() or (self.members is not None and self.members.acts())


@dataclass(frozen=True, slots=True)
class Pairs:
    """An array of key and value becomes a map again. Of two equal keys the last counts."""

    value: Inverse | None

    def restore(self, value: Any, named: Named) -> Any:
        if not isinstance(value, list) or not all(_is_pair(one) for one in value):
            return value
        inner = self.value
        return {one["key"]: one["value"] if inner is None else inner.restore(one["value"], named) for one in value}

    def names(self) -> frozenset[str]:
        return frozenset() if self.value is None else self.value.names()

    def acts(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """The value is taken out of the object around it."""

    name: str
    inner: Inverse | None

    def restore(self, value: Any, named: Named) -> Any:
        if not isinstance(value, dict) or self.name not in value or len(value) != 1:
            return value
        found = value[self.name]
        return found if self.inner is None else self.inner.restore(found, named)

    def names(self) -> frozenset[str]:
        return frozenset() if self.inner is None else self.inner.names()

    def acts(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Follow:
    """The inverse of a kept definition."""

    name: str

    def restore(self, value: Any, named: Named) -> Any:
        inner = named.get(self.name)
        return value if inner is None else inner.restore(value, named)

    def names(self) -> frozenset[str]:
        return frozenset({self.name})

    def acts(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Arms:
    """One of several forms: the first whose rewritten schema the value fits. Each is right where it fits."""

    arms: tuple[tuple[Schema, Inverse | None], ...]
    definitions: Schema
    """The `$defs` of the whole rewritten schema, filled once all are written."""
    _checkers: dict[int, Checker] = field(default_factory=dict, compare=False)

    def restore(self, value: Any, named: Named) -> Any:
        inner = self._inner(value)
        return value if inner is None else inner.restore(value, named)

    def _inner(self, value: Any) -> Inverse | None:
        for number, (_, inner) in enumerate(self.arms):
            if self._checker(number).accepts(value):
                return inner
        return None

    def _checker(self, number: int) -> Checker:
        found = self._checkers.get(number)
        if found is None:
            schema = self.arms[number][0]
            found = checker({**schema, "$defs": self.definitions} if self.definitions else schema)
            self._checkers[number] = found
        return found

    def names(self) -> frozenset[str]:
        return frozenset().union(*(inner.names() for _, inner in self.arms if inner is not None))

    def acts(self) -> bool:
        return any(inner.acts() for _, inner in self.arms if inner is not None)


def acting(inverse: Inverse | None, named: Named) -> bool:
    """Return whether an inverse changes anything, definitions followed."""
    if inverse is None:
        return False
    seen: set[str] = set()
    waiting: list[Inverse] = [inverse]
    while waiting:
        one = waiting.pop()
        if one.acts():
            return True
        for name in one.names() - seen:
            seen.add(name)
            found = named.get(name)
            if found is not None:
                waiting.append(found)
    return False


def _is_pair(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"key", "value"} and isinstance(value["key"], str)

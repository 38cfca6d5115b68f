"""The inverse of a rewriting: what must be done to an answer under the rewritten schema to make it one under the caller's.

An inverse follows the shape of the answer. An answer of another shape is left alone, since judging it finds that better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from bardo.structured.rewrite.keywords import Schema
from bardo.structured.validation import Checker, checker

Restore: TypeAlias = Callable[[Any], Any]


class Inverse(msgspec.Struct, frozen=True):
    """One step back: `restore` returns a value as the caller's schema has it, and does not change what it is given.

    `inner` are the inverses it applies to parts, `changes` whether it does more than that, `follows` the definition it leads to.
    """

    restore: Restore
    inner: tuple[Inverse, ...] = ()
    changes: bool = False
    follows: str = ""


Named: TypeAlias = dict[str, Inverse | None]
"""The inverses of kept definitions, by name: filled while the definitions are written."""


def changes(inverse: Inverse | None, named: Named) -> bool:
    """Return whether an inverse changes anything, definitions followed."""
    seen: set[str] = set()
    waiting = [inverse]
    while waiting:
        step = waiting.pop()
        if step is None or step.follows in seen:
            continue
        if step.changes:
            return True
        waiting.extend(step.inner)
        if step.follows:
            seen.add(step.follows)
            waiting.append(named.get(step.follows))
    return False


def members(nulls: frozenset[str], each: Mapping[str, Inverse], known: frozenset[str], rest: Inverse | None) -> Inverse:
    """Restore the members of an object: those in `nulls` are left out where they are null, those not in `known` are restored by `rest`."""

    def restored(value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        for name, member in value.items():
            inverse = each.get(name) if name in known else rest
            if member is not None or name not in nulls:
                yield name, member if inverse is None else inverse.restore(member)

    inner = (*each.values(), *_inverses(rest))
    return Inverse(
        lambda value: dict(restored(value)) if isinstance(value, dict) else value, inner, changes=bool(nulls)
    )


def items(first: Sequence[Inverse | None], rest: Inverse | None) -> Inverse | None:
    """Restore the items of an array: the first ones each by its own inverse, all others by `rest`. None if there is none."""
    inner = _inverses(*first, rest)

    def restore(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        inverses = (first[index] if index < len(first) else rest for index in range(len(value)))
        return [item if step is None else step.restore(item) for item, step in zip(value, inverses, strict=True)]

    return Inverse(restore, inner) if inner else None


def pairs(inner: Inverse | None, each: Inverse | None = None) -> Inverse:
    """Make a map of an array of key and value; `each` restores a pair, `inner` its value. Of two equal keys the last counts."""

    def restore(value: Any) -> Any:
        if not isinstance(value, list) or not all(_is_pair(pair) for pair in value):
            return value
        listed = value if each is None else [each.restore(pair) for pair in value]
        return {pair["key"]: pair["value"] if inner is None else inner.restore(pair["value"]) for pair in listed}

    return Inverse(restore, _inverses(inner, each), changes=True)


def with_pairs(holder: str, names: frozenset[str], inner: Inverse | None) -> Inverse:
    """Move what was made of the pairs in the property `holder` into the object itself; its own properties, `names`, stay as they are."""

    def restore(value: Any) -> Any:
        restored = value if inner is None else inner.restore(value)
        if not isinstance(restored, dict) or holder not in restored or isinstance(restored[holder], list):
            return restored
        others = restored[holder] or {}
        own = {name: member for name, member in restored.items() if name != holder}
        return (
            own | {name: member for name, member in others.items() if name not in names}
            if isinstance(others, dict)
            else restored
        )

    return Inverse(restore, _inverses(inner), changes=True)


def _is_pair(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"key", "value"} and isinstance(value["key"], str)


def unwrapped(name: str, inner: Inverse | None) -> Inverse:
    """Take a value out of the object around it."""

    def restore(value: Any) -> Any:
        if not isinstance(value, dict) or value.keys() != {name}:
            return value
        return value[name] if inner is None else inner.restore(value[name])

    return Inverse(restore, _inverses(inner), changes=True)


def follow(name: str, named: Named) -> Inverse:
    """Restore by the inverse of a kept definition."""

    def restore(value: Any) -> Any:
        inner = named.get(name)
        return value if inner is None else inner.restore(value)

    return Inverse(restore, follows=name)


def arms(forms: Sequence[tuple[Schema, Inverse | None]], definitions: Schema) -> Inverse | None:
    """Restore by the first form whose rewritten schema the value fits. None if no form has an inverse.

    `definitions` are the `$defs` of the whole rewritten schema, filled once all are written.
    """
    checkers: dict[int, Checker] = {}

    def accepts(number: int, value: Any) -> bool:
        if number not in checkers:
            checkers[number] = checker({**forms[number][0], "$defs": definitions} if definitions else forms[number][0])
        return checkers[number].accepts(value)

    def restore(value: Any) -> Any:
        inner = next((inverse for number, (_, inverse) in enumerate(forms) if accepts(number, value)), None)
        return value if inner is None else inner.restore(value)

    inner = _inverses(*(inverse for _, inverse in forms))
    return Inverse(restore, inner) if inner else None


def _inverses(*inverses: Inverse | None) -> tuple[Inverse, ...]:
    return tuple(inverse for inverse in inverses if inverse is not None)

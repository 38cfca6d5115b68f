"""JSON values made from the structs of a dialect: every field there or not, and what no struct has."""

from __future__ import annotations

import random
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from bardo.dialects.shared.structs import OTHERS, Unknown, Wire

_WORDS = ("", " ", "a", "die Suche", "call_1", "toolu_1", "user", "tool", "auto", "required", "\u05d0\n", "a b.c/d")
_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    1.5,
    10**30,
    "",
    "a",
    [],
    {},
    [1],
    {"a": None},
    [[]],
    {"type": "text"},
    {"type": 1},
)


class GeneratedValues:
    """Values that a struct takes, with some `oddity`: the chance that a place holds something that it may not hold."""

    def __init__(self, seed: object, oddity: float = 0.0) -> None:
        self._random = random.Random(repr(seed))
        self._oddity = oddity

    def of(self, kind: Any) -> Any:
        """Return a JSON value of a type, as the type of a field says it."""
        if self._random.random() < self._oddity:
            return self._random.choice(_VALUES)
        if get_origin(kind) in (Union, UnionType):
            return self.of(self._random.choice([one for one in get_args(kind) if one is not msgspec.UnsetType]))
        if get_origin(kind) is list:
            return [self.of(get_args(kind)[0]) for _ in range(self._random.choice((0, 1, 1, 2, 3)))]
        if get_origin(kind) is dict:
            return {self._random.choice(_WORDS): self._any() for _ in range(self._random.choice((0, 1, 2)))}
        if kind is Unknown:
            return {"type": self._random.choice(("server_tool", "x", "")), "a": self._any()}
        if isinstance(kind, type) and issubclass(kind, Wire):
            return self._struct(kind)
        return self._plain(kind)

    def _struct(self, kind: type[Wire]) -> dict[str, Any]:
        types = get_type_hints(kind)
        found: dict[str, Any] = {}
        config = kind.__struct_config__
        if config.tag_field:
            found[config.tag_field] = config.tag
        for field in msgspec.structs.fields(kind):
            if field.encode_name != OTHERS and (field.required or self._random.random() < 0.4):
                found[field.encode_name] = self.of(types[field.name])
        if self._random.random() < self._oddity and found:
            found.pop(self._random.choice([*found]))
        if self._random.random() < self._oddity:
            found[self._random.choice(("x", "unheard_of", OTHERS, "cache_control"))] = self._any()
        names = [*found]
        self._random.shuffle(names)
        return {name: found[name] for name in names}

    def _plain(self, kind: Any) -> Any:
        if kind is str:
            return self._random.choice(_WORDS)
        if kind is bool:
            return self._random.random() < 0.5
        if kind is int:
            return self._random.choice((0, 1, 4000, -1))
        if kind is float:
            return self._random.choice((0.0, 0.5, 1))
        return None if kind is type(None) else self._any()

    def _any(self) -> Any:
        return self._random.choice(_VALUES)

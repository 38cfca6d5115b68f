"""What is found once, when it is first asked for: a property of an object, and a regular expression."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, cast, overload

T = TypeVar("T")


class once(Generic[T]):  # noqa: N801 - written as a decorator is.
    """As `functools.cached_property`, which takes a lock for the first look before Python 3.12 and costs five times as much for it."""

    def __init__(self, find: Callable[[Any], T]) -> None:
        self._find = find
        self._name = find.__name__
        self.__doc__ = find.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> T | Self:
        if instance is None:
            return self
        found = instance.__dict__[self._name] = self._find(instance)
        return found


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return an expression that is compiled at its first use: few programs need all of them. One that is wrong is told only then."""
    return cast("re.Pattern[str]", _Later(text, flags))


class _Later:
    def __init__(self, text: str, flags: int) -> None:
        self.pattern, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        """Return what the compiled expression has by this name, which is found here from then on."""
        found = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, found)
        return found

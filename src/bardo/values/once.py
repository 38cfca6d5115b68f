"""A property that is found once for each object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

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

"""A dialect with functions of the test's own, for as long as a `with` block runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import force_setattr

from bardo.dialects import dialect


@contextmanager
def dialect_with(name: str, **functions: Callable[..., Any]) -> Iterator[None]:
    """Replace functions of the dialect called `name`. A dialect is frozen, so this goes round what keeps it so."""
    value = dialect(name)
    before = {field: getattr(value, field) for field in functions}
    try:
        for field, function in functions.items():
            force_setattr(value, field, function)
        yield
    finally:
        for field, function in before.items():
            force_setattr(value, field, function)

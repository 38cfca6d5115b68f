"""What the walk gives for one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from bardo.structured.rewrite.entries import Place, Schema, Work
from bardo.structured.rewrite.inverse import Inverse


@dataclass(frozen=True, slots=True)
class Built:
    """A rewritten schema, and the way back for a value at its place (None: the value stays as it is)."""

    schema: Schema
    inverse: Inverse | None = None


Walk: TypeAlias = Callable[[Any, Place, Work], Built | None]
"""Rewrites what stands inside; None where no value can stand there."""

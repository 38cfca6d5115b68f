"""Equality of JSON values: true is not 1, while 1 equals 1.0."""

from __future__ import annotations

from typing import Any


def same(left: Any, right: Any) -> bool:
    """Return whether two JSON values say the same."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)

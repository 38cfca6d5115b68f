"""Ids for tool calls that come without one."""

from __future__ import annotations

import random


def new_call_id() -> str:
    """Return an id that no other call has, in this process or another."""
    return f"call_{random.getrandbits(96):024x}"

"""The memories of this process, beside the plans that go with one set of settings (`plans.py`)."""

from __future__ import annotations

from typing import Any

from bardo.reuse.memory import Memory

_MEBIBYTE = 1_048_576
CHECKERS: Memory[Any] = Memory(256, 16 * _MEBIBYTE)
"""Compiled schemas of answers, by the JSON of the schema."""
ANSWER_PLANS: Memory[Any] = Memory(1024, 16 * _MEBIBYTE)
"""How answers in a schema are asked for, and how a schema is written for a target, by the compiled schema and the target."""
TOOL_SCHEMAS: Memory[Any] = Memory(256, 8 * _MEBIBYTE)
"""The tools of a request in the keywords that a target knows, by the tools and what the target demands."""

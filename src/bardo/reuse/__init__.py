"""All that is kept of earlier requests, so that a later one need not do the same work: nothing outside this package keeps any.

What is kept follows from its key alone, so that a request is answered with the same bytes whether anything is kept or not, and
`BARDO_REUSE=off` keeps nothing. Each memory is bounded, has a lock, and has a line in the benchmarks (`python -m benchmarks reuse`) with
what it saves on growing conversations, sixty of them interleaved; one that saves less than 15 % of its step there is deleted.
"""

from typing import Any

from bardo.reuse.memory import Memory as Memory
from bardo.reuse.memory import is_on as is_on
from bardo.reuse.memory import turn as turn
from bardo.reuse.plans import PlanCache as PlanCache

_MEBIBYTE = 1_048_576
CHECKERS: Memory[Any] = Memory(256, 16 * _MEBIBYTE)
"""Compiled schemas of answers, by the JSON of the schema."""
ANSWER_PLANS: Memory[Any] = Memory(1024, 16 * _MEBIBYTE)
"""How answers in a schema are asked for, and how a schema is written for a target, by the compiled schema and the target."""
TOOL_SCHEMAS: Memory[Any] = Memory(256, 8 * _MEBIBYTE)
"""The tools of a request in the keywords that a target knows, by the tools and what the target demands."""

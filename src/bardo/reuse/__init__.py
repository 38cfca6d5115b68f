"""All that is kept of earlier requests, so that a later one need not do the same work: nothing outside this package keeps any.

What is kept follows from its key alone, so that a request is answered with the same bytes whether anything is kept or not, and
`BARDO_REUSE=off` keeps nothing. All memories of a process share one budget in bytes (`[gateway] max_reuse_bytes`), and each has a line
in the benchmarks (`python -m benchmarks reuse`) with what it saves on growing conversations, sixty of them interleaved; one that saves less
than 15 % of its step there is deleted.
"""

from typing import Any

from bardo.reuse.memory import MOST_BYTES as MOST_BYTES
from bardo.reuse.memory import Memory as Memory
from bardo.reuse.memory import held_bytes as held_bytes
from bardo.reuse.memory import is_on as is_on
from bardo.reuse.memory import limit as limit
from bardo.reuse.memory import most_bytes as most_bytes
from bardo.reuse.memory import size_of as size_of
from bardo.reuse.memory import turn as turn

CHECKERS: Memory[Any] = Memory()
"""Compiled schemas of answers, by the JSON of the schema."""
ANSWER_PLANS: Memory[Any] = Memory()
"""How answers in a schema are asked for, and how a schema is written for a target, by the compiled schema and the target."""
TOOL_SCHEMAS: Memory[Any] = Memory()
"""The tools of a request in the keywords that a target knows, by the tools and what the target demands."""

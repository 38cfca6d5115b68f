"""All that is kept of earlier requests, so that a later one need not do the same work: nothing outside this package keeps any.

What is kept follows from its key alone, so that a request is answered with the same bytes whether anything is kept or not, and
`BARDO_REUSE=off` keeps nothing. Each memory is bounded, has a lock, and has a line in the benchmarks (`python -m benchmarks reuse`) with
what it saves on growing conversations, sixty of them interleaved; one that saves less than 15 % of its step there is deleted.
"""

from bardo.reuse.memories import ANSWER_PLANS as ANSWER_PLANS
from bardo.reuse.memories import CHECKERS as CHECKERS
from bardo.reuse.memories import TOOL_SCHEMAS as TOOL_SCHEMAS
from bardo.reuse.memory import Memory as Memory
from bardo.reuse.memory import is_on as is_on
from bardo.reuse.memory import turn as turn
from bardo.reuse.plans import PlanCache as PlanCache

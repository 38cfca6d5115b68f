"""Random numbers for identifiers and waiting times, from a generator that only bardo uses.

The functions of the standard library's `random` share one state per process. A program that seeds it for a reproducible run would make
bardo repeat its request ids, and bardo's draws would change what that program draws. Not for secrets: those come from `secrets`.
"""

from __future__ import annotations

import os
from random import Random

CHANCE = Random()
"""The generator of this process. It is seeded from the operating system, again in each process that is forked from this one."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=CHANCE.seed)

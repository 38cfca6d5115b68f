"""Choose a server for a key by rendezvous hashing with a bound on its load.

Every process that knows the same servers chooses the same one for a key, and when a server comes or goes, only the keys of that server
move (Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998). A server that is loaded above the bound is passed
over, and the next of the same key takes the call (Mirrokni and others, "Consistent hashing with bounded loads", 2018).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

BOUND = 1.25
"""How many times the mean load a server may have and still be given a new key."""
FREE = 4
"""So many calls at a time are no load: servers of language models work on several at once."""
_MASK = (1 << 64) - 1


def ranked(key: bytes, servers: Sequence[str]) -> list[int]:
    """Return the places of `servers` in the order in which they take a key: the same in every process."""
    seed = int.from_bytes(blake2b(key, digest_size=8).digest(), "little")
    weights = [_mixed(seed ^ _number(one)) for one in servers]
    return sorted(range(len(servers)), key=weights.__getitem__)


def bounded(order: Sequence[int], loads: Sequence[int], *, bound: float = BOUND, free: int = FREE) -> list[int]:
    """Return an order with the servers last, the least loaded of them first, that have as many calls under way as they may have.

    That is `bound` times the mean with the call at hand, rounded up, so that one server is always below it; and never less than `free`.
    """
    most = max(free, math.ceil(bound * (sum(loads) + 1) / len(loads)))
    below = [place for place in order if loads[place] < most]
    if len(below) == len(order):
        return below
    return [*below, *sorted((place for place in order if loads[place] >= most), key=loads.__getitem__)]


@lru_cache(maxsize=4096)
def _number(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


def _mixed(number: int) -> int:
    """Return a number each of whose bits depends on all bits of another (the finalizer of SplitMix64)."""
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    number = (number ^ (number >> 27)) * 0x94D049BB133111EB & _MASK
    return number ^ (number >> 31)

"""What runs by day and what at night.

By day a law over many recordings or cells runs over a sample of them; at night (`make nightly`, which sets BARDO_NIGHTLY) over all.
The sample follows from a seed, which is that of the commit or BARDO_SEED: the same commit is tested the same way everywhere.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TypeVar
from zlib import crc32

from release_point import changed_files, release_point, revision

Item = TypeVar("Item")

ROOT = Path(__file__).resolve().parents[2]
NIGHTLY = os.environ.get("BARDO_NIGHTLY", "") not in ("", "0")
COVERED: Counter[str] = Counter()
"""What the laws of this process were checked for since it was last emptied, by the name of what is counted."""


@cache
def seed() -> str:
    """Return the seed of the samples: BARDO_SEED, else the commit, else 0 where there is none."""
    return os.environ.get("BARDO_SEED") or revision(ROOT)[:12] or "0"


def sample(items: Iterable[Item], most: int, *, law: str, always: Callable[[Item], bool] | None = None) -> list[Item]:
    """Return `most` of the items by day and all of them at night, in their order; `law` makes each law's sample another.

    Those of which `always` is true are taken besides. Two items are told apart by their `str`.
    """
    listed = list(items)
    if NIGHTLY:
        return listed
    drawn = set(sorted(range(len(listed)), key=lambda index: rank(law, str(listed[index])))[:most])
    return [one for index, one in enumerate(listed) if index in drawn or (always is not None and always(one))]


def rank(law: str, name: str) -> bytes:
    """Return what the items of a law are ordered by: a sample is the first of them."""
    return hashlib.sha256(f"{seed()}\0{law}\0{name}".encode()).digest()


def in_shard(name: str, shard: str) -> bool:
    """Return whether an item belongs to a shard such as 1/4; each item belongs to exactly one."""
    number, _, count = shard.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ValueError(f"SHARD={shard} is not a shard: write 1/4 for the first of four")
    return crc32(name.encode()) % int(count) == int(number) - 1


@cache
def changed_dialects() -> frozenset[str]:
    """Return the packages of `bardo.dialects` that changed since the last release point: their recordings are always tested."""
    begin = release_point(ROOT)
    changed = [Path(file).parts for file in changed_files(ROOT, begin)] if begin else []
    return frozenset(parts[3] for parts in changed if parts[:3] == ("src", "bardo", "dialects") and len(parts) > 4)

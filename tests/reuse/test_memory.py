"""What is kept is found again by its key, is bounded in number and size, and is not there where nothing shall be kept."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from bardo import reuse
from bardo.reuse import Memory, PlanCache

pytestmark = pytest.mark.usefixtures("reused")


def test_a_value_is_made_once_for_its_key() -> None:
    memory: Memory[list[int]] = Memory(2)
    made = memory.of("a", lambda: [1])
    assert memory.of("a", lambda: [2]) is made
    assert memory.of("b", lambda: [2]) == [2]


def test_what_was_not_asked_for_longest_is_forgotten() -> None:
    memory: Memory[int] = Memory(2)
    memory.keep("a", 1)
    memory.keep("b", 2)
    assert memory.find("a") == 1
    memory.keep("c", 3)
    assert [memory.find(key) for key in "abc"] == [1, None, 3]
    assert len(memory) == 2


def test_the_sizes_of_what_is_kept_are_bounded_together() -> None:
    memory: Memory[int] = Memory(100, most_size=10)
    memory.keep("a", 1, size=6)
    memory.keep("a", 2, size=4)
    memory.keep("b", 3, size=6)
    assert [memory.find(key) for key in "ab"] == [2, 3]
    memory.keep("c", 4, size=5)
    assert [memory.find(key) for key in "abc"] == [None, None, 4]


def test_what_is_larger_than_all_that_may_be_kept_is_not_kept() -> None:
    memory: Memory[int] = Memory(100, most_size=10)
    memory.keep("a", 1, size=10)
    assert memory.keep("b", 2, size=11) == 2
    assert [memory.find(key) for key in "ab"] == [1, None]


def test_nothing_is_kept_and_nothing_found_while_reuse_is_off() -> None:
    memory: Memory[int] = Memory(2)
    plans: PlanCache[int] = PlanCache()
    row, facts = object(), object()
    memory.keep("a", 1)
    reuse.turn(False)
    assert memory.of("a", lambda: 2) == 2
    plans.keep(("p",), row, facts, 1)
    assert plans.find(("p",), row, facts) is None
    reuse.turn(True)
    assert memory.find("a") == 1
    assert len(plans) == 0


def test_a_value_that_could_not_be_made_is_asked_for_again() -> None:
    memory: Memory[int] = Memory(2)

    def fails() -> int:
        raise ValueError("not now")

    with pytest.raises(ValueError, match="not now"):
        memory.of("a", fails)
    assert memory.of("a", lambda: 1) == 1


def test_threads_share_a_memory_without_losing_count() -> None:
    memory: Memory[int] = Memory(8, most_size=64)

    def work(seed: int) -> None:
        for step in range(2_000):
            key = (seed * step) % 17
            assert memory.of(key, lambda key=key: key, size=key) == key  # type: ignore[misc]

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(work, seed) for seed in (1, 3, 5, 7)]:
            done.result()
    assert len(memory) <= 8
    assert sum(size for _, size in memory._kept.values()) == memory._size <= 64

"""What is kept is found again by its key, takes no more bytes than it may, and is not there where nothing shall be kept."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any

import pytest

from bardo import reuse
from bardo.catalog.load import builtin
from bardo.catalog.request_shapes import shape_at
from bardo.planning.tools import written_tool_schemas
from bardo.reuse import ENTRY_BYTES, Memory, size_of
from bardo.structured import checker, plan
from bardo.structured.modes import SchemaTarget
from bardo.values.request import Tool

ROOM = 1000
"""What a value takes in these tests, with its entry."""


def kept(memory: Memory[int], key: str, value: int = 0) -> None:
    memory.keep(key, value, ROOM - ENTRY_BYTES)


@pytest.fixture(autouse=True)
def small(reused: None) -> None:
    """Let all memories hold two values."""
    reuse.limit(2 * ROOM)


def test_a_value_is_made_once_for_its_key() -> None:
    memory: Memory[list[int]] = Memory()
    made = memory.of("a", lambda: [1], size_of)
    assert memory.of("a", lambda: [2], size_of) is made
    assert memory.of("b", lambda: [2], size_of) == [2]


def test_what_was_not_asked_for_longest_is_forgotten() -> None:
    memory: Memory[int] = Memory()
    kept(memory, "a", 1)
    kept(memory, "b", 2)
    assert memory.find("a") == 1
    kept(memory, "c", 3)
    assert [memory.find(key) for key in "abc"] == [1, None, 3]
    assert len(memory) == 2


def test_a_value_that_takes_the_place_of_another_takes_its_bytes() -> None:
    memory: Memory[int] = Memory()
    kept(memory, "a", 1)
    kept(memory, "a", 2)
    kept(memory, "b", 3)
    assert [memory.find(key) for key in "ab"] == [2, 3]
    assert memory.held == reuse.held_bytes() == 2 * ROOM


def test_a_flood_in_one_memory_takes_nothing_of_another() -> None:
    small: Memory[int] = Memory()
    flooded: Memory[int] = Memory()
    reuse.limit(10 * ROOM)
    kept(small, "a", 1)
    for number in range(100):
        kept(flooded, str(number))
        assert reuse.held_bytes() <= 10 * ROOM
    assert small.find("a") == 1
    assert len(flooded) == 9


def test_what_is_larger_than_all_that_may_be_kept_is_not_kept() -> None:
    memory: Memory[int] = Memory()
    kept(memory, "a", 1)
    assert memory.keep("b", 2, 2 * ROOM) == 2
    assert [memory.find(key) for key in "ab"] == [1, None]


def test_a_memory_that_is_gone_takes_no_bytes() -> None:
    gone: Memory[int] = Memory()
    kept(gone, "a")
    kept(gone, "b")
    del gone
    memory: Memory[int] = Memory()
    kept(memory, "a", 1)
    assert reuse.held_bytes() == ROOM


def test_a_smaller_limit_holds_at_once() -> None:
    memory: Memory[int] = Memory()
    kept(memory, "a", 1)
    kept(memory, "b", 2)
    reuse.limit(ROOM)
    assert [memory.find(key) for key in "ab"] == [None, 2]
    reuse.limit(0)
    kept(memory, "c", 3)
    assert len(memory) == reuse.held_bytes() == 0


def test_the_size_of_a_value_is_that_of_all_in_it_each_once() -> None:
    text = "x" * 1000
    assert size_of([text, text]) < 2 * sys.getsizeof(text) < size_of([text, "y" * 1000])
    assert size_of({"a": {"b": (text,)}}) > sys.getsizeof(text) + 3 * sys.getsizeof({})
    assert size_of(Tool(name="f", schema={"description": text})) > sys.getsizeof(text)
    circle: list[object] = []
    circle.append(circle)
    assert size_of(circle) == sys.getsizeof(circle)


def _one_level(inner: dict[str, Any], _: int) -> dict[str, Any]:
    return {"anyOf": [inner]}


SHAPES: dict[str, Callable[[int], dict[str, Any]]] = {
    "properties": lambda count: {f"a {place}": {"type": "integer", "minimum": place} for place in range(count)},
    "patterns": lambda count: {f"a {place}": {"pattern": f"^[a-z]{{1,{place % 20 + 3}}}x$"} for place in range(count)},
    "values": lambda count: {"a b": {"enum": [f"v{place}" for place in range(count)]}},
    "levels": lambda count: {"a b": reduce(_one_level, range(count), {"type": "null"})},
}
MEASURE = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[1].split(":")
from reuse.test_memory import SHAPES, fill
from bardo import reuse
import bardo.planning.tools

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

reuse.limit(1 << 30)
fill(sys.argv[2], 0)
before, held = resident(), reuse.held_bytes()
fill(sys.argv[2], 1)
print(resident() - before, reuse.held_bytes() - held)
"""
"""Prints how much memory a process took for what it kept, and how much it counted."""


def fill(shape: str, first: int) -> None:
    """Keep schemas of a shape in each memory of schemas: compiled, planned for a target, and as tools in its keywords."""
    row = builtin().provider("anthropic")
    assert row is not None
    at = shape_at(row, "claude-sonnet-4-5")
    asked = SchemaTarget(provider="openai", dialect="openai_chat", model="gpt-5")
    for number in range(first * 1000, first * 1000 + 60):
        schema = {"type": "object", "title": f"t{number}", "properties": SHAPES[shape](30)}
        plan(checker(schema), asked)
        written_tool_schemas((Tool(name="f", schema=schema),), at)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_counted_is_not_less_than_what_it_takes(shape: str) -> None:
    """The bytes of compiled schemas are those of a library in another language: a process of its own says what they take."""
    asked = [sys.executable, "-c", MEASURE, ":".join(sys.path), shape]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    taken, counted = map(int, said.split())
    assert 0 < taken <= counted


def test_nothing_is_kept_and_nothing_found_while_reuse_is_off() -> None:
    memory: Memory[int] = Memory()
    kept(memory, "a", 1)
    reuse.turn(False)
    assert memory.of("a", lambda: 2, size_of) == 2
    memory.keep("b", 1, 1)
    assert memory.find("a") is None
    reuse.turn(True)
    assert memory.find("a") == 1
    assert len(memory) == 1


def test_a_value_that_could_not_be_made_is_asked_for_again() -> None:
    memory: Memory[int] = Memory()

    def fails() -> int:
        raise ValueError("not now")

    with pytest.raises(ValueError, match="not now"):
        memory.of("a", fails, size_of)
    assert memory.of("a", lambda: 1, size_of) == 1


def test_threads_share_memories_without_losing_count() -> None:
    memories: list[Memory[int]] = [Memory(), Memory()]
    most = 8 * ENTRY_BYTES
    reuse.limit(most)

    def work(seed: int) -> None:
        for step in range(2_000):
            key = (seed * step) % 17
            assert memories[key % 2].of(key, lambda key=key: key, lambda key: key) == key  # type: ignore[misc]

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(work, seed) for seed in (1, 3, 5, 7)]:
            done.result()
    sizes = [sum(size for _, size in memory._kept.values()) for memory in memories]
    assert sizes == [memory.held for memory in memories]
    assert sum(sizes) == reuse.held_bytes() <= most

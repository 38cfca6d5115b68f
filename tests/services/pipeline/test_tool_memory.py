"""What the choice of tools remembers is bounded, belongs to one tenant, and is forgotten in time."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from bardo.adapters.stores.state import Bounds, MemoryStore
from bardo.adapters.stores.state.calls import StateCalls
from bardo.context.own_functions import StoreTurns
from bardo.context.tool_choice.ranking import ToolVectors
from bardo.context.tool_choice.session import (
    FindToolTurns,
    FindToolUses,
    FindToolVectors,
    RecordToolUse,
    StoreToolVectors,
)
from bardo.services.pipeline.effects import Effects
from bardo.services.pipeline.tool_memory import ToolMemory, ToolMemoryBounds
from bardo.values.blocks import Opaque, Origin, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import Message


class Memory:
    """A memory with a clock of its own."""

    def __init__(self, **bounds: Any) -> None:
        self.now = 0.0
        self._effects = Effects()
        store = MemoryStore(Bounds(seconds=10.0, entries=3))
        ToolMemory(
            ToolMemoryBounds(**bounds), store=StateCalls(store, name="turns", area="replay"), clock=lambda: self.now
        ).register(self._effects)

    def do(self, effect: Any) -> Any:
        return asyncio.run(self._effects.perform(effect))

    def uses(self, tenant: str, *names: str, fingerprint: str = "f") -> dict[str, Any]:
        return {**self.do(FindToolUses(tenant, names, fingerprint))}


TURN = (
    Message(
        "assistant",
        (
            ReasoningBlock(text="hm", opaque=(Opaque("signature", "x", "f", Origin(provider="p", platform="p", model="m", dialect="d")),)),
            ToolCallBlock(id="c", name="execute_tool", arguments="{}"),
        ),
    ),
    Message("user", (ToolResultBlock(call_id="s", content=(TextBlock("found"),)),)),
)  # fmt: skip


def test_uses_are_means_of_one_tenant_and_one_embedding() -> None:
    memory = Memory()
    memory.do(RecordToolUse("a", ("one", "two"), (1.0, 0.0), "f"))
    memory.do(RecordToolUse("a", ("one",), (0.0, 1.0), "f"))
    found = memory.uses("a", "one", "two", "three")
    assert set(found) == {"one", "two"}
    assert (list(found["one"].mean), found["one"].count) == ([0.5, 0.5], 2)
    assert memory.uses("b", "one") == {}
    assert memory.uses("a", "one", fingerprint="other") == {}
    memory.do(RecordToolUse("a", ("one",), (1.0,), "other"))
    assert memory.uses("a", "one", fingerprint="other")["one"].count == 1


def test_unlike_purposes_of_a_tool_are_kept_apart_and_are_few() -> None:
    memory = Memory()
    for vector in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.8, 0.0, 0.6), (0.0, 0.0, 0.0)):
        memory.do(RecordToolUse("a", ("one",), vector, "f"))
    purposes = memory.uses("a", "one")["one"].centroids
    assert [one.count for one in purposes] == [2, 1, 1]
    assert [list(one.vector) for one in purposes] == [[120, 0, 40], [0, 127, 0], [0, 0, 0]]
    for place in range(40):
        memory.do(RecordToolUse("a", ("two",), tuple(float(place == other) for other in range(40)), "f"))
    assert sum(one.count for one in memory.uses("a", "two")["two"].centroids) == 27, (
        "eight purposes, and one that the rest moved"
    )
    assert len(memory.uses("a", "two")["two"].centroids) == 8


def test_uses_of_long_ago_fade() -> None:
    memory = Memory()
    for _ in range(300):
        memory.do(RecordToolUse("a", ("one",), (1.0, 0.0), "f"))
    for _ in range(600):
        memory.do(RecordToolUse("a", ("one",), (0.0, 1.0), "f"))
    mean = memory.uses("a", "one")["one"].mean
    assert mean[1] > 0.9
    assert math.isclose(sum(mean), 1, rel_tol=1e-3)


def test_what_was_not_used_for_longest_goes_first() -> None:
    memory = Memory(tools=2, tenants=2, tools_of_tenant=2)
    for number in range(3):
        memory.do(StoreToolVectors({b"%d" % number: ToolVectors("f", (1.0,), (1.0,))}))
        memory.do(RecordToolUse("a", (f"t{number}",), (1.0,), "f"))
    assert set(memory.do(FindToolVectors((b"0", b"1", b"2")))) == {b"1", b"2"}
    assert set(memory.uses("a", "t0", "t1", "t2")) == {"t1", "t2"}
    for tenant in "bc":
        memory.do(RecordToolUse(tenant, ("t",), (1.0,), "f"))
    assert memory.uses("a", "t1") == {}


def test_turns_come_back_as_they_were_to_their_tenant_for_some_time() -> None:
    memory = Memory()
    memory.do(StoreTurns("a", ("c", "d"), TURN))
    assert memory.do(FindToolTurns("a", ("c", "d", "e"))) == {"c": TURN, "d": TURN}
    assert memory.do(FindToolTurns("b", ("c",))) == {}
    memory.now = 11.0
    assert memory.do(FindToolTurns("a", ("c",))) == {}


def test_turns_are_bounded_by_their_store() -> None:
    memory = Memory()
    for number in range(5):
        memory.do(StoreTurns("a", (f"c{number}",), (*TURN, Message("user", (TextBlock(str(number)),)))))
    ids = tuple(f"c{number}" for number in range(5))
    assert set(memory.do(FindToolTurns("a", ids))) == {"c2", "c3", "c4"}

"""The keeper: settings make it, a store that fails costs only the memory, and a conversation without replies asks nothing."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec
import pytest

from bardo.adapters.config.settings import ReplaySettings, parse_settings
from bardo.adapters.stores.replay_store import ReplayKeeper, open_keeper
from bardo.adapters.stores.state import MemoryStore
from bardo.adapters.stores.state.calls import StateCalls
from bardo.catalog.load import builtin
from bardo.catalog.replay import builtin_replay
from bardo.planning.attempt import Attempt
from bardo.planning.exchange import attempts
from bardo.planning.knowledge import BUILTIN
from bardo.planning.planner import asked_again
from bardo.planning.route import Provider, Target
from bardo.reasoning.replay import memory
from bardo.reasoning.replay import remember as remembered
from bardo.values.blocks import Opaque, ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.errors import ConfigError
from bardo.values.request import Message, Request
from bardo.values.response import Response
from bardo.values.wire import WireRequest

pytestmark = pytest.mark.each_python

T = TypeVar("T")
ROW = builtin().provider("anthropic")
assert ROW is not None
TARGET = Target(provider=Provider(id="anthropic", row=ROW, base_url="https://x"), model="claude-opus-4-5")
ATTEMPT = Attempt(target=TARGET, wire=WireRequest(path="messages", body=b"{}"))
SIGNING = builtin_replay().reader("anthropic", ROW, "claude-opus-4-5", "")
QUESTION = Message("user", (TextBlock("Weather?"),))
CALL = ToolCallBlock(id="c1", name="weather")
FORM = "anthropic-claude-v1"
REPLY = Response(blocks=(ReasoningBlock(format=FORM, opaque=(Opaque("signature", "sig", FORM),)), CALL))
FIRST = Request(model="m", messages=(QUESTION,))
NEXT = Request(model="m", messages=(QUESTION, Message("assistant", (CALL,))))


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


class Broken:
    """A store whose disk has gone."""

    waits = True
    problems = (sqlite3.Error,)

    def put(
        self,
        tenant: str,
        keys: Sequence[str],
        value: bytes,
        *,
        now: float,
        reply: str = "",
        before: bytes | None = None,
    ) -> NoReturn:
        raise sqlite3.OperationalError("disk I/O error")

    def find(self, tenant: str, keys: Sequence[str], *, now: float) -> NoReturn:
        raise sqlite3.OperationalError("disk I/O error")

    def remove(self, tenant: str, key: str) -> NoReturn:
        raise sqlite3.OperationalError("disk I/O error")

    def totals(self, tenant: str | None = None) -> tuple[int, int]:
        return 1, 1

    def close(self) -> None:
        pass


@pytest.mark.parametrize("store", ["memory", "file"])
def test_what_was_remembered_is_recalled_until_its_time_is_over(store: str, tmp_path: Path) -> None:
    now = [1000.0]
    path = "memory" if store == "memory" else str(tmp_path / "replay.db")
    keeper = open_keeper(ReplaySettings(store=path, ttl_seconds=60), clock=lambda: now[0])
    run(keeper.remember(REPLY, FIRST, ATTEMPT, "a"))
    found = run(keeper.recall(NEXT, "a")).found
    assert next(state.data for kept in found.values() for state in kept.states) == "sig"
    assert not run(keeper.recall(NEXT, "b")).found
    now[0] += 60
    assert not run(keeper.recall(NEXT, "a")).found
    keeper.close()


def test_what_was_found_of_a_conversation_before_the_call_is_not_looked_for_again_behind_the_reply(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keeper = open_keeper(ReplaySettings(store="memory"))
    run(keeper.remember(REPLY, FIRST, ATTEMPT, "a"))
    asked = Request(model="m", messages=(*NEXT.messages, Message("user", (TextBlock("And now?"),))))
    recalled = run(keeper.recall(asked, "a"))
    attempt = next(attempts(asked, [TARGET], recalled=recalled))
    again = asked_again(attempt, [QUESTION], BUILTIN)
    assert attempt.history is recalled.history is again.history is not None

    def not_again(request: Request) -> NoReturn:
        raise AssertionError("the history was looked at a second time")

    found = remembered(REPLY, asked, asked, SIGNING)
    monkeypatch.setattr(memory, "history_of", not_again)
    assert remembered(REPLY, asked, asked, SIGNING, history=attempt.history) == found
    run(keeper.remember(REPLY, asked, attempt, "a"))
    monkeypatch.undo()
    following = Request(model="m", messages=(*asked.messages, Message("assistant", (CALL,))))
    turns = run(keeper.recall(following, "a"))
    assert turns.turns is not None
    assert {turns.turns[-1].exact, turns.turns[-1].loose} <= turns.found.keys()


def test_a_store_that_fails_costs_the_memory_and_no_reply() -> None:
    keeper = ReplayKeeper(Broken())
    run(keeper.remember(REPLY, FIRST, ATTEMPT))
    assert run(keeper.recall(NEXT)).found, "this process still knows it"
    recalled = run(ReplayKeeper(Broken()).recall(NEXT))
    assert recalled.found == {}
    assert [one.why for one in recalled.degraded] == ["the store of earlier reasoning does not answer"]


def test_a_store_that_fails_at_the_second_look_costs_only_what_that_would_have_found() -> None:
    keeper = ReplayKeeper(MemoryStore())
    calls = [ToolCallBlock(id=f"toolu_01A09q90qw90lq91783{name}", name="weather") for name in ("5lq9", "6lq8")]
    asked = FIRST
    for call in calls:
        run(keeper.remember(Response(blocks=(REPLY.blocks[0], call)), asked, ATTEMPT))
        asked = msgspec.structs.replace(asked, messages=(*asked.messages, Message("assistant", (call,)), QUESTION))
    renamed = Message("assistant", (msgspec.structs.replace(calls[1], id="toolu_01HLewATBS5iGpaNRc9kYGvg"),))
    asked = msgspec.structs.replace(asked, messages=(*asked.messages[:3], renamed, QUESTION))
    assert keeper.calls is not None
    find, looks = keeper.calls.find, list[Sequence[str]]()

    async def fail_at_second(tenant: str, keys: Sequence[str], *, now: float) -> dict[str, bytes] | None:
        looks.append(keys)
        return await find(tenant, keys, now=now) if len(looks) == 1 else None

    assert len(run(keeper.recall(asked)).found) == 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keeper.calls, "find", fail_at_second)
        recalled = run(keeper.recall(asked))
    assert (len(looks), len(recalled.found)) == (2, 1)
    assert [one.sent for one in recalled.degraded] == ["omitted"]


def test_what_a_store_does_not_take_is_held_here_and_written_when_it_answers() -> None:
    class Away(MemoryStore):
        waits = True
        problems = (ConnectionError,)
        away = True

        def put(
            self,
            tenant: str,
            keys: Sequence[str],
            value: bytes,
            *,
            now: float,
            reply: str = "",
            before: bytes | None = None,
        ) -> bool:
            if self.away:
                raise ConnectionError
            return super().put(tenant, keys, value, now=now, reply=reply, before=before)

        def find(self, tenant: str, keys: Sequence[str], *, now: float) -> dict[str, bytes]:
            if self.away:
                raise ConnectionError
            return super().find(tenant, keys, now=now)

    async def check() -> None:
        store, watch = Away(), [0.0]
        calls = StateCalls(store, name="state", area="replay", holds_writes=True, watch=lambda: watch[0])
        assert await calls.put("a", ["x"], b"value", now=0) is None
        assert await calls.find("a", ["x"], now=0) == {"x": b"value"}
        assert await calls.find("b", ["x"], now=0) is None
        watch[0], store.away = 60.0, False
        assert await calls.find("a", ["x"], now=0) == {"x": b"value"}
        await calls.write_held()
        assert not calls.unwritten
        assert store.totals("a") == (1, 6)
        calls.close()

    run(check())


def test_without_a_store_nothing_is_kept() -> None:
    keeper = open_keeper(ReplaySettings(store=""))
    run(keeper.remember(REPLY, FIRST, ATTEMPT))
    assert run(keeper.recall(NEXT)).found == {}
    keeper.close()


def test_a_reply_without_state_leaves_the_store_empty() -> None:
    store = MemoryStore()
    run(ReplayKeeper(store).remember(Response(blocks=(TextBlock("Sunny."),)), FIRST, ATTEMPT))
    assert store.totals() == (0, 0)


def test_the_settings_say_where_and_how_much() -> None:
    read = parse_settings('[replay]\nstore = "/tmp/x.db"\nttl_seconds = 60\nprefix_changed = "drop_block"\n').replay
    assert (read.store, read.ttl_seconds, read.prefix_changed) == ("/tmp/x.db", 60, "drop_block")
    assert parse_settings("").replay.store == "memory"


def test_a_wrong_word_in_the_settings_is_an_error_that_names_the_line() -> None:
    with pytest.raises(ConfigError, match="line 2"):
        parse_settings('[replay]\nprefix_changed = "guess"\n')

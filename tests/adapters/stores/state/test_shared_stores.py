"""What servers promise that several machines share: their bounds hold over all, and one that is stopped holds nothing up."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from bardo.adapters.config.settings import ReplaySettings, ResponseSettings, parse_settings
from bardo.adapters.stores.replay_store import open_keeper
from bardo.adapters.stores.response_store import StoredConversation, open_responses
from bardo.adapters.stores.state import Bounds, open_store
from bardo.adapters.stores.state.calls import StateCalls
from bardo.values.errors import BardoError, ConfigError, Unavailable
from support.patience import PATIENCE
from support.redis import run_redis

SERVERS = ("postgres_url", "redis_url")


@pytest.fixture(params=SERVERS)
def address(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, PATIENCE))


def test_two_machines_share_values_and_bounds(address: str) -> None:
    one, other = (open_store(address, Bounds(entries=3)) for _ in range(2))
    assert one is not None
    assert other is not None
    for place in range(4):
        (one if place % 2 else other).put("a", [f"k{place}"], b"v", now=place)
    assert sorted(one.find("a", ["k0", "k1", "k2", "k3"], now=4)) == ["k1", "k2", "k3"]
    assert one.totals() == other.totals()
    one.close()
    other.close()


def test_two_stores_at_one_address_know_nothing_of_each_other(address: str) -> None:
    replay, responses = (open_store(address, Bounds(), space=space) for space in ("replay", "responses"))
    assert replay is not None
    assert responses is not None
    replay.put("a", ["x"], b"reasoning", now=0)
    responses.put("a", ["y"], b"response", now=0)
    assert replay.find("a", ["x", "y"], now=1) == {"x": b"reasoning"}
    assert responses.totals() == (1, 9)
    replay.close()
    responses.close()


@pytest.mark.parametrize("name", ["\0", "\ud800", "!", "a" * 5000, "'; DROP TABLE x; --", "%s :tenant {}"])
def test_names_of_any_kind_are_kept_apart(address: str, name: str) -> None:
    store = open_store(address, Bounds())
    assert store is not None
    if len(name) < 2000:
        assert store.put(name, [name, "x"], b"\0value", now=0, reply=name)
        assert store.find(name, [name, "x"], now=1) == {name: b"\0value", "x": b"\0value"}
    assert store.find("x", [name], now=1) == {}
    assert not store.remove("other", name)
    store.close()


def test_the_store_is_named_by_a_variable(address: str) -> None:
    read = parse_settings('[replay]\nstore_env = "REPLAY_STORE"\n').replay
    with pytest.raises(ConfigError, match="REPLAY_STORE, which holds the store of earlier reasoning, is not set"):
        open_keeper(read, environment={})
    keeper = open_keeper(read, environment={"REPLAY_STORE": address})
    assert keeper.calls is not None
    assert keeper.calls.store.waits
    keeper.close()


@pytest.mark.parametrize("table", ["replay", "responses"])
def test_a_store_of_an_unknown_kind_is_refused_with_its_line(table: str) -> None:
    with pytest.raises(ConfigError, match=r"line 2: bardo knows no store 'mysql'"):
        parse_settings(f'[{table}]\nstore = "mysql://host/db"\n')


@pytest.mark.parametrize("word", ["none", "Off", "no", "null"])
@pytest.mark.parametrize("table", ["replay", "responses", "provider_ids", "health"])
def test_a_word_for_no_store_is_no_name_of_a_file(table: str, word: str) -> None:
    with pytest.raises(ConfigError, match=f"line 2: '{word}' would be a file") as caught:
        parse_settings(f'[{table}]\nstore = "{word}"\n')
    assert f"./{word}" in caught.value.hint
    parse_settings(f'[{table}]\nstore = "./{word}"\n')


def test_an_absent_server_fails_no_start_and_no_call(tmp_path: Path) -> None:
    async def check(where: str) -> None:
        keeper = open_keeper(ReplaySettings(store=where))
        assert keeper.calls is not None
        assert await keeper.calls.put("a", ["x"], b"value", now=0) is None
        assert await keeper.calls.find("a", ["x"], now=0) == {"x": b"value"}, "it is held here"
        keeper.close()
        responses = open_responses(ResponseSettings(store=where))
        assert responses is not None
        with pytest.raises(Unavailable, match="cannot be reached now"):
            await responses.responses("a", ["resp_1"])
        with pytest.raises(Unavailable):
            await responses.append("a", "conv_1", [{"id": "item_1"}])
        responses.close()

    for where in (f"unix://{tmp_path}/none", f"postgresql://bardo@/none?host={tmp_path}"):
        run(check(where))


@pytest.mark.parametrize("where", ["redis://host:port", "postgresql://host:port/x"])
def test_an_address_that_cannot_be_read_is_an_error_without_its_password(where: str) -> None:
    with pytest.raises(BardoError) as caught:
        open_keeper(ReplaySettings(store=where.replace("//", "//me:hidden@")))
    assert "hidden" not in f"{caught.value.message} {caught.value.hint}"


def test_a_server_that_is_stopped_in_the_middle_is_used_again_when_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, redis_program: str
) -> None:
    watch = [0.0]

    async def check(servers: list[subprocess.Popen[bytes]]) -> None:
        store = open_store(f"unix://{tmp_path}/socket", Bounds())
        assert store is not None
        calls = StateCalls(store, name="earlier reasoning", area="replay", holds_writes=True, watch=lambda: watch[0])
        assert await calls.put("a", ["x"], b"before", now=0)
        servers[0].kill()
        servers[0].wait(PATIENCE)
        assert await calls.put("a", ["y"], b"meanwhile", now=0) is None
        assert await calls.find("a", ["x", "y"], now=0) == {"y": b"meanwhile"}
        (tmp_path / "socket").unlink(missing_ok=True)
        servers.append(run_redis(redis_program, tmp_path))
        watch[0] = 60.0
        assert await calls.find("a", ["x", "y"], now=0) == {"y": b"meanwhile"}
        await calls.write_held()
        assert not calls.unwritten
        assert store.find("a", ["x", "y"], now=0) == {"y": b"meanwhile"}, "other machines find it too"
        calls.close()

    servers = [run_redis(redis_program, tmp_path)]
    try:
        run(check(servers))
    finally:
        for server in servers:
            server.kill()
            server.wait(PATIENCE)
    said = [record.message for record in caplog.records if "earlier reasoning" in record.message]
    assert len(said) == 2, "once when it begins, and once when it is over"


def test_a_slow_database_holds_no_call_up(postgres_url: str) -> None:
    watch = [0.0]

    async def check() -> None:
        store = open_store(postgres_url, Bounds())
        assert store is not None
        assert store.put("a", ["x"], b"before", now=0)
        calls = StateCalls(
            store, name="earlier reasoning", area="replay", seconds=0.2, holds_writes=True, watch=lambda: watch[0]
        )
        engine = create_engine(postgres_url)
        with engine.begin() as connection:
            connection.execute(text("LOCK TABLE bardo_replay_entries IN ACCESS EXCLUSIVE MODE"))
            assert await calls.put("a", ["y"], b"meanwhile", now=0, reply="r") is None
            assert await calls.find("a", ["x", "y"], now=0) == {"y": b"meanwhile"}
            assert await calls.find("a", ["x"], now=0) is None
        engine.dispose()
        while calls.unwritten:
            watch[0] += 60.0
            await calls.find("a", ["x"], now=0)
            await calls.write_held()
        assert store.find("a", ["x", "y"], now=0) == {"x": b"before", "y": b"meanwhile"}
        assert store.totals("a")[0] == 2, "what was written late is there once"
        calls.close()

    run(check())


def test_a_conversation_that_two_machines_extend_at_once_keeps_what_both_added(address: str) -> None:
    async def check() -> None:
        machines = [open_responses(ResponseSettings(store=address, timeout_seconds=PATIENCE)) for _ in range(2)]
        one, other = (machine for machine in machines if machine is not None)
        await one.put_conversation("a", StoredConversation(id="conv_1", created_at=0))
        added = [
            (machine, {"id": f"{name}{place}"}) for place in range(5) for name, machine in (("o", one), ("t", other))
        ]
        kept = await asyncio.gather(*(machine.append("a", "conv_1", [item]) for machine, item in added))
        assert all(kept)
        found = await other.conversation("a", "conv_1")
        assert found is not None
        assert sorted(item["id"] for item in found.items) == sorted(item["id"] for _, item in added)
        one.close()
        other.close()

    run(check())

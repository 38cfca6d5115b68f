"""Every store under two processes that write at once: nothing is lost, and no error of a driver leaves it."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path

import pytest

from bardo.adapters.stores.database import engines
from bardo.adapters.stores.state import sqlite
from bardo.services.accounts import agent_calls as agent_steps
from bardo.values.errors import BardoError
from support import store_writers
from support.patience import PATIENCE, read_line
from support.store_writers import OVER_POSTGRES, OVER_REDIS, STORES, names_of

TESTS = Path(__file__).parents[2]
Writers = list[subprocess.Popen[str]]


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    """Two processes that write into the stores that they are told."""
    command = [sys.executable, "-m", store_writers.__name__]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    with ExitStack() as stack:
        started = [
            stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
            )
            for _ in "ab"
        ]
        yield started
        for one in started:
            assert one.stdin is not None
            one.stdin.close()
            assert one.wait(PATIENCE) == 0


def tell(writer: subprocess.Popen[str], line: str) -> None:
    assert writer.stdin is not None
    writer.stdin.write(f"{line}\n")
    writer.stdin.flush()


async def found_in(store: str, place: str) -> list[str]:
    async with asynccontextmanager(STORES[store])(place) as one:
        return await one.read()


def check(store: str, place: str, writers: Writers) -> None:
    # The first makes the store, so that both write it at once rather than make it: opening at once has tests of its own.
    for writer, name in zip(writers, "ab", strict=True):
        tell(writer, json.dumps({"store": store, "place": place, "writer": name}))
        assert read_line(writer.stdout) == "ready\n"
    for writer in writers:
        tell(writer, "go")
    assert [json.loads(read_line(writer.stdout)) for writer in writers] == [[], []]
    found = asyncio.run(found_in(store, place))
    assert Counter(found) == Counter([*names_of("a"), *names_of("b")])


@pytest.mark.sampled(8)
@pytest.mark.parametrize("store", STORES)
def test_two_processes_write_one_file_at_once(store: str, writers: Writers, tmp_path: Path) -> None:
    check(store, str(tmp_path / store), writers)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("store", OVER_POSTGRES)
def test_two_processes_write_one_postgresql_at_once(store: str, writers: Writers, postgres_url: str) -> None:
    check(store, postgres_url, writers)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("store", OVER_REDIS)
def test_two_processes_write_one_redis_at_once(store: str, writers: Writers, redis_url: str) -> None:
    check(store, redis_url, writers)


@pytest.mark.parametrize(
    "store", ["payments", "limits", "feedback", "keys", "batches", "files", "agent_steps", "conversations"]
)
def test_a_file_that_stays_locked_is_told_in_bardos_words_and_used_again_later(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / store
    monkeypatch.setattr(engines, "BUSY_SECONDS", 0.0)
    monkeypatch.setattr(engines, "LONGEST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(agent_steps, "_FILE_SECONDS", 0.0)
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0.0)

    async def write() -> list[str]:
        async with asynccontextmanager(STORES[store])(str(place)) as one:
            await one.write("a0")
            with closing(sqlite3.connect(place, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                if store == "agent_steps":
                    await one.write("a1")
                else:
                    with pytest.raises(BardoError):
                        await one.write("a1")
            if store != "conversations":  # A store that failed rests for a second.
                await one.write("a1")
        return await found_in(store, str(place))

    assert sorted(asyncio.run(write())) == (["a0"] if store == "conversations" else ["a0", "a1"])

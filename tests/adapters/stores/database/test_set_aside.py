"""A damaged file that can be made anew is set aside, at the start and while it is used; what is no memory aid is left alone."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bardo.adapters.config.settings import ReplaySettings, parse_settings
from bardo.adapters.stores.database.set_aside import RenewableFile, set_file_aside
from bardo.adapters.stores.database.store_calls import StoreCalls
from bardo.adapters.stores.replay_store import open_keeper
from bardo.adapters.stores.state.calls import StateCalls
from bardo.context.cache.entries import CacheBounds, CacheEntry
from bardo.services.facts.health_sharing import FileExchange
from bardo.services.facts.learned_routing import (
    UnreadableState,
    open_or_renew_router,
    open_router,
    state_path,
    store_state,
)
from bardo.services.facts.provider_ids import open_provider_ids
from bardo.services.pipeline.reply_cache.evidence import SimilarEvidence
from bardo.services.pipeline.reply_cache.opening import open_replies
from bardo.values.errors import Unavailable, UnknownProviderId
from bardo.values.request import Request
from support.damage import DAMAGES, write_prose, zero_first_page

pytestmark = pytest.mark.each_python
NOW = 1_000.0


class Aid:
    """One kind of store over a file: `put` keeps something, `get` says whether it is there, both as a call does."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def put(self, name: str) -> None: ...

    async def get(self, name: str) -> bool:
        raise NotImplementedError

    def close(self) -> None: ...


class EarlierReasoning(Aid):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._keeper = open_keeper(ReplaySettings(store=str(path)))

    @property
    def calls(self) -> StateCalls:
        assert self._keeper.calls is not None
        return self._keeper.calls

    async def put(self, name: str) -> None:
        await self.calls.put("tenant", [name], b"value" * 1_000, now=NOW)

    async def get(self, name: str) -> bool:
        found = await self.calls.find("tenant", [name], now=NOW)
        assert found is not None, "the store answers"
        return name in found

    def close(self) -> None:
        self._keeper.close()


class KeptReplies(Aid):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        renewable = RenewableFile(path, name="kept replies", area="cache")
        self._calls = StoreCalls(
            lambda: renewable.open(lambda: open_replies(str(path), CacheBounds())),
            in_memory=False,
            watch=lambda: 0.0,
            renewable=renewable,
        )

    async def put(self, name: str) -> None:
        entry = CacheEntry(
            tenant="t",
            identity=name.encode(),
            value=b"value" * 1_000,
            expires=NOW + 60,
            model="m",
            answered_by="p/m",
            tags=(),
            index=b"",
        )
        await self._calls.ask(lambda store: store.put(entry, now=NOW), 60)

    async def get(self, name: str) -> bool:
        return bool(await self._calls.ask(lambda store: store.find("t", name.encode(), now=NOW), 60))

    def close(self) -> None:
        self._calls.close()


class SharedHealth(Aid):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._renewable = RenewableFile(path, name="health", area="health")
        self._one = self._calls()
        self._other = self._calls()

    def _calls(self) -> StoreCalls[FileExchange]:
        renewable = RenewableFile(self.path, name="health", area="health")
        opening = lambda: renewable.open(lambda: FileExchange(self.path, past_seconds=60.0, clock=lambda: NOW))  # noqa: E731
        return StoreCalls(opening, in_memory=False, watch=lambda: 0.0, renewable=renewable)

    async def put(self, name: str) -> None:
        await self._one.ask(lambda store: store.exchange(name.encode() * 1_000), 60)

    async def get(self, name: str) -> bool:
        found = await self._other.ask(lambda store: store.exchange(b""), 60)
        assert found is not None, "the store answers"
        return name.encode() * 1_000 in [message.data for message in found.messages]

    def close(self) -> None:
        self._one.close()
        self._other.close()


class SimilarQuestions(Aid):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._evidence = SimilarEvidence(path)

    async def put(self, name: str) -> None:
        self._evidence.count(name * 1_000, "served")
        self._evidence.store()

    async def get(self, name: str) -> bool:
        self._evidence.store()
        return any(one.fingerprint == name * 1_000 for one in self._evidence.figures())


class IdsOfProviders(Aid):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._ids = open_provider_ids(parse_settings(f'[provider_ids]\nstore = "{path}"'))

    async def put(self, name: str) -> None:
        await self._ids.keep("tenant", [name])

    async def get(self, name: str) -> bool:
        try:
            await self._ids.check(Request(model="m", messages=(), body={"file_id": name}), "tenant")
        except UnknownProviderId:
            return False
        return True

    def close(self) -> None:
        self._ids.close()


AIDS: tuple[Callable[[Path], Aid], ...] = (
    EarlierReasoning,
    KeptReplies,
    SharedHealth,
    SimilarQuestions,
    IdsOfProviders,
)


def run(aid: Aid, work: Callable[[Aid], Awaitable[Any]]) -> None:
    async def all_of_it() -> None:
        try:
            await work(aid)
        finally:
            aid.close()

    asyncio.run(all_of_it())


async def fill(aid: Aid) -> None:
    for number in range(8):
        await aid.put(f"before{number}")


async def works(aid: Aid) -> None:
    # The first may be what notices the damage.
    await aid.get("before3")
    await aid.put("after")
    assert await aid.get("after")


def aside(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if ".corrupt" in path.name)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", AIDS)
def test_what_is_damaged_at_the_start_is_set_aside(
    kind: Callable[[Path], Aid], damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "aid.db"
    run(kind(path), fill)
    DAMAGES[damage](path)
    with caplog.at_level(logging.WARNING):
        run(kind(path), works)
    assert "aid.db.corrupt" in aside(tmp_path)
    assert f"{path}, which keeps" in caplog.text
    assert "aid.db.corrupt, and made anew" in caplog.text
    run(kind(path), works)
    assert [name for name in aside(tmp_path) if name.endswith(("-2", "-2-wal"))] == []


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", AIDS)
def test_what_is_damaged_while_it_is_used_is_set_aside(
    kind: Callable[[Path], Aid], damage: str, tmp_path: Path
) -> None:
    path = tmp_path / "aid.db"

    async def work(aid: Aid) -> None:
        await fill(aid)
        DAMAGES[damage](path)
        # What is still in a connection's memory may hide a damage for a while.
        for number in range(8):
            await aid.put(f"between{number}")
        await works(aid)

    run(kind(path), work)
    run(kind(path), works)


@pytest.mark.parametrize("kind", AIDS)
def test_an_empty_or_absent_file_is_begun_without_a_word(
    kind: Callable[[Path], Aid], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "empty.db").touch()
    with caplog.at_level(logging.WARNING):
        run(kind(tmp_path / "empty.db"), works)
        run(kind(tmp_path / "absent.db"), works)
    assert caplog.text == ""


def test_each_damaged_file_is_set_aside_under_a_name_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "aid.db"
    for _ in range(3):
        run(EarlierReasoning(path), fill)
        path.with_name("aid.db-wal").write_bytes(b"")
        zero_first_page(path)
        run(EarlierReasoning(path), works)
    databases = [name for name in aside(tmp_path) if not name.endswith(("-wal", "-shm"))]
    assert databases == ["aid.db.corrupt", "aid.db.corrupt-2", "aid.db.corrupt-3"]
    assert "aid.db.corrupt-wal" in aside(tmp_path)


def test_of_two_that_share_a_file_one_sets_it_aside_and_both_go_on_with_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "aid.db"
    one, other = EarlierReasoning(path), EarlierReasoning(path)

    async def work() -> None:
        await fill(one)
        assert await other.get("before3")
        DAMAGES["zeroed pages"](path)
        await works(one)
        assert await other.get("after")
        await other.put("of the other")
        assert await one.get("of the other")
        assert [name for name in aside(tmp_path) if name.startswith("aid.db.corrupt-2")] == []

    asyncio.run(work())
    one.close()
    other.close()


def test_a_file_that_was_removed_while_it_is_used_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "aid.db"

    async def work(aid: Aid) -> None:
        await fill(aid)
        path.unlink()
        await works(aid)
        assert path.exists()

    run(EarlierReasoning(path), work)


@pytest.mark.parametrize("table", ["bardo_revisions", "inference_log_version"])
def test_a_ledger_that_a_configuration_names_for_a_memory_aid_is_left_alone(
    table: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path)) as rows:
        rows.execute(f"CREATE TABLE {table} (version_num)")
        rows.execute("CREATE TABLE entries (x)")
        rows.commit()
    before = path.read_bytes()
    run(EarlierReasoning(path), works)
    assert "is a ledger of bardo, and is left alone" in caplog.text
    assert "kept in memory" in caplog.text
    assert path.read_bytes()[:100][:16] == before[:16]
    assert aside(tmp_path) == []


@pytest.mark.parametrize("content", ["", "{", "[]", '{"clusters": 3}', "\0" * 4096])
def test_learned_routing_begins_anew_where_its_file_cannot_be_read(
    content: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "routing.json"
    path.write_text(content)
    settings = parse_settings(f'[routing]\nstrategy = "learned"\n[routing.learned]\nfile = "{path}"\n')
    router = open_or_renew_router(settings)
    assert "routing learns anew" in caplog.text
    assert (tmp_path / "routing.json.corrupt").read_text() == content
    store_state(router.state, state_path(settings))
    open_or_renew_router(settings)
    assert aside(tmp_path) == ["routing.json.corrupt"]


def test_a_link_that_leads_nowhere_costs_no_memory_aid_its_work(tmp_path: Path) -> None:
    for kind in AIDS:
        path = tmp_path / f"{kind.__name__}.db"
        path.symlink_to(tmp_path / f"{path.name}-of-a-disk-that-is-gone")
        run(kind(path), works)


def test_whose_ids_are_is_not_made_anew_where_unknown_ids_may_be_used(tmp_path: Path) -> None:
    path = tmp_path / "ids.db"
    write_prose(path)
    before = path.read_bytes()

    async def asked() -> None:
        ids = open_provider_ids(parse_settings(f'[provider_ids]\nunknown = "allow"\nstore = "{path}"'))
        with pytest.raises(Unavailable):
            await ids.check(Request(model="m", messages=(), body={"file_id": "x"}), "tenant")
        ids.close()

    asyncio.run(asked())
    assert path.read_bytes() == before
    assert aside(tmp_path) == []


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter").touch()
    run(EarlierReasoning(tmp_path / "home"), works)
    assert "a folder with something in it, and is left alone" in caplog.text
    assert (tmp_path / "home" / "letter").exists()


def test_a_command_that_only_reads_what_routing_learned_leaves_a_damaged_file_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "routing.json"
    path.write_text("{")
    with pytest.raises(UnreadableState):
        open_router(parse_settings(f'[routing.learned]\nfile = "{path}"\n'))
    assert path.read_text() == "{"


def test_a_folder_is_set_aside_as_a_file_is_unless_something_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter").touch()
    with pytest.raises(OSError, match="a folder with something in it"):
        set_file_aside(tmp_path / "home")
    (tmp_path / "routing.json").mkdir()
    assert set_file_aside(tmp_path / "routing.json") == tmp_path / "routing.json.corrupt"

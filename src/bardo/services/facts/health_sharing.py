"""Keeps the health of targets up to date beside the calls: in step with other gateways over Redis or Valkey, or with other workers over a
file, and by pings.

`RedisExchange` carries what gateways send each other between machines, and leases that one of them holds at a time; `FileExchange`
carries both between the workers of one, over an SQLite file. Messages are kept for a while, and up to a number, for those that begin. No
call ever waits for it. What this gateway saw is sent in one message every half second, sooner where a target went down or came back, and
what others sent is read at the same time. While the server is away, each gateway goes on with what it sees itself.

Pings: where the operator wants it, providers whose list of models is free are asked for it at times, to see whether they are there. A
ping tells of the connection alone. That models answer, only calls tell, and none is made for it: a request of one token costs money, and
fails at models that think first.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

from bardo.adapters.config.mistakes import Place
from bardo.adapters.config.routing import HealthSettings, check_place
from bardo.adapters.config.storage import REDIS, is_file_name, place_of
from bardo.adapters.net.client import Deadlines, Transport
from bardo.adapters.net.keys import Keyring
from bardo.adapters.stores.database.redis import connect_redis, redis_problems
from bardo.adapters.stores.database.set_aside import RenewableFile
from bardo.adapters.stores.database.sqlite_file import check_number, open_file
from bardo.adapters.stores.database.store_calls import StoreCalls
from bardo.planning.route import Provider
from bardo.routing.circuit import AttemptOutcome
from bardo.routing.health_news import decode_news, encode_news
from bardo.routing.shared_health import SharedHealth, TargetName
from bardo.services.facts.directory import ProviderDirectory
from bardo.services.facts.health import HealthKeeper
from bardo.services.facts.list_models import list_models
from bardo.values.errors import BardoError, Unreachable, UpstreamTimeout

LEASE_SECONDS = 30.0
MOST_MESSAGES = 20_000


class Message(NamedTuple):
    """A message of another gateway, and how many seconds ago it was sent."""

    age: float
    data: bytes


class ExchangeResult(NamedTuple):
    """The messages of others since the last time, and the requested leases that this gateway holds."""

    messages: Sequence[Message]
    held: Sequence[str]


class Exchange(Protocol):
    """The messages of one gateway, and the leases that one gateway holds at a time. Calls may fail with `problems`."""

    @property
    def problems(self) -> tuple[type[Exception], ...]: ...

    def exchange(self, data: bytes, *, hold: Iterable[str] = (), give_back: Iterable[str] = ()) -> ExchangeResult: ...

    def close(self) -> None: ...


_HINT = "choose a file in a directory that this user may write to"
_KEPT_LONGER_SECONDS = 60.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, sender TEXT NOT NULL, sent REAL NOT NULL, data BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS messages_by_time ON messages (sent);
CREATE TABLE IF NOT EXISTS leases (name TEXT PRIMARY KEY, holder TEXT NOT NULL, until REAL NOT NULL) WITHOUT ROWID;
"""
_HOLD = """
INSERT INTO leases (name, holder, until) VALUES (?1, ?2, ?3)
ON CONFLICT (name) DO UPDATE SET holder = ?2, until = ?3 WHERE holder = ?2 OR until <= ?4
"""


class FileExchange:
    """The messages of one worker in a file, which is readable by its owner alone.

    `past_seconds` is how old the messages may be that it reads first; `clock` is a clock that all workers share.
    """

    problems: tuple[type[Exception], ...] = (OSError, sqlite3.Error)

    def __init__(
        self, path: str | Path, *, past_seconds: float, timeout: float = 2.0, clock: Callable[[], float] = time.time
    ) -> None:
        """Open or create the file. Raises ConfigError where that cannot be done."""
        self._clock = clock
        self._past_seconds = past_seconds
        self._own = uuid4().hex
        self._after: int | None = None
        self._lock = threading.Lock()
        self._connection = open_file(Path(path), timeout=timeout, hint=_HINT, prepare=_prepare)

    def exchange(self, data: bytes, *, hold: Iterable[str] = (), give_back: Iterable[str] = ()) -> ExchangeResult:
        """Send a message, unless it is empty, and return what others sent. `hold` are leases to ask for or to keep."""
        now, asked, given = self._clock(), list(hold), list(give_back)
        with self._lock, self._connection as rows:
            rows.execute("BEGIN IMMEDIATE" if data or asked or given else "BEGIN")
            rows.executemany("DELETE FROM leases WHERE name = ? AND holder = ?", [(name, self._own) for name in given])
            held = [name for name in asked if self._hold(rows, name, now)]
            if data:
                self._send(rows, data, now)
            messages = self._read(rows, now)
        return ExchangeResult(messages, held)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _hold(self, rows: sqlite3.Connection, name: str, now: float) -> bool:
        return rows.execute(_HOLD, (name, self._own, now + LEASE_SECONDS, now)).rowcount > 0

    def _send(self, rows: sqlite3.Connection, data: bytes, now: float) -> None:
        sent = rows.execute("INSERT INTO messages (sender, sent, data) VALUES (?, ?, ?)", (self._own, now, data))
        rows.execute(
            "DELETE FROM messages WHERE sent < ? OR id <= ?",
            (now - self._past_seconds - _KEPT_LONGER_SECONDS, (sent.lastrowid or 0) - MOST_MESSAGES),
        )

    def _read(self, rows: sqlite3.Connection, now: float) -> list[Message]:
        since = now - self._past_seconds if self._after is None else 0.0
        entries = rows.execute(
            "SELECT id, sent, data FROM messages WHERE id > ? AND sent >= ? AND sender != ? ORDER BY id",
            (self._after or 0, since, self._own),
        ).fetchall()
        self._after = entries[-1][0] if entries else self._after or 0
        return [Message(max(0.0, now - sent), bytes(data)) for _, sent, data in entries]


def _prepare(connection: sqlite3.Connection) -> None:
    check_number(connection, 0)
    # News of health are of no use after a power cut.
    connection.execute("PRAGMA synchronous = OFF")
    connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")


_AT_ONCE = 500
_MOST_ROUNDS = MOST_MESSAGES // _AT_ONCE
_TAKE_LEASE = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
_GIVE_BACK = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class RedisExchange:
    """The messages of one gateway at the server at `address`. `past_seconds` is how old the messages may be that it reads first."""

    problems: tuple[type[Exception], ...]

    def __init__(self, address: str, *, space: str, past_seconds: float, timeout: float = 2.0) -> None:
        """Prepare connections; none is opened yet. Raises ConfigError without the package, or for a wrong address."""
        self._server: Any = connect_redis(address, timeout=timeout, what=space)
        self.problems = redis_problems()
        self._prefix = f"bardo:{{{space}}}:"
        self._past_ms = int(past_seconds * 1000)
        self._own = uuid4().hex
        self._after = ""

    def exchange(self, data: bytes, *, hold: Iterable[str] = (), give_back: Iterable[str] = ()) -> ExchangeResult:
        """Send a message, unless it is empty, and return what others sent. `hold` are leases to ask for or to keep."""
        asked, given = list(hold), list(give_back)
        seconds, micros = self._server.time() if not self._after else (0, 0)
        after = self._after or str(max(0, seconds * 1000 + micros // 1000 - self._past_ms))
        with self._server.pipeline(transaction=False) as pipeline:
            for name in given:
                pipeline.eval(_GIVE_BACK, 1, self._lease(name), self._own)
            for name in asked:
                pipeline.eval(_TAKE_LEASE, 1, self._lease(name), self._own, int(LEASE_SECONDS * 1000))
            if data:
                self._add(pipeline, data)
            pipeline.time()
            pipeline.xrange(self._prefix + "messages", min=f"({after}", count=_AT_ONCE)
            answers = pipeline.execute()
        held = [name for name, answer in zip(asked, answers[len(given) :], strict=False) if answer]
        seconds, micros = answers[-2]
        entries = self._read_on(answers[-1])
        self._after = entries[-1][0].decode() if entries else after
        return ExchangeResult(self._of_others(entries, seconds + micros / 1e6), held)

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def _add(self, pipeline: Any, data: bytes) -> None:
        fields = {"from": self._own, "data": data}
        pipeline.xadd(self._prefix + "messages", fields, maxlen=MOST_MESSAGES, approximate=True)
        # The server forgets a list without further additions.
        pipeline.pexpire(self._prefix + "messages", self._past_ms + 60_000)

    def _read_on(self, entries: list[Any]) -> list[Any]:
        """Return entries with those that come after them."""
        latest = entries
        for _ in range(_MOST_ROUNDS):
            if len(latest) < _AT_ONCE:
                break
            after = f"({latest[-1][0].decode()}"
            latest = self._server.xrange(self._prefix + "messages", min=after, count=_AT_ONCE)
            entries = [*entries, *latest]
        return entries

    def _of_others(self, entries: Iterable[Any], at: float) -> list[Message]:
        own, messages = self._own.encode(), []
        for number, fields in entries:
            data = fields.get(b"data")
            if data is not None and fields.get(b"from") != own:
                sent = int(number.partition(b"-")[0]) / 1000
                messages.append(Message(max(0.0, at - sent), data))
        return messages

    def _lease(self, name: str) -> str:
        return f"{self._prefix}lease:{blake2b(name.encode('utf-8', 'replace'), digest_size=16).hexdigest()}"


EXCHANGE_SECONDS = 0.5
"""How often news are exchanged: what one gateway saw, another knows after twice that at most, and the time on the way."""
_LEAST_PAUSE = 0.05
_ANSWER_SECONDS = 2.0

_log = logging.getLogger("bardo.health")


class HealthSharing:
    """Exchanges the news of one store of health, from `start` until `close`."""

    def __init__(
        self,
        keeper: HealthKeeper,
        store: SharedHealth,
        calls: StoreCalls[Exchange],
        *,
        watch: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keeper = keeper
        self._store = store
        self._calls = calls
        self._watch = watch
        self._task: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._is_new = True
        self._has_just_joined = False
        self._closing = False
        self._told_of_unreadable = False
        store.wake = self._woken.set

    def start(self) -> None:
        """Begin, in the running event loop."""
        self._task = self._task or asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Send what others were not told yet, and let go of the server."""
        self._closing = True
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        try:
            if task is not None and self._store.in_step:
                await self._tell_last()
            await asyncio.to_thread(self._calls.close)
        except RuntimeError:  # The interpreter ends, and starts no thread any more.
            self._calls.close()
        self._store.leave()

    async def exchange(self) -> bool:
        """Exchange news once, and return whether the server answered."""
        store, now, was_alone = self._store, self._watch(), not self._store.in_step
        # What went down while the first news were on their way is told with the second ones.
        news = (*(store.standing(now) if was_alone or self._has_just_joined else ()), *store.outgoing(now))
        targets, back = ([], []) if was_alone else store.trials(now)
        data = encode_news(news) if news else b""
        result = await self._ask(data, targets, back)
        if result is None:
            store.leave()
            return False
        store.in_step, self._has_just_joined = True, was_alone
        self._take(result)
        held = [name for name in targets if _text(name) in set(result.held)]
        store.set_trials(targets, held, self._watch())
        return True

    async def _run(self) -> None:
        # A cancellation may be lost in `asyncio.wait_for` where what it waits for is done at the same moment (Python before 3.12).
        while not self._closing:
            try:
                await self.exchange()
            except Exception:  # noqa: BLE001 - without this task no other gateway is heard of again
                self._store.leave()
                _log.exception("a mistake in bardo, while the health of providers was shared")
            await asyncio.sleep(_LEAST_PAUSE)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(EXCHANGE_SECONDS - _LEAST_PAUSE):
                    await self._woken.wait()
            self._woken.clear()

    async def _tell_last(self) -> None:
        now = self._watch()
        trials = [_text(name) for name in self._store.trials(now)[0]]
        data = encode_news(self._store.outgoing(now))
        await self._calls.ask(lambda exchange: exchange.exchange(data, give_back=trials), _ANSWER_SECONDS)

    async def _ask(self, data: bytes, targets: list[TargetName], back: list[TargetName]) -> ExchangeResult | None:
        hold, give_back = [_text(name) for name in targets], [_text(name) for name in back]
        return await self._calls.ask(
            lambda exchange: exchange.exchange(data, hold=hold, give_back=give_back), _ANSWER_SECONDS
        )

    def _take(self, result: ExchangeResult) -> None:
        now, first, self._is_new = self._watch(), self._is_new, False
        first = first and next(self._store.targets(), None) is None
        for age, data in result.messages:
            try:
                news = decode_news(data)
            except ValueError:
                self._tell_of_unreadable()
                continue
            for change in self._store.take(news, age=age, now=now, first=first):
                self._keeper.tell_of_others(change.provider, change.model, now, is_down=change.is_down)

    def _tell_of_unreadable(self) -> None:
        """Warn once that another gateway sends messages that cannot be read: it may be of another version."""
        if not self._told_of_unreadable:
            self._told_of_unreadable = True
            _log.warning("another gateway tells of health in a form that this version of bardo cannot read")


def open_sharing(
    settings: HealthSettings, keeper: HealthKeeper, environment: Mapping[str, str] | None = None
) -> HealthSharing:
    """Return what shares the health that a keeper keeps. Raises ConfigError for a wrong address, or without the package."""
    where = place_of(settings, os.environ if environment is None else environment, "health")
    check_place(where, Place("", settings.store_env))
    opening = _opening(where, settings.window_seconds)
    renewable = (
        RenewableFile(Path(where), name="health that gateways share", area="health") if is_file_name(where) else None
    )
    calls: StoreCalls[Exchange] = StoreCalls(
        opening if renewable is None else partial(renewable.open, opening),
        in_memory=False,
        watch=time.monotonic,
        name="health that gateways share",
        area="health",
        renewable=renewable,
    )
    store = keeper.store
    assert isinstance(store, SharedHealth), "health_store() makes one where a server is named"
    return HealthSharing(keeper, store, calls)


def _opening(where: str, past_seconds: float) -> Callable[[], Exchange]:
    """Return the opener of the exchange at a place. The server's library is loaded at once, so that its absence is known."""
    if not where.startswith(REDIS):
        return lambda: FileExchange(where, past_seconds=past_seconds, timeout=_ANSWER_SECONDS)
    exchange = RedisExchange(where, space="health", past_seconds=past_seconds, timeout=_ANSWER_SECONDS)
    return lambda: exchange


def _text(name: TargetName) -> str:
    return "\n".join(name)


_ASKING = Deadlines(connect=5.0, first_byte=10.0, idle=10.0)
_PINGS_AT_ONCE = 8
_UNREACHABLE = AttemptOutcome(error="connection")
# A refusal says that there is a server, as a list does.
_THERE = AttemptOutcome(error="caller")


class HealthPings:
    """Pings providers every `seconds` from `start` until `close`."""

    def __init__(
        self,
        directory: ProviderDirectory,
        transport: Transport,
        keyring: Keyring,
        health: HealthKeeper,
        *,
        seconds: float,
        watch: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = directory
        self._transport = transport
        self._keyring = keyring
        self._health = health
        self._seconds = seconds
        self._watch = watch
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in the running event loop."""
        self._task = self._task or asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Stop. A ping that is under way is abandoned."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def ping_all(self) -> None:
        """Ask every provider whose list is free, some at once."""
        limit = asyncio.Semaphore(_PINGS_AT_ONCE)
        asked = (host for host in self._directory.providers if host.row.free_list and not self._keyring.lacks(host))
        await asyncio.gather(*(self._ping(server, limit) for provider in asked for server in provider.servers))

    async def _run(self) -> None:
        while True:
            await self.ping_all()
            await asyncio.sleep(self._seconds)

    async def _ping(self, provider: Provider, limit: asyncio.Semaphore) -> None:
        async with limit:
            try:
                await list_models(provider, self._transport, self._keyring, _ASKING)
            except (Unreachable, UpstreamTimeout):
                outcome = _UNREACHABLE
            except BardoError:
                outcome = _THERE
            else:
                outcome = _THERE
        self._health.note(provider.place, "", outcome, self._watch())

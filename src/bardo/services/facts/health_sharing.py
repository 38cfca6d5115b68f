"""Keeps the health of targets in step with other gateways over Redis or Valkey, or with other workers over a file, beside the calls.

No call ever waits for it. What this gateway saw is sent in one message every half second, sooner where a target went down or came back, and
what others sent is read at the same time. While the server is away, each gateway goes on with what it sees itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from bardo.adapters.config.mistakes import Place
from bardo.adapters.config.routing import HealthSettings, check_place
from bardo.adapters.config.storage import REDIS, is_file_name, place_of
from bardo.adapters.stores.database.set_aside import RenewableFile
from bardo.adapters.stores.database.store_calls import StoreCalls
from bardo.routing.health_news import decode_news, encode_news
from bardo.routing.shared_health import SharedHealth, TargetName
from bardo.services.facts.exchange import Exchange, ExchangeResult, FileExchange, RedisExchange
from bardo.services.facts.health import HealthKeeper

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
        """Say once that another gateway sends what is not understood: it may be of another version."""
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
    """Return what opens the exchange at a place; what is needed for that server is loaded at once, so that its absence is known."""
    if not where.startswith(REDIS):
        return lambda: FileExchange(where, past_seconds=past_seconds, timeout=_ANSWER_SECONDS)
    exchange = RedisExchange(where, space="health", past_seconds=past_seconds, timeout=_ANSWER_SECONDS)
    return lambda: exchange


def _text(name: TargetName) -> str:
    return "\n".join(name)

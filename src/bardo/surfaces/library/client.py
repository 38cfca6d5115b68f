"""`AsyncClient` and `Client`: ask any configured model from Python, and read its thinking beside its answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Self, TypeVar, Unpack

from bardo.edge.assembly import assemble
from bardo.edge.http import Transport
from bardo.edge.settings import Settings, load_settings
from bardo.engine.receipt import told
from bardo.surfaces.library.asking import Options, Prompt, build_request
from bardo.surfaces.library.stream import AsyncReplyStream, ReplyStream
from bardo.values.response import Response

T = TypeVar("T")
Config = str | Path | Settings | None


class AsyncClient:
    """The engine for asyncio programs. Use it as a context manager, or `close` it.

    `config` is a bardo.toml, its Settings, or None for what is found: `BARDO_CONFIG`, ./bardo.toml, keys in the environment.
    """

    def __init__(self, config: Config = None, *, transport: Transport | None = None) -> None:
        settings = config if isinstance(config, Settings) else load_settings(config)
        self._assembly = assemble(settings, transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def respond(self, prompt: Prompt, *, model: str, **options: Unpack[Options]) -> Response:
        """Return the whole reply. Raises BardoError."""
        request = build_request(prompt, model, options, stream=False)
        live = await self._assembly.runner.open(request)
        try:
            async for _ in live.steps():
                pass
        finally:
            await live.close()
        return told(live.request, live.response(), live.attempt, live.request_id)

    def stream(self, prompt: Prompt, *, model: str, **options: Unpack[Options]) -> AsyncReplyStream:
        """Return the reply as it arrives: `async with client.stream(…) as reply`. Raises BardoError when entered."""
        return AsyncReplyStream(self._assembly.runner, build_request(prompt, model, options, stream=True))

    async def close(self) -> None:
        """Close connections and the log; nothing that was to be written is lost."""
        await self._assembly.close()


class Client:
    """The engine for programs without asyncio: one thread of its own runs it. Safe to use from several threads.

    Use it as a context manager, or `close` it.
    """

    def __init__(self, config: Config = None) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="bardo-client", daemon=True)
        self._thread.start()
        try:
            self._inner = self._run(_make(config))
        except BaseException:
            self._stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def respond(self, prompt: Prompt, *, model: str, **options: Unpack[Options]) -> Response:
        """Return the whole reply. Raises BardoError."""
        return self._run(self._inner.respond(prompt, model=model, **options))

    def stream(self, prompt: Prompt, *, model: str, **options: Unpack[Options]) -> ReplyStream:
        """Return the reply as it arrives: `with client.stream(…) as reply`. Raises BardoError when entered."""
        return ReplyStream(self._inner.stream(prompt, model=model, **options), self._run)

    def close(self) -> None:
        """Close connections and the log, and end the thread."""
        if self._thread.is_alive():
            try:
                self._run(self._inner.close())
            finally:
                self._stop()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if not self._thread.is_alive():
            work.close()
            raise RuntimeError("this client is closed: make a new one")
        running = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return running.result()
        except BaseException:
            # Ctrl-C ends the wait; it must end the work too.
            running.cancel()
            raise

    def _stop(self) -> None:
        self._run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _make(config: Config) -> AsyncClient:
    return AsyncClient(config)

"""`AsyncClient` and `Client`: ask any configured model from Python, and read its thinking beside its answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar, Unpack, overload

from bardo.edge.assembly import assemble
from bardo.edge.http import Transport
from bardo.edge.live_reply import LiveReply
from bardo.edge.settings import Settings, load_settings
from bardo.engine.receipt import told
from bardo.structured import UnusableAnswer
from bardo.surfaces.library.asking import Options, Prompt, build_request
from bardo.surfaces.library.stream import AsyncReplyStream, ReplyStream
from bardo.surfaces.library.typed import AnswerType, TypedResponse
from bardo.values.request import Request
from bardo.values.response import Response

T = TypeVar("T")
Answer = TypeVar("Answer")
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

    @overload
    async def respond(
        self, prompt: Prompt, *, model: str, response_type: type[Answer], **options: Unpack[Options]
    ) -> TypedResponse[Answer]: ...

    @overload
    async def respond(
        self, prompt: Prompt, *, model: str, response_type: Mapping[str, Any], **options: Unpack[Options]
    ) -> TypedResponse[Any]: ...

    @overload
    async def respond(
        self, prompt: Prompt, *, model: str, response_type: None = None, **options: Unpack[Options]
    ) -> Response: ...

    async def respond(
        self, prompt: Prompt, *, model: str, response_type: Any = None, **options: Unpack[Options]
    ) -> Response:
        """Return the whole reply, with `parsed` where a `response_type` is given.

        A type is a pydantic model, a msgspec Struct, a dataclass, a TypedDict, a StructuredOutput class or a JSON Schema. Raises
        BardoError; UnusableAnswer where the model gave no value of the type, with all it said in `extraction.text`.
        """
        request = build_request(prompt, model, options, stream=False)
        wanted = None if response_type is None else AnswerType(response_type)
        if wanted is None:
            live = await self._whole(request)
            return told(live.request, live.response(), live.attempt, live.request_id)
        live = await self._whole(wanted.of(request), wanted)
        response = told(live.request, live.response(), live.attempt, live.request_id)
        return wanted.told(live, response)

    async def _whole(self, request: Request, wanted: AnswerType | None = None) -> LiveReply:
        live = await self._assembly.runner.open(request, take=None if wanted is None else wanted.take)
        try:
            async for _ in live.steps():
                pass
        except UnusableAnswer:
            if wanted is None:
                raise
        finally:
            await live.close()
        return live

    def stream(
        self, prompt: Prompt, *, model: str, response_type: Any = None, **options: Unpack[Options]
    ) -> AsyncReplyStream:
        """Return the reply as it arrives: `async with client.stream(…) as reply`. Raises BardoError when entered.

        With a `response_type`, `partial_stream` gives its answer while it grows, and `parsed` the value.
        """
        request = build_request(prompt, model, options, stream=True)
        wanted = None if response_type is None else AnswerType(response_type)
        return AsyncReplyStream(self._assembly.runner, request, wanted)

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

    @overload
    def respond(
        self, prompt: Prompt, *, model: str, response_type: type[Answer], **options: Unpack[Options]
    ) -> TypedResponse[Answer]: ...

    @overload
    def respond(
        self, prompt: Prompt, *, model: str, response_type: Mapping[str, Any], **options: Unpack[Options]
    ) -> TypedResponse[Any]: ...

    @overload
    def respond(
        self, prompt: Prompt, *, model: str, response_type: None = None, **options: Unpack[Options]
    ) -> Response: ...

    def respond(self, prompt: Prompt, *, model: str, response_type: Any = None, **options: Unpack[Options]) -> Response:
        """Return the whole reply, with `parsed` where a `response_type` is given, as AsyncClient does. Raises BardoError."""
        response: Response = self._run(self._inner.respond(prompt, model=model, response_type=response_type, **options))
        return response

    def stream(
        self, prompt: Prompt, *, model: str, response_type: Any = None, **options: Unpack[Options]
    ) -> ReplyStream:
        """Return the reply as it arrives: `with client.stream(…) as reply`. Raises BardoError when entered."""
        stream = self._inner.stream(prompt, model=model, response_type=response_type, **options)
        return ReplyStream(stream, self._run)

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

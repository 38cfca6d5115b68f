"""`Client`: `AsyncClient` for programs without asyncio, run by a thread of its own."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Self, TypeVar, Unpack, overload

from bardo.services.facts.event_feed import MOST_WAITING
from bardo.surfaces.library.asking import Options, Prompt
from bardo.surfaces.library.client import Answer, AsyncClient, Config, closed
from bardo.surfaces.library.memory import Memory
from bardo.surfaces.library.stream import EventStream, ReplyStream
from bardo.surfaces.library.typed import TypedResponse
from bardo.values.operations import Embeddings, ModelInfo, Task, TokenCount
from bardo.values.response import Response

T = TypeVar("T")
_END_SECONDS = 5.0


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
        # A client that nobody closed is closed when it is gone, or at the program's end.
        self._at_end = weakref.finalize(self, _end, self._inner, self._loop, self._thread)

    def __repr__(self) -> str:
        return f"<bardo.{type(self).__name__}{'' if self._thread.is_alive() else ', closed'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @overload
    def respond(
        self, prompt: Prompt, *, model: str = "", response_type: type[Answer], **options: Unpack[Options]
    ) -> TypedResponse[Answer]: ...

    @overload
    def respond(
        self, prompt: Prompt, *, model: str = "", response_type: Mapping[str, Any], **options: Unpack[Options]
    ) -> TypedResponse[Any]: ...

    @overload
    def respond(
        self, prompt: Prompt, *, model: str = "", response_type: None = None, **options: Unpack[Options]
    ) -> Response: ...

    def respond(
        self, prompt: Prompt, *, model: str = "", response_type: Any = None, **options: Unpack[Options]
    ) -> Response:
        """Return the whole reply, with `parsed` where a `response_type` is given, as AsyncClient does. Raises BardoError."""
        response: Response = self._run(self._inner.respond(prompt, model=model, response_type=response_type, **options))
        return response

    def stream(
        self, prompt: Prompt, *, model: str = "", response_type: Any = None, **options: Unpack[Options]
    ) -> ReplyStream:
        """Return the reply as it arrives: `with client.stream(…) as reply`. Raises BardoError when entered."""
        stream = self._inner.stream(prompt, model=model, response_type=response_type, **options)
        return ReplyStream(stream, self._run)

    def embed(
        self,
        texts: str | Sequence[str],
        *,
        model: str,
        dimensions: int | None = None,
        task: Task | None = None,
        allow_loss: Sequence[str] = (),
    ) -> Embeddings:
        """Return the vectors of some texts, as AsyncClient does. Raises BardoError."""
        work = self._inner.embed(texts, model=model, dimensions=dimensions, task=task, allow_loss=allow_loss)
        return self._run(work)

    def count_tokens(self, prompt: Prompt, *, model: str = "", **options: Unpack[Options]) -> TokenCount:
        """Return how many tokens a prompt has, as AsyncClient does. Raises BardoError."""
        return self._run(self._inner.count_tokens(prompt, model=model, **options))

    def models(self) -> list[ModelInfo]:
        """Return every model that can be asked for."""
        return self._run(self._inner.models())

    def feedback(self, request_id: str, *, score: float, comment: str | None = None) -> None:
        """Store in the log what somebody thinks of an answer, as AsyncClient does. Raises BardoError."""
        self._run(self._inner.feedback(request_id, score=score, comment=comment))

    def events(self, most_waiting: int = MOST_WAITING) -> EventStream:
        """Return the inference events of all calls from now on, as AsyncClient does: `for published in client.events()`."""
        return EventStream(lambda: self._inner.events(most_waiting), self._run)

    @property
    def memory(self) -> Memory:
        """The thinking of past calls, where `[memory]` keeps it. Raises ClientMisuse after the end."""
        return Memory(self._inner.memory, self._run)

    def close(self) -> None:
        """Close connections and the log, and end the thread."""
        if self._thread.is_alive():
            self._at_end.detach()
            try:
                self._run(self._inner.close())
            finally:
                self._stop()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if not self._thread.is_alive():
            work.close()
            raise closed()
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


def _end(inner: AsyncClient, loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """Close a client that is gone, without waiting long: this runs in whatever thread let go of it last."""
    if not thread.is_alive():
        return
    if threading.current_thread() is thread:
        loop.create_task(_close_and_stop(inner, loop))
        return
    asyncio.run_coroutine_threadsafe(_close_and_stop(inner, loop), loop)
    thread.join(_END_SECONDS)
    if not thread.is_alive():
        loop.close()


async def _close_and_stop(inner: AsyncClient, loop: asyncio.AbstractEventLoop) -> None:
    try:
        await inner.close()
    finally:
        loop.stop()


async def _make(config: Config) -> AsyncClient:
    return AsyncClient(config)

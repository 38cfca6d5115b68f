"""`AsyncClient`: ask any configured model from Python, and read its thinking beside its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar, Unpack, overload

from bardo.adapters.config.settings import Settings, load_settings
from bardo.adapters.net.client import Transport, another_loop
from bardo.call.open import open_call
from bardo.call.reply import LiveReply
from bardo.call.services import Services
from bardo.call.unary import count_tokens, embed
from bardo.services.facts.event_feed import MOST_WAITING, AsyncEventStream
from bardo.services.facts.feedback import read_feedback
from bardo.services.facts.model_list import listed_models
from bardo.structured import UnusableAnswer
from bardo.surfaces.library.asking import Options, Prompt, build_call, build_embed_request, seconds_of
from bardo.surfaces.library.memory import AsyncMemory
from bardo.surfaces.library.stream import AsyncReplyStream, within
from bardo.surfaces.library.typed import AnswerType, TypedResponse
from bardo.values.errors import ClientMisuse
from bardo.values.operations import Embeddings, ModelInfo, Task, TokenCount
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.wiring import assemble

Answer = TypeVar("Answer")
Config = str | Path | Settings | None


class AsyncClient:
    """The engine for asyncio programs. Use it as a context manager, or `close` it.

    `config` is a bardo.toml, its Settings, or None for what is found: `BARDO_CONFIG`, ./bardo.toml, keys in the environment.
    """

    def __init__(self, config: Config = None, *, transport: Transport | None = None) -> None:
        settings = config if isinstance(config, Settings) else load_settings(config)
        self._assembly = assemble(settings, transport=transport)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<bardo.{type(self).__name__}{', closed' if self._closed else ''}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @overload
    async def respond(
        self, prompt: Prompt, *, model: str = "", response_type: type[Answer], **options: Unpack[Options]
    ) -> TypedResponse[Answer]: ...

    @overload
    async def respond(
        self, prompt: Prompt, *, model: str = "", response_type: Mapping[str, Any], **options: Unpack[Options]
    ) -> TypedResponse[Any]: ...

    @overload
    async def respond(
        self, prompt: Prompt, *, model: str = "", response_type: None = None, **options: Unpack[Options]
    ) -> Response: ...

    async def respond(
        self, prompt: Prompt, *, model: str = "", response_type: Any = None, **options: Unpack[Options]
    ) -> Response:
        """Return the whole reply, with `parsed` where a `response_type` is given. A call with an `intent` needs no `model`.

        A type is a pydantic model, a msgspec Struct, a dataclass, a TypedDict, a StructuredOutput class or a JSON Schema. Raises
        BardoError; UnusableAnswer where the model gave no value of the type, with all it said in `extraction.text`.
        """
        request = build_call(prompt, model, options, stream=False)
        wanted = None if response_type is None else AnswerType(response_type)
        async with within(seconds_of(options)):
            if wanted is None:
                live = await self._whole(request)
                return live.response_with_receipt()
            live = await self._whole(wanted.of(request), wanted)
            return wanted.typed_response(live)

    async def _whole(self, request: Request, wanted: AnswerType | None = None) -> LiveReply:
        live = await open_call(self._services(), request, validator=None if wanted is None else wanted.validate)
        try:
            async for _ in live.updates():
                pass
        except UnusableAnswer:
            if wanted is None:
                raise
        finally:
            await live.close()
        return live

    def stream(
        self, prompt: Prompt, *, model: str = "", response_type: Any = None, **options: Unpack[Options]
    ) -> AsyncReplyStream:
        """Return the reply as it arrives: `async with client.stream(…) as reply`. Raises BardoError when entered.

        With a `response_type`, `partial_stream` gives its answer while it grows, and `parsed` the value.
        """
        request = build_call(prompt, model, options, stream=True)
        wanted = None if response_type is None else AnswerType(response_type)
        return AsyncReplyStream(self._services, request, wanted, seconds=seconds_of(options))

    async def embed(
        self,
        texts: str | Sequence[str],
        *,
        model: str,
        dimensions: int | None = None,
        task: Task | None = None,
        allow_loss: Sequence[str] = (),
    ) -> Embeddings:
        """Return the vectors of some texts, as lists of numbers in their order. `task` is what they are for. Raises BardoError."""
        request = build_embed_request(texts, model, dimensions=dimensions, task=task, allow_loss=allow_loss)
        return (await embed(self._services(), request)).result

    async def count_tokens(self, prompt: Prompt, *, model: str = "", **options: Unpack[Options]) -> TokenCount:
        """Return how many tokens a prompt has; `approx` says that bardo estimated it. Raises BardoError."""
        request = build_call(prompt, model, options, stream=False)
        return (await count_tokens(self._services(), request)).result

    async def models(self) -> list[ModelInfo]:
        """Return every model that can be asked for."""
        return await listed_models(self._services().directory)

    async def feedback(self, request_id: str, *, score: float, comment: str | None = None) -> None:
        """Store in the log what somebody thinks of an answer: `score` from 0 (bad) to 1 (good).

        `request_id` is `response.bardo["request_id"]`. Raises InvalidRequest, NotStored for a call that is not in the log, and
        ClientMisuse where there is no log.
        """
        taker = self._assembly.feedback
        if taker is None:
            raise ClientMisuse("this client keeps no log", hint="leave the log on: LogSettings(enabled=True)")
        given = {"request_id": request_id, "score": score, "comment": comment}
        services = self._services()
        feedback = read_feedback(given, services.clock())
        await taker.take(feedback, "")
        services.routing.note_feedback(feedback.request_id, feedback.score)

    def events(self, most_waiting: int = MOST_WAITING) -> AsyncEventStream:
        """Return the inference events of all calls from now on: `async for published in client.events()`.

        Of events that are not read, the newest `most_waiting` are held; `dropped` counts the others. Raises ClientMisuse as calls do.
        """
        return self._services().events.subscribe(most_waiting)

    @property
    def memory(self) -> AsyncMemory:
        """The thinking of past calls, where `[memory]` keeps it. Raises ClientMisuse after the end."""
        if self._closed:
            raise closed()
        return AsyncMemory(self._assembly.memory)

    async def close(self) -> None:
        """Close connections and the log; nothing that was to be written is lost. Closing twice does nothing."""
        if not self._closed:
            self._closed = True
            self._assembly.services.events.close()
            await self._assembly.close()

    def _services(self) -> Services:
        """Return what runs a call. Raises ClientMisuse after the end, and in another event loop than that of the first call."""
        loop = asyncio.get_running_loop()
        if self._closed:
            raise closed()
        self._loop = self._loop or loop
        if loop is not self._loop:
            raise another_loop("this AsyncClient")
        return self._assembly.services


def closed() -> ClientMisuse:
    """Return the error of a call after the client's end."""
    return ClientMisuse("this client is closed", hint="make a new one, or close it after its last call")

"""The answer to one request, as ASGI sends it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from bardo.dialects import dialect
from bardo.dialects.base import ReplyEncoder
from bardo.structured import UnusableAnswer
from bardo.surfaces.gateway.http import Send, send_piece, send_whole, start_stream
from bardo.values.errors import BardoError, MethodNotAllowed, UpstreamRefused

JSON = "application/json"


class Answer:
    """Knows how far it has come: `started`, and since when it is silent, by the loop's clock (None while something is being sent)."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self.started = False
        self.ended = False
        self.silent_since: float | None = self._loop.time()

    async def json(self, value: object) -> None:
        """Send a JSON answer of bardo's own."""
        await self.whole(200, msgspec.json.encode(value), ())

    async def whole(self, status: int, body: bytes, headers: Any) -> None:
        """Send a whole answer."""
        self.started = self.ended = True
        await send_whole(self._send, status, body, headers, content_type=JSON)

    async def start(self, headers: Any, content_type: str) -> None:
        """Begin a streamed answer, unless a sign of life has begun it: its headers are gone then."""
        if not self.started:
            self.started = True
            await start_stream(self._send, headers, content_type=content_type)

    async def piece(self, piece: bytes) -> None:
        """Send a piece of it."""
        self.silent_since = None
        await send_piece(self._send, piece)
        self.silent_since = self._loop.time()

    async def say_alive(self, encoder: ReplyEncoder) -> None:
        """Send what readers skip."""
        if self.ended:
            return
        await self.start((), encoder.content_type)
        await self.piece(encoder.keep_alive)

    async def end(self, piece: bytes) -> None:
        """Send its last piece."""
        self.ended = True
        await send_piece(self._send, piece, more=False)

    async def error(self, problem: BardoError, language: str) -> None:
        """Send an error in the client's dialect as the answer.

        A stream that has begun is left without its end, so that the server closes the connection and nobody takes it for complete: whoever
        encodes the stream ends it with the dialect's error event before it comes to this.
        """
        if not self.started:
            await self.whole(problem.status, error_body(problem, language), error_headers(problem))


def error_headers(problem: BardoError) -> list[tuple[str, str]]:
    """Return the headers of an error's answer, without those of its body."""
    headers = [("x-bardo-error", problem.code)]
    if problem.request_id:
        headers.append(("x-bardo-request-id", problem.request_id))
    if isinstance(problem, UpstreamRefused) and problem.retry_after:
        headers.append(("retry-after", problem.retry_after))
    if isinstance(problem, MethodNotAllowed):
        headers.append(("allow", ", ".join(problem.allowed)))
    if isinstance(problem, UnusableAnswer):
        # bardo has asked again already; OpenAI's and Anthropic's libraries would do so twice more.
        headers.append(("x-should-retry", "false"))
    return headers


def error_body(problem: BardoError, language: str) -> bytes:
    """Return an error's body in a dialect."""
    return with_raw_text(dialect(language).encode_error(problem), problem)


def with_raw_text(body: bytes, problem: BardoError) -> bytes:
    """Return an error's body with all that the model said, where it is about an answer that cannot be used."""
    if not isinstance(problem, UnusableAnswer):
        return body
    found = problem.extraction
    failures = [{"path": one.path, "message": one.message} for one in found.failures]
    structured = {"error": found.error, "failures": failures, "text": found.text}
    return msgspec.json.encode({**msgspec.json.decode(body), "bardo": {"structured": structured}})

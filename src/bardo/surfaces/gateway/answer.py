"""The answer to one request, as ASGI sends it: whole or in pieces, kept alive while a model thinks, and ended when its client leaves.

Proxies and clients hang up on a connection that says nothing for a minute or so, and a model may think for longer. A client that has left
still pays for the tokens that the model goes on to think.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from bardo.dialects import dialect
from bardo.dialects.shared.dialect import ReplyEncoder
from bardo.planning.forwarded import without_limits
from bardo.server.reply import cycle_of
from bardo.structured import UnusableAnswer
from bardo.surfaces.gateway.http import (
    ClientDisconnected,
    Receive,
    Send,
    encode_headers,
    own_headers,
    send_piece,
)
from bardo.values.errors import (
    BardoError,
    MethodNotAllowed,
    OverBudget,
    Overloaded,
    RateLimited,
    UnsupportedMediaType,
    UpgradeRequired,
    UpstreamRefused,
)

if TYPE_CHECKING:
    from bardo.call.reply import LiveReply

JSON = "application/json"
CLIENT_GONE = "the client has gone"
# Shorter than any model thinks.
_UNWATCHED_SECONDS = 0.03
_SECONDS_WHEN_OVERLOADED = 1


class Answer:
    """Knows how far it has come: `started`, and since when it is silent, by the clock that
    `time_silence` was given (None while something is being sent, and without a clock)."""

    started = False
    ended = False
    gone = False
    """Whether the client has left while its reply is read on: nothing is sent any more."""
    silent_since: float | None = None
    own_headers: Callable[[], list[tuple[str, str]]] | None = None
    """What every answer to this client says besides: what is left of the limits of its key."""
    has_login = False
    """Whether the client asks with a login of its own, whose limits it is told too."""
    _clock: Callable[[], float] | None = None

    def __init__(self, send: Send) -> None:
        self._send = send
        self._cycle = cycle_of(send)

    def track_silence(self, clock: Callable[[], float]) -> None:
        """Keep from now on since when nothing was sent."""
        self._clock = clock
        self.silent_since = clock()

    async def json(self, value: object) -> None:
        """Send a JSON answer of bardo's own."""
        await self.whole(200, msgspec.json.encode(value), ())

    async def text(self, value: str) -> None:
        """Send a line of text."""
        self.started = self.ended = True
        await self._send_whole(200, value.encode(), (), "text/plain; charset=utf-8")

    async def page(self, body: bytes, content_type: str, *, status: int = 200, headers: Any = ()) -> None:
        """Send an answer of another content type."""
        self.started = self.ended = True
        await self._send_whole(status, body, headers, content_type)

    async def whole(self, status: int, body: bytes, headers: Any) -> None:
        """Send a whole answer."""
        self.started = self.ended = True
        if self.own_headers is not None:
            headers = [*without_limits([*headers], keeps_login=self.has_login), *self.own_headers()]
        await self._send_whole(status, body, headers, JSON)

    async def start(self, headers: Any, content_type: str) -> None:
        """Begin a streamed answer, unless a sign of life has begun it: its headers are gone then."""
        if not self.started:
            self.started = True
            if self.own_headers is not None:
                headers = [*without_limits([*headers], keeps_login=self.has_login), *self.own_headers()]
            if self.gone:
                return
            # No proxy is to hold it back.
            content = ("content-type", content_type), ("cache-control", "no-cache"), ("x-accel-buffering", "no")
            own = own_headers(headers, *content)
            if self._cycle is None or not self._cycle.begin_stream(own):
                await self._send({"type": "http.response.start", "status": 200, "headers": encode_headers(own)})

    async def _send_whole(self, status: int, body: bytes, headers: Any, content_type: str) -> None:
        if self.gone:
            return
        own = own_headers(headers, ("content-type", content_type), ("content-length", str(len(body))))
        if self._cycle is None or not self._cycle.send_whole(status, own, body):
            await self._send({"type": "http.response.start", "status": status, "headers": encode_headers(own)})
            await self._send({"type": "http.response.body", "body": body})

    async def piece(self, piece: bytes) -> None:
        """Send a piece of it."""
        if self.takes_piece():
            self.piece_at_once(piece)
            return
        self.silent_since = None
        await send_piece(self._send, piece)
        if self._clock is not None:
            self.silent_since = self._clock()

    def takes_piece(self) -> bool:
        """Whether a piece can be sent at once: the stream has begun on a server of ours, and its client takes what it is sent."""
        return self.gone or (self._cycle is not None and self._cycle.takes_piece())

    def piece_at_once(self, piece: bytes) -> None:
        """Send a piece where `takes_piece` says so."""
        if piece and self._cycle is not None and not self.gone:
            self._cycle.send_piece(piece)
            if self._clock is not None:
                self.silent_since = self._clock()

    async def send_keep_alive(self, encoder: ReplyEncoder) -> None:
        """Send what readers skip."""
        if self.ended:
            return
        await self.start((), encoder.content_type)
        await self.piece(encoder.keep_alive)

    async def end(self, piece: bytes) -> None:
        """Send its last piece."""
        self.ended = True
        if self.gone:
            return
        if self._cycle is None or not self._cycle.end_stream(piece):
            await send_piece(self._send, piece, more=False)

    async def error(self, problem: BardoError, language: str) -> None:
        """Send an error in the client's dialect as the answer.

        A stream that has begun is left without its end, so that the server closes the connection and nobody takes it for complete: whoever
        encodes the stream ends it with the dialect's error event before it comes to this.
        """
        if not self.started:
            await self.whole(
                error_status(problem, language), error_body(problem, language), error_headers(problem, language)
            )


class ReplyStorage(Protocol):
    """Keeps one reply, and returns what its client gets of it: a whole body, or the last frames of a stream."""

    async def whole(self, body: bytes) -> bytes: ...

    async def end(self, frames: Sequence[bytes]) -> Sequence[bytes]: ...


class KeepAlive:
    """Speaks whenever `answer` was silent for `seconds`, between `begin` and `end`; 0 seconds is never."""

    def __init__(self, answer: Answer, encoder: ReplyEncoder, seconds: float) -> None:
        self._answer = answer
        self._encoder = encoder
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._alarm: asyncio.TimerHandle | None = None
        self._saying: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start watching for silence."""
        if self._seconds and self._encoder.keep_alive:
            self._answer.track_silence(self._loop.time)
            self._alarm = self._loop.call_later(self._seconds, self._check_silence)

    def end(self) -> None:
        """Stop watching for silence."""
        if self._alarm is not None:
            self._alarm.cancel()
        if self._saying is not None:
            self._saying.cancel()

    def _check_silence(self) -> None:
        """One timer that looks now and then is cheaper than one for each piece."""
        since = self._answer.silent_since
        now = self._loop.time()
        # A client that does not take what it was sent needs no more of it.
        due = now + self._seconds if since is None else since + self._seconds
        if due <= now:
            self._saying = self._loop.create_task(self._answer.send_keep_alive(self._encoder))
            due = now + self._seconds
        self._alarm = self._loop.call_at(due, self._check_silence)


async def run_until_disconnect(
    receive: Receive, work: Coroutine[Any, Any, None], leave: Callable[[Callable[[], object]], object] | None = None
) -> None:
    """Run `work` in this task, and cancel it when the client leaves. Raises ClientDisconnected then, or what `work` raises.

    `leave` is called then in its place, with what cancels it.
    """
    task = asyncio.current_task()
    assert task is not None
    watcher = cycle_of(receive) or _DisconnectPoller(receive)
    cancel = partial(task.cancel, CLIENT_GONE)
    watcher.watch(cancel if leave is None else partial(leave, cancel))
    try:
        await work
    except asyncio.CancelledError:
        if not watcher.disconnected:
            raise  # The server is stopping: the client still waits.
        task.uncancel()
        raise ClientDisconnected from None
    else:
        if watcher.disconnected:
            # Clear a cancellation that came as the work ended: other servers report the end of a reply as a disconnect.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
            task.uncancel()
    finally:
        watcher.watch(None)


class _DisconnectPoller:
    """Tells when the client leaves, for which other servers than bardo's own must be asked: as a RequestCycle does.

    A task of its own costs less than waiting for two, and work that is done at once needs none.
    """

    def __init__(self, receive: Receive) -> None:
        self.disconnected = False
        self._receive = receive
        self._when_gone: Callable[[], object] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._beginning: asyncio.TimerHandle | None = None

    def watch(self, when_gone: Callable[[], object] | None) -> None:
        """Have `when_gone` called, once, when the client leaves; None for nobody any more."""
        self._when_gone = when_gone
        if when_gone is not None:
            self._beginning = asyncio.get_running_loop().call_later(_UNWATCHED_SECONDS, self._begin)
            return
        for waiting in (self._beginning, self._asking):
            if waiting is not None:
                waiting.cancel()

    def _begin(self) -> None:
        self._asking = asyncio.ensure_future(self._ask())

    async def _ask(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            continue
        self.disconnected = True
        if self._when_gone is not None:
            self._when_gone()


def error_status(problem: BardoError, language: str) -> int:
    """Return the status of an error's answer: dialects differ in that of a budget that is used up."""
    return dialect(language).over_budget_status if isinstance(problem, OverBudget) else problem.status


def error_headers(problem: BardoError, language: str) -> list[tuple[str, str]]:
    """Return the headers of an error's answer in a dialect, without those of its body."""
    headers = [("x-bardo-error", problem.code), *dialect(language).error_headers(problem)]
    if problem.request_id:
        headers.append(("x-bardo-request-id", problem.request_id))
    if isinstance(problem, UpstreamRefused) and problem.retry_after:
        headers.append(("retry-after", problem.retry_after))
    if isinstance(problem, UpstreamRefused):
        headers += problem.passed_headers
    if isinstance(problem, RateLimited | OverBudget):
        if problem.retry_after is not None:
            headers.append(("retry-after", str(max(1, ceil(problem.retry_after)))))
        headers.append(("x-bardo-limit", problem.limit))
    if isinstance(problem, Overloaded):
        headers.append(("retry-after", str(_SECONDS_WHEN_OVERLOADED)))
    if isinstance(problem, MethodNotAllowed):
        headers.append(("allow", ", ".join(problem.allowed)))
    if isinstance(problem, UnsupportedMediaType) and problem.accepts:
        headers.append(("accept-encoding", problem.accepts))
    if isinstance(problem, UpgradeRequired):
        # HTTP wants the protocol that is served named; what is asked without an upgrade is served (RFC 9110, section 15.5.22).
        headers += [("upgrade", "HTTP/1.1"), ("connection", "upgrade"), ("sec-websocket-version", "13")]
    if isinstance(problem, OverBudget | UnusableAnswer) or problem.status == 401:
        # Clients that try again what has status 429 would do so all day, Claude Code a refused key for three minutes, and OpenAI's and
        # Anthropic's libraries what bardo has asked again already.
        headers += [] if "x-should-retry" in dict(headers) else [("x-should-retry", "false")]
    return headers


def error_body(problem: BardoError, language: str) -> bytes:
    """Return an error's body in a dialect."""
    return with_raw_text(dialect(language).encode_error(problem), problem)


def with_raw_text(body: bytes, problem: BardoError) -> bytes:
    """Return an error's body with all that the model said, and how it was asked, where it is about an answer that cannot be used."""
    if not isinstance(problem, UnusableAnswer):
        return body
    structured = {**problem.fields(), "text": problem.extraction.text}
    return msgspec.json.encode({**msgspec.json.decode(body), "bardo": {"structured": structured}})


_LOOK_SECONDS = 1.0
"""How often it is looked how much of a reply has come."""


class Draining:
    """What becomes of one request when its client leaves: it is cancelled, or its reply is read to the end and sent to nobody.

    `drains`: whether replies are read on where their provider has no setting of its own. A reply that takes longer than `seconds`, or
    brings more than `tokens` behind its client, is let go of.

    A reply is read on so that its cost is known exactly.
    """

    live: LiveReply | None = None
    """The reply that is being read; None until one has begun."""

    def __init__(self, answer: Answer, *, drains: bool, seconds: float, tokens: int) -> None:
        self._answer = answer
        self._drains = drains
        self._seconds = seconds
        self._tokens = tokens
        self._timer: asyncio.TimerHandle | None = None
        self._left = False

    @property
    def left(self) -> bool:
        """Whether the client has left, so that nothing more is to be asked for it."""
        return self._left

    def take(self, live: LiveReply) -> None:
        """Take a reply that has begun; its client may have left before."""
        self.live = live
        if self._left:
            live.note_client_left()

    def leave(self, cancel: Callable[[], object]) -> None:
        """Go on without the client, or `cancel` what it asked for."""
        live = self.live
        own = None if live is None else live.attempt.target.provider.drain_cancelled
        if not (self._drains if own is None else own):
            cancel()
            return
        self._left = self._answer.gone = True
        if live is not None:
            live.note_client_left()
        loop = asyncio.get_running_loop()
        until, most = loop.time() + self._seconds, self._tokens + self._written()

        def look() -> None:
            if loop.time() >= until or self._written() > most:
                cancel()
            else:
                self._timer = loop.call_later(min(_LOOK_SECONDS, self._seconds), look)

        self._timer = loop.call_later(min(_LOOK_SECONDS, self._seconds), look)

    def end(self) -> None:
        """Look no more: the request has ended."""
        if self._timer is not None:
            self._timer.cancel()

    def _written(self) -> int:
        return 0 if self.live is None else self.live.written_tokens

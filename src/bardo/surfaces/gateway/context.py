"""What every operation of the gateway is given: the services, the limits of a request, its body, unpacked and counted, and the panel.

The panel is loaded with the first request to it, so that whoever never looks at it does not pay for it.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from bardo.adapters.config.settings import Settings
from bardo.adapters.sealing import Sealer, new_sealer
from bardo.adapters.stores.database.problems import DatabaseProblem, in_one_line
from bardo.adapters.stores.response_store import ResponseStore
from bardo.batches.service import BatchService
from bardo.call.services import Services
from bardo.server.reply import RequestCycle, cycle_of
from bardo.services.accounts.accounts import Accounts
from bardo.services.facts.event_feed import EventFeed
from bardo.services.facts.feedback import FeedbackRecorder
from bardo.streams.unpacking import OF_SEVERAL_STREAMS, PIECE_BYTES, UNPACKERS
from bardo.surfaces.gateway.answer import Answer, Draining
from bardo.surfaces.gateway.callers import head_of, require_json
from bardo.surfaces.gateway.http import Receive, Scope, read_body, too_large
from bardo.surfaces.gateway.routes import Route
from bardo.values.errors import (
    BardoError,
    InternalError,
    InvalidRequest,
    Overloaded,
    Unavailable,
    UnknownRoute,
    UnsupportedMediaType,
)

if TYPE_CHECKING:
    from bardo.adapters.stores.memory.reasoning_memory import ReasoningMemory

_IDENTITY = ("", "identity")
# A body is packed once; twice is allowed, and more is only made to keep a server busy.
_MOST_ENCODINGS = 2
_MOST_STREAMS = 10_000
ACCEPTED = "gzip, deflate, br, zstd"
"""What the header `Accept-Encoding` of a refusal names."""


def encodings_of(lines: Sequence[tuple[bytes, bytes]]) -> tuple[str, ...]:
    """Return how a body was packed, in order, none for a plain one. Raises UnsupportedMediaType for what is not unpacked here."""
    named = b",".join(value for name, value in lines if name == b"content-encoding").decode("latin-1").lower()
    found = tuple(name for each in named.split(",") if (name := each.strip()) not in _IDENTITY)
    unknown = next((name for name in found if name not in UNPACKERS), None)
    if unknown is not None:
        message = f"a body with content-encoding {unknown[:100]!r} is not read"
        raise UnsupportedMediaType(message, hint=f"send it as it is, or as one of {ACCEPTED}", accepts=ACCEPTED)
    if len(found) > _MOST_ENCODINGS:
        message = f"the body is packed {len(found)} times"
        raise UnsupportedMediaType(message, hint="pack it once", accepts=ACCEPTED)
    return found


def unpacked(body: bytes, encodings: Sequence[str], limit: int, too_large: Callable[[int], Exception]) -> bytes:
    """Return a body as it was before it was packed. Raises `too_large` past `limit` bytes, InvalidRequest for what cannot be unpacked."""
    for encoding in reversed(encodings):
        if body:
            body = _unpacked_once(body, encoding, limit, too_large)
    return body


def _unpacked_once(body: bytes, encoding: str, limit: int, too_large: Callable[[int], Exception]) -> bytes:
    pieces: list[bytes] = []
    size, place, streams = 0, 0, 1
    unpacker, data = UNPACKERS[encoding](body), b""
    while True:
        if not data:
            # Given in parts, since what stands behind the end of a stream is copied.
            data = body[place : place + PIECE_BYTES]
            place += len(data)
        try:
            piece = unpacker.unpack(data)
        except Exception as problem:
            raise _broken(encoding) from problem
        size += len(piece)
        if size > limit:
            raise too_large(limit)
        pieces.append(piece)
        if not unpacker.ended:
            if not piece and not data:
                raise _broken(encoding)
            data = b""
            continue
        data = unpacker.unused or body[place : place + PIECE_BYTES]
        place += 0 if unpacker.unused else len(data)
        if not data:
            return b"".join(pieces)
        streams += 1
        # Several members of gzip, or frames of zstd, are one body.
        if encoding not in OF_SEVERAL_STREAMS or streams > _MOST_STREAMS:
            raise _broken(encoding)
        unpacker = UNPACKERS[encoding](data)


def _broken(encoding: str) -> InvalidRequest:
    message = f"the body says content-encoding {encoding} and cannot be unpacked so to its end"
    return InvalidRequest(message, hint="send all of it, packed as the header says, or unpacked without the header")


VALUES = "bardo.values"
"""Where a request's scope holds how many values its body has."""
_SHORT_BYTES, _SLICE_BYTES = 4096, 256 * 1024
_FEW_VALUES = 2_000
# Looked for in one go: counting pairs of letters takes six times as long.
_IN_PROSE = re.compile(rb', (?!["{\[ ])')


class HeldValues:
    """The values of all requests that have no complete reply yet. One event loop uses it.

    A body of few values is always taken, and one of more than `most` where no other is open.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0

    async def admit(self, scope: Scope, body: bytes) -> None:
        """Count the values of a request's body. Raises Overloaded where the open requests would have too many together."""
        count = 0
        for start in range(0, len(body), _SLICE_BYTES):
            if start:
                await asyncio.sleep(0)
            count += count_values(body[start : start + _SLICE_BYTES])
        if self._held and count > _FEW_VALUES and self._held + count > self._most:
            hint = "try again later, send fewer at once, or raise gateway.max_total_values in bardo.toml"
            raise Overloaded(f"the bodies of the open requests have over {self._most:,} values together", hint=hint)
        self._held += count
        scope[VALUES] = scope.get(VALUES, 0) + count

    def release(self, scope: Scope) -> None:
        """Count the values of a request no longer: it has its reply."""
        self._held -= scope.pop(VALUES, 0)


def count_values(body: bytes) -> int:
    """Return about how many values a piece of JSON holds, and no fewer unless they are numbers: its commas, without those of prose."""
    # `replace` finds a byte with `memchr`, and takes a third of the time of `count`.
    return 1 + len(body) - len(body.replace(b",", b"")) - len(_IN_PROSE.findall(body))


_log = logging.getLogger("bardo.gateway")
# Each may take as much memory as a body may have before it is counted.
_UNPACKED_AT_ONCE = 2
_SECONDS_TO_END = 0.5
"""How long who reads events may take for the last ones when the gateway stops."""


def new_id(prefix: str) -> str:
    """Return an id that nobody can guess, and that is known to be bardo's."""
    return f"{prefix}_bardo_{secrets.token_hex(16)}"


class GatewayContext:
    """The services of a gateway, the limits of a request and a stream, and whether unasked thinking is shown.

    `responses` is where responses are kept, `feedback` takes what clients think of answers, or None if neither is done.
    `accounts` are the keys that are asked for, or None if anybody may ask, and `batches` the batches of clients, or None if none are taken.
    `draining` makes what is asked when the client of a request leaves. `events` is the feed that an earlier configuration began.
    `panel` loads the panel, or None if there is none.
    `memory` is the thinking of past calls, or None if it is not kept. `sealer` seals what clients keep for the gateway.
    """

    def __init__(
        self,
        services: Services,
        *,
        max_body: int,
        max_values: int,
        keep_alive_seconds: float,
        unasked_thinking: bool = False,
        draining: Callable[[Answer], Draining] | None = None,
        responses: ResponseStore | None = None,
        feedback: FeedbackRecorder | None = None,
        accounts: Accounts | None = None,
        batches: BatchService | None = None,
        panel: PanelLoader | None = None,
        events: EventFeed | None = None,
        memory: ReasoningMemory | None = None,
        sealer: Sealer | None = None,
    ) -> None:
        self.sealer = sealer or new_sealer()
        self.services = services
        self.memory = memory
        self.accounts = accounts
        self.batches = batches
        self.panel = panel
        self.events = events or EventFeed(services.events)
        self.open_requests = 0
        """How many requests are being answered: batches yield to them."""
        self._onlookers: set[asyncio.Task[Any]] = set()
        self.feedback = feedback
        self.responses = responses
        self.prompt_estimates = services.estimates
        self.keep_alive_seconds = keep_alive_seconds
        self.unasked_thinking = unasked_thinking
        self.draining = draining or partial(Draining, drains=False, seconds=0.0, tokens=0)
        self.max_body = max_body
        self.values = HeldValues(max_values)
        self._unpacking = asyncio.Semaphore(_UNPACKED_AT_ONCE)

    def is_busy(self) -> bool:
        """Whether clients wait for answers."""
        return self.open_requests > 0

    @contextmanager
    def onlooking(self) -> Iterator[None]:
        """Answer a request whose reply has no end of its own, in this task: it keeps no batch waiting, and no gateway from stopping."""
        task = asyncio.current_task()
        assert task is not None
        self._onlookers.add(task)
        self.open_requests -= 1
        try:
            yield
        finally:
            self.open_requests += 1
            self._onlookers.discard(task)

    def end_streams(self) -> None:
        """End the replies that have no end of their own, because the gateway stops. Who does not read what was sent is cut off."""
        self.events.close()
        if self.panel is not None:
            self.panel.end_streams()
        for task in self._onlookers:
            asyncio.get_running_loop().call_later(_SECONDS_TO_END, self._cut_off, task)

    def _cut_off(self, task: asyncio.Task[Any]) -> None:
        if task in self._onlookers:
            task.cancel()

    async def body(self, scope: Scope, receive: Receive) -> bytes:
        """Return the body of a request. Raises UnsupportedMediaType, TooLarge or Overloaded, ClientDisconnected where the client left."""
        head, cycle = head_of(scope), cycle_of(receive)
        if not head.is_json:
            require_json(head)
        body = None if cycle is None else cycle.take_body()
        if body is None:
            body = await read_body(scope, receive, self.max_body)
        elif len(body) > self.max_body:
            raise too_large(self.max_body)
        if b"content-encoding" in head.fields:
            body = await self._unpacked(body, encodings_of(head.lines), cycle)
        if len(body) > _SHORT_BYTES:
            await self.values.admit(scope, body)
        return body

    async def _unpacked(self, body: bytes, encodings: Sequence[str], cycle: RequestCycle | None) -> bytes:
        """Return a body as it was before it was packed. It counts among the bodies in memory: raises Overloaded where they are too many."""
        if not encodings:
            return body
        async with self._unpacking:
            plain = await asyncio.to_thread(unpacked, body, encodings, self.max_body, too_large)
            if cycle is not None:
                cycle.count_body(len(plain))
        return plain


ServeOperation: TypeAlias = Callable[[GatewayContext, Route, Scope, Receive, Answer], Awaitable[None]]
"""Answers one request of one endpoint. It may raise BardoError, as long as the answer has not begun."""


def mistake(where: str) -> BardoError:
    """Log the exception at hand, and return the error that the client gets: a store that cannot be used, or a mistake in bardo."""
    problem = sys.exception()
    assert problem is not None
    if type(problem).__module__.partition(".")[0] in _DRIVERS or isinstance(problem, DatabaseProblem):
        why = in_one_line(getattr(problem, "orig", None) or problem)
        _log.error("a store could not be used, at %s: %s", where, why)
        return Unavailable(
            "a store of this gateway cannot be used now", hint="try again soon; the gateway's log says which and why"
        )
    _log.exception("a mistake in bardo, at %s", where)
    return InternalError("bardo failed", hint="the gateway's log says where")


_DRIVERS = frozenset({"sqlite3", "sqlalchemy", "psycopg", "redis"})
"""Packages whose exceptions say that a store cannot be used, where nothing nearer to it could."""


PANEL = "bardo.surfaces.panel.serving"
"""The module whose `open_panel` makes the panel. It imports the gateway, and is loaded by its name alone."""


class PanelServer(Protocol):
    """The panel, as the gateway knows it."""

    async def serve(self, scope: Scope, receive: Receive, answer: Answer) -> None: ...

    async def send_problem(self, scope: Scope, answer: Answer, problem: BardoError) -> None: ...

    def end_streams(self) -> None: ...

    def close(self) -> None: ...


class PanelLoader:
    """Loads the panel when it is first asked for."""

    def __init__(self, settings: Settings, environment: Mapping[str, str] | None = None) -> None:
        self._settings = settings
        self._environment = environment
        self._panel: PanelServer | None = None
        self._loading = asyncio.Lock()

    async def load(self, context: GatewayContext) -> PanelServer:
        """Return the panel of a gateway."""
        async with self._loading:
            if self._panel is None:
                # Its templates take a tenth of a second to load, for which no call is to wait.
                self._panel = await asyncio.to_thread(self._open, context)
        return self._panel

    def end_streams(self) -> None:
        """End what goes on without an end of its own, because the gateway stops."""
        if self._panel is not None:
            self._panel.end_streams()

    def close(self) -> None:
        """Close what the panel has opened."""
        if self._panel is not None:
            self._panel.close()

    def _open(self, context: GatewayContext) -> PanelServer:
        made: PanelServer = import_module(PANEL).open_panel(context, self._settings, self._environment)
        return made


async def show_panel(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer a request to the panel. Raises UnknownRoute where it is turned off."""
    if context.panel is None:
        raise UnknownRoute("this gateway has no panel", hint="set panel = true under [gateway] in bardo.toml")
    await (await context.panel.load(context)).serve(scope, receive, answer)


async def show_panel_problem(
    loader: PanelLoader, context: GatewayContext, scope: Scope, answer: Answer, problem: BardoError
) -> None:
    """Answer a request for a page of the panel that was refused before the panel got it."""
    await (await loader.load(context)).send_problem(scope, answer, problem)

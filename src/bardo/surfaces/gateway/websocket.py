"""Responses over a WebSocket, as OpenAI's WebSocket mode has them (documentation of 2026-11): one connection, many requests.

Each `response.create` is answered as the same request by HTTP would be, key, limits, log and all, by the application that answers HTTP;
the events of its reply are messages here. What a connection adds is its memory: a request may go on from any response of the
connection, also from one that nobody stores.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from typing import Any

import msgspec

from bardo.adapters.chance import CHANCE
from bardo.adapters.config.gateway import GatewaySettings
from bardo.adapters.long_work import run_by_size, size_of_body
from bardo.dialects import dialect
from bardo.dialects.openai_responses.wire import is_made
from bardo.server.reply import FIRST_HEADERS, RequestCycle
from bardo.streams.sse import SseDecoder
from bardo.surfaces.gateway.answer import JSON, error_body, error_headers, error_status
from bardo.surfaces.gateway.callers import HEAD
from bardo.surfaces.gateway.context import mistake
from bardo.surfaces.gateway.http import Message, Receive, Scope, Send, header
from bardo.values.errors import BardoError, InvalidRequest, Overloaded, TooLarge, shutting_down
from bardo.values.events import Finish, ReplyStart, UsageUpdate
from bardo.values.usage import Usage
from bardo.values.wire import Arrival

DIALECT = "openai_responses"
PATHS = frozenset({"/v1/responses", "/responses"})
"""Where WebSockets are served."""
# OpenAI's own bounds of one connection.
_MOST_IN_FLIGHT, _MOST_LANES = 16, 32
# Requests that may wait until others have ended.
_MOST_QUEUED = 64
_MOST_REMEMBERED = 512
"""Responses of one connection that a request may go on from."""
_LANE = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_LANE_RULE = (
    "stream_id must be a string of 1 to 256 letters, digits, underscores, hyphens and periods",
    "leave it out for the connection's own lane",
)
# The handshake's own headers, and what speaks of a body: a request on the connection has others.
_OF_HANDSHAKE = re.compile(rb"connection|upgrade|sec-websocket-.*|content-.*|transfer-encoding|expect|accept-encoding")
_OF_BODY = frozenset({b"content-type", b"content-length", b"cache-control", b"x-accel-buffering", b"connection"})
_STREAM, _SUCCESS = b"text/event-stream", 200
_WHOLE_RESPONSE = frozenset(
    f"response.{name}" for name in ("created", "in_progress", "completed", "incomplete", "failed")
)
_GOING_AWAY, _NORMAL, _RESTART = 1001, 1000, 1012
_MINUTE = 60
_LONGEST_REFERENCE = 1024
_RATE_LIMITS = "codex.rate_limits"
# The names of a login's limits: `codex`, and `codex-…` of those that some models have to themselves.
_LIMIT_OF_LOGIN = re.compile(r"x-(codex(?:-.+)?)-(?:primary|secondary)-used-percent")
_CREDITS = ("has-credits", "unlimited")
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}
# More is no number of a limit, and none that JSON can hold.
_MOST_NUMBER = 2**53
_ITEM_DONE = "response.output_item.done"
Serve = Callable[[Scope, Receive, Send], Awaitable[None]]
"""Answers a request by HTTP."""
Raw = dict[str, msgspec.Raw]


class _Named(msgspec.Struct):
    """The error of a code that only WebSockets have."""

    message: str
    code: str
    param: str | None = None
    type: str = "invalid_request_error"


class _Remembered(msgspec.Struct, eq=False):
    """What one response adds to its conversation: the items of its input and its output, as JSON with commas between them."""

    before: _Remembered | None
    items: bytes
    followed_by: int = 0
    is_found: bool = True
    is_counted: bool = False


class _Memory:
    """What one connection holds of its responses. A response that others go on from is held as long as they are."""

    def __init__(self, most_bytes: int) -> None:
        self.bytes = 0
        self._most = most_bytes
        self._found: dict[str, _Remembered] = {}

    def find(self, name: str) -> _Remembered | None:
        """Return what was remembered of a response."""
        return self._found.get(name)

    def put(self, name: str, before: _Remembered | None, items: bytes) -> None:
        """Remember a response, and forget the oldest where there are too many, or too much of them."""
        if name in self._found:
            self._forget(name)
        one: _Remembered | None = _Remembered(before, items)
        assert one is not None
        self._found[name] = one
        # One before it may have been forgotten since this one began.
        while one is not None and not one.is_counted:
            one.is_counted = True
            self.bytes += len(one.items)
            one = one.before
            if one is not None:
                one.followed_by += 1
        while len(self._found) > _MOST_REMEMBERED or (self.bytes > self._most and self._found):
            self.forget_oldest()

    def texts(self) -> list[bytes]:
        """Return the items of all that is remembered, the responses in no order."""
        turns: set[_Remembered] = set()
        for one in self._found.values():
            at: _Remembered | None = one
            while at is not None and at not in turns:
                turns.add(at)
                at = at.before
        return [turn.items for turn in turns if turn.items]

    def forget_oldest(self) -> None:
        """Forget the response that was remembered first."""
        self._forget(next(iter(self._found)))

    def _forget(self, name: str) -> None:
        one: _Remembered | None = self._found.pop(name)
        assert one is not None
        one.is_found = False
        while one is not None and not one.is_found and not one.followed_by and one.is_counted:
            one.is_counted = False
            self.bytes -= len(one.items)
            one = one.before
            if one is not None:
                one.followed_by -= 1

    def is_empty(self) -> bool:
        """Whether nothing can be forgotten."""
        return not self._found


class OpenSockets:
    """The WebSockets of a process: how many each key has, and what they remember together. One event loop uses it."""

    def __init__(self) -> None:
        self._of_key: Counter[str] = Counter()
        self._open: set[ResponsesSocket] = set()

    def add(self, socket: ResponsesSocket, tenant: str, most: int) -> None:
        """Count a connection. Raises Overloaded where its key has as many as it may have."""
        if self._of_key[tenant] >= most:
            hint = "close others, send several requests over one, or raise gateway.max_websockets_per_key in bardo.toml"
            raise Overloaded(f"over {most} open WebSockets of one key", hint=hint)
        self._of_key[tenant] += 1
        self._open.add(socket)

    def remove(self, socket: ResponsesSocket, tenant: str) -> None:
        """Count a connection no longer."""
        self._open.discard(socket)
        self._of_key[tenant] -= 1
        if not self._of_key[tenant]:
            del self._of_key[tenant]

    def make_room(self, most: int) -> None:
        """Forget responses where all together are too many: of the connection that holds most of them, so that nobody pays for another."""
        while sum(one.memory.bytes for one in self._open) > most:
            largest = max(self._open, key=lambda one: one.memory.bytes)
            if largest.memory.is_empty():
                return
            largest.memory.forget_oldest()

    def end(self) -> None:
        """Let the connections end with the requests that they answer."""
        for socket in tuple(self._open):
            socket.leave()


class ResponsesSocket:
    """One connection. Requests of one lane, `stream_id`, are answered one after the other, those of different lanes at once."""

    def __init__(
        self, serve: Serve, scope: Scope, receive: Receive, send: Send, settings: GatewaySettings, sockets: OpenSockets
    ) -> None:
        self.memory = _Memory(settings.max_body_bytes)
        self._serve = serve
        # The scope of a request by HTTP with the address and the headers of the handshake.
        headers = [(name, value) for name, value in scope["headers"] if not _OF_HANDSHAKE.fullmatch(name)]
        headers.append((b"content-type", JSON.encode()))
        scheme = "https" if scope.get("scheme") in ("https", "wss") else "http"
        own = {"type": "http", "method": "POST", "http_version": "1.1", "headers": headers, "scheme": scheme}
        known = {
            name: value
            for name, value in scope.items()
            if name not in (FIRST_HEADERS, HEAD, "extensions", "subprotocols")
        }
        self._scope = {**known, **own}
        self._receive = receive
        self._send = send
        self._settings = settings
        self._sockets = sockets
        # Codex alone reads events of its limits.
        named = (header(scope, b"originator") or header(scope, b"user-agent")).lower()
        self._tells_limits = named.startswith("codex") or any(
            one.startswith(b"x-codex-") for one, _ in scope["headers"]
        )
        self._loop = asyncio.get_running_loop()
        owner = getattr(receive, "__self__", None)
        # Where bardo's own server serves, what is worked at counts as the body of a request does.
        self._server = owner if isinstance(owner, RequestCycle) else None
        self._lanes: dict[str | None, deque[tuple[Raw, int]]] = {}
        self._workers: dict[str | None, asyncio.Task[None]] = {}
        self._named: set[str] = set()
        self._in_flight = asyncio.Semaphore(_MOST_IN_FLIGHT)
        self._queued = 0
        self.gone = asyncio.Event()
        self._leaving = self._expired = self._closed = False
        self._idle: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Accept the connection, and answer its requests until it ends."""
        await self._send({"type": "websocket.accept"})
        age = self._loop.call_later(self._settings.websocket_seconds, self._expire)
        self._rest()
        try:
            while (message := await self._receive())["type"] != "websocket.disconnect":
                if message["type"] == "websocket.receive":
                    await self._take(message)
        except asyncio.CancelledError as stopped:
            # The gateway stops, and waits no longer: requests that are open end with an error, which is sent before this ends.
            self._leaving = self._expired = False
            for worker in self._workers.values():
                worker.cancel(*stopped.args)
            await self._wait_for_workers()
            await self._close(_RESTART, "the gateway stops")
            raise
        finally:
            self.gone.set()
            age.cancel()
            if self._idle is not None:
                self._idle.cancel()
        await self._wait_for_workers()

    async def _wait_for_workers(self) -> None:
        while self._workers:
            await asyncio.wait(list(self._workers.values()))

    # The life of the connection

    def leave(self) -> None:
        """End the connection once the requests that were taken are answered: the gateway stops."""
        self._leaving = True
        self._end_when_done()

    def _expire(self) -> None:
        self._expired = True
        self._end_when_done()

    def _rest(self) -> None:
        """Bound the time in which nothing is asked."""
        if self._idle is not None:
            self._idle.cancel()
        self._idle = self._loop.call_later(self._settings.websocket_idle_seconds, self._end_idle)

    def _end_idle(self) -> None:
        if self._workers:
            self._rest()
        else:
            self._begin_closing(_NORMAL, "nothing was asked for a long time")

    def _end_when_done(self) -> None:
        if self._workers or self._closed:
            return
        if self._leaving:
            self._begin_closing(_GOING_AWAY, "the gateway stops")
        elif self._expired:
            self._begin_closing(_NORMAL, "the connection was open for as long as it may be")

    def _begin_closing(self, code: int, reason: str) -> None:
        self._closing = self._loop.create_task(self._close(code, reason))

    async def _close(self, code: int, reason: str) -> None:
        if self._closed:
            return
        self._closed = True
        if self._expired:
            await self._tell(_expired(self._settings.websocket_seconds))
        await self._put({"type": "websocket.close", "code": code, "reason": reason})

    # Messages

    async def _take(self, message: Message) -> None:
        """Take a message of the client: a request, which is queued in its lane, or something that is refused."""
        self._rest()
        text: str | None = message.get("text")
        body = text.encode() if text is not None else b""
        lane: str | None = None
        try:
            if text is None:
                raise InvalidRequest("a message is binary", hint="send JSON as text")
            if len(body) > self._settings.max_body_bytes:
                raise TooLarge(f"the message is over {self._settings.max_body_bytes} bytes", hint="send less")
            fields = await run_by_size(size_of_body(body), lambda: _fields(body))
            if _text(fields.get("type")) == "response.steer":
                await self.event(_unsteered(fields), None)
                return
            lane = self._lane_of(fields)
            if lane is not None and lane not in self._named and len(self._named) >= _MOST_LANES:
                why = f"this connection has used {_MOST_LANES} different values of stream_id: use one of them, or open another"
                await self._tell(_Named(why, "websocket_stream_limit_reached", "stream_id"), lane)
                return
            if self._leaving:
                raise shutting_down()
            if self._expired:
                await self._tell(_expired(self._settings.websocket_seconds), lane)
                return
            if self._closing is not None:
                return  # It came as the connection was closed, because nothing was asked for long.
            if self._queued >= _MOST_IN_FLIGHT + _MOST_QUEUED:
                message_ = f"over {_MOST_QUEUED} requests wait on one connection"
                raise Overloaded(message_, hint="wait for replies, or open another connection")
            self._count(len(body))
        except BardoError as problem:
            await self._refuse(problem, lane)
            return
        if lane is not None:
            self._named.add(lane)
        self._queued += 1
        self._lanes.setdefault(lane, deque()).append((fields, len(body)))
        if lane not in self._workers:
            worker = self._workers[lane] = self._loop.create_task(self._work(lane))
            worker.add_done_callback(lambda _: self._end_when_done())

    def _lane_of(self, fields: Raw) -> str | None:
        """Return the lane of a request. Raises InvalidRequest for what is not a request, or names none."""
        kind = _text(fields.get("type"))
        if kind != "response.create":
            told = "a message has no type" if not kind else f"messages of type {kind[:100]!r} are not taken here"
            raise InvalidRequest(told, hint='send {"type": "response.create", …}', param="type")
        raw = fields.pop("stream_id", msgspec.Raw(b"null"))
        if bytes(raw) == b"null":
            return None
        lane = _text(raw)
        if lane is None or not _LANE.fullmatch(lane):
            raise _InvalidStreamId(_LANE_RULE[0], hint=_LANE_RULE[1], param="stream_id")
        return lane

    def _count(self, size: int) -> None:
        """Count bytes of a request among the bodies in memory. Raises Overloaded, and counts nothing then."""
        if self._server is None:
            return
        try:
            self._server.count_body(size)
        except Overloaded:
            self._server.release(size)
            raise

    def _release(self, size: int) -> None:
        if self._server is not None:
            self._server.release(size)

    async def _work(self, lane: str | None) -> None:
        """Answer the requests of one lane, one after the other."""
        waiting = self._lanes[lane]
        try:
            while waiting and not self.gone.is_set():
                fields, size = waiting.popleft()
                try:
                    async with self._in_flight:
                        await self._answer(fields, lane)
                except Exception:  # noqa: BLE001 - one request fails, the connection goes on
                    await self._refuse(mistake(self._scope["path"]), lane)
                finally:
                    self._queued -= 1
                    self._release(size)
        finally:
            del self._workers[lane], self._lanes[lane]
            self._queued -= len(waiting)
            self._release(sum(size for _, size in waiting))

    async def _answer(self, fields: Raw, lane: str | None) -> None:
        """Answer one request."""
        turn = _Turn(self, lane)
        try:
            own, before, body = await self._request_of(fields, turn)
        except BardoError as problem:
            await self._refuse(problem, lane)
            return
        if bytes(fields.get("generate", b"null")) == b"false":
            await self._prepare(turn, body)
        else:
            turn.body = body
            size = len(body) if before is not None else 0
            try:
                self._count(size)
            except Overloaded as problem:
                await self._refuse(problem, lane)
                return
            try:
                await self._serve({**self._scope}, turn.receive, turn.send)
            finally:
                self._release(size)
        if turn.answered is not None and not self.gone.is_set():
            name, output = turn.answered
            self.memory.put(name, before, b",".join([*own, *output]))
            self._sockets.make_room(self._settings.max_total_body_bytes)

    async def _request_of(self, fields: Raw, turn: _Turn) -> tuple[list[bytes], _Remembered | None, bytes]:
        """Return the items of a request, what it goes on from on this connection, and its body by HTTP. Raises BardoError."""
        named = _text(fields.get("previous_response_id")) or ""
        before = self.memory.find(named) if named else None
        if bytes(fields.get("background", b"null")) == b"true":
            hint = "leave background out, or send the request by HTTP"
            raise InvalidRequest("a response in the background has no events to send", hint=hint, param="background")
        left_out = {"type", "stream", "background", "generate"}
        kept = {name: value for name, value in fields.items() if name not in left_out}
        own = _items_of(fields.get("input"))
        wanted = {one for item in own if (one := _reference_of(item)) is not None}
        if wanted and not self.memory.is_empty():
            texts = self.memory.texts()
            found = await run_by_size(self.memory.bytes, lambda: _items_by_id(texts, wanted))
            own = [found.get(_reference_of(item) or "", item) for item in own]
            kept["input"] = msgspec.Raw(b"[" + b",".join(own) + b"]")
        if before is not None:
            turn.previous = named
            del kept["previous_response_id"]
            items = [*_history(before), *own]
            if sum(map(len, items)) > self._settings.max_body_bytes:
                raise TooLarge(
                    f"the conversation is over {self._settings.max_body_bytes} bytes",
                    hint="begin a new one, or raise gateway.max_body_bytes in bardo.toml",
                )
            kept["input"] = msgspec.Raw(b"[" + b",".join(items) + b"]")
        kept["stream"] = msgspec.Raw(b"true")
        return own, before, msgspec.json.encode(kept)

    async def _prepare(self, turn: _Turn, body: bytes) -> None:
        """Answer a request that only prepares the next one: nobody is asked, and the next may go on from it."""
        spoken = dialect(DIALECT)
        try:
            request = await run_by_size(size_of_body(body), lambda: spoken.decode_request(body, Arrival()))
        except BardoError as problem:
            await self._refuse(problem, turn.lane)
            return
        encoder = spoken.open_encoder(request, Arrival())
        start = ReplyStart(
            id=f"resp_bardo_{CHANCE.getrandbits(128):032x}", model=request.model, created=int(time.time())
        )
        frames = [*encoder.feed(start), *encoder.feed(UsageUpdate(Usage(input_tokens=0, output_tokens=0)))]
        frames += [*encoder.feed(Finish("stop")), *encoder.finish()]
        await turn.events(b"".join(frames))

    # What is sent

    async def _refuse(self, problem: BardoError, lane: str | None) -> None:
        """Send an error as the answer to one message."""
        status, body = error_status(problem, DIALECT), error_body(problem, DIALECT)
        await self.error(status, body, error_headers(problem, DIALECT), lane)

    async def _tell(self, problem: _Named, lane: str | None = None) -> None:
        await self.error(400, msgspec.json.encode({"error": problem}), (), lane)

    async def error(self, status: int, body: bytes, headers: Sequence[tuple[str, str]], lane: str | None) -> None:
        """Send an error as OpenAI's servers do: the object, the status that it would have by HTTP, and the headers."""
        fields = msgspec.json.decode(body, type=Raw)
        await self.event(
            msgspec.json.encode({"type": "error", "status": status, **fields, "headers": dict(headers)}), lane
        )

    async def event(self, data: bytes, lane: str | None) -> None:
        """Send one event, with the lane that it belongs to."""
        text = data.decode()
        if lane is not None:
            # A lane's name needs no escapes.
            text = f'{text.rstrip()[:-1]},"stream_id":"{lane}"}}'
        await self._put({"type": "websocket.send", "text": text})

    async def _put(self, message: Message) -> None:
        if self.gone.is_set():
            return
        try:
            await self._send(message)
        except OSError:  # Another server says so that the client has left.
            self.gone.set()

    async def limits(self, headers: dict[str, str]) -> None:
        """Tell Codex what is left of its limits, where the reply's headers say it."""
        if self._tells_limits:
            for told in _rate_limits(headers, time.time()):
                await self.event(msgspec.json.encode(told), None)


class _Turn:
    """One request on a connection, as the application that answers HTTP sees it."""

    def __init__(self, socket: ResponsesSocket, lane: str | None) -> None:
        self.lane = lane
        self.body = b""
        self.previous = ""
        """The response that the request goes on from, where the connection has it."""
        self.answered: tuple[str, list[bytes]] | None = None
        """The id and the items of the response, where it may be gone on from."""
        self._socket = socket
        self._given = False
        self._status = 0
        self._headers: dict[str, str] = {}
        self._streams = False
        self._frames = SseDecoder()
        self._whole = bytearray()
        self._done: list[bytes] = []

    async def receive(self) -> Message:
        """Return the request, and later that the client has left."""
        if not self._given:
            self._given = True
            return {"type": "http.request", "body": self.body, "more_body": False}
        await self._socket.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take one ASGI message of the reply."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            found = [(name.lower(), value) for name, value in message.get("headers", ())]
            self._streams = self._status == _SUCCESS and (b"content-type", _STREAM) in found
            self._headers = {
                str(name, "latin-1"): str(value, "latin-1") for name, value in found if name not in _OF_BODY
            }
            if self._streams:
                await self._socket.limits(self._headers)
            return
        body: bytes = message.get("body", b"")
        if self._streams:
            await self.events(body)
            return
        self._whole += body
        if not message.get("more_body"):
            status, told = _unknown_previous(self._status, bytes(self._whole))
            await self._socket.error(status, told, [*self._headers.items()], self.lane)

    async def events(self, data: bytes) -> None:
        """Send the events that stand in a piece of a stream."""
        for frame in self._frames.feed(data):
            if frame.data:
                await self._event(frame.data)

    async def _event(self, data: bytes) -> None:
        if not data.startswith(b"{"):
            return  # Some servers end a stream with `[DONE]`, which is no event.
        kind = msgspec.json.decode(data, type=_Typed).type
        if kind in _WHOLE_RESPONSE:
            fields = msgspec.json.decode(data, type=Raw)
            response = msgspec.json.decode(fields.get("response", b"{}"), type=Raw)
            if kind in ("response.completed", "response.incomplete"):
                self._note(response)
            if self.previous:
                response["previous_response_id"] = msgspec.Raw(msgspec.json.encode(self.previous))
            if kind == "response.created" and self._headers:
                # By HTTP they stand before the reply.
                response["headers"] = msgspec.Raw(msgspec.json.encode(self._headers))
            data = msgspec.json.encode({**fields, "response": response})
        elif kind == _ITEM_DONE:
            self._done.append(bytes(msgspec.json.decode(data, type=Raw).get("item", b"{}")))
        await self._socket.event(data, self.lane)

    def _note(self, fields: Raw) -> None:
        """Remember a response that a later request may go on from; one that the gateway keeps is found where it is kept."""
        name, output = _text(fields.get("id")), _items_of(fields.get("output"))
        if not name or (bytes(fields.get("store", b"")) == b"true" and is_made(name)):
            return
        # ChatGPT's servers end some streams with a response whose output is empty: its items are those that were done.
        self.answered = name, [item for item in output or self._done if not _is_broken_call(item)]


class _InvalidStreamId(InvalidRequest):
    """A lane that has no valid name."""

    @property
    def code(self) -> str:
        """OpenAI's own code."""
        return "invalid_stream_id"


class _Typed(msgspec.Struct):
    """The type of an event."""

    type: str = ""


class _Reference(msgspec.Struct):
    """What is looked at of an item that may stand for another."""

    type: str = "item_reference"
    id: str | None = None
    role: str | None = None


def _fields(body: bytes) -> Raw:
    """Return the fields of a message. Raises InvalidRequest."""
    try:
        return msgspec.json.decode(body, type=Raw)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise InvalidRequest("a message is not a JSON object", hint='send {"type": "response.create", …}') from problem


def _text(raw: msgspec.Raw | None) -> str | None:
    """Return a field that is a string, or None if it is none."""
    try:
        return None if raw is None else msgspec.json.decode(raw, type=str)
    except msgspec.DecodeError:
        return None


def _unknown_previous(status: int, body: bytes) -> tuple[int, bytes]:
    """Return the status and the body of an error, by OpenAI's code where it is about an earlier response that nobody has.

    Clients look for that code, and send the whole conversation then; a gateway that keeps nothing says by HTTP how it could.
    """
    found = msgspec.json.decode(body)
    error = found.get("error")
    if status not in (400, 404) or not isinstance(error, dict) or error.get("param") != "previous_response_id":
        return status, body
    code = {"code": "previous_response_not_found", "type": "invalid_request_error"}
    return 400, msgspec.json.encode({**found, "error": {**error, **code}})


def _items_of(raw: msgspec.Raw | None) -> list[bytes]:
    """Return the items of an input; what is no input is refused where the request is read."""
    if raw is None:
        return []
    text = _text(raw)
    if text is not None:
        return [msgspec.json.encode({"type": "message", "role": "user", "content": text})]
    try:
        return [bytes(item) for item in msgspec.json.decode(raw, type=list[msgspec.Raw])]
    except msgspec.DecodeError:
        return []


def _is_broken_call(item: bytes) -> bool:
    """Whether an item is a call that broke off, which no provider takes back."""
    try:
        fields = msgspec.json.decode(item, type=Raw)
    except msgspec.DecodeError:
        return True  # What is no object is no item.
    kind = _text(fields.get("type")) or ""
    return kind.endswith("_call") and _text(fields.get("status")) == "incomplete"


def _reference_of(item: bytes) -> str | None:
    """Return the id of the item that stands elsewhere, or None if this one is no reference."""
    if len(item) > _LONGEST_REFERENCE:
        return None
    try:
        found = msgspec.json.decode(item, type=_Reference)
    except msgspec.DecodeError:
        return None
    return found.id if found.type == "item_reference" and found.role is None else None


def _items_by_id(texts: Sequence[bytes], wanted: Collection[str]) -> dict[str, bytes]:
    """Return those of the items that have one of these ids."""
    found: dict[str, bytes] = {}
    for text in texts:
        for raw in msgspec.json.decode(b"[" + text + b"]", type=list[msgspec.Raw]):
            try:
                name = msgspec.json.decode(raw, type=_Reference)
            except msgspec.DecodeError:
                continue  # A client's own item of another form, which has no id to be found by.
            if name.id is not None and name.id in wanted and _reference_of(bytes(raw)) is None:
                found[name.id] = bytes(raw)
    return found


def _history(last: _Remembered) -> list[bytes]:
    """Return the items of a conversation up to a response, the oldest first."""
    turns: list[bytes] = []
    at: _Remembered | None = last
    while at is not None:
        turns.append(at.items)
        at = at.before
    return [items for items in reversed(turns) if items]


def _unsteered(fields: Raw) -> bytes:
    """Return the event that gives back what was to steer a reply: no provider is told anything while it answers."""
    message = "a reply is not steered here: send the input with the next response.create"
    error = {"code": "steering_not_supported", "message": message, "type": "invalid_request_error"}
    steer = {name: fields.get(name, msgspec.Raw(b'""')) for name in ("input", "previous_response_id")}
    return msgspec.json.encode({"type": "response.steer.failed", "error": error, "steer": steer, "sequence_number": 0})


def _expired(seconds: float) -> _Named:
    message = (
        f"Responses websocket connection limit reached ({seconds / _MINUTE:g} minutes). "
        "Create a new websocket connection to continue."
    )
    return _Named(message, "websocket_connection_limit_reached")


def as_denial(scope: Scope, send: Send) -> Send:
    """Return a `send` that takes the reply to a request, and refuses a WebSocket with it; by 403 where the server cannot do more."""

    async def deny(message: Message) -> None:
        if "websocket.http.response" in (scope.get("extensions") or {}):
            await send({**message, "type": f"websocket.{message['type']}"})
        elif message["type"] == "http.response.start":
            await send({"type": "websocket.close", "code": 1008})

    return deny


def _rate_limits(headers: dict[str, str], now: float) -> list[dict[str, Any]]:
    """Return the events of Codex's limits: those of its login, or what is left of the limits of a minute of a key.

    A login has one event of windows for each of its limits, as Codex reads them by HTTP (codex-api/src/rate_limits.rs, 2026-11).
    """
    found = sorted({one[1] for name in headers if (one := _LIMIT_OF_LOGIN.fullmatch(name))})
    events = [told for name in found if (told := _limit_of_login(name, headers))]
    if not events and (shares := [*_used_shares(headers)]):
        window = {"used_percent": max(shares), "window_minutes": 1, "reset_at": int(now) + _MINUTE}
        events = [{"type": _RATE_LIMITS, "rate_limits": {"primary": window}}]
    return events


def _limit_of_login(name: str, headers: dict[str, str]) -> dict[str, Any] | None:
    """Return the event of one limit, or None if its headers say nothing that is a number."""
    windows: dict[str, Any] = {}
    for window in ("primary", "secondary"):
        used = _number(headers.get(f"x-{name}-{window}-used-percent"))
        if used is not None:
            minutes = _number(headers.get(f"x-{name}-{window}-window-minutes"))
            reset = _number(headers.get(f"x-{name}-{window}-reset-at"))
            windows[window] = {
                "used_percent": used,
                "window_minutes": None if minutes is None else int(minutes),
                "reset_at": None if reset is None else int(reset),
            }
    if not windows:
        return None
    told = {"type": _RATE_LIMITS, "rate_limits": windows, "metered_limit_name": name.replace("-", "_")}
    if plan := headers.get("x-codex-plan-type"):
        told["plan_type"] = plan
    has, unlimited = (_TRUTHS.get(headers.get(f"x-codex-credits-{one}", "").lower()) for one in _CREDITS)
    if has is not None and unlimited is not None:
        balance = headers.get("x-codex-credits-balance")
        told["credits"] = {"has_credits": has, "unlimited": unlimited, "balance": balance}
    return told


def _used_shares(headers: dict[str, str]) -> Iterator[float]:
    for kind in ("requests", "tokens"):
        limit = _number(headers.get(f"x-ratelimit-limit-{kind}"))
        left = _number(headers.get(f"x-ratelimit-remaining-{kind}"))
        if limit and left is not None:
            yield round(100 * (1 - min(left, limit) / limit), 1)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if abs(number) < _MOST_NUMBER else None

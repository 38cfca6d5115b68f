"""A WebSocket on a connection of bardo's server: its handshake and its messages, within bounds, as ASGI has them.

Frames are read and written by the library `websockets`, of which only the part without sockets is used. What a client sends is given to it
in small pieces, since a read may hold thousands of frames, and a few bytes may unpack to megabytes.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import deque

from websockets.datastructures import Headers
from websockets.exceptions import ProtocolError
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.frames import Close, CloseCode, Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import Protocol, Side, State
from websockets.server import ServerProtocol

from bardo.server.reply import Application, Channel, Message, RequestCycle, Scope
from bardo.values.errors import Overloaded

# Windows of 4 KiB and little memory for packing: 64 KiB for a connection, where the usual ones take 300.
_WINDOW_BITS = 12
_PACKING = {"memLevel": 5}
_SWITCHING = 101
_PIECE_BYTES, _THREAD_BYTES = 4096, 16 * 1024
# How long frames are read at a stretch: other connections have their turn then.
_STRETCH_SECONDS = 0.01
# A long message is sent in pieces, between which other connections have their turn.
_SENT_AT_ONCE = 256 * 1024
# More of a client waits in the system until the application has taken what is here.
_MOST_MESSAGES = 16
_MOST_EARLY = 64 * 1024
PING_SECONDS = 20.0
"""After how long a silence a client is asked whether it is there."""
DEAD_SECONDS = 60.0
"""After how long a silence a client is taken for gone: it answers neither a ping nor what it was sent."""
CLOSING_SECONDS = 5.0
"""How long a client may take to close a connection that was ended."""
_LONGEST_REASON = 123
# So much a client may send after its connection was ended.
_MOST_SURPLUS = 256 * 1024

# What the library has to say is about one client, and not for the operator.
_log = logging.getLogger("bardo.server.websocket")
_log.setLevel(logging.CRITICAL)


class WebSocketCycle(RequestCycle):
    """A request for a WebSocket. The application refuses it, by a reply as to any request, or accepts it; messages come and go then."""

    response: Response
    """The answer to the handshake, which is sent where the application accepts it."""

    def __init__(
        self, channel: Channel, scope: Scope, *, keep_alive: bool, loop: asyncio.AbstractEventLoop, body_seconds: float
    ) -> None:
        super().__init__(channel, scope, keep_alive=keep_alive, expects_100_continue=False)
        self.loop = loop
        self.early = bytearray()
        """What the client sends before its request is answered: frames where it is accepted, and else the next request."""
        self._body_seconds = body_seconds
        self._limits = channel.server.limits
        longest = min(self._limits.max_body_bytes(), sys.maxsize)
        self._frames = Protocol(Side.SERVER, state=State.OPEN, max_size=longest, logger=_log)
        self._accepted = False
        self._sending = asyncio.Lock()
        self._messages: deque[Message] = deque([{"type": "websocket.connect"}])
        self._news_of_message: asyncio.Event | None = None
        # What was read and not looked at, the message that arrives, and how much of both counts among all that is in memory.
        self._unparsed = bytearray()
        self._arriving = bytearray()
        self._is_text, self._is_incomplete = True, False
        self._buffered = 0
        self._parsing: asyncio.Handle | None = None
        self._suspended: asyncio.Task[None] | None = None
        # Ends a message that does not arrive in time; looks whether the client is there; closes what the client does not.
        self._deadline: asyncio.TimerHandle | None = None
        self._look: asyncio.TimerHandle | None = None
        self._heard = loop.time()
        self._ended = False
        self._surplus = 0

    def is_handshake(self) -> bool:
        """Whether the request is a valid handshake; what is none is a request like any other."""
        headers = Headers()
        for name, value in self.scope["headers"]:
            headers[name.decode("latin-1")] = value.decode("latin-1")
        packing = ServerPerMessageDeflateFactory(
            server_max_window_bits=_WINDOW_BITS, client_max_window_bits=_WINDOW_BITS, compress_settings=dict(_PACKING)
        )
        handshake = ServerProtocol(extensions=[packing], logger=_log)
        self.response = handshake.accept(Request(self.scope["raw_path"].decode("latin-1"), headers))
        if self.response.status_code != _SWITCHING:
            return False
        self._frames.extensions = handshake.extensions
        offered = ",".join(headers.get_all("Sec-WebSocket-Protocol")).split(",")
        self.scope["subprotocols"] = [name for each in offered if (name := each.strip())]
        self.scope["extensions"] = {"websocket.http.response": {}}
        self.scope["scheme"] = "wss" if self.scope["scheme"] == "https" else "ws"
        self.scope["type"] = "websocket"
        return True

    async def run(self, app: Application) -> None:
        """Have the application answer, and count the WebSocket from when it is accepted until it has ended."""
        try:
            await super().run(app)
        finally:
            self._limits.websockets -= self._accepted

    # What the client sends

    def feed(self, data: bytes) -> None:
        """Take what has come."""
        self._heard = self.loop.time()
        if self._ended:
            # Nothing is looked for any more but that the client ends the connection too.
            self._surplus += len(data)
            if self._suspended is None:
                self._frames.receive_data(data)
                self._frames.events_received()
                self._frames.data_to_send()
            if self._frames.close_rcvd is not None or self._surplus > _MOST_SURPLUS:
                self._channel.transport.close()
            return
        if not self._accepted:
            self.early += data
            if len(self.early) > _MOST_EARLY:
                self._channel.pause_reading()
            return
        self._unparsed += data
        self._parse_on()

    def _parse_on(self) -> None:
        if self._parsing is None and self._suspended is None:
            self._parse()

    def _parse(self) -> None:
        """Read frames for a short time, and go on at the event loop's next turn."""
        self._parsing = None
        until = self.loop.time() + _STRETCH_SECONDS
        unparsed = self._unparsed
        try:
            self._take_events()
            self._recount()
            while unparsed and not self._ended and len(self._messages) < _MOST_MESSAGES:
                if self._channel.write_paused:
                    # Pings are answered: a client that does not read the answers gets no more of them.
                    self._suspended = self.loop.create_task(self._parse_when_writable())
                    break
                if self._frames.extensions and len(self._frames.reader.buffer) >= _PIECE_BYTES:
                    # What is packed so long may unpack to tens of megabytes.
                    self._suspended = self.loop.create_task(self._parse_in_thread())
                    break
                self._frames.receive_data(self._cut(_PIECE_BYTES))
                self._take_events()
                if unparsed and self.loop.time() >= until:
                    self._parsing = self.loop.call_soon(self._parse)
                    break
            self._recount()
        except Overloaded as problem:
            self._fail(CloseCode.TRY_AGAIN_LATER, str(problem))
        except UnicodeDecodeError:
            self._fail(CloseCode.INVALID_DATA, "a text is not UTF-8")
        if self._ended:
            unparsed.clear()
            self._recount()
            return
        if unparsed:
            self._channel.pause_reading()
        else:
            self._channel.resume_reading()
        self._bound_arrival()

    def _cut(self, size: int) -> bytes:
        """Return the next bytes that were not looked at."""
        piece = bytes(self._unparsed[:size])
        del self._unparsed[:size]
        return piece

    def _take_events(self) -> None:
        """Take what the library has read. Raises UnicodeDecodeError."""
        for event in self._frames.events_received():
            if isinstance(event, Frame):
                self._take(event)
        self._write_frames()
        if self._frames.state is not State.OPEN and not self._ended:
            self._finish(self._frames.close_sent)

    async def _parse_in_thread(self) -> None:
        # Nothing is sent meanwhile: the library writes too where it reads a ping.
        async with self._sending:
            await asyncio.to_thread(self._frames.receive_data, self._cut(_THREAD_BYTES))
        self._suspended = None
        if not self._ended:
            self._parse()

    async def _parse_when_writable(self) -> None:
        await self._channel.drain()
        self._suspended = None
        self._heard = self.loop.time()
        if not self._ended:
            self._parse()

    def _take(self, frame: Frame) -> None:
        """Take a frame: a piece of a message, or one that the library has answered. Raises UnicodeDecodeError."""
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            self._is_text = frame.opcode is Opcode.TEXT
        elif frame.opcode is not Opcode.CONT:
            return
        self._is_incomplete = not frame.fin
        if frame.fin and not self._arriving:
            whole = bytes(frame.data)
        else:
            self._arriving += frame.data
            if not frame.fin:
                return
            whole = bytes(self._arriving)
            self._arriving.clear()
        self._put(
            {"type": "websocket.receive", "text": whole.decode()}
            if self._is_text
            else {"type": "websocket.receive", "bytes": whole}
        )

    def _recount(self) -> None:
        """Count what is held of the client among all bodies. Raises Overloaded where those are too many."""
        held = 0
        if not self._ended:
            held = len(self._unparsed) + len(self._frames.reader.buffer) + len(self._arriving)
        more, self._buffered = held - self._buffered, held
        if more > 0:
            self._limits.count_body(more)
        else:
            self._limits.body_bytes += more

    def _bound_arrival(self) -> None:
        """Give the message that has begun to arrive a time, as a body has it."""
        if not (self._is_incomplete or self._frames.reader.buffer):
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self._body_seconds, self._end_slow_message)

    def _end_slow_message(self) -> None:
        self._deadline = None
        if self._unparsed or self._channel.read_paused:
            self._bound_arrival()  # The client waits for us.
        else:
            self._fail(CloseCode.POLICY_VIOLATION, f"a message did not arrive within {self._body_seconds:g} s")

    def _check_client(self) -> None:
        """Ask a silent client whether it is there, and let go of one that does not answer."""
        silent = self.loop.time() - self._heard
        if silent >= DEAD_SECONDS and (self._channel.write_paused or not self._channel.read_paused):
            self._channel.transport.abort()
            return
        if silent >= PING_SECONDS and not self._sending.locked():
            self._frames.send_ping(b"")
            self._write_frames()
        self._look = self.loop.call_later(PING_SECONDS, self._check_client)

    # What the application gets and sends

    async def receive(self) -> Message:
        """Return the next ASGI message; what the end of the connection says remains."""
        while not self._messages:
            if self._news_of_message is None:
                self._news_of_message = asyncio.Event()
            await self._news_of_message.wait()
        if self._messages[0]["type"] == "websocket.disconnect":
            return self._messages[0]
        message = self._messages.popleft()
        if self._unparsed:
            self._parse_on()
        return message

    def _put(self, message: Message) -> None:
        self._messages.append(message)
        if self._news_of_message is not None:
            self._news_of_message.set()
            self._news_of_message = None

    async def send(self, message: Message) -> None:
        """Take one ASGI message."""
        kind: str = message["type"]
        if not self._accepted:
            if kind == "websocket.accept":
                self._accept(message)
            elif kind == "websocket.close":
                await super().send(
                    {"type": "http.response.start", "status": 403, "headers": [(b"content-length", b"0")]}
                )
                await super().send({"type": "http.response.body"})
            else:
                await super().send({**message, "type": kind.removeprefix("websocket.")})
            return
        if kind == "websocket.close":
            async with self._sending:
                if self._ended:
                    return
                self._close(int(message.get("code", CloseCode.NORMAL_CLOSURE)), message.get("reason") or "")
                return
        if kind != "websocket.send":
            raise RuntimeError(f"the application sent {kind} in place of another message")
        text: str | None = message.get("text")
        data = text.encode() if text is not None else message.get("bytes") or b""
        async with self._sending:
            for place in range(0, len(data) or 1, _SENT_AT_ONCE):
                if place:
                    await asyncio.sleep(0)
                if self._channel.write_paused and not self._ended:
                    await self._channel.drain()
                    self._heard = self.loop.time()
                if self._ended:
                    return
                piece, ends = data[place : place + _SENT_AT_ONCE], place + _SENT_AT_ONCE >= len(data)
                if place:
                    self._frames.send_continuation(piece, ends)
                elif text is not None:
                    self._frames.send_text(piece, ends)
                else:
                    self._frames.send_binary(piece, ends)
                self._write_frames()

    def _accept(self, message: Message) -> None:
        """Answer the handshake, and read what has come since."""
        if self.disconnected:
            return
        for name, value in message.get("headers", ()):
            self.response.headers[name.decode("latin-1")] = value.decode("latin-1")
        if message.get("subprotocol"):
            self.response.headers["Sec-WebSocket-Protocol"] = message["subprotocol"]
        self._accepted = self.response_started = True
        self._limits.websockets += 1
        self._channel.transport.write(self.response.serialize())
        self._look = self.loop.call_later(PING_SECONDS, self._check_client)
        early, self.early = bytes(self.early), bytearray()
        self._channel.resume_reading()
        if early:
            self.feed(early)

    def _write_frames(self) -> None:
        for data in self._frames.data_to_send():
            if data:
                self._channel.transport.write(data)

    # The end

    def _close(self, code: int, reason: str) -> None:
        """Say that the connection ends, and wait for the client to say so too."""
        short = reason.encode()[:_LONGEST_REASON].decode(errors="ignore")
        try:
            self._frames.send_close(code, short)
        except ProtocolError:  # A code that may not be sent.
            self._frames.send_close(CloseCode.INTERNAL_ERROR)
        self._finish(self._frames.close_sent)

    def _fail(self, code: CloseCode, reason: str) -> None:
        """End the connection because of what the client sent."""
        self._frames.fail(code, reason.encode()[:_LONGEST_REASON].decode(errors="ignore"))
        self._finish(self._frames.close_sent)

    def _finish(self, closed: Close | None) -> None:
        """Take nothing more of the client, tell the application, and close the connection once the client has, or soon."""
        self._ended = self.response_complete = True
        self._write_frames()
        # What the client asked and nobody has begun is not begun for a client that has gone.
        self._messages.clear()
        code = CloseCode.ABNORMAL_CLOSURE if closed is None else closed.code
        self._put(
            {"type": "websocket.disconnect", "code": int(code), "reason": "" if closed is None else closed.reason}
        )
        self.stop()
        transport = self._channel.transport
        if not transport.is_closing():
            self._look = self.loop.call_later(CLOSING_SECONDS, transport.abort)
            if self._frames.close_rcvd is not None:
                transport.close()
                return
            if self._frames.eof_sent and transport.can_write_eof():
                transport.write_eof()
            # A reset would take the last words from the client.
            self._channel.resume_reading()

    def stop(self) -> None:
        """Stop all that would act on the connection, which has ended."""
        for waiting in (self._deadline, self._look, self._parsing, self._suspended):
            if waiting is not None:
                waiting.cancel()
        self._limits.body_bytes -= self._buffered
        self._buffered = 0

    def lose(self) -> None:
        """Note that the client has left."""
        if not self._ended:
            self._ended = True
            self._messages.clear()
            self._put({"type": "websocket.disconnect", "code": int(CloseCode.ABNORMAL_CLOSURE), "reason": ""})
        super().lose()

    async def _end_failed(self) -> None:
        """End what the application has left without an end."""
        if self._accepted:
            self._close(CloseCode.INTERNAL_ERROR, "")
        else:
            await super()._end_failed()

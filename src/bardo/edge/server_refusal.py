"""How one connection refuses a request: with an error in its dialect, after the replies that are still due; then it is closed."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from bardo.edge.server_limits import ServerLimits, too_many_body_bytes
from bardo.edge.server_reply import RequestCycle
from bardo.values.chance import CHANCE
from bardo.values.errors import BardoError

# After an error the client may go on sending this much, or twice as much as a body may have, as long as something comes; then the
# connection is closed. Many clients read nothing before they have sent all, and see a broken pipe where they are cut off.
_LINGER_SECONDS = 2.0
_LINGER_BYTES = 4 * 1024 * 1024

# Which part of a request has begun to arrive and is not complete.
NOTHING, HEAD, BODY = range(3)


class RefusingProtocol(HttpToolsProtocol):
    """One connection. `app.limits` are the limits of its process."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.cycle: RequestCycle
        self.url = b""
        self.headers = []
        self._limits: ServerLimits = getattr(self.app, "limits", None) or ServerLimits(self.app)
        self._limits.tasks = self.tasks
        self._arriving = NOTHING
        # Ends a request that does not arrive in time, or a connection that was refused.
        self._deadline: asyncio.TimerHandle | None = None
        self._body_size = 0
        # The request whose reply is being made: with pipelined requests, not the last that came.
        self._active: RequestCycle | None = None
        # The request that the application gets once it has arrived.
        self._unstarted: RequestCycle | None = None
        # An error that waits for the replies before it, and how much was read since.
        self._refusal: bytes | None = None
        self._refused = False
        self._discarded = 0
        self._discards_until = 0.0
        self._discarded_at = 0.0

    def connection_lost(self, exc: Exception | None) -> None:
        self.release_body()
        self._clear_deadline()
        if self._active is not None and not self._active.response_complete:
            self._active.lose()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        if self.pipeline:
            super().on_response_complete()
            return
        self.release_body()
        if self._refusal is not None:
            self._write_refusal(self._refusal)
        elif not self._refused:
            self.server_state.total_requests += 1
            if not self.transport.is_closing():
                if self.flow.read_paused:
                    self.flow.resume_reading()
                seconds = self.timeout_keep_alive
                self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def _refuse(self, problem: BardoError) -> None:
        """Answer a request with an error once the replies before it are complete, and read no more of it."""
        reply = self._encode(problem)
        self._refused = True
        self._clear_deadline()
        if self._arriving == BODY:
            self._withdraw()
        if self._is_busy():
            self._refusal = reply
        else:
            self._write_refusal(reply)

    def _withdraw(self) -> None:
        """Take a request that has not wholly arrived from the application, which is told that the client has gone."""
        if self.cycle is self._unstarted:
            self._unstarted = None
            self.release_body()
        elif self.cycle is not self._active:
            self.pipeline.popleft()
        elif self.cycle.response_started:
            self.transport.abort()
        else:
            self.cycle.lose()
            self.release_body()

    def _is_busy(self) -> bool:
        """Whether a reply is being made, which goes before an error."""
        active = self._active
        return active is not None and not active.response_complete and not active.disconnected

    def _encode(self, problem: BardoError) -> bytes:
        headers = self.scope["headers"] if self._arriving == BODY else self.headers
        path = self.url.partition(b"?")[0].decode("latin-1")
        reply = self._limits.encode_error(path, list(headers), problem)
        length = str(len(reply.body)).encode()
        request_id = f"req_{CHANCE.getrandbits(96):024x}".encode()
        ids = [(b"x-request-id", request_id), (b"request-id", request_id)]
        own = [*ids, (b"content-length", length), (b"connection", b"close")]
        lines = [
            name + b": " + value + b"\r\n" for name, value in (*self.server_state.default_headers, *reply.headers, *own)
        ]
        return b"".join([STATUS_LINE[reply.status], *lines, b"\r\n", reply.body])

    def _write_refusal(self, reply: bytes) -> None:
        self._refusal = None
        if not self.transport.is_closing():
            self.transport.write(reply)
            self._linger()

    def _linger(self) -> None:
        """Close the sending side, and let the client go on for a short time: a reset would take the answer from it."""
        self._refused = True
        self._discarded = 0
        self._clear_deadline()
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        self.transport.write_eof()
        self._discarded_at = self.loop.time()
        self._discards_until = self._discarded_at + max(_LINGER_SECONDS, self._limits.bounds.body_seconds)
        self._deadline = self.loop.call_later(_LINGER_SECONDS, self._end_lingering)

    def _end_lingering(self) -> None:
        """Close the connection, unless its client has sent something just now, and has some time left."""
        rest = min(self._discarded_at + _LINGER_SECONDS, self._discards_until) - self.loop.time()
        if rest <= 0:
            self.transport.abort()
        else:
            self._deadline = self.loop.call_later(rest, self._end_lingering)

    def _discard(self, size: int) -> None:
        """Throw away what a client sends after it was refused."""
        self._discarded += size
        self._discarded_at = self.loop.time()
        longest = self._limits.max_body_bytes()
        if self._discarded <= max(_LINGER_BYTES, 0 if longest == sys.maxsize else 2 * longest):
            return
        if self._is_busy():
            self.flow.pause_reading()
        else:
            self.transport.abort()

    def count_body(self, size: int) -> None:
        """Count bytes of a body, until its reply is complete. Raises Overloaded where those of all requests are too many."""
        self._body_size += size
        self._limits.body_bytes += size
        most = self._limits.bounds.max_total_body_bytes
        if self._limits.body_bytes > most:
            raise too_many_body_bytes(most)

    def release_body(self) -> None:
        """Count no longer what was read of a body: it is answered, or was put elsewhere."""
        self._limits.body_bytes -= self._body_size
        self._body_size = 0

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        assert isinstance(cycle, RequestCycle)
        self._active = cycle
        task = self.loop.create_task(cycle.run_asgi(app))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

"""How a whole reply leaves: head and body in one write.

uvicorn writes them one after the other, and the event loop sends each at once: a reply of some kilobytes then takes two system calls.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from typing import Any

from uvicorn.protocols.http.httptools_impl import HEADER_RE, HEADER_VALUE_RE, STATUS_LINE, RequestResponseCycle

Message = MutableMapping[str, Any]
Pairs = list[tuple[bytes, bytes]]
# Copying more takes as long as a second system call.
_MOST_JOINED = 64 * 1024
_WITHOUT_BODY = (204, 304)


class WholeReplies:
    """The `send` of one request. It holds the head of a reply that announces its length until the next message is there.

    Whatever does not hold all of its body in that message, and whatever ends its connection, goes through uvicorn's own `send`.
    """

    __slots__ = ("_cycle", "_head", "_send")

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._send: Callable[[Any], Awaitable[None]] = cycle.send
        self._head: Message | None = None

    async def send(self, message: Message) -> None:
        """Take one ASGI message."""
        head = self._head
        if message["type"] == "http.response.start" and self._announces_length(message):
            # A second head takes the place of one that was held: uvicorn's own error, where the application failed between the two.
            self._head = message
            return
        self._head = None
        if head is None:
            await self._send(message)
        elif not self._send_joined(head, message):
            await self._send(head)
            await self._send(message)

    def _announces_length(self, head: Message) -> bool:
        return not self._cycle.response_started and any(name == b"content-length" for name, _ in head["headers"])

    def _send_joined(self, head: Message, message: Message) -> bool:
        """Send a whole reply, and return whether that was possible."""
        cycle, body = self._cycle, message.get("body", b"")
        if cycle.disconnected or cycle.flow.write_paused or not cycle.keep_alive or cycle.access_log:
            return False
        if message.get("more_body") or cycle.scope["method"] == "HEAD" or head["status"] in _WITHOUT_BODY:
            return False
        written = _written(head["status"], cycle.default_headers + head["headers"], len(body))
        if written is None:
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = cycle.chunked_encoding = False
        if len(body) > _MOST_JOINED:
            cycle.transport.writelines((written, body))
        else:
            cycle.transport.write(written + body)
        cycle.message_event.set()
        cycle.on_response()
        return True


def _written(status: int, headers: Pairs, length: int) -> bytes | None:
    """Return the head of a reply with a body of `length` bytes; None where a header speaks of something else, or is not allowed."""
    announced = b"%d" % length
    parts = [STATUS_LINE[status]]
    for name, value in headers:
        label = _label(name)
        if label is None or (label == b"content-length: " and value != announced):
            return None
        parts += (label, value, b"\r\n")
    parts.append(b"\r\n")
    return None if HEADER_VALUE_RE.search(b"".join([value for _, value in headers])) else b"".join(parts)


@lru_cache(maxsize=512)
def _label(name: bytes) -> bytes | None:
    """Return what stands before the value of a header; None for one that says how the connection goes on, or that HTTP does not allow."""
    lowered = name.lower()
    if lowered in (b"connection", b"transfer-encoding") or HEADER_RE.search(name):
        return None
    return lowered + b": "

"""The static upstream, a process of its own: `python -m benchmarks.upstream` prints its port and answers canned bytes.

It reads no JSON and makes nothing anew, so that it is never what is measured. With a file that holds a key and a certificate it speaks
TLS, and closes each connection behind its first answer.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import sys
from collections.abc import Callable
from functools import lru_cache

from benchmarks import basket_replies
from benchmarks.canned import STREAM_HEAD, answer, is_paced, is_streamed, pace_of, stream_pieces, whole_reply

_MODEL = re.compile(rb'"model"\s*:\s*"(?:[^"/]*/)?(whole|(?:burst|paced|thinking|slow)-\d+)"')
_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:\s*chunked", re.IGNORECASE)
_LIST = answer(b'{"object":"list","data":[{"id":"whole","object":"model","created":0,"owned_by":"bench"}]}')
_CHUNKS_END = b"\r\n0\r\n\r\n"


class Upstream(asyncio.Protocol):
    """One connection: requests one after the other, each answered by the model it names."""

    def __init__(self) -> None:
        self._held = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._held += data
        end = request_end(self._held)
        if end < 0:
            return
        request = bytes(self._held[:end])
        del self._held[:end]
        self._answer(request)

    def _answer(self, request: bytes) -> None:
        pieces = basket_replies.reply_to(request)
        if pieces is not None:
            Paced(self._transport, pieces, basket_replies.PACE_SECONDS).send()
            return
        found = _MODEL.search(request)
        if found is None:
            self._transport.write(_LIST)
        elif is_paced(model := found[1].decode()):
            first, *rest = stream_pieces(model)
            Paced(self._transport, (STREAM_HEAD + first, *rest), pace_of(model)).send()
        else:
            self._transport.write(at_once(model))


class Paced:
    """A stream whose events come one every `pace` seconds, on a schedule of its own and not after each other's delays."""

    def __init__(self, transport: asyncio.Transport, pieces: tuple[bytes, ...], pace: float) -> None:
        self._transport = transport
        self._pace = pace
        self._pieces = pieces
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._sent = 0

    def send(self) -> None:
        """Send what is due, and come back for the next."""
        if self._transport.is_closing():
            return
        due = min(len(self._pieces), 1 + int((self._loop.time() - self._began) / self._pace))
        for place in range(self._sent, due):
            self._transport.write(self._pieces[place])
        self._sent = due
        if due < len(self._pieces):
            self._loop.call_at(self._began + due * self._pace, self.send)


def request_end(held: bytearray) -> int:
    """Return where the first request in `held` ends, -1 where it is not complete."""
    head = held.find(b"\r\n\r\n")
    if head < 0:
        return -1
    length = _LENGTH.search(held, 0, head + 2)
    if length is not None:
        end = head + 4 + int(length[1])
        return end if len(held) >= end else -1
    if _CHUNKED.search(held, 0, head + 2) is None:
        return head + 4
    last = held.find(_CHUNKS_END, head + 2)
    return last + len(_CHUNKS_END) if last >= 0 else -1


@lru_cache(maxsize=64)
def at_once(model: str) -> bytes:
    """Return the complete answer of a model that is not paced."""
    return STREAM_HEAD + b"".join(stream_pieces(model)) if is_streamed(model) else whole_reply(model)


class ClosingUpstream(Upstream):
    """A connection that ends behind the first answer."""

    def _answer(self, request: bytes) -> None:
        found = _MODEL.search(request)
        answered = _LIST if found is None else at_once(found[1].decode())
        self._transport.write(answered.replace(b"\r\n", b"\r\nconnection: close\r\n", 1))
        self._transport.close()


async def listen(
    factory: Callable[[], asyncio.Protocol] = Upstream, context: ssl.SSLContext | None = None
) -> asyncio.Server:
    """Return a server on a free port of this machine."""
    return await asyncio.get_running_loop().create_server(factory, "127.0.0.1", 0, backlog=1024, ssl=context)


async def _main(certificate: str = "") -> None:
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server = await listen(ClosingUpstream, context)
    else:
        server = await listen()
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))

"""A provider on a bare socket that breaks its replies off: the name of the model that is asked says where, and how the connection ends.

What it would say is that of the simulator of its dialect, in the provider's own words. The framing and the end of the connection are its
own: `m-cut-17-3` ends after seventeen events as the fourth of `ENDINGS` says.
"""

from __future__ import annotations

import re
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from bardo.simulators import Incoming, Script, ToolCall, Turn
from bardo.simulators.delivery import Head, Send
from bardo.simulators.exchange import read_incoming
from support.any_model import Simulator

ENDINGS = ("chunks end", "no last chunk", "closed", "reset", "error event", "half an event")
"""How a reply breaks off: its chunks end as those of a whole one, they do not, the connection is the frame and is closed, it is reset, the
provider tells an error, or an event stops in its middle and the chunks end."""
CALLS: dict[str, dict[str, object]] = {
    "first": {"path": "/etc/hosts", "lines": [1, 2]},
    "second": {"path": "/tmp/x", "force": True},
}
SCRIPT = Script(
    turns=(
        Turn(
            reasoning="Both files matter here, the first more.",
            text="I read one and remove the other.",
            tool_calls=tuple(ToolCall(name, arguments) for name, arguments in CALLS.items()),
        ),
    )
)
_NAME = re.compile(r"cut-(\d+)-(\w+)")
_RESET = struct.pack("ii", 1, 0)


class CutUpstream:
    """The provider; `address` is its base URL while it runs."""

    def __init__(self, preset: str) -> None:
        self._simulator = Simulator(preset, script=SCRIPT, delta_size=12)
        self.preset = self._simulator.provider.catalog_name
        self.address = ""
        self.sent: list[bytes] = []
        """The events of the last reply that were sent whole."""

    def frames(self, incoming: Incoming) -> tuple[Head, Sequence[bytes]]:
        """Return the head and the events of the whole reply to a request."""
        head, *rest = self._simulator.actions(incoming)
        assert isinstance(head, Head)
        return head, [one.data for one in rest if isinstance(one, Send)]

    @contextmanager
    def running(self) -> Iterator[CutUpstream]:
        """Serve until the block ends."""
        upstream = self

        class Handler(socketserver.StreamRequestHandler):
            disable_nagle_algorithm = True

            def handle(self) -> None:
                # The gateway may leave at any time, also by a reset.
                with suppress(ConnectionError):
                    while (incoming := _read(self.rfile)) is not None and upstream._answer(self.request, incoming):
                        pass

        with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
            server.daemon_threads = True
            server.request_queue_size = 64
            thread = threading.Thread(target=lambda: server.serve_forever(0.02), daemon=True)
            thread.start()
            self.address = f"http://127.0.0.1:{server.server_address[1]}{self._simulator.provider.base_path}"
            yield self
            server.shutdown()
            thread.join()

    def _answer(self, connection: socket.socket, incoming: Incoming) -> bool:
        """Send the reply, and return whether the connection may be asked again."""
        head, frames = self.frames(incoming)
        self.sent = [*frames]
        found = _NAME.search(f"{incoming.path} {incoming.fields.get('model')}")
        if found is None:
            connection.sendall(_head(head, f"content-length: {sum(map(len, frames))}") + b"".join(frames))
            return True
        place, ending = int(found[1]), ENDINGS[int(found[2])]
        if head.length is not None:
            return self._cut_whole(connection, head, b"".join(frames), place, ending)
        sent = self.sent = [*frames[:place]]
        if ending == "error event":
            sent = [*sent, *self._simulator.provider.error_forms().events()]
        if ending == "half an event":
            sent = [*sent, *(one[: len(one) // 2] for one in frames[place : place + 1])]
        is_chunked = ending != "closed"
        connection.sendall(_head(head, "transfer-encoding: chunked" if is_chunked else "connection: close"))
        for frame in sent:
            connection.sendall(b"%x\r\n%b\r\n" % (len(frame), frame) if is_chunked else frame)
        if ending in ("chunks end", "error event", "half an event"):
            connection.sendall(b"0\r\n\r\n")
            return True
        return _leave(connection, reset=ending == "reset")

    def _cut_whole(self, connection: socket.socket, head: Head, body: bytes, place: int, ending: str) -> bool:
        """Send so many sixteenths of a whole body."""
        sent = body[: len(body) * place // 16]
        match ending:
            case "chunks end" | "half an event":
                connection.sendall(_head(head, "transfer-encoding: chunked") + b"%x\r\n%b\r\n" % (len(sent), sent))
                connection.sendall(b"0\r\n\r\n")
                return True
            case "no last chunk":
                connection.sendall(_head(head, "transfer-encoding: chunked") + b"%x\r\n%b\r\n" % (len(sent), sent))
            case "closed":
                connection.sendall(_head(head, "connection: close") + sent)
            case _:
                connection.sendall(_head(head, f"content-length: {len(body)}") + sent)
        return _leave(connection, reset=ending == "reset")


def _read(stream: Any) -> Incoming | None:
    """Read one request, or None at the end of the connection."""
    first = stream.readline().decode("latin-1").split()
    if not first:
        return None
    headers: dict[str, str] = {}
    while line := stream.readline().decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = stream.read(int(headers.get("content-length", 0)))
    return read_incoming(first[0], first[1], headers, body)


def _head(head: Head, framing: str) -> bytes:
    lines = [f"HTTP/1.1 {head.status} OK", *(f"{name}: {value}" for name, value in head.headers), framing]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _leave(connection: socket.socket, *, reset: bool) -> bool:
    if reset:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    connection.close()
    return False

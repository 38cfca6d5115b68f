"""A bare socket to a server: what a hostile or a broken client sends, and what comes back as bytes."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit

from support.patience import PATIENCE


@dataclass(frozen=True)
class RawReply:
    """One reply as it came; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class RawClient:
    """One connection. Leaving the block closes it."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self.host = f"{parts.hostname}:{parts.port}"
        self.socket = socket.create_connection((str(parts.hostname), int(parts.port or 0)), timeout=PATIENCE)
        self._read = b""

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_as_much_as_is_taken(self, piece: bytes, pieces: int) -> int:
        """Send `piece` again and again until the server resets the connection. Return how many bytes it took."""
        sent = 0
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(pieces):
                self.socket.sendall(piece)
                sent += len(piece)
        return sent

    def reply(self, *, head_only: bool = False) -> RawReply:
        """Read one reply with its whole body."""
        head = self._until(b"\r\n\r\n").decode("latin-1")
        first, *lines = head.split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
        if head_only:
            body = b""
        elif "content-length" in headers:
            body = self._exactly(int(headers["content-length"]))
        elif headers.get("transfer-encoding") == "chunked":
            body = b"".join(iter(self._chunk, b""))
        else:
            body = self.rest()
        return RawReply(int(first.split()[1]), headers, body)

    def unread(self, data: bytes) -> None:
        """Put back what was read of the socket itself."""
        self._read = data + self._read

    def rest(self) -> bytes:
        """Read what comes to the end of the connection, which a server may also reset."""
        with contextlib.suppress(ConnectionResetError):
            while piece := self.socket.recv(1 << 16):
                self._read += piece
        found, self._read = self._read, b""
        return found

    def is_closed(self) -> bool:
        """Wait for the end of the connection; nothing may come before it."""
        return self.rest() == b""

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _chunk(self) -> bytes:
        size = int(self._until(b"\r\n"), 16)
        return self._exactly(size + 2)[:size]

    def _until(self, end: bytes) -> bytes:
        while end not in self._read:
            self._more()
        found, _, self._read = self._read.partition(end)
        return found

    def _exactly(self, size: int) -> bytes:
        while len(self._read) < size:
            self._more()
        found, self._read = self._read[:size], self._read[size:]
        return found

    def _more(self) -> None:
        piece = self.socket.recv(1 << 16)
        assert piece, f"the server closed the connection after {self._read!r}"
        self._read += piece


def head(host: str, path: str = "/v1/chat/completions", method: str = "POST", **headers: str) -> bytes:
    """Return the head of a request; underscores in the names of headers stand for hyphens."""
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def post(host: str, path: str, body: bytes, **headers: str) -> bytes:
    """Return a whole request with a JSON body."""
    return head(host, path, content_type="application/json", content_length=str(len(body)), **headers) + body

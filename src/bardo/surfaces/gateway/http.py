"""ASGI in small pieces: reading a body within its limit, and sending whole or streamed answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from functools import lru_cache
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs

from bardo.adapters.chance import CHANCE
from bardo.server.reply import FIRST_HEADERS
from bardo.values.errors import TooLarge

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = Iterable[tuple[str, str]]


class ClientDisconnected(Exception):
    """The client left; nobody is there to be told."""


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """Return the request's body. Raises TooLarge past `limit` bytes, ClientDisconnected where the client left.

    Nothing is read of a body that announces more than `limit` bytes, and no more than that of any other.
    """
    declared = headers_of(scope).get(b"content-length", b"")
    if declared.isdigit() and int(declared) > limit:
        raise too_large(limit)
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        body: bytes = message.get("body", b"")
        if len(body) > limit:
            raise too_large(limit)
        return body
    # One buffer that grows: pieces that are joined at the end would be in memory twice.
    buffer = BytesIO()
    while True:
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        if buffer.write(message.get("body", b"")) and buffer.tell() > limit:
            raise too_large(limit)
        if not message.get("more_body"):
            return buffer.getvalue()
        message = await receive()


def too_large(limit: int) -> TooLarge:
    """Return the error for a body of more than `limit` bytes."""
    return TooLarge(f"the body is over {limit} bytes", hint="send less, or raise gateway.max_body_bytes in bardo.toml")


def query_of(scope: Scope) -> dict[str, str]:
    """Return the parameters of a request's address; of one that stands twice the last."""
    found = parse_qs(str(scope.get("query_string", b""), "latin-1"))
    return {name: values[-1] for name, values in found.items()}


def header(scope: Scope, name: bytes) -> str:
    """Return a request header by its lower-case name, empty where it is absent."""
    value = headers_of(scope).get(name)
    return "" if value is None else str(value, "latin-1")


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """Return the headers of a request by their names, the first of each: made once for a request."""
    found: dict[bytes, bytes] | None = scope.get(FIRST_HEADERS)
    if found is None:
        found = scope[FIRST_HEADERS] = dict(reversed(scope["headers"]))
    return found


@lru_cache(maxsize=256)
def _header_name(name: str) -> bytes:
    return name.lower().encode("latin-1")


def encode_headers(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return headers as ASGI wants them."""
    return [(_header_name(name), value.encode("latin-1", "replace")) for name, value in headers]


def own_headers(headers: Sequence[tuple[str, str]], *first: tuple[str, str]) -> list[tuple[str, str]]:
    """Return the headers of an answer, those of its content `first`.

    With the request's id, made where there is none, by the names that OpenAI's and Anthropic's libraries read.
    """
    own = ""
    for name, value in headers:
        if _header_name(name) == b"x-bardo-request-id":
            own = value
            break
    own = own or f"req_{CHANCE.getrandbits(96):024x}"
    return [*first, *headers, ("x-request-id", own), ("request-id", own)]


async def send_piece(send: Send, piece: bytes, *, more: bool = True) -> None:
    """Send a piece of a streamed answer."""
    await send({"type": "http.response.body", "body": piece, "more_body": more})

"""Ask a server, and keep what it sent as it came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bardo.adapters.net.client import Call, Deadlines, Transport
from bardo.values.errors import ProviderError

MOST_BYTES = 4 * 1024 * 1024
"""Of one reply. The requested answers are short, and a stream without an end is looked at as far as that."""
_DEADLINES = Deadlines(connect=10.0, first_byte=300.0, idle=120.0, total=600.0)
_SHOWN = 400


class Frame(msgspec.Struct, frozen=True):
    """One server-sent event: its name, and its data as text."""

    name: str
    data: str

    @property
    def json(self) -> Any:
        """The data as a JSON value, or None if it is none."""
        return decoded(self.data)


class ReceivedReply(msgspec.Struct, frozen=True, kw_only=True):
    """One reply. `cut`: its end did not come, as the connection broke, or as it is `oversized`. `frames` are its server-sent events."""

    status: int
    content_type: str
    body: bytes
    cut: bool = False
    oversized: bool = False

    @property
    def json(self) -> Any:
        """The body as a JSON value, or None if it is none."""
        return decoded(self.body)

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The events of the body."""
        return tuple(_frames(self.body))

    @property
    def shown(self) -> str:
        """The beginning of the body, for a report."""
        text = self.body[: 4 * _SHOWN].decode("utf-8", "replace")
        return f"{self.status} {text[:_SHOWN]}{'…' if len(text) > _SHOWN else ''}"


class CheckedServer:
    """A server that speaks one dialect. `headers` prove who asks. `asked` counts the requests."""

    def __init__(self, transport: Transport, base_url: str, headers: Mapping[str, str]) -> None:
        self._transport = transport
        self._base = base_url.rstrip("/")
        self.headers = dict(headers)
        self.asked = 0

    async def ask(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> ReceivedReply:
        """Send a request, and return all that came back. Raises Unreachable and other ProviderError where nothing did."""
        self.asked += 1
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
        sent = {**(self.headers if headers is None else headers), "content-type": "application/json"}
        reply = await self._transport.send(
            Call(url=f"{self._base}/{path}", headers=sent, body=raw, provider="server"), _DEADLINES
        )
        held, cut, oversized = bytearray(), False, False
        try:
            async for piece in reply.chunks():
                held += piece
                if len(held) > MOST_BYTES:
                    cut = oversized = True
                    break
        except ProviderError:
            cut = True
        finally:
            await reply.close()
        kind = reply.headers.get("content-type", "")
        return ReceivedReply(status=reply.status, content_type=kind, body=bytes(held), cut=cut, oversized=oversized)


def decoded(text: bytes | str) -> Any:
    """Return a JSON value, or None if there is none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _frames(body: bytes) -> list[Frame]:
    """Return the events of a body, by the rules of the HTML standard (server-sent events)."""
    text = body.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    frames = []
    for block in text.split("\n\n"):
        name, data = "", []
        for line in block.split("\n"):
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                name = value
            elif field == "data":
                data.append(value)
        if data:
            frames.append(Frame(name, "\n".join(data)))
    return frames

"""What a running gateway tells: its events, which are taken up again where the connection broke, its health, and a key's usage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from bardo.adapters.net.calls import Reply
from bardo.adapters.net.client import Call, Deadlines, HttpTransport
from bardo.services.facts.health_report import HealthReport
from bardo.streams.frames import OversizedFrame
from bardo.streams.sse import SseDecoder
from bardo.surfaces.cli.running_gateway import gateway_error, gateway_key, not_running
from bardo.values.errors import BardoError, MalformedReply, Unreachable
from bardo.values.inference_events import PublishedEvent

_EVENTS = "/v1/bardo/events"
_HEALTH = "/v1/bardo/health"
_OPTION = "--gateway"
_USAGE = "/v1/bardo/usage"
_ASKING = Deadlines(connect=3.0, first_byte=10.0, idle=10.0)
# A gateway that has nothing to tell says every 15 seconds that it is there.
_LISTENING = Deadlines(connect=3.0, first_byte=10.0, idle=45.0)
_MOST_BYTES = 8 * 1024 * 1024
_WAITS = (0.2, 0.5, 1.0, 2.0, 5.0)

FeedItem = PublishedEvent | str
"""An event, or what became of the connection: `connected`, `missed`, or why there is none."""


class GatewayFeed:
    """One gateway, asked with one key."""

    def __init__(self, transport: HttpTransport, address: str, key: str = "") -> None:
        self._transport = transport
        self._address = address.rstrip("/").removesuffix("/v1")
        key = gateway_key(key)
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._last_id = ""

    @property
    def address(self) -> str:
        """Where the gateway is."""
        return self._address

    async def health(self) -> HealthReport:
        """Return the health of the gateway's providers. Raises BardoError."""
        found = await self._json(_HEALTH)
        try:
            return msgspec.convert(found, HealthReport)
        except msgspec.ValidationError as problem:
            raise MalformedReply(
                f"{self._address} reports no health that this version reads", hint=str(problem)
            ) from problem

    async def usage(self) -> dict[str, Any] | None:
        """Return what the key has used, None where the gateway counts nothing for it. Raises BardoError."""
        if not self._headers:
            return None
        found = await self._json(_USAGE, missing_ok=True)
        return found if isinstance(found, dict) else None

    async def items(self) -> AsyncIterator[FeedItem]:
        """Yield what the gateway tells, for ever: a connection that breaks is made again, from where it stopped."""
        tries = 0
        while True:
            try:
                async for item in self._listen():
                    tries = 0
                    yield item
                why = "the gateway ended the connection"
            except BardoError as problem:
                why = problem.message
            except OversizedFrame:
                why = "an event is too long"
            yield f"reconnecting: {why}"
            await asyncio.sleep(_WAITS[min(tries, len(_WAITS) - 1)])
            tries += 1

    async def _listen(self) -> AsyncIterator[FeedItem]:
        reply = await self._get(_EVENTS, _LISTENING, accept="text/event-stream", after=self._last_id)
        decoder = SseDecoder()
        try:
            yield "connected"
            async for piece in reply.chunks():
                for frame in decoder.feed(piece):
                    self._last_id = _id_of(frame.raw) or self._last_id
                    if frame.event == "missed":
                        yield "missed"
                    elif frame.data is not None and (event := _event_of(frame.data)) is not None:
                        yield event
        finally:
            await reply.close()

    async def _json(self, path: str, *, missing_ok: bool = False) -> Any:
        reply = await self._get(path, _ASKING, missing_ok=missing_ok)
        try:
            body = await reply.read(_MOST_BYTES)
        finally:
            await reply.close()
        try:
            return None if reply.status != 200 else msgspec.json.decode(body)
        except msgspec.DecodeError as problem:
            raise gateway_error(self._address, reply.status, _OPTION) from problem

    async def _get(
        self,
        path: str,
        deadlines: Deadlines,
        *,
        accept: str = "application/json",
        missing_ok: bool = False,
        after: str = "",
    ) -> Reply:
        """Send a request. Raises BardoError where the answer is no success."""
        fields = {**self._headers, "accept": accept, **({"last-event-id": after} if after else {})}
        call = Call(method="GET", url=self._address + path, headers=fields, provider="the gateway")
        try:
            reply = await self._transport.send(call, deadlines)
        except Unreachable as problem:
            raise not_running(self._address, problem, _OPTION) from problem
        if reply.status == 200 or (missing_ok and reply.status == 404):
            return reply
        await reply.close()
        raise gateway_error(self._address, reply.status, _OPTION)


def _id_of(raw: bytes) -> str:
    line = next((line for line in raw.split(b"\n") if line.startswith(b"id:")), b"")
    return line[3:].strip().decode("latin-1")


def _event_of(data: bytes) -> PublishedEvent | None:
    """Return an event; None for one that a newer gateway tells and this version does not know."""
    try:
        return msgspec.json.decode(data, type=PublishedEvent)
    except msgspec.DecodeError:
        return None

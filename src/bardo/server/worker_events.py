"""What happens in the other workers of a gateway, for those who look on in this one.

Each worker listens at a socket in a folder that all of them share. While somebody looks on in a worker, it is connected to the sockets of
the others, and each of them sends what happens in it: nothing is sent without a listener. Sending never waits for a reader, who is told
when events were lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from bardo.services.facts.event_feed import AsyncEventStream, EventBus
from bardo.values.inference_events import CallFinished, CallStarted, PublishedEvent

FOLDER_VARIABLE = "BARDO_EVENTS_FOLDER"
"""The variable that names the folder of the sockets to the workers of `bardo serve`."""
LONGEST_PATH = 100
"""Bytes of a socket's path: systems refuse longer ones."""
MOST_WAITING = 4_000
"""Events that wait for one other worker."""
LOOK_SECONDS = 1.0
"""How often a worker looks for others that have begun."""
# Events are sent together, so that many streams cost few writes.
_SECONDS_BETWEEN_WRITES = 0.05
_MOST_LINE = 16 * 1024 * 1024
_GREETING = b"bardo\n"
_MISSED = b"missed"
_log = logging.getLogger("bardo.gateway")
_decode = msgspec.json.Decoder(PublishedEvent).decode
_encode = msgspec.json.encode


class WorkerEvents:
    """Sends the events of this worker to others, and gives those of others to whoever looks on at `bus`. `folder` is theirs alone."""

    def __init__(self, bus: EventBus, folder: Path, name: str = "") -> None:
        self._bus = bus
        self._folder = folder
        self._socket = folder / f"{name or os.getpid()}.sock"
        self._server: asyncio.Server | None = None
        self._looking: asyncio.Task[None] | None = None
        self._sending: set[asyncio.Task[None]] = set()
        self._connected = asyncio.Event()

    async def start(self) -> None:
        """Listen for other workers, and look for them while somebody looks on. A system that does not allow it is reported in the log."""
        try:
            self._server = await asyncio.start_unix_server(self._send, self._socket)
        except OSError as problem:
            _log.warning("this worker does not tell the others what happens in it: %s", problem)
            return
        self._bus.watch(self)

    async def stop(self) -> None:
        """End all connections."""
        self._bus.watch(None)
        if self._server is None:
            return
        self._server.close()
        self.sinks_changed(False)
        for task in tuple(self._sending):
            task.cancel()
        await asyncio.gather(*self._sending, *([self._looking] if self._looking else []), return_exceptions=True)
        with contextlib.suppress(OSError):
            self._socket.unlink()

    def sinks_changed(self, somebody: bool) -> None:
        """Begin or end to look for other workers."""
        if somebody and (self._looking is None or self._looking.done() or self._looking.cancelling()):
            self._looking = asyncio.get_running_loop().create_task(self._look())
        elif not somebody and self._looking is not None:
            self._looking.cancel()

    async def connected(self) -> None:
        """Wait until each other worker tells what happens in it, but not long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await self._connected.wait()

    async def _look(self) -> None:
        """Keep a connection to each other worker, until this task is cancelled."""
        connected: dict[Path, asyncio.Task[None]] = {}
        try:
            while True:
                greeted = []
                for place in await asyncio.to_thread(self._others):
                    if place not in connected or connected[place].done():
                        greeting = asyncio.get_running_loop().create_future()
                        connected[place] = asyncio.create_task(self._receive(place, greeting))
                        greeted.append(greeting)
                await asyncio.gather(*greeted)
                self._connected.set()
                connected = {place: task for place, task in connected.items() if not task.done()}
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._connected.clear()
            for task in connected.values():
                task.cancel()
            await asyncio.gather(*connected.values(), return_exceptions=True)

    def _others(self) -> list[Path]:
        return sorted(place for place in self._folder.glob("*.sock") if place != self._socket)

    async def _receive(self, place: Path, greeting: asyncio.Future[None]) -> None:
        """Give the events of one other worker to those who look on, until it ends: its calls have ended then, too.

        `greeting` is done when the worker tells them, or does not answer.
        """
        running: dict[str, PublishedEvent] = {}
        try:
            reader, writer = await asyncio.open_unix_connection(place, limit=_MOST_LINE)
            with contextlib.closing(writer):
                await reader.readline()
                greeting.set_result(None)
                while line := await reader.readline():
                    self._take(line.rstrip(), running)
        except (ConnectionError, FileNotFoundError) as problem:
            # The worker has ended and could not remove its socket, or does not listen yet: it is tried again.
            _log.debug("no events come from the worker at %s: %s", place.name, problem)
        except (OSError, ValueError, msgspec.MsgspecError) as problem:
            _log.warning("the events of another worker could not be read: %s", problem)
        finally:
            if not greeting.done():
                greeting.set_result(None)
        for event in lost_calls(running.values(), time.time()):
            self._bus.deliver(event)

    def _take(self, line: bytes, running: dict[str, PublishedEvent]) -> None:
        if line == _MISSED:
            self._bus.miss()
            return
        event = _decode(line)
        if isinstance(event.event, CallStarted):
            running[event.request_id] = event
        elif isinstance(event.event, CallFinished):
            running.pop(event.request_id, None)
        self._bus.deliver(event)

    async def _send(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send what happens here to another worker, until it leaves."""
        task = asyncio.current_task()
        assert task is not None
        self._sending.add(task)
        stream = self._bus.subscribe(MOST_WAITING)
        writer.write(_GREETING)
        left = asyncio.create_task(_until_end(reader, stream))
        try:
            async for first in stream:
                events = (first, *stream.take())
                dropped = stream.take_dropped()
                lines = [_encode(event) for event in events]
                writer.write(b"\n".join(([_MISSED, *lines] if dropped else lines) + [b""]))
                await writer.drain()
                await asyncio.sleep(_SECONDS_BETWEEN_WRITES)
        except OSError:
            # The other worker has ended.
            return
        finally:
            self._sending.discard(task)
            stream.close()
            left.cancel()
            writer.close()


def lost_calls(running: Iterable[PublishedEvent], now: float) -> Iterable[PublishedEvent]:
    """Return the ends of calls whose worker has ended without one: what they came to is not known."""
    for begun in running:
        started = begun.event
        assert isinstance(started, CallStarted)
        finished = CallFinished(
            subsystem=started.subsystem,
            provider=started.provider,
            model=started.model,
            model_asked=started.model_asked,
            client_dialect=started.client_dialect,
            outcome="broken",
            error="WorkerEnded",
            seconds=max(0.0, now - begun.at),
            attempts=1,
            input_tokens=None,
            output_tokens=None,
            reasoning_tokens=None,
            cost_usd=None,
            verdict=None,
            degraded=(),
        )
        yield PublishedEvent(request_id=begun.request_id, event=finished, key_id=begun.key_id, at=now)


async def _until_end(reader: asyncio.StreamReader, stream: AsyncEventStream) -> None:
    """Close a stream when whoever reads it has left; nobody sends anything here."""
    with contextlib.suppress(OSError):
        await reader.read(1)
    stream.close()

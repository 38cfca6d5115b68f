"""`bardo top`: the calls, the health and the money of a running gateway, on a full screen that follows them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from bardo.adapters.config.settings import Settings, load_settings, log_path
from bardo.adapters.net.calls import Reply
from bardo.adapters.net.client import Call, Deadlines, HttpTransport
from bardo.adapters.stores.log import LogReader
from bardo.services.facts.health_report import HealthReport
from bardo.streams.frames import OversizedFrame
from bardo.streams.sse import SseDecoder
from bardo.surfaces.cli.options import Config, gateway_option
from bardo.surfaces.cli.running_gateway import address_of, checked_address, gateway_error, gateway_key, not_running
from bardo.surfaces.render.console import console, full_screen_console, show_text
from bardo.surfaces.render.top_screen import TopView, screen_of
from bardo.values.errors import BardoError, MalformedReply, Unreachable
from bardo.values.inference_events import PublishedEvent
from bardo.values.usage import usd

if TYPE_CHECKING:
    from rich.live import Live

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
    """One gateway, asked with one key.

    It gives the gateway's events, which are taken up again where the connection broke, its health, and a key's usage.
    """

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
        """Return what the key has used, or None if the gateway counts nothing for it. Raises BardoError."""
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
                    line = next((line for line in frame.raw.split(b"\n") if line.startswith(b"id:")), b"")
                    self._last_id = line[3:].strip().decode("latin-1") or self._last_id
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


def _event_of(data: bytes) -> PublishedEvent | None:
    """Return an event; None for one that a newer gateway tells and this version does not know."""
    try:
        return msgspec.json.decode(data, type=PublishedEvent)
    except msgspec.DecodeError:
        return None


_NAMES = {
    b"\x1b[A": "up", b"\x1bOA": "up", b"\x1b[B": "down", b"\x1bOB": "down", b"\x1b[5~": "page up", b"\x1b[6~": "page down",
    b"\r": "enter", b"\n": "enter", b"\x7f": "backspace", b"\x08": "backspace", b"\x1b": "escape",
}  # fmt: skip
_MOST_KEY_BYTES = 1024


def keys_of(data: bytes) -> Iterator[str]:
    """Yield the names of keys, or the letters that they write; sequences that are not known are passed over."""
    while data:
        name = next((one for one in sorted(_NAMES, key=len, reverse=True) if data.startswith(one)), b"")
        if data.startswith(b"\x1b") and len(name) < 2 and len(data) > 1:
            data = data[_sequence_length(data) :]
        elif name:
            yield _NAMES[name]
            data = data[len(name) :]
        else:
            first = data[0]
            size = 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
            letter = data[:size].decode("utf-8", "replace")
            if letter.isprintable():
                yield letter
            data = data[size:]


def _sequence_length(data: bytes) -> int:
    """Return the length of an escape sequence: to its final letter."""
    for place, byte in enumerate(data[2:], 2):
        if 0x40 <= byte <= 0x7E:
            return place + 1
    return len(data)


@contextmanager
def pressed_keys(take: Callable[[str], None]) -> Iterator[None]:
    """Pass each key press to `take`, in the running event loop; the terminal's mode is restored when the block ends.

    Without a terminal on stdin that can be read so, no keys are read.
    """
    try:
        import termios
        import tty

        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
    except (ImportError, OSError, ValueError):
        yield
        return
    except termios.error:
        yield
        return
    loop = asyncio.get_running_loop()

    def read() -> None:
        data = os.read(descriptor, _MOST_KEY_BYTES)
        if not data:
            loop.remove_reader(descriptor)
        for key in keys_of(data):
            take(key)

    tty.setcbreak(descriptor)
    loop.add_reader(descriptor, read)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


_DRAWN_EVERY = 0.25
_ASKED_EVERY = 5.0
_SNAPSHOT_SECONDS = 1.0
_SNAPSHOT_LINES = 40
_MOST_WAITING = 20_000
_MOST_SEEDED = 100
_PAGE = 10


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("top", epilog="Example: bardo top --gateway http://127.0.0.1:8484")(top)


def top(
    gateway: Annotated[
        str, gateway_option("The gateway; by default $BARDO_INFERENCE_URL, else the one of the configuration.")
    ] = "",
    key: Annotated[str, typer.Option("--key", metavar="KEY", help="A key of the gateway, or $BARDO_API_KEY.")] = "",
    once: Annotated[bool, typer.Option("--once", help="Listen for a second, print the state, and exit.")] = False,
    config: Config = None,
) -> None:
    """Watch the calls, the health and the cost of a gateway.

    Keys: q quits, p pauses, up and down select a call, Enter shows its details, r its thinking, / filters.
    """
    settings = load_settings(config)
    view = TopView(address=checked_address(gateway, "--gateway") if gateway else address_of(settings))
    spent = None if gateway else _load_log(view, settings)
    live = not once and sys.stdout.isatty()
    with suppress(KeyboardInterrupt):
        asyncio.run(_Top(view, settings, spent, key).run(live=live))


def _load_log(view: TopView, settings: Settings) -> float | None:
    """Seed the view from this machine's log, and return what was spent today; None without a log."""
    today = time.mktime((*time.localtime()[:3], 0, 0, 0, 0, 0, -1))
    try:
        with LogReader(log_path(settings), journals=True) as reader:
            view.calls.seed(reversed(reader.recent(_MOST_SEEDED)))
            groups = reader.costs((), since=today)
    except BardoError:
        return None
    view.today_estimated = any(group.sums.estimated_nanos for group in groups)
    return sum(usd(group.sums.cost_nanos) for group in groups)


class _Top:
    """One run of the command: what is read, what is drawn, and what keys do."""

    def __init__(self, view: TopView, settings: Settings, spent_before: float | None, key: str) -> None:
        self._view = view
        self._settings = settings
        self._spent_before = spent_before
        self._key = key
        self._waiting: deque[FeedItem] = deque(maxlen=_MOST_WAITING)
        self._due = asyncio.Event()
        self._ended = False

    async def run(self, *, live: bool) -> None:
        """Show the gateway until q or Ctrl-C, or once. Raises BardoError where it does not answer at the beginning."""
        transport = HttpTransport()
        feed = GatewayFeed(transport, self._view.address, self._key)
        tasks: list[asyncio.Task[None]] = []
        try:
            await self._ask(feed)
            tasks = [asyncio.create_task(self._listen(feed)), asyncio.create_task(self._ask_again(feed))]
            if live:
                await self._draw_until_ended()
            else:
                await asyncio.sleep(_SNAPSHOT_SECONDS)
                self._print()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await transport.close()

    async def _listen(self, feed: GatewayFeed) -> None:
        async for item in feed.items():
            if self._view.paused:
                self._waiting.append(item)
            else:
                self._take_item(item)

    def _take_item(self, item: FeedItem) -> None:
        if isinstance(item, PublishedEvent):
            self._view.calls.take(item)
        elif item == "missed":
            self._view.calls.miss()
        else:
            self._view.connection = item

    async def _ask_again(self, feed: GatewayFeed) -> None:
        """Ask for health and usage from time to time; the connection of the events says where the gateway is gone."""
        while True:
            await asyncio.sleep(_ASKED_EVERY)
            with suppress(BardoError):
                await self._ask(feed)

    async def _ask(self, feed: GatewayFeed) -> None:
        health: HealthReport = await feed.health()
        usage = await feed.usage()
        view = self._view
        view.health = health
        if usage is not None:
            today = usage["today"]
            view.today_usd, view.today_of = float(today["spent_usd"]), "today, by this key"
            view.reserved_usd = float(today.get("reserved_usd", 0.0))
            view.today_estimated = bool(today.get("estimated_usd"))
        elif self._spent_before is not None:
            view.today_usd, view.today_of = self._spent_before + view.calls.spent_usd, "today"

    async def _draw_until_ended(self) -> None:
        from rich.live import Live

        live = Live(
            console=full_screen_console(), screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )
        with _watch_size(self._due.set), pressed_keys(self._press), live:
            while not self._ended:
                self._draw(live)
                self._due.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_DRAWN_EVERY):
                        await self._due.wait()

    def _draw(self, live: Live) -> None:
        from rich.console import Group

        size = live.console.size
        live.update(Group(*screen_of(self._view, time.time(), size.width, size.height)), refresh=True)

    def _print(self) -> None:
        """Print one picture of the gateway, without the keys that nobody can press."""
        target = console()
        width = min(target.width, 120)
        lines = screen_of(self._view, time.time(), width, _SNAPSHOT_LINES)[:-1]
        show_text("\n".join(line.plain.rstrip() for line in lines).rstrip())

    def _press(self, key: str) -> None:
        self._due.set()
        if self._view.typing:
            self._edit_filter(key)
            return
        match key:
            case "q":
                self._ended = True
            case "p" | " ":
                self._pause()
            case "up" | "down" | "page up" | "page down":
                self._view.move((_PAGE if "page" in key else 1) * (-1 if "up" in key else 1))
            case "enter" | "r":
                pane = "reasoning" if key == "r" else "details"
                self._view.open(pane)
            case "/":
                self._view.typing = True
            case "escape":
                self._view.pane = self._view.wanted = ""
            case _:
                return

    def _edit_filter(self, key: str) -> None:
        """Handle a key while the filter is being edited."""
        view = self._view
        if key in ("enter", "escape"):
            view.typing = False
            view.wanted = view.wanted if key == "enter" else ""
        elif key == "backspace":
            view.wanted = view.wanted[:-1]
        elif len(key) == 1:
            view.wanted += key

    def _pause(self) -> None:
        """Stop to show what happens, or show what happened meanwhile."""
        self._view.paused = not self._view.paused
        while self._waiting and not self._view.paused:
            self._take_item(self._waiting.popleft())


@contextmanager
def _watch_size(changed: object) -> Iterator[None]:
    """Call `changed` when the terminal gets another size, until the block ends."""
    number = getattr(signal, "SIGWINCH", None)
    if number is None or not callable(changed):
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(number, changed)
    try:
        yield
    finally:
        loop.remove_signal_handler(number)

"""`bardo top`: the calls, the health and the money of a running gateway, on a full screen that follows them."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from bardo.adapters.config.settings import Settings, load_settings, log_path
from bardo.adapters.net.client import HttpTransport
from bardo.adapters.stores.log import LogReader
from bardo.services.facts.health_report import HealthReport
from bardo.surfaces.cli.options import Config, gateway_option
from bardo.surfaces.cli.running_gateway import address_of, checked_address
from bardo.surfaces.cli.top_feed import FeedItem, GatewayFeed
from bardo.surfaces.cli.top_keys import pressed_keys
from bardo.surfaces.render.console import console, full_screen_console, show_text
from bardo.surfaces.render.top_screen import TopView, screen_of
from bardo.values.cost import usd
from bardo.values.errors import BardoError
from bardo.values.inference_events import PublishedEvent

if TYPE_CHECKING:
    from rich.live import Live

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
    view.today_estimated = any(one.sums.estimated_nanos for one in groups)
    return sum(usd(one.sums.cost_nanos) for one in groups)


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
        transport = HttpTransport(self._settings.http.client)
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
                    await asyncio.wait_for(self._due.wait(), _DRAWN_EVERY)

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

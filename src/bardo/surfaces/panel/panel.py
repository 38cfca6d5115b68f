"""The panel of one gateway: its settings, its templates, and the log that its pages read, and how often signing in may fail."""

from __future__ import annotations

import asyncio
import ipaddress
import math
import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from bardo.adapters.config.settings import Settings, log_path
from bardo.adapters.stores.log.reader import LogReader
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.http import Scope, header
from bardo.surfaces.panel.live_board import LiveBoard
from bardo.surfaces.panel.markdown import TEXT_FILTERS
from bardo.surfaces.panel.pages import Download, Page, PanelRequest, Redirect, StaticFiles, make_environment
from bardo.surfaces.panel.sessions import Sessions
from bardo.values.errors import Unsupported

_MOST_ADDRESSES = 10_000
_NETWORK_BITS = 64
"""Whoever has one address of IPv6 has all of its network."""


SECRET_VARIABLE = "BARDO_PANEL_SECRET"
"""The variable that holds what the cookies of sessions are signed with; without it each start of a gateway has a secret of its own."""

Found = TypeVar("Found")


class Panel:
    """What views are given, which are `views`. `context` is that of the gateway: its services, its keys and its events."""

    def __init__(
        self,
        context: GatewayContext,
        settings: Settings,
        environment: Mapping[str, str] | None = None,
        *,
        views: Sequence[View],
    ) -> None:
        self.context = context
        self._views = views
        self.settings = settings
        self.environment: Mapping[str, str] = os.environ if environment is None else environment
        secret = self.environment.get(SECRET_VARIABLE, "").encode() or secrets.token_bytes(32)
        self.sessions = Sessions(secret, context.services.clock)
        self.sign_ins = SignInLimits(context.services.watch)
        self.static = StaticFiles()
        self.board = LiveBoard(context.services.events)
        self._templates = make_environment(self.static)
        self._templates.filters.update(TEXT_FILTERS)
        # Rendering takes processor time that calls need: one page at a time.
        self._rendering = asyncio.Semaphore(1)
        self._log: LogReader | None = None
        self._opening = threading.Lock()

    @property
    def keeps_content(self) -> bool:
        """Whether the operator logs content: without it no page shows any."""
        return self.settings.log.content

    async def read_log(self, read: Callable[[LogReader], Found]) -> Found:
        """Return what `read` finds in the log, in a thread. Raises LogProblem, and Unsupported where no log is kept."""
        if not self.settings.log.enabled:
            raise Unsupported("this gateway keeps no log", hint="set enabled = true under [log] in bardo.toml")
        return await asyncio.to_thread(self._read, read)

    async def render(self, page: Page, request: PanelRequest) -> bytes:
        """Return a page as HTML, made in a thread."""
        async with self._rendering:
            return await asyncio.to_thread(self._render, page, request)

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()

    def _render(self, page: Page, request: PanelRequest) -> bytes:
        values = {
            "title": page.title,
            "viewer": request.viewer,
            "csrf": request.csrf,
            "path": request.path,
            "asks_for_keys": self.context.accounts is not None,
            "keeps_content": self.keeps_content,
            "views": [one for one in self._views if one.title and (request.viewer.operator or not one.operator_only)],
            **page.values,
        }
        return self._templates.get_template(page.template).render(values).encode("utf-8", "replace")

    def _read(self, read: Callable[[LogReader], Found]) -> Found:
        with self._opening:
            if self._log is None:
                self._log = LogReader(log_path(self.settings, self.environment))
        return read(self._log)


Show: TypeAlias = Callable[[Panel, PanelRequest], Awaitable[Page | Redirect | Download]]
"""Makes a page. It may raise BardoError, which is shown as a page too."""


class View(NamedTuple):
    """A view: its path below `/panel`, where `{name}` stands for a part of a path, its title in the navigation, and its function.

    A view without a title is not in the navigation. `operator_only`: keys that are no operator's get an error.
    """

    path: str
    title: str
    show: Show
    methods: tuple[str, ...] = ("GET",)
    operator_only: bool = False


class Allowance(NamedTuple):
    """So many tries at once, and one more after each `seconds`."""

    tries: int
    seconds: float


OF_ONE = Allowance(5, 10.0)
OF_FAILED = Allowance(50, 1.0)
"""Of all addresses that have failed before, together."""
OF_NEW = Allowance(200, 0.1)
"""Of all addresses that have not."""


class _Bucket:
    """The tries that are left of an allowance."""

    def __init__(self, allowance: Allowance, now: float) -> None:
        self._allowance = allowance
        self._left = float(allowance.tries)
        self._at = now

    def wait(self, now: float) -> float:
        """Return after how many seconds there is a try left, 0 where there is one."""
        most, seconds = self._allowance
        self._left = min(most, self._left + max(0.0, now - self._at) / seconds)
        self._at = now
        return max(0.0, (1 - self._left) * seconds)

    def is_full(self, now: float) -> bool:
        """Whether nothing of it is used."""
        self.wait(now)
        return self._left >= self._allowance.tries

    def take(self, tries: int = 1) -> None:
        """Use tries, or give them back."""
        self._left -= tries


class SignInLimits:
    """Counts the tries of one process, so that nobody finds a key by trying. `watch` gives seconds that never jump.

    Tries are counted at each address and at all together. A try that turns out right costs nothing, and an address that has not failed yet
    is not held up by those that have.
    """

    def __init__(self, watch: Callable[[], float]) -> None:
        self._watch = watch
        self._failed = _Bucket(OF_FAILED, watch())
        self._new = _Bucket(OF_NEW, watch())
        self._addresses: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, scope: Scope) -> SignInTry:
        """Take a try before the key is looked at, since others may come meanwhile."""
        now, address = self._watch(), _address_of(scope)
        own = self._addresses.get(address)
        if own is None:
            own = self._addresses[address] = _Bucket(OF_ONE, now)
            if len(self._addresses) > _MOST_ADDRESSES:
                self._addresses.popitem(last=False)
        self._addresses.move_to_end(address)
        together = self._new if own.is_full(now) else self._failed
        wait = max(own.wait(now), together.wait(now))
        buckets = () if wait else (own, together)
        for bucket in buckets:
            bucket.take()
        return SignInTry(wait=math.ceil(wait), buckets=buckets)


class SignInTry(NamedTuple):
    """A try. `wait`: it may not be made, and in so many seconds one may."""

    wait: int
    buckets: tuple[_Bucket, ...]

    def was_right(self) -> None:
        """Give the try back."""
        for bucket in self.buckets:
            bucket.take(-1)


def _address_of(scope: Scope) -> str:
    """Return the address that a request came from: where a proxy of this machine sent it, what that one says of it."""
    client = scope.get("client")
    found = _parsed(str(client[0])) if client else None
    if found is not None and found.is_loopback:
        # The last address is the one that the proxy itself has seen.
        found = _parsed(header(scope, b"x-forwarded-for").rpartition(",")[2].strip()) or found
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((found, _NETWORK_BITS), strict=False))
    return str(found)


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found

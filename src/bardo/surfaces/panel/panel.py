"""The panel of one gateway: its settings, its templates, and the log that its pages read."""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from bardo.adapters.config.settings import Settings, log_path
from bardo.adapters.stores.log.reader import LogReader
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.panel.live_board import LiveBoard
from bardo.surfaces.panel.markdown import TEXT_FILTERS
from bardo.surfaces.panel.pages import Download, Page, PanelRequest, Redirect, make_environment
from bardo.surfaces.panel.sessions import Sessions
from bardo.surfaces.panel.sign_in_limits import SignInLimits
from bardo.surfaces.panel.static_files import StaticFiles
from bardo.values.errors import Unsupported

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

"""The panel's place in the gateway: loaded with the first request to it, so that whoever never looks at it does not pay for it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib import import_module
from typing import Protocol

from bardo.adapters.config.settings import Settings
from bardo.surfaces.gateway.answer import Answer
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.http import Receive, Scope
from bardo.surfaces.gateway.routes import Route
from bardo.values.errors import BardoError, UnknownRoute

PANEL = "bardo.surfaces.panel.serving"
"""The module whose `open_panel` makes the panel. It imports the gateway, and is loaded by its name alone."""


class PanelServer(Protocol):
    """The panel, as the gateway knows it."""

    async def serve(self, scope: Scope, receive: Receive, answer: Answer) -> None: ...

    async def send_problem(self, scope: Scope, answer: Answer, problem: BardoError) -> None: ...

    def end_streams(self) -> None: ...

    def close(self) -> None: ...


class PanelLoader:
    """Loads the panel when it is first asked for."""

    def __init__(self, settings: Settings, environment: Mapping[str, str] | None = None) -> None:
        self._settings = settings
        self._environment = environment
        self._panel: PanelServer | None = None
        self._loading = asyncio.Lock()

    async def load(self, context: GatewayContext) -> PanelServer:
        """Return the panel of a gateway."""
        async with self._loading:
            if self._panel is None:
                # Its templates take a tenth of a second to load, for which no call is to wait.
                self._panel = await asyncio.to_thread(self._open, context)
        return self._panel

    def end_streams(self) -> None:
        """End what goes on without an end of its own, because the gateway stops."""
        if self._panel is not None:
            self._panel.end_streams()

    def close(self) -> None:
        """Close what the panel has opened."""
        if self._panel is not None:
            self._panel.close()

    def _open(self, context: GatewayContext) -> PanelServer:
        made: PanelServer = import_module(PANEL).open_panel(context, self._settings, self._environment)
        return made


async def show_panel(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer a request to the panel. Raises UnknownRoute where it is turned off."""
    if context.panel is None:
        raise UnknownRoute("this gateway has no panel", hint="set panel = true under [gateway] in bardo.toml")
    await (await context.panel.load(context)).serve(scope, receive, answer)


async def show_panel_problem(
    loader: PanelLoader, context: GatewayContext, scope: Scope, answer: Answer, problem: BardoError
) -> None:
    """Answer a request for a page of the panel that was refused before the panel got it."""
    await (await loader.load(context)).send_problem(scope, answer, problem)

"""The first page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bardo.surfaces.panel.pages import Page, PanelRequest

if TYPE_CHECKING:
    from bardo.surfaces.panel.panel import Panel


async def show(panel: Panel, request: PanelRequest) -> Page:
    """Return the page."""
    providers = [provider.id for provider in panel.context.runner.directory.providers]
    return Page("overview.html", "Live", {"providers": providers})

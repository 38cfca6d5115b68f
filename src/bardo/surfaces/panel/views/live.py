"""Live requests: what goes on now, with thinking as it comes; and the thinking of one call once it has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bardo.surfaces.panel.live_board import MOST_TEXT
from bardo.surfaces.panel.pages import Page, PanelRequest, Viewer
from bardo.values.errors import NotStored

if TYPE_CHECKING:
    from bardo.surfaces.panel.panel import Panel


async def show(panel: Panel, request: PanelRequest) -> Page:
    """Return the page, which a script fills."""
    providers = [provider.id for provider in panel.context.runner.directory.providers]
    return Page("live.html", "Live", {"providers": providers, "workers": panel.settings.gateway.workers})


def show_thinking(panel: Panel, viewer: Viewer, request_id: str) -> Page:
    """Return the thinking of a call that is on the page, as a piece of HTML. Raises NotStored."""
    call = panel.board.find(request_id, viewer.key_id)
    if call is None:
        raise NotStored("this call is no longer among the live ones", hint="look for it among the requests")
    values = {"thinking": "".join(call.text), "cut": max(0, call.length - MOST_TEXT)}
    return Page("live_thinking.html", "", values)

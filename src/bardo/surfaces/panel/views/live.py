"""Live requests: what goes on now, with thinking as it comes; and the thinking of one call once it has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bardo.surfaces.panel.live_board import MOST_TEXT
from bardo.surfaces.panel.pages import Page, PanelRequest, Viewer
from bardo.surfaces.panel.views.requests import answered_parts, read_call
from bardo.values.errors import NotStored

if TYPE_CHECKING:
    from bardo.surfaces.panel.panel import Panel


async def show(panel: Panel, request: PanelRequest) -> Page:
    """Return the page, which a script fills."""
    providers = [provider.id for provider in panel.context.services.directory.providers]
    separate_workers = 1 if panel.context.services.events.has_other_workers else panel.settings.gateway.workers
    return Page("live.html", "Live", {"providers": providers, "workers": separate_workers})


async def show_thinking(panel: Panel, viewer: Viewer, request_id: str) -> Page:
    """Return the thinking of a call that is on the page, as a piece of HTML. Raises NotStored.

    The page may be one of another worker, which alone was told of the call: the log has its thinking, then.
    """
    call = panel.board.find(request_id, viewer.key_id)
    if call is None:
        thinking, cut = await _logged_thinking(panel, viewer, request_id), 0
    else:
        thinking, cut = "".join(call.text), max(0, call.length - MOST_TEXT)
    return Page("live_thinking.html", "", {"thinking": thinking, "cut": cut})


async def _logged_thinking(panel: Panel, viewer: Viewer, request_id: str) -> str:
    """Return the thinking of a call of the log. Raises NotStored where the viewer may see none."""
    if panel.keeps_content:
        row = await read_call(panel, viewer, request_id)
        thinking = [one.text for one in answered_parts(row) if one.kind == "thinking"]
        if thinking:
            return "\n\n".join(thinking)
    raise NotStored("this call is no longer among the live ones", hint="look for it among the requests")

"""What happens in the gateway, for the page of live requests: one stream of events for a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bardo.surfaces.gateway.answer import Answer
from bardo.surfaces.gateway.http import Receive, Scope
from bardo.surfaces.panel.pages import Viewer
from bardo.values.errors import UnknownRoute

if TYPE_CHECKING:
    from bardo.surfaces.panel.panel import Panel


async def send_live_events(panel: Panel, viewer: Viewer, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Send what happens to the calls that a viewer may see, until the browser leaves."""
    raise UnknownRoute("the panel has no events yet")

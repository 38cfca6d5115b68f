"""What happens in the gateway, for pages of live requests: one stream of server-sent events for each, at most four messages a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from bardo.surfaces.gateway.answer import Answer, run_until_disconnect
from bardo.surfaces.gateway.http import Receive
from bardo.surfaces.panel.pages import Viewer
from bardo.values.errors import Overloaded

if TYPE_CHECKING:
    from bardo.surfaces.panel.panel import Panel

SECONDS_BETWEEN_MESSAGES = 0.25
ALIVE_SECONDS = 15.0
MOST_READERS = 50
_SSE = "text/event-stream; charset=utf-8"


async def send_live_events(
    panel: Panel, viewer: Viewer, is_signed_in: Callable[[], bool], receive: Receive, answer: Answer
) -> None:
    """Send what happens to the calls that a viewer may see, until the browser leaves or nobody is signed in. Raises Overloaded."""
    board = panel.board
    if board.readers >= MOST_READERS:
        raise Overloaded(f"{MOST_READERS} pages of live requests are open", hint="close one of them")

    async def work() -> None:
        reader = board.open(viewer.key_id)
        try:
            await board.connected()
            await answer.start((("x-content-type-options", "nosniff"),), _SSE)
            await answer.piece(_message("snapshot", board.calls(reader)))
            alive = time.monotonic()
            while not board.closed.is_set():
                await asyncio.sleep(SECONDS_BETWEEN_MESSAGES)
                changes = reader.take()
                if changes:
                    await answer.piece(_message("calls", changes))
                if time.monotonic() - alive > ALIVE_SECONDS:
                    alive = time.monotonic()
                    if not is_signed_in():
                        break
                    await answer.piece(b": alive\n\n")
        finally:
            board.leave(reader)
        await answer.end(b"")

    with panel.context.onlooking():
        await run_until_disconnect(receive, work())


def _message(name: str, value: object) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(value))

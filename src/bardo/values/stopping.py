"""What a call is told that is cancelled because the server stops."""

from __future__ import annotations

import asyncio

from bardo.values.errors import ShuttingDown

STOPPING = "the server is stopping"
"""The argument of the CancelledError by which a stopping server ends a request."""


def shutdown_of(cancelled: asyncio.CancelledError) -> ShuttingDown | None:
    """Return the error of a call that was cancelled because the server stops; None where something else cancelled it."""
    return shutting_down() if STOPPING in cancelled.args else None


def shutting_down() -> ShuttingDown:
    """Return the error of a call that did not end before the server did."""
    return ShuttingDown("the gateway was stopped before the reply was complete", hint="send the request again")

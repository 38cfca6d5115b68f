"""The effects by which a layer keeps something for the later turns of a conversation, so that it decides the same again.

What is kept is the layer's own, as bytes, for one session. Whoever runs layers bounds it in number, in size and in time, so that a layer
has to work without it.
"""

from __future__ import annotations

from bardo.context.layer import Effect


class LoadForSession(Effect, frozen=True):
    """Ask for what a layer kept for a session. Whoever runs layers sends back its bytes, None where nothing is kept."""

    layer: str
    session: str


class StoreForSession(Effect, frozen=True):
    """Keep something of a layer for a session, in place of what was kept before."""

    layer: str
    session: str
    value: bytes

"""Whether the gateway runs, and which providers it has: for whoever watches over it."""

from __future__ import annotations

from bardo.surfaces.gateway.answer import Answer
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.http import Receive, Scope
from bardo.surfaces.gateway.routes import Route


async def health(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer that the gateway runs."""
    await answer.json({"status": "ok"})


async def ready(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer which providers the gateway has."""
    providers = [provider.id for provider in context.runner.directory.providers]
    await answer.json({"status": "ready", "providers": providers})

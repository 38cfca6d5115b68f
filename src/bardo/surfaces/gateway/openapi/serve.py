"""`GET /openapi.json`: the document, made when it is first asked for and kept as bytes with its entity tag."""

from __future__ import annotations

from bardo.surfaces.gateway.answer import Answer
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.http import Receive, Scope, header
from bardo.surfaces.gateway.routes import Route


async def show_openapi(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer with the OpenAPI document, or with 304 where the client has it."""
    # Few clients ask for it: a gateway that starts does not load it.
    from bardo.surfaces.gateway.openapi.document import openapi_bytes

    body, tag = openapi_bytes()
    headers = [("etag", tag), ("cache-control", "no-cache")]
    if _has(header(scope, b"if-none-match"), tag):
        await answer.whole(304, b"", headers)
    else:
        await answer.whole(200, body, headers)


def _has(asked: str, tag: str) -> bool:
    """Whether an `If-None-Match` names a tag. Source: RFC 9110, section 13.1.2, which compares tags weakly."""
    return tag in [one.strip().removeprefix("W/") for one in asked.split(",")] or asked.strip() == "*"

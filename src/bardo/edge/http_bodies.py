"""Read the body of a reply whole, but no more of it than may be held."""

from __future__ import annotations

from bardo.edge import http_problems as problems
from bardo.edge.http_calls import Call, Reply


async def read_bounded(reply: Reply, call: Call, limit: int) -> bytes:
    """Return the whole body of `reply` and close it; raises MalformedReply once it is longer than `limit` bytes."""
    try:
        pieces, size = [], 0
        async for piece in reply.chunks():
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise problems.oversized(call, limit)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    finally:
        await reply.close()

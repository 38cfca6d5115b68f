"""The shape of a request: all of it but its content. What is planned for a shape holds for every request that has it, and is kept.

Most calls of a client differ in their messages only. Messages, tools and the schema of an answer are content.
"""

from __future__ import annotations

from operator import attrgetter

import msgspec

from bardo.reuse.plans import LONGEST_SHAPE
from bardo.values.request import OutputFormat, Request, Tool

CONTENT = frozenset(
    {"messages", "tools", "output_format", "body", "body_bytes", "degraded", "client_headers", "kept_as"}
)
"""The fields of a Request that are no part of its shape. Of the tools it counts whether there are none, one or more, of the
form of an answer all but its schema and its instruction."""

_shape_fields = attrgetter(*(name for name in Request.__struct_fields__ if name not in CONTENT))
_encode = msgspec.msgpack.Encoder().encode
# Stand for the tools of a request: one for one alone, two for more. They have no name that a plan could take.
_SOME_TOOLS = (Tool(name=""), Tool(name=""))


def shape_of(request: Request) -> bytes | None:
    """Return the shape of a request as bytes, the same for equal ones; None for one that is too long to keep, or cannot be written."""
    try:
        shape = _encode(
            (_shape_fields(request), min(len(request.tools), len(_SOME_TOOLS)), _without_schema(request.output_format))
        )
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    return shape if len(shape) <= LONGEST_SHAPE else None


def bare(request: Request) -> Request:
    """Return a request without its content."""
    return msgspec.structs.replace(
        request,
        messages=(),
        tools=_SOME_TOOLS[: len(request.tools)],
        output_format=_without_schema(request.output_format),
        body=None,
        body_bytes=b"",
        client_headers={},
        kept_as=None,
        degraded=(),
    )


def _without_schema(wanted: OutputFormat | None) -> OutputFormat | None:
    if wanted is None:
        return None
    return msgspec.structs.replace(wanted, schema=None if wanted.schema is None else {}, guidance="")

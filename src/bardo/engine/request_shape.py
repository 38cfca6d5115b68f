"""The shape of a request: all of it but its content. What is planned for a shape holds for every request that has it, and is kept.

Most calls of a client differ in their messages only. Messages, tools and the schema of an answer are content.
"""

from __future__ import annotations

from collections.abc import Hashable
from operator import attrgetter
from typing import Generic, TypeVar

import msgspec

from bardo.values.request import OutputFormat, Request, Tool

Plan = TypeVar("Plan")

Place = tuple[Hashable, ...]
"""Where a plan is kept: the id of a provider, the dialect of its endpoint, the shape of a request, or more than these."""

CONTENT = frozenset(
    {"messages", "tools", "output_format", "body", "body_bytes", "degraded", "client_headers", "kept_as"}
)
"""The fields of a Request that are no part of its shape. Of the tools it counts whether there are none, one or more, of the
form of an answer all but its schema and its instruction."""
MOST_PLANS = 512
LONGEST_SHAPE = 4096
"""Bytes. Clients choose what stands in their requests, so neither the number nor the size of what is kept may grow with them."""

_shape_fields = attrgetter(*(name for name in Request.__struct_fields__ if name not in CONTENT))
_encode = msgspec.msgpack.Encoder().encode
# Stand for the tools of a request: one for one alone, two for more. They have no name that a plan could take.
_SOME_TOOLS = (Tool(name=""), Tool(name=""))


class PlanCache(Generic[Plan]):
    """The newest plans, by their place. One cache goes with one set of settings.

    What a plan was made from is kept with it, the provider's row and what is known of the target: it holds as long as they are the same.
    """

    def __init__(self) -> None:
        self._kept: dict[Place, tuple[object, object, Plan]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, place: Place, row: object, facts: object) -> Plan | None:
        """Return the plan that was made from this row of the provider and these facts of the target; None where there is none."""
        kept = self._kept.get(place)
        return kept[2] if kept is not None and kept[0] is row and kept[1] is facts else None

    def keep(self, place: Place, row: object, facts: object, plan: Plan) -> None:
        """Keep a plan, and forget the oldest where there are too many."""
        self._kept.pop(place, None)
        self._kept[place] = (row, facts, plan)
        if len(self._kept) > MOST_PLANS:
            del self._kept[next(iter(self._kept))]


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

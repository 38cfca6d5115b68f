"""A request whose control says what its client said, as the engine's does where the model takes just that."""

from __future__ import annotations

import msgspec

from bardo.values.request import Control, Request


def as_told(request: Request) -> Request:
    """Return the request with the client's own words of thinking as its control."""
    fields = request.reasoning.raw_fields if request.reasoning is not None else {}
    return msgspec.structs.replace(request, control=Control(fields=fields))

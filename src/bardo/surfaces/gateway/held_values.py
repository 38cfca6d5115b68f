"""How many values of JSON the bodies of open requests hold together: a small one takes a hundred times its bytes once it is decoded."""

from __future__ import annotations

import asyncio

from bardo.surfaces.gateway.http import Scope
from bardo.values.errors import Overloaded

VALUES = "bardo.values"
"""Where a request's scope holds how many values its body has."""
_SHORT_BYTES, _SLICE_BYTES = 4096, 1024 * 1024
_FEW_VALUES = 2_000


class HeldValues:
    """The values of all requests that have no complete reply yet. One event loop uses it.

    A body of few values is always taken, and one of more than `most` where no other is open.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0

    async def admit(self, scope: Scope, body: bytes) -> None:
        """Count the values of a request's body. Raises Overloaded where the open requests would have too many together."""
        if len(body) <= _SHORT_BYTES:
            return
        count = 0
        for start in range(0, len(body), _SLICE_BYTES):
            if start:
                await asyncio.sleep(0)
            count += count_values(body[start : start + _SLICE_BYTES])
        if self._held and count > _FEW_VALUES and self._held + count > self._most:
            hint = "try again later, send fewer at once, or raise gateway.max_total_values in bardo.toml"
            raise Overloaded(f"the bodies of the open requests have over {self._most:,} values together", hint=hint)
        self._held += count
        scope[VALUES] = scope.get(VALUES, 0) + count

    def release(self, scope: Scope) -> None:
        """Count the values of a request no longer: it has its reply."""
        self._held -= scope.pop(VALUES, 0)


def count_values(body: bytes) -> int:
    """Return about how many values a piece of JSON holds, and no fewer unless they are numbers: its commas, without those of prose."""
    in_prose = body.count(b", ") - body.count(b', "') - body.count(b", {") - body.count(b", [") - body.count(b",  ")
    return 1 + body.count(b",") - max(in_prose, 0)

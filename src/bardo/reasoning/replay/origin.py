"""Stamps every opaque state of a reply with where it was made, so that it is known whatever dialect it travels in."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bardo.values.blocks import Origin
from bardo.values.events import Event, OpaqueState


class Origins:
    """A stage of one reply."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on; state that has no stamp gets one."""
        if type(item) is not OpaqueState or item.opaque.origin is not None:
            return (item,)
        return (msgspec.structs.replace(item, opaque=msgspec.structs.replace(item.opaque, origin=self._origin)),)

    def finish(self) -> Sequence[Event]:
        """Nothing is held."""
        return ()

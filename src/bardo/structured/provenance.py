"""How a typed answer came about, on every result: success and failure alike."""

from __future__ import annotations

import msgspec

from bardo.structured.extraction import ErrorCode
from bardo.structured.modes import Mode


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to get a typed answer.

    `attempts`: how often the model was asked. `coerced`, `defaulted`: JSON Pointers into the answer. `unwrapped`: the shells taken off,
    outermost first. `mode_downgraded`: whether the target could not be asked in the mode that was wanted.
    """

    mode: Mode
    attempts: int = 1
    coerced: tuple[str, ...] = ()
    repaired: bool = False
    unwrapped: tuple[str, ...] = ()
    defaulted: tuple[str, ...] = ()
    mode_downgraded: bool = False
    error: ErrorCode | None = None

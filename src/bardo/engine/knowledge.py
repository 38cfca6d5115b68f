"""What planning a call draws on beside the request: formats, models, and what servers said of themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from bardo.catalog.models import Models
from bardo.engine.route import Target
from bardo.reasoning.control import PORTABLE, Layer, PortableBudgets
from bardo.reasoning.registry import FormatRegistry


def _nothing(_: Target) -> Sequence[Layer]:
    return ()


class Knowledge(msgspec.Struct, frozen=True, kw_only=True):
    """None stands for what comes with bardo.

    `layers` gives what an operator and live servers say of a target's model, from memory: planning waits for nobody. `budgets` is the one
    table between levels and tokens.
    """

    formats: FormatRegistry | None = None
    models: Models | None = None
    layers: Callable[[Target], Sequence[Layer]] = _nothing
    budgets: PortableBudgets = PORTABLE


BUILTIN = Knowledge()

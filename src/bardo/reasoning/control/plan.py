"""What is sent to make a model think as asked, and how it came to that."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from bardo.reasoning.control.target import ControlTarget, Known, LayerName
from bardo.values.degradation import Degradation
from bardo.values.errors import Unsupported
from bardo.values.request import Effort, ReasoningPolicy

Mode = Literal["off", "effort", "budget", "auto", "none"]


class CannotTurnOff(Unsupported):
    """The model always thinks, and the caller wants it off or not at all. `reroute`: another provider may be tried first."""

    def __init__(self, message: str, *, hint: str = "", reroute: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.reroute = reroute


class ControlPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A policy, written.

    `fields` is the JSON fragment for the upstream body, exact, and `max_output_tokens` the output limit to send with it (None: none was
    given and none is needed). `intent` and `said` are the policy and what was sent in a word: `low`, `budget:4096`, `off`, `nothing`.
    `layer` is who decided and `reason` why. `clamped`: the amount differs from what was asked; `floored`: off was asked and the least
    there is was sent. `thinks` is what is expected of the model, None where nothing is known. `system_text` must stand in the system
    prompt, for models that are told there.
    """

    target: ControlTarget
    mode: Mode
    intent: str
    fields: dict[str, Any] = {}
    max_output_tokens: int | None = None
    said: str = "nothing"
    level: Effort | None = None
    budget: int | None = None
    layer: LayerName = "L3"
    reason: str = ""
    form: str = ""
    clamped: bool = False
    floored: bool = False
    soft: bool = False
    thinks: bool | None = None
    repaired: bool = False
    system_text: str = ""
    degraded: tuple[Degradation, ...] = ()
    known: Known | None = None
    policy: ReasoningPolicy | None = None

    @property
    def emitted(self) -> dict[str, Any]:
        """The exact fields that were sent."""
        return self.fields

    @property
    def asks_for_none(self) -> bool:
        """Whether no thinking was asked for."""
        return self.mode == "off" or self.intent == "budget:0"

    @property
    def unclassified(self) -> bool:
        """Whether nothing but the provider's static form spoke of the model: worth a line in the operator's log."""
        return self.reason == "unclassified"


def intent_of(policy: ReasoningPolicy | None) -> str:
    """Return a policy in a word: `none`, `off`, a level, `budget:4096`, `auto`."""
    match policy:
        case None:
            return "none"
        case ReasoningPolicy(mode="effort", effort=effort):
            return effort or "auto"
        case ReasoningPolicy(mode="budget", budget=budget):
            return f"budget:{budget}"
    return policy.mode

"""How a temperature changes over the calls of one session: along a cosine, cooler with each cycle, or up a ramp."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from bardo.values.errors import InvalidRequest


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The temperatures of a session of one subsystem.

    `cosine` falls from `first` to `last`, and begins each later cycle `decay` times as hot; `ramp` goes from `first` to `last` in equal
    steps. `steps` is how many steps there are where the caller does not say: the calls of a ramp, the steps of a cycle.
    """

    subsystem: str
    kind: Literal["cosine", "ramp"]
    first: float
    last: float
    steps: int
    decay: float = 1.0

    def temperature(self, step: int, *, steps: int | None = None, cycle: int = 0) -> float:
        """Return the temperature of a step, counted from 0, in a cycle, counted from 0. Raises InvalidRequest for a negative one."""
        total = self.steps if steps is None else steps
        if self.kind == "ramp":
            return ramp(step, total, self.first, self.last)
        return dali_temperature(step, total, reanneal(cycle, self.first, self.decay), self.last)


def dali_temperature(step: int, total_steps: int, t_high: float, t_low: float) -> float:
    """Return the temperature at `step` of a cycle: `t_high` at step 0, `t_low` at step `total_steps` and after it, a cosine between.

    Source: 003, "Hypnagogic cosine annealing". Raises InvalidRequest for a negative step and for a cycle without steps.
    """
    progress = _progress(step, total_steps)
    cosine = (1 + math.cos(progress * math.pi)) / 2
    return t_low + (t_high - t_low) * cosine


def reanneal(cycle: int, base_high: float, decay: float) -> float:
    """Return the hottest temperature of a cycle, counted from 0: `decay` times that of the cycle before it.

    Source: 003, "Hypnagogic cosine annealing" (`reanneal`). Raises InvalidRequest for a negative cycle.
    """
    if cycle < 0:
        raise InvalidRequest(f"cycle {cycle} is negative", hint="cycles are counted from 0", param="cycle")
    return base_high * decay**cycle


def ramp(step: int, calls: int, first: float, last: float) -> float:
    """Return the temperature of a call, counted from 0: `first` for call 0, `last` for the last of `calls` and those after it.

    Source: 003, "Dream phase transitions". Raises InvalidRequest for a negative step and for a ramp without calls.
    """
    if calls == 1:
        return last
    return first + (last - first) * _progress(step, calls - 1)


def _progress(step: int, total: int) -> float:
    if step < 0 or total < 1:
        message = f"step {step} of {total} is none"
        raise InvalidRequest(message, hint="steps are counted from 0, and there is at least one", param="step")
    return min(step / total, 1.0)

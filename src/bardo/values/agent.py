"""What an agent says of the moment in which it asks, and what the gateway settles of its call by that."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.values.profile import InferenceProfile

Signal = bool | float | str


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """One tick of an agent.

    `signals` are what its rules of tiers look at; none of them: nothing happened. `type` is what kind of work the tick is, which decides
    on its tools. `cycle` is the number of the dream cycle, from 0. `sustainability` is what the agent earns by what it spends on
    inference, and `diem` what is left of the day's DIEM in dollars; None: the agent does not say.
    """

    signals: dict[str, Signal] = {}
    type: str = ""
    cycle: int | None = None
    sustainability: float | None = None
    diem: float | None = None


class AgentStep(msgspec.Struct, frozen=True, kw_only=True):
    """What is settled of an agent's call before it is planned: the `workload` that it is, and what its profile has at this step.

    `record` is what the caller is told of that.
    """

    workload: str
    profile: InferenceProfile | None = None
    record: dict[str, Any] = {}

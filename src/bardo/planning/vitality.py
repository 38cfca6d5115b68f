"""What an agent's vitality changes of the workload that a call is: its intent, how deep a model thinks, and the temperature.

The caller's own fields go before the workload's, so what they replace is not reported as changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from bardo.routing.fallback_route import RouteStep
from bardo.routing.pressure import SubsystemPressure
from bardo.routing.workloads import Workload, Workloads
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest
from bardo.values.profile import InferenceProfile
from bardo.values.request import Request

_NOT_OF_AGENT = "only the subsystems of an agent change with its {}"
_OF_INTENT = ("quality", "cost_sensitivity")
_OF_PROFILE = ("reasoning_effort", "temperature")


class PressedWorkload(NamedTuple):
    """A workload at a vitality, and what differs by it."""

    workload: Workload | None
    degraded: tuple[Degradation, ...] = ()


def at_vitality(workload: Workload | None, request: Request, workloads: Workloads) -> PressedWorkload:
    """Return the workload of a request at the vitality that the request says, and what that changes.

    Raises InvalidRequest where no agent is configured.
    """
    vitality = request.options.vitality
    if vitality is None:
        return PressedWorkload(workload)
    if workload is None or workload.pressure is None:
        return PressedWorkload(workload, not_honoured(vitality, workloads))
    pressed = _at(workload, workload.pressure, vitality)
    return PressedWorkload(
        pressed, tuple(_changes(workload, pressed, request, f"the agent's vitality is {vitality:g}"))
    )


def not_honoured(vitality: float | None, workloads: Workloads) -> tuple[Degradation, ...]:
    """Return what is told of a vitality in a call of no subsystem. Raises InvalidRequest where no agent is configured."""
    if vitality is None:
        return ()
    if not workloads.of_agent:
        message = "the request says a vitality, and no agent is configured here"
        hint = "leave it out, or set enabled = true under [golem] in bardo.toml"
        raise InvalidRequest(message, hint=hint, param="bardo.vitality")
    return (not_of_agent("vitality", vitality),)


def not_of_agent(what: str, asked: Any) -> Degradation:
    """Return what is told of something that an agent says of itself in a call of no subsystem."""
    return Degradation(what, asked=asked, why=_NOT_OF_AGENT.format(what))


def refuse_tick(request: Request) -> None:
    """Raise InvalidRequest for a tick where no agent is configured: the caller counts on something that is not there."""
    if request.options.tick is not None:
        message = "the request says a tick, and no agent is configured here"
        hint = "leave it out, or set enabled = true under [golem] in bardo.toml"
        raise InvalidRequest(message, hint=hint, param="bardo.tick")


def without_workload(request: Request, workloads: Workloads) -> Request:
    """Return a request that is no workload, with what is not honoured of its vitality. Raises InvalidRequest as `not_honoured` does."""
    degraded = not_honoured(request.options.vitality, workloads)
    return msgspec.structs.replace(request, degraded=(*request.degraded, *degraded)) if degraded else request


def _at(workload: Workload, pressure: SubsystemPressure, vitality: float) -> Workload:
    profile = workload.profile
    return msgspec.structs.replace(
        workload,
        intent=pressure.intent_at(workload.intent, vitality),
        profile=None if profile is None else pressure.profile_at(profile, vitality),
        route=tuple([_step_at(step, pressure, vitality) for step in workload.route]),
    )


def _step_at(step: RouteStep, pressure: SubsystemPressure, vitality: float) -> RouteStep:
    if not step.effort:
        return step
    return msgspec.structs.replace(step, effort=pressure.effort_at(step.effort, vitality))


def _changes(before: Workload, after: Workload, request: Request, why: str) -> Iterator[Degradation]:
    """Yield what of a workload is not as it was, but for what the caller says otherwise."""
    for name in _OF_INTENT:
        if name not in request.options.intent_fields:
            yield from _change(name, before.intent, after.intent, why, at="intent.")
    if before.profile is None:
        return
    for name in _OF_PROFILE:
        if before.locked or not _caller_sets(name, request):
            yield from _change(name, before.profile, after.profile, why)


def _change(name: str, before: Any, after: Any, why: str, *, at: str = "") -> Iterator[Degradation]:
    asked, sent = getattr(before, name), getattr(after, name)
    if asked != sent:
        yield Degradation(f"{at}{name}", asked=asked, sent=sent, why=why)


def _caller_sets(name: str, request: Request) -> bool:
    """Whether the caller's own fields, or the profile that the caller gives, go before a field of the workload's profile."""
    if getattr(request.options.profile or InferenceProfile(), name) is not None:
        return True
    if name == "temperature":
        return request.sampling.temperature is not None
    return (request.options.reasoning or request.reasoning) is not None

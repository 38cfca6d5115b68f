"""A reasoning policy as Gemini's `thinkingConfig`.

Models up to 2.5 take a budget in tokens, later ones a level; budget and level together are refused. The table follows Google's
documentation and SDK as of 2026-11-20; where several globs fit, the first one holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal

import msgspec

from bardo.dialects.gemini.words import NAME
from bardo.dialects.levels import BUDGETS, effort_of
from bardo.values.blocks import fields_for
from bardo.values.degradation import Degradation
from bardo.values.request import EFFORTS, Effort, ReasoningPolicy, Request

_LOW_HIGH: tuple[Effort, ...] = ("low", "high")
_LOW_TO_HIGH: tuple[Effort, ...] = ("low", "medium", "high")
_MINIMAL_TO_HIGH: tuple[Effort, ...] = ("minimal", "low", "medium", "high")

# No Gemini model that takes budgets takes more than the highest of these.
_BUDGETS: dict[Effort, int] = {**BUDGETS, "xhigh": BUDGETS["high"], "max": BUDGETS["high"]}
_HEADROOM = 1024


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """How the models that fit one of `globs` are told to think. `omitted` says whether they think when nothing is sent."""

    globs: tuple[str, ...]
    control: Literal["none", "budget", "level"]
    levels: tuple[Effort, ...] = ()
    least: int = 0
    most: int = 0
    off: bool = False
    omitted: bool = True


FAMILIES = (
    Family(
        globs=("gemma*", "gemini-1*", "gemini-2.0*", "gemini-2*image*", "gemini-2*tts*", "learnlm*"), control="none"
    ),
    Family(globs=("gemini-2.5-pro*",), control="budget", least=128, most=32768),
    Family(globs=("gemini-2.5-flash-lite*",), control="budget", least=512, most=24576, off=True, omitted=False),
    Family(globs=("gemini-2.5-flash*", "gemini-2.5*"), control="budget", least=1, most=24576, off=True),
    Family(globs=("gemini-3-pro*",), control="level", levels=_LOW_HIGH),
    Family(globs=("gemini-3.7*", "gemini-3.8*", "gemini-3.1-pro*"), control="level", levels=_LOW_TO_HIGH),
    Family(globs=("gemini-3*flash*",), control="level", levels=_MINIMAL_TO_HIGH),
    Family(globs=("gemini-*",), control="level", levels=_LOW_TO_HIGH),
    Family(globs=("*",), control="none"),
)


def family_of(model: str) -> Family:
    """Return the row of a model id, with or without a path before it."""
    name = model.lower().rpartition("/")[2]
    return next(row for row in FAMILIES if any(fnmatchcase(name, glob) for glob in row.globs))


def thinking_config(request: Request, degraded: list[Degradation]) -> dict[str, Any]:
    """Return the fields to send, empty where nothing is to be said; what could not be said exactly is in `degraded`."""
    family, policy = family_of(request.model), request.reasoning
    own = request.dialect == NAME
    if family.control == "none":
        if policy is not None and policy.mode in ("effort", "budget"):
            asked = policy.effort or policy.budget
            degraded.append(
                Degradation("reasoning", asked=asked, why=f"{request.model} has no control of its thinking")
            )
        return {}
    if policy is None:
        # A Gemini client that says nothing gets what Gemini gives; others expect to see what was thought.
        return {} if own else {"includeThoughts": True}
    carried = fields_for(NAME, policy.carried) if own else {}
    config = {**_amount(policy, family, request, degraded), **_others(carried)}
    if policy.mode == "auto" and family.control == "budget" and _wakes(policy, carried, family, own=own):
        config["thinkingBudget"] = -1
    visible = policy.visible
    if not own:
        # Thoughts are hidden unless they are asked for, and may not be asked for where thinking is off.
        visible = None if policy.mode == "off" else visible is not False
    return config if visible is None else {**config, "includeThoughts": visible}


def _others(carried: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in carried.items() if name != "thinkingBudget"}


def _wakes(policy: ReasoningPolicy, carried: dict[str, Any], family: Family, *, own: bool) -> bool:
    """Whether `auto` must be said: Gemini's client said it, or the model would not think otherwise."""
    return "thinkingBudget" in carried if own else not family.omitted


def _amount(policy: ReasoningPolicy, family: Family, request: Request, degraded: list[Degradation]) -> dict[str, Any]:
    if policy.mode == "auto":
        return {}
    if policy.mode == "off":
        return _off(family, degraded)
    if family.control == "level":
        return {"thinkingLevel": _level(policy, family.levels, degraded)}
    # A Gemini client set budget and limit against each other itself; what it said is not ours to weigh.
    limit = None if request.dialect == NAME else request.max_output_tokens
    return {"thinkingBudget": _budget(policy, family, limit, degraded)}


def _off(family: Family, degraded: list[Degradation]) -> dict[str, Any]:
    if family.off:
        return {"thinkingBudget": 0}
    floor: int | str = family.levels[0] if family.control == "level" else family.least
    degraded.append(
        Degradation("reasoning", asked="off", sent=floor, why="this model always thinks; the least there is")
    )
    return {"thinkingLevel" if family.control == "level" else "thinkingBudget": floor}


def _level(policy: ReasoningPolicy, offered: Sequence[Effort], degraded: list[Degradation]) -> Effort:
    wanted = policy.effort or effort_of(policy.budget or 0, _MINIMAL_TO_HIGH)
    rank = EFFORTS.index(wanted)
    level = max((one for one in offered if EFFORTS.index(one) <= rank), key=EFFORTS.index, default=offered[0])
    asked = policy.effort or policy.budget
    if asked != level:
        why = "the nearest level this model offers" if policy.effort else "this model takes levels, not budgets"
        degraded.append(Degradation("reasoning", asked=asked, sent=level, why=why))
    return level


def _budget(policy: ReasoningPolicy, family: Family, limit: int | None, degraded: list[Degradation]) -> int:
    wanted = policy.budget if policy.budget is not None else _BUDGETS[policy.effort or "medium"]
    most = family.most
    if limit is not None:
        # The output limit counts thoughts too: an answer must still fit.
        most = min(most, limit - min(_HEADROOM, limit // 2))
    sent = max(family.least, min(wanted, most))
    if sent != wanted:
        why = f"this model takes {family.least} to {family.most}, and the answer needs room"
        degraded.append(Degradation("reasoning", asked=policy.effort or wanted, sent=sent, why=why))
    return sent

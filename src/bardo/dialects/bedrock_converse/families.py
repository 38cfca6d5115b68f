"""What the model families behind Converse take beside the common fields, by globs of their ids.

Bedrock passes `additionalModelRequestFields` on to the model, so each family has its own words there. Source: Amazon's pages on Converse,
Nova 2's extended thinking and model parameters, the recordings, and what clients of Bedrock found, as of 2026-11. Claude's part is known
to the Anthropic dialect; see `claude.py`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import msgspec

from bardo.dialects.bedrock_converse.losses import Losses
from bardo.dialects.bedrock_converse.words import NAME
from bardo.dialects.levels import effort_of
from bardo.values.blocks import fields_for
from bardo.values.request import EFFORTS, Effort, ReasoningPolicy, Request

_LOW_TO_HIGH: tuple[Effort, ...] = ("low", "medium", "high")


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """One family. `effort` is the path of its level among the additional fields; empty: it has no control."""

    globs: tuple[str, ...]
    claude: bool = False
    effort: tuple[str, ...] = ()
    levels: tuple[Effort, ...] = _LOW_TO_HIGH
    beside: dict[str, Any] = {}
    """What stands beside the level."""
    off: dict[str, Any] | None = None
    """The additional fields that turn thinking off; None: it cannot be turned off."""
    unlimited_at: Effort | None = None
    """The level at which neither a limit of output nor sampling may be given."""
    unsigned: bool = False
    """Whether earlier reasoning is taken back without a signature."""
    top_k: tuple[str, ...] = ()


_TABLE: tuple[Family, ...] = (
    Family(globs=("*anthropic.claude*",), claude=True, top_k=("top_k",)),
    Family(globs=("*openai.gpt-oss*", "*moonshot.*", "*moonshotai.*"), effort=("reasoning_effort",)),
    Family(globs=("*openai.*",), effort=("reasoning", "effort")),
    Family(
        globs=("*amazon.nova-2*",),
        effort=("reasoningConfig", "maxReasoningEffort"),
        beside={"type": "enabled"},
        off={"reasoningConfig": {"type": "disabled"}},
        unlimited_at="high",
        unsigned=True,
        top_k=("inferenceConfig", "topK"),
    ),
    Family(globs=("*amazon.nova*",), top_k=("inferenceConfig", "topK")),
    Family(globs=("*qwen.*",), effort=("reasoning_config",), levels=("low", "high"), off={}),
    Family(globs=("*zai.*",), effort=("reasoning_config",), levels=("high",), off={"reasoning_config": "none"}),
    Family(globs=("*deepseek.v*",), effort=("reasoning_config",), levels=("high",), off={}),
    Family(globs=("*minimax.*",), unsigned=True),
    Family(globs=("*mistral.*",), top_k=("top_k",)),
    Family(globs=("*",)),
)

CONTROLS = ("thinking", "output_config", "reasoning_effort", "reasoning", "reasoning_config", "reasoningConfig")
"""The additional fields that say how to think, in all families."""


def family_of(model: str) -> Family:
    """Return the first row whose glob fits a model id, with its geography or an ARN before it."""
    return next(row for row in _TABLE if any(fnmatchcase(model.lower(), glob) for glob in row.globs))


def told_controls(request: Request, family: Family) -> dict[str, Any] | None:
    """Return the caller's own words about thinking, where it spoke this dialect to this family."""
    policy = request.reasoning
    told = fields_for(NAME, policy.carried) if policy is not None and request.dialect == NAME else {}
    if not told:
        return None
    if family is _TABLE[-1]:
        # A model behind an inference profile is known to the caller only.
        return told
    known = {"thinking", "output_config", "reasoning_config"} if family.claude else set(family.effort[:1])
    return told if told.keys() <= known else None


def reasoning_fields(policy: ReasoningPolicy | None, family: Family, losses: Losses) -> dict[str, Any]:
    """Return the additional fields that make a model which is no Claude think as asked."""
    if policy is None:
        return {}
    if not family.effort:
        if policy.mode in ("effort", "budget"):
            losses.lose("reasoning", policy.effort or policy.budget, "this model has no control of its thinking")
        return {}
    if policy.mode == "off":
        if family.off is not None:
            return family.off
        losses.lose("reasoning", "off", "this model always thinks; this is its lowest effort", sent=family.levels[0])
        return at_path(family.effort, family.levels[0], family.beside)
    if policy.mode == "auto" and family.off is None:
        return {}
    return at_path(family.effort, _level(policy, family.levels, losses), family.beside)


def at_path(path: tuple[str, ...], value: Any, beside: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return `value` under one name, or under two with `beside` beside it."""
    return {path[0]: value} if len(path) == 1 else {path[0]: {**(beside or {}), path[1]: value}}


def _level(policy: ReasoningPolicy, offered: tuple[Effort, ...], losses: Losses) -> Effort:
    wanted = policy.effort or (effort_of(policy.budget) if policy.budget is not None else "medium")
    rank = EFFORTS.index(wanted)
    level = max((one for one in offered if EFFORTS.index(one) <= rank), key=EFFORTS.index, default=offered[0])
    if policy.mode == "budget" and policy.budget is not None:
        losses.lose("reasoning_budget", policy.budget, "this model takes levels, not budgets", sent=level)
    elif level != wanted and policy.mode == "effort":
        losses.lose("reasoning_effort", wanted, "the nearest effort this model offers", sent=level)
    return level

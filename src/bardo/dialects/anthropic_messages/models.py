"""What Claude models take, by globs of their ids: the one table of such facts here, until the catalog's rows replace it.

Source: Anthropic's pages on thinking, effort, structured outputs and models, as of 2026-11.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from bardo.values.request import Effort

Thinking = Literal["none", "budget", "adaptive"]
_TO_MAX: tuple[Effort, ...] = ("low", "medium", "high", "xhigh", "max")


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """One family. `thinking` is its form of control, `efforts` the levels it knows."""

    match: tuple[str, ...]
    thinking: Thinking = "adaptive"
    budgets: bool = False
    """Whether a budget in tokens is taken."""
    efforts: tuple[Effort, ...] = _TO_MAX
    off: Literal["disabled", "between_tools", "none"] = "disabled"
    off_below: Effort = "max"
    """The highest effort at which thinking can be off."""
    sampling: bool = False
    """Whether temperature, top_p and top_k may differ from their defaults while the model does not think."""
    both: bool = False
    """Whether temperature and top_p may be given together."""
    forced_tool: bool = True
    structured: bool = True
    known: bool = True
    """Whether it is a Claude model. Of others nothing is certain: what a caller of the dialect wrote goes on as it is."""
    hides: bool = True
    """Whether thinking comes without its text unless it is asked for."""
    output_limit: int = 64_000


def _older(
    *,
    match: tuple[str, ...],
    thinking: Thinking = "budget",
    efforts: tuple[Effort, ...] = (),
    both: bool = False,
    structured: bool = True,
    known: bool = True,
    output_limit: int = 64_000,
) -> Traits:
    """A model from before thinking became adaptive and its text hidden."""
    return Traits(
        match=match,
        thinking=thinking,
        budgets=thinking != "none",
        efforts=efforts,
        sampling=True,
        both=both,
        structured=structured,
        known=known,
        hides=False,
        output_limit=output_limit,
    )


_TABLE: tuple[Traits, ...] = (
    _older(match=("claude-3-7-*",), both=True, structured=False),
    _older(match=("claude-3-5-*",), thinking="none", both=True, structured=False, output_limit=8192),
    _older(
        match=("claude-3-*", "claude-2*", "claude-instant*"),
        thinking="none",
        both=True,
        structured=False,
        output_limit=4096,
    ),
    _older(match=("claude-opus-4-1*",), output_limit=32_000),
    _older(
        match=("claude-opus-4", "claude-opus-4-0*", "claude-opus-4-2025*", "claude-opus-4@*"),
        both=True,
        structured=False,
        output_limit=32_000,
    ),
    _older(
        match=("claude-sonnet-4", "claude-sonnet-4-0*", "claude-sonnet-4-2025*", "claude-sonnet-4@*"),
        both=True,
        structured=False,
    ),
    _older(match=("claude-opus-4-5*",), efforts=("low", "medium", "high")),
    _older(match=("claude-*-4-5*",)),
    _older(match=("claude-*-4-6*",), thinking="adaptive", efforts=("low", "medium", "high", "max")),
    Traits(match=("claude-*-4-7*", "claude-*-4-8*")),
    Traits(match=("claude-sonnet-5-5*",), off="between_tools", forced_tool=False),
    Traits(match=("claude-opus-5-5*", "claude-fable-*", "claude-mythos-*"), off="none", forced_tool=False),
    Traits(match=("claude-opus-5*", "claude-haiku-5*"), off_below="high"),
    Traits(match=("claude-*",)),
    # Other vendors' models behind this dialect follow its older form.
    _older(match=("*",), efforts=_TO_MAX, both=True, structured=False, known=False),
)


def traits_of(model: str) -> Traits:
    """Return the first row whose glob fits. Vendor prefixes and dots aside: `anthropic/claude-opus-4.8` is `claude-opus-4-8`."""
    name = model.lower().rsplit("/", 1)[-1].replace(".", "-")
    name = name[max(0, name.find("claude-")) :]
    return next(row for row in _TABLE if any(fnmatchcase(name, pattern) for pattern in row.match))

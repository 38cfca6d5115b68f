"""A model's thinking in one form, whoever thought it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from bardo.values.blocks import ReasoningBlock
from bardo.values.notebook import one_line


class ReasoningVisibility(StrEnum):
    """How much of the thinking can be read."""

    VISIBLE = "visible"
    SUMMARIZED = "summarized"
    OPAQUE = "opaque"
    NONE = "none"


class ReasoningStepType(StrEnum):
    """What a stretch of thinking does."""

    ANALYSIS = "analysis"
    PLANNING = "planning"
    EVALUATION = "evaluation"
    REFLECTION = "reflection"
    UNCERTAINTY = "uncertainty"
    DECISION = "decision"


class ReasoningStep(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of thinking: the chain's `content[start:end]`, in characters. `confidence` is None if nobody measured it."""

    step_type: ReasoningStepType
    content: str
    confidence: float | None = None
    start: int
    end: int

    @property
    def kind(self) -> ReasoningStepType:
        """The same as `step_type`."""
        return self.step_type


class ReasoningCost(msgspec.Struct, frozen=True, kw_only=True):
    """What the thinking cost. `usd` is None if the price is not known."""

    reasoning_tokens: int = 0
    billed_as_output: bool = True
    discount_factor: float = 1.0
    usd: float | None = None


class ReasoningChain(msgspec.Struct, frozen=True, kw_only=True):
    """The thinking of one reply.

    `reasoning_tokens` is the provider's count (`reported`), else an estimate from the readable text (`tokens_approx`), else 0.
    `content` joins the readable blocks with a blank line. `interleaved`: thinking resumed after a tool call in this reply.
    `empty`: the reply showed that there was none, with a block that holds nothing. `withheld`: there was readable thinking, left out as the
    caller asked.
    """

    provider: str = ""
    model: str = ""
    visibility: ReasoningVisibility = ReasoningVisibility.NONE
    content: str | None = None
    reasoning_tokens: int = 0
    reported: bool = False
    tokens_approx: bool = False
    interleaved: bool = False
    empty: bool = False
    withheld: bool = False
    blocks: tuple[ReasoningBlock, ...] = ()
    cost: ReasoningCost = ReasoningCost()
    control: dict[str, Any] | None = None

    def __repr__(self) -> str:
        parts = (
            ("visibility", self.visibility.value), ("content", self.content), ("reasoning_tokens", self.reasoning_tokens),
            ("tokens_approx", self.tokens_approx), ("interleaved", self.interleaved), ("model", self.model),
        )  # fmt: skip
        return one_line(ReasoningChain.__name__, parts)

    @property
    def steps(self) -> tuple[ReasoningStep, ...]:
        """The steps of `content`. A Response from `bardo` has them; a chain made by hand gets them from `bardo.reasoning.steps.stepped`."""
        return ()

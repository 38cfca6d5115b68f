"""Token counts and costs of a call, each with one algebra, whatever the provider counted.

`output_tokens = answer + reasoning`, always. `input_tokens` includes `cached_input_tokens` and `cache_write_tokens`, always
(OpenTelemetry's meaning; Anthropic reports them beside it). `None` means not reported or not known, which is not 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Literal, TypeVar

import msgspec

from bardo.values.blocks import (
    Block,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)


class UsageDetails(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """Counts that only the price of a call depends on; they are parts of the counts of `Usage`.

    `cache_write_1h_tokens` went into a cache of an hour, `searches` are those that the provider made, and `unpriced_tools` how often it
    ran other tools that it bills by a price bardo does not know. `service_tier` is the provider's own word for how the call was served,
    empty where it says nothing. The `billed` counts are what the provider charges for where it leaves some of the tokens out.
    """

    cache_write_1h_tokens: int | None = None
    audio_input_tokens: int | None = None
    cached_audio_tokens: int | None = None
    image_input_tokens: int | None = None
    audio_output_tokens: int | None = None
    image_output_tokens: int | None = None
    billed_input_tokens: int | None = None
    billed_output_tokens: int | None = None
    searches: int | None = None
    unpriced_tools: int | None = None
    service_tier: str = ""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What one call used. `raw` is the provider's own usage object, untouched.

    `approx`: the reply did not come to its end, so that tokens are estimated which its provider had not counted.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None
    details: UsageDetails | None = None
    raw: Any = None
    approx: bool = False

    def __repr__(self) -> str:
        """Return the counts that are reported, of which 0 is one, without the provider's own object."""
        counts = ((name, getattr(self, name)) for name in Usage.__struct_fields__ if name not in ("raw", "approx"))
        return f"Usage({', '.join(f'{name}={count!r}' for name, count in counts if count is not None)})"

    @property
    def reported(self) -> bool:
        """Whether the provider said anything at all about tokens."""
        return self.input_tokens is not None or self.output_tokens is not None

    @property
    def total_tokens(self) -> int | None:
        """Input plus output, when both are known."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens

    @property
    def answer_tokens(self) -> int | None:
        """Output that is not reasoning, when both are known."""
        if self.output_tokens is None or self.reasoning_tokens is None:
            return None
        return self.output_tokens - self.reasoning_tokens


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens `text` is: four ASCII characters each, or one and a half of any other.

    Always at least 1 for text that is not empty. The result is flagged `tokens_approx` wherever it is shown.
    """
    if text.isascii():
        # Rounded as below: to the nearest, and of two to the even one.
        return round(len(text) / 4) or (1 if text else 0)
    plain = _ascii_characters(text)
    return max(1, round(plain / 4 + (len(text) - plain) / 1.5))


def _ascii_characters(text: str) -> int:
    # A tenth of the time of asking each character.
    return len(text.encode("ascii", "ignore"))


MESSAGE_TOKENS = 4
"""About what a message has beside its text: its role and its delimiters."""
IMAGE_TOKENS = 1_000
"""About what a picture has: providers count between 260 and 1,600 for one of usual size."""
_DOCUMENT_TOKENS = 2_000


def block_tokens(block: Block, count_text: Callable[[str], int] = estimate_tokens) -> int:
    """Estimate how many tokens a block has. `count_text` counts those of a text."""
    match block:
        case TextBlock(text=text) | RefusalBlock(text=text):
            return count_text(text)
        case ToolCallBlock(name=name, arguments=arguments):
            return count_text(name + arguments)
        case ToolResultBlock(content=content):
            return sum([block_tokens(part, count_text) for part in content])
        case ReasoningBlock():
            return count_text(block.readable)
        case ImageBlock():
            return IMAGE_TOKENS
        case DocumentBlock(text=text):
            return count_text(text) or _DOCUMENT_TOKENS
        case UnknownBlock():
            return 0  # Nobody knows what it costs.


class TokenEstimate(msgspec.Struct, eq=False):
    """The estimate of a text that arrives in pieces: the sum of the estimates of small pieces would be too high.

    `tokens` is the estimate so far, 0 before there is any text.
    """

    tokens: int = 0
    _plain: int = 0
    _other: int = 0

    def add(self, text: str) -> None:
        """Count a piece."""
        plain = len(text) if text.isascii() else _ascii_characters(text)
        self._plain += plain
        self._other += len(text) - plain
        if self._plain or self._other:
            self.tokens = max(1, round(self._plain / 4 + self._other / 1.5))


Cause = Literal[
    "input", "cache_read", "cache_write", "answer", "thinking", "fee", "retry", "failover", "escalation", "repair", "hedge"
]  # fmt: skip
Name = TypeVar("Name", bound=str)
NANOS_PER_USD = 1_000_000_000


class CallCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a call cost. `nanos` None is unknown.

    `parts` are nano-dollars by cause; they add up to `nanos` where that is known, else they are the known parts only. `reported_nanos` is
    the provider's own figure and `computed_nanos` that of the price rows. `source` is where the price is from: `provider`, `operator`,
    `listing`, `catalog` or `genai-prices`; several are joined by commas. `saved_nanos` is what the prompt cache saved by the price rows,
    less what writing to it cost more than plain input: below 0 where it cost more than it saved. `approx`: some of its tokens are
    estimated, because a reply did not come to its end.
    """

    nanos: int | None = None
    parts: dict[Cause, int] = {}
    reported_nanos: int | None = None
    computed_nanos: int | None = None
    saved_nanos: int | None = None
    source: str = ""
    approx: bool = False

    @property
    def difference_nanos(self) -> int | None:
        """What the provider reports above the cost by the price rows, or None if one of them is unknown."""
        if self.reported_nanos is None or self.computed_nanos is None:
            return None
        return self.reported_nanos - self.computed_nanos


UNKNOWN_COST = CallCost()


def usd(nanos: int) -> float:
    """Return nano-dollars as US dollars."""
    return nanos / NANOS_PER_USD


def exact_dollars(nanos: int) -> str:
    """Write nano-dollars as US dollars by their decimal digits: 100,000,001 is `0.100000001`."""
    whole, rest = divmod(abs(nanos), NANOS_PER_USD)
    digits = f"{whole}.{rest:09d}".rstrip("0").rstrip(".")
    return f"-{digits}" if nanos < 0 else digits


def nanos_of(dollars: float | int | str | Decimal) -> int:
    """Return US dollars as whole nano-dollars, by their decimal digits: 0.1 is 100,000,000. Raises ValueError for what is not a number."""
    exact = Decimal(repr(dollars)) if isinstance(dollars, float) else Decimal(dollars)
    if not exact.is_finite():
        raise ValueError(f"{dollars!r} is no amount")
    return int((exact * NANOS_PER_USD).quantize(Decimal(1), rounding=ROUND_HALF_EVEN))


def add_costs(costs: Iterable[CallCost]) -> CallCost:
    """Return what several calls cost together: a sum is unknown where one of its terms is; parts are summed as far as known."""
    every = tuple(costs)
    parts: dict[Cause, int] = {}
    for cost in every:
        for cause, nanos in cost.parts.items():
            parts[cause] = parts.get(cause, 0) + nanos
    return CallCost(
        nanos=_sum(cost.nanos for cost in every),
        parts=parts,
        reported_nanos=_sum(cost.reported_nanos for cost in every) if every else None,
        computed_nanos=_sum(cost.computed_nanos for cost in every),
        saved_nanos=_sum(cost.saved_nanos for cost in every),
        source=",".join(dict.fromkeys(cost.source for cost in every if cost.source)),
        approx=any(cost.approx for cost in every),
    )


def apportion(total: int, weights: Mapping[Name, int]) -> dict[Name, int]:
    """Return `total` split by weights that are not negative, exactly, by the largest remainder; names of weight 0 get nothing.

    Where all weights are 0, nothing is split. Raises ValueError for a negative total or weight.
    """
    if total < 0 or min(weights.values(), default=0) < 0:
        raise ValueError("a total and weights that are not negative can be split")
    whole = sum(weights.values())
    if whole == 0:
        return {}
    shares = {name: divmod(total * weight, whole) for name, weight in weights.items() if weight}
    split = {name: share for name, (share, _) in shares.items()}
    left = total - sum(split.values())
    for name in sorted(shares, key=lambda one: -shares[one][1])[:left]:
        split[name] += 1
    return split


def _sum(amounts: Iterable[int | None]) -> int | None:
    total = 0
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total

"""Token counts with one algebra, whatever the provider counted.

`output_tokens = answer + reasoning`, always. `input_tokens` includes `cached_input_tokens` and `cache_write_tokens`, always
(OpenTelemetry's meaning; Anthropic reports them beside it). `None` means not reported, which is not 0.
"""

from __future__ import annotations

from typing import Any

import msgspec


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


class TokenEstimate:
    """The estimate of a text that arrives in pieces: the sum of the estimates of small pieces would be too high."""

    __slots__ = ("_other", "_plain")

    def __init__(self) -> None:
        self._plain = 0
        self._other = 0

    def add(self, text: str) -> None:
        """Count a piece."""
        plain = len(text) if text.isascii() else _ascii_characters(text)
        self._plain += plain
        self._other += len(text) - plain

    @property
    def tokens(self) -> int:
        """The estimate so far, 0 before there is any text."""
        if not self._plain and not self._other:
            return 0
        return max(1, round(self._plain / 4 + self._other / 1.5))

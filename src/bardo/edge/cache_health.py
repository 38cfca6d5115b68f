"""What was seen of the prompt caches of providers and their servers."""

from __future__ import annotations

import msgspec


class CacheUse(msgspec.Struct, kw_only=True):
    """The calls that one place answered, and how many of their tokens it read from its cache.

    `expected_tokens` is how many were expected to be there, and `off_tokens` the sum of how far each expectation was off.
    """

    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    expected_tokens: int = 0
    off_tokens: int = 0


class CacheHealth(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The prompt cache of a model at a provider, or at one of its servers, since this process began.

    `hit_rate` is the share of the prompts' tokens that were read from it. `half_life_seconds` is after which pause half of a prompt is
    left there: as measured after `observations` pauses, None where more than half is left after the longest.
    """

    model: str
    calls: int
    input_tokens: int
    cached_tokens: int
    expected_tokens: int
    mean_error_tokens: int
    hit_rate: float
    half_life_seconds: float | None = None
    observations: int = 0

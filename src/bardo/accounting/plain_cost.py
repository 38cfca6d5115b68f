"""The cost of a plain call, in a few operations: its rates are whole nano-dollars a token, and nothing of it has a price of its own.

Most calls are plain. What `cost.py` works out step by step for any call, this gives at once for them; a test holds both equal.
"""

from __future__ import annotations

from bardo.accounting.price import Price
from bardo.values.cost import CallCost, Cause
from bardo.values.usage import Usage, UsageDetails


def plain_cost(price: Price, usage: Usage) -> CallCost | None:
    """Return what a call cost by its price; None for a price or a call that is not plain."""
    rates = price.plain
    if rates is None:
        return None
    given, output, details = usage.input_tokens, usage.output_tokens, usage.details
    if (
        given is None
        or output is None
        or given > rates.most_input
        or not (details is None or _is_plain(details, price))
    ):
        return None
    cached, written, thought = usage.cached_input_tokens, usage.cache_write_tokens, usage.reasoning_tokens
    thought = min(thought or 0, output)
    saved = None
    if cached is not None or written is not None:
        cached, written = cached or 0, written or 0
        saved = given * rates.input
    fresh = max(0, given - (cached or 0) - (written or 0))
    amounts: tuple[tuple[Cause, int], ...] = (
        ("input", fresh * rates.input),
        ("cache_read", (cached or 0) * rates.cache_read),
        ("cache_write", (written or 0) * rates.cache_write),
        ("answer", (output - thought) * rates.answer),
        ("thinking", thought * rates.thinking),
    )
    parts = {cause: nanos for cause, nanos in amounts if nanos}
    total = sum(parts.values())
    if saved is not None:
        saved -= total - (output - thought) * rates.answer - thought * rates.thinking
    return CallCost(nanos=total, parts=parts, computed_nanos=total, saved_nanos=saved, source=price.source)


def _is_plain(details: UsageDetails, price: Price) -> bool:
    """Whether nothing of a call has a price of its own."""
    tier = details.service_tier
    if tier in price.variants or tier not in price.usual_tiers:
        return False
    if details.billed_input_tokens is not None or details.billed_output_tokens is not None:
        return False
    return not (
        details.searches
        or details.unpriced_tools
        or details.cache_write_1h_tokens
        or details.audio_input_tokens
        or details.cached_audio_tokens
        or details.audio_output_tokens
        or details.image_input_tokens
        or details.image_output_tokens
    )

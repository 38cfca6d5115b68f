"""Why a candidate is not asked, as words that a program reads: `lacks:visible_thinking`, `latency:2400`, `down`, `private`."""

from __future__ import annotations

DOWN = "down"
"""Calls to it fail now."""
PRIVATE = "private"
"""The call is private, and this provider is not."""
PHASE_CAP = "phase_cap"
"""The model is rated above what the agent's phase allows."""
TIER_CAP = "tier_cap"
"""The model is rated above what the agent's tier allows."""
OTHER_MODEL = "other_model"
"""It is not the model that the call names."""

_LACKS = "lacks:"
_LATENCY = "latency:"

_SENTENCES = {
    DOWN: "calls to it fail now",
    PRIVATE: "the call is private, and this provider is not",
    PHASE_CAP: "the model is rated above what this phase allows",
    TIER_CAP: "the model is rated above what this tier allows",
    OTHER_MODEL: "the call names another model",
}


def lacks(feature: str) -> str:
    """Return the reason of a candidate without a required feature."""
    return f"{_LACKS}{feature}"


def latency(milliseconds: int) -> str:
    """Return the reason of a candidate that nine of ten times takes up to `milliseconds`, which is too long."""
    return f"{_LATENCY}{milliseconds}"


def sentence(reason: str) -> str:
    """Return a reason for a person."""
    if reason.startswith(_LACKS):
        return f"it does not have {reason.removeprefix(_LACKS)}"
    if reason.startswith(_LATENCY):
        return f"it takes up to {reason.removeprefix(_LATENCY)} ms"
    return _SENTENCES.get(reason, reason)

"""Which earlier reasoning the model families behind Converse take back, by globs of their ids.

Source: Amazon's pages on Converse and Nova 2's extended thinking, the recordings, and what clients of Bedrock found, as of 2026-11.
"""

from __future__ import annotations

from bardo.catalog.matching import matches_any, matches_glob

_UNSIGNED = ("*amazon.nova-2*", "*minimax.*")


def is_claude(model: str) -> bool:
    """Whether a model id, with its geography or an ARN before it, is one of Claude's: it takes back what it signed."""
    return matches_glob(model.lower(), "*anthropic.claude*")


def takes_unsigned(model: str) -> bool:
    """Whether earlier reasoning is taken back without a signature."""
    return matches_any(model.lower(), _UNSIGNED)

"""Arguments of tool calls that say nothing: servers and clients write none of them, space or `null` where an empty object is meant."""

from __future__ import annotations


def has_no_arguments(text: str) -> bool:
    """Whether the arguments of a call, as text, are none."""
    return text.strip() in ("", "null")


def argument_text(text: str) -> str:
    """Return the arguments of a call as JSON text: an empty object where there are none."""
    return "{}" if has_no_arguments(text) else text

"""Which Claude models have no structured output, by globs of their ids: it binds the answer and the arguments of tools to a schema.

Source: Anthropic's page on structured outputs, as of 2026-11.
"""

from __future__ import annotations

from bardo.catalog.matching import matches_any

_WITHOUT = (
    *("claude-3-*", "claude-2*", "claude-instant*"),
    *("claude-opus-4", "claude-opus-4-0*", "claude-opus-4-2025[0-9][0-9][0-9][0-9]*", "claude-opus-4@*"),
    *("claude-sonnet-4", "claude-sonnet-4-0*", "claude-sonnet-4-2025[0-9][0-9][0-9][0-9]*", "claude-sonnet-4@*"),
)


def binds_schemas(model: str) -> bool:
    """Whether a model has structured output; other vendors' models behind this dialect are taken to have none.

    Vendor prefixes and dots aside: `anthropic/claude-opus-4.8` is `claude-opus-4-8`.
    """
    name = model.lower().rsplit("/", 1)[-1].replace(".", "-")
    name = name[max(0, name.find("claude-")) :]
    return name.startswith("claude-") and not matches_any(name, _WITHOUT)

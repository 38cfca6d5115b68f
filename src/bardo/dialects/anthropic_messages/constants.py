"""The words of the Anthropic Messages dialect that more than one of its files needs."""

from __future__ import annotations

from typing import Final

from bardo.dialects.signed_blocks import SignedBlocks
from bardo.values.events import FinishReason

NAME: Final = "anthropic_messages"
TITLE = "Anthropic Messages"
FORMAT = "anthropic-claude-v1"

SIGNED_BLOCKS = SignedBlocks(
    FORMAT,
    thinking=lambda text, signature: {"type": "thinking", "thinking": text, "signature": signature},
    redacted=lambda data: {"type": "redacted_thinking", "data": data},
)
"""The blocks that hold opaque state."""

REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
    "pause_turn": "pause",
    "compaction": "pause",
}
"""The dialect's stop reasons in our words."""

SAMPLING = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "stop": "stop_sequences",
}
"""The sampling parameters by their names here."""

MARKER = "cache_control"
"""Marks where a cached prefix of the prompt ends. Chat clients send it by this name too."""

PARTS = "content.parts"
"""Where the texts of a search result are kept apart, among the fields that only this dialect has."""
PARTS_JOIN = "\n\n"
"""What stands between the parts of a search result in the text of the document."""

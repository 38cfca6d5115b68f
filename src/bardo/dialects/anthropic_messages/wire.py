"""What a Messages request looks like, as Anthropic's reference says it (`POST /v1/messages`, 2026-11).

What bardo has a word for is read; fields beside it are carried as they came.

The words of the Anthropic Messages dialect that more than one of its files needs.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from bardo.dialects.shared.states import SignedBlocks
from bardo.dialects.shared.structs import Unknown, Wire
from bardo.values.events import FinishReason


class Text(Wire, tag="text", kw_only=True):
    """Words."""

    CARRIED: ClassVar = ("citations", "cache_control")
    text: str
    citations: Any = None
    cache_control: Any = None


class Base64Source(Wire, tag="base64", kw_only=True):
    """The bytes of a picture or a document."""

    media_type: str
    data: str


class UrlSource(Wire, tag="url", kw_only=True):
    """Where a picture or a document is."""

    url: str


class DocumentBase64(Wire, tag="base64", kw_only=True):
    """The bytes of a document, whose type may be missing."""

    data: str
    media_type: str | None = None


class TextSource(Wire, tag="text", kw_only=True):
    """The words of a document."""

    data: str
    media_type: str | None = None


class Image(Wire, tag="image", kw_only=True):
    """A picture."""

    CARRIED: ClassVar = ("transformations", "cache_control")
    source: Base64Source | UrlSource
    transformations: Any = None
    cache_control: Any = None


class Document(Wire, tag="document", kw_only=True):
    """A document. One that was uploaded, or is made of blocks, is unknown here."""

    CARRIED: ClassVar = ("context", "citations", "cache_control")
    source: DocumentBase64 | TextSource | UrlSource
    title: str | None = None
    context: Any = None
    citations: Any = None
    cache_control: Any = None


class SearchResult(Wire, tag="search_result", kw_only=True):
    """A result of the caller's own search."""

    CARRIED: ClassVar = ("citations", "cache_control")
    source: str
    content: list[Any]
    title: str | None = None
    citations: Any = None
    cache_control: Any = None


class Thinking(Wire, tag="thinking", kw_only=True):
    """Thinking, with the signature that proves whose it is."""

    thinking: str
    signature: str | None = None


class RedactedThinking(Wire, tag="redacted_thinking", kw_only=True):
    """Thinking that only Anthropic can read."""

    data: str


class ToolUse(Wire, tag="tool_use", kw_only=True):
    """A call of a tool."""

    CARRIED: ClassVar = ("caller", "toolset_name", "cache_control")
    id: str
    name: str
    input: dict[str, Any] | None = None
    caller: Any = None
    toolset_name: Any = None
    cache_control: Any = None


ResultPart = Text | Image | Document | SearchResult | Unknown
"""What the result of a tool may hold."""


class ToolResult(Wire, tag="tool_result", kw_only=True):
    """What a tool gave back."""

    CARRIED: ClassVar = ("toolset_name", "cache_control")
    tool_use_id: str
    content: str | list[ResultPart] | None = None
    is_error: bool | None = None
    toolset_name: Any = None
    cache_control: Any = None


Block = Text | Image | Document | SearchResult | Thinking | RedactedThinking | ToolUse | ToolResult | Unknown
"""What a message may hold."""


class Message(Wire, kw_only=True):
    """A turn."""

    role: str
    content: str | list[Block]


class Tool(Wire, kw_only=True):
    """A function that the model may call: a tool that Anthropic defines has another type, and is carried whole."""

    CARRIED: ClassVar = ("cache_control", "allowed_callers", "defer_loading", "input_examples", "eager_input_streaming")
    name: str
    input_schema: dict[str, Any]
    description: str | None = None
    type: str | None = None
    strict: bool | None = None
    cache_control: Any = None
    allowed_callers: Any = None
    defer_loading: Any = None
    input_examples: Any = None
    eager_input_streaming: Any = None


class ToolChoice(Wire, kw_only=True):
    """Which tools may be called."""

    type: str
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


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

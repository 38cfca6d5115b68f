"""The wire format of Messages requests, replies and frames, as Anthropic's reference says it (`POST /v1/messages`, 2026-11).

What bardo has a word for is read; fields beside it are carried as they came.
"""

from typing import ClassVar, Final

from bardo.dialects.shared.json_values import JsonObject, JsonValue
from bardo.dialects.shared.states import SignedBlocks
from bardo.dialects.shared.structs import Unknown, Wire
from bardo.values.events import FinishReason

NAME: Final = "anthropic_messages"
TITLE = "Anthropic Messages"
FORMAT = "anthropic-claude-v1"


class Text(Wire, tag="text", kw_only=True):
    """Words."""

    CARRIED: ClassVar = ("citations", "cache_control")
    text: str
    citations: JsonValue = None
    cache_control: JsonValue = None


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
    transformations: JsonValue = None
    cache_control: JsonValue = None


class Document(Wire, tag="document", kw_only=True):
    """A document. One that was uploaded, or is made of blocks, is unknown here."""

    CARRIED: ClassVar = ("context", "citations", "cache_control")
    source: DocumentBase64 | TextSource | UrlSource
    title: str | None = None
    context: JsonValue = None
    citations: JsonValue = None
    cache_control: JsonValue = None


class SearchResult(Wire, tag="search_result", kw_only=True):
    """A result of the caller's own search. One whose parts are not just texts is carried whole."""

    CARRIED: ClassVar = ("citations", "cache_control")
    source: str
    content: list[JsonValue]
    title: str | None = None
    citations: JsonValue = None
    cache_control: JsonValue = None


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
    input: JsonObject | None = None
    caller: JsonValue = None
    toolset_name: JsonValue = None
    cache_control: JsonValue = None


ResultPart = Text | Image | Document | SearchResult | Unknown
"""The parts of a tool's result."""


class ToolResult(Wire, tag="tool_result", kw_only=True):
    """The result of a tool."""

    CARRIED: ClassVar = ("toolset_name", "cache_control")
    tool_use_id: str
    content: str | list[ResultPart] | None = None
    is_error: bool | None = None
    toolset_name: JsonValue = None
    cache_control: JsonValue = None


Block = Text | Image | Document | SearchResult | Thinking | RedactedThinking | ToolUse | ToolResult | Unknown
"""The blocks of a message."""


class Message(Wire, kw_only=True):
    """A turn."""

    role: str
    content: str | list[Block]


class Tool(Wire, kw_only=True):
    """A function that the model may call."""

    CARRIED: ClassVar = ("cache_control", "allowed_callers", "defer_loading", "input_examples", "eager_input_streaming")
    name: str
    input_schema: JsonObject
    description: str | None = None
    type: str | None = None
    strict: bool | None = None
    cache_control: JsonValue = None
    allowed_callers: JsonValue = None
    defer_loading: JsonValue = None
    input_examples: JsonValue = None
    eager_input_streaming: JsonValue = None


class HostedTool(Wire, kw_only=True):
    """A tool that Anthropic defines, which has another type than a function and is carried whole."""

    type: str
    name: str | None = None


class ToolChoice(Wire, kw_only=True):
    """Which tools may be called."""

    type: str
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class ThinkingConfig(Wire, kw_only=True):
    """How the model should think. Of a budget only `enabled` says something: elsewhere it may be anything."""

    type: str
    budget_tokens: JsonValue = None
    display: str | None = None


class OutputFormat(Wire, kw_only=True):
    """The schema of the answer."""

    type: str
    schema: JsonObject | None = None


class OutputConfig(Wire, kw_only=True):
    """How the answer should be."""

    effort: str | None = None
    format: OutputFormat | None = None
    task_budget: JsonValue = None


class Request(Wire, kw_only=True):
    """A request. Of a tool its `type` says whether it is a Tool or a HostedTool; `output_format` is an older place of `output_config`'s."""

    CARRIED: ClassVar = (
        "billing_policy", "cache_control", "compaction", "container", "context_management", "diagnostics", "fallback_credit_token",
        "fallbacks", "inference_geo", "mcp_servers", "metadata", "service_tier", "speed", "thread", "user_profile_id", "workspace_id",
    )  # fmt: skip
    messages: list[Message]
    model: str | None = None
    max_tokens: int | None = None
    system: str | list[Block] | None = None
    tools: list[JsonObject] | None = None
    tool_choice: ToolChoice | None = None
    thinking: ThinkingConfig | None = None
    output_config: OutputConfig | None = None
    output_format: JsonValue = None
    temperature: int | float | None = None
    top_p: int | float | None = None
    top_k: int | float | None = None
    stop_sequences: list[str] | None = None
    stream: bool | None = None
    bardo: JsonValue = None
    billing_policy: JsonValue = None
    cache_control: JsonValue = None
    compaction: JsonValue = None
    container: JsonValue = None
    context_management: JsonValue = None
    diagnostics: JsonValue = None
    fallback_credit_token: JsonValue = None
    fallbacks: JsonValue = None
    inference_geo: JsonValue = None
    mcp_servers: JsonValue = None
    metadata: JsonValue = None
    service_tier: JsonValue = None
    speed: JsonValue = None
    thread: JsonValue = None
    user_profile_id: JsonValue = None
    workspace_id: JsonValue = None


class CloudFields(Wire, kw_only=True):
    """The fields that only a cloud's form of a body has (Bedrock, Vertex AI): Anthropic itself takes both as headers."""

    anthropic_version: str | None = None
    anthropic_beta: list[str] | None = None


# Replies. What a server leaves out, or gives as null, is empty.


class ReplyText(Wire, tag="text", kw_only=True):
    """Words of the model."""

    CARRIED: ClassVar = ("citations",)
    text: str | None = None
    citations: JsonValue = None


class ReplyThinking(Wire, tag="thinking", kw_only=True):
    """Thinking, with its signature where it is whole."""

    thinking: str | None = None
    signature: str | None = None


class ReplyRedactedThinking(Wire, tag="redacted_thinking", kw_only=True):
    """Thinking that only Anthropic can read."""

    data: str | None = None


class ReplyToolUse(Wire, tag="tool_use", kw_only=True):
    """A call of a tool. Some servers write its input as a text of JSON."""

    CARRIED: ClassVar = ("caller", "toolset_name")
    id: str | None = None
    name: str | None = None
    input: JsonValue = None
    caller: JsonValue = None
    toolset_name: JsonValue = None


ReplyBlock = ReplyText | ReplyThinking | ReplyRedactedThinking | ReplyToolUse
"""The known blocks in the content of a message; any other block is carried whole."""


class ReplyMessage(Wire, tag="message", kw_only=True):
    """A whole message, or how one begins. `usage` is read by `usage.py`, which believes no count."""

    CARRIED: ClassVar = ("container", "context_management", "diagnostics", "input_transformations", "stop_details")
    content: list[ReplyBlock] | None = None
    id: str | None = None
    role: JsonValue = None
    model: str | None = None
    stop_reason: str | None = None
    stop_sequence: JsonValue = None
    usage: JsonValue = None
    container: JsonValue = None
    context_management: JsonValue = None
    diagnostics: JsonValue = None
    input_transformations: JsonValue = None
    stop_details: JsonValue = None


class TextDelta(Wire, tag="text_delta", kw_only=True):
    """A piece of the answer."""

    text: str | None = None


class ThinkingDelta(Wire, tag="thinking_delta", kw_only=True):
    """A piece of the thinking. `estimated_tokens` comes with a beta header, instead of text that is not shown."""

    CARRIED: ClassVar = ("estimated_tokens",)
    thinking: str | None = None
    estimated_tokens: JsonValue = None


class SignatureDelta(Wire, tag="signature_delta", kw_only=True):
    """The signature of the thinking before it."""

    signature: str | None = None


class InputDelta(Wire, tag="input_json_delta", kw_only=True):
    """A piece of a tool's input."""

    partial_json: str | None = None


class CitationsDelta(Wire, tag="citations_delta", kw_only=True):
    """A citation of the text before it."""

    citation: JsonValue = None


Delta = TextDelta | ThinkingDelta | SignatureDelta | InputDelta | CitationsDelta


class MessageStart(Wire, tag="message_start", kw_only=True):
    """The first frame of a stream."""

    message: ReplyMessage


class BlockStart(Wire, tag="content_block_start", kw_only=True):
    """The beginning of a block."""

    index: int
    content_block: ReplyBlock


class BlockDelta(Wire, tag="content_block_delta", kw_only=True):
    """A piece of a block."""

    index: int
    delta: Delta


class BlockStop(Wire, tag="content_block_stop", kw_only=True):
    """The end of a block."""

    index: int


class StopDelta(Wire, kw_only=True):
    """Why a message ended."""

    CARRIED: ClassVar = ("container", "stop_details")
    stop_reason: str | None = None
    stop_sequence: JsonValue = None
    container: JsonValue = None
    stop_details: JsonValue = None


class MessageDelta(Wire, tag="message_delta", kw_only=True):
    """The fields of a message at its end."""

    CARRIED: ClassVar = ("context_management", "input_transformations")
    delta: StopDelta | None = None
    usage: JsonValue = None
    context_management: JsonValue = None
    input_transformations: JsonValue = None


class MessageStop(Wire, tag="message_stop"):
    """The last frame of a stream."""


class Ping(Wire, tag="ping"):
    """A frame that says nothing."""


Frame = ReplyMessage | MessageStart | BlockStart | BlockDelta | BlockStop | MessageDelta | MessageStop | Ping
"""A frame of a stream, or a whole reply."""


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

SAMPLING = {"temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "stop": "stop_sequences"}
"""The sampling parameters by their names here."""

MARKER = "cache_control"
"""Marks where a cached prefix of the prompt ends. Chat clients send it by this name too."""

PARTS = "content.parts"
"""Where the texts of a search result are kept apart, among the fields that only this dialect has."""
PARTS_JOIN = "\n\n"
"""The separator of the parts of a search result in the text of the document."""

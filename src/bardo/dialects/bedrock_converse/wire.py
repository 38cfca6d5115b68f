"""The wire format of Converse's requests and replies, as Amazon's service model `bedrock-runtime` says it (botocore, 2026-11).

A content block is of the kind whose one member it has. What bardo has a word for is read; fields beside it are carried as they came.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import msgspec

from bardo.dialects.shared.content_forms import Citation, CitationForm, Citations
from bardo.dialects.shared.json_values import JsonObject, without
from bardo.dialects.shared.states import SignedBlocks
from bardo.dialects.shared.structs import Wire
from bardo.values.events import FinishReason


class Shape(Wire, kw_only=True, rename="camel"):
    """An object of the service model: its names are read in one spelling."""

    ONE_SPELLING: ClassVar = True


class ImageSource(Shape, kw_only=True):
    """The bytes of a picture in base64, or where they are."""

    bytes: str | None = None


class Image(Shape, kw_only=True):
    """A picture."""

    format: str
    source: ImageSource


class DocumentSource(Shape, kw_only=True):
    """The bytes of a document in base64, its text, or where it is."""

    bytes: str | None = None
    text: str | None = None


class Document(Shape, kw_only=True):
    """A document with the name by which the model knows it."""

    source: DocumentSource
    format: str | None = None
    name: str | None = None


class CitedPiece(Shape, kw_only=True):
    """A piece of an answer that cites."""

    text: str | None = None


class CitationsContent(Shape, kw_only=True):
    """An answer that cites, and what it cites."""

    content: list[CitedPiece] | None = None
    citations: object = None


class Part(Shape, kw_only=True):
    """A part of a message or of a tool's result; video and search results are not read."""

    text: str | None = None
    json: object = None
    image: Image | None = None
    document: Document | None = None
    citations_content: CitationsContent | None = None
    video: object = None
    search_result: object = None


class ToolUse(Shape, kw_only=True):
    """A call of a tool. One with a `type` is of a tool that Bedrock runs itself."""

    tool_use_id: str
    name: str
    input: JsonObject | None = None
    type: object = None


class ToolResult(Shape, kw_only=True):
    """The result of a tool. One with a `type` is of a tool that Bedrock ran itself."""

    tool_use_id: str
    content: list[Part] | None = None
    status: str | None = None
    type: object = None


class ReasoningText(Shape, kw_only=True):
    """Thinking of the model, and what proves that it is so."""

    text: str | None = None
    signature: str | None = None


class ReasoningContent(Shape, kw_only=True):
    """Thinking, as text or as what only its maker can read."""

    reasoning_text: ReasoningText | None = None
    redacted_content: str | None = None


class Block(Part, kw_only=True):
    """A block of a message. A block that has none of the members that are read is kept whole."""

    reasoning_content: ReasoningContent | None = None
    tool_use: ToolUse | None = None
    tool_result: ToolResult | None = None
    cache_point: object = None
    guard_content: object = None


class Message(Shape, kw_only=True):
    """A message of the user or of the assistant."""

    role: str
    content: list[Block]


class InferenceConfig(Shape, kw_only=True):
    """How the answer is sampled."""

    max_tokens: int | None = None
    temperature: int | float | None = None
    top_p: int | float | None = None
    stop_sequences: list[str] | None = None


class InputSchema(Shape, kw_only=True):
    """The schema of a tool's arguments."""

    json: JsonObject | None = None


class ToolSpec(Shape, kw_only=True):
    """A function."""

    name: str
    input_schema: InputSchema
    description: str | None = None
    strict: bool | None = None


class SystemTool(Shape, kw_only=True):
    """A tool that Bedrock runs itself."""

    name: str | None = None


class Tool(Shape, kw_only=True):
    """A function, a tool of Bedrock's, or a cache point among them."""

    tool_spec: ToolSpec | None = None
    system_tool: SystemTool | None = None
    cache_point: object = None


class NamedTool(Shape, kw_only=True):
    """The tool that must be called."""

    name: str


class ToolChoice(Shape, kw_only=True):
    """Which tools may be called: the member that is there says it."""

    auto: object = None
    any: object = None
    tool: NamedTool | None = None


class ToolConfig(Shape, kw_only=True):
    """The tools, and which may be called."""

    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None


class JsonSchema(Shape, kw_only=True):
    """The schema of an answer, which is JSON in a text."""

    schema: str
    name: str | None = None
    description: str | None = None


class Structure(Shape, kw_only=True):
    """The schema of an answer."""

    json_schema: JsonSchema


class TextFormat(Shape, kw_only=True):
    """The shape of an answer."""

    type: str
    structure: Structure | None = None


class OutputConfig(Shape, kw_only=True):
    """The settings of the answer beside its sampling."""

    text_format: TextFormat | None = None


class Thinking(Wire, kw_only=True):
    """How to think, in Anthropic's words."""

    type: str | None = None
    budget_tokens: int | None = None
    display: str | None = None


class Effort(Wire, kw_only=True):
    """How much to think."""

    effort: str | None = None


class ReasoningConfig(Shape, kw_only=True):
    """How to think, in Amazon's words."""

    type: str | None = None
    max_reasoning_effort: str | None = None


class AdditionalFields(Wire, kw_only=True):
    """The fields of one family of models in its own words: how to think, and fields that are only carried."""

    thinking: Thinking | None = None
    output_config: Effort | None = None
    reasoning_effort: str | None = None
    reasoning: Effort | None = None
    reasoning_config: Thinking | str | None = None
    reasoningConfig: ReasoningConfig | None = None  # noqa: N815
    top_k: int | None = None


class TopK(Shape, kw_only=True):
    """How the answer is sampled, in Amazon's words for Nova."""

    top_k: int | None = None


class Request(Shape, kw_only=True):
    """The fields of a request that are read; its others are only carried."""

    messages: list[Message]
    system: list[Block] | None = None
    inference_config: InferenceConfig | None = None
    tool_config: ToolConfig | None = None
    output_config: OutputConfig | None = None
    additional_model_request_fields: AdditionalFields | None = None


class Padded(Shape, kw_only=True):
    """An event of a stream. `p` is padding, so that its length tells nothing."""

    p: object = None


class MessageStart(Padded, kw_only=True):
    """The message begins."""

    role: object = None


class ToolUseStart(Shape, kw_only=True):
    """The call that begins."""

    tool_use_id: str | None = None
    name: str | None = None
    type: object = None


class BlockStart(Shape, kw_only=True):
    """The kind of a block that begins."""

    tool_use: ToolUseStart | None = None


class ContentBlockStart(Padded, kw_only=True):
    """A block begins: only tool calls, and blocks of no kind that is read, have such an event."""

    content_block_index: int
    start: BlockStart | None = None


class ReasoningDelta(Shape, kw_only=True):
    """A piece of thinking, or of its state."""

    text: str | None = None
    signature: str | None = None
    redacted_content: str | None = None


class ToolUseDelta(Shape, kw_only=True):
    """A piece of a call's arguments: text, though some models give the object."""

    input: object = None


class BlockDelta(Shape, kw_only=True):
    """A piece of a block."""

    text: str | None = None
    reasoning_content: ReasoningDelta | None = None
    tool_use: ToolUseDelta | None = None
    citation: object = None


class ContentBlockDelta(Padded, kw_only=True):
    """A block goes on, or begins."""

    delta: BlockDelta
    content_block_index: int


class ContentBlockStop(Padded, kw_only=True):
    """A block ends."""

    content_block_index: int


class MessageStop(Padded, kw_only=True):
    """The message ends."""

    CARRIED: ClassVar = ("additionalModelResponseFields",)
    stop_reason: object = None
    additionalModelResponseFields: object = None  # noqa: N815


class Metadata(Padded, kw_only=True):
    """The totals, which come last."""

    CARRIED: ClassVar = ("metrics", "trace", "performanceConfig", "serviceTier")
    usage: JsonObject | None = None
    metrics: object = None
    trace: object = None
    performanceConfig: object = None  # noqa: N815
    serviceTier: object = None  # noqa: N815


class WrittenToolUse(Shape, kw_only=True):
    """A call in a whole reply, with its arguments as they were written."""

    tool_use_id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw()
    type: object = None


class WrittenBlock(Shape, kw_only=True):
    """A block of a whole reply."""

    text: str | None = None
    reasoning_content: ReasoningContent | None = None
    tool_use: WrittenToolUse | None = None
    citations_content: CitationsContent | None = None


class WrittenMessage(Shape, kw_only=True):
    """The message of a whole reply."""

    content: list[WrittenBlock]
    role: str | None = None


class Output(Shape, kw_only=True):
    """The output of the model."""

    message: WrittenMessage


class Reply(Shape, kw_only=True):
    """A whole reply."""

    CARRIED: ClassVar = ("additionalModelResponseFields", "metrics", "trace", "performanceConfig", "serviceTier")
    output: Output
    stop_reason: str | None = None
    usage: JsonObject | None = None
    metrics: object = None
    additionalModelResponseFields: object = None  # noqa: N815
    trace: object = None
    performanceConfig: object = None  # noqa: N815
    serviceTier: object = None  # noqa: N815


NAME: Final = "bedrock_converse"
TITLE = "Converse"

FIELD = "reasoningContent"
"""The field reasoning stands in, and so the format of a stretch of it: a reply does not say which model thought."""

FORMAT = "bedrock-v1"
"""Signatures and redacted thinking: Bedrock has no word for them, and only Bedrock takes them back, whoever's model made them."""

MARKER = "cache_control"
"""Anthropic's marker of a cached prefix, which stands in a block; Converse has a block of its own behind it."""


def _thinking(text: str, signature: str) -> JsonObject:
    # Models that sign nothing refuse a signature that is empty.
    return {FIELD: {"reasoningText": {"text": text, **({"signature": signature} if signature else {})}}}


SIGNED_BLOCKS = SignedBlocks(FORMAT, _thinking, redacted=lambda data: {FIELD: {"redactedContent": data}})
"""The blocks that hold opaque state."""


def text_block(text: str, fields: JsonObject) -> JsonObject:
    """Return text, with its citations around it where it has any."""
    if "citations" not in fields:
        return {"text": text, **fields}
    inner = {name: value for name, value in fields.items() if name not in ("content", "block")}
    content = fields.get("content", [{"text": text}])
    return {"citationsContent": {**inner, "content": content}, **fields.get("block", {})}


REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "guardrail_intervened": "refusal",
    "content_filtered": "refusal",
    "malformed_model_output": "error",
    "malformed_tool_use": "error",
}
"""The dialect's stop reasons in our words."""

PADDING = "p"
"""Letters Bedrock adds to each event so that its length tells nothing; they mean nothing."""

THOUGHT: JsonObject = {FIELD: {"reasoningText": {"text": None, "signature": None}, "redactedContent": None}}
"""The known fields of a block of reasoning."""


def unknown_fields(value: JsonObject, known: JsonObject) -> JsonObject:
    """Return what `value` holds beside `known`, which maps names to None or to the known names inside them."""
    left = without(value, *known)
    for name, inner in known.items():
        held = value.get(name)
        if isinstance(inner, dict) and isinstance(held, dict) and (more := unknown_fields(held, inner)):
            left[name] = more
    return left


CALL: JsonObject = {"toolUse": {"toolUseId": None, "name": None, "input": None}}
"""The known fields of a tool call."""


def is_hosted(kind: Any, plain: str) -> bool:
    """Whether Bedrock itself runs or ran the tool: only such calls and results have another type than the `plain` one."""
    return str(kind or plain) != plain


ADDITIONAL = "additionalModelRequestFields"
AMOUNTS: JsonObject = {
    "thinking": {"type": None, "budget_tokens": None},
    "output_config": {"effort": None},
    "reasoning_effort": None,
    "reasoning": {"effort": None},
    "reasoning_config": {"type": None, "budget_tokens": None},
    "reasoningConfig": {"type": None, "maxReasoningEffort": None},
}
"""The additional fields that say how to think, in all families, and which of their words say how much."""

SAMPLING = {"temperature": "temperature", "top_p": "topP", "stop": "stopSequences"}
"""The sampling parameters by their names here."""


_FIELD = "citations"


def _decode(value: Any) -> Citations:
    citations, lost = [], dict[str, None]()
    for entry in value if isinstance(value, list) else (value,):
        location = entry.get("location") if isinstance(entry, dict) else None
        page = location.get("web") if isinstance(location, dict) else None
        url = page.get("url") if isinstance(page, dict) else None
        if not isinstance(url, str) or not url:
            lost[_FIELD] = None
            continue
        title = entry.get("title")
        citations.append(
            Citation(url, title if isinstance(title, str) else "", cited_text=_text(entry.get("sourceContent")))
        )
    return Citations(tuple(citations), tuple(lost))


def _text(pieces: Any) -> str:
    listed = pieces if isinstance(pieces, list) else []
    return "".join(entry["text"] for entry in listed if isinstance(entry, dict) and isinstance(entry.get("text"), str))


def _write(citations: Sequence[Citation]) -> list[JsonObject]:
    return [
        {
            "location": {"web": {"url": citation.url}},
            **({"title": citation.title} if citation.title else {}),
            **({"sourceContent": [{"text": citation.cited_text}]} if citation.cited_text else {}),
        }
        for citation in citations
    ]


CITATIONS = CitationForm(field=_FIELD, read=_decode, write=_write, whole_blocks=True)

"""Compare bardo's rows and dialects with the types of the official SDKs that are installed.

    python tools/check_facts.py

Each SDK names model ids, efforts, operations, reasons to end, stream events, usage fields and betas, and of each object its fields and the
literal by which it is known. Printed is what bardo does not know or says otherwise, and structs that nobody compares, without what
`accepted_differences.toml` accepts. An SDK that is not installed is not asked. Ends with 1 where anything is left, and where an accepted
difference is none any more.
"""

from __future__ import annotations

import ast
import gzip
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

import msgspec

import bardo
from bardo.catalog.models import builtin_models
from bardo.catalog.replay import builtin_replay
from bardo.dialects.shared.structs import OTHERS
from bardo.surfaces.gateway.openapi.document import openapi_document
from bardo.values.request import EFFORTS

SOURCE = Path(bardo.__file__).parent
ACCEPTED = Path(__file__).with_name("accepted_differences.toml")


class Difference(NamedTuple):
    """A word of an SDK that bardo does not know, or one of bardo's that the SDK does not. `kind` is what it is a word of."""

    sdk: str
    kind: str
    word: str


class Accepted(NamedTuple):
    """Differences that are as they should be: globs of words, since when, and why."""

    sdk: str
    kind: str
    words: tuple[str, ...]
    date: str
    why: str

    def covers(self, one: Difference) -> bool:
        """Whether the difference is one of these."""
        return (self.sdk, self.kind) == one[:2] and any(fnmatchcase(one.word, glob) for glob in self.words)


class Place(NamedTuple):
    """Where an SDK names words: a module and a name in it, whose type, enum or fields they are."""

    sdk: str
    kind: str
    module: str
    name: str


PLACES = (
    Place("openai", "model", "openai.types.shared.chat_model", "ChatModel"),
    Place("openai", "model", "openai.types.shared.all_models", "AllModels"),
    Place("anthropic", "model", "anthropic.types.model", "Model"),
    Place("google", "model", "google.genai._gaos.types.interactions.model", "Model"),
    Place("openai", "effort", "openai.types.shared.reasoning_effort", "ReasoningEffort"),
    Place("anthropic", "effort", "anthropic.types.output_config_param", "OutputConfigParam.effort"),
    Place("google", "effort", "google.genai.types", "ThinkingLevel"),
    Place("google", "effort", "google.genai._gaos.types.interactions.thinkinglevel", "ThinkingLevel"),
    Place("openai_chat", "finish", "openai.types.chat.chat_completion", "Choice.finish_reason"),
    Place("openai_responses", "finish", "openai.types.responses.response", "IncompleteDetails.reason"),
    Place("anthropic_messages", "finish", "anthropic.types.stop_reason", "StopReason"),
    Place("anthropic_messages", "finish", "anthropic.types.beta.beta_stop_reason", "BetaStopReason"),
    Place("gemini", "finish", "google.genai.types", "FinishReason"),
    Place("cohere", "finish", "cohere.types.chat_finish_reason", "ChatFinishReason"),
    Place("openai_responses", "event", "openai.types.responses.response_stream_event", "ResponseStreamEvent"),
    Place("anthropic_messages", "event", "anthropic.types.raw_message_stream_event", "RawMessageStreamEvent"),
    Place("anthropic_messages", "event", "anthropic.types.raw_content_block_delta", "RawContentBlockDelta"),
    Place("openai_chat", "usage", "openai.types.completion_usage", "CompletionUsage."),
    Place("openai_responses", "usage", "openai.types.responses.response_usage", "ResponseUsage."),
    Place("anthropic_messages", "usage", "anthropic.types.usage", "Usage."),
    Place("gemini", "usage", "google.genai.types", "GenerateContentResponseUsageMetadata."),
    Place("gemini_interactions", "usage", "google.genai._gaos.types.interactions.usage", "Usage."),
    Place("anthropic", "beta", "anthropic.types.anthropic_beta_param", "AnthropicBetaParam"),
)


def words_at(place: Place) -> list[str] | None:
    """Return the words at a place, in their order; None where the SDK is not installed. Raises AttributeError for a name that is gone."""
    try:
        module = import_module(place.module)
    except ModuleNotFoundError:
        return None
    holder, dot, field = place.name.partition(".")
    value = getattr(module, holder)
    if not dot:
        return list(dict.fromkeys(_words(value)))
    if not field:
        return [_wire_name(value, name) for name in value.model_fields]
    fields = getattr(value, "model_fields", None)
    return list(_words(fields[field].annotation if fields else get_type_hints(value)[field]))


def _wire_name(model: Any, name: str) -> str:
    """Return a field's name on the wire."""
    return model.model_fields[name].alias or model.model_fields[name].serialization_alias or name


def _words(value: Any) -> Iterator[str]:
    """Yield the strings of a type: of a literal, an enum, a union, or the `type` of each model of a union."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, type) and issubclass(value, Enum):
        yield from (str(member.value) for member in value)
    elif "type" in (fields := getattr(value, "model_fields", {})):
        yield from _words(fields["type"].annotation)
    else:
        for inner in get_args(value):
            yield from _words(inner)


class Struct(NamedTuple):
    """A struct of a dialect, and the types of an SDK that have its fields."""

    sdk: str
    struct: str
    module: str
    types: tuple[str, ...]


_ANTHROPIC, _OPENAI, _RESPONSES = "anthropic.types", "openai.types.chat", "openai.types.responses"
_INTERACTIONS = "google.genai._gaos.types.interactions"
STRUCTS = (
    Struct("anthropic_messages", "Text", _ANTHROPIC, ("TextBlockParam",)),
    Struct("anthropic_messages", "Base64Source", _ANTHROPIC, ("Base64ImageSourceParam",)),
    Struct("anthropic_messages", "DocumentBase64", _ANTHROPIC, ("Base64PDFSourceParam",)),
    Struct("anthropic_messages", "UrlSource", _ANTHROPIC, ("URLImageSourceParam", "URLPDFSourceParam")),
    Struct("anthropic_messages", "TextSource", _ANTHROPIC, ("PlainTextSourceParam",)),
    Struct("anthropic_messages", "Image", _ANTHROPIC, ("ImageBlockParam",)),
    Struct("anthropic_messages", "Document", _ANTHROPIC, ("DocumentBlockParam",)),
    Struct("anthropic_messages", "SearchResult", _ANTHROPIC, ("SearchResultBlockParam",)),
    Struct("anthropic_messages", "Thinking", _ANTHROPIC, ("ThinkingBlockParam",)),
    Struct("anthropic_messages", "RedactedThinking", _ANTHROPIC, ("RedactedThinkingBlockParam",)),
    Struct("anthropic_messages", "ToolUse", _ANTHROPIC, ("ToolUseBlockParam",)),
    Struct("anthropic_messages", "ToolResult", _ANTHROPIC, ("ToolResultBlockParam",)),
    Struct(
        "anthropic_messages", "Message", f"{_ANTHROPIC}.message_param",
        ("UserMessageParam", "AssistantMessageParam", "SystemMessageParam"),
    ),
    Struct("anthropic_messages", "Tool", _ANTHROPIC, ("ToolParam",)),
    Struct(
        "anthropic_messages", "ToolChoice", _ANTHROPIC,
        ("ToolChoiceAutoParam", "ToolChoiceAnyParam", "ToolChoiceNoneParam", "ToolChoiceToolParam"),
    ),
    Struct(
        "anthropic_messages", "Request", f"{_ANTHROPIC}.beta.message_create_params", ("MessageCreateParamsStreaming",),
    ),
    Struct("anthropic_messages", "OutputConfig", f"{_ANTHROPIC}.beta", ("BetaOutputConfigParam",)),
    Struct("anthropic_messages", "OutputFormat", _ANTHROPIC, ("JSONOutputFormatParam",)),
    Struct(
        "anthropic_messages", "ThinkingConfig", _ANTHROPIC,
        ("ThinkingConfigEnabledParam", "ThinkingConfigAdaptiveParam", "ThinkingConfigDisabledParam"),
    ),
    Struct("anthropic_messages", "ReplyText", _ANTHROPIC, ("TextBlock",)),
    Struct("anthropic_messages", "ReplyThinking", _ANTHROPIC, ("ThinkingBlock",)),
    Struct("anthropic_messages", "ReplyRedactedThinking", _ANTHROPIC, ("RedactedThinkingBlock",)),
    Struct("anthropic_messages", "ReplyToolUse", _ANTHROPIC, ("ToolUseBlock",)),
    Struct("anthropic_messages", "ReplyMessage", f"{_ANTHROPIC}.beta", ("BetaMessage",)),
    Struct("anthropic_messages", "TextDelta", _ANTHROPIC, ("TextDelta",)),
    Struct("anthropic_messages", "ThinkingDelta", f"{_ANTHROPIC}.beta", ("BetaThinkingDelta",)),
    Struct("anthropic_messages", "SignatureDelta", _ANTHROPIC, ("SignatureDelta",)),
    Struct("anthropic_messages", "InputDelta", _ANTHROPIC, ("InputJSONDelta",)),
    Struct("anthropic_messages", "CitationsDelta", _ANTHROPIC, ("CitationsDelta",)),
    Struct("anthropic_messages", "MessageStart", _ANTHROPIC, ("RawMessageStartEvent",)),
    Struct("anthropic_messages", "BlockStart", _ANTHROPIC, ("RawContentBlockStartEvent",)),
    Struct("anthropic_messages", "BlockDelta", _ANTHROPIC, ("RawContentBlockDeltaEvent",)),
    Struct("anthropic_messages", "BlockStop", _ANTHROPIC, ("RawContentBlockStopEvent",)),
    Struct("anthropic_messages", "MessageDelta", f"{_ANTHROPIC}.beta", ("BetaRawMessageDeltaEvent",)),
    Struct("anthropic_messages", "StopDelta", f"{_ANTHROPIC}.raw_message_delta_event", ("Delta",)),
    Struct("anthropic_messages", "MessageStop", _ANTHROPIC, ("RawMessageStopEvent",)),
    Struct("openai_chat", "Text", _OPENAI, ("ChatCompletionContentPartTextParam",)),
    Struct("openai_chat", "Refusal", _OPENAI, ("ChatCompletionContentPartRefusalParam",)),
    Struct("openai_chat", "Image", _OPENAI, ("ChatCompletionContentPartImageParam",)),
    Struct(
        "openai_chat", "Message", _OPENAI,
        (
            "ChatCompletionSystemMessageParam", "ChatCompletionDeveloperMessageParam", "ChatCompletionUserMessageParam",
            "ChatCompletionAssistantMessageParam", "ChatCompletionToolMessageParam", "ChatCompletionFunctionMessageParam",
        ),
    ),
    Struct(
        "openai_chat", "Call", _OPENAI,
        ("ChatCompletionMessageFunctionToolCallParam", "ChatCompletionMessageCustomToolCallParam"),
    ),
    Struct("openai_chat", "Request", f"{_OPENAI}.completion_create_params", ("CompletionCreateParamsStreaming",)),
    Struct("openai_chat", "ImageUrl", f"{_OPENAI}.chat_completion_content_part_image_param", ("ImageURL",)),
    Struct("openai_chat", "File", f"{_OPENAI}.chat_completion_content_part_param", ("File",)),
    Struct("openai_chat", "FileData", f"{_OPENAI}.chat_completion_content_part_param", ("FileFile",)),
    Struct("openai_chat", "Function", f"{_OPENAI}.chat_completion_message_function_tool_call_param", ("Function",)),
    Struct("openai_chat", "Custom", f"{_OPENAI}.chat_completion_message_custom_tool_call_param", ("Custom",)),
    Struct("openai_chat", "OlderCall", f"{_OPENAI}.chat_completion_assistant_message_param", ("FunctionCall",)),
    Struct("openai_chat", "ReplyCustom", f"{_OPENAI}.chat_completion_message_custom_tool_call", ("Custom",)),
    Struct("openai_chat", "FunctionTool", _OPENAI, ("ChatCompletionFunctionToolParam",)),
    Struct("openai_chat", "FunctionDefinition", "openai.types.shared_params", ("FunctionDefinition",)),
    Struct("openai_chat", "ChosenFunction", f"{_OPENAI}.chat_completion_named_tool_choice_param", ("Function",)),
    Struct("openai_chat", "JsonSchemaFormat", "openai.types.shared_params", ("ResponseFormatJSONSchema",)),
    Struct("openai_chat", "SchemaFormat", "openai.types.shared_params.response_format_json_schema", ("JSONSchema",)),
    Struct("openai_chat", "StreamOptions", _OPENAI, ("ChatCompletionStreamOptionsParam",)),
    Struct("openai_chat", "Embedding", "openai.types.embedding_create_params", ("EmbeddingCreateParams",)),
    Struct("openai_chat", "Reply", _OPENAI, ("ChatCompletion", "ChatCompletionChunk")),
    Struct("openai_chat", "Choice", f"{_OPENAI}.chat_completion", ("Choice",)),
    Struct("openai_chat", "ReplyMessage", _OPENAI, ("ChatCompletionMessage",)),
    Struct(
        "openai_chat", "ReplyCall", _OPENAI,
        ("ChatCompletionMessageFunctionToolCall", "ChatCompletionMessageCustomToolCall"),
    ),
    Struct("openai_chat", "ReplyFunction", f"{_OPENAI}.chat_completion_chunk", ("ChoiceDeltaToolCallFunction",)),
    Struct("gemini", "Blob", "google.genai.types", ("Blob",)),
    Struct("gemini", "FileData", "google.genai.types", ("FileData",)),
    Struct("gemini", "ResponsePart", "google.genai.types", ("FunctionResponsePart",)),
    Struct("gemini", "FunctionCall", "google.genai.types", ("FunctionCall",)),
    Struct("gemini", "FunctionResponse", "google.genai.types", ("FunctionResponse",)),
    Struct("gemini", "Part", "google.genai.types", ("Part",)),
    Struct("gemini", "Content", "google.genai.types", ("Content",)),
    Struct("gemini", "FunctionDeclaration", "google.genai.types", ("FunctionDeclaration",)),
    Struct("gemini", "FunctionCallingConfig", "google.genai.types", ("FunctionCallingConfig",)),
    Struct("gemini", "ToolConfig", "google.genai.types", ("ToolConfig",)),
    Struct("gemini", "ThinkingConfig", "google.genai.types", ("ThinkingConfig",)),
    Struct("gemini", "GenerationConfig", "google.genai.types", ("GenerationConfig",)),
    Struct("gemini", "ReplyCall", "google.genai.types", ("FunctionCall",)),
    Struct("gemini", "ReplyPart", "google.genai.types", ("Part",)),
    Struct("gemini", "ReplyContent", "google.genai.types", ("Content",)),
    Struct("gemini", "Candidate", "google.genai.types", ("Candidate",)),
    Struct("gemini", "Response", "google.genai.types", ("GenerateContentResponse",)),
    Struct("gemini_interactions", "Text", f"{_INTERACTIONS}.textcontent", ("TextContent",)),
    Struct("gemini_interactions", "Image", f"{_INTERACTIONS}.imagecontent", ("ImageContent",)),
    Struct("gemini_interactions", "Document", f"{_INTERACTIONS}.documentcontent", ("DocumentContent",)),
    Struct("gemini_interactions", "FunctionResult", f"{_INTERACTIONS}.functionresultstep", ("FunctionResultStep",)),
    Struct("gemini_interactions", "UserInput", f"{_INTERACTIONS}.userinputstep", ("UserInputStep",)),
    Struct("gemini_interactions", "ModelOutput", f"{_INTERACTIONS}.modeloutputstep", ("ModelOutputStep",)),
    Struct("gemini_interactions", "Thought", f"{_INTERACTIONS}.thoughtstep", ("ThoughtStep",)),
    Struct("gemini_interactions", "FunctionCall", f"{_INTERACTIONS}.functioncallstep", ("FunctionCallStep",)),
    Struct("gemini_interactions", "Function", f"{_INTERACTIONS}.function", ("Function",)),
    Struct("gemini_interactions", "AllowedTools", f"{_INTERACTIONS}.allowedtools", ("AllowedTools",)),
    Struct("gemini_interactions", "ToolChoice", f"{_INTERACTIONS}.toolchoiceconfig", ("ToolChoiceConfig",)),
    Struct("gemini_interactions", "GenerationConfig", f"{_INTERACTIONS}.generationconfig", ("GenerationConfig",)),
    Struct("gemini_interactions", "Request", f"{_INTERACTIONS}.createmodelinteraction", ("CreateModelInteraction",)),
    Struct("gemini_interactions", "TextDelta", f"{_INTERACTIONS}.textdelta", ("TextDelta",)),
    Struct("gemini_interactions", "SummaryDelta", f"{_INTERACTIONS}.thoughtsummarydelta", ("ThoughtSummaryDelta",)),
    Struct("gemini_interactions", "SignatureDelta", f"{_INTERACTIONS}.thoughtsignaturedelta", ("ThoughtSignatureDelta",)),
    Struct("gemini_interactions", "ArgumentsDelta", f"{_INTERACTIONS}.argumentsdelta", ("ArgumentsDelta",)),
    Struct("gemini_interactions", "AnnotationsDelta", f"{_INTERACTIONS}.textannotationdelta", ("TextAnnotationDelta",)),
    Struct("gemini_interactions", "StepStart", f"{_INTERACTIONS}.stepstart", ("StepStart",)),
    Struct("gemini_interactions", "StepDelta", f"{_INTERACTIONS}.stepdelta", ("StepDelta",)),
    Struct("gemini_interactions", "StepStop", f"{_INTERACTIONS}.stepstop", ("StepStop",)),
    Struct("gemini_interactions", "InteractionCreated", f"{_INTERACTIONS}.interactioncreatedevent", ("InteractionCreatedEvent",)),
    Struct("gemini_interactions", "InteractionCompleted", f"{_INTERACTIONS}.interactioncompletedevent", ("InteractionCompletedEvent",)),
    Struct("gemini_interactions", "ErrorEvent", f"{_INTERACTIONS}.errorevent", ("ErrorEvent",)),
    Struct("gemini_interactions", "Interaction", f"{_INTERACTIONS}.interactionsseeventinteraction", ("InteractionSseEventInteraction",)),
    Struct("cohere", "Text", "cohere.types", ("TextContent",)),
    Struct("cohere", "ImageUrl", "cohere.types", ("ImageUrl",)),
    Struct("cohere", "Image", "cohere.types", ("ImageUrlContent",)),
    Struct("cohere", "Function", "cohere.types", ("ToolCallV2Function",)),
    Struct("cohere", "Call", "cohere.types", ("ToolCallV2",)),
    Struct("cohere", "Message", "cohere.types", ("AssistantChatMessageV2", "ToolChatMessageV2")),
    Struct("cohere", "ToolFunction", "cohere.types", ("ToolV2Function",)),
    Struct("cohere", "Tool", "cohere.types", ("ToolV2",)),
    Struct("cohere", "ThinkingConfig", "cohere.types", ("Thinking",)),
    Struct("cohere", "ResponseFormat", "cohere.types", ("JsonObjectResponseFormatV2",)),
    Struct("cohere", "Piece", "cohere.types", ("ChatContentDeltaEventDeltaMessageContent",)),
    Struct("cohere", "Answer", "cohere.types", ("AssistantMessageResponse",)),
    Struct("cohere", "MessageStart", "cohere", ("MessageStartV2ChatStreamResponse",)),
    Struct("cohere", "ContentStart", "cohere", ("ContentStartV2ChatStreamResponse",)),
    Struct("cohere", "ContentDelta", "cohere", ("ContentDeltaV2ChatStreamResponse",)),
    Struct("cohere", "ContentEnd", "cohere", ("ContentEndV2ChatStreamResponse",)),
    Struct("cohere", "ToolPlanDelta", "cohere", ("ToolPlanDeltaV2ChatStreamResponse",)),
    Struct("cohere", "ToolCallStart", "cohere", ("ToolCallStartV2ChatStreamResponse",)),
    Struct("cohere", "ToolCallDelta", "cohere", ("ToolCallDeltaV2ChatStreamResponse",)),
    Struct("cohere", "ToolCallEnd", "cohere", ("ToolCallEndV2ChatStreamResponse",)),
    Struct("cohere", "CitationStart", "cohere", ("CitationStartV2ChatStreamResponse",)),
    Struct("cohere", "CitationEnd", "cohere", ("CitationEndV2ChatStreamResponse",)),
    Struct("cohere", "MessageEnd", "cohere", ("MessageEndV2ChatStreamResponse",)),
    Struct("cohere", "Reply", "cohere", ("V2ChatResponse",)),
    Struct("cohere", "Delta", "cohere.types", ("ChatMessageStartEventDelta",)),
    Struct("cohere", "ContentAnswer", "cohere.types", ("ChatContentStartEventDeltaMessage",)),
    Struct("cohere", "CallAnswer", "cohere.types", ("ChatToolCallStartEventDeltaMessage",)),
    Struct("cohere", "PlanAnswer", "cohere.types", ("ChatToolPlanDeltaEventDeltaMessage",)),
    Struct("cohere", "CitationAnswer", "cohere.types", ("CitationStartEventDeltaMessage",)),
    Struct("cohere", "End", "cohere.types", ("ChatMessageEndEventDelta",)),
    Struct("ollama", "Message", "ollama", ("Message",)),
    Struct("ollama", "Answer", "ollama", ("Message",)),
    Struct("ollama", "Line", "ollama", ("ChatResponse",)),
    Struct("ollama", "Call", "ollama", ("Message.ToolCall",)),
    Struct("ollama", "Function", "ollama", ("Message.ToolCall.Function",)),
    Struct("ollama", "Tool", "ollama", ("Tool",)),
    Struct("ollama", "ToolFunction", "ollama", ("Tool.Function",)),
    Struct("ollama", "Options", "ollama", ("Options",)),
    Struct("ollama", "Request", "ollama._types", ("ChatRequest",)),
    Struct("openai_responses", "InputText", _RESPONSES, ("ResponseInputTextParam",)),
    Struct("openai_responses", "Refusal", _RESPONSES, ("ResponseOutputRefusalParam",)),
    Struct("openai_responses", "InputImage", _RESPONSES, ("ResponseInputImageParam",)),
    Struct("openai_responses", "InputFile", _RESPONSES, ("ResponseInputFileParam",)),
    Struct("openai_responses", "Message", _RESPONSES, ("EasyInputMessageParam", "ResponseOutputMessageParam")),
    Struct("openai_responses", "Reasoning", _RESPONSES, ("ResponseReasoningItemParam",)),
    Struct("openai_responses", "FunctionCall", _RESPONSES, ("ResponseFunctionToolCallParam",)),
    Struct("openai_responses", "CustomToolCall", _RESPONSES, ("ResponseCustomToolCallParam",)),
    Struct("openai_responses", "FunctionCallOutput", f"{_RESPONSES}.response_input_item_param", ("FunctionCallOutput",)),
    Struct("openai_responses", "CustomToolCallOutput", _RESPONSES, ("ResponseCustomToolCallOutputParam",)),
    Struct("openai_responses", "Function", _RESPONSES, ("FunctionToolParam",)),
    Struct("openai_responses", "NamedFunction", _RESPONSES, ("ToolChoiceFunctionParam",)),
    Struct("openai_responses", "JsonSchema", _RESPONSES, ("ResponseFormatTextJSONSchemaConfigParam",)),
    Struct("openai_responses", "TextSettings", _RESPONSES, ("ResponseTextConfigParam",)),
    Struct(
        "openai_responses", "Delta", _RESPONSES,
        (
            "ResponseTextDeltaEvent", "ResponseRefusalDeltaEvent", "ResponseReasoningTextDeltaEvent",
            "ResponseReasoningSummaryTextDeltaEvent", "ResponseFunctionCallArgumentsDeltaEvent",
        ),
    ),
    Struct("openai_responses", "OutputMessage", _RESPONSES, ("ResponseOutputMessage",)),
    Struct("openai_responses", "OutputPart", _RESPONSES, ("ResponseOutputText", "ResponseOutputRefusal")),
    Struct("openai_responses", "OutputReasoning", _RESPONSES, ("ResponseReasoningItem",)),
    Struct("openai_responses", "OutputCall", _RESPONSES, ("ResponseFunctionToolCall",)),
    Struct("openai_responses", "OutputText", _RESPONSES, ("ResponseOutputTextParam",)),
    Struct("openai_responses", "IncompleteDetails", f"{_RESPONSES}.response", ("IncompleteDetails",)),
    Struct("openai_responses", "OutputResponse", _RESPONSES, ("Response",)),
    Struct("openai_responses", "CreateResponse", f"{_RESPONSES}.response_create_params", ("ResponseCreateParamsStreaming",)),
)  # fmt: skip
"""Structs in `wire.py` of a dialect, and what they are called in its SDK."""


def _of_structs() -> Iterator[Difference]:
    """Yield the fields that an SDK's types have and bardo's structs lack, and those that no SDK's type has."""
    for one in STRUCTS:
        try:
            module = import_module(one.module)
        except ModuleNotFoundError:
            continue
        kinds = [attrgetter(kind)(module) for kind in one.types]
        yield from _of_struct(one.sdk, one.struct, {name for kind in kinds for name in _fields_of(kind)})
        yield from _of_tag(one, kinds)


def _of_struct(dialect: str, name: str, named: set[str]) -> Iterator[Difference]:
    """Yield the fields that a struct lacks of those that are `named`, and those that it has beside them."""
    struct = getattr(import_module(f"bardo.dialects.{dialect}.wire"), name)
    tag = struct.__struct_config__.tag_field
    had = {field.encode_name for field in msgspec.structs.fields(struct)} - {OTHERS} | ({tag} if tag else set())
    yield from (Difference(dialect, "field that bardo lacks", f"{name}.{field}") for field in sorted(named - had))
    yield from (Difference(dialect, "field of bardo's own", f"{name}.{field}") for field in sorted(had - named))


def _of_tag(one: Struct, kinds: Iterable[Any]) -> Iterator[Difference]:
    """Yield the type by which a struct is known where the SDK's types have others, and those of theirs that are not it."""
    config = getattr(import_module(f"bardo.dialects.{one.sdk}.wire"), one.struct).__struct_config__
    if config.tag_field is None:
        return
    types = [fields[config.tag_field] for kind in kinds if config.tag_field in (fields := _types_of(kind))]
    words = {word for found in types for word in _words(found)}
    if words:
        yield from (Difference(one.sdk, "tag", f"{one.struct}.{word}") for word in sorted(words ^ {config.tag}))


def _types_of(kind: Any) -> dict[str, Any]:
    """Return the types of a type's fields by their names on the wire."""
    fields = getattr(kind, "model_fields", None)
    return (
        get_type_hints(kind) if fields is None else {_wire_name(kind, name): fields[name].annotation for name in fields}
    )


def _fields_of(kind: Any) -> Iterable[str]:
    """Return the names of a type's fields on the wire."""
    return _types_of(kind)


RESOURCES = {
    "openai": (
        "openai.resources.chat.completions.completions", "openai.resources.responses.responses", "openai.resources.responses.input_tokens",
        "openai.resources.completions", "openai.resources.embeddings", "openai.resources.models",
    ),
    "anthropic": ("anthropic.resources.messages.messages", "anthropic.resources.models"),
}  # fmt: skip
"""The modules of an SDK whose requests bardo takes or makes."""
_PATH = re.compile(r'self\._(?:get|post|delete|get_api_list)\(\s*(?:path_template\(\s*)?f?"(/[^"?]+)"')


def endpoints(sdk: str) -> list[str]:
    """Return the paths that an SDK asks, with `{id}` for what varies; none where it is not installed."""
    found: dict[str, None] = {}
    for name in RESOURCES[sdk]:
        try:
            source = Path(str(import_module(name).__file__)).read_text(encoding="utf-8")
        except ModuleNotFoundError:
            continue
        found |= dict.fromkeys(re.sub(r"\{[^}]+\}", "{id}", path).removeprefix("/v1") for path in _PATH.findall(source))
    return list(found)


def _served() -> set[str]:
    """Return the paths that the gateway has a route for, with `{id}` for what varies."""
    return {re.sub(r"\{[^}]+\}", "{id}", path).removeprefix("/v1") for path in openapi_document()["paths"]}


@cache
def constants(dialect: str) -> frozenset[str]:
    """Return every string that the code of a dialect holds: the words of the wire that it knows."""
    found: set[str] = set()
    folder = SOURCE / "dialects"
    for path in (*folder.glob(f"{dialect}/*.py"), *folder.glob(f"{dialect}.py"), folder / "shared" / "usage.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        found |= {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        found |= _typed_fields(path)
    return frozenset(found)


def _typed_fields(path: Path) -> set[str]:
    """Return the names of fields that classes of a file declare: what msgspec reads is not named anywhere else."""
    classes = (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.ClassDef))
    lines = (line for one in classes for line in one.body if isinstance(line, ast.AnnAssign))
    return {line.target.id for line in lines if isinstance(line.target, ast.Name)}


def _known_model(sdk: str) -> Callable[[str], bool]:
    return lambda word: builtin_models().find(sdk, word).how not in ("unclassified", "assumed")


def _known_effort(sdk: str) -> Callable[[str], bool]:
    return lambda word: word.lower() in {*EFFORTS, "none"}


def _known_beta(sdk: str) -> Callable[[str], bool]:
    return lambda word: word in constants("anthropic_messages") | _betas_of_rows()


def _betas_of_rows() -> set[str]:
    return {value for row in builtin_replay().bindings for value in row.headers.values()}


def _known_word(sdk: str) -> Callable[[str], bool]:
    return lambda word: word in constants(sdk)


KNOWN = {"model": _known_model, "effort": _known_effort, "beta": _known_beta}


def differences() -> Iterator[Difference]:
    """Yield what the installed SDKs name and bardo does not know, and what bardo names and they do not."""
    for place in PLACES:
        known = KNOWN.get(place.kind, _known_word)(place.sdk)
        yield from (Difference(place.sdk, place.kind, word) for word in words_at(place) or () if not known(word))
    betas = words_at(next(place for place in PLACES if place.kind == "beta"))
    if betas is not None:
        yield from (
            Difference("anthropic", "beta that the SDK lacks", word) for word in sorted(_betas_of_rows() - set(betas))
        )
    served = _served()
    for sdk in RESOURCES:
        yield from (Difference(sdk, "endpoint", path) for path in endpoints(sdk) if path not in served)
    yield from _of_structs()
    yield from _of_bedrock()
    yield from _not_compared()


SHAPES = {
    "Request": ("ConverseRequest",),
    "Message": ("Message",),
    "Block": ("ContentBlock", "SystemContentBlock", "ToolResultContentBlock"),
    "Part": ("ToolResultContentBlock",),
    "Image": ("ImageBlock",),
    "ImageSource": ("ImageSource",),
    "Document": ("DocumentBlock",),
    "DocumentSource": ("DocumentSource",),
    "CitedPiece": ("CitationGeneratedContent",),
    "CitationsContent": ("CitationsContentBlock",),
    "ToolUse": ("ToolUseBlock",),
    "ToolResult": ("ToolResultBlock",),
    "ReasoningContent": ("ReasoningContentBlock",),
    "ReasoningText": ("ReasoningTextBlock",),
    "InferenceConfig": ("InferenceConfiguration",),
    "ToolConfig": ("ToolConfiguration",),
    "Tool": ("Tool",),
    "ToolSpec": ("ToolSpecification",),
    "InputSchema": ("ToolInputSchema",),
    "SystemTool": ("SystemTool",),
    "ToolChoice": ("ToolChoice",),
    "NamedTool": ("SpecificToolChoice",),
    "OutputConfig": ("OutputConfig",),
    "TextFormat": ("OutputFormat",),
    "Structure": ("OutputFormatStructure",),
    "JsonSchema": ("JsonSchemaDefinition",),
    "MessageStart": ("MessageStartEvent",),
    "ContentBlockStart": ("ContentBlockStartEvent",),
    "BlockStart": ("ContentBlockStart",),
    "ToolUseStart": ("ToolUseBlockStart",),
    "ContentBlockDelta": ("ContentBlockDeltaEvent",),
    "BlockDelta": ("ContentBlockDelta",),
    "ReasoningDelta": ("ReasoningContentBlockDelta",),
    "ToolUseDelta": ("ToolUseBlockDelta",),
    "ContentBlockStop": ("ContentBlockStopEvent",),
    "MessageStop": ("MessageStopEvent",),
    "Metadata": ("ConverseStreamMetadataEvent",),
    "Reply": ("ConverseResponse",),
    "Output": ("ConverseOutput",),
    "WrittenToolUse": ("ToolUseBlock",),
}
"""Converse's structs, and what botocore's service model calls them."""


def _of_bedrock() -> Iterator[Difference]:
    """Yield what botocore's service model names and bardo does not know."""
    model = service_model()
    if model is None:
        return
    shapes, known = model["shapes"], constants("bedrock_converse") | constants("bedrock_invoke")
    named = {
        "operation": _paths(model),
        "finish": shapes["StopReason"]["enum"],
        "event": list(shapes["ConverseStreamOutput"]["members"]),
        "usage": list(shapes["TokenUsage"]["members"]),
    }
    for kind, words in named.items():
        missing = (
            word
            for word in words
            if word not in known and not any(word in text for text in known if kind == "operation")
        )
        yield from (Difference("bedrock", kind, word) for word in missing)
    for name, kinds in SHAPES.items():
        yield from _of_struct("bedrock_converse", name, {field for kind in kinds for field in shapes[kind]["members"]})


def _not_compared() -> Iterator[Difference]:
    """Yield the structs of wire formats that are compared with no type of an SDK."""
    compared = {(one.sdk, one.struct) for one in STRUCTS} | {("bedrock_converse", name) for name in SHAPES}
    for dialect in sorted({dialect for dialect, _ in compared}):
        wire = import_module(f"bardo.dialects.{dialect}.wire")
        kinds = (one for one in vars(wire).values() if isinstance(one, type) and issubclass(one, msgspec.Struct))
        names = (kind.__name__ for kind in kinds if kind.__module__ == wire.__name__)
        yield from (
            Difference(dialect, "struct not compared", name) for name in names if (dialect, name) not in compared
        )


def _paths(model: dict[str, Any]) -> list[str]:
    """Return the last part of each operation's path: `converse-stream`."""
    return sorted({one["http"]["requestUri"].rpartition("/")[2] for one in model["operations"].values()})


def service_model() -> dict[str, Any] | None:
    """Return botocore's model of Bedrock's runtime; None where botocore is not installed."""
    try:
        root = Path(str(import_module("botocore").__file__)).parent / "data" / "bedrock-runtime"
    except ModuleNotFoundError:
        return None
    newest = max(root.iterdir())
    with gzip.open(newest / "service-2.json.gz") as file:
        found: dict[str, Any] = json.load(file)
    return found


def accepted() -> list[Accepted]:
    """Return the differences that are accepted."""
    rows = tomllib.loads(ACCEPTED.read_text(encoding="utf-8"))["accepted"]
    return [Accepted(row["sdk"], row["kind"], tuple(row["words"]), str(row["date"]), row["why"]) for row in rows]


def left(found: Iterable[Difference], taken: Iterable[Accepted]) -> list[Difference]:
    """Return the differences that nobody accepted, each once."""
    rows = list(taken)
    return [one for one in dict.fromkeys(found) if not any(row.covers(one) for row in rows)]


def outdated(found: Iterable[Difference], taken: Iterable[Accepted]) -> list[tuple[Accepted, str]]:
    """Return the accepted words that are no differences any more, of SDKs that are installed."""
    seen = list(found)
    asked = {(one.sdk, one.kind) for one in seen}
    return [
        (row, word)
        for row in taken
        if (row.sdk, row.kind) in asked
        for word in row.words
        if not any(row._replace(words=(word,)).covers(one) for one in seen)
    ]


def resolved() -> dict[str, tuple[int, int]]:
    """Return of each SDK how many of its model ids a row is about, and how many it has."""
    found: dict[str, tuple[int, int]] = {}
    for sdk in dict.fromkeys(place.sdk for place in PLACES if place.kind == "model"):
        lists = [words_at(place) for place in PLACES if (place.sdk, place.kind) == (sdk, "model")]
        ids = dict.fromkeys(word for words in lists for word in words or ())
        if ids:
            found[sdk] = (sum(map(_known_model(sdk), ids)), len(ids))
    return found


def main() -> int:
    """Print the comparison, and return how the program ends."""
    found, taken = list(differences()), accepted()
    new, old = left(found, taken), outdated(found, taken)
    for sdk, (known, total) in resolved().items():
        print(f"{sdk}: a row is about {known} of {total} model ids")
    for one in new:
        print(f"not known: {one.sdk} {one.kind} {one.word}")
    for row, word in old:
        print(f"accepted, and no difference any more: {row.sdk} {row.kind} {word}")
    print(f"{len(set(found))} differences, {len(new)} of them new")
    return 1 if new or old else 0


if __name__ == "__main__":
    sys.exit(main())

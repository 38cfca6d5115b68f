"""The wire format of Chat Completions' requests, as OpenAI's reference says it (`POST /v1/chat/completions`, 2026-11), and its words.

Its family adds fields of its own. What bardo has a word for is read; fields beside it are carried as they came. Opaque state of a text or a
call stands in `extra_content`: Google documents `extra_content.google.thought_signature` for its own signatures, and state of any other
kind goes beside it under `extra_content.bardo`, and is restored exactly when a client sends the message back.
"""

from collections.abc import Iterable
from typing import ClassVar

import msgspec
from msgspec import UNSET, UnsetType

from bardo.dialects.shared.json_values import JsonObject, JsonValue
from bardo.dialects.shared.reply_structs import ReplyForm
from bardo.dialects.shared.structs import Unknown, Wire
from bardo.values.blocks import Opaque
from bardo.values.events import Finish, FinishReason


class Text(Wire, tag="text", kw_only=True):
    """Words."""

    CARRIED: ClassVar = ("cache_control", "prompt_cache_breakpoint")
    text: str
    cache_control: JsonValue = None
    prompt_cache_breakpoint: JsonValue = None


class InputText(Text, tag="input_text", kw_only=True):
    """Words, by the name that Responses has for them."""


class OutputText(Text, tag="output_text", kw_only=True):
    """Words of the model, by the name that Responses has for them."""


class Refusal(Wire, tag="refusal", kw_only=True):
    """Words with which the model declined."""

    refusal: str


class ImageUrl(Wire, kw_only=True):
    """Where a picture is, or its bytes as a data URL."""

    url: str
    detail: str | None = None


class Image(Wire, tag="image_url", kw_only=True):
    """A picture."""

    CARRIED: ClassVar = ("cache_control", "prompt_cache_breakpoint")
    image_url: ImageUrl | str
    cache_control: JsonValue = None
    prompt_cache_breakpoint: JsonValue = None


class FileData(Wire, kw_only=True):
    """The bytes of a file, or the id of one that was uploaded, which `others` has."""

    file_data: str | None = None
    filename: str | None = None


class File(Wire, tag="file", kw_only=True):
    """A document."""

    CARRIED: ClassVar = ("cache_control", "prompt_cache_breakpoint")
    file: FileData
    cache_control: JsonValue = None
    prompt_cache_breakpoint: JsonValue = None


class Thought(Wire, kw_only=True):
    """A piece of thinking: Mistral writes its type too."""

    text: str | None = None


class Thinking(Wire, tag="thinking", kw_only=True):
    """Thinking among the content, as Mistral writes it."""

    thinking: list[Thought | str | None] | Thought | str | None = None
    signature: str | None = None


Part = Text | InputText | OutputText | Refusal | Image | File | Thinking | Unknown
"""The parts of a message's content. Some clients write bare strings."""


class Function(Wire, kw_only=True):
    """Which function is called with which arguments, as JSON text."""

    name: str
    arguments: JsonValue = None


class Custom(Wire, kw_only=True):
    """Which custom tool is called with which text."""

    name: str
    input: JsonValue = None


class Call(Wire, kw_only=True):
    """A call of a tool. One that is neither of a function nor of a custom tool is carried whole."""

    id: str | None = None
    type: JsonValue = None
    function: Function | None = None
    custom: Custom | None = None
    index: JsonValue = None
    extra_content: JsonValue = None


class OlderCall(Wire, kw_only=True):
    """A call as older clients write it, which has no id."""

    name: str | None = None
    arguments: str | None = None


class Message(Wire, kw_only=True):
    """A message of any role. `reasoning_details` are OpenRouter's, `thinking_blocks` LiteLLM's, `extra_content` Google's."""

    CARRIED: ClassVar = ("name", "annotations", "audio")
    role: str
    content: str | list[Part | str] | None = None
    refusal: str | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None
    function_call: OlderCall | None = None
    name: JsonValue = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: str | list[JsonObject] | None = None
    thinking_blocks: list[JsonValue] | None = None
    extra_content: JsonValue = None
    annotations: JsonValue = None
    audio: JsonValue = None


class FunctionDefinition(Wire, kw_only=True):
    """The name, purpose and parameters of a function."""

    name: str
    description: str | None = None
    parameters: JsonObject | None = None
    strict: bool | None = None


class FunctionTool(Wire, kw_only=True):
    """A function that the model may call; clients leave the type out."""

    type: str | None = None
    function: FunctionDefinition


class ChosenFunction(Wire, kw_only=True):
    """The function that must be called."""

    name: str


class SchemaFormat(Wire, kw_only=True):
    """A schema that the answer must fit. Anthropic's form of it has the schema alone."""

    name: str | None = None
    description: str | None = None
    schema: JsonValue = None
    strict: bool | None = None


class JsonSchemaFormat(Wire, kw_only=True):
    """The format of an answer that fits a schema."""

    type: str
    json_schema: SchemaFormat


class StreamOptions(Wire, kw_only=True):
    """The options of a stream: its content beside the answer."""

    CARRIED: ClassVar = ("include_obfuscation",)
    include_usage: bool | None = None
    include_obfuscation: JsonValue = None


class Request(Wire, kw_only=True):
    """A request.

    `functions` and `function_call` are those of older clients. A tool, a choice and a format are of a shape that their types tell. The
    fields behind `reasoning_effort` say how to think in the words of many servers, `output_config` in Anthropic's.
    """

    CARRIED: ClassVar = (
        "audio", "chat_template_kwargs", "logit_bias", "logprobs", "metadata", "modalities", "moderation", "prediction", "prompt_cache_key",
        "prompt_cache_options", "prompt_cache_retention", "safety_identifier", "service_tier", "store", "top_logprobs", "user", "verbosity",
        "web_search_options",
    )  # fmt: skip
    model: str
    messages: list[Message]
    tools: list[JsonObject] | None = None
    functions: list[FunctionDefinition] | None = None
    tool_choice: JsonValue = None
    function_call: JsonValue = None
    parallel_tool_calls: bool | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: int | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    response_format: JsonObject | None = None
    bardo: JsonObject | None = None

    temperature: int | float | None = None
    top_p: int | float | None = None
    top_k: int | float | None = None
    min_p: int | float | None = None
    repetition_penalty: int | float | None = None
    frequency_penalty: int | float | None = None
    presence_penalty: int | float | None = None
    seed: int | float | None = None
    stop: str | list[str] | None = None

    reasoning_effort: str | None = None
    reasoning: JsonObject | None = None
    include_reasoning: bool | None = None
    thinking: bool | JsonObject | None = None
    enable_thinking: bool | None = None
    thinking_budget: int | None = None
    thinking_token_budget: int | None = None
    think: bool | str | None = None
    output_config: JsonObject | None = None

    audio: JsonValue = None
    chat_template_kwargs: JsonValue = None
    logit_bias: JsonValue = None
    logprobs: JsonValue = None
    metadata: JsonValue = None
    modalities: JsonValue = None
    moderation: JsonValue = None
    prediction: JsonValue = None
    prompt_cache_key: JsonValue = None
    prompt_cache_options: JsonValue = None
    prompt_cache_retention: JsonValue = None
    safety_identifier: JsonValue = None
    service_tier: JsonValue = None
    store: JsonValue = None
    top_logprobs: JsonValue = None
    user: JsonValue = None
    verbosity: JsonValue = None
    web_search_options: JsonValue = None


class Completion(Wire, kw_only=True):
    """The fields of a request of the older `POST /v1/completions` beside those of a chat. `prompt` is a text or several, or tokens."""

    prompt: JsonValue = None
    suffix: str | None = None
    echo: bool | None = None
    best_of: int | None = None
    logprobs: int | None = None


class Embedding(Wire, kw_only=True):
    """A request of `POST /v1/embeddings`. `input` is a text or several, or tokens; `input_type` is a field of other makers' hosts."""

    CARRIED: ClassVar = ("input_type", "user")
    model: str
    input: JsonValue = None
    dimensions: JsonValue = None
    encoding_format: str | None = None
    bardo: JsonObject | None = None
    input_type: JsonValue = None
    user: JsonValue = None


NAME = "openai_chat"
DEVELOPER = "developer"
"""OpenAI's newer word for the role `system`, which many servers refuse and all read as `system`."""
GEMINI = "google-gemini-v1"
ANTHROPIC = "anthropic-claude-v1"
BEDROCK = "bedrock-v1"

# Formats whose text stands in `reasoning_content` alone: nothing but text is known of such thinking.
PLAIN_FORMATS = frozenset(
    {"", "reasoning_content", "reasoning", "think-tags", "content_list", "reasoning_details", "thinking"}
)

_READ: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "complete": "stop",
    "completed": "stop",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "tool_call": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
    "refusal": "refusal",
    "safety": "refusal",
    "sensitive": "refusal",
    "error": "error",
    "insufficient_system_resource": "error",
    "network_error": "error",
}
_FINISH_REASONS: dict[FinishReason, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "refusal": "content_filter",
    "pause": "stop",
    "error": "stop",
    "unknown": "stop",
}


def decode_finish(raw: str, *, calls: bool) -> FinishReason:
    """Return what a finish reason means. Gemini and Snowflake end a reply with tool calls as any other."""
    reason = _READ.get(raw.lower(), "unknown")
    ordinary = reason == "stop" or not raw
    return "tool_calls" if calls and ordinary else reason


def encode_finish(finish: Finish, *, refused: bool) -> str:
    """Return the word an OpenAI client knows. A refusal in words ends as any other answer; only a filter cuts without them."""
    if refused and finish.reason == "refusal" and finish.raw != "content_filter":
        return "stop"
    return _FINISH_REASONS[finish.reason]


FRAMING = frozenset(
    {
        "request_id", "generationId", "x_groq", "timings", "time_info", "sla_metrics", "metrics",
        "prompt_token_ids", "prompt_text", "prompt", "message.name", "message.padding", "message.channel",
        "native_finish_reason", "cost", "copilot_usage", "venice_parameters", "user_id", "metadata", "type", "custom",
        "function", "function_call",
    }
)  # fmt: skip
"""Fields of replies that hold nothing for clients of other dialects: ids, times, bills, echoes of the request, wrapping of blocks."""
WITHIN = {"x_groq": frozenset({"seed"}), "venice_parameters": frozenset({"web_search_citations"})}
"""Content inside of such fields."""
USUAL = {
    "service_tier": ("default", "auto", "standard", "on_demand"),
    # vLLM and SGLang give the stop sequence that ended the reply, or the number of the token that ends every reply.
    "stop_reason": (int,),
    "matched_stop": (int,),
    "base_resp": ({"status_code": 0, "status_msg": "success"},),
}
"""The values of other fields that say nothing."""


def decode_states(extra: JsonValue) -> tuple[tuple[Opaque, ...], JsonObject]:
    """Return the opaque states in an `extra_content` object, and what else it holds."""
    if not isinstance(extra, dict):
        return (), {}
    rest = dict(extra)
    states: list[Opaque] = []
    google = rest.get("google")
    if isinstance(google, dict) and isinstance(signature := google.get("thought_signature"), str) and signature:
        states.append(Opaque("signature", signature, GEMINI))
        _set_or_delete(rest, "google", {name: value for name, value in google.items() if name != "thought_signature"})
    own = rest.get("bardo")
    if isinstance(own, dict) and (sealed := _own_states(own.get("opaque"))):
        states += sealed
        _set_or_delete(rest, "bardo", {name: value for name, value in own.items() if name != "opaque"})
    return tuple(states), rest


def encode_states(states: Iterable[Opaque], *, before: int = 0) -> JsonObject:
    """Return an `extra_content` object that holds `states`; `before` says how many of the same message were written already."""
    written: JsonObject = {}
    others: dict[str, dict[str, str]] = {}
    for number, state in enumerate(states, before):
        if state.format == GEMINI and state.kind == "signature" and not before and "google" not in written:
            written["google"] = {"thought_signature": state.data}
        else:
            # By name and not as a list: OpenAI's library joins the lists of a stream by an index that these have not, and the texts
            # of one name to one text.
            taken = before or state.kind in others
            others[f"{state.kind} {number}" if taken else state.kind] = {"data": state.data, "format": state.format}
    if others:
        written["bardo"] = {"opaque": others}
    return written


def merge_extra(one: JsonObject, other: JsonObject) -> JsonObject:
    """Return both objects as one: what stands under one vendor's name is joined."""
    merged = dict(one)
    for vendor, fields in other.items():
        before = merged.get(vendor)
        merged[vendor] = {**before, **fields} if isinstance(before, dict) and isinstance(fields, dict) else fields
    return merged


def _own_states(value: JsonValue) -> list[Opaque]:
    if not isinstance(value, dict):
        return []
    try:
        return [msgspec.convert({**state, "kind": kind.partition(" ")[0]}, Opaque) for kind, state in value.items()]
    except (msgspec.ValidationError, TypeError, AttributeError):
        return []


def _set_or_delete(fields: JsonObject, name: str, value: JsonObject) -> None:
    if value:
        fields[name] = value
    else:
        del fields[name]


class ReplyText(Wire, tag="text", kw_only=True):
    """Words among the content of a reply, as Mistral writes it."""

    text: str


class ReplyOutputText(ReplyText, tag="output_text", kw_only=True):
    """Words of the model, by the name that Responses has for them."""


class ReplyThinking(Wire, tag="thinking", kw_only=True):
    """Thinking among the content of a reply, as Mistral writes it. Its `closed` stands on every piece and says nothing."""

    thinking: list[JsonObject | str | None] | JsonObject | str | None = None
    signature: str | None = None
    closed: bool | None = None


class Detail(Wire, kw_only=True):
    """A piece of `reasoning_details`, OpenRouter's typed thinking, which several hosts share.

    It is `reasoning.text` (text, maybe a signature), `reasoning.summary` or `reasoning.encrypted`. In streams each is a fragment, and the
    pieces of one block share an `index`. `part` and `position` are bardo's own: a piece with a `part` belongs to the block before it,
    whatever its index, and a part above 0 begins a further part of the summary, after a blank line; `position` says how many characters of
    the content and how many calls stand before a block.
    """

    type: str | UnsetType | None = UNSET
    text: str | UnsetType | None = UNSET
    summary: str | UnsetType | None = UNSET
    signature: str | UnsetType | None = UNSET
    data: str | UnsetType | None = UNSET
    id: str | UnsetType | None = UNSET
    format: str | UnsetType | None = UNSET
    index: int | str | UnsetType | None = UNSET
    part: int | UnsetType | None = UNSET
    position: dict[str, object] | UnsetType | None = UNSET


class ReplyFunction(Wire, kw_only=True):
    """Which function the model calls with which arguments, or pieces of that. Some servers give arguments as an object."""

    CARRIED: ClassVar = ("call_id",)
    name: str | None = None
    arguments: str | JsonObject | None = None
    call_id: str | None = None


class ReplyCustom(Wire, kw_only=True):
    """Which custom tool the model calls with which text, or pieces of that."""

    name: str | None = None
    input: str | JsonObject | None = None


class ReplyCall(Wire, kw_only=True):
    """A call of a tool, or a piece of one. `extra_content` is Google's."""

    CARRIED: ClassVar = ("name",)
    index: int | str | None = None
    id: str | int | None = None
    type: str | None = None
    function: ReplyFunction | None = None
    custom: ReplyCustom | None = None
    extra_content: JsonObject | None = None
    name: str | None = None


class ReplyMessage(Wire, kw_only=True):
    """The message of a whole reply, or what a frame adds to it.

    Thinking stands in `reasoning_content` (DeepSeek, vLLM), `reasoning` (Groq, OpenRouter, newer vLLM), `reasoning_details` (OpenRouter),
    `thinking_blocks` (LiteLLM) or `reasoning_steps` (Perplexity). `content_blocks` are what bardo has no word for.
    """

    CARRIED: ClassVar = (
        "annotations", "name", "channel", "reasoning_steps", "provider_metadata", "audio_content", "padding", "reasoning_encrypted"
    )  # fmt: skip
    role: str | None = None
    content: str | list[ReplyText | ReplyOutputText | ReplyThinking | Unknown | str] | JsonObject | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Detail | None] | str | None = None
    thinking_blocks: list[object] | None = None
    reasoning_steps: list[object] | None = None
    tool_calls: list[ReplyCall | None] | None = None
    function_call: ReplyFunction | None = None
    refusal: str | None = None
    content_blocks: list[object] | None = None
    extra_content: JsonObject | None = None
    audio: JsonObject | None = None
    annotations: list[object] | None = None
    name: str | None = None
    channel: str | None = None
    provider_metadata: JsonObject | None = None
    audio_content: str | None = None
    padding: str | None = None
    reasoning_encrypted: bool | None = None


class Choice(Wire, kw_only=True):
    """One answer, or what a frame adds to it: a whole reply has a `message`, a frame a `delta`, Perplexity's frames both."""

    CARRIED: ClassVar = (
        "native_finish_reason", "stop_reason", "matched_stop", "token_ids", "content_filter_results", "raw_output", "seed",
        "routed_experts", "provider_metadata",
    )  # fmt: skip
    index: int | None = None
    delta: ReplyMessage | None = None
    message: ReplyMessage | None = None
    finish_reason: str | None = None
    native_finish_reason: str | None = None
    logprobs: JsonObject | int | float | None = None
    usage: JsonObject | None = None
    error: object = None
    stop_reason: int | str | None = None
    matched_stop: int | str | None = None
    token_ids: list[object] | None = None
    content_filter_results: JsonObject | None = None
    raw_output: str | JsonObject | None = None
    seed: int | None = None
    routed_experts: object = None
    provider_metadata: JsonObject | None = None


class Reply(Wire, kw_only=True):
    """A reply, or one frame of it. What it says of the reply as a whole is also carried where it is null.

    `obfuscation` (OpenAI) and `p` (Mistral) are random filler against traffic analysis, new in every frame.
    """

    id: str | None = None
    kind: str | None = msgspec.field(name="object", default=None)
    created: int | float | None = None
    model: str | None = None
    choices: list[Choice | None] | None = None
    usage: JsonObject | None = None
    error: object = None
    obfuscation: str | None = None
    p: str | None = None
    system_fingerprint: str | UnsetType | None = UNSET
    service_tier: str | UnsetType | None = UNSET
    provider: str | UnsetType | None = UNSET
    metadata: JsonObject | UnsetType | None = UNSET
    moderation: JsonObject | UnsetType | None = UNSET
    request_id: str | UnsetType | None = UNSET
    input_sensitive: bool | UnsetType | None = UNSET
    output_sensitive: bool | UnsetType | None = UNSET
    input_sensitive_type: int | UnsetType | None = UNSET
    output_sensitive_type: int | UnsetType | None = UNSET
    output_sensitive_int: int | UnsetType | None = UNSET
    x_groq: JsonObject | UnsetType | None = UNSET
    provider_metadata: JsonObject | UnsetType | None = UNSET
    prompt_filter_results: list[object] | UnsetType | None = UNSET
    prompt_logprobs: list[object] | UnsetType | None = UNSET
    prompt_token_ids: list[object] | UnsetType | None = UNSET
    prompt_text: str | UnsetType | None = UNSET
    kv_transfer_params: JsonObject | UnsetType | None = UNSET
    metrics: JsonObject | UnsetType | None = UNSET
    base_resp: JsonObject | UnsetType | None = UNSET
    time_info: JsonObject | UnsetType | None = UNSET
    timings: JsonObject | UnsetType | None = UNSET
    usage_breakdown: JsonObject | UnsetType | None = UNSET
    citations: list[object] | UnsetType | None = UNSET
    search_results: list[object] | UnsetType | None = UNSET


FORM = ReplyForm(Reply)

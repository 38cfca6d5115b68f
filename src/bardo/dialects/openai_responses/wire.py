"""The wire format of Responses requests and replies, as OpenAI's reference says it (`POST /v1/responses`, 2026-11).

What bardo has a word for is read; fields beside it are carried as they came, and so are whole items of other types. Of replies, where each
server adds fields of its own, structs name only the fields that are read.
"""

import hashlib
from collections.abc import Sequence
from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from bardo.dialects.shared.content_forms import SearchForm, SearchPart, SearchResults
from bardo.dialects.shared.json_values import JsonObject, JsonValue
from bardo.dialects.shared.states import seal, unseal
from bardo.dialects.shared.structs import Unknown, Wire
from bardo.values.blocks import Opaque, fields_for
from bardo.values.request import Request

NAME: Final = "openai_responses"
FORMAT: Final = "openai-responses-v1"


class Text(Wire, tag="text", kw_only=True):
    """Words, by the name that Chat has for them."""

    CARRIED: ClassVar = ("annotations", "logprobs", "prompt_cache_breakpoint")
    text: str
    annotations: JsonValue = None
    logprobs: JsonValue = None
    prompt_cache_breakpoint: JsonValue = None


class InputText(Text, tag="input_text", kw_only=True):
    """Words of the user."""


class OutputText(Text, tag="output_text", kw_only=True):
    """Words of the model."""


class Refusal(Wire, tag="refusal", kw_only=True):
    """Words with which the model declined."""

    refusal: str


class InputImage(Wire, tag="input_image", kw_only=True):
    """A picture by its address or data URL, or else one that was uploaded."""

    CARRIED: ClassVar = ("file_id", "prompt_cache_breakpoint")
    image_url: JsonValue = None
    detail: str | None = None
    file_id: JsonValue = None
    prompt_cache_breakpoint: JsonValue = None


class InputFile(Wire, tag="input_file", kw_only=True):
    """A document by its data or address, or else one that was uploaded."""

    CARRIED: ClassVar = ("file_id", "detail", "prompt_cache_breakpoint")
    filename: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    file_id: JsonValue = None
    detail: JsonValue = None
    prompt_cache_breakpoint: JsonValue = None


Part = Text | InputText | OutputText | Refusal | InputImage | InputFile | Unknown
"""The parts of a message, or of a tool's output."""


class Message(Wire, tag="message", kw_only=True):
    """A message of any role."""

    CARRIED: ClassVar = ("id", "status", "phase")
    role: str
    content: str | list[Part]
    id: JsonValue = None
    status: JsonValue = None
    phase: JsonValue = None


class Thought(Wire, kw_only=True):
    """A piece of thinking, or of a summary of it."""

    text: str
    type: JsonValue = None


class Reasoning(Wire, tag="reasoning", kw_only=True):
    """Thinking. `format` says whose it is, where a router passes on that of others."""

    CARRIED: ClassVar = ("format",)
    id: str | None = None
    summary: list[Thought | str] | None = None
    content: list[Thought | str] | None = None
    encrypted_content: str | None = None
    status: JsonValue = None
    format: str | None = None


class Call(Wire, kw_only=True):
    """The fields that the calls of all tools have."""

    CARRIED: ClassVar = ("id", "status", "namespace", "caller")
    call_id: str
    name: str
    id: JsonValue = None
    status: JsonValue = None
    namespace: JsonValue = None
    caller: JsonValue = None


class FunctionCall(Call, tag="function_call", kw_only=True):
    """A call of a function."""

    arguments: str | None = None


class CustomToolCall(Call, tag="custom_tool_call", kw_only=True):
    """A call of a tool that takes any text."""

    input: str


class FunctionCallOutput(Wire, tag="function_call_output", kw_only=True):
    """The output of a function."""

    CARRIED: ClassVar = ("id", "status", "caller", "name", "namespace")
    call_id: str
    output: str | list[Part]
    id: JsonValue = None
    status: JsonValue = None
    caller: JsonValue = None
    name: JsonValue = None
    namespace: JsonValue = None


class CustomToolCallOutput(FunctionCallOutput, tag="custom_tool_call_output", kw_only=True):
    """The output of a tool that takes any text."""


ITEMS: dict[str, type[Wire]] = {
    "message": Message,
    "reasoning": Reasoning,
    "function_call": FunctionCall,
    "custom_tool_call": CustomToolCall,
    "function_call_output": FunctionCallOutput,
    "custom_tool_call_output": CustomToolCallOutput,
}
"""The types of input items that are read."""


class Function(Wire, forbid_unknown_fields=False, kw_only=True):
    """A tool that is a function. Tools of other types are carried whole."""

    CARRIED: ClassVar = ("allowed_callers", "defer_loading", "output_schema")
    type: str
    name: str
    description: str | None = None
    parameters: JsonObject | None = None
    strict: bool | None = None
    allowed_callers: JsonValue = None
    defer_loading: JsonValue = None
    output_schema: JsonValue = None


class NamedFunction(Wire, forbid_unknown_fields=False, kw_only=True):
    """The choice of one function. Choices of other types are carried whole."""

    type: str
    name: str


class JsonSchema(Wire, forbid_unknown_fields=False, kw_only=True):
    """The form of an answer that fits a schema."""

    type: str
    schema: JsonObject
    name: str | None = None
    strict: bool | None = None
    description: str | None = None


class TextSettings(Wire, forbid_unknown_fields=False, kw_only=True):
    """The settings for the text of the answer."""

    format: JsonObject | None = None
    verbosity: JsonValue = None


class CreateResponse(Wire, forbid_unknown_fields=False, kw_only=True):
    """The body of a request. Thinking and sampling are read by what reads them in all dialects; what has no name here is carried too."""

    CARRIED: ClassVar = (
        "prompt", "previous_response_id", "conversation", "access_programs", "background", "background_options", "context_management",
        "image", "include", "max_tool_calls", "metadata", "moderation", "prompt_cache_key", "prompt_cache_options",
        "prompt_cache_retention", "safety_identifier", "service_tier", "store", "stream_options", "top_logprobs", "truncation", "user",
    )  # fmt: skip
    model: str | None = None
    input: str | list[JsonValue] | None = None
    instructions: str | None = None
    tools: list[JsonValue] | None = None
    tool_choice: str | JsonObject | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: int | None = None
    text: TextSettings | None = None
    stream: bool | None = None
    reasoning: JsonValue = None
    temperature: JsonValue = None
    top_p: JsonValue = None
    prompt: JsonValue = None
    previous_response_id: JsonValue = None
    conversation: JsonValue = None
    access_programs: JsonValue = None
    background: JsonValue = None
    background_options: JsonValue = None
    context_management: JsonValue = None
    image: JsonValue = None
    include: JsonValue = None
    max_tool_calls: JsonValue = None
    metadata: JsonValue = None
    moderation: JsonValue = None
    prompt_cache_key: JsonValue = None
    prompt_cache_options: JsonValue = None
    prompt_cache_retention: JsonValue = None
    safety_identifier: JsonValue = None
    service_tier: JsonValue = None
    store: JsonValue = None
    stream_options: JsonValue = None
    top_logprobs: JsonValue = None
    truncation: JsonValue = None
    user: JsonValue = None


class Delta(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A piece of a text, which nearly every frame of a stream is. `obfuscation` is random filler."""

    type: str
    delta: str
    output_index: int
    content_index: int = 0
    summary_index: int = 0
    item_id: str | None = None
    sequence_number: int = 0
    logprobs: list[JsonValue] | None = None
    obfuscation: str | None = None


class Place(msgspec.Struct, gc=False, kw_only=True):
    """Where a text stands: in which item, by its index or id, and in which part of that."""

    output_index: Annotated[int, Meta(ge=0)] | None = None
    item_id: str | None = None
    content_index: int = 0
    summary_index: int = 0


class OutputMessage(msgspec.Struct, gc=False, kw_only=True):
    """A message of a reply. Some servers give its text alone."""

    content: str | list[JsonObject] | None = None


class OutputPart(msgspec.Struct, gc=False, kw_only=True):
    """A text or a refusal in a message, or a piece of thinking."""

    type: str | None = None
    text: str | None = None
    refusal: str | None = None
    annotations: list[JsonValue] | None = None


class OutputReasoning(msgspec.Struct, gc=False, kw_only=True):
    """Thinking in a reply: parts of a summary, full text, ciphertext."""

    summary: list[JsonObject | str] | None = None
    content: list[JsonObject | str] | None = None
    encrypted_content: str | None = None
    format: str | None = None


class OutputCall(msgspec.Struct, gc=False, kw_only=True):
    """A call of a function in a reply."""

    call_id: str = ""
    name: str = ""
    arguments: str = ""


class IncompleteDetails(msgspec.Struct, gc=False, kw_only=True):
    """Why a reply ended early."""

    reason: str | None = None


class OutputResponse(msgspec.Struct, gc=False, kw_only=True):
    """A response, whole or as it stands in a stream. The request's own fields, which it repeats, are carried."""

    id: str | None = None
    model: str | None = None
    created_at: JsonValue = None
    status: str | None = None
    output: list[JsonValue] | None = None
    usage: JsonObject | None = None
    error: JsonValue = None
    incomplete_details: IncompleteDetails | None = None
    service_tier: JsonValue = None
    reasoning: JsonValue = None


_ATTACHED = "bardo-attached"
_TEXT = "bardo-text"
_BARDO_PREFIX = "_bardo_"


class SealContent(msgspec.Struct, frozen=True):
    """The content of a seal. `target` is empty for the reasoning item's own state, else `text`, `reasoning`, `call:<call_id>`, or an owner
    of `signed_blocks` for a text that follows.

    `text` is the thinking that the state was made for, where it was sealed with it.
    """

    states: tuple[Opaque, ...]
    target: str = ""
    text: str = ""


def asks_summary(request: Request) -> bool:
    """Whether the client asked for a summary of the thinking, and so reads it there."""
    policy = request.reasoning
    asked = fields_for(NAME, policy.carried).get("reasoning.summary") if policy is not None else None
    return request.dialect == NAME and asked in ("auto", "concise", "detailed")


def is_native(opaque: Opaque, fields: JsonObject) -> bool:
    """Whether `opaque` is written as it is; an item's `format` field vouches for the formats a router passes on."""
    is_own = opaque.format == FORMAT or (opaque.format != "" and opaque.format == fields.get("format"))
    return is_own and opaque.kind in ("id", "encrypted")


def attach(target: str, states: Sequence[Opaque]) -> str:
    """Seal state that belongs to something else than the item it travels in."""
    return seal((Opaque("id", target, _ATTACHED), *states))


def seal_thinking(states: Sequence[Opaque], text: str) -> str:
    """Seal a reasoning item's own state with its text: many clients give back the ciphertext, and no text."""
    return seal((*states, Opaque("id", text, _TEXT)) if text else states)


def opened(text: str) -> SealContent | None:
    """Return what was sealed into an `encrypted_content`, or None if it is a provider's own."""
    states = unseal(text)
    if states is None:
        return None
    if states and states[0].format == _ATTACHED:
        return SealContent(states[1:], states[0].data)
    thinking = "".join(state.data for state in states if state.format == _TEXT)
    return SealContent(tuple(state for state in states if state.format != _TEXT), text=thinking)


def digest_of(reply_id: str) -> str:
    """Return what the made ids of a reply's items have in common."""
    return hashlib.sha256(reply_id.encode("utf-8", "replace")).hexdigest()[:20]


def made_id(prefix: str, digest: str, index: int) -> str:
    """Return an id for item `index` of a reply. `digest` is what `digest_of` gave."""
    return f"{prefix}{_BARDO_PREFIX}{digest}_{index}"


def is_made(item_id: str) -> bool:
    """Whether bardo made this id."""
    return _BARDO_PREFIX in item_id


FRAMING = frozenset(
    {
        "max_output_tokens", "parallel_tool_calls", "temperature", "tool_choice", "tools", "top_p", "previous_response_id",
        "conversation", "reasoning", "text", "metadata", "instructions", "store", "truncation", "background", "user",
        "max_tool_calls", "top_logprobs", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "completed_at",
        "frequency_penalty", "presence_penalty", "billing", "copilot_usage", "prompt", "item", "item_id", "output_index", "id",
        "status", "format",
    }
)  # fmt: skip
"""Fields of replies that hold nothing for clients of other dialects: ids, times, bills, echoes of the request, wrapping of items."""
WITHIN = {"item": frozenset({"phase"}), "metadata": frozenset({"system_fingerprint"})}
"""Content inside of such fields: xAI gives its fingerprint in the metadata."""
USUAL = {"service_tier": ("default", "auto"), "item.phase": ("final_answer",), "caller": ({"type": "direct"},)}
"""The values of other fields that say nothing."""

STATUSES = frozenset({"completed", "incomplete", "failed", "in_progress", "cancelled", "queued"})
"""The words for how a response stands."""


_KIND, _OWN_ID = "web_search_call", "ws_bardo_"


def _write(key: str, query: str, results: SearchResults) -> list[JsonObject]:
    sources = [{"type": "url", "url": page.url} for page in results.pages]
    action = {"type": "search", "query": query, "queries": [query], "sources": sources}
    status = "failed" if results.error else "completed"
    return [{"type": _KIND, "id": f"{_OWN_ID}{key}", "status": status, "action": action}]


def _decode(item: JsonObject) -> SearchPart | None:
    if item.get("type") != _KIND:
        return None
    name = str(item.get("id"))
    return SearchPart(id=name, own=name.startswith(_OWN_ID))


SEARCHES = SearchForm(write=_write, read=_decode)

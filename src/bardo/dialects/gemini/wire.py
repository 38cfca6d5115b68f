"""The wire format of generateContent's bodies, as Google's reference says it (2026-11), and its words beside bardo's.

Requests are read in both spellings of their names. What bardo has a word for is read; fields beside it are carried as they came.
Source: https://ai.google.dev/api/generate-content.
"""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, UnsetType

from bardo.dialects.shared.content_forms import Citation, CitationForm, Citations
from bardo.dialects.shared.declaration import is_empty
from bardo.dialects.shared.json_values import JsonObject, without
from bardo.dialects.shared.states import seal, unseal
from bardo.dialects.shared.structs import Wire
from bardo.values.blocks import Opaque, has_no_arguments
from bardo.values.events import Finish, FinishReason

Number = int | float
"""A number; a whole one is also written as 40.0."""


class Blob(Wire, kw_only=True, rename="camel"):
    """Bytes in base64. One that has more fields is carried whole."""

    data: str
    mime_type: str | None = None


class FileData(Wire, kw_only=True, rename="camel"):
    """Where a file is. One that has more fields is carried whole."""

    file_uri: str
    mime_type: str | None = None


class ResponsePart(Wire, kw_only=True, rename="camel"):
    """A picture or a document that a function gave back."""

    inline_data: Blob | None = None
    file_data: FileData | None = None


class FunctionCall(Wire, kw_only=True, rename="camel"):
    """A call of a function, which may have no id."""

    name: str
    id: str | None = None
    args: JsonObject | None = None


class FunctionResponse(Wire, kw_only=True, rename="camel"):
    """The result of a function."""

    name: str
    id: str | None = None
    response: JsonObject | None = None
    parts: list[ResponsePart] | None = None


class Part(Wire, kw_only=True, rename="camel"):
    """A part of a content: one of text, a call, a result or media, with what goes with it."""

    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    inline_data: Blob | None = None
    file_data: FileData | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None


class Content(Wire, kw_only=True, rename="camel"):
    """A message, or a piece of one. Bare strings stand for parts of text."""

    parts: list[Part | str] | Part | str | None = None
    role: str | None = None


class FunctionDeclaration(Wire, kw_only=True, rename="camel"):
    """A function that the model may call. `parameters` are in Google's own words for schemas."""

    name: str
    description: str | None = None
    parameters: JsonObject | None = None
    parameters_json_schema: JsonObject | None = None


class FunctionCallingConfig(Wire, kw_only=True, rename="camel"):
    """Whether the model must call a function, and which of them it may call."""

    mode: str | None = None
    allowed_function_names: list[str] | None = None


class ToolConfig(Wire, kw_only=True, rename="camel"):
    """The settings for all tools."""

    function_calling_config: FunctionCallingConfig | None = None


class ThinkingConfig(Wire, kw_only=True, rename="camel"):
    """How much the model thinks, and whether its thoughts are shown."""

    thinking_budget: Number | None = None
    thinking_level: str | None = None
    include_thoughts: bool | None = None


class GenerationConfig(Wire, kw_only=True, rename="camel"):
    """Sampling, thinking and the shape of the answer."""

    temperature: Number | None = None
    top_p: Number | None = None
    top_k: Number | None = None
    frequency_penalty: Number | None = None
    presence_penalty: Number | None = None
    seed: Number | None = None
    stop_sequences: list[str] | None = None
    max_output_tokens: Number | None = None
    candidate_count: Number | None = None
    response_mime_type: str | None = None
    response_schema: object = None
    response_json_schema: object = None
    response_logprobs: object = None
    thinking_config: ThinkingConfig | None = None


class Request(Wire, kw_only=True, rename="camel"):
    """The body of a request. Each tool is an object whose fields are functions, or tools that Google runs.

    `model` is ignored if the path names one.
    """

    contents: list[Content] | Content | None = None
    model: object = None
    system_instruction: list[Part | str] | Content | str | None = None
    tools: list[JsonObject] | JsonObject | None = None
    tool_config: ToolConfig | None = None
    generation_config: GenerationConfig | None = None


class EmbedContentRequest(Wire, kw_only=True, rename="camel"):
    """A request for the vector of one content."""

    content: JsonObject
    model: object = None
    task_type: str | None = None
    title: object = None
    output_dimensionality: object = None


class ReplyCall(Wire, kw_only=True, rename="camel"):
    """A call of a function in a reply. A piece of one has `partialArgs`, and is no call yet."""

    name: str | None = None
    args: JsonObject | None = None
    id: str | None = None


class ReplyPart(Wire, kw_only=True, rename="camel"):
    """A part of a reply: text or a call with what goes with it, or else something that has no counterpart elsewhere."""

    text: str | UnsetType | None = UNSET
    thought: bool | UnsetType | None = UNSET
    thought_signature: str | UnsetType | None = UNSET
    function_call: ReplyCall | UnsetType | None = UNSET


class ReplyContent(Wire, kw_only=True, rename="camel"):
    """The parts that a chunk adds to a candidate."""

    parts: list[ReplyPart] | None = None
    role: object = None


class Candidate(Wire, kw_only=True, rename="camel"):
    """An answer, or what a chunk adds to it. What stands in fields that are not set is carried where they are."""

    content: ReplyContent | None = None
    finish_reason: str | None = None
    index: object = None
    finish_message: object = UNSET
    safety_ratings: object = UNSET
    citation_metadata: object = UNSET
    grounding_metadata: object = UNSET
    url_context_metadata: object = UNSET
    token_count: object = UNSET
    avg_logprobs: object = UNSET
    logprobs_result: object = UNSET


class Response(Wire, kw_only=True, rename="camel"):
    """A GenerateContentResponse: a whole reply, or a chunk of a stream."""

    candidates: list[Candidate] | None = None
    usage_metadata: msgspec.Raw = msgspec.Raw()
    model_version: str | None = None
    response_id: str | None = None
    create_time: str | UnsetType | None = UNSET
    prompt_feedback: object = UNSET
    model_status: object = UNSET
    error: object = None


class TextPart(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A part that is nothing but text, or thought."""

    text: str
    thought: bool | None = None


class TextContent(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A content of one such part."""

    parts: tuple[TextPart]
    role: object = None


class TextCandidate(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A candidate that says nothing but such a content."""

    content: TextContent
    index: object = None


class TextChunk(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="camel", gc=False):
    """A chunk that adds text to one candidate, as most do, and says nothing else of the reply but its names and its usage so far."""

    candidates: tuple[TextCandidate]
    usage_metadata: msgspec.Raw = msgspec.Raw()
    model_version: str | None = None
    response_id: str | None = None
    create_time: str | UnsetType | None = UNSET


NAME = "gemini"
FORMAT = "google-gemini-v1"
RAW_ARGUMENTS = "_raw"
"""Gemini's `args` is an object: arguments that are not one stand whole under this key, and are taken out of it again."""

REASONS: dict[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "refusal",
    "RECITATION": "refusal",
    "LANGUAGE": "refusal",
    "BLOCKLIST": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "SPII": "refusal",
    "MODEL_ARMOR": "refusal",
    "ESCALATION": "refusal",
    "PUP_LIMITED_DISABLED": "refusal",
    "IMAGE_SAFETY": "refusal",
    "IMAGE_PROHIBITED_CONTENT": "refusal",
    "IMAGE_RECITATION": "refusal",
    "IMAGE_OTHER": "error",
    "NO_IMAGE": "error",
    "CONTINUATION": "pause",
    "MALFORMED_FUNCTION_CALL": "error",
    "MALFORMED_RESPONSE": "error",
    "UNEXPECTED_TOOL_CALL": "error",
    "TOO_MANY_TOOL_CALLS": "error",
    "MISSING_THOUGHT_SIGNATURE": "error",
}

_FINISH_REASONS: dict[FinishReason, str] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "refusal": "SAFETY",
}


def finish_reason(word: str, *, called: bool) -> FinishReason:
    """Return why a candidate ended. Gemini says STOP for function calls too, so `called` makes the difference."""
    reason = REASONS.get(word, "unknown")
    return "tool_calls" if reason == "stop" and called else reason


def finish_word(finish: Finish) -> str:
    """Return Gemini's word: its own where the reply came from Gemini, else the nearest."""
    ours = finish.raw in REASONS and finish_reason(finish.raw, called=finish.reason == "tool_calls") == finish.reason
    if ours or (finish.reason == "unknown" and finish.raw.isupper()):
        return finish.raw
    return _FINISH_REASONS.get(finish.reason, "OTHER")


def camel(name: str) -> str:
    """Return `response_mime_type` as `responseMimeType`; the real API takes both spellings."""
    if "_" not in name:
        return name
    first, *others = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in others)


def field_in(fields: JsonObject, name: str) -> object:
    """Return a field of an object in whichever spelling it stands there, or None if it is absent or null."""
    return next((value for key, value in reversed(fields.items()) if value is not None and camel(key) == name), None)


def is_native(opaque: Opaque) -> bool:
    """Whether this is a thought signature of Gemini's own."""
    return opaque.format == FORMAT and opaque.kind == "signature"


def signature_of(states: Sequence[Opaque]) -> str:
    """Return what stands in `thoughtSignature`: Gemini's own signature as it is, anything else sealed, nothing for nothing."""
    if not states:
        return ""
    return states[0].data if len(states) == 1 and is_native(states[0]) else seal(states)


def opaque_of(signature: str) -> tuple[tuple[Opaque, ...], bool]:
    """Return the state in a client's `thoughtSignature`, and whether it had been sealed by bardo."""
    # SDKs hold the field as bytes and write it in base64's other alphabet.
    sealed = unseal(signature.replace("-", "+").replace("_", "/"))
    if sealed is not None:
        return sealed, True
    return ((Opaque("signature", signature, FORMAT),) if signature else ()), False


def arguments_object(arguments: str) -> tuple[JsonObject, bool]:
    """Return the arguments as the object Gemini wants, and whether they had to be kept as raw text."""
    if has_no_arguments(arguments):
        return {}, False
    try:
        parsed = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        parsed = None
    return (parsed, False) if isinstance(parsed, dict) else ({RAW_ARGUMENTS: arguments}, True)


def arguments_text(args: JsonObject) -> str:
    """Return the arguments as JSON text, or as the raw text that could not be put in an object."""
    raw = args.get(RAW_ARGUMENTS)
    if len(args) == 1 and isinstance(raw, str):
        return raw
    return msgspec.json.encode(args).decode()


SAMPLING = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty",
    "seed": "seed",
    "stop": "stopSequences",
}
"""The sampling parameters by their names here."""


_FIELD = "groundingMetadata"
_CHUNKS, _SUPPORTS = "groundingChunks", "groundingSupports"


def _decode(value: object) -> Citations:
    grounding = value if isinstance(value, dict) else {}
    pages = [_page(chunk) for chunk in _objects(grounding.get(_CHUNKS))]
    citations: list[Citation] = []
    used: set[int] = set()
    for support in _objects(grounding.get(_SUPPORTS)):
        segment = support.get("segment")
        segment = segment if isinstance(segment, dict) else {}
        start, end, text = segment.get("startIndex") or 0, segment.get("endIndex"), segment.get("text") or ""
        for number in support.get("groundingChunkIndices") or ():
            page = pages[number] if type(number) is int and 0 <= number < len(pages) else None
            if page is not None and type(start) is int and type(end) is int:
                used.add(number)
                citations.append(page._replace(start=start, end=end, text=text))
    citations += [page for number, page in enumerate(pages) if page is not None and number not in used]
    others = without(grounding, _CHUNKS, _SUPPORTS)
    lost = [f"{_FIELD}.{name}" for name, held in others.items() if not is_empty(held)]
    if None in pages or not grounding:
        lost.append(f"{_FIELD}.{_CHUNKS}")
    return Citations(tuple(citations), tuple(lost) if citations else (_FIELD,))


def _write(citations: Sequence[Citation]) -> JsonObject:
    pages = {(citation.url, citation.title): None for citation in citations}
    numbers = {page: number for number, page in enumerate(pages)}
    stretches: dict[tuple[int, int, str], list[int]] = {}
    for citation in citations:
        if citation.start is not None and citation.end is not None and citation.end > citation.start:
            listed = stretches.setdefault((citation.start, citation.end, citation.text), [])
            listed.append(numbers[citation.url, citation.title])
    supports = [
        {"segment": {"startIndex": start, "endIndex": end, "text": text}, "groundingChunkIndices": listed}
        for (start, end, text), listed in stretches.items()
    ]
    return {_CHUNKS: [{"web": {"uri": url, "title": title}} for url, title in pages], _SUPPORTS: supports}


def _page(chunk: JsonObject) -> Citation | None:
    web = chunk.get("web")
    if not isinstance(web, dict) or not isinstance(web.get("uri"), str):
        return None
    title = web.get("title")
    return Citation(web["uri"], title if isinstance(title, str) else "")


def _objects(value: object) -> list[JsonObject]:
    return [item if isinstance(item, dict) else {} for item in value] if isinstance(value, list) else []


CITATIONS = CitationForm(field=_FIELD, read=_decode, write=_write, of_choice=True, in_bytes=True, at_end=True)

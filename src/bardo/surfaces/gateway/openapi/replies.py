"""The bodies of replies, by the form of a route: what bardo writes in each dialect. A reply may hold more, which its provider added.

The bodies of replies about what is kept: responses, conversations, files and batches, by endpoint.
"""

from __future__ import annotations

from typing import NamedTuple

from bardo.surfaces.gateway.openapi.json_schema import (
    ANY,
    BOOLEAN,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    Schema,
    array,
    either,
    fields,
    just,
    one_of,
    or_null,
    ref,
)

_STRING_OR_NULL_REPLIES, _INTEGER_OR_NULL = or_null(STRING), or_null(INTEGER)


def _page(item: Schema, object_name: str = "list") -> Schema:
    return fields(
        *("object", "data", "first_id", "last_id", "has_more"),
        object=just(object_name),
        data=array(item),
        first_id=_STRING_OR_NULL_REPLIES,
        last_id=_STRING_OR_NULL_REPLIES,
        has_more=BOOLEAN,
    )


def _deleted(kind: str) -> Schema:
    return fields("id", "object", "deleted", id=STRING, object=just(kind), deleted=BOOLEAN)


_ITEM = fields("type", type=STRING, id=STRING)
_CONVERSATION = fields(
    *("id", "object", "created_at", "metadata"),
    id=STRING,
    object=just("conversation"),
    created_at=NUMBER,
    metadata=OBJECT,
)
_FILE = fields(
    *("id", "object", "bytes", "created_at", "filename", "purpose"),
    id=STRING,
    object=just("file"),
    bytes=INTEGER,
    created_at=INTEGER,
    expires_at=_INTEGER_OR_NULL,
    filename=STRING,
    purpose=STRING,
    status=STRING,
)
_BATCH = fields(
    *("id", "object", "endpoint", "status", "created_at", "request_counts", "bardo"),
    id=STRING,
    object=just("batch"),
    endpoint=STRING,
    status=STRING,
    created_at=INTEGER,
    input_file_id=STRING,
    output_file_id=_STRING_OR_NULL_REPLIES,
    error_file_id=_STRING_OR_NULL_REPLIES,
    request_counts=fields("total", "completed", "failed", total=INTEGER, completed=INTEGER, failed=INTEGER),
    bardo=ref("BatchFigures"),
)
_MESSAGE_BATCH = fields(
    *("id", "type", "processing_status", "request_counts", "created_at", "expires_at", "results_url", "bardo"),
    id=STRING,
    type=just("message_batch"),
    processing_status=one_of("in_progress", "canceling", "ended"),
    request_counts=OBJECT,
    created_at=STRING,
    expires_at=STRING,
    ended_at=_STRING_OR_NULL_REPLIES,
    results_url=_STRING_OR_NULL_REPLIES,
    bardo=ref("BatchFigures"),
)

KEPT_REPLIES: dict[str, Schema] = {
    "delete_response": _deleted("response"),
    "list_input": _page(_ITEM),
    "create_conversation": _CONVERSATION,
    "show_conversation": _CONVERSATION,
    "update_conversation": _CONVERSATION,
    "delete_conversation": _deleted("conversation.deleted"),
    "list_items": _page(_ITEM),
    "add_items": _page(_ITEM),
    "show_item": _ITEM,
    "delete_item": _CONVERSATION,
    "upload_file": _FILE,
    "list_files": _page(_FILE),
    "show_file": _FILE,
    "delete_file": _deleted("file"),
    "create_batch": _BATCH,
    "list_batches": _page(_BATCH),
    "show_batch": _BATCH,
    "cancel_batch": _BATCH,
    "create_message_batch": _MESSAGE_BATCH,
    "list_message_batches": fields(
        *("data", "has_more", "first_id", "last_id"),
        data=array(_MESSAGE_BATCH),
        has_more=BOOLEAN,
        first_id=_STRING_OR_NULL_REPLIES,
        last_id=_STRING_OR_NULL_REPLIES,
    ),
    "show_message_batch": _MESSAGE_BATCH,
    "delete_message_batch": fields("id", "type", id=STRING, type=just("message_batch_deleted")),
    "cancel_message_batch": _MESSAGE_BATCH,
}
"""The replies by endpoint."""


_BARDO = ref("BardoReply")
_OBJECTS, _STRING_OR_NULL = array(OBJECT), or_null(STRING)
_COUNT_BARDO = fields(tokens_approx=BOOLEAN)
_ROUTE_BARDO = fields("route", route=one_of("alias", "workload"), about=STRING)
_VECTORS = array(array(NUMBER))


class Stream(NamedTuple):
    """A streamed reply: its content type, and the schema of the JSON that each event or line holds; None where the frames are binary.

    `also_array`: it may also be asked for as one JSON array.
    """

    content_type: str
    event: Schema | None
    also_array: bool = False


SSE, NDJSON, EVENTSTREAM = "text/event-stream", "application/x-ndjson", "application/vnd.amazon.eventstream"

_CHOICE = fields("index", index=INTEGER, finish_reason=_STRING_OR_NULL)
_CHAT = fields(
    *("id", "object", "model", "choices"),
    id=STRING,
    object=just("chat.completion"),
    created=INTEGER,
    model=STRING,
    choices=array(
        {**_CHOICE, "required": ["index", "message"], "properties": {**_CHOICE["properties"], "message": OBJECT}}
    ),
    usage=or_null(OBJECT),
    bardo=_BARDO,
)
_CHAT_CHUNK = either(
    fields(
        *("object", "choices"),
        id=STRING,
        object=just("chat.completion.chunk"),
        created=INTEGER,
        model=STRING,
        choices=_OBJECTS,
        usage=or_null(OBJECT),
        bardo=OBJECT,
    ),
    fields("error", error=OBJECT),
    fields("type", "partial", type=just("bardo.partial"), partial=ANY),
)
_COMPLETION = fields(
    *("id", "object", "model", "choices"),
    id=STRING,
    object=just("text_completion"),
    created=INTEGER,
    model=STRING,
    choices=array(fields("index", "text", index=INTEGER, text=STRING, finish_reason=_STRING_OR_NULL)),
    usage=or_null(OBJECT),
)
_RESPONSE = fields(
    *("id", "object", "status", "output"),
    id=STRING,
    object=just("response"),
    created_at=NUMBER,
    status=one_of("completed", "failed", "in_progress", "cancelled", "queued", "incomplete"),
    model=STRING,
    output=array(fields("type", type=STRING)),
    error=or_null(OBJECT),
    incomplete_details=or_null(OBJECT),
    usage=or_null(OBJECT),
    bardo=_BARDO,
)
_MESSAGE = fields(
    *("id", "type", "role", "model", "content", "stop_reason", "usage"),
    id=STRING,
    type=just("message"),
    role=just("assistant"),
    model=STRING,
    content=array(fields("type", type=STRING)),
    stop_reason=_STRING_OR_NULL,
    stop_sequence=_STRING_OR_NULL,
    usage=OBJECT,
    bardo=_BARDO,
)
_CONTENT = fields(
    candidates=array(fields(content=OBJECT, finishReason=STRING, index=INTEGER)),
    usageMetadata=OBJECT,
    modelVersion=STRING,
    responseId=STRING,
    bardo=OBJECT,
)
_CONTENT_EVENT = either(_CONTENT, fields("error", error=OBJECT))
_INTERACTION = fields(
    *("id", "status", "object", "steps"),
    id=STRING,
    object=just("interaction"),
    status=STRING,
    model=STRING,
    steps=array(fields("type", type=STRING)),
    usage=OBJECT,
    bardo=_BARDO,
)
_COHERE = fields(
    *("id", "message", "finish_reason"),
    id=STRING,
    message=fields("role", role=just("assistant"), content=_OBJECTS, tool_calls=_OBJECTS),
    finish_reason=STRING,
    usage=OBJECT,
    bardo=_BARDO,
)
_CONVERSE = fields(
    *("output", "stopReason", "usage"),
    output=fields("message", message=fields("role", "content", role=just("assistant"), content=_OBJECTS)),
    stopReason=STRING,
    usage=OBJECT,
    metrics=OBJECT,
    bardo=_BARDO,
)
_OLLAMA_CHAT = fields(
    *("model", "created_at", "done"),
    model=STRING,
    created_at=STRING,
    message=fields("role", role=just("assistant"), content=STRING, thinking=STRING, tool_calls=_OBJECTS),
    done=BOOLEAN,
    done_reason=STRING,
    prompt_eval_count=INTEGER,
    eval_count=INTEGER,
    bardo=OBJECT,
)
_OLLAMA_GENERATE = fields(
    *("model", "created_at", "done"),
    model=STRING,
    created_at=STRING,
    response=STRING,
    thinking=STRING,
    done=BOOLEAN,
    done_reason=STRING,
    bardo=OBJECT,
)
_LINE_ERROR = fields("error", error=STRING)
_OPENAI_MODEL = fields(
    "id", "object", id=STRING, object=just("model"), created=INTEGER, owned_by=STRING, bardo=_ROUTE_BARDO
)
_ANTHROPIC_MODEL = fields(
    *("type", "id", "display_name", "created_at"),
    type=just("model"),
    id=STRING,
    display_name=STRING,
    created_at=STRING,
    bardo=_ROUTE_BARDO,
)
_GEMINI_MODEL = fields(
    "name", name=STRING, displayName=STRING, supportedGenerationMethods=array(STRING), bardo=_ROUTE_BARDO
)
_OLLAMA_MODEL = fields("name", "model", name=STRING, model=STRING, details=OBJECT, bardo=_ROUTE_BARDO)
_OPENAI_MODELS = fields("object", "data", object=just("list"), data=array(_OPENAI_MODEL))
_ANTHROPIC_MODELS = fields("data", "has_more", data=array(_ANTHROPIC_MODEL), has_more=BOOLEAN)
_GEMINI_MODELS = fields("models", models=array(_GEMINI_MODEL))

REPLIES: dict[str, Schema] = {
    "generate openai_chat": _CHAT,
    "respond openai_responses": _RESPONSE,
    "generate anthropic_messages": _MESSAGE,
    "generate gemini": _CONTENT,
    "generate gemini_interactions": _INTERACTION,
    "generate cohere": _COHERE,
    "generate bedrock_converse": _CONVERSE,
    "generate bedrock_invoke": OBJECT,
    "generate_or_load ollama": _OLLAMA_CHAT,
    "generate_or_load ollama_generate": _OLLAMA_GENERATE,
    "complete": _COMPLETION,
    "embed openai_chat": fields(
        *("object", "data", "model"),
        object=just("list"),
        data=array(fields("index", "embedding", index=INTEGER, embedding=either(array(NUMBER), STRING))),
        model=STRING,
        usage=OBJECT,
        bardo=OBJECT,
    ),
    "embed ollama embed": fields("embeddings", embeddings=_VECTORS, model=STRING, bardo=OBJECT),
    "embed ollama embeddings": fields("embedding", embedding=array(NUMBER), bardo=OBJECT),
    "embed gemini embedContent": fields("embedding", embedding=fields("values", values=array(NUMBER)), bardo=OBJECT),
    "embed gemini batchEmbedContents": fields(
        "embeddings", embeddings=array(fields("values", values=array(NUMBER))), bardo=OBJECT
    ),
    "count_tokens anthropic_messages": fields("input_tokens", input_tokens=INTEGER, bardo=_COUNT_BARDO),
    "count_tokens openai_responses": fields(
        "object", "input_tokens", object=just("response.input_tokens"), input_tokens=INTEGER, bardo=_COUNT_BARDO
    ),
    "count_tokens gemini": fields("totalTokens", totalTokens=INTEGER, bardo=_COUNT_BARDO),
    "models openai_chat": either(_OPENAI_MODELS, _ANTHROPIC_MODELS, _GEMINI_MODELS),
    "models gemini": _GEMINI_MODELS,
    "models ollama": fields("models", models=array(_OLLAMA_MODEL)),
    "model openai_chat": either(_OPENAI_MODEL, _ANTHROPIC_MODEL, _GEMINI_MODEL),
    "model gemini": _GEMINI_MODEL,
    "show_capabilities": fields(
        "capabilities", "details", capabilities=array(STRING), details=OBJECT, model_info=OBJECT
    ),
    "loaded_models": fields("models", models=array(OBJECT)),
    "show_response": _RESPONSE,
    **KEPT_REPLIES,
    "openapi": fields("openapi", "info", "paths", openapi=STRING, info=OBJECT, paths=OBJECT),
}
"""The whole replies in JSON; bardo's own are described by their types."""

_TYPED_EVENT = fields("type", type=STRING)

STREAMS: dict[str, Stream] = {
    "generate openai_chat": Stream(SSE, _CHAT_CHUNK),
    "complete": Stream(SSE, either(_COMPLETION, fields("error", error=OBJECT))),
    "respond openai_responses": Stream(SSE, _TYPED_EVENT),
    "generate anthropic_messages": Stream(SSE, _TYPED_EVENT),
    "generate gemini": Stream(SSE, _CONTENT_EVENT, also_array=True),
    "generate gemini_interactions": Stream(SSE, either(fields("event_type", event_type=STRING), _TYPED_EVENT)),
    "generate cohere": Stream(SSE, _TYPED_EVENT),
    "generate_or_load ollama": Stream(NDJSON, either(_OLLAMA_CHAT, _LINE_ERROR)),
    "generate_or_load ollama_generate": Stream(NDJSON, either(_OLLAMA_GENERATE, _LINE_ERROR)),
    "generate bedrock_converse": Stream(EVENTSTREAM, None),
    "generate bedrock_invoke": Stream(EVENTSTREAM, None),
}
"""The streamed replies. `data: [DONE]` ends streams of Chat, completions, Interactions and Cohere, and is no JSON."""

PLAIN: dict[str, str] = {
    "root": "text/plain; charset=utf-8",
    "metrics": "text/plain",
    "read_file": "application/octet-stream",
    "read_message_batch": "application/x-jsonl",
}
"""The replies that are not JSON, and their content types."""

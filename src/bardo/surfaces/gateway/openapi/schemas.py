"""The parts of the OpenAPI page: parameters, bodies of requests, and replies, made from the dialects' structs."""

from __future__ import annotations

import re
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from bardo.dialects.anthropic_messages import wire as anthropic_messages
from bardo.dialects.batches.clients import ENDPOINTS
from bardo.dialects.bedrock_converse import wire as bedrock_converse
from bardo.dialects.cohere import wire as cohere
from bardo.dialects.gemini import wire as gemini
from bardo.dialects.gemini_interactions import wire as gemini_interactions
from bardo.dialects.ollama import wire as ollama
from bardo.dialects.openai_chat import wire as openai_chat
from bardo.dialects.openai_responses import wire as openai_responses
from bardo.dialects.shared.control_fields import FIELDS, OPENAI_SAMPLING
from bardo.dialects.shared.options import INCLUDABLE, REASONING_WORDS
from bardo.dialects.shared.structs import OTHERS, Wire
from bardo.surfaces.gateway.openapi.json_schema import (
    ANY,
    BOOLEAN,
    INTEGER,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    Schema,
    array,
    described,
    either,
    fields,
    just,
    one_of,
    or_null,
    ref,
    structure,
)
from bardo.surfaces.gateway.openapi.listing import ListedRoute

_LISTED = ", ".join(f"`{name}`" for name in INCLUDABLE)

REQUEST_HEADERS: dict[str, tuple[Schema, str]] = {
    "X-Bardo-Include": (STRING, f"What is put into the reply, separated by commas: {_LISTED}."),
    "X-Bardo-Reasoning": (one_of(*REASONING_WORDS), "How thinking is shown in the reply."),
    "X-Bardo-Allow-Loss": (
        STRING,
        "Losses that are reported instead of refused, by name, separated by commas; `*` is all.",
    ),
    "X-Bardo-Intent": (STRING, "What the call needs: `quality=high; require=vision`, or a JSON object."),
    "X-Bardo-Subsystem": (STRING, "The workload whose needs and profile the call has."),
    "X-Bardo-Vitality": (NUMBER, "What is left of the agent that asks, from 0 to 1."),
    "X-Bardo-Deadline-Seconds": (NUMBER, "Within how many seconds a stream has to begin, and a whole reply to end."),
    "X-Bardo-Allow-Stale": (NUMBER, "How many seconds old a reply may be that is given where nobody answers."),
    "X-Bardo-Pipeline": (STRING, "The profile whose layers work on the call, or `off`."),
    "X-Bardo-Session": (STRING, "The conversation that the call belongs to."),
    "X-Bardo-Agent": (STRING, "The program that asks."),
    "X-Bardo-Repository": (STRING, "The repository that the call is about."),
    "X-Bardo-Verify": (STRING, "A second model that is asked whether it agrees, as `provider/model`."),
    "Cache-Control": (STRING, "How kept replies are used: `no-store`, `no-cache`, `max-age=60`."),
}
"""The headers that a request for a reply, for vectors or for a count may have."""

REPLY_HEADERS: dict[str, tuple[Schema, str]] = {
    "X-Bardo-Request-Id": (STRING, "The call's id, the same as in the log."),
    "X-Bardo-Provider": (STRING, "The id of the provider that served it."),
    "X-Bardo-Model": (STRING, "The model's name there."),
    "X-Bardo-Route": (STRING, "How it was found who answers, where the request named a workload or gave an intent."),
    "X-Bardo-Degraded": (STRING, "The names of what was changed or lost."),
    "X-Bardo-Reasoning": (STRING, "What was asked for, sent and observed of the model's thinking."),
    "X-Bardo-Reasoning-Tokens": (STRING, "Tokens of thinking, or `unknown`; whole replies only."),
    "X-Bardo-Reasoning-Tokens-Approx": (one_of("true"), "The count of thinking tokens is an estimate."),
    "X-Bardo-Cost-Usd": (
        STRING,
        "US dollars, exactly; whole replies whose cost is known, and streams out of the cache.",
    ),
    "X-Bardo-Cost-Approx": (one_of("true"), "Tokens of an attempt that broke off are estimated."),
    "X-Bardo-Cache": (STRING, "What the layer `cache` did."),
    "X-Bardo-Stale": (STRING, "The age in seconds of an old reply that was given because nobody answered."),
    "X-Bardo-Upstream-Request-Id": (STRING, "The id that the provider gave the request."),
    "X-Request-Id": (STRING, "The id of the request, as OpenAI's libraries read it."),
    "Request-Id": (STRING, "The id of the request, as Anthropic's libraries read it."),
}
"""The headers of a reply of a model."""

ERROR_HEADERS: dict[str, tuple[Schema, str]] = {
    "X-Bardo-Error": (STRING, "The error's code."),
    "X-Bardo-Limit": (STRING, "The limit of the key that has too little left."),
    "Retry-After": (STRING, "After how many seconds another try may work."),
}
"""The headers of an error."""

_PATH_WORDS = {
    "model": "The model's name. Slashes in it may stand as they are.",
    "publisher": "`google`, or a provider's id, which stands before the model's name then.",
    "project": "Any name: Vertex AI's clients send one.",
    "location": "Any name: Vertex AI's clients send one.",
    "episode_id": "The id of an episode, or of its call.",
    "lesson_id": "The id of a lesson.",
    "response_id": "The id of a response.",
    "conversation_id": "The id of a conversation.",
    "item_id": "The id of an item of the conversation.",
    "file_id": "The id of a file.",
    "batch_id": "The id of a batch.",
    "message_batch_id": "The id of a message batch.",
}
_LIMIT: Schema = {"type": "integer", "minimum": 1}
_AFTER = "The id after which the page begins."
QUERIES: dict[str, dict[str, tuple[Schema, str]]] = {
    "list_input": {
        "limit": ({**_LIMIT, "maximum": 100}, "How many items, 20 where it is left out."),
        "order": (one_of("asc", "desc"), "The order of the items; `desc` where it is left out."),
        "after": (STRING, _AFTER),
    },
    "list_files": {
        "limit": ({**_LIMIT, "maximum": 10_000}, "How many files."),
        "order": (one_of("asc", "desc"), "The order of the files; `desc` where it is left out."),
        "after": (STRING, _AFTER),
        "purpose": (STRING, "Only files of this purpose."),
    },
    "list_batches": {"limit": ({**_LIMIT, "maximum": 100}, "How many batches."), "after": (STRING, _AFTER)},
    "list_message_batches": {
        "limit": ({**_LIMIT, "maximum": 1000}, "How many batches."),
        "after_id": (STRING, _AFTER),
        "before_id": (STRING, "The id before which the page ends."),
    },
    "events": {
        "request_id": (STRING, "Only events of this call."),
        "subsystem": (STRING, "Only events of this workload."),
        "event": (STRING, "Only events whose names begin so, separated by commas."),
        "last_event_id": (STRING, "The last event that was seen, as the header `Last-Event-ID`."),
    },
    "search_memory": {
        "query": (STRING, 'Words, `"phrases"` and `begin*` that stand in questions, thinking and answers.'),
        "limit": ({**_LIMIT, "maximum": 100}, "How many episodes, 10 where it is left out."),
        "by": (one_of("both", "words", "meaning"), "What is compared; `both` where it is left out."),
        "session": (STRING, "Only this conversation."),
        "subsystem": (STRING, "Only this workload."),
        "model": (STRING, "Only calls that this model served."),
        "since": (NUMBER, "Only calls since this Unix time."),
        "before": (NUMBER, "Only calls before this Unix time."),
    },
    "show_response": {"stream": (BOOLEAN, "`true` is refused: a kept response is not streamed again.")},
    "streamGenerateContent": {"alt": (one_of("sse"), "Server-sent events in the place of a JSON array.")},
}
QUERIES["/v1/models"] = {
    "limit": ({**_LIMIT, "maximum": 1000}, "How many models, in Anthropic's form; all where it is left out."),
    "after_id": (STRING, _AFTER),
    "before_id": (STRING, "The id before which the page ends."),
}
QUERIES["/inference-profiles"] = {
    "maxResults": ({**_LIMIT, "maximum": 1000}, "How many profiles; all where it is left out."),
    "nextToken": (STRING, "Where the page begins, as the page before says."),
    "type": (STRING, "`SYSTEM_DEFINED`, which all are; of another type there are none."),
}
QUERIES["list_items"] = QUERIES["list_input"]
"""The parameters in the query, by endpoint."""

OPTION_ENDPOINTS = frozenset(
    ("generate", "generate_or_load", "respond", "complete", "embed", "count_tokens", "compact")
)
"""The endpoints that ask a model, and so take and answer with bardo's headers."""


def header_components() -> dict[str, Any]:
    """Return the headers of replies and errors, as components."""
    return {
        name: {"description": description, "schema": schema}
        for name, (schema, description) in {**REPLY_HEADERS, **ERROR_HEADERS}.items()
    }


def parameter_components() -> dict[str, Any]:
    """Return the headers of requests, as components."""
    return {name: _parameter("header", name, *row) for name, row in REQUEST_HEADERS.items()}


def parameters_of(route: ListedRoute) -> list[dict[str, Any]]:
    """Return the parameters of one path and method."""
    names = re.findall(r"\{(\w+)\}", route.path)
    found = [{**_parameter("path", name, STRING, _PATH_WORDS[name]), "required": True} for name in names]
    verb = route.path.rpartition(":")[2]
    query = QUERIES.get(route.route.endpoint) or QUERIES.get(verb) or {}
    found += [_parameter("query", name, *row) for name, row in query.items()]
    if route.route.endpoint in OPTION_ENDPOINTS:
        found += [{"$ref": f"#/components/parameters/{name}"} for name in REQUEST_HEADERS]
    return found


def _parameter(place: str, name: str, schema: Schema, description: str) -> dict[str, Any]:
    return {"name": name, "in": place, "description": description, "schema": schema}


_PLAIN_TYPES = {str: STRING, bool: BOOLEAN, int: INTEGER, float: NUMBER, NoneType: NULL, object: ANY, Any: ANY}


def _schema_of(kind: Any) -> Schema:
    """Return the schema of what a field of a struct takes. What objects hold is said by the makers' own references."""
    if get_origin(kind) in (Union, UnionType):
        found = [_schema_of(one) for one in get_args(kind)]
        several = [
            one
            for place, one in enumerate(found)
            if one not in found[:place] and not (one == INTEGER and NUMBER in found)
        ]
        return either(*several) if len(several) > 1 else several[0]
    if get_origin(kind) is list:
        return array(_schema_of(get_args(kind)[0]))
    return _PLAIN_TYPES.get(kind, OBJECT)


def _fields_of(struct: type[Wire], *left_out: str, **own: Schema) -> dict[str, Schema]:
    """Return the fields that a struct reads, without some, and those that are said otherwise or beside it."""
    types = get_type_hints(struct)
    names = {field.encode_name: field.name for field in msgspec.structs.fields(struct) if field.encode_name != OTHERS}
    return {name: _schema_of(types[names[name]]) for name in names if name not in left_out} | own


_BARDO = ref("BardoOptions")
_MODEL = described(STRING, "A model's name, `provider/model`, an alias or a workload.")
_OBJECTS = array(OBJECT)
_TEXTS = either(STRING, array(STRING))
_COUNT = or_null({"type": "integer", "minimum": 1})
_MAYBE_OBJECT, _MAYBE_OBJECTS, _MAYBE_STRING = or_null(OBJECT), or_null(_OBJECTS), or_null(STRING)
_MAYBE_BOOLEAN = or_null(BOOLEAN)
_OWN: dict[str, Schema] = {"model": _MODEL, "bardo": _BARDO}
_CHOICE_OF_TOOLS = or_null(either(STRING, OBJECT))
_CHAT = _fields_of(
    openai_chat.Request,
    **_OWN,
    **dict.fromkeys(("n", "max_tokens", "max_completion_tokens"), _COUNT),
    **dict.fromkeys(("tool_choice", "function_call"), _CHOICE_OF_TOOLS),
)
_THINKING_AND_SAMPLING = {name: _CHAT[name] for name in _CHAT if name in {*FIELDS, *OPENAI_SAMPLING.values()}}
_RESPONSES = _fields_of(
    openai_responses.CreateResponse,
    **_OWN,
    **_THINKING_AND_SAMPLING,
    max_output_tokens=_COUNT,
    store=_MAYBE_BOOLEAN,
    previous_response_id=_MAYBE_STRING,
    conversation=or_null(either(STRING, OBJECT)),
)
_MESSAGES = _fields_of(
    anthropic_messages.Request, **_OWN, max_tokens={"type": "integer", "minimum": 1}, output_format=_MAYBE_OBJECT
)
_GEMINI = _fields_of(gemini.Request, "model", bardo=_BARDO)
_OLLAMA = _fields_of(ollama.Request, **_OWN, keep_alive=ANY)
_GENERATE = {name: schema for name, schema in _OLLAMA.items() if name not in ("messages", "tools")}
_GENERATE |= {"prompt": _MAYBE_STRING, "system": _MAYBE_STRING, "images": or_null(array(STRING))}
_COMPLETION = {name: schema for name, schema in _CHAT.items() if name not in ("messages", "tools", "functions")}
_COMPLETION |= _fields_of(openai_chat.Completion, prompt=_TEXTS, best_of=_COUNT)
_EMBED_CONTENT: dict[str, Schema] = {
    "content": OBJECT,
    "taskType": _MAYBE_STRING,
    "title": _MAYBE_STRING,
    "outputDimensionality": _COUNT,
}
_METADATA = or_null({"type": "object", "additionalProperties": STRING})

DIALECT_FIELDS: dict[str, dict[str, Schema]] = {
    "openai_chat": _CHAT,
    "openai_responses": _RESPONSES,
    "anthropic_messages": _MESSAGES,
    "gemini": _GEMINI,
    "gemini_interactions": _fields_of(gemini_interactions.Request, **_OWN),
    "cohere": _fields_of(cohere.Request, **_OWN, max_tokens=_COUNT),
    "bedrock_converse": _fields_of(bedrock_converse.Request, modelId=_MAYBE_STRING, bardo=_BARDO),
    "ollama": _OLLAMA,
}
"""The fields of a request for a reply that each dialect reads."""

_CLOUD = _fields_of(anthropic_messages.CloudFields)

REQUESTS: dict[str, Schema] = {
    "generate openai_chat": structure(_CHAT, ("model", "messages")),
    "respond openai_responses": structure(_RESPONSES, ("model",)),
    "generate anthropic_messages": structure(_MESSAGES, ("model", "messages", "max_tokens")),
    "generate anthropic_messages cloud": structure({**_MESSAGES, **_CLOUD}, ("messages", "max_tokens")),
    "generate gemini": structure(_GEMINI, ("contents",)),
    "generate gemini_interactions": structure(DIALECT_FIELDS["gemini_interactions"], ("model", "input")),
    "generate cohere": structure(DIALECT_FIELDS["cohere"], ("model", "messages")),
    "generate bedrock_converse": structure(DIALECT_FIELDS["bedrock_converse"], ("messages",)),
    "generate bedrock_invoke": fields(bardo=_BARDO),
    "generate_or_load ollama": structure(_OLLAMA, ("model",)),
    "generate_or_load ollama_generate": structure(_GENERATE, ("model",)),
    "complete": structure(_COMPLETION, ("model", "prompt")),
    "embed openai_chat": structure(
        _fields_of(
            openai_chat.Embedding,
            **_OWN,
            input=either(STRING, array(STRING), array(INTEGER), array(array(INTEGER)), _OBJECTS),
            dimensions=_COUNT,
            encoding_format=or_null(one_of("float", "base64")),
        ),
        ("model", "input"),
    ),
    "embed ollama embed": fields(
        "model", "input", model=_MODEL, input=_TEXTS, truncate=_MAYBE_BOOLEAN, dimensions=_COUNT, bardo=_BARDO
    ),
    "embed ollama embeddings": fields("model", "prompt", model=_MODEL, prompt=STRING, bardo=_BARDO),
    "embed gemini embedContent": structure({**_EMBED_CONTENT, "bardo": _BARDO}, ("content",)),
    "embed gemini batchEmbedContents": fields(
        "requests", requests={**array(structure(_EMBED_CONTENT, ("content",))), "minItems": 1}, bardo=_BARDO
    ),
    "count_tokens anthropic_messages": structure(_MESSAGES, ("model", "messages")),
    "count_tokens anthropic_messages cloud": structure({**_MESSAGES, **_CLOUD}, ("model", "messages")),
    "count_tokens bedrock_invoke": fields("input", input=OBJECT),
    "count_tokens openai_responses": structure(_RESPONSES, ("model",)),
    "compact openai_responses": structure(_RESPONSES, ("model",)),
    "count_tokens gemini": structure({**_GEMINI, "generateContentRequest": _MAYBE_OBJECT}),
    "show_capabilities": fields(model=_MODEL, name=described(STRING, "What older clients call `model`.")),
    "create_conversation": fields(items=_MAYBE_OBJECTS, metadata=_MAYBE_OBJECT),
    "update_conversation": fields(metadata=_MAYBE_OBJECT),
    "add_items": fields("items", items=_OBJECTS),
    "create_batch": fields(
        *("input_file_id", "endpoint", "completion_window"),
        input_file_id=STRING,
        endpoint=one_of(*ENDPOINTS),
        completion_window=just("24h"),
        metadata=_METADATA,
        output_expires_after=_MAYBE_OBJECT,
        bardo=OBJECT,
    )
    | {"additionalProperties": False},
    "create_message_batch": fields(
        "requests", requests={**array(fields("custom_id", "params", custom_id=STRING, params=OBJECT)), "minItems": 1}
    ),
    "feedback": fields(
        "request_id",
        request_id=described({**STRING, "minLength": 1, "maxLength": 200}, "The `X-Bardo-Request-Id` of the answer."),
        thumbs=one_of("up", "down"),
        score={"type": "number", "minimum": 0, "maximum": 1},
        comment={**STRING, "maxLength": 2_000},
    )
    | {"additionalProperties": False},
    "purge_cache": fields(tag=_MAYBE_STRING, model=_MAYBE_STRING) | {"additionalProperties": False},
}
"""The bodies by the form of a route."""

UPLOAD: Schema = fields(
    "file", "purpose", file={"type": "string", "contentMediaType": "application/octet-stream"}, purpose=just("batch")
)
"""The form of an upload."""

OPTIONAL_BODIES = ("create_conversation",)
"""The endpoints whose requests may come without a body."""


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


_BARDO_OF_REPLY = ref("BardoReply")
_REPLY_OBJECTS, _STRING_OR_NULL = array(OBJECT), or_null(STRING)
_COUNT_BARDO = fields(tokens_approx=BOOLEAN)
_ROUTE_BARDO = fields("route", route=one_of("alias", "workload"), about=STRING)
_VECTORS = array(array(NUMBER))


class Stream(NamedTuple):
    """A streamed reply: its content type, and the schema of the JSON that each event or line holds, or None if the frames are binary.

    `also_array`: it may also be asked for as one JSON array.
    """

    content_type: str
    event: Schema | None
    also_array: bool = False


SSE, NDJSON, EVENTSTREAM = "text/event-stream", "application/x-ndjson", "application/vnd.amazon.eventstream"

_CHOICE = fields("index", index=INTEGER, finish_reason=_STRING_OR_NULL)
_CHAT_REPLY = fields(
    *("id", "object", "model", "choices"),
    id=STRING,
    object=just("chat.completion"),
    created=INTEGER,
    model=STRING,
    choices=array(
        {**_CHOICE, "required": ["index", "message"], "properties": {**_CHOICE["properties"], "message": OBJECT}}
    ),
    usage=or_null(OBJECT),
    bardo=_BARDO_OF_REPLY,
)
_CHAT_CHUNK = either(
    fields(
        *("object", "choices"),
        id=STRING,
        object=just("chat.completion.chunk"),
        created=INTEGER,
        model=STRING,
        choices=_REPLY_OBJECTS,
        usage=or_null(OBJECT),
        bardo=OBJECT,
    ),
    fields("error", error=OBJECT),
    fields("type", "partial", type=just("bardo.partial"), partial=ANY),
)
_COMPLETION_REPLY = fields(
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
    bardo=_BARDO_OF_REPLY,
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
    bardo=_BARDO_OF_REPLY,
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
    bardo=_BARDO_OF_REPLY,
)
_COHERE_REPLY = fields(
    *("id", "message", "finish_reason"),
    id=STRING,
    message=fields("role", role=just("assistant"), content=_REPLY_OBJECTS, tool_calls=_REPLY_OBJECTS),
    finish_reason=STRING,
    usage=OBJECT,
    bardo=_BARDO_OF_REPLY,
)
_CONVERSE_REPLY = fields(
    *("output", "stopReason", "usage"),
    output=fields("message", message=fields("role", "content", role=just("assistant"), content=_REPLY_OBJECTS)),
    stopReason=STRING,
    usage=OBJECT,
    metrics=OBJECT,
    bardo=_BARDO_OF_REPLY,
)
_OLLAMA_CHAT = fields(
    *("model", "created_at", "done"),
    model=STRING,
    created_at=STRING,
    message=fields("role", role=just("assistant"), content=STRING, thinking=STRING, tool_calls=_REPLY_OBJECTS),
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
_LOCAL_MODEL = fields(
    *("id", "object", "type", "state"),
    id=STRING, object=just("model"), type=STRING, publisher=STRING, arch=STRING, compatibility_type=STRING, quantization=STRING,
    state=STRING, max_context_length=INTEGER, loaded_context_length=INTEGER, capabilities=array(STRING),
)  # fmt: skip
_OLLAMA_MODEL = fields("name", "model", name=STRING, model=STRING, details=OBJECT, bardo=_ROUTE_BARDO)
_OPENAI_MODELS = fields("object", "data", object=just("list"), data=array(_OPENAI_MODEL))
_ANTHROPIC_MODELS = fields("data", "has_more", data=array(_ANTHROPIC_MODEL), has_more=BOOLEAN)
_PROFILE = fields(
    *("inferenceProfileId", "inferenceProfileArn", "status", "type"),
    inferenceProfileId=STRING,
    inferenceProfileArn=STRING,
    inferenceProfileName=STRING,
    status=just("ACTIVE"),
    type=just("SYSTEM_DEFINED"),
)
_GEMINI_MODELS = fields("models", models=array(_GEMINI_MODEL))

REPLIES: dict[str, Schema] = {
    "generate openai_chat": _CHAT_REPLY,
    "respond openai_responses": _RESPONSE,
    "generate anthropic_messages": _MESSAGE,
    "generate gemini": _CONTENT,
    "generate gemini_interactions": _INTERACTION,
    "generate cohere": _COHERE_REPLY,
    "generate bedrock_converse": _CONVERSE_REPLY,
    "generate bedrock_invoke": OBJECT,
    "generate_or_load ollama": _OLLAMA_CHAT,
    "generate_or_load ollama_generate": _OLLAMA_GENERATE,
    "complete": _COMPLETION_REPLY,
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
    "count_tokens bedrock_invoke": fields("inputTokens", inputTokens=INTEGER, bardo=_COUNT_BARDO),
    "count_tokens openai_responses": fields(
        "object", "input_tokens", object=just("response.input_tokens"), input_tokens=INTEGER, bardo=_COUNT_BARDO
    ),
    "compact openai_responses": fields(
        *("id", "object", "output"), id=STRING, object=just("response.compaction"), output=_OBJECTS, usage=OBJECT
    ),
    "count_tokens gemini": fields("totalTokens", totalTokens=INTEGER, bardo=_COUNT_BARDO),
    "models openai_chat": either(_OPENAI_MODELS, _ANTHROPIC_MODELS, _GEMINI_MODELS),
    "models gemini": _GEMINI_MODELS,
    "models ollama": fields("models", models=array(_OLLAMA_MODEL)),
    "models bedrock_invoke": fields(
        "inferenceProfileSummaries", inferenceProfileSummaries=array(_PROFILE), nextToken=STRING
    ),
    "model bedrock_invoke": _PROFILE,
    "model openai_chat": either(_OPENAI_MODEL, _ANTHROPIC_MODEL, _GEMINI_MODEL),
    "model gemini": _GEMINI_MODEL,
    "show_capabilities": fields(
        "capabilities", "details", capabilities=array(STRING), details=OBJECT, model_info=OBJECT
    ),
    "loaded_models": fields("models", models=array(OBJECT)),
    "list_local_models": fields("object", "data", object=just("list"), data=array(_LOCAL_MODEL)),
    "show_local_model": _LOCAL_MODEL,
    "show_response": _RESPONSE,
    **KEPT_REPLIES,
    "openapi": fields("openapi", "info", "paths", openapi=STRING, info=OBJECT, paths=OBJECT),
}
"""The whole replies in JSON; bardo's own are described by their types."""

_TYPED_EVENT = fields("type", type=STRING)

STREAMS: dict[str, Stream] = {
    "generate openai_chat": Stream(SSE, _CHAT_CHUNK),
    "complete": Stream(SSE, either(_COMPLETION_REPLY, fields("error", error=OBJECT))),
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

"""The bodies of replies about what is kept: responses, conversations, files and batches, by endpoint."""

from __future__ import annotations

from bardo.surfaces.gateway.openapi.json_schema import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    Schema,
    array,
    fields,
    just,
    one_of,
    or_null,
    ref,
)

_STRING_OR_NULL, _INTEGER_OR_NULL = or_null(STRING), or_null(INTEGER)


def _page(item: Schema, object_name: str = "list") -> Schema:
    return fields(
        *("object", "data", "first_id", "last_id", "has_more"),
        object=just(object_name),
        data=array(item),
        first_id=_STRING_OR_NULL,
        last_id=_STRING_OR_NULL,
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
    output_file_id=_STRING_OR_NULL,
    error_file_id=_STRING_OR_NULL,
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
    ended_at=_STRING_OR_NULL,
    results_url=_STRING_OR_NULL,
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
        first_id=_STRING_OR_NULL,
        last_id=_STRING_OR_NULL,
    ),
    "show_message_batch": _MESSAGE_BATCH,
    "delete_message_batch": fields("id", "type", id=STRING, type=just("message_batch_deleted")),
    "cancel_message_batch": _MESSAGE_BATCH,
}
"""The replies by endpoint."""

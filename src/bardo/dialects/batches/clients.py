"""Batches and files as clients know them: OpenAI's requests and lines of files, Anthropic's Message Batches, and the objects of answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from bardo.dialects.shared.json_values import JsonObject, JsonValue, decode_object, take
from bardo.values.errors import InvalidRequest

ENDPOINTS = ("/v1/chat/completions", "/v1/responses", "/v1/embeddings", "/v1/completions")
"""The endpoints whose requests a batch may hold."""
_MOST_METADATA, _LONGEST_NAME, _LONGEST_VALUE = 16, 64, 512
_LONGEST_ID = 512
_LEAST_SECONDS, _MOST_SECONDS = 3600, 30 * 24 * 3600


class BatchLine(msgspec.Struct, frozen=True):
    """One request of a file: the client's own id of it, and its body as it was written."""

    custom_id: str
    body: bytes


class NewBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A client's request for a batch. `output_seconds` is after how long the files of results go."""

    input_file_id: str
    endpoint: str
    window: str
    metadata: dict[str, str] | None = None
    output_seconds: int | None = None


class LineProblem(msgspec.Struct, frozen=True, kw_only=True):
    """The fault of a line of a file of requests, in OpenAI's words; `line` counts from 1."""

    code: str
    message: str
    param: str | None = None
    line: int | None = None


class _Line(msgspec.Struct):
    custom_id: JsonValue = None
    method: JsonValue = None
    url: JsonValue = None
    body: msgspec.Raw = msgspec.Raw(b"null")


_decode_line = msgspec.json.Decoder(_Line).decode


def decode_new_batch(body: bytes) -> NewBatch:
    """Read a request for a batch. Raises InvalidRequest naming the field."""
    fields = decode_object(body)
    for name in ("input_file_id", "endpoint", "completion_window"):
        if not isinstance(fields.get(name), str) or not fields[name]:
            raise InvalidRequest(f"Missing required parameter: '{name}'.", param=name)
    if fields["endpoint"] not in ENDPOINTS:
        listed = ", ".join(f"'{endpoint}'" for endpoint in ENDPOINTS)
        message = f"Invalid value: '{fields['endpoint'][:100]}'. Supported values are: {listed}."
        raise InvalidRequest(message, param="endpoint")
    if fields["completion_window"] != "24h":
        message = f"Invalid value: '{fields['completion_window'][:100]}'. Supported values are: '24h'."
        raise InvalidRequest(message, param="completion_window")
    allowed = {"input_file_id", "endpoint", "completion_window", "metadata", "output_expires_after", "bardo"}
    for name in fields:
        if name not in allowed:
            raise InvalidRequest(f"Unknown parameter: '{name[:100]}'.", param=name[:100])
    return NewBatch(
        input_file_id=fields["input_file_id"],
        endpoint=fields["endpoint"],
        window=fields["completion_window"],
        metadata=_metadata(fields.get("metadata")),
        output_seconds=expiry_seconds(fields.get("output_expires_after"), "output_expires_after"),
    )


def _metadata(given: object) -> dict[str, str] | None:
    if given is None:
        return None
    metadata = take(given, dict, "metadata")
    if len(metadata) > _MOST_METADATA:
        raise InvalidRequest(f"metadata may have {_MOST_METADATA} keys, and has {len(metadata)}", param="metadata")
    for name, value in metadata.items():
        if not isinstance(value, str) or len(name) > _LONGEST_NAME or len(value) > _LONGEST_VALUE:
            message = f"metadata takes names of {_LONGEST_NAME} and texts of {_LONGEST_VALUE} characters"
            raise InvalidRequest(message, param=f"metadata.{name[:_LONGEST_NAME]}")
    return metadata


def expiry_seconds(given: object, param: str) -> int | None:
    """Return after how long a file goes. Raises InvalidRequest."""
    if given is None:
        return None
    fields = take(given, dict, param)
    seconds = fields.get("seconds")
    if isinstance(seconds, str) and seconds.isascii() and seconds.isdigit():
        seconds = int(seconds[:9])
    if fields.get("anchor") != "created_at" or isinstance(seconds, bool) or not isinstance(seconds, int):
        raise InvalidRequest(f"{param} takes an anchor, created_at, and seconds", param=param)
    if not _LEAST_SECONDS <= seconds <= _MOST_SECONDS:
        message = f"seconds must be from {_LEAST_SECONDS} to {_MOST_SECONDS}"
        raise InvalidRequest(message, param=f"{param}.seconds")
    return seconds


def read_line(line: bytes, number: int, *, endpoint: str, seen_ids: set[str]) -> BatchLine | LineProblem:
    """Return the request of a line, or its fault. `seen_ids` are the ids of the lines before; this one's is added."""
    try:
        fields = _decode_line(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return LineProblem(code="invalid_json_line", message="This line is not parseable as valid JSON.", line=number)
    custom_id = fields.custom_id
    if not isinstance(custom_id, str) or not custom_id:
        return LineProblem(
            code="missing_required_parameter", message="custom_id is required", param="custom_id", line=number
        )
    if len(custom_id) > _LONGEST_ID:
        message = f"custom_id may have {_LONGEST_ID} characters"
        return LineProblem(code="invalid_custom_id", message=message, param="custom_id", line=number)
    if custom_id in seen_ids:
        message = f"The custom_id {custom_id!r} for this request is a duplicate of another request."
        return LineProblem(code="duplicate_custom_id", message=message, param="custom_id", line=number)
    if fields.method != "POST":
        return LineProblem(code="invalid_method", message="The method must be POST.", param="method", line=number)
    if fields.url != endpoint:
        message = f"The URL provided for this request does not match the batch endpoint, {endpoint}."
        return LineProblem(code="mismatched_url", message=message, param="url", line=number)
    body = bytes(fields.body)
    if not body.lstrip().startswith(b"{"):
        return LineProblem(code="invalid_request", message="body must be an object", param="body", line=number)
    seen_ids.add(custom_id)
    return BatchLine(custom_id, body)


def file_object(file: Mapping[str, Any]) -> JsonObject:
    """Return a file as clients see it."""
    expires = file["expires_at"]
    return {
        "id": file["id"],
        "object": "file",
        "bytes": file["size"],
        "created_at": int(file["created_at"]),
        "expires_at": None if expires is None else int(expires),
        "filename": file["name"],
        "purpose": file["purpose"],
        "status": "processed",
        "status_details": None,
    }


def list_object(objects: Sequence[JsonObject], *, more: bool) -> JsonObject:
    """Return a page of a list."""
    ends = (
        {"first_id": objects[0]["id"], "last_id": objects[-1]["id"]} if objects else {"first_id": None, "last_id": None}
    )
    return {"object": "list", "data": list(objects), **ends, "has_more": more}


def result_line(
    *,
    request_id: str,
    custom_id: str,
    status: int | None,
    body: msgspec.Raw,
    code: str,
    message: str,
    bardo: JsonObject,
) -> bytes:
    """Return a line of a file of results or of errors."""
    response = None if status is None else {"status_code": status, "request_id": request_id, "body": body}
    error = {"code": code, "message": message} if status is None else None
    line = {"id": f"batch_{request_id}", "custom_id": custom_id, "response": response, "error": error, "bardo": bardo}
    return msgspec.json.encode(line) + b"\n"


_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_KNOWN_FIELDS = ("custom_id", "params")


class _Requests(msgspec.Struct):
    requests: list[dict[str, msgspec.Raw]]


def decode_message_batch(body: bytes, *, most: int) -> list[BatchLine]:
    """Read the requests of a batch, each as it was written. Raises InvalidRequest naming the field."""
    fields = decode_object(body)
    listed = take(fields.get("requests"), list, "requests")
    if not listed:
        raise InvalidRequest("requests: List should have at least 1 item after validation, not 0", param="requests")
    if len(listed) > most:
        hint = "make several batches, or raise max_items under [batches]"
        raise InvalidRequest(f"requests: a batch holds at most {most} requests", hint=hint, param="requests")
    for name in fields:
        if name != "requests":
            raise InvalidRequest(f"{name[:100]}: Extra inputs are not permitted", param=name[:100])
    for place, item in enumerate(listed):
        take(item, dict, f"requests.{place}")
    try:
        raw = msgspec.json.decode(body, type=_Requests).requests
    except msgspec.MsgspecError as problem:
        raise InvalidRequest(f"requests: {problem}", param="requests") from problem
    seen_ids: set[str] = set()
    return [_line(place, item, source, seen_ids) for place, (item, source) in enumerate(zip(listed, raw, strict=True))]


def _line(place: int, item: dict[str, object], raw: dict[str, msgspec.Raw], seen_ids: set[str]) -> BatchLine:
    for name in item:
        if name not in _KNOWN_FIELDS:
            param = f"requests.{place}.{name[:100]}"
            raise InvalidRequest(f"{param}: Extra inputs are not permitted", param=param)
    custom_id, params = item.get("custom_id"), item.get("params")
    where = f"requests.{place}"
    if not isinstance(custom_id, str) or not _ID.fullmatch(custom_id):
        message = f"{where}.custom_id: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
        raise InvalidRequest(message, param=f"{where}.custom_id")
    if custom_id in seen_ids:
        message = f"{where}.custom_id: {custom_id!r} is the id of another request of the batch"
        raise InvalidRequest(message, hint="ids are unique within a batch", param=f"{where}.custom_id")
    if not isinstance(params, dict):
        raise InvalidRequest(f"{where}.params: Field required", param=f"{where}.params")
    seen_ids.add(custom_id)
    return BatchLine(custom_id, bytes(raw["params"]))


_USAGE = ("input_tokens", "output_tokens")
_OPENAI_TIMES = ("in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")


class BatchFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a batch in its objects. `times` are when it came to each status, `counts` its items by state."""

    id: str
    endpoint: str
    status: str
    window: str
    created_at: float
    expires_at: float
    times: dict[str, float]
    total: int
    counts: dict[str, int]
    usage: dict[str, int]
    metadata: dict[str, str] | None
    input_file_id: str
    output_file_id: str
    error_file_id: str
    errors: tuple[LineProblem, ...]
    model: str
    bardo: JsonObject


def openai_batch(facts: BatchFacts) -> JsonObject:
    """Return the object that OpenAI's clients read."""
    times = {f"{name}_at": _whole(facts.times.get(name)) for name in _OPENAI_TIMES}
    problems = [msgspec.to_builtins(error) for error in facts.errors]
    done = facts.counts.get("succeeded", 0)
    failed = sum(facts.counts.get(state, 0) for state in ("errored", "expired"))
    return {
        "id": facts.id,
        "object": "batch",
        "endpoint": facts.endpoint,
        "model": facts.model or None,
        "errors": {"object": "list", "data": problems} if problems else None,
        "input_file_id": facts.input_file_id,
        "completion_window": facts.window,
        "status": facts.status,
        "output_file_id": facts.output_file_id or None,
        "error_file_id": facts.error_file_id or None,
        "created_at": int(facts.created_at),
        "expires_at": int(facts.expires_at),
        **times,
        "request_counts": {"total": facts.total, "completed": done, "failed": failed},
        "usage": _usage(facts.usage),
        "metadata": facts.metadata,
        "bardo": facts.bardo,
    }


def _usage(counts: Mapping[str, int]) -> JsonObject | None:
    """Return the tokens of all items, or None if no item told any."""
    if not counts:
        return None
    given, made = (counts.get(name, 0) for name in _USAGE)
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": counts.get("cached_tokens", 0)},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": counts.get("reasoning_tokens", 0)},
        "total_tokens": given + made,
    }


def anthropic_batch(facts: BatchFacts, results_url: str) -> JsonObject:
    """Return the object that Anthropic's clients read. `results_url` is where its results are, once it has ended."""
    ended = facts.status in ("completed", "expired", "cancelled", "failed")
    counts = {
        state: facts.counts.get(state, 0) if ended else 0 for state in ("succeeded", "errored", "canceled", "expired")
    }
    ended_at = max(
        (facts.times.get(name, 0.0) for name in ("completed", "expired", "cancelled", "failed")), default=0.0
    )
    return {
        "id": facts.id,
        "type": "message_batch",
        "processing_status": "ended" if ended else "canceling" if facts.status == "cancelling" else "in_progress",
        "request_counts": {"processing": 0 if ended else facts.total, **counts},
        "ended_at": _moment(ended_at) if ended else None,
        "created_at": _moment(facts.created_at),
        "expires_at": _moment(facts.expires_at),
        "archived_at": None,
        "cancel_initiated_at": _moment(facts.times["cancelling"]) if "cancelling" in facts.times else None,
        "results_url": results_url if ended else None,
        "bardo": facts.bardo,
    }


def anthropic_result(
    state: str, custom_id: str, *, status: int | None, body: msgspec.Raw, message: str, bardo: JsonObject
) -> bytes:
    """Return a line of the results that Anthropic's clients read."""
    result: JsonObject = {"type": state}
    if state == "succeeded":
        result["message"] = body
    elif state == "errored":
        error = {"type": "error", "error": {"type": "api_error", "message": message}}
        result["error"] = body if status is not None else error
    return msgspec.json.encode({"custom_id": custom_id, "result": result, "bardo": bardo}) + b"\n"


def _whole(time: float | None) -> int | None:
    return None if time is None else int(time)


def _moment(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat().replace("+00:00", "Z")

"""Anthropic's Message Batches: the requests stand in the call that makes the job, and the results in one file of JSONL.

A job bears no tag. One whose creation was not confirmed is known again by the ids in its results, which are there once it has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

import msgspec

from bardo.catalog.batch_rows import BatchRow
from bardo.dialects.batches.base import (
    BatchCall,
    JobFacts,
    JobPage,
    JobReply,
    JobRequest,
    UpstreamJob,
    object_at,
    objects_of,
    raw_field,
    read_object,
    required_id,
    required_text,
    text_of,
    time_of,
)
from bardo.dialects.shared.json_values import JsonObject, WrongShape

_PAGE = 100
# What the error of one request would have been as the answer to a single call.
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class AnthropicJobs:
    """The calls and answers of the API."""

    uploads = False

    def encode_request(self, request: JobRequest, facts: JobFacts) -> bytes:
        """Return one element of the list of requests."""
        return msgspec.json.encode({"custom_id": request.key, "params": msgspec.Raw(request.body)})

    def upload(self, requests: Sequence[bytes], facts: JobFacts, row: BatchRow) -> BatchCall:
        """Nothing is uploaded."""
        raise NotImplementedError("Anthropic's requests stand in the call that makes the job")

    def decode_file(self, body: bytes) -> str:
        """Nothing is uploaded."""
        raise NotImplementedError("the requests stand in the call that makes the job")

    def create(self, requests: Sequence[bytes], file_id: str, facts: JobFacts) -> BatchCall:
        """Return the call that makes the job of the requests."""
        return BatchCall(method="POST", path="messages/batches", body=b'{"requests":[%b]}' % b",".join(requests))

    def status(self, job_id: str) -> BatchCall:
        """Return the call that asks how far a job is."""
        return BatchCall(method="GET", path=f"messages/batches/{job_id}")

    def cancel(self, job_id: str) -> BatchCall:
        """Return the call that ends a job early."""
        return BatchCall(method="POST", path=f"messages/batches/{job_id}/cancel")

    def jobs(self) -> BatchCall:
        """Return the call for the first page of the list."""
        return BatchCall(method="GET", path=f"messages/batches?limit={_PAGE}")

    def decode_job(self, body: bytes) -> UpstreamJob:
        """Read a job. Raises WrongShape."""
        return _job(read_object(body))

    def decode_page(self, body: bytes) -> JobPage:
        """Read a page of the list. Raises WrongShape."""
        fields = read_object(body)
        listed = tuple(_job(one) for one in objects_of(fields.get("data")))
        last = text_of(fields, "last_id")
        more = fields.get("has_more") is True and bool(last)
        return JobPage(
            jobs=listed, next_path=f"messages/batches?limit={_PAGE}&after_id={quote(last, safe='')}" if more else ""
        )

    def decode_reply(self, line: bytes) -> JobReply:
        """Read one line of the results. Raises WrongShape."""
        fields = read_object(line)
        key, result = required_text(fields, "custom_id"), object_at(fields, "result")
        kind = text_of(result, "type")
        if kind == "succeeded":
            return JobReply(key=key, body=raw_field(result, "message"))
        if kind == "errored":
            error = object_at(result, "error")
            named = text_of(object_at(error, "error"), "type") or text_of(error, "type")
            return JobReply(key=key, status=_STATUSES.get(named, 500), body=raw_field(result, "error"))
        if kind == "canceled":
            return JobReply(key=key, outcome="canceled", message="the batch was canceled before this request was sent")
        if kind == "expired":
            return JobReply(key=key, outcome="expired", message="the batch expired before this request was sent")
        raise WrongShape(f"a result is of an unknown type, {kind[:100]!r}")


def _job(fields: JsonObject) -> UpstreamJob:
    word, job_id = text_of(fields, "processing_status"), required_id(fields, "id")
    counts = [one for one in object_at(fields, "request_counts").values() if isinstance(one, int)]
    # `results_url` names Anthropic's own host: behind a proxy the path below the base URL is the one that answers.
    results = (f"messages/batches/{job_id}/results",) if word == "ended" else ()
    return UpstreamJob(
        id=job_id,
        state="ended" if word == "ended" else "running",
        results=results,
        word=word,
        count=sum(counts) or None,
        created_at=time_of(text_of(fields, "created_at")),
    )

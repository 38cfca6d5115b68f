"""OpenAI's batch API, which Azure, Groq and Together have too: a file of requests in JSONL, a job over it, and files of results."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bardo.catalog.batch_rows import BatchRow
from bardo.dialects.batches.base import (
    BatchCall,
    JobFacts,
    JobPage,
    JobReply,
    JobRequest,
    JobState,
    UpstreamJob,
    file_paths,
    multipart_file,
    object_at,
    objects_of,
    raw_field,
    read_object,
    required_id,
    required_text,
    text_of,
)
from bardo.dialects.shared.json_values import JsonObject, WrongShape

TAG = "bardo_job"
"""The key of a job's metadata that holds our tag."""
_PAGE = 100
_FINAL_STATES = ("completed", "expired", "cancelled", "canceled")
# Together writes them in capitals.
_OVER_EARLY = {"batch_expired": "expired", "batch_cancelled": "canceled"}


class OpenAIJobs:
    """The calls and answers of the API."""

    uploads = True

    def encode_request(self, request: JobRequest, facts: JobFacts) -> bytes:
        """Return one line: the body stands in it as it is."""
        line = {
            "custom_id": request.key,
            "method": "POST",
            "url": f"/v1/{facts.path}",
            "body": msgspec.Raw(request.body),
        }
        return msgspec.json.encode(line)

    def upload(self, requests: Sequence[bytes], facts: JobFacts, row: BatchRow) -> BatchCall:
        """Return the call that uploads the lines."""
        content = b"\n".join([*requests, b""])
        body, kind = multipart_file(f"{facts.tag}.jsonl", content, {"purpose": row.purpose})
        return BatchCall(method="POST", path="files", body=body, content_type=kind)

    def decode_file(self, body: bytes) -> str:
        """Return the id of an uploaded file. Raises WrongShape."""
        return required_id(read_object(body), "id")

    def create(self, requests: Sequence[bytes], file_id: str, facts: JobFacts) -> BatchCall:
        """Return the call that makes the job of an uploaded file."""
        fields = {
            "input_file_id": file_id,
            "endpoint": f"/v1/{facts.path}",
            "completion_window": f"{facts.hours}h",
            "metadata": {TAG: facts.tag},
        }
        return BatchCall(method="POST", path="batches", body=msgspec.json.encode(fields))

    def status(self, job_id: str) -> BatchCall:
        """Return the call that asks how far a job is."""
        return BatchCall(method="GET", path=f"batches/{job_id}")

    def cancel(self, job_id: str) -> BatchCall:
        """Return the call that ends a job early."""
        return BatchCall(method="POST", path=f"batches/{job_id}/cancel")

    def jobs(self) -> BatchCall:
        """Return the call for the first page of the list."""
        return BatchCall(method="GET", path=f"batches?limit={_PAGE}")

    def decode_job(self, body: bytes) -> UpstreamJob:
        """Read a job. Raises WrongShape."""
        fields = read_object(body)
        return _job(object_at(fields, "job") or fields)

    def decode_page(self, body: bytes) -> JobPage:
        """Read a page of the list. Raises WrongShape."""
        fields = read_object(body)
        listed = tuple(_job(one) for one in objects_of(fields.get("data")))
        more = fields.get("has_more") is True and bool(listed)
        return JobPage(jobs=listed, next_path=f"batches?limit={_PAGE}&after={listed[-1].id}" if more else "")

    def decode_reply(self, line: bytes) -> JobReply:
        """Read one line of a file of results or of errors. Raises WrongShape."""
        fields = read_object(line)
        key, response = required_text(fields, "custom_id"), object_at(fields, "response")
        error = object_at(fields, "error")
        if response:
            status = response.get("status_code")
            if not isinstance(status, int) or isinstance(status, bool):
                raise WrongShape("a response has no status_code")
            return JobReply(key=key, status=status, body=raw_field(response, "body"))
        code = text_of(error, "code")
        early = _OVER_EARLY.get(code, "failed")
        message = text_of(error, "message") or code or "the provider gave no reply"
        if early == "expired":
            return JobReply(key=key, outcome="expired", message=message)
        return JobReply(key=key, outcome="canceled" if early == "canceled" else "failed", message=message)


def _job(fields: JsonObject) -> UpstreamJob:
    status = text_of(fields, "status").lower()
    places = [text_of(fields, name) for name in ("output_file_id", "error_file_id")]
    errors = objects_of(object_at(fields, "errors").get("data"))
    total = object_at(fields, "request_counts").get("total")
    created = fields.get("created_at")
    return UpstreamJob(
        id=required_id(fields, "id"),
        state=_state(status),
        tag=text_of(object_at(fields, "metadata"), TAG),
        results=file_paths(places),
        errors=tuple(text_of(one, "message") or text_of(one, "code") for one in errors),
        word=status,
        count=total if isinstance(total, int) and total else None,
        created_at=float(created) if isinstance(created, int | float) else None,
    )


def _state(status: str) -> JobState:
    if status == "failed":
        return "failed"
    return "ended" if status in _FINAL_STATES else "running"

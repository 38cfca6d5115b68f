"""Mistral's batch API: OpenAI's files, and jobs of its own, one for each model."""

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
    object_at,
    objects_of,
    read_object,
    required_id,
    text_of,
)
from bardo.dialects.batches.openai_jobs import TAG, OpenAIJobs
from bardo.dialects.shared.json_values import JsonObject

_PAGE = 100
_FINAL_STATES = ("SUCCESS", "TIMEOUT_EXCEEDED", "CANCELLED")


class MistralJobs:
    """The calls and answers of the API."""

    uploads = True

    def __init__(self) -> None:
        self._files = OpenAIJobs()

    def encode_request(self, request: JobRequest, facts: JobFacts) -> bytes:
        """Return one line. The model is named for the whole job, and may stand in the body too."""
        return msgspec.json.encode({"custom_id": request.key, "body": msgspec.Raw(request.body)})

    def upload(self, requests: Sequence[bytes], facts: JobFacts, row: BatchRow) -> BatchCall:
        """Return the call that uploads the lines."""
        return self._files.upload(requests, facts, row)

    def decode_file(self, body: bytes) -> str:
        """Return the id of an uploaded file. Raises WrongShape."""
        return self._files.decode_file(body)

    def create(self, requests: Sequence[bytes], file_id: str, facts: JobFacts) -> BatchCall:
        """Return the call that makes the job of an uploaded file."""
        fields = {
            "input_files": [file_id],
            "endpoint": f"/v1/{facts.path}",
            "model": facts.model,
            "timeout_hours": facts.hours,
            "metadata": {TAG: facts.tag},
        }
        return BatchCall(method="POST", path="batch/jobs", body=msgspec.json.encode(fields))

    def status(self, job_id: str) -> BatchCall:
        """Return the call that asks how far a job is."""
        return BatchCall(method="GET", path=f"batch/jobs/{job_id}")

    def cancel(self, job_id: str) -> BatchCall:
        """Return the call that ends a job early."""
        return BatchCall(method="POST", path=f"batch/jobs/{job_id}/cancel")

    def jobs(self) -> BatchCall:
        """Return the call for the first page of the list."""
        return BatchCall(method="GET", path=_page(0))

    def decode_job(self, body: bytes) -> UpstreamJob:
        """Read a job. Raises WrongShape."""
        return _job(read_object(body))

    def decode_page(self, body: bytes) -> JobPage:
        """Read a page of the list. Raises WrongShape."""
        fields = read_object(body)
        listed = tuple(_job(one) for one in objects_of(fields.get("data")))
        page, total = fields.get("page"), fields.get("total")
        # The answer does not always say which page it is: then the list ends with it.
        if not (isinstance(page, int) and isinstance(total, int) and listed and (page + 1) * _PAGE < total):
            return JobPage(jobs=listed)
        return JobPage(jobs=listed, next_path=_page(page + 1))

    def decode_reply(self, line: bytes) -> JobReply:
        """Read one line of a file of results or of errors: OpenAI's form. Raises WrongShape."""
        return self._files.decode_reply(line)


def _page(number: int) -> str:
    return f"batch/jobs?page={number}&page_size={_PAGE}"


def _job(fields: JsonObject) -> UpstreamJob:
    status = text_of(fields, "status")
    places = [text_of(fields, name) for name in ("output_file", "error_file")]
    total, created = fields.get("total_requests"), fields.get("created_at")
    return UpstreamJob(
        id=required_id(fields, "id"),
        state=_state(status),
        tag=text_of(object_at(fields, "metadata"), TAG),
        results=file_paths(places),
        errors=tuple(text_of(one, "message") for one in objects_of(fields.get("errors"))),
        word=status,
        count=total if isinstance(total, int) and total else None,
        created_at=float(created) if isinstance(created, int | float) else None,
    )


def _state(status: str) -> JobState:
    if status == "FAILED":
        return "failed"
    return "ended" if status in _FINAL_STATES else "running"

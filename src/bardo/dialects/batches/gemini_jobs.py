"""Gemini's batch API: the requests stand in the call that makes the job, and the results in the job once it has ended.

Our id of a request goes along as metadata. Some answers come without it (reported on Google's forum, 2025-12): they are in the order of
the requests, as Google's page of the API promises.
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
    JobState,
    UpstreamJob,
    object_at,
    objects_of,
    raw_field,
    read_object,
    required_id,
    text_of,
    time_of,
)
from bardo.dialects.shared.json_values import JsonObject, WrongShape

_PAGE = 100
_PLACE = "bardo_place"
# google.rpc.Code: what the error of one request would have been as the answer to a single call.
_STATUSES = {1: 499, 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 13: 500, 14: 503, 16: 401}


class GeminiJobs:
    """The calls and answers of the API."""

    uploads = False

    def encode_request(self, request: JobRequest, facts: JobFacts) -> bytes:
        """Return one element of the list of requests."""
        return msgspec.json.encode({"request": msgspec.Raw(request.body), "metadata": {"key": request.key}})

    def upload(self, requests: Sequence[bytes], facts: JobFacts, row: BatchRow) -> BatchCall:
        """Nothing is uploaded."""
        raise NotImplementedError("Gemini's requests stand in the call that makes the job")

    def decode_file(self, body: bytes) -> str:
        """Nothing is uploaded."""
        raise NotImplementedError("the requests stand in the call that makes the job")

    def create(self, requests: Sequence[bytes], file_id: str, facts: JobFacts) -> BatchCall:
        """Return the call that makes the job of the requests."""
        name = msgspec.json.encode(facts.tag)
        listed = b",".join(requests)
        body = b'{"batch":{"displayName":%b,"inputConfig":{"requests":{"requests":[%b]}}}}' % (name, listed)
        path = f"{facts.path.partition(':')[0]}:batchGenerateContent"
        return BatchCall(method="POST", path=path, body=body)

    def status(self, job_id: str) -> BatchCall:
        """Return the call that asks how far a job is."""
        return BatchCall(method="GET", path=job_id)

    def cancel(self, job_id: str) -> BatchCall:
        """Return the call that ends a job early."""
        return BatchCall(method="POST", path=f"{job_id}:cancel")

    def jobs(self) -> BatchCall:
        """Return the call for the first page of the list."""
        return BatchCall(method="GET", path=f"batches?pageSize={_PAGE}")

    def decode_job(self, body: bytes) -> UpstreamJob:
        """Read a job, with its results once it has ended. Raises WrongShape."""
        return _job(read_object(body))

    def decode_page(self, body: bytes) -> JobPage:
        """Read a page of the list. Raises WrongShape."""
        fields = read_object(body)
        listed = tuple(_job(one) for one in objects_of(fields.get("operations")))
        token = text_of(fields, "nextPageToken")
        return JobPage(jobs=listed, next_path=f"batches?pageSize={_PAGE}&pageToken={quote(token)}" if token else "")

    def decode_reply(self, line: bytes) -> JobReply:
        """Read one result, with its place in the list. Raises WrongShape."""
        fields = read_object(line)
        key, place = text_of(object_at(fields, "metadata"), "key"), fields.get(_PLACE)
        where = place if isinstance(place, int) else None
        if not key and where is None:
            raise WrongShape("a result has no key and no place")
        if isinstance(fields.get("response"), dict):
            return JobReply(key=key, place=where, body=raw_field(fields, "response"))
        error = object_at(fields, "error")
        if not error:
            raise WrongShape("a result holds no response and no error")
        code = error.get("code")
        status = _STATUSES.get(code, 500) if isinstance(code, int) else 500
        return JobReply(
            key=key, place=where, status=status, body=msgspec.json.encode({"error": {**error, "code": status}})
        )


def _job(fields: JsonObject) -> UpstreamJob:
    """Read an operation: its metadata tells of the job, its response holds the results."""
    if isinstance(fields.get("error"), dict) and "name" not in fields:
        raise WrongShape("it is an error")
    about = object_at(fields, "metadata")
    state = (
        (text_of(about, "state") or text_of(fields, "state")).removeprefix("JOB_STATE_").removeprefix("BATCH_STATE_")
    )
    answer = object_at(fields, "response") or object_at(about, "output")
    listed = objects_of(object_at(answer, "inlinedResponses").get("inlinedResponses"))
    error = object_at(fields, "error")
    count = object_at(about, "batchStats").get("requestCount")
    return UpstreamJob(
        id=required_id(fields, "name"),
        state=_state(state, done=fields.get("done") is True),
        tag=text_of(about, "displayName"),
        inline=tuple(msgspec.json.encode({**one, _PLACE: place}) for place, one in enumerate(listed)),
        errors=(text_of(error, "message"),) if error else (),
        word=state,
        # Google writes 64-bit numbers as texts.
        count=_count(count),
        created_at=time_of(text_of(about, "createTime")),
    )


_MOST_DIGITS = 16


def _count(value: object) -> int | None:
    """Return a number of requests above 0; None for anything else."""
    text = str(value)
    return int(text) or None if text.isascii() and text.isdigit() and len(text) < _MOST_DIGITS else None


def _state(state: str, *, done: bool) -> JobState:
    if state == "FAILED":
        return "failed"
    return "ended" if state in ("SUCCEEDED", "CANCELLED", "EXPIRED") or (done and not state) else "running"

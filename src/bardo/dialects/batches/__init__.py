"""The batch APIs of providers, by the names that `batch.toml` uses: how each writes its calls and reads its answers.

OpenAI's, which Azure, Groq and Together have too: a file of requests in JSONL, a job over it, and files of results. Mistral's: OpenAI's
files, and jobs of its own, one for each model.

Anthropic's Message Batches: the requests stand in the call that makes the job, and the results in one file of JSONL. A job bears no tag.
One whose creation was not confirmed is known again by the ids in its results, which are there once it has ended.

Gemini's: the requests stand in the call that makes the job, and the results in the job once it has ended. Our id of a request goes along
as metadata. Some answers come without it (reported on Google's forum, 2025-12): they are in the order of the requests, as Google's page
of the API promises.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

import msgspec

from bardo.catalog.batch_rows import BatchFormName, BatchRow
from bardo.dialects.batches.base import (
    BatchCall,
    BatchForm,
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
    time_of,
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
        listed = tuple(_job(item) for item in objects_of(fields.get("data")))
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
        errors=tuple(text_of(error, "message") or text_of(error, "code") for error in errors),
        word=status,
        count=total if isinstance(total, int) and total else None,
        created_at=float(created) if isinstance(created, int | float) else None,
    )


def _state(status: str) -> JobState:
    if status == "failed":
        return "failed"
    return "ended" if status in _FINAL_STATES else "running"


_MISTRAL_FINAL_STATES = ("SUCCESS", "TIMEOUT_EXCEEDED", "CANCELLED")


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
        return _mistral_job(read_object(body))

    def decode_page(self, body: bytes) -> JobPage:
        """Read a page of the list. Raises WrongShape."""
        fields = read_object(body)
        listed = tuple(_mistral_job(item) for item in objects_of(fields.get("data")))
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


def _mistral_job(fields: JsonObject) -> UpstreamJob:
    status = text_of(fields, "status")
    places = [text_of(fields, name) for name in ("output_file", "error_file")]
    total, created = fields.get("total_requests"), fields.get("created_at")
    return UpstreamJob(
        id=required_id(fields, "id"),
        state=_mistral_state(status),
        tag=text_of(object_at(fields, "metadata"), TAG),
        results=file_paths(places),
        errors=tuple(text_of(item, "message") for item in objects_of(fields.get("errors"))),
        word=status,
        count=total if isinstance(total, int) and total else None,
        created_at=float(created) if isinstance(created, int | float) else None,
    )


def _mistral_state(status: str) -> JobState:
    if status == "FAILED":
        return "failed"
    return "ended" if status in _MISTRAL_FINAL_STATES else "running"


# What the error of one request would have been as the answer to a single call.
_ERROR_STATUSES = {
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
        return _message_batch(read_object(body))

    def decode_page(self, body: bytes) -> JobPage:
        """Read a page of the list. Raises WrongShape."""
        fields = read_object(body)
        listed = tuple(_message_batch(item) for item in objects_of(fields.get("data")))
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
            return JobReply(key=key, status=_ERROR_STATUSES.get(named, 500), body=raw_field(result, "error"))
        if kind == "canceled":
            return JobReply(key=key, outcome="canceled", message="the batch was canceled before this request was sent")
        if kind == "expired":
            return JobReply(key=key, outcome="expired", message="the batch expired before this request was sent")
        raise WrongShape(f"a result is of an unknown type, {kind[:100]!r}")


def _message_batch(fields: JsonObject) -> UpstreamJob:
    word, job_id = text_of(fields, "processing_status"), required_id(fields, "id")
    counts = [number for number in object_at(fields, "request_counts").values() if isinstance(number, int)]
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


_PLACE = "bardo_place"
# google.rpc.Code: what the error of one request would have been as the answer to a single call.
_GRPC_STATUSES = {1: 499, 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 13: 500, 14: 503, 16: 401}


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
        return BatchCall(method="POST", path=f"{facts.path.partition(':')[0]}:batchGenerateContent", body=body)

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
        return _gemini_job(read_object(body))

    def decode_page(self, body: bytes) -> JobPage:
        """Read a page of the list. Raises WrongShape."""
        fields = read_object(body)
        listed = tuple(_gemini_job(item) for item in objects_of(fields.get("operations")))
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
        status = _GRPC_STATUSES.get(code, 500) if isinstance(code, int) else 500
        return JobReply(
            key=key, place=where, status=status, body=msgspec.json.encode({"error": {**error, "code": status}})
        )


def _gemini_job(fields: JsonObject) -> UpstreamJob:
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
        state=_gemini_state(state, done=fields.get("done") is True),
        tag=text_of(about, "displayName"),
        inline=tuple(msgspec.json.encode({**answer, _PLACE: place}) for place, answer in enumerate(listed)),
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


def _gemini_state(state: str, *, done: bool) -> JobState:
    if state == "FAILED":
        return "failed"
    return "ended" if state in ("SUCCEEDED", "CANCELLED", "EXPIRED") or (done and not state) else "running"


_FORMS: dict[BatchFormName, BatchForm] = {
    "openai_files": OpenAIJobs(),
    "message_batches": AnthropicJobs(),
    "inline_operations": GeminiJobs(),
    "mistral_jobs": MistralJobs(),
}


def batch_form(name: BatchFormName) -> BatchForm:
    """Return the batch API of a name."""
    return _FORMS[name]

"""The interface to a provider's batch API: pure functions that write its calls and read its answers.

A job is a list of requests, each with an id of ours. Whoever runs a job sends the calls and gives the answers back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal, Protocol

import msgspec

from bardo.catalog.batch_rows import BatchRow
from bardo.dialects.shared.json_values import JsonObject, WrongShape, decode_leniently

_ID = re.compile(r"[A-Za-z0-9._~:@=,/-]+")

JobState = Literal["running", "ended", "failed"]
"""Ended: each request has a result, or none will come. Failed: the provider refused the job as a whole."""


class BatchCall(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP call of a batch API; `path` is below the provider's base URL, or an address of the provider's own."""

    method: Literal["GET", "POST"]
    path: str
    body: bytes = b""
    content_type: str = "application/json"


class JobRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a job: our id of it, and the body that its provider would get in a single call."""

    key: str
    body: bytes


class JobFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a whole job: our tag of it, the path that its requests are for, the model, and the hours it may take."""

    tag: str
    path: str
    model: str
    hours: int = 24


class UpstreamJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job as its provider tells of it.

    `tag` is ours, empty where the provider keeps none. `results` are the paths of what holds its results; those that came with this
    answer are in `inline`. `count` is how many requests it has, or None if that is not told yet. `created_at` is Unix time.
    """

    id: str
    state: JobState
    tag: str = ""
    results: tuple[str, ...] = ()
    inline: tuple[bytes, ...] = ()
    errors: tuple[str, ...] = ()
    word: str = ""
    count: int | None = None
    created_at: float | None = None


class JobPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a provider's list of jobs, newest first, and where the next page is; empty where there is none."""

    jobs: tuple[UpstreamJob, ...]
    next_path: str = ""


Outcome = Literal["replied", "expired", "canceled", "failed"]


class JobReply(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one request of a job.

    `key` is our id; where the provider lost it, `place` is that of the request in the job. A request that was `replied` to has a status
    and a body as a single call would have had, an error among them. `message` says why there is none.
    """

    key: str
    place: int | None = None
    outcome: Outcome = "replied"
    status: int = 200
    body: bytes = b""
    message: str = ""


class BatchForm(Protocol):
    """One batch API."""

    uploads: bool
    """Whether the requests are uploaded as a file before the job is made."""

    def encode_request(self, request: JobRequest, facts: JobFacts) -> bytes:
        """Return one request as it stands in the job."""
        ...

    def upload(self, requests: Sequence[bytes], facts: JobFacts, row: BatchRow) -> BatchCall:
        """Return the call that uploads the requests."""
        ...

    def decode_file(self, body: bytes) -> str:
        """Return the provider's id of what was uploaded. Raises WrongShape."""
        ...

    def create(self, requests: Sequence[bytes], file_id: str, facts: JobFacts) -> BatchCall:
        """Return the call that makes the job, of what was uploaded as `file_id` or of the requests themselves."""
        ...

    def status(self, job_id: str) -> BatchCall:
        """Return the call that asks how far a job is."""
        ...

    def cancel(self, job_id: str) -> BatchCall:
        """Return the call that ends a job early."""
        ...

    def jobs(self) -> BatchCall:
        """Return the call for the first page of the list of jobs."""
        ...

    def decode_job(self, body: bytes) -> UpstreamJob:
        """Read a job. Raises WrongShape."""
        ...

    def decode_page(self, body: bytes) -> JobPage:
        """Read a page of the list of jobs. Raises WrongShape."""
        ...

    def decode_reply(self, line: bytes) -> JobReply:
        """Read the result of one request. Raises WrongShape."""
        ...


def result_call(path: str) -> BatchCall:
    """Return the call for what holds results of a job."""
    return BatchCall(method="GET", path=path)


def read_object(body: bytes) -> JsonObject:
    """Return the JSON object of a body. Raises WrongShape."""
    try:
        value = decode_leniently(body)
    except ValueError as problem:
        raise WrongShape("it is not JSON") from problem
    if not isinstance(value, dict):
        raise WrongShape("it is no JSON object")
    return value


def text_of(fields: Mapping[str, object], name: str) -> str:
    """Return a text of an object, empty where there is none."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def time_of(text: str) -> float | None:
    """Return the Unix time of a moment that a provider writes, or None if it is no time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def required_text(fields: Mapping[str, object], name: str) -> str:
    """Return a text of an object. Raises WrongShape where there is none."""
    value = text_of(fields, name)
    if not value:
        raise WrongShape(f"it has no {name}")
    return value


def required_id(fields: Mapping[str, object], name: str) -> str:
    """Return an id of the provider's, or a name of several parts, that may stand in the path of a call. Raises WrongShape."""
    value = required_text(fields, name)
    check_id(value)
    return value


def check_id(value: str) -> None:
    """Raise WrongShape for an id that would lead a call elsewhere than to what it names."""
    if not _ID.fullmatch(value) or any(part in ("", ".", "..") for part in value.split("/")):
        raise WrongShape(f"{value[:100]!r} is no id")


def file_paths(ids: Iterable[str]) -> tuple[str, ...]:
    """Return the paths of the contents of files, each once; those without an id are left out. Raises WrongShape."""
    file_ids = tuple(dict.fromkeys(file_id for file_id in ids if file_id))
    for file_id in file_ids:
        check_id(file_id)
    return tuple(f"files/{file_id}/content" for file_id in file_ids)


def objects_of(value: object) -> list[JsonObject]:
    """Return the objects of a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def raw_field(fields: Mapping[str, object], name: str) -> bytes:
    """Return a value of an object as JSON."""
    return msgspec.json.encode(fields.get(name))


def object_at(fields: Mapping[str, object], name: str) -> JsonObject:
    """Return the object under a name, an empty one where there is none."""
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def multipart_file(name: str, content: bytes, fields: Mapping[str, str]) -> tuple[bytes, str]:
    """Return a form with one file as a body (RFC 7578), and its content type. `content` must not hold the boundary, which JSONL cannot."""
    # A line of JSONL begins with a brace, so that no line of it is the boundary.
    boundary = "bardo-form-boundary"
    parts = [
        f'--{boundary}\r\ncontent-disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
        for key, value in fields.items()
    ]
    head = (
        f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="{name}"\r\n'
        "content-type: application/jsonl\r\n\r\n"
    )
    return b"".join([*parts, head.encode(), content, f"\r\n--{boundary}--\r\n".encode()]), (
        f"multipart/form-data; boundary={boundary}"
    )

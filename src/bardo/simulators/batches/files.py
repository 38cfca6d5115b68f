"""The simulated batch APIs that take files: OpenAI's, and Groq's, which is of the same form. Files are uploaded as multipart/form-data.

Jobs of all simulated batch APIs end after they were polled a few times: `BatchServer` is the base of them.
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from typing import ClassVar

from bardo.simulators import marks
from bardo.simulators.exchange import Incoming, Refusal, Reply, whole
from bardo.simulators.fields import Fields, compact, fields, text

Play = Callable[[Incoming, str, Fields], tuple[int, Fields]]
"""Has the model answer one request, whose path is below the base path: the status and the body of the answer."""


@dataclass
class Item:
    """One request of a job: the client's id, the path it is for, and its body; then what came of it."""

    key: str
    path: str
    body: Fields
    outcome: str = ""
    status: int = 200
    reply: Fields = field(default_factory=dict)


@dataclass
class Job:
    """One job. `poll_count` counts how often its client asked how far it is. `about` are the fields that only its API has."""

    id: str
    created: int
    items: list[Item]
    about: Fields
    incoming: Incoming
    poll_count: int = 0
    state: str = "new"
    canceled: bool = False
    ended: int | None = None
    errors: list[Fields] = field(default_factory=list)


class BatchServer(ABC):
    """The jobs of one provider, and what a test may change of how they go.

    A job ends when it was asked for `polls` times. `expired` are the places of the items that come to their time's end before they are
    sent. `lost` are those that no result is given for. `in_order` False gives results in another order than that of the requests.
    `refused` refuses each job as a whole. `holds`: no job ends before this is False again.
    """

    def __init__(self, play: Play) -> None:
        self.polls = 2
        self.expired: set[int] = set()
        self.lost: set[int] = set()
        self.in_order = False
        self.refused = ""
        self.holds = False
        self.jobs: dict[str, Job] = {}
        self._play = play
        self._made = 0

    @abstractmethod
    def answer(self, incoming: Incoming, path: str) -> Reply | None:
        """Answer a request at a path below the base path, or None if it is not about files or jobs."""

    def new_id(self, prefix: str) -> str:
        """Return a unique id."""
        self._made += 1
        return f"{prefix}{marks.token(f'batch/{self._made}/{time.time_ns()}', 24)}"

    def add(self, prefix: str, items: list[Item], about: Fields, incoming: Incoming) -> Job:
        """Begin a job."""
        job = Job(self.new_id(prefix), int(time.time()), items, about, incoming)
        self.jobs[job.id] = job
        return job

    def find(self, job_id: str) -> Job:
        """Return a job. Raises Refusal."""
        if job_id not in self.jobs:
            raise Refusal("bad_value", f"No batch found with id '{job_id}'.", status=404)
        return self.jobs[job_id]

    def ask(self, job: Job) -> Job:
        """Advance a job by one step, as its client polls it."""
        job.poll_count += 1
        if job.state in ("failed", "ended") or (self.holds and not job.canceled):
            return job
        job.state = "running"
        if job.canceled or job.poll_count >= self.polls:
            self._end(job)
        return job

    def cancel(self, job: Job) -> Job:
        """Cancel a job: requests that were not sent yet are never sent."""
        if job.state in ("failed", "ended"):
            raise Refusal("bad_value", f"Cannot cancel a batch with status '{job.state}'.", status=409)
        job.canceled = True
        return job

    def _end(self, job: Job) -> None:
        job.state, job.ended = "ended", int(time.time())
        for index, item in enumerate(job.items):
            if job.canceled and index >= len(job.items) // 2:
                item.outcome = "canceled"
            elif index in self.expired:
                item.outcome = "expired"
            else:
                item.status, item.reply = self._play(job.incoming, item.path, item.body)
                item.outcome = "succeeded" if item.status < 300 else "errored"

    def results(self, job: Job) -> list[Item]:
        """Return the items with their results, in the order in which the API returns them."""
        remaining = [item for index, item in enumerate(job.items) if index not in self.lost]
        return remaining if self.in_order else remaining[::-1]


def read_form(incoming: Incoming) -> tuple[dict[str, str], str, bytes]:
    """Return the fields of a form, and the name and the content of its file. Raises Refusal."""
    kind = incoming.headers.get("content-type", "")
    if not kind.startswith("multipart/form-data"):
        raise Refusal("bad_value", f"Invalid Content-Type header ({kind}), expected multipart/form-data.")
    head = f"content-type: {kind}\r\n\r\n".encode()
    form = BytesParser(policy=HTTP).parsebytes(head + incoming.raw)
    fields: dict[str, str] = {}
    name, content = "", b""
    for part in form.iter_parts():
        field = str(part.get_param("name", header="content-disposition") or "")
        filename = part.get_filename()
        payload = part.get_payload(decode=True)
        data = payload if isinstance(payload, bytes) else b""
        if filename is not None and field == "file":
            name, content = filename, data
        else:
            fields[field] = data.decode()
    if not name:
        raise Refusal("missing_field", "'file' is a required property", parameter="file")
    return fields, name, content


_DAY = 24 * 3600
_CREATE = ("input_file_id", "endpoint", "completion_window", "metadata", "output_expires_after")


class FileServer(BatchServer):
    """Files that are uploaded for batches, and those that batches write."""

    purposes: ClassVar[tuple[str, ...]] = ("batch",)

    def __init__(self, play: Play) -> None:
        super().__init__(play)
        self.files: dict[str, tuple[Fields, bytes]] = {}

    def file_answer(self, incoming: Incoming, path: str) -> Reply | None:
        """Answer a request about files."""
        _, _, rest = path.partition("/files")
        if not path.startswith("/files") or (rest and not rest.startswith("/")):
            return None
        name, _, below = rest.strip("/").partition("/")
        if not name:
            return self._upload(incoming) if incoming.method == "POST" else self._listed()
        if name not in self.files:
            raise Refusal("bad_value", f"No such File object: {name}", parameter="id", status=404)
        about, content = self.files[name]
        if incoming.method == "DELETE":
            del self.files[name]
            return _json({"id": name, "object": "file", "deleted": True})
        return whole(content, content_type="application/octet-stream") if below == "content" else _json(about)

    def put_file(self, name: str, content: bytes, purpose: str) -> Fields:
        """Store a file, and return its object."""
        file_id = self.new_id("file-")
        about: Fields = {
            "id": file_id,
            "object": "file",
            "bytes": len(content),
            "created_at": int(time.time()),
            "expires_at": None,
            "filename": name,
            "purpose": purpose,
            "status": "processed",
            "status_details": None,
        }
        self.files[file_id] = (about, content)
        return about

    def _upload(self, incoming: Incoming) -> Reply:
        form, name, content = read_form(incoming)
        purpose = form.get("purpose", "")
        if purpose not in self.purposes:
            raise Refusal(
                "bad_value", f"'{purpose}' is not one of {list(self.purposes)} - 'purpose'", parameter="purpose"
            )
        return _json(self.put_file(name, content, purpose))

    def _listed(self) -> Reply:
        return _json({"object": "list", "data": [about for about, _ in self.files.values()], "has_more": False})


class OpenAIBatches(FileServer):
    """api.openai.com/v1/files and /v1/batches."""

    endpoints: ClassVar[tuple[str, ...]] = (
        "/v1/responses",
        "/v1/chat/completions",
        "/v1/embeddings",
        "/v1/completions",
    )
    windows: ClassVar[tuple[str, ...]] = ("24h",)
    most_items: ClassVar[int] = 50_000
    one_model: ClassVar[bool] = True
    item_url: ClassVar[str] = "/v1"

    def answer(self, incoming: Incoming, path: str) -> Reply | None:
        reply = self.file_answer(incoming, path)
        if reply is not None:
            return reply
        if path != "/batches" and not path.startswith("/batches/"):
            return None
        name, _, below = path.removeprefix("/batches").strip("/").partition("/")
        if not name:
            return self._create(incoming) if incoming.method == "POST" else self._list(incoming)
        job = self.find(name)
        if below == "cancel":
            return _json(self._encode_job(self.cancel(job)))
        return _json(self._encode_job(self.ask(job)))

    def _create(self, incoming: Incoming) -> Reply:
        body = incoming.fields
        for name in ("input_file_id", "endpoint", "completion_window"):
            if not text(body.get(name)):
                raise Refusal("missing_field", f"Missing required parameter: '{name}'.", parameter=name)
        unknown = [name for name in body if name not in _CREATE]
        if unknown:
            raise Refusal("unknown_field", f"Unknown parameter: '{unknown[0]}'.", parameter=unknown[0])
        if body["endpoint"] not in self.endpoints:
            raise Refusal("bad_value", f"Invalid value: '{body['endpoint']}'.", parameter="endpoint")
        if body["completion_window"] not in self.windows:
            raise Refusal("bad_value", f"Invalid value: '{body['completion_window']}'.", parameter="completion_window")
        if body["input_file_id"] not in self.files:
            raise Refusal("bad_value", f"File not found: {body['input_file_id']}", parameter="input_file_id")
        if self.refused:
            raise Refusal("bad_value", self.refused)
        return _json(self._encode_job(self.add("batch_", [], dict(body), incoming)))

    def ask(self, job: Job) -> Job:
        if job.state == "new":
            _, content = self.files[text(job.about.get("input_file_id"))]
            job.items, job.errors = self._read(content, text(job.about.get("endpoint")))
            if job.errors:
                job.state, job.ended = "failed", int(time.time())
        return super().ask(job)

    def _read(self, content: bytes, endpoint: str) -> tuple[list[Item], list[Fields]]:
        """Return the items of a file, and its faults."""
        items: list[Item] = []
        errors: list[Fields] = []
        lines = [line for line in content.split(b"\n") if line.strip()]
        if not lines:
            return [], [_problem("empty_file", "The input file is empty.", None)]
        if len(lines) > self.most_items:
            return [], [_problem("too_many_tasks", f"The file holds over {self.most_items} requests.", None)]
        seen: set[str] = set()
        for number, line in enumerate(lines, 1):
            item = self._item(line, endpoint, seen)
            if isinstance(item, Item):
                items.append(item)
            else:
                errors.append(_problem(*item, number))
        if self.one_model and len({text(item.body.get("model")) for item in items}) > 1:
            message = "All requests in a batch file must be for the same model."
            errors.append(_problem("mismatched_model", message, None))
        return items, errors

    def _item(self, line: bytes, endpoint: str, seen: set[str]) -> Item | tuple[str, str]:
        try:
            value = fields(json.loads(line))
        except ValueError:
            return "invalid_json_line", "This line is not parseable as valid JSON."
        key = text(value.get("custom_id"))
        if set(value) != {"custom_id", "method", "url", "body"} or not key or not isinstance(value["body"], dict):
            return "missing_required_parameter", "A line has custom_id, method, url and body."
        if key in seen:
            return "duplicate_custom_id", f"The custom_id '{key}' for this request is a duplicate."
        if value["method"] != "POST" or value["url"] != endpoint:
            return "mismatched_url", "The URL provided for this request does not match the batch endpoint."
        seen.add(key)
        return Item(key, endpoint.removeprefix(self.item_url), value["body"])

    def _end(self, job: Job) -> None:
        super()._end(job)
        lines = [(item.outcome == "succeeded", compact(self._line(item))) for item in self.results(job)]
        for name, good in (("output_file_id", True), ("error_file_id", False)):
            content = b"".join(line + b"\n" for fits, line in lines if fits is good)
            if content:
                job.about[name] = self.put_file(f"{job.id}_{name}.jsonl", content, "batch_output")["id"]

    def _line(self, item: Item) -> Fields:
        line: Fields = {"id": self.new_id("batch_req_"), "custom_id": item.key, "response": None, "error": None}
        if item.outcome == "expired":
            message = "This request could not be executed before the completion window expired."
            return {**line, "error": {"code": "batch_expired", "message": message}}
        if item.outcome == "canceled":
            return {**line, "error": {"code": "batch_cancelled", "message": "The batch was cancelled."}}
        encoded: Fields = {"status_code": item.status, "request_id": self.new_id("req_"), "body": item.reply}
        return {**line, "response": encoded}

    def _encode_job(self, job: Job) -> Fields:
        outcomes = [item.outcome for item in job.items]
        about = job.about
        return {
            "id": job.id,
            "object": "batch",
            "endpoint": about["endpoint"],
            "errors": {"object": "list", "data": job.errors} if job.errors else None,
            "input_file_id": about["input_file_id"],
            "completion_window": about["completion_window"],
            "status": _status_of(job),
            "output_file_id": about.get("output_file_id"),
            "error_file_id": about.get("error_file_id"),
            "created_at": job.created,
            "in_progress_at": job.created if job.poll_count else None,
            "expires_at": job.created + _DAY,
            "completed_at": job.ended,
            "request_counts": {
                "total": len(job.items),
                "completed": outcomes.count("succeeded"),
                "failed": outcomes.count("errored") + outcomes.count("expired"),
            },
            "metadata": about.get("metadata"),
        }

    def _list(self, incoming: Incoming) -> Reply:
        newest = list(self.jobs.values())[::-1]
        after, limit = incoming.query.get("after", ""), int(incoming.query.get("limit", "20"))
        if not 1 <= limit <= 100:
            raise Refusal("bad_value", "limit must be from 1 to 100", parameter="limit")
        page = list(_jobs_after(newest, after))
        page_items = [self._encode_job(job) for job in page[:limit]]
        ends = (
            {"first_id": page_items[0]["id"], "last_id": page_items[-1]["id"]}
            if page_items
            else {"first_id": None, "last_id": None}
        )
        return _json({"object": "list", "data": page_items, **ends, "has_more": len(page) > limit})


class GroqBatches(OpenAIBatches):
    """api.groq.com/openai/v1/files and /openai/v1/batches."""

    endpoints = ("/v1/chat/completions",)
    windows = ("24h", "48h", "72h", "96h", "120h", "144h", "168h", "7d")
    one_model = False


def _jobs_after(jobs: list[Job], after: str) -> Iterator[Job]:
    """Yield the jobs behind the one that is named, all where none is."""
    is_behind = not after
    for job in jobs:
        if is_behind:
            yield job
        is_behind = is_behind or job.id == after


def _status_of(job: Job) -> str:
    if job.state == "failed":
        return "failed"
    if job.state == "ended":
        if job.canceled:
            return "cancelled"
        return "expired" if any(item.outcome == "expired" for item in job.items) else "completed"
    if job.canceled:
        return "cancelling"
    return "in_progress" if job.poll_count else "validating"


def _problem(code: str, message: str, line: int | None) -> Fields:
    return {"code": code, "message": message, "param": None, "line": line}


def _json(value: Fields) -> Reply:
    return whole(compact(value))

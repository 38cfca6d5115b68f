"""Mistral's files and batch jobs."""

from __future__ import annotations

import json
from typing import ClassVar

from bardo.simulators.batches.base import Item, Job
from bardo.simulators.batches.openai import FileServer
from bardo.simulators.exchange import Incoming, Refusal, Reply, whole
from bardo.simulators.fields import Fields, compact, fields, text

_CREATE = ("input_files", "endpoint", "model", "metadata", "timeout_hours", "agent_id", "requests")
_ENDPOINTS = (
    "/v1/chat/completions",
    "/v1/embeddings",
    "/v1/fim/completions",
    "/v1/moderations",
    "/v1/chat/moderations",
)
_MOST_HOURS = 168


class MistralBatches(FileServer):
    """api.mistral.ai/v1/files and /v1/batch/jobs."""

    purposes: ClassVar[tuple[str, ...]] = ("batch", "fine-tune", "ocr")

    def answer(self, incoming: Incoming, path: str) -> Reply | None:
        found = self.file_answer(incoming, path)
        if found is not None:
            return found
        if path != "/batch/jobs" and not path.startswith("/batch/jobs/"):
            return None
        name, _, below = path.removeprefix("/batch/jobs").strip("/").partition("/")
        if not name:
            return self._create(incoming) if incoming.method == "POST" else self._list(incoming)
        job = self.find(name)
        return _json(self._encode_job(self.cancel(job) if below == "cancel" else self.ask(job)))

    def _create(self, incoming: Incoming) -> Reply:
        body = incoming.fields
        unknown = [name for name in body if name not in _CREATE]
        if unknown:
            raise Refusal(
                "unknown_field", f"Extra inputs are not permitted: {unknown[0]}", parameter=unknown[0], status=422
            )
        entries, hours = body.get("input_files"), body.get("timeout_hours", 24)
        if not isinstance(entries, list) or not entries or any(name not in self.files for name in entries):
            raise Refusal("bad_value", "input_files: a file was not found", parameter="input_files", status=422)
        if body.get("endpoint") not in _ENDPOINTS or not text(body.get("model")):
            raise Refusal("bad_value", "endpoint or model is not valid", parameter="endpoint", status=422)
        if not isinstance(hours, int) or not 1 <= hours <= _MOST_HOURS:
            raise Refusal("bad_value", "timeout_hours is not valid", parameter="timeout_hours", status=422)
        if self.refused:
            raise Refusal("bad_value", self.refused, status=422)
        job = self.add("", [], dict(body), incoming)
        for name in entries:
            self._read(job, self.files[name][1], text(body["endpoint"]), text(body["model"]))
        return _json(self._encode_job(job))

    def _read(self, job: Job, content: bytes, endpoint: str, model: str) -> None:
        for line in content.split(b"\n"):
            if not line.strip():
                continue
            try:
                value = fields(json.loads(line))
            except ValueError:
                value = {}
            body = value.get("body")
            if not isinstance(body, dict) or set(value) - {"custom_id", "body"}:
                job.errors.append({"message": "a line is no request", "count": 1})
                continue
            asked = {**body, "model": model}
            job.items.append(Item(text(value.get("custom_id")), endpoint.removeprefix("/v1"), asked))
        job.state = "failed" if job.errors else "new"

    def _end(self, job: Job) -> None:
        super()._end(job)
        for name, good in (("output_file", True), ("error_file", False)):
            done = [item for item in self.results(job) if item.outcome in ("succeeded", "errored")]
            lines = [compact(self._line(item)) + b"\n" for item in done if (item.outcome == "succeeded") is good]
            if lines:
                job.about[name] = self.put_file(f"{name}.jsonl", b"".join(lines), "batch")["id"]

    def _line(self, item: Item) -> Fields:
        encoded: Fields = {"status_code": item.status, "body": item.reply}
        return {"id": self.new_id("batch-"), "custom_id": item.key, "response": encoded, "error": None}

    def _encode_job(self, job: Job) -> Fields:
        outcomes = [item.outcome for item in job.items]
        done, failed = outcomes.count("succeeded"), outcomes.count("errored")
        about = job.about
        return {
            "id": job.id,
            "object": "batch",
            "input_files": about["input_files"],
            "endpoint": about["endpoint"],
            "model": about["model"],
            "metadata": about.get("metadata"),
            "errors": job.errors,
            "status": _status_of(job),
            "output_file": about.get("output_file"),
            "error_file": about.get("error_file"),
            "created_at": job.created,
            "started_at": job.created if job.poll_count else None,
            "completed_at": job.ended,
            "total_requests": len(job.items),
            "completed_requests": done + failed,
            "succeeded_requests": done,
            "failed_requests": failed,
        }

    def _list(self, incoming: Incoming) -> Reply:
        page, size = int(incoming.query.get("page", "0")), int(incoming.query.get("page_size", "100"))
        newest = [self._encode_job(job) for job in list(self.jobs.values())[::-1]]
        page_items = newest[page * size : (page + 1) * size]
        return _json({"object": "list", "data": page_items, "total": len(newest), "page": page})


def _status_of(job: Job) -> str:
    if job.state == "failed":
        return "FAILED"
    if job.state == "ended":
        expired = any(item.outcome == "expired" for item in job.items)
        return "CANCELLED" if job.canceled else "TIMEOUT_EXCEEDED" if expired else "SUCCESS"
    if job.canceled:
        return "CANCELLATION_REQUESTED"
    return "RUNNING" if job.poll_count else "QUEUED"


def _json(value: Fields) -> Reply:
    return whole(compact(value))

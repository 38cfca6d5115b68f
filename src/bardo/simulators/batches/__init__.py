"""The batch APIs of simulated providers: here Anthropic's Message Batches, Gemini's, and Mistral's files and jobs.

The requests of Anthropic's and Gemini's stand in the call. Gemini's results stand in the operation once it has ended.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import ClassVar

from bardo.simulators.batches.files import BatchServer, FileServer, GroqBatches, Item, Job, OpenAIBatches, Play
from bardo.simulators.exchange import Incoming, Refusal, Reply, whole
from bardo.simulators.fields import Fields, at, compact, fields, text

_BATCHES = "/v1/messages/batches"
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_DAY = 24 * 3600
_MOST_ITEMS = 100_000


class AnthropicBatches(BatchServer):
    """api.anthropic.com/v1/messages/batches."""

    def answer(self, incoming: Incoming, path: str) -> Reply | None:
        if path != _BATCHES and not path.startswith(f"{_BATCHES}/"):
            return None
        name, _, below = path.removeprefix(_BATCHES).strip("/").partition("/")
        if not name:
            return self._create(incoming) if incoming.method == "POST" else self._list(incoming)
        job = self.find(name)
        if below == "results":
            return self._results(job)
        if below == "cancel":
            return _json(self._encode_job(self.cancel(job), incoming))
        if incoming.method == "DELETE":
            return self._delete(job)
        return _json(self._encode_job(self.ask(job), incoming))

    def _create(self, incoming: Incoming) -> Reply:
        body = incoming.fields
        entries = body.get("requests")
        if not isinstance(entries, list) or not entries or len(entries) > _MOST_ITEMS:
            raise Refusal("bad_value", "requests: List should have at least 1 item", parameter="requests")
        extra = [name for name in body if name != "requests"]
        if extra:
            raise Refusal("unknown_field", f"{extra[0]}: Extra inputs are not permitted", parameter=extra[0])
        if self.refused:
            raise Refusal("bad_value", self.refused)
        seen: set[str] = set()
        items = [self._item(index, fields(entry), seen) for index, entry in enumerate(entries)]
        return _json(self._encode_job(self.add("msgbatch_", items, {}, incoming), incoming))

    def _item(self, index: int, item: Fields, seen: set[str]) -> Item:
        key, params = item.get("custom_id"), item.get("params")
        where = f"requests.{index}"
        if not isinstance(key, str) or not _ID.fullmatch(key):
            raise Refusal("bad_value", f"{where}.custom_id: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
        if key in seen:
            raise Refusal("bad_value", f"{where}.custom_id: custom_id values must be unique")
        if not isinstance(params, dict) or set(item) != {"custom_id", "params"}:
            raise Refusal("missing_field", f"{where}.params: Field required")
        seen.add(key)
        return Item(key, "/v1/messages", params)

    def _results(self, job: Job) -> Reply:
        if job.state != "ended":
            raise Refusal("bad_value", f"Batch {job.id} has no available results.", status=404)
        lines = [compact({"custom_id": item.key, "result": _result(item)}) + b"\n" for item in self.results(job)]
        return whole(b"".join(lines), content_type="application/x-jsonl")

    def _delete(self, job: Job) -> Reply:
        if job.state != "ended":
            raise Refusal("bad_value", "A batch that is being processed cannot be deleted.")
        del self.jobs[job.id]
        return _json({"id": job.id, "type": "message_batch_deleted"})

    def _encode_job(self, job: Job, incoming: Incoming) -> Fields:
        ended = job.state == "ended"
        outcomes = [item.outcome for item in job.items]
        kinds = ("succeeded", "errored", "canceled", "expired")
        counts: Fields = {kind: outcomes.count(kind) if ended else 0 for kind in kinds}
        address = f"http://{incoming.headers.get('host', 'localhost')}{_BATCHES}/{job.id}/results"
        return {
            "id": job.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "canceling" if job.canceled else "in_progress",
            "request_counts": {"processing": 0 if ended else len(job.items), **counts},
            "ended_at": None if job.ended is None else _timestamp(job.ended),
            "created_at": _timestamp(job.created),
            "expires_at": _timestamp(job.created + _DAY),
            "archived_at": None,
            "cancel_initiated_at": _timestamp(job.created) if job.canceled else None,
            "results_url": address if ended else None,
        }

    def _list(self, incoming: Incoming) -> Reply:
        newest = list(self.jobs.values())[::-1]
        after, limit = incoming.query.get("after_id", ""), int(incoming.query.get("limit", "20"))
        ids = [job.id for job in newest]
        begin = ids.index(after) + 1 if after in ids else 0
        page = newest[begin : begin + limit]
        # Jobs go on by themselves, whether they are asked for one by one or not.
        page_items = [self._encode_job(self.ask(job), incoming) for job in page]
        ends = {"first_id": page[0].id, "last_id": page[-1].id} if page else {"first_id": None, "last_id": None}
        return _json({"data": page_items, "has_more": begin + limit < len(newest), **ends})


def _result(item: Item) -> Fields:
    if item.outcome == "succeeded":
        return {"type": "succeeded", "message": item.reply}
    if item.outcome == "errored":
        return {"type": "errored", "error": item.reply}
    return {"type": item.outcome}


def _timestamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _json(value: Fields) -> Reply:
    return whole(compact(value))


_VERB = ":batchGenerateContent"
_MOST_BYTES = 20_000_000
_TYPE = "type.googleapis.com/google.ai.generativelanguage.v1main."


class GeminiBatches(BatchServer):
    """generativelanguage.googleapis.com/v1beta/models/{model}:batchGenerateContent and /batches.

    Results come in the order of the requests; `keeps_metadata` False leaves our ids out of them, as was seen of the real API.
    """

    keeps_metadata = True

    def answer(self, incoming: Incoming, path: str) -> Reply | None:
        path = path.removeprefix("/v1beta")
        if path.startswith("/models/") and path.endswith(_VERB) and incoming.method == "POST":
            return self._create(incoming, path.removeprefix("/").removesuffix(_VERB))
        if path != "/batches" and not path.startswith("/batches/"):
            return None
        name, _, verb = path.removeprefix("/").partition(":")
        if name == "batches":
            return self._list(incoming)
        job = self.find(name)
        if verb == "cancel":
            self.cancel(job)
            return _json({})
        return _json(self._encode_job(self.ask(job)))

    def _create(self, incoming: Incoming, model: str) -> Reply:
        if len(incoming.raw) > _MOST_BYTES:
            raise Refusal("too_long", "Request payload size exceeds the limit: 20971520 bytes.")
        batch = fields(incoming.fields.get("batch"))
        name = text(batch.get("displayName")) or text(batch.get("display_name"))
        entries = at(batch, "inputConfig.requests.requests")
        if not name or not isinstance(entries, list) or not entries:
            raise Refusal(
                "bad_value", "Invalid JSON payload received: batch.displayName and batch.inputConfig are required."
            )
        unknown = set(batch) - {"displayName", "display_name", "inputConfig", "priority"}
        if unknown:
            raise Refusal("unknown_field", f"Invalid JSON payload received. Unknown name \"{min(unknown)}\" at 'batch'")
        if self.refused:
            raise Refusal("bad_value", self.refused)
        items = [
            Item(
                text(at(item, "metadata.key")), f"/v1beta/{model}:generateContent", fields(fields(item).get("request"))
            )
            for item in entries
        ]
        if any(not item.body.get("contents") for item in items):
            raise Refusal("bad_value", "* GenerateContentRequest.contents: contents is not specified")
        return _json(self._encode_job(self.add("batches/", items, {"displayName": name, "model": model}, incoming)))

    def results(self, job: Job) -> list[Item]:
        return job.items

    def _encode_job(self, job: Job) -> Fields:
        state = f"BATCH_STATE_{_state_of(job)}"
        about: Fields = {
            "@type": f"{_TYPE}GenerateContentBatch",
            "model": job.about["model"],
            "displayName": job.about["displayName"],
            "createTime": datetime.fromtimestamp(job.created, UTC).isoformat().replace("+00:00", "Z"),
            "batchStats": {"requestCount": str(len(job.items)), "pendingRequestCount": str(len(job.items))},
            "state": state,
            "name": job.id,
        }
        encoded: Fields = {"name": job.id, "metadata": about}
        if job.state == "ended":
            entries = [self._result(item) for item in self.results(job)]
            output: Fields = {
                "@type": f"{_TYPE}GenerateContentBatchOutput",
                "inlinedResponses": {"inlinedResponses": entries},
            }
            encoded |= {"done": True, "response": output}
        return encoded

    def _result(self, item: Item) -> Fields:
        about: Fields = {"metadata": {"key": item.key}} if self.keeps_metadata else {}
        if item.outcome == "succeeded":
            return {"response": item.reply, **about}
        code = {"errored": 3, "canceled": 1, "expired": 4}[item.outcome]
        return {"error": {"code": code, "message": text(at(item.reply, "error.message")) or item.outcome}, **about}

    def _list(self, incoming: Incoming) -> Reply:
        newest = list(self.jobs.values())[::-1]
        size, token = int(incoming.query.get("pageSize", "50")), incoming.query.get("pageToken", "")
        begin = int(token) if token.isdigit() else 0
        page_items = [self._encode_job(job) for job in newest[begin : begin + size]]
        more: Fields = {"nextPageToken": str(begin + size)} if begin + size < len(newest) else {}
        return _json({"operations": page_items, **more})


def _state_of(job: Job) -> str:
    if job.state == "ended":
        return "CANCELLED" if job.canceled else "SUCCEEDED"
    return "RUNNING" if job.poll_count else "PENDING"


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
        reply = self.file_answer(incoming, path)
        if reply is not None:
            return reply
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


_SERVERS: dict[str, type[BatchServer]] = {
    "openai_chat": OpenAIBatches,
    "openai_responses": OpenAIBatches,
    "groq": GroqBatches,
    "anthropic": AnthropicBatches,
    "gemini": GeminiBatches,
    "mistral": MistralBatches,
}


def batch_server(provider: str, play: Play) -> BatchServer | None:
    """Return the batch API of a provider by the name of its preset, or None if it has none."""
    server = _SERVERS.get(provider)
    return None if server is None else server(play)

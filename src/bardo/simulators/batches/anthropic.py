"""Anthropic's Message Batches."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from bardo.simulators.batches.base import BatchServer, Item, Job
from bardo.simulators.exchange import Incoming, Refusal, Reply, whole
from bardo.simulators.fields import Fields, compact, fields

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
        items = [self._item(index, fields(one), seen) for index, one in enumerate(entries)]
        return _json(self._encode_job(self.add("msgbatch_", items, {}, incoming), incoming))

    def _item(self, index: int, one: Fields, seen: set[str]) -> Item:
        key, params = one.get("custom_id"), one.get("params")
        where = f"requests.{index}"
        if not isinstance(key, str) or not _ID.fullmatch(key):
            raise Refusal("bad_value", f"{where}.custom_id: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
        if key in seen:
            raise Refusal("bad_value", f"{where}.custom_id: custom_id values must be unique")
        if not isinstance(params, dict) or set(one) != {"custom_id", "params"}:
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

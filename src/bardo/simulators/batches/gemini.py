"""Gemini's batches: requests that stand in the call, and results that stand in the operation once it has ended."""

from __future__ import annotations

from datetime import UTC, datetime

from bardo.simulators.batches.base import BatchServer, Item, Job
from bardo.simulators.exchange import Incoming, Refusal, Reply, whole
from bardo.simulators.fields import Fields, at, compact, fields, text

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
            Item(text(at(one, "metadata.key")), f"/v1beta/{model}:generateContent", fields(fields(one).get("request")))
            for one in entries
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


def _json(value: Fields) -> Reply:
    return whole(compact(value))

"""Batches as clients see them: OpenAI's object and Anthropic's, from what is kept of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from bardo.dialects.batches.openai_client import LineProblem
from bardo.dialects.shared.json_values import JsonObject

_USAGE = ("input_tokens", "output_tokens")
_OPENAI_TIMES = ("in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")


class BatchFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What objects tell of a batch. `times` are when it came to each status, `counts` its items by state."""

    id: str
    endpoint: str
    status: str
    window: str
    created_at: float
    expires_at: float
    times: dict[str, float]
    total: int
    counts: dict[str, int]
    usage: dict[str, int]
    metadata: dict[str, str] | None
    input_file_id: str
    output_file_id: str
    error_file_id: str
    errors: tuple[LineProblem, ...]
    model: str
    bardo: JsonObject


def openai_batch(facts: BatchFacts) -> JsonObject:
    """Return the object that OpenAI's clients read."""
    times = {f"{name}_at": _whole(facts.times.get(name)) for name in _OPENAI_TIMES}
    problems = [msgspec.to_builtins(one) for one in facts.errors]
    done = facts.counts.get("succeeded", 0)
    failed = sum(facts.counts.get(state, 0) for state in ("errored", "expired"))
    return {
        "id": facts.id,
        "object": "batch",
        "endpoint": facts.endpoint,
        "model": facts.model or None,
        "errors": {"object": "list", "data": problems} if problems else None,
        "input_file_id": facts.input_file_id,
        "completion_window": facts.window,
        "status": facts.status,
        "output_file_id": facts.output_file_id or None,
        "error_file_id": facts.error_file_id or None,
        "created_at": int(facts.created_at),
        "expires_at": int(facts.expires_at),
        **times,
        "request_counts": {"total": facts.total, "completed": done, "failed": failed},
        "usage": _usage(facts.usage),
        "metadata": facts.metadata,
        "bardo": facts.bardo,
    }


def _usage(counts: Mapping[str, int]) -> JsonObject | None:
    """Return the tokens of all items, or None if no item told any."""
    if not counts:
        return None
    given, made = (counts.get(name, 0) for name in _USAGE)
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": counts.get("cached_tokens", 0)},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": counts.get("reasoning_tokens", 0)},
        "total_tokens": given + made,
    }


def anthropic_batch(facts: BatchFacts, results_url: str) -> JsonObject:
    """Return the object that Anthropic's clients read. `results_url` is where its results are, once it has ended."""
    ended = facts.status in ("completed", "expired", "cancelled", "failed")
    counts = {
        state: facts.counts.get(state, 0) if ended else 0 for state in ("succeeded", "errored", "canceled", "expired")
    }
    ended_at = max(
        (facts.times.get(name, 0.0) for name in ("completed", "expired", "cancelled", "failed")), default=0.0
    )
    return {
        "id": facts.id,
        "type": "message_batch",
        "processing_status": "ended" if ended else "canceling" if facts.status == "cancelling" else "in_progress",
        "request_counts": {"processing": 0 if ended else facts.total, **counts},
        "ended_at": _moment(ended_at) if ended else None,
        "created_at": _moment(facts.created_at),
        "expires_at": _moment(facts.expires_at),
        "archived_at": None,
        "cancel_initiated_at": _moment(facts.times["cancelling"]) if "cancelling" in facts.times else None,
        "results_url": results_url if ended else None,
        "bardo": facts.bardo,
    }


def anthropic_result(
    state: str, custom_id: str, *, status: int | None, body: msgspec.Raw, message: str, bardo: JsonObject
) -> bytes:
    """Return a line of the results that Anthropic's clients read."""
    result: JsonObject = {"type": state}
    if state == "succeeded":
        result["message"] = body
    elif state == "errored":
        error = {"type": "error", "error": {"type": "api_error", "message": message}}
        result["error"] = body if status is not None else error
    return msgspec.json.encode({"custom_id": custom_id, "result": result, "bardo": bardo}) + b"\n"


def _whole(time: float | None) -> int | None:
    return None if time is None else int(time)


def _moment(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat().replace("+00:00", "Z")

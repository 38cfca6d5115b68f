"""One finished call as a row of the inference log."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.edge.log.row import CallOutcome, LogRow
from bardo.engine.exchange import Attempt
from bardo.engine.receipt import receipt
from bardo.values.errors import BardoError
from bardo.values.request import Request
from bardo.values.response import Response


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """When a call began (Unix time), how long it took, and how long its first piece."""

    started_at: float
    seconds: float
    first_byte_seconds: float | None = None


def log_row(
    request_id: str,
    request: Request,
    timing: Timing,
    *,
    outcome: CallOutcome,
    attempts: int = 1,
    attempt: Attempt | None = None,
    response: Response | None = None,
    error: BardoError | None = None,
    keep_content: bool = False,
) -> LogRow:
    """Return the row of one call. Content goes in only where it is to be kept."""
    fields: dict[str, Any] = {
        "request_id": request_id,
        "started_at": timing.started_at,
        "seconds": timing.seconds,
        "first_byte_seconds": timing.first_byte_seconds,
        "client_dialect": request.dialect,
        "model_asked": request.model,
        "streamed": request.stream,
        "attempts": attempts,
        "outcome": outcome,
        "status": error.status if error is not None else 200 if response is not None else None,
    }
    if error is not None:
        fields |= {"error_class": type(error).__name__, "error_message": error.message}
    if attempt is not None:
        provider = attempt.target.provider
        fields |= {
            "provider": provider.id,
            "provider_dialect": provider.row.dialect,
            "model": attempt.target.model,
            "passed_through": attempt.forward,
            **_of_control(attempt),
        }
        if response is not None:
            fields |= _of_response(response)
            fields["receipt"] = told = receipt(response, attempt)
            fields["reasoning_verdict"] = told.get("verdict")
    if keep_content:
        fields["request_content"] = msgspec.json.encode(request.body or request.messages).decode()
        if response is not None:
            fields["reply_content"] = msgspec.json.encode(response.blocks).decode()
    return LogRow(**fields)


def _of_control(attempt: Attempt) -> dict[str, Any]:
    """Return the receipt as far as it is known before a reply."""
    plan = attempt.control
    if plan is None:
        return {}
    return {"reasoning_intent": plan.intent, "reasoning_emitted": plan.said, "reasoning_layer": plan.layer}


def _of_response(response: Response) -> dict[str, Any]:
    chain, usage = response.reasoning, response.usage
    return {
        "finish_reason": response.finish.reason,
        "finish_raw": response.finish.raw or None,
        "visibility": chain.visibility.value,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": chain.reasoning_tokens if chain.reported or chain.tokens_approx else None,
        "tokens_approx": chain.tokens_approx,
        "cached_input_tokens": usage.cached_input_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "usage_raw": usage.raw,
        "cost_usd": usage.cost_usd,
        "degraded": tuple(msgspec.to_builtins(response.degraded)),
    }

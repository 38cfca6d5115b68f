"""The row of one call in the log, made from the request, the attempt that was answered, the reply and the cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from bardo.adapters.stores.log.columns import MALFORMED_CALLS
from bardo.adapters.stores.log.row import CallOutcome, LogRow
from bardo.planning.attempt import Attempt
from bardo.replies.receipt import receipt
from bardo.values.attempts import AttemptRecord
from bardo.values.blocks import ToolCallBlock
from bardo.values.cost import UNKNOWN_COST, CallCost, usd
from bardo.values.errors import BardoError
from bardo.values.redaction import shown_headers, shown_url
from bardo.values.request import Request
from bardo.values.response import Response, ToolInvocation
from bardo.values.tool_credentials import without_credentials

if TYPE_CHECKING:
    from bardo.services.pipeline.call_layers import CallLayers


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
    forwarded: bool = False,
    keep_content: bool = False,
    tenant: str | None = None,
    key_id: str | None = None,
    tags: tuple[str, ...] = (),
    attempt_records: tuple[AttemptRecord, ...] = (),
    cost: CallCost = UNKNOWN_COST,
    payment: dict[str, Any] | None = None,
    layers: CallLayers | None = None,
) -> LogRow:
    """Return the row of one call. Content goes in only where it is to be kept."""
    parts: Any = cost.parts or None
    row = LogRow(
        request_id=request_id,
        started_at=timing.started_at,
        seconds=timing.seconds,
        first_byte_seconds=timing.first_byte_seconds,
        client_dialect=request.dialect,
        model_asked=request.model,
        streamed=request.stream,
        attempts=attempts,
        operation=request.operation,
        status=error.status if error is not None else None if response is None else 200,
        outcome=outcome,
        tenant=tenant,
        cost_usd=None if cost.nanos is None else usd(cost.nanos),
        cost_nanos=cost.nanos,
        cost_parts=parts,
        reported_cost_nanos=cost.reported_nanos,
        computed_cost_nanos=cost.computed_nanos,
        cache_saved_nanos=cost.saved_nanos,
        price_source=cost.source or None,
        key_id=key_id,
        subsystem=subsystem_of(request, attempt),
        tags=tags,
        attempt_records=attempt_records,
    )
    # Replacing takes a quarter of the time of fields that are put together in dictionaries.
    if attempt is not None:
        row = _with_attempt(row, attempt, forwarded=forwarded)
        if response is not None:
            row = _with_answer(row, attempt, response)
    if error is not None:
        row = replace(row, error_class=type(error).__name__, error_message=error.message)
    if payment is not None:
        row = replace(row, receipt={**(row.receipt or {}), "payment": payment})
    if layers is not None:
        row = replace(row, **_layer_fields(layers))
    return replace(row, **_contents(request, response, layers, attempt)) if keep_content else row


def _with_attempt(row: LogRow, attempt: Attempt, *, forwarded: bool) -> LogRow:
    """Return the row with the target that was asked, and what was sent of the receipt."""
    target, plan = attempt.target, attempt.control
    provider = target.provider
    return replace(
        row,
        provider=provider.id,
        provider_dialect=provider.row.dialect,
        model=target.model,
        passed_through=forwarded,
        route=None if attempt.route is None else attempt.route.fields,
        reasoning_intent=None if plan is None else plan.intent,
        reasoning_emitted=None if plan is None else plan.emitted,
        reasoning_layer=None if plan is None else plan.layer,
    )


def _with_answer(row: LogRow, attempt: Attempt, response: Response) -> LogRow:
    """Return the row with what is known of the reply to the attempt that it tells of."""
    chain, usage, finish = response.reasoning, response.usage, response.finish
    made, route = receipt(response, attempt, forwarded=row.passed_through), row.route
    if route is not None and "learned" in route:
        route = {**route, MALFORMED_CALLS: _malformed_calls(response)}
    return replace(
        row,
        finish_reason=finish.reason,
        finish_raw=finish.raw or None,
        visibility=str(chain.visibility),
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=chain.reasoning_tokens if chain.reported or chain.tokens_approx else None,
        tokens_approx=chain.tokens_approx or usage.approx,
        cached_input_tokens=usage.cached_input_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        usage_raw=usage.raw,
        degraded=tuple(msgspec.to_builtins(response.degraded)) if response.degraded else (),
        receipt=made,
        reasoning_verdict=made.get("verdict"),
        route=route,
    )


def _layer_fields(layers: CallLayers) -> dict[str, Any]:
    """Return the fields about the layers of a call."""
    cache, saved = layers.cache_result
    fields: dict[str, Any] = {"pipeline": layers.fields(), "cache": cache, "reply_saved_nanos": saved}
    return fields if layers.answer is None else fields | _USED_NOTHING


_USED_NOTHING: dict[str, Any] = {
    "input_tokens": None,
    "output_tokens": None,
    "reasoning_tokens": None,
    "cached_input_tokens": None,
    "cache_write_tokens": None,
    "usage_raw": None,
}
"""A reply that was kept says what its model used when it was made; the call that gets it used nothing."""


def _contents(
    request: Request, response: Response | None, layers: CallLayers | None, attempt: Attempt | None
) -> dict[str, str]:
    """Return what was said and sent as texts; nothing where it must not be kept."""
    said = said_in(request, response, layers)
    if said is None:
        return {}
    request, response = said
    kept = {"request_content": msgspec.json.encode(without_credentials(request.body) or request.messages).decode()}
    if attempt is not None:
        kept["sent_content"] = _sent(attempt)
    return kept if response is None else {**kept, "reply_content": msgspec.json.encode(response.blocks).decode()}


def _sent(attempt: Attempt) -> str:
    """Return the request of the last attempt as JSON, without what may be a secret in its address and its headers."""
    head = {
        "url": shown_url(attempt.url),
        "headers": shown_headers(attempt.headers, attempt.target.provider.row.headers),
    }
    try:
        return msgspec.json.encode({**head, "body": _body_to_keep(attempt.wire.body)}).decode()
    except UnicodeDecodeError:
        return msgspec.json.encode({**head, "body": attempt.wire.body.decode("utf-8", "replace")}).decode()


def _body_to_keep(body: bytes) -> Any:
    """Return a body as it was sent; where it names an MCP server, without what proves there who asks."""
    if b'"mcp' not in body:
        return msgspec.Raw(body)
    try:
        return without_credentials(msgspec.json.decode(body))
    except msgspec.DecodeError:
        return msgspec.Raw(body)


def said_in(
    request: Request, response: Response | None, layers: CallLayers | None
) -> tuple[Request, Response | None] | None:
    """Return what was said, as its provider got it and said it where a layer masks that; None where the layer did not come to it."""
    if layers is None or not layers.masks:
        return request, response
    if not layers.masked:
        return None
    return layers.as_sent(request), None if response is None else layers.as_said(response)


def subsystem_of(request: Request, attempt: Attempt | None) -> str | None:
    """Return which part of an agent, or which workload, asked; None where the request does not tell."""
    if attempt is not None and attempt.route is not None and (workload := attempt.route.fields.get("workload")):
        return str(workload)
    intent = request.options.intent
    return None if intent is None else intent.subsystem or None


def _malformed_calls(response: Response) -> list[str]:
    """Return the names of the tools that a model called with arguments which are no JSON object: what is learned of it."""
    blocks = (block for one in (response, *response.alternatives) for block in one.blocks)
    calls = (ToolInvocation.of(block) for block in blocks if isinstance(block, ToolCallBlock))
    return [call.name for call in calls if call.malformed]

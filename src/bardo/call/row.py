"""The row of one call in the log, without the key that its client came with."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import replace

from bardo.adapters.stores.log.columns import MALFORMED_CALLS
from bardo.adapters.stores.log.row import CallOutcome, LogRow
from bardo.call.call import Call, subsystem_of
from bardo.call.client_login import ClientLogin
from bardo.planning.attempt import Attempt
from bardo.replies.receipt import receipt
from bardo.services.accounts.access_keys import keys_in
from bardo.values.blocks import ToolCallBlock
from bardo.values.errors import BardoError
from bardo.values.operations import EmbedRequest
from bardo.values.request import Request
from bardo.values.response import Response, ToolInvocation
from bardo.values.secrets import looks_like_key, secrets_of, shown_headers, shown_url, without_credentials
from bardo.values.usage import usd

if TYPE_CHECKING:
    from bardo.services.pipeline.call_layers import CallLayers


def row_of(
    call: Call,
    request: Request | EmbedRequest,
    *,
    outcome: CallOutcome,
    subsystem: str | None,
    error: BardoError | None = None,
    answered: bool,
) -> LogRow:
    """Return what the row of every call says: whose it is, what it asked, how long it took, what it cost and how it ended."""
    cost = call.cost
    parts: Any = cost.parts or None
    row = LogRow(
        request_id=call.request_id,
        started_at=call.started_at,
        seconds=call.attempts.age(),
        first_byte_seconds=call.first_byte,
        client_dialect=request.dialect,
        model_asked=request.model,
        streamed=call.streamed,
        attempts=call.attempts.count,
        operation=call.operation,
        status=error.status if error is not None else 200 if answered else None,
        outcome=outcome,
        tenant=call.tenant,
        cost_usd=None if cost.nanos is None else usd(cost.nanos),
        cost_nanos=cost.nanos,
        cost_parts=parts,
        reported_cost_nanos=cost.reported_nanos,
        computed_cost_nanos=cost.computed_nanos,
        cache_saved_nanos=cost.saved_nanos,
        price_source=cost.source or None,
        key_id=call.key_id,
        subsystem=subsystem,
        tags=call.tags,
        attempt_records=call.attempts.logged_records(),
        session=call.labels.session or None,
        agent=call.labels.agent or None,
        repository=call.labels.repository or None,
    )
    return row if error is None else replace(row, error_class=type(error).__name__, error_message=error.message)


def row_of_reply(
    call: Call,
    request: Request,
    *,
    outcome: CallOutcome,
    attempt: Attempt | None = None,
    response: Response | None = None,
    error: BardoError | None = None,
    forwarded: bool = False,
) -> LogRow:
    """Return the row of a call for a reply, as far as that has come. Content goes in only where it is to be kept."""
    subsystem, layers = subsystem_of(request, attempt), call.layers
    row = row_of(call, request, outcome=outcome, subsystem=subsystem, error=error, answered=response is not None)
    # Replacing takes a quarter of the time of fields that are put together in dictionaries.
    if attempt is not None:
        provider, plan = attempt.target.provider, attempt.control
        route = None if attempt.route is None else attempt.route.fields
        row = replace(
            row,
            provider=provider.id,
            provider_dialect=provider.row.dialect,
            model=attempt.target.model,
            passed_through=forwarded,
            route=route,
            reasoning_intent=None if plan is None else plan.intent,
            reasoning_emitted=None if plan is None else plan.emitted,
            reasoning_layer=None if plan is None else plan.layer,
        )
        if response is not None:
            chain, usage, finish = response.reasoning, response.usage, response.finish
            made = receipt(response, attempt, forwarded=forwarded)
            if route is not None and "learned" in route:
                route = {**route, MALFORMED_CALLS: _malformed_calls(response)}
            row = replace(
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
    if call.payments is not None and (payment := call.payments.fields()) is not None:
        row = replace(row, receipt={**(row.receipt or {}), "payment": payment})
    if layers is not None:
        cache, saved = layers.cache_result
        row = replace(row, pipeline=layers.fields(), cache=cache, reply_saved_nanos=saved)
        if layers.answer is not None:
            row = replace(row, **_USED_NOTHING)
    if call.services.limits.keep_content:
        row = replace(row, **_contents(request, response, layers, attempt))
    return without_key(row, request, call.client_key, is_known=call.key_id is not None, login=call.login_secrets())


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
    content = content_of(request, response, layers)
    if content is None:
        return {}
    request, response = content
    columns = {"request_content": msgspec.json.encode(without_credentials(request.body) or request.messages).decode()}
    if attempt is not None:
        columns["sent_content"] = _sent(attempt)
    return columns if response is None else {**columns, "reply_content": msgspec.json.encode(response.blocks).decode()}


def _sent(attempt: Attempt) -> str:
    """Return the request of the last attempt as JSON, without what may be a secret in its address and its headers."""
    head = {
        "url": shown_url(attempt.url),
        "headers": shown_headers(attempt.headers, attempt.target.provider.row.headers),
    }
    body = attempt.wire.body
    content: Any = msgspec.Raw(body)
    if b'"mcp' in body:
        # It may name an MCP server, with what proves there who asks.
        with suppress(msgspec.DecodeError):
            content = without_credentials(msgspec.json.decode(body))
    try:
        return msgspec.json.encode({**head, "body": content}).decode()
    except UnicodeDecodeError:
        return msgspec.json.encode({**head, "body": body.decode("utf-8", "replace")}).decode()


def content_of(
    request: Request, response: Response | None, layers: CallLayers | None
) -> tuple[Request, Response | None] | None:
    """Return what was said, as its provider got it and said it where a layer masks that, or None if the layer did not come to it."""
    if layers is None or not layers.masks:
        return request, response
    if not layers.masked:
        return None
    return layers.as_sent(request), None if response is None else layers.as_said(response)


def _malformed_calls(response: Response) -> list[str]:
    """Return the names of the tools that a model called with arguments which are no JSON object: what is learned of it."""
    blocks = (block for one in (response, *response.alternatives) for block in one.blocks)
    calls = (ToolInvocation.of(block) for block in blocks if isinstance(block, ToolCallBlock))
    return [call.name for call in calls if call.malformed]


_IDENTITY = frozenset({"request_id", "tenant", "key_id"})
_CONTENT = frozenset({"request_content", "sent_content", "reply_content"})
AnyRequest = TypeVar("AnyRequest", bound=Request | EmbedRequest)


def without_key_as_model(
    request: AnyRequest, client_key: str, *, is_known: bool, login: ClientLogin | None = None
) -> AnyRequest:
    """Return a request whose model holds no key: a mark stands in its place, by which no model is called.

    `is_known`: the key is one of the gateway's. Where no keys are asked for, clients send words like `lm-studio`, which are parts of the
    names of models. Of a `login` for a provider no more is looked for than what looks like a key.
    """
    model = request.model
    own = (client_key,) if client_key and client_key in model and (is_known or looks_like_key(client_key)) else ()
    secrets = (
        *own,
        *(() if login is None else [key for key in login.keys if key in model]),
        *(keys_in(model) if "bardo_" in model else ()),
    )
    if not any(secrets):
        return request
    return msgspec.structs.replace(request, model=secrets_of(secrets).in_text(model))


def without_key(
    row: LogRow, request: Request | EmbedRequest, client_key: str, *, is_known: bool, login: tuple[str, ...] = ()
) -> LogRow:
    """Return the row of a call without the key and the login that its client came with, wherever the client wrote them."""
    is_secret = client_key and (is_known or client_key in login or looks_like_key(client_key))
    own = (client_key, *login) if is_secret else login
    secrets = secrets_of(own) if own else None
    if secrets is None or not secrets.longest:
        return row
    body = request.body_bytes if isinstance(request, Request) else b""
    if not secrets.stand_in(body or msgspec.json.encode(request.extra)) and not secrets.stand_in(
        msgspec.json.encode(request.options)
    ):
        return row
    changed = {}
    for name in LogRow.__struct_fields__:
        value = getattr(row, name)
        if not value or name in _IDENTITY:
            continue
        if name in _CONTENT:
            changed[name] = secrets.in_bytes(value.encode()).decode()
        elif isinstance(value, str | dict | tuple):
            changed[name] = secrets.in_value(msgspec.to_builtins(value))
    return msgspec.convert({**msgspec.to_builtins(row), **changed}, LogRow)

"""Batches, in OpenAI's form and in Anthropic's: made, shown, listed, canceled, and their results read.

Their items are read as the requests that their endpoints take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from bardo.adapters.sealing import Sealer
from bardo.batches.item_requests import EmbedItem, GenerateItem, ItemRequest
from bardo.batches.planning import NoBatchApi
from bardo.batches.records import ENDS, BatchRecord, ItemRecord, LongLine, result_of, split_lines
from bardo.batches.service import BatchService
from bardo.context.sessions import labelled
from bardo.dialects import dialect
from bardo.dialects.batches.clients import (
    BatchFacts,
    BatchLine,
    anthropic_batch,
    anthropic_result,
    decode_message_batch,
    decode_new_batch,
    list_object,
    openai_batch,
    read_line,
)
from bardo.dialects.openai_chat.completions import decode_completion, encode_completion
from bardo.dialects.openai_responses.compaction import PURPOSE, is_triggered, with_summaries
from bardo.surfaces.gateway.answer import Answer
from bardo.surfaces.gateway.callers import caller_of, head_of, header_options, with_headers
from bardo.surfaces.gateway.context import GatewayContext, new_id
from bardo.surfaces.gateway.files import batches_of, limit_of
from bardo.surfaces.gateway.http import Receive, Scope, header, query_of
from bardo.surfaces.gateway.routes import Route
from bardo.values.errors import BardoError, InvalidRequest, NotStored, Overloaded, Unsupported
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival

if TYPE_CHECKING:
    from bardo.batches.keeper import OpenBatches

MESSAGES = "/v1/messages"
_DIALECTS = {"/v1/chat/completions": "openai_chat", "/v1/responses": "openai_responses", MESSAGES: "anthropic_messages"}
_KEPT_HEADERS = (b"x-bardo-", b"anthropic-", b"openai-beta")


def kept_headers(scope: Scope) -> tuple[tuple[str, str], ...]:
    """Return the headers of a request for a batch that hold for its items."""
    found = [(name, value) for name, value in scope["headers"] if name.startswith(_KEPT_HEADERS)]
    return tuple((str(name, "latin-1"), str(value, "latin-1")) for name, value in found)


def read_item(body: bytes, batch: BatchRecord, sealer: Sealer) -> ItemRequest:
    """Read one item of a batch. Raises InvalidRequest, and Unsupported for what a batch cannot do."""
    scope: Scope = {"headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in batch.headers]}
    if batch.endpoint == "/v1/embeddings":
        return _vectors(body, scope)
    if batch.endpoint == "/v1/completions":
        return _completion(body, scope)
    spoken = dialect(_DIALECTS[batch.endpoint])
    opens = partial(sealer.open, purpose=PURPOSE, owner=batch.tenant)
    request = with_summaries(spoken.decode_request(body, Arrival()), Arrival(), opens)
    if is_triggered(request):
        message, hint = "an item of a batch compacts no conversation", "send the trigger in a call of its own"
        raise Unsupported(message, hint=hint, param="input")
    return GenerateItem(request=_whole_only(request, scope), encode=spoken.encode_response)


def _vectors(body: bytes, scope: Scope) -> EmbedItem:
    form = dialect("openai_chat").embeddings
    assert form is not None
    request = form.decode_request(body, Arrival())
    options = labelled(header_options(request.options, scope), head_of(scope).passed_on[1])
    request = msgspec.structs.replace(request, options=options)
    return EmbedItem(request=request, encode=form.encode_reply)


def _completion(body: bytes, scope: Scope) -> GenerateItem:
    asked = decode_completion(body)
    if len(asked.requests) > 1:
        hint = "write an item for each prompt"
        raise Unsupported("an item of a batch has one prompt", hint=hint, param="prompt")
    request = _whole_only(asked.requests[0], scope)
    only = msgspec.structs.replace(asked, requests=(request,))
    encode: Callable[[Response, Request], bytes] = lambda response, _: encode_completion([response], only)  # noqa: E731
    return GenerateItem(request=request, encode=encode)


def _whole_only(request: Request, scope: Scope) -> Request:
    if request.stream:
        raise Unsupported("a batch streams no replies", hint="leave out stream", param="stream")
    return with_headers(request, scope)


_OPENAI, _ANTHROPIC = "openai_chat", "anthropic_messages"
_WINDOW_SECONDS = 24 * 3600.0
_USUAL, _MOST_OPENAI, _MOST_ANTHROPIC = 20, 100, 1000
_CANCELABLE = ("validating", "in_progress", "finalizing")


async def create_batch(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Make a batch of a file that was uploaded. Raises InvalidRequest, NotStored, and NoBatchApi where nobody takes it."""
    service, opened = await batches_of(context)
    asked = decode_new_batch(await context.body(scope, receive))
    tenant, now = caller_of(scope).tenant, context.services.clock()
    file = await asyncio.to_thread(opened.files.find, tenant, asked.input_file_id, now)
    if file is None or file.purpose != "batch":
        raise InvalidRequest(f"File not found: {asked.input_file_id[:100]}", param="input_file_id")
    batch = msgspec.structs.replace(
        _new_batch(context, scope, "batch", asked.endpoint),
        window=asked.window,
        metadata=asked.metadata,
        input_file_id=file.id,
        output_seconds=asked.output_seconds,
    )
    first = await asyncio.to_thread(opened.files.piece, file.id, 0)
    await _check_first(service, opened, batch, _first_body(first or b"", asked.endpoint))
    await _add(service, opened, batch, [])
    await answer.json(openai_batch(batch_fields(batch)))


async def create_message_batch(
    context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer
) -> None:
    """Make a batch of the requests in the body. Raises InvalidRequest, and NoBatchApi where nobody takes it."""
    service, opened = await batches_of(context)
    lines = decode_message_batch(await context.body(scope, receive), most=service.settings.max_items)
    batch = _new_batch(context, scope, "msgbatch", MESSAGES)
    batch = msgspec.structs.replace(batch, total=len(lines))
    await _check_first(service, opened, batch, lines[0].body)
    items = [
        ItemRecord(batch_id=batch.id, place=place, custom_id=line.custom_id, body=line.body)
        for place, line in enumerate(lines)
    ]
    await _add(service, opened, batch, items)
    await answer.json(anthropic_batch(batch_fields(batch), _results_url(scope, batch)))


def _new_batch(context: GatewayContext, scope: Scope, prefix: str, endpoint: str) -> BatchRecord:
    now, caller = context.services.clock(), caller_of(scope)
    return BatchRecord(
        id=new_id(prefix).replace("_bardo_", "_"),
        tenant=caller.tenant,
        account=caller.account,
        dialect=_ANTHROPIC if endpoint == MESSAGES else _OPENAI,
        endpoint=endpoint,
        created_at=now,
        expires_at=now + _WINDOW_SECONDS,
        times={"validating": now},
        rules=context.services.client_keys.rules_to_keep(caller.key),
        headers=kept_headers(scope),
    )


def _first_body(piece: bytes, endpoint: str) -> bytes:
    """Return the body of the first request of a file; empty where it cannot be read, which is reported with all other lines."""
    try:
        number, line = next(split_lines([piece], len(piece)), (0, b""))
    except LongLine:
        return b""
    found = read_line(line, number, endpoint=endpoint, seen_ids=set()) if line else None
    return found.body if isinstance(found, BatchLine) else b""


async def _check_first(service: BatchService, opened: OpenBatches, batch: BatchRecord, body: bytes) -> None:
    """Raise NoBatchApi where nobody takes the first request in a batch. What else is wrong with it stands in its result."""
    try:
        if body:
            await opened.planner.plan(service.read_item(body, batch), batch)
    except NoBatchApi:
        raise
    except BardoError:
        return


async def _add(service: BatchService, opened: OpenBatches, batch: BatchRecord, items: list[ItemRecord]) -> None:
    """Keep a new batch. Raises Overloaded where its tenant has as many open ones as it may have."""
    most = service.settings.max_open_per_tenant
    if await asyncio.to_thread(opened.store.open_batches, batch.tenant) >= most:
        raise Overloaded(f"over {most} open batches", hint="wait for one, or raise max_open_per_tenant under [batches]")
    await asyncio.to_thread(opened.store.add, batch, items)
    opened.keeper.wake()


async def show_batch(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer with how far a batch is. Raises NotStored."""
    _, batch = await _batch_of(context, route, scope)
    await answer.json(openai_batch(batch_fields(batch)))


async def show_message_batch(
    context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer
) -> None:
    """Answer with how far a batch is. Raises NotStored."""
    _, batch = await _batch_of(context, route, scope)
    await answer.json(anthropic_batch(batch_fields(batch), _results_url(scope, batch)))


async def list_batches(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer with a page of the caller's batches, newest first. Raises InvalidRequest and NotStored."""
    _, opened = await batches_of(context)
    asked, tenant = query_of(scope), caller_of(scope).tenant
    limit = limit_of(asked, usual=_USUAL, most=_MOST_OPENAI)
    after = await _find_batch(opened, asked.get("after", ""), tenant, _OPENAI)
    found = await asyncio.to_thread(lambda: opened.store.listed(tenant, _OPENAI, limit=limit, after=after))
    objects = [openai_batch(batch_fields(one)) for one in found[:limit]]
    await answer.json(list_object(objects, more=len(found) > limit))


async def list_message_batches(
    context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer
) -> None:
    """Answer with a page of the caller's batches, newest first. Raises InvalidRequest and NotStored."""
    _, opened = await batches_of(context)
    asked, tenant = query_of(scope), caller_of(scope).tenant
    limit = limit_of(asked, usual=_USUAL, most=_MOST_ANTHROPIC)
    if asked.get("after_id") and asked.get("before_id"):
        raise InvalidRequest("give after_id or before_id, not both", param="before_id")
    after = await _find_batch(opened, asked.get("after_id", ""), tenant, _ANTHROPIC)
    before = await _find_batch(opened, asked.get("before_id", ""), tenant, _ANTHROPIC)
    listed = await asyncio.to_thread(
        lambda: opened.store.listed(tenant, _ANTHROPIC, limit=limit, after=after, before=before)
    )
    found = listed[:limit]
    found = found[::-1] if before is not None else found
    objects = [anthropic_batch(batch_fields(one), _results_url(scope, one)) for one in found]
    ends = {"first_id": found[0].id, "last_id": found[-1].id} if found else {"first_id": None, "last_id": None}
    await answer.json({"data": objects, "has_more": len(listed) > limit, **ends})


async def cancel_batch(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """End a batch early. Raises NotStored, and InvalidRequest where it has ended."""
    batch = await _cancel(context, route, scope)
    await answer.json(openai_batch(batch_fields(batch)))


async def cancel_message_batch(
    context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer
) -> None:
    """End a batch early. Raises NotStored, and InvalidRequest where it has ended."""
    batch = await _cancel(context, route, scope)
    await answer.json(anthropic_batch(batch_fields(batch), _results_url(scope, batch)))


async def _cancel(context: GatewayContext, route: Route, scope: Scope) -> BatchRecord:
    opened, batch = await _batch_of(context, route, scope)
    now = context.services.clock()
    if batch.status == "cancelling" or (batch.over and batch.dialect == _ANTHROPIC):
        return batch
    if batch.over:
        raise InvalidRequest(f"Cannot cancel a batch with status '{batch.status}'.")

    def canceled(one: BatchRecord) -> BatchRecord:
        return one.came_to("cancelling", now) if one.status in _CANCELABLE else one

    changed = await asyncio.to_thread(lambda: opened.store.change(batch.id, canceled, due_at=0.0))
    opened.keeper.wake()
    return changed


async def delete_message_batch(
    context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer
) -> None:
    """Forget a batch that has ended. Raises NotStored, and InvalidRequest for one that has not."""
    opened, batch = await _batch_of(context, route, scope)
    if not batch.over:
        raise InvalidRequest("a batch that has not ended cannot be deleted", hint="cancel it first")
    await asyncio.to_thread(opened.store.remove, batch.id)
    await answer.json({"id": batch.id, "type": "message_batch_deleted"})


async def read_message_batch(
    context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer
) -> None:
    """Send the results of a batch that has ended, a hundred at a time. Raises NotStored."""
    opened, batch = await _batch_of(context, route, scope)
    if not batch.over:
        raise NotStored(f"Batch {batch.id} has no results yet.", hint="wait until its processing_status is ended")
    await answer.start((), "application/x-jsonl")
    after = -1
    read: Callable[[], list[ItemRecord]] = lambda: opened.store.items(batch.id, *ENDS, after=after)  # noqa: E731
    while found := await asyncio.to_thread(read):
        await answer.piece(b"".join(map(_line, found)))
        after = found[-1].place
    await answer.end(b"")


def _line(item: ItemRecord) -> bytes:
    result = result_of(item)
    return anthropic_result(
        item.state, item.custom_id, status=result.status, body=result.body, message=result.message, bardo=result.bardo
    )


async def _batch_of(context: GatewayContext, route: Route, scope: Scope) -> tuple[OpenBatches, BatchRecord]:
    _, opened = await batches_of(context)
    batch = await asyncio.to_thread(opened.store.find, caller_of(scope).tenant, route.name, route.dialect)
    if batch is None:
        raise _no_such_batch(route.name)
    return opened, batch


async def _find_batch(opened: OpenBatches, name: str, tenant: str, dialect: str) -> BatchRecord | None:
    """Return the batch that a page begins at, or None if none is named. Raises NotStored."""
    if not name:
        return None
    batch = await asyncio.to_thread(opened.store.find, tenant, name, dialect)
    if batch is None:
        raise _no_such_batch(name)
    return batch


def batch_fields(batch: BatchRecord) -> BatchFacts:
    """Return what objects tell of a batch."""
    same = {name: getattr(batch, name) for name in BatchFacts.__struct_fields__ if name != "bardo"}
    known = batch.cost_known and batch.over
    told = {
        "cost_usd": batch.cost_nanos / 1e9 if known else None,
        "cost_nanos": batch.cost_nanos if known else None,
        "priced_items": batch.cost_known,
        "items": batch.counts,
    }
    return BatchFacts(**same, bardo=told)


def _results_url(scope: Scope, batch: BatchRecord) -> str:
    """Return where results are read: at the host that the client asked."""
    host = header(scope, b"host") or "localhost"
    forwarded = header(scope, b"x-forwarded-proto")
    scheme = forwarded if forwarded in ("http", "https") else scope.get("scheme", "http")
    return f"{scheme}://{host}/v1/messages/batches/{batch.id}/results"


def _no_such_batch(name: str) -> NotStored:
    return NotStored(f"No batch found with id '{name[:100]}'.", hint="it was deleted, has expired, or is another key's")

"""Send the items of a batch one by one, where their provider has no batch API and the operator allows it: behind every other call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from bardo.batches.batch_store import BatchStore
from bardo.batches.item_requests import EmbedItem, GenerateItem, ItemReader, settled_request, with_rules
from bardo.batches.records import BatchRecord, ItemRecord, ItemResult
from bardo.batches.results import ResultReader, session_of_batch
from bardo.call.open import open_call
from bardo.call.services import Services
from bardo.call.unary import embed, embed_receipt
from bardo.context.sessions import session_name
from bardo.replies.forwarding import named_as_asked
from bardo.replies.receipt import CallFacts, extension
from bardo.values.errors import BardoError, RateLimited

_TRIES = 3
_FIRST_PAUSE_SECONDS = 1.0
# How long an item lets interactive calls go first, and how often it looks.
_PATIENCE_SECONDS = 30.0
_LOOK_SECONDS = 0.05


class SingleCalls:
    """Sends items as calls of their own, `concurrency` at once. `is_busy` tells whether clients wait for answers now."""

    def __init__(
        self,
        services: Services,
        store: BatchStore,
        results: ResultReader,
        *,
        concurrency: int,
        is_busy: Callable[[], bool],
    ) -> None:
        self._services = services
        self._store = store
        self._results = results
        self._turns = asyncio.Semaphore(concurrency)
        self._concurrency = concurrency
        self._is_busy = is_busy

    async def run_some(self, batch: BatchRecord, read_item: ItemReader) -> bool:
        """Send the next items of a batch, and return whether there may be more."""
        items = await asyncio.to_thread(self._store.items, batch.id, "local", "running", limit=4 * self._concurrency)
        async with asyncio.TaskGroup() as group:
            for item in items:
                group.create_task(self._run(item, batch, read_item))
        return bool(items)

    async def _run(self, item: ItemRecord, batch: BatchRecord, read_item: ItemReader) -> None:
        async with self._turns:
            await self._let_others_go_first()
            begun = msgspec.structs.replace(item, state="running")
            if not await asyncio.to_thread(self._store.begin_local, begun):
                return
            ended = await self._ended(item, batch, read_item)
            await asyncio.to_thread(self._store.settle, [ended])

    async def _let_others_go_first(self) -> None:
        waited = 0.0
        while waited < _PATIENCE_SECONDS and self._is_busy():
            await asyncio.sleep(_LOOK_SECONDS)
            waited += _LOOK_SECONDS

    async def _ended(self, item: ItemRecord, batch: BatchRecord, read_item: ItemReader) -> ItemRecord:
        """Return an item with its result. What may pass is tried again a few times."""
        for left in reversed(range(_TRIES)):
            try:
                asked = read_item(item.body, batch)
                result = (
                    await self._vectors(asked, batch)
                    if isinstance(asked, EmbedItem)
                    else await self._reply(asked, batch)
                )
            except RateLimited as problem:
                if not left:
                    return msgspec.structs.replace(item, state="local")
                await asyncio.sleep(min(_PATIENCE_SECONDS, problem.retry_after))
            except BardoError as problem:
                if not left or not problem.retryable:
                    failed = self._results.failed(item, batch, problem)
                    # The call has its row already where one was made.
                    return msgspec.structs.replace(failed, log_row=None)
                await asyncio.sleep(_FIRST_PAUSE_SECONDS * 2 ** (_TRIES - 1 - left))
            else:
                return msgspec.structs.replace(
                    item, state="succeeded", result=msgspec.json.encode(result, enc_hook=repr), log_row=None
                )
        raise AssertionError("the last try returns")

    async def _reply(self, asked: GenerateItem, batch: BatchRecord) -> ItemResult:
        shown, request = settled_request(asked.request, self._services.directory, batch)
        own = session_name(request) or session_of_batch(batch)
        request = msgspec.structs.replace(request, options=msgspec.structs.replace(request.options, session=own))
        live = await open_call(self._services, request, may_forward=False, tenant=batch.tenant, account=batch.account)
        try:
            await live.read()
        finally:
            await live.close()
        response = live.response()
        call = CallFacts(live.request_id, live.attempt, live.cost_of_request, ())
        told = extension(shown, response, call, forwarded=False)
        usage = response.usage
        counts = {
            "input_tokens": usage.input_tokens,
            "cached_tokens": usage.cached_input_tokens,
            "output_tokens": usage.output_tokens,
            "reasoning_tokens": response.reasoning.reasoning_tokens,
        }
        return ItemResult(
            request_id=live.request_id,
            status=200,
            body=msgspec.Raw(asked.encode(named_as_asked(response, shown.model), shown)),
            bardo=told,
            usage={name: count for name, count in counts.items() if count is not None},
            cost_nanos=live.cost_of_request.nanos,
            model=live.attempt.target.model,
        )

    async def _vectors(self, asked: EmbedItem, batch: BatchRecord) -> ItemResult:
        wanted = with_rules(asked.request, batch)
        session = wanted.options.session or session_of_batch(batch)
        wanted = msgspec.structs.replace(wanted, options=msgspec.structs.replace(wanted.options, session=session))
        made = await embed(self._services, wanted, tenant=batch.tenant, account=batch.account)
        target, result = made.attempt.target, made.result
        told = {
            "request_id": made.request_id,
            "provider": target.provider.id,
            "model": target.model,
            "cost_usd": result.usage.cost_usd,
            "degraded": msgspec.to_builtins(result.degraded),
            "receipt": embed_receipt(asked.request, made.attempt, result, made.layers),
        }
        body = asked.encode(result, asked.request)
        return ItemResult(
            request_id=made.request_id, status=200, body=msgspec.Raw(body), bardo=told, model=target.model
        )

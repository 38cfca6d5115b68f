"""Read the result of an item as the reply to a single call: the same decoding, the same receipt, the same row in the log.

A call is opened over a transport that gives the stored body instead of asking a provider.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import msgspec
from msgspec import structs

from bardo.accounting.cost import BATCH, Price, Rates, Schedule, cost_of
from bardo.adapters.net.calls import Call, Deadlines
from bardo.adapters.net.keys import Keyring
from bardo.adapters.stores.log.row import CallOutcome, LogRow, PendingCall
from bardo.batches.item_requests import EmbedItem, GenerateItem, ItemRequest, knowledge_of, settled_request
from bardo.batches.records import BatchRecord, ItemRecord, ItemResult, ItemState, JobRecord
from bardo.call.call import new_request_id
from bardo.call.reply import LiveReply
from bardo.call.services import Services
from bardo.call.stored import StoredReply
from bardo.catalog.batch_rows import batch_row
from bardo.dialects import dialect
from bardo.dialects.batches.base import JobReply
from bardo.planning.planner import plan
from bardo.planning.profiles import apply_profile
from bardo.planning.route import Provider, Target, endpoints_of
from bardo.planning.unary import UnaryAttempt, WholeReply, embed_attempt, with_estimated_usage
from bardo.replies.forwarding import named_as_asked
from bardo.replies.receipt import CallFacts, extension
from bardo.services.facts.health import HealthKeeper
from bardo.services.facts.price_book import PriceBook
from bardo.services.pipeline.call_layers import CallLayers, PendingLayers
from bardo.values.degradation import distinct
from bardo.values.errors import BardoError, InternalError, ProviderError
from bardo.values.operations import Embeddings
from bardo.values.request import Request
from bardo.values.secrets import Secrets
from bardo.values.usage import CallCost, Usage

BATCH_TAG = "batch"
"""The tag in the log of every call that was an item of a batch."""
_EARLY: dict[str, tuple[ItemState, str]] = {
    "expired": ("expired", "batch_expired"),
    "canceled": ("canceled", "batch_cancelled"),
    "failed": ("errored", "batch_request_failed"),
}


class ResultReader:
    """Makes of each item what its client gets, and its row in the log, which are stored together."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def read(
        self, item: ItemRecord, asked: ItemRequest, batch: BatchRecord, job: JobRecord, reply: JobReply
    ) -> ItemRecord:
        """Return an item with what its provider's reply is for the client."""
        if reply.outcome != "replied":
            state, code = _EARLY[reply.outcome]
            return self.without_reply(item, batch, state, code, reply.message, job=job)
        try:
            if isinstance(asked, EmbedItem):
                return self._vectors(item, asked, batch, job, reply)
            return await self._reply(item, asked, batch, job, reply)
        except BardoError as problem:
            return self.failed(item, batch, problem, job=job)

    def failed(
        self, item: ItemRecord, batch: BatchRecord, problem: BardoError, *, job: JobRecord | None = None
    ) -> ItemRecord:
        """Return an item that ended with an error, which its client reads in its own dialect."""
        self._services.clean(problem)
        problem.request_id = problem.request_id or new_request_id(self._services.clock())
        result = self._result_of(problem, batch)
        row = self._row(batch, "error", problem.request_id, job)
        row = msgspec.structs.replace(
            row, status=problem.status, error_class=type(problem).__name__, error_message=problem.message
        )
        return _ended(item, "errored", result, row)

    def without_reply(
        self,
        item: ItemRecord,
        batch: BatchRecord,
        state: ItemState,
        code: str,
        message: str,
        *,
        job: JobRecord | None = None,
    ) -> ItemRecord:
        """Return an item without an answer: expired, canceled, or lost."""
        request_id = new_request_id(self._services.clock())
        told = ProviderError(message)
        self._services.clean(told)
        message = told.message
        result = ItemResult(request_id=request_id, code=code, message=message, bardo={"request_id": request_id})
        row = self._row(batch, "cancelled" if state == "canceled" else "error", request_id, job)
        return _ended(item, state, result, msgspec.structs.replace(row, error_class=code, error_message=message))

    def _target(self, job: JobRecord) -> Target:
        """Return the endpoint that a job was planned for. Raises InternalError where its provider is no longer configured."""
        for provider in self._services.directory.providers:
            if provider.id == job.provider:
                target = Target(provider=provider, model=job.model)
                same = (place for place in endpoints_of(target) if place.provider.row.dialect == job.dialect)
                return next(same, target)
        raise InternalError(f"the provider {job.provider} is no longer configured", hint="configure it again")

    async def _reply(
        self, item: ItemRecord, asked: GenerateItem, batch: BatchRecord, job: JobRecord, reply: JobReply
    ) -> ItemRecord:
        target = self._target(job)
        shown, request = settled_request(asked.request, self._services.directory, batch)
        layers = self._layers(item, request, batch)
        request = request if layers is None else layers.as_sent(request)
        journal, stored = StoredJournal(), StoredReply(reply.status, reply.body)
        services = stored_services(self._services, stored, journal, started_at=job.submitted_at)
        live = LiveReply(services, shown, tenant=batch.tenant, layers=layers)
        knowledge = knowledge_of(self._services, target)
        attempt = plan(apply_profile(request), target, knowledge=knowledge, may_forward=False)
        try:
            await live.begin(attempt, knowledge)
            await live.read()
        except BardoError as problem:
            live.call.clean(problem)
            problem.request_id = live.request_id
            live.log("error", problem)
            assert journal.row is not None
            return _ended(item, "errored", self._result_of(problem, batch), self._noted(journal.row, batch, job))
        finally:
            await live.close()
        response = live.response()
        assert journal.row is not None
        row = self._noted(journal.row, batch, job)
        call = CallFacts(live.request_id, live.attempt, live.cost, row.attempt_records)
        told = extension(shown, response, call, forwarded=False)
        counts = {
            "input_tokens": row.input_tokens,
            "cached_tokens": row.cached_input_tokens,
            "output_tokens": row.output_tokens,
            "reasoning_tokens": row.reasoning_tokens,
        }
        result = ItemResult(
            request_id=live.request_id,
            status=200,
            body=msgspec.Raw(asked.encode(named_as_asked(response, shown.model), live.request)),
            bardo={**told, "receipt": _with_layers(row)},
            usage=_known(counts),
            cost_nanos=row.cost_nanos,
            model=job.model,
        )
        return _ended(item, "succeeded", result, row)

    def _layers(self, item: ItemRecord, request: Request, batch: BatchRecord) -> CallLayers | None:
        """Return the layers that worked on an item before it was sent, or None if there were none."""
        pipeline, layers = self._services.pipeline, kept_layers(item)
        if layers is None:
            return None
        if pipeline is None:
            raise InternalError("an item was masked, and nothing is here that puts its values back")
        return pipeline.of_kept(layers, request, batch.tenant)

    def _vectors(
        self, item: ItemRecord, asked: EmbedItem, batch: BatchRecord, job: JobRecord, reply: JobReply
    ) -> ItemRecord:
        attempt = embed_attempt(asked.request, self._target(job))
        if reply.status >= 300:
            raise dialect(attempt.dialect).decode_error(reply.status, reply.body, {}, job.provider)
        made = with_estimated_usage(attempt.result([WholeReply(reply.body, {})]), asked.request)
        request_id = new_request_id(self._services.clock())
        layers = kept_layers(item)
        if layers is not None:
            made = msgspec.structs.replace(made, degraded=distinct((*layers.degraded, *made.degraded)))
        row = self._row_of_vectors(request_id, asked, batch, job, made, attempt)
        if layers is not None:
            row = msgspec.structs.replace(row, pipeline=layers.fields())
        row = self._noted(row, batch, job)
        told = {
            "request_id": request_id,
            "provider": job.provider,
            "model": job.model,
            "cost_usd": row.cost_usd,
            "degraded": row.degraded,
            "receipt": _with_layers(row),
        }
        result = ItemResult(
            request_id=request_id,
            status=200,
            body=msgspec.Raw(asked.encode(made, asked.request)),
            bardo=told,
            usage=_known({"input_tokens": made.usage.input_tokens}),
            cost_nanos=row.cost_nanos,
            model=job.model,
        )
        return _ended(item, "succeeded", result, row)

    def _row_of_vectors(
        self,
        request_id: str,
        asked: EmbedItem,
        batch: BatchRecord,
        job: JobRecord,
        made: Embeddings,
        attempt: UnaryAttempt[Embeddings],
    ) -> LogRow:
        row = self._row(batch, "ok", request_id, job)
        return msgspec.structs.replace(
            row,
            operation="embed",
            status=200,
            model_asked=asked.request.model,
            input_tokens=made.usage.input_tokens,
            usage_raw=made.usage.raw,
            degraded=tuple(msgspec.to_builtins((*attempt.degraded, *made.degraded))),
        )

    def _result_of(self, problem: BardoError, batch: BatchRecord) -> ItemResult:
        body = dialect(batch.dialect).encode_error(problem)
        return ItemResult(
            request_id=problem.request_id,
            status=problem.status,
            body=msgspec.Raw(body),
            bardo={"request_id": problem.request_id},
        )

    def _row(self, batch: BatchRecord, outcome: CallOutcome, request_id: str, job: JobRecord | None) -> LogRow:
        """Return the row of a call, as far as its batch and its job tell of it."""
        now = self._services.clock()
        sent = job.submitted_at if job is not None and job.submitted_at else now
        where: dict[str, Any] = {}
        if job is not None:
            where = {"provider": job.provider, "provider_dialect": job.dialect, "model": job.model}
        return LogRow(
            request_id=request_id,
            started_at=sent,
            seconds=now - sent,
            client_dialect=batch.dialect,
            outcome=outcome,
            tenant=batch.tenant,
            key_id=batch.key_id,
            tags=tags_of(batch),
            session=session_of_batch(batch),
            **where,
        )

    def _noted(self, row: LogRow, batch: BatchRecord, job: JobRecord) -> LogRow:
        """Return the row of a stored reply with what only the batch knows."""
        began = job.submitted_at
        return msgspec.structs.replace(
            row,
            started_at=began,
            seconds=max(0.0, self._services.clock() - began),
            first_byte_seconds=None,
            key_id=batch.key_id,
            tags=tags_of(batch),
            session=row.session or session_of_batch(batch),
            receipt={**(row.receipt or {}), "batch": {"id": batch.id, "job": job.upstream_id}},
        )


def session_of_batch(batch: BatchRecord) -> str:
    """Return the session of the calls of a batch whose own bodies name none: a batch is one by itself."""
    return f"batch {batch.id}"


def tags_of(batch: BatchRecord) -> tuple[str, ...]:
    """Return the tags of the calls of a batch in the log."""
    return (*(() if batch.account is None else batch.account.tags), BATCH_TAG)


def _ended(item: ItemRecord, state: ItemState, result: ItemResult, row: LogRow) -> ItemRecord:
    encoded = msgspec.json.encode(result, enc_hook=repr)
    return msgspec.structs.replace(
        item, state=state, wire=None, layers=None, result=encoded, log_row=msgspec.json.encode(row, enc_hook=repr)
    )


def kept_layers(item: ItemRecord) -> PendingLayers | None:
    """Return what was kept of the layers that worked on an item, or None if there were none."""
    return None if item.layers is None else msgspec.msgpack.decode(item.layers, type=PendingLayers)


def _with_layers(row: LogRow) -> dict[str, Any]:
    """Return the receipt of a call with those of its layers."""
    told = row.receipt or {}
    return told if row.pipeline is None else {**told, "pipeline": row.pipeline}


def _known(counts: dict[str, int | None]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count is not None}


class StoredTransport:
    """Gives one stored reply to whatever is sent."""

    def __init__(self, reply: StoredReply) -> None:
        self._reply: StoredReply | None = reply

    async def send(self, call: Call, deadlines: Deadlines) -> StoredReply:
        """Return the reply. Raises InternalError the second time: a batch asks each model once."""
        reply, self._reply = self._reply, None
        if reply is None:
            raise InternalError("an item of a batch was sent again")
        return reply

    async def close(self) -> None:
        """Do nothing: no connection is held."""


class KeylessKeyring(Keyring):
    """Signs nothing: a stored reply needs no key, which may be gone by now. It knows the secrets of `services` all the same."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services

    async def prepare(self, provider: Provider) -> None:
        """Make nothing."""

    def sign(
        self,
        call: Call,
        provider: Provider,
        *,
        clock: Callable[[], float],
        key: str = "",
        login: Mapping[str, str] | None = None,
    ) -> Call:
        """Return the call as it is."""
        return call

    def secrets(self, providers: Iterable[Provider] = (), further: Iterable[str] = ()) -> Secrets:
        """Return every secret of this process, and `further` ones."""
        return self._services.secrets(tuple(further))

    def secrets_of(self, provider: Provider) -> Secrets:
        """Return the secrets of a provider."""
        return self._services.keyring.secrets_of(provider)


class StoredJournal:
    """Keeps the row of one call. Its beginning is in the state database since before its job was sent."""

    row: LogRow | None = None

    def begin(self, call: PendingCall, target: Target) -> None:
        """Note nothing."""

    def write(self, row: LogRow) -> None:
        """Keep the row, which is stored with the item and then written."""
        self.row = row


def stored_services(services: Services, reply: StoredReply, journal: StoredJournal, *, started_at: float) -> Services:
    """Return the services with which one stored reply is read: no provider is asked, and the call's row is kept in `journal`."""
    return replace(
        services,
        transport=StoredTransport(reply),
        keyring=KeylessKeyring(services),
        # A reply of hours ago says nothing of how its provider is now.
        health=HealthKeeper(),
        payments=None,
        telemetry=None,
        searcher=None,
        prices=BatchPrices(services.prices),
        # The log keeps no content of batches, and so the memory keeps no thinking of them.
        episodes=None,
        clock=lambda: started_at,
        journal=journal,
    )


class BatchPrices(PriceBook):
    """The prices of a book, for items of batches."""

    def __init__(self, book: PriceBook) -> None:
        super().__init__()
        self._book = book

    def price(self, provider: Provider, model: str, now: float) -> Price | None:
        """Return what a model costs, with its price in batches, or None if that is not known."""
        price = self._book.price(provider, model, now)
        row = batch_row(provider.row)
        if price is None or row is None or BATCH in price.variants:
            return price
        part = Fraction(str(row.price_factor))
        tiers = tuple([structs.replace(tier, rates=_part_of(tier.rates, part)) for tier in price.schedule.tiers])
        return structs.replace(
            price, variants={**price.variants, BATCH: Schedule(rates=_part_of(price.schedule.rates, part), tiers=tiers)}
        )

    def cost(self, provider: Provider, model: str, usage: Usage, now: float, *, batch: bool = True) -> CallCost:
        """Return what an item cost by what it used."""
        return cost_of(self.price(provider, model, now), usage, batch=True)


def _part_of(rates: Rates, part: Fraction) -> Rates:
    return Rates(**{name: None if rate is None else round(rate * part) for name, rate in structs.asdict(rates).items()})

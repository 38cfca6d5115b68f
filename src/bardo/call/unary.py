"""Calls that are answered in one piece: vectors of texts, counts of tokens, and conversations that a provider compacts."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from bardo.adapters.config.accounts import Account
from bardo.adapters.stores.log.row import CallOutcome
from bardo.call.call import Call
from bardo.call.client_login import ClientLogin, with_logins
from bardo.call.open import Recovery
from bardo.call.row import row_of, without_key, without_key_as_model
from bardo.call.services import Services
from bardo.call.upstream import send_wire
from bardo.planning.model_names import with_alias_fields
from bardo.planning.route import Target
from bardo.planning.token_counting import count_attempt
from bardo.planning.unary import (
    Course,
    Try,
    UnaryAttempt,
    WholeReply,
    compact_attempt,
    embed_attempt,
    may_forward,
    unary_attempts,
    with_estimated_usage,
)
from bardo.planning.workloads import not_honoured
from bardo.services.facts.directory import Placement
from bardo.services.facts.health import AttemptWatch
from bardo.services.pipeline.sent_texts import run_on_inputs, run_on_request
from bardo.values.attempts import AttemptCause, AttemptRecord
from bardo.values.degradation import Degradation, distinct
from bardo.values.errors import BardoError, InternalError, InvalidRequest, RequiredFieldRefused, shutdown_of
from bardo.values.operations import CompactedConversation, Embeddings, EmbedRequest, TokenCount
from bardo.values.request import Operation, Request
from bardo.values.usage import UNKNOWN_COST, CallCost
from bardo.values.wire import WireRequest

Result = TypeVar("Result", bound=Embeddings | TokenCount | CompactedConversation)
Sender = Callable[[UnaryAttempt[Result], tuple[Degradation, ...]], Awaitable[tuple[Result, list[WholeReply]]]]
"""Sends one attempt, with what was lost before it, and returns its result. Raises BardoError."""


class UnaryLoop(Generic[Result]):
    """The attempts of one call. `attempt` makes one; after one that failed, `turn` waits for the next, or raises."""

    def __init__(self, course: Course[Result], recovery: Recovery, send: Sender[Result]) -> None:
        self._course = course
        self._recovery = recovery
        self._send = send
        self._try: Try[Result] = next(course)

    async def attempt(self) -> tuple[Result, list[WholeReply]]:
        """Send the attempt that is due, and return its result within the time that is left. Raises BardoError."""
        attempt, lost = self._try
        left = self._recovery.time_left
        if left == math.inf:
            return await self._send(attempt, lost)
        try:
            async with asyncio.timeout(max(0.0, left)):
                return await self._send(attempt, lost)
        except TimeoutError:
            raise self._recovery.out_of_time(attempt.target.provider.id) from None

    async def turn(self, problem: BardoError, seconds: float) -> None:
        """Choose what follows an attempt of so many seconds that failed, and wait until it is due. Raises BardoError where nothing is."""
        recovery = self._recovery
        recovery.note(problem)
        if await recovery.rest(problem, seconds, alone=False):
            return
        following = self._following(problem)
        if following is not None:
            recovery.turn_to_next()
            self._try = following
        elif not await recovery.rest(problem, seconds, alone=True):
            raise recovery.error_to_tell

    def _following(self, problem: BardoError) -> Try[Result] | None:
        """Return the next attempt after one that failed, or None if no target is left that can express the request, or no time."""
        if not self._recovery.has_time:
            return None
        try:
            return self._course.send(problem)
        except StopIteration:
            return None
        except BardoError as problem:
            if isinstance(problem, RequiredFieldRefused):
                self._recovery.note(problem)
            return None


class UnaryCall(Generic[Result]):
    """One call while it runs. It is in the log once, however it ends."""

    _attempt: UnaryAttempt[Result] | None = None

    def __init__(
        self,
        services: Services,
        request: EmbedRequest | Request,
        operation: Operation,
        client_key: str,
        tenant: str,
        account: Account | None,
        login: ClientLogin | None = None,
    ) -> None:
        if client_key or login is not None:
            request = without_key_as_model(request, client_key, is_known=account is not None, login=login)
        self.call = Call(
            services, request, tenant=tenant, account=account, client_key=client_key, operation=operation, login=login
        )
        self.services = services
        self.request = request
        self._account = account
        if services.telemetry is not None:
            self.request = services.telemetry.begin(self.call.request_id, request)

    @property
    def attempt(self) -> UnaryAttempt[Result]:
        """The attempt that was answered."""
        assert self._attempt is not None
        return self._attempt

    async def run(self, course_of: Callable[[Any, list[Target]], Course[Result]]) -> tuple[Result, list[WholeReply]]:
        """Try one target after the other, and return what the first that answers says. Raises BardoError where none does.

        `course_of` gets the request as it may be sent.
        """
        try:
            if self.services.provider_ids is not None:
                await self.services.provider_ids.check(self.request, self.call.tenant)
            placement, providers = await self._find_targets(), self.services.directory.providers
            placement, logins = with_logins(placement, self.call.login, providers, self.request.dialect)
            self.call.use_logins(logins)
            placement = await self._admitted(placement)
            placement = await self.services.routing.servers.at_servers(placement, self.request, self.call.tenant)
            lost = await self._run_layers(placement.targets)
            return await self._follow(course_of(self.request, list(placement.targets)), (*placement.skipped, *lost))
        except BardoError as problem:
            try:
                final = await self.call.final(problem, self.request.model)
            except asyncio.CancelledError as cancelled:
                # Its client has left while models near to the one that was refused were looked for.
                self._log_cancelled(cancelled)
                raise
            self.log("error", error=final)
            raise final from final.__cause__
        except asyncio.CancelledError as cancelled:
            self._log_cancelled(cancelled)
            raise
        except Exception as mistake:
            self.log("error", error=InternalError(f"a mistake in bardo: {type(mistake).__name__}"))
            raise

    def _log_cancelled(self, cancelled: asyncio.CancelledError) -> None:
        """Write a call that was cancelled into the log: as failed where the server stopped, not its client."""
        stopped = shutdown_of(cancelled)
        self.log("cancelled" if stopped is None else "error", error=stopped)

    async def _run_layers(self, targets: tuple[Target, ...]) -> tuple[Degradation, ...]:
        """Have the layers work on the request that work on whatever is sent, and return what was lost. Raises BardoError."""
        pipeline = self.services.pipeline
        if pipeline is None:
            return ()
        layers = await pipeline.of_operation(self.request, tenant=self.call.tenant, client_key=self.call.client_key)
        if layers is None:
            return ()
        self.call.use_layers(layers)
        if isinstance(self.request, Request):
            self.request = await run_on_request(pipeline, layers, self.request, targets)
            return self.request.degraded
        self.request, lost = await run_on_inputs(pipeline, layers, self.request, targets)
        return lost

    async def _admitted(self, placement: Placement) -> Placement:
        """Return whom the client's key lets be asked. Raises Forbidden, RateLimited and OverBudget."""
        gate = self.services.gate
        if gate is None or self._account is None:
            return placement
        free = self.call.operation == "count_tokens"
        call = self.call
        return await gate.admit(
            self._account, self.request, placement, call.request_id, session=call.labels.session, free=free
        )

    async def _find_targets(self) -> Placement:
        """Return who is asked: for vectors, of a model; for a count of tokens, as for a reply. Raises UnknownModel and InvalidRequest."""
        self.request = with_alias_fields(self.request, self.services.directory.meaning_of(self.request.model))
        if isinstance(self.request, Request):
            return (await self.services.routing.find(self.request))[1]
        if self.request.options.intent is not None or self.services.directory.workload(self.request.model) is not None:
            message = "workloads and intents find models for replies, and none for vectors"
            raise InvalidRequest(message, hint="name the model that makes the vectors", param="model")
        lost = not_honoured(self.request.options.vitality, self.services.directory.workloads)
        placement = await self.services.routing.placement(self.request.model)
        return msgspec.structs.replace(placement, skipped=(*placement.skipped, *lost)) if lost else placement

    async def _follow(
        self, course: Course[Result], skipped: tuple[Degradation, ...]
    ) -> tuple[Result, list[WholeReply]]:
        deadline = self.services.failover.deadline(self.request.options.deadline_seconds)
        recovery = Recovery(self.services, self.call.attempts.age, deadline)
        loop = UnaryLoop(course, recovery, lambda attempt, lost: self._try(attempt, (*skipped, *lost)))
        while True:
            sent_at = self.call.attempts.age()
            try:
                return await loop.attempt()
            except BardoError as problem:
                self.call.clean(problem)
                await loop.turn(problem, self.call.attempts.age() - sent_at)

    async def _try(
        self, attempt: UnaryAttempt[Result], lost: tuple[Degradation, ...]
    ) -> tuple[Result, list[WholeReply]]:
        """Send one attempt, and return its result with all that was degraded. Raises BardoError."""
        self._attempt = attempt
        if attempt.wires:
            self._note_sent(attempt.target, self._cause(attempt.target))
        replies: list[WholeReply] = []
        try:
            for wire in attempt.wires:
                replies.append(await self._send(wire, attempt.target))
            result = attempt.result(replies)
        except BardoError as problem:
            self.call.attempts.end(error=problem, may_have_cost=self._bills() and (bool(replies) or None))
            raise
        if (details := self.call.details) is not None:
            details.counted(result)
        usage = None if isinstance(result, TokenCount) else result.usage
        self.call.attempts.end(usage=usage, may_have_cost=self._bills())
        degraded = distinct((*lost, *result.degraded))
        return msgspec.structs.replace(result, degraded=degraded), replies

    def _cause(self, target: Target) -> AttemptCause:
        """Return why another attempt is made at a target: it is the first, or the same provider's in another form, or another provider."""
        before = self.call.attempts.last_target
        if before is None:
            return "first"
        return "retry" if before.provider.place == target.provider.place else "failover"

    def _bills(self) -> bool:
        """Whether such calls cost money: no provider is known to bill counts of tokens (price pages, 2026-11)."""
        return self.call.operation != "count_tokens"

    async def _send(self, wire: WireRequest, target: Target) -> WholeReply:
        while True:
            try:
                return await self._send_once(wire, target)
            except BardoError as problem:
                if not self.call.may_change_key(target, self.call.key_label, problem):
                    raise
                self.call.attempts.end(error=problem)
                self._note_sent(target, "retry", problem.message)

    async def _send_once(self, wire: WireRequest, target: Target) -> WholeReply:
        key, login = self.call.key_label, self.call.logins.get(target.provider.id)
        with AttemptWatch(
            self.services.health,
            self.services.watch,
            target,
            key,
            of_model=self.call.operation != "count_tokens",
            own_login=login is not None,
        ) as health:
            reply = await send_wire(self.services, target.provider, wire, key, self.call.payments, login)
            try:
                self.call.attempts.count_resent(reply.resent)
                whole = WholeReply(await reply.read(self.services.limits.max_reply_bytes), reply.headers)
            finally:
                await reply.close()
            health.ended(None)
            return whole

    def _note_sent(self, target: Target, cause: AttemptCause, why: str = "") -> None:
        """Note an attempt before it is sent, with the key that it uses."""
        self.call.note_sent(target, cause=cause, why=why, key=self.call.choose_key(target), subsystem=self._subsystem())

    def _subsystem(self) -> str | None:
        intent = self.request.options.intent
        return None if intent is None else self.call.without_key(intent.subsystem) or None

    def log(
        self,
        outcome: CallOutcome,
        *,
        error: BardoError | None = None,
        fields: Mapping[str, Any] | None = None,
        degraded: tuple[Degradation, ...] = (),
    ) -> None:
        """Write the call into the log, once."""
        call, request, attempt = self.call, self.request, self._attempt
        if call.logged:
            return
        call.attempts.end(error=error, whole=False, may_have_cost=None if self._bills() else False)
        row = row_of(call, request, outcome=outcome, subsystem=self._subsystem(), error=error, answered=outcome == "ok")
        if attempt is not None:
            target = attempt.target
            provider = target.provider
            row = replace(row, provider=provider.id, provider_dialect=provider.row.dialect, model=target.model)
        row = replace(
            row,
            degraded=tuple(msgspec.to_builtins(degraded)),
            pipeline=None if call.layers is None else call.layers.fields(),
            **(fields or {}),
            **self._content(),
        )
        known = call.key_id is not None
        row = without_key(row, request, call.client_key, is_known=known, login=call.login_secrets())
        call.write(row)

    def _content(self) -> dict[str, Any]:
        layers = self.call.layers
        if not self.services.limits.keep_content or (layers is not None and layers.masks and not layers.masked):
            return {}
        asked = self.request.inputs if isinstance(self.request, EmbedRequest) else self.request.messages
        return {"request_content": msgspec.json.encode(self.request.body or asked).decode()}


class UnaryAnswer(msgspec.Struct, Generic[Result], frozen=True):
    """What became of a call: its id, the attempt that was answered, and its result.

    `forwarded` is its body, where that may go on, and `layers` the receipts of the layers that worked on it.
    """

    request_id: str
    attempt: UnaryAttempt[Result]
    result: Result
    forwarded: bytes | None = None
    cost: CallCost = UNKNOWN_COST
    attempts: tuple[AttemptRecord, ...] = ()
    layers: dict[str, Any] | None = None


async def embed(
    services: Services,
    request: EmbedRequest,
    *,
    client_key: str = "",
    tenant: str = "",
    account: Account | None = None,
    login: ClientLogin | None = None,
) -> UnaryAnswer[Embeddings]:
    """Return the vectors of a request's inputs. Raises BardoError; the call is in the log then too."""
    call: UnaryCall[Embeddings] = UnaryCall(services, request, "embed", client_key, tenant, account, login)

    def course(asked: EmbedRequest, targets: list[Target]) -> Course[Embeddings]:
        return unary_attempts(targets, lambda target: embed_attempt(asked, target))

    result, replies = await call.run(course)
    forwarded = replies[0].body if may_forward(request, call.attempt, result) else None
    counted = with_estimated_usage(result, request)
    fields = {
        "input_tokens": counted.usage.input_tokens,
        "tokens_approx": counted is not result,
        "usage_raw": result.usage.raw,
        "passed_through": forwarded is not None,
        "receipt": embed_receipt(request, call.attempt, result),
    }
    # A reply that is sent on as it came holds no estimate.
    result = result if forwarded is not None else counted
    call.log("ok", fields=fields, degraded=result.degraded)
    return _answer(call, result, forwarded)


def _answer(call: UnaryCall[Result], result: Result, forwarded: bytes | None = None) -> UnaryAnswer[Result]:
    one = call.call
    layers = None if one.layers is None else one.layers.fields()
    return UnaryAnswer(one.request_id, call.attempt, result, forwarded, one.cost, one.attempts.records(), layers)


def embed_receipt(
    request: EmbedRequest,
    attempt: UnaryAttempt[Embeddings],
    result: Embeddings,
    layers: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what was asked of a model for vectors, and what it made, with the receipts of the `layers` that worked on its texts."""
    receipts = {} if layers is None else {"pipeline": layers}
    return {
        **receipts,
        "asked_dimensions": request.dimensions,
        "dimensions": result.dimensions,
        "vectors": len(result.vectors),
        "requests": len(attempt.wires),
    }


async def count_tokens(
    services: Services,
    request: Request,
    *,
    client_key: str = "",
    tenant: str = "",
    account: Account | None = None,
    login: ClientLogin | None = None,
) -> UnaryAnswer[TokenCount]:
    """Return how many tokens a request has. Raises BardoError; the call is in the log then too."""
    call: UnaryCall[TokenCount] = UnaryCall(services, request, "count_tokens", client_key, tenant, account, login)

    def course(asked: Request, targets: list[Target]) -> Course[TokenCount]:
        knowledge = services.facts.knowledge(targets)
        return unary_attempts(targets, lambda target: count_attempt(asked, target, knowledge))

    result, _ = await call.run(course)
    # The tokens were not used: they stand in the receipt, so that sums of tokens are of what was.
    receipt = {"input_tokens": result.input_tokens, "approx": result.approx}
    call.log("ok", fields={"receipt": receipt, "tokens_approx": result.approx}, degraded=result.degraded)
    return _answer(call, result)


async def compact_at_provider(
    services: Services,
    request: Request,
    *,
    client_key: str = "",
    tenant: str = "",
    account: Account | None = None,
    login: ClientLogin | None = None,
) -> UnaryAnswer[CompactedConversation]:
    """Return a conversation as its provider compacts it. Raises BardoError; the call is in the log then too."""
    call: UnaryCall[CompactedConversation] = UnaryCall(services, request, "compact", client_key, tenant, account, login)

    def course(asked: Request, targets: list[Target]) -> Course[CompactedConversation]:
        knowledge = services.facts.knowledge(targets)
        return unary_attempts(targets, lambda target: compact_attempt(asked, target, knowledge))

    result, _ = await call.run(course)
    usage = result.usage
    fields = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cached_input_tokens": usage.cached_input_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "usage_raw": usage.raw,
    }
    call.log("ok", fields=fields, degraded=result.degraded)
    return _answer(call, result)

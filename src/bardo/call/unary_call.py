"""One call that is answered in one piece, from its first attempt to its row in the log: for vectors, or for a count of tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from bardo.accounting.payments import Payer
from bardo.adapters.config.accounts import Account
from bardo.adapters.loop_watchdog import name_task
from bardo.adapters.stores.log.row import CallOutcome, LogRow, PendingCall
from bardo.call.call_attempts import CallAttempts, cost_fields
from bardo.call.call_context import new_request_id
from bardo.call.client_secrets import text_without_key, without_key, without_key_as_model
from bardo.call.failover import Recovery
from bardo.call.key_turns import KeyTurns
from bardo.call.reply_head import send_wire
from bardo.call.runner import Runner
from bardo.call.unary_loop import UnaryLoop
from bardo.planning.route import Target
from bardo.planning.unary import Course, UnaryAttempt, WholeReply
from bardo.planning.vitality import not_honoured
from bardo.services.facts.directory import Placement
from bardo.services.facts.health import AttemptWatch
from bardo.services.pipeline.sent_texts import run_on_inputs, run_on_request
from bardo.values.attempts import AttemptCause
from bardo.values.degradation import Degradation, distinct
from bardo.values.errors import BardoError, InternalError, InvalidRequest
from bardo.values.operations import Embeddings, EmbedRequest, TokenCount
from bardo.values.request import Operation, Request
from bardo.values.stopping import shutdown_of
from bardo.values.wire import WireRequest

if TYPE_CHECKING:
    from bardo.services.payments.payer import CallPayments
    from bardo.services.pipeline.call_layers import CallLayers
    from bardo.services.telemetry.telemetry import CallDetails

Result = TypeVar("Result", bound=Embeddings | TokenCount)


@dataclass(slots=True)
class UnaryCall(Generic[Result]):
    """One call while it runs. It is in the log once, however it ends."""

    runner: Runner
    request: EmbedRequest | Request
    operation: Operation
    client_key: str
    tenant: str = ""
    account: Account | None = None
    request_id: str = field(init=False)
    _attempt: UnaryAttempt[Result] | None = None
    attempts: CallAttempts = field(init=False)
    _started_at: float = 0.0
    _logged: bool = False
    _keys: KeyTurns = field(init=False)
    _payments: CallPayments | None = None
    layers: CallLayers | None = None
    """What the layers that worked on the request left; None where it had none."""

    def __post_init__(self) -> None:
        if self.client_key:
            self.request = without_key_as_model(self.request, self.client_key, is_known=self.account is not None)
        self._keys = KeyTurns(self.runner, self.request, self.tenant)
        self.request_id = new_request_id(self.runner.clock())
        name_task(self.request_id)
        self._started_at = self.runner.clock()
        if self.runner.telemetry is not None:
            self.request = self.runner.telemetry.begin(self.request_id, self.request)
        self.attempts = CallAttempts(self.runner.watch, self.runner.prices, self._started_at)
        if self.runner.payments is not None:
            self._payments = self.runner.payments.of_call(self.request_id)
            self._payments.payer = Payer(tenant=self.tenant)
            self.attempts.payments = self._payments

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
            if self.runner.provider_ids is not None:
                await self.runner.provider_ids.check(self.request, self.tenant)
            placed = await self._admitted(await self._find_targets())
            placed = await self.runner.servers.at_servers(placed, self.request, self.tenant)
            lost = await self._run_layers(placed.targets)
            return await self._follow(course_of(self.request, list(placed.targets)), (*placed.skipped, *lost))
        except BardoError as problem:
            final = problem if self._payments is None else self._payments.final(problem)
            await self.runner.directory.suggest(final, self.request.model)
            self.runner.clean(final, self._secrets())
            final.request_id = self.request_id
            self.log("error", error=final)
            raise final from final.__cause__
        except asyncio.CancelledError as cancelled:
            stopped = shutdown_of(cancelled)
            self.log("cancelled" if stopped is None else "error", error=stopped)
            raise
        except Exception as mistake:
            self.log("error", error=InternalError(f"a mistake in bardo: {type(mistake).__name__}"))
            raise

    async def _run_layers(self, targets: tuple[Target, ...]) -> tuple[Degradation, ...]:
        """Have the layers work on the request that work on whatever is sent, and return what was lost. Raises BardoError."""
        pipeline = self.runner.pipeline
        if pipeline is None:
            return ()
        layers = pipeline.of_operation(self.request, tenant=self.tenant, client_key=self.client_key)
        if layers is None:
            return ()
        self.layers = layers
        if isinstance(self.request, Request):
            self.request = await run_on_request(pipeline, layers, self.request, targets)
            return self.request.degraded
        self.request, lost = await run_on_inputs(pipeline, layers, self.request, targets)
        return lost

    async def _admitted(self, placed: Placement) -> Placement:
        """Return whom the client's key lets be asked. Raises Forbidden, RateLimited and OverBudget."""
        gate = self.runner.gate
        if gate is None or self.account is None:
            return placed
        free = self.operation == "count_tokens"
        return await gate.admit(self.account, self.request, placed, self.request_id, free=free)

    async def _find_targets(self) -> Placement:
        """Return who is asked: for vectors, of a model; for a count of tokens, as for a reply. Raises UnknownModel and InvalidRequest."""
        if isinstance(self.request, Request):
            return (await self.runner.placed(self.request))[1]
        if self.request.options.intent is not None or self.runner.directory.workload(self.request.model) is not None:
            message = "workloads and intents find models for replies, and none for vectors"
            raise InvalidRequest(message, hint="name the model that makes the vectors", param="model")
        lost = not_honoured(self.request.options.vitality, self.runner.directory.workloads)
        placed = await self.runner.placement(self.request.model)
        return msgspec.structs.replace(placed, skipped=(*placed.skipped, *lost)) if lost else placed

    async def _follow(
        self, course: Course[Result], skipped: tuple[Degradation, ...]
    ) -> tuple[Result, list[WholeReply]]:
        deadline = self.runner.failover.deadline(self.request.options.deadline_seconds)
        recovery = Recovery(self.runner, self.attempts.age, deadline)
        loop = UnaryLoop(course, recovery, lambda attempt, lost: self._try(attempt, (*skipped, *lost)))
        while True:
            sent_at = self.attempts.age()
            try:
                return await loop.attempt()
            except BardoError as problem:
                self.runner.clean(problem, self._secrets())
                await loop.turn(problem, self.attempts.age() - sent_at)

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
            self.attempts.end(error=problem, may_have_cost=self._bills() and (bool(replies) or None))
            raise
        if (details := self._details()) is not None:
            details.counted(result)
        usage = result.usage if isinstance(result, Embeddings) else None
        self.attempts.end(usage=usage, may_have_cost=self._bills())
        degraded = distinct((*lost, *result.degraded))
        return msgspec.structs.replace(result, degraded=degraded), replies

    def _cause(self, target: Target) -> AttemptCause:
        """Return why another attempt is made at a target: it is the first, or the same provider's in another form, or another provider."""
        before = self.attempts.last_target
        if before is None:
            return "first"
        return "retry" if before.provider.place == target.provider.place else "failover"

    def _bills(self) -> bool:
        """Whether such calls cost money: no provider is known to bill counts of tokens (price pages, 2026-11)."""
        return self.operation != "count_tokens"

    async def _send(self, wire: WireRequest, target: Target) -> WholeReply:
        while True:
            try:
                return await self._send_once(wire, target)
            except BardoError as problem:
                if not self._keys.may_change(target, self._keys.label, problem):
                    raise
                self.attempts.end(error=problem)
                self._note_sent(target, "retry", problem.message)

    async def _send_once(self, wire: WireRequest, target: Target) -> WholeReply:
        key = self._keys.label
        with AttemptWatch(self.runner, target, key, of_model=self.operation != "count_tokens") as health:
            reply = await send_wire(self.runner, target.provider, wire, key, self._payments)
            try:
                self.attempts.count += reply.resent
                whole = WholeReply(await reply.read(self.runner.limits.max_reply_bytes), reply.headers)
            finally:
                await reply.close()
            health.ended(None)
            return whole

    def _note_sent(self, target: Target, cause: AttemptCause, why: str = "") -> None:
        """Note an attempt before it is sent, with the key that it uses."""
        self.attempts.send(target, cause=cause, why=why, key=self._keys.choose(target))
        if (details := self._details()) is not None:
            details.sent(target)
        self.runner.note_begun(self._begun(target), target)

    def _details(self) -> CallDetails | None:
        telemetry = self.runner.telemetry
        return None if telemetry is None else telemetry.details(self.request_id)

    def _secrets(self) -> tuple[str, ...]:
        """Return what no error of this call may hold."""
        return (self.client_key, *(() if self._payments is None else self._payments.secrets))

    def _begun(self, target: Target) -> PendingCall:
        request = self.request
        return PendingCall(
            self.request_id,
            self._started_at,
            request.dialect,
            target.provider.id,
            target.provider.row.dialect,
            request.model,
            target.model,
            False,
            self.attempts.count,
            self.operation,
            None if self.account is None else self.account.id,
            self._subsystem(),
            () if self.account is None else self.account.tags,
        )

    def _subsystem(self) -> str | None:
        intent = self.request.options.intent
        return None if intent is None else text_without_key(intent.subsystem, self.client_key) or None

    def log(
        self,
        outcome: CallOutcome,
        *,
        error: BardoError | None = None,
        fields: Mapping[str, Any] | None = None,
        degraded: tuple[Degradation, ...] = (),
    ) -> None:
        """Write the call into the log, once."""
        if self._logged:
            return
        self._logged = True
        self.attempts.end(error=error, whole=False, may_have_cost=None if self._bills() else False)
        row = LogRow(
            request_id=self.request_id,
            started_at=self._started_at,
            seconds=self.attempts.age(),
            client_dialect=self.request.dialect,
            model_asked=self.request.model,
            attempts=self.attempts.count,
            subsystem=self._subsystem(),
            attempt_records=self.attempts.logged_records(),
            tenant=self.tenant,
            key_id=None if self.account is None else self.account.id,
            tags=() if self.account is None else self.account.tags,
            operation=self.operation,
            outcome=outcome,
            status=error.status if error is not None else 200 if outcome == "ok" else None,
            degraded=tuple(msgspec.to_builtins(degraded)),
            **cost_fields(self.attempts.cost()),
            **self._error_origin(),
            **_words_of(error),
            pipeline=None if self.layers is None else self.layers.fields(),
            **(fields or {}),
            **self._content(),
        )
        if self.client_key:
            row = without_key(row, self.request, self.client_key, is_known=self.account is not None)
        self.runner.write(row)

    def _error_origin(self) -> dict[str, Any]:
        if self._attempt is None:
            return {}
        target = self._attempt.target
        provider = target.provider
        return {"provider": provider.id, "provider_dialect": provider.row.dialect, "model": target.model}

    def _content(self) -> dict[str, Any]:
        if not self.runner.limits.keep_content or (
            self.layers is not None and self.layers.masks and not self.layers.masked
        ):
            return {}
        asked = self.request.inputs if isinstance(self.request, EmbedRequest) else self.request.messages
        return {"request_content": msgspec.json.encode(self.request.body or asked).decode()}


def _words_of(error: BardoError | None) -> dict[str, Any]:
    if error is None:
        return {}
    return {"error_class": type(error).__name__, "error_message": error.message}

"""Calls that are answered in one piece: vectors of texts and counts of tokens, from the first attempt to the row in the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from bardo.edge.call_context import new_request_id
from bardo.edge.directory import Placement
from bardo.edge.graceful_shutdown import shutdown_of
from bardo.edge.log.row import CallBegun, CallOutcome, LogRow
from bardo.edge.reply_head import send_wire
from bardo.edge.runner import Runner
from bardo.engine.embedding import embed_attempt, may_forward, with_estimated_usage
from bardo.engine.route import Target
from bardo.engine.token_counting import count_attempt
from bardo.engine.unary import Course, UnaryAttempt, WholeReply, unary_attempts
from bardo.engine.vitality import not_honoured
from bardo.values.degradation import Degradation, distinct
from bardo.values.errors import BardoError, InternalError, InvalidRequest
from bardo.values.operations import Embeddings, EmbedRequest, TokenCount
from bardo.values.request import Operation, Request
from bardo.values.wire import WireRequest

Result = TypeVar("Result", bound=Embeddings | TokenCount)


@dataclass(frozen=True, slots=True)
class UnaryAnswer(Generic[Result]):
    """What became of a call: its id, the attempt that was answered, and its result. `forwarded` is its body, where that may go on."""

    request_id: str
    attempt: UnaryAttempt[Result]
    result: Result
    forwarded: bytes | None = None


async def embed(
    runner: Runner, request: EmbedRequest, *, client_key: str = "", tenant: str = ""
) -> UnaryAnswer[Embeddings]:
    """Return the vectors of a request's inputs. Raises BardoError; the call is in the log then too."""
    call: UnaryCall[Embeddings] = UnaryCall(runner, request, "embed", client_key, tenant)
    result, replies = await call.run(lambda targets: unary_attempts(targets, lambda one: embed_attempt(request, one)))
    forwarded = replies[0].body if may_forward(request, call.attempt, result) else None
    counted = with_estimated_usage(result, request)
    fields = {
        "input_tokens": counted.usage.input_tokens,
        "tokens_approx": counted is not result,
        "usage_raw": result.usage.raw,
        "cost_usd": result.usage.cost_usd,
        "passed_through": forwarded is not None,
        "receipt": embed_receipt(request, call.attempt, result),
    }
    # A reply that is sent on as it came holds no estimate.
    result = result if forwarded is not None else counted
    call.log("ok", fields=fields, degraded=result.degraded)
    return UnaryAnswer(call.request_id, call.attempt, result, forwarded)


def embed_receipt(request: EmbedRequest, attempt: UnaryAttempt[Embeddings], result: Embeddings) -> dict[str, Any]:
    """Return what was asked of a model for vectors, and what it made."""
    return {
        "asked_dimensions": request.dimensions,
        "dimensions": result.dimensions,
        "vectors": len(result.vectors),
        "requests": len(attempt.wires),
    }


async def count_tokens(
    runner: Runner, request: Request, *, client_key: str = "", tenant: str = ""
) -> UnaryAnswer[TokenCount]:
    """Return how many tokens a request has. Raises BardoError; the call is in the log then too."""
    call: UnaryCall[TokenCount] = UnaryCall(runner, request, "count_tokens", client_key, tenant)

    def course(targets: list[Target]) -> Course[TokenCount]:
        knowledge = runner.facts.knowledge(targets)
        return unary_attempts(targets, lambda target: count_attempt(request, target, knowledge))

    result, _ = await call.run(course)
    # The tokens were not used: they stand in the receipt, so that sums of tokens are of what was.
    receipt = {"input_tokens": result.input_tokens, "approx": result.approx}
    call.log("ok", fields={"receipt": receipt, "tokens_approx": result.approx}, degraded=result.degraded)
    return UnaryAnswer(call.request_id, call.attempt, result)


@dataclass(slots=True)
class UnaryCall(Generic[Result]):
    """One call while it runs. It is in the log once, however it ends."""

    runner: Runner
    request: EmbedRequest | Request
    operation: Operation
    client_key: str
    tenant: str = ""
    request_id: str = field(init=False)
    _attempt: UnaryAttempt[Result] | None = None
    _attempts: int = 0
    _started_at: float = 0.0
    _began: float = 0.0
    _logged: bool = False

    def __post_init__(self) -> None:
        self.request_id = new_request_id(self.runner.clock())

    @property
    def attempt(self) -> UnaryAttempt[Result]:
        """The attempt that was answered."""
        assert self._attempt is not None
        return self._attempt

    async def run(self, course_of: Callable[[list[Target]], Course[Result]]) -> tuple[Result, list[WholeReply]]:
        """Try one target after the other, and return what the first that answers says. Raises BardoError where none does."""
        self._started_at, self._began = self.runner.clock(), self.runner.watch()
        try:
            placed = await self._placed()
            return await self._follow(course_of(list(placed.targets)), placed.skipped)
        except BardoError as problem:
            self.runner.clean(problem, (self.client_key,))
            problem.request_id = self.request_id
            self.log("error", error=problem)
            raise
        except asyncio.CancelledError as cancelled:
            stopped = shutdown_of(cancelled)
            self.log("cancelled" if stopped is None else "error", error=stopped)
            raise
        except Exception as mistake:
            self.log("error", error=InternalError(f"a mistake in bardo: {type(mistake).__name__}"))
            raise

    async def _placed(self) -> Placement:
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
        attempt, lost = next(course)
        while True:
            try:
                return await self._try(attempt, (*skipped, *lost))
            except BardoError as problem:
                self.runner.clean(problem, (self.client_key,))
                try:
                    attempt, lost = course.send(problem)
                except StopIteration:
                    raise problem from None

    async def _try(
        self, attempt: UnaryAttempt[Result], lost: tuple[Degradation, ...]
    ) -> tuple[Result, list[WholeReply]]:
        """Send one attempt, and return its result with all that was degraded. Raises BardoError."""
        self._attempt = attempt
        if attempt.wires:
            self._attempts += 1
            self.runner.note_begun(self._begun(attempt.target))
        replies = [await self._send(wire, attempt.target) for wire in attempt.wires]
        result = attempt.result(replies)
        degraded = distinct((*lost, *result.degraded))
        return msgspec.structs.replace(result, degraded=degraded), replies

    async def _send(self, wire: WireRequest, target: Target) -> WholeReply:
        reply = await send_wire(self.runner, target.provider, wire)
        try:
            self._attempts += reply.resent
            return WholeReply(await reply.read(self.runner.limits.max_reply_bytes), reply.headers)
        finally:
            await reply.close()

    def _begun(self, target: Target) -> CallBegun:
        request = self.request
        return CallBegun(
            self.request_id,
            self._started_at,
            request.dialect,
            target.provider.id,
            target.provider.row.dialect,
            request.model,
            target.model,
            False,
            self._attempts,
            self.operation,
        )

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
        self.runner.write(
            LogRow(
                request_id=self.request_id,
                started_at=self._started_at,
                seconds=self.runner.watch() - self._began,
                client_dialect=self.request.dialect,
                model_asked=self.request.model,
                attempts=self._attempts,
                tenant=self.tenant,
                operation=self.operation,
                outcome=outcome,
                status=error.status if error is not None else 200 if outcome == "ok" else None,
                degraded=tuple(msgspec.to_builtins(degraded)),
                **self._where(),
                **_words_of(error),
                **(fields or {}),
                **self._content(),
            )
        )

    def _where(self) -> dict[str, Any]:
        if self._attempt is None:
            return {}
        target = self._attempt.target
        provider = target.provider
        return {"provider": provider.id, "provider_dialect": provider.row.dialect, "model": target.model}

    def _content(self) -> dict[str, Any]:
        if not self.runner.limits.keep_content:
            return {}
        asked = self.request.inputs if isinstance(self.request, EmbedRequest) else self.request.messages
        return {"request_content": msgspec.json.encode(self.request.body or asked).decode()}


def _words_of(error: BardoError | None) -> dict[str, Any]:
    if error is None:
        return {}
    return {"error_class": type(error).__name__, "error_message": error.message}

"""What is answered in one piece: vectors of texts, and counts of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic

from bardo.adapters.config.accounts import Account
from bardo.call.runner import Runner
from bardo.call.unary_call import Result, UnaryCall
from bardo.planning.embedding import embed_attempt, may_forward, with_estimated_usage
from bardo.planning.route import Target
from bardo.planning.token_counting import count_attempt
from bardo.planning.unary import Course, UnaryAttempt, unary_attempts
from bardo.values.attempts import AttemptRecord
from bardo.values.cost import UNKNOWN_COST, CallCost
from bardo.values.operations import Embeddings, EmbedRequest, TokenCount
from bardo.values.request import Request


@dataclass(frozen=True, slots=True)
class UnaryAnswer(Generic[Result]):
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
    runner: Runner, request: EmbedRequest, *, client_key: str = "", tenant: str = "", account: Account | None = None
) -> UnaryAnswer[Embeddings]:
    """Return the vectors of a request's inputs. Raises BardoError; the call is in the log then too."""
    call: UnaryCall[Embeddings] = UnaryCall(runner, request, "embed", client_key, tenant, account)
    result, replies = await call.run(_embed_course)
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


def _embed_course(request: EmbedRequest, targets: list[Target]) -> Course[Embeddings]:
    return unary_attempts(targets, lambda one: embed_attempt(request, one))


def _answer(call: UnaryCall[Result], result: Result, forwarded: bytes | None = None) -> UnaryAnswer[Result]:
    layers = None if call.layers is None else call.layers.fields()
    cost, records = call.attempts.cost(), call.attempts.records()
    return UnaryAnswer(call.request_id, call.attempt, result, forwarded, cost, records, layers)


def embed_receipt(
    request: EmbedRequest,
    attempt: UnaryAttempt[Embeddings],
    result: Embeddings,
    layers: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what was asked of a model for vectors, and what it made, with the receipts of the `layers` that worked on its texts."""
    told = {} if layers is None else {"pipeline": layers}
    return {
        **told,
        "asked_dimensions": request.dimensions,
        "dimensions": result.dimensions,
        "vectors": len(result.vectors),
        "requests": len(attempt.wires),
    }


async def count_tokens(
    runner: Runner, request: Request, *, client_key: str = "", tenant: str = "", account: Account | None = None
) -> UnaryAnswer[TokenCount]:
    """Return how many tokens a request has. Raises BardoError; the call is in the log then too."""
    call: UnaryCall[TokenCount] = UnaryCall(runner, request, "count_tokens", client_key, tenant, account)

    def course(asked: Request, targets: list[Target]) -> Course[TokenCount]:
        knowledge = runner.facts.knowledge(targets)
        return unary_attempts(targets, lambda target: count_attempt(asked, target, knowledge))

    result, _ = await call.run(course)
    # The tokens were not used: they stand in the receipt, so that sums of tokens are of what was.
    receipt = {"input_tokens": result.input_tokens, "approx": result.approx}
    call.log("ok", fields={"receipt": receipt, "tokens_approx": result.approx}, degraded=result.degraded)
    return _answer(call, result)

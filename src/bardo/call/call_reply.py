"""What one call knows of its reply: its attempts, what has been read, what it cost, and its row in the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from bardo.adapters.config.accounts import Account
from bardo.adapters.loop_watchdog import name_task
from bardo.adapters.stores.log.row import CallOutcome
from bardo.call.answer_steps import AnswerStepRunner, ReplyAnswer
from bardo.call.call_attempts import SentAttempt
from bardo.call.call_context import CallContext, new_request_id
from bardo.call.call_recorder import CallRecorder
from bardo.call.key_turns import KeyTurns
from bardo.call.stale_replies import StalePlace
from bardo.call.upstream_reply import UpstreamReply
from bardo.call.verification import Verifier
from bardo.planning.attempt import Attempt
from bardo.planning.knowledge import BUILTIN, Knowledge
from bardo.planning.passed_headers import PassedHeaders
from bardo.planning.typed_answer import AnswerValidator
from bardo.planning.verification import Verification
from bardo.replies.forwarding import ReplyUpdate
from bardo.replies.receipt import CallFacts, with_earlier_calls, with_receipt
from bardo.replies.reply_reader import ReplyReader
from bardo.structured import Provenance
from bardo.values.attempts import AttemptCause
from bardo.values.cost import CallCost
from bardo.values.errors import BardoError
from bardo.values.events import UsageUpdate
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.stopping import shutdown_of
from bardo.values.usage import Usage

if TYPE_CHECKING:
    from bardo.services.pipeline.call_layers import CallLayers


class CallReply:
    """One call's reply as far as it is known, for whoever reads it on.

    `validator` is the caller's own look at a typed answer. `client_key` is what the client proved itself with, which no error may hold,
    and `account` whose it is.
    `most_text` is how many characters of a reply are held that only the log and replay look at.
    """

    answer: ReplyAnswer | None = None
    prompt_estimate = 0
    """The tokens of the prompt that the client was told before they were counted; 0 where it was told none."""
    stale_seconds: float | None = None
    """How old the reply is that is given because nobody answered; None of one that came now."""
    stale_place: StalePlace | None = None
    verifier: Verifier | None = None
    """What has the answer judged by a second model; None where nobody asked for that."""
    _verification: Verification | None = None
    _is_judged = False
    _knowledge: Knowledge = BUILTIN
    _attempt: Attempt | None = None
    _upstream: UpstreamReply | None = None
    _steps: AnswerStepRunner | None = None
    _held: list[ReplyUpdate] | None = None

    def __init__(
        self,
        context: CallContext,
        request: Request,
        *,
        tenant: str = "",
        validator: AnswerValidator | None = None,
        client_key: str = "",
        most_text: int | None = None,
        account: Account | None = None,
    ) -> None:
        self.request = request
        self.request_id = new_request_id(context.clock())
        name_task(self.request_id)
        self.keys = KeyTurns(context, request, tenant)
        self._context = context
        self._validator = validator
        self._client_key = client_key
        self._most_text = most_text
        self.recorder = self._recorder = CallRecorder(
            context,
            request,
            self.request_id,
            tenant,
            key_id=None if account is None else account.id,
            tags=() if account is None else account.tags,
            client_key=client_key,
        )

    @property
    def layers(self) -> CallLayers | None:
        """What the layers that worked on the call left; None where it had none."""
        return self._recorder.layers

    @property
    def attempt(self) -> Attempt:
        """The attempt that was sent last."""
        assert self._attempt is not None
        return self._attempt

    @property
    def reader(self) -> ReplyReader:
        """The reader of the reply."""
        assert self._upstream is not None
        return self._upstream.reader

    @property
    def forwarded(self) -> bool:
        """Whether the client gets the provider's own bytes: the plan allows it, and so did the reply as far as it has come."""
        upstream, answer = self._upstream, self.answer
        return upstream is not None and upstream.forwarded and (answer is None or not answer.rewritten)

    @property
    def passed_headers(self) -> PassedHeaders:
        """The headers of the provider's reply that the client gets too."""
        return () if self._upstream is None else self._upstream.passed_headers

    def response(self) -> Response:
        """Return the reply as far as it has come."""
        return self.reader.response()

    @property
    def cost(self) -> CallCost:
        """What the call cost by the attempts that have ended; unknown while one is open."""
        return self.recorder.attempts.cost()

    @property
    def cost_of_request(self) -> CallCost:
        """What the request cost: this call, and the calls of the same cascade whose answers were not good enough."""
        return with_earlier_calls(self.cost, self._attempt)

    def response_with_receipt(self) -> Response:
        """Return the reply as far as it has come, with ids, cost and receipt in `bardo`, and steps in its thinking."""
        return with_receipt(self.request, self.response(), self._facts(), forwarded=self.forwarded)

    def age(self) -> float:
        """Return the seconds since the call began."""
        return self._recorder.attempts.age()

    def note_sent(self, attempt: Attempt, *, cause: AttemptCause = "first", why: str = "") -> SentAttempt:
        """Note an attempt before it is sent. `why` says what led to it."""
        sent = self._recorder.note_sent(attempt, cause=cause, why=why, key=self.keys.choose(attempt.target))
        events = self._context.events
        if events.active:
            events.publish_plan(self.request_id, attempt, cause, self._recorder.key_id)
        self._attempt = attempt
        return sent

    def note_ended(
        self, sent: SentAttempt | None = None, error: BardoError | None = None, *, whole: bool = True
    ) -> None:
        """Note the end of an attempt, by default the one that is open, with what its reply used."""
        upstream, tenant = self._upstream, self._recorder.tenant
        usage = None if upstream is None else upstream.usage(tenant, whole=whole and error is None)
        self._recorder.attempts.end(sent, error=error, usage=usage, whole=whole)

    def final(self, problem: BardoError) -> BardoError:
        """Return the error with which the call ends, which says that it was paid for where it was."""
        payments = self._recorder.payments
        return problem if payments is None else payments.final(problem)

    def clean(self, error: BardoError) -> None:
        """Take secrets, and more text than a person reads, out of an error of this call."""
        self._context.clean(error, self._secrets())

    def _cleaner(self) -> Callable[[BardoError], None]:
        """Return what cleans an error and does not hold this call: a call in a circle of references waits for the garbage collector."""
        return partial(self._context.clean, extra_secrets=self._secrets())

    def _secrets(self) -> tuple[str, ...]:
        """Return what no error of this call may quote."""
        payments = self._recorder.payments
        return (self._client_key,) if payments is None else (self._client_key, *payments.secrets)

    def log(self, outcome: CallOutcome, error: BardoError | None = None) -> None:
        """Write the call into the log, once."""
        recorder, context, upstream, response = self._recorder, self._context, self._upstream, None
        if recorder.logged:
            return
        usage = self._usage(upstream, whole=outcome == "ok")
        if upstream is not None and upstream.opened:
            upstream.learn_start(recorder.tenant)
            response = upstream.reader.response()
        recorder.attempts.end(error=error, usage=usage, whole=outcome == "ok")
        if context.events.active and outcome == "ok" and response is not None:
            context.events.publish_reply(
                self.request_id, self.attempt, response, self._provenance, recorder.key_id, self.cost.saved_nanos
            )
        forwarded = self.forwarded if response is not None else self._attempt is not None and self._attempt.forward
        row = recorder.log(outcome, attempt=self._attempt, response=response, error=error, forwarded=forwarded)
        # The thinking of an old reply is another call's.
        if context.episodes is not None and response is not None and self.stale_seconds is None:
            made = self._provenance
            schema_ok = None if made is None else made.error is None
            recorder.keep_episode(context.episodes, row, self.reader.response_with_reasoning(), schema_ok)

    def _usage(self, upstream: UpstreamReply | None, *, whole: bool) -> Usage | None:
        """Return what the first reply of the answer used. Where the answer is not `whole`, its response tells what passed of all of it."""
        if upstream is None or not upstream.opened:
            return None
        if self._steps is not None:
            self._steps.end_open()
        usage = upstream.usage(self._recorder.tenant, whole=whole)
        if whole:
            return upstream.reader.usage
        told = usage if self._steps is None else self._steps.unfinished
        if told is not None:
            upstream.reader.settle([UsageUpdate(told)])
        return usage

    @property
    def _provenance(self) -> Provenance | None:
        """How a typed answer came about; None where none was asked for, or none was due in this turn."""
        return None if self.answer is None else self.answer.provenance

    def log_cancelled(self, cancelled: asyncio.CancelledError) -> None:
        """Write a call that was cancelled into the log: as failed where the server stopped, not its client."""
        stopped = shutdown_of(cancelled)
        if stopped is None:
            # A client that leaves a stream while its answer is judged has all of the answer.
            self.log("ok" if self._is_judged and self._is_whole() else "cancelled")
        else:
            begun = self._upstream is not None and self._upstream.opened and self.request.stream
            self.log("broken" if begun else "error", stopped)
        self._recorder.judge(escalated=False)

    def _facts(self) -> CallFacts:
        return CallFacts(
            self.request_id,
            self.attempt,
            self.cost_of_request,
            self._recorder.attempts.records(),
            self._recorder.payment_fields(),
            None if self._verification is None else self._verification.fields(),
            self._charged_nanos(),
        )

    def _charged_nanos(self) -> int | None:
        """Return what the key of the call is charged; None where that is the cost itself, or the call has no key."""
        gate = self._context.gate
        return None if gate is None or self._recorder.key_id is None else gate.charged(self.cost_of_request.nanos)

    def _is_whole(self) -> bool:
        """Whether the reply said its last event, and the caller took it."""
        upstream = self._upstream
        if upstream is None or not upstream.opened or upstream.reader.failure is not None or not upstream.all_read:
            return False
        return self.response().finish.reason not in ("unknown", "error")

"""One call: whose it is, what it asks, the attempts that are made with their keys and costs, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from bardo.accounting.cost import NO_COST, AttemptCost, as_part, call_cost
from bardo.adapters.chance import CHANCE
from bardo.adapters.config.accounts import Account
from bardo.adapters.loop_watchdog import name_task
from bardo.adapters.stores.log.row import LogRow, PendingCall
from bardo.call.client_login import ClientLogin
from bardo.call.services import Services
from bardo.context.sessions import call_labels, conversation_head
from bardo.planning.attempt import Attempt
from bardo.planning.refusals import is_about_content
from bardo.planning.route import Target
from bardo.routing.circuit import error_class
from bardo.services.facts.price_book import PriceBook
from bardo.values.attempts import AttemptCause, AttemptRecord
from bardo.values.errors import BardoError, CallerError, OperatorError, OverBudget, ProviderError, UpstreamRefused
from bardo.values.operations import EmbedRequest
from bardo.values.request import Operation, Request
from bardo.values.secrets import looks_like_key, secrets_of
from bardo.values.usage import UNKNOWN_COST, CallCost, Usage, usd

if TYPE_CHECKING:
    from bardo.services.payments.payer import CallPayments
    from bardo.services.pipeline.call_layers import CallLayers
    from bardo.services.telemetry.telemetry import CallDetails

_AT_WORK = frozenset({408, 499, 502, 504, 520, 522, 524})
"""Statuses by which a proxy tells that it stopped waiting: the server behind it may have done the work, and billed it."""
_FILTERED = "content_filter"
"""Azure bills a prompt that its filter refused (learn.microsoft.com, "Content filtering", read 2026-11)."""


class SentAttempt(msgspec.Struct, eq=False):
    """One attempt, from before it is sent.

    `whole`: its reply came to its end. `lost`: another attempt of the same call was quicker. `paid_nanos` is
    what was paid for it from the wallet.
    """

    target: Target
    cause: AttemptCause
    why: str
    key: str
    started: float
    seconds: float | None = None
    error: BardoError | None = None
    usage: Usage | None = None
    may_have_cost: bool = True
    paid_nanos: int = 0
    whole: bool = False
    lost: bool = False
    open: bool = True
    cost: CallCost = UNKNOWN_COST


class CallAttempts:
    """The attempts of one call, which begins when this is made. `watch` counts seconds, `now` is the Unix time whose prices it pays."""

    count = 0
    """How many were sent, with those that the transport repeated, because their connection had been closed before they went out."""

    def __init__(
        self, watch: Callable[[], float], prices: PriceBook, now: float, payments: CallPayments | None = None
    ) -> None:
        self._payments = payments
        self._watch = watch
        self._began = watch()
        self._prices = prices
        self._now = now
        self._sent: list[SentAttempt] = []

    def age(self) -> float:
        """Return the seconds since the call began."""
        return self._watch() - self._began

    def count_resent(self, times: int) -> None:
        """Count the times that the transport sent an attempt again."""
        self.count += times

    @property
    def last_target(self) -> Target | None:
        """Where the last attempt went, or None if there is none yet."""
        return self._sent[-1].target if self._sent else None

    def send(self, target: Target, *, cause: AttemptCause, why: str = "", key: str = "") -> SentAttempt:
        """Note an attempt that is about to be sent: it may cost money from then on."""
        attempt = SentAttempt(target, cause, why, key, self._watch() - self._began)
        self._sent.append(attempt)
        self.count += 1
        return attempt

    def end(
        self,
        attempt: SentAttempt | None = None,
        *,
        error: BardoError | None = None,
        usage: Usage | None = None,
        may_have_cost: bool | None = None,
        whole: bool = True,
        lost: bool = False,
    ) -> None:
        """Note how an attempt ended: by default the latest that is open. One that has ended stays as it is.

        `may_have_cost` is told by the error where it is not given. `whole`: the reply came to its end; of any other `usage` tells what
        passed. `lost`: another attempt was quicker.
        """
        one = attempt or self._latest_open()
        if one is None or not one.open:
            return
        target = one.target
        one.open = False
        one.lost = lost
        one.whole = whole and error is None and not lost
        one.seconds = self._watch() - self._began - one.started
        one.error = error
        one.usage = usage
        one.may_have_cost = _may_have_cost(error) if may_have_cost is None else may_have_cost
        if self._payments is not None:
            one.paid_nanos = self._payments.take_nanos()
        if one.paid_nanos:
            # What was paid is the bill, whatever the provider counts besides.
            usage = msgspec.structs.replace(usage or _NO_USAGE, cost_usd=usd(one.paid_nanos))
        if usage is None or not (usage.reported or usage.cost_usd is not None):
            one.cost = UNKNOWN_COST if one.may_have_cost else NO_COST
            return
        cost = self._prices.cost(target.provider, target.model, usage, self._now)
        one.cost = msgspec.structs.replace(cost, approx=True) if usage.approx else cost

    def _latest_open(self) -> SentAttempt | None:
        for one in reversed(self._sent):
            if one.open:
                return one
        return None

    @property
    def has_open(self) -> bool:
        """Whether an attempt has not ended."""
        return self._latest_open() is not None

    def ended_nanos(self) -> int:
        """Return what the attempts that have ended cost, as far as that is known."""
        return sum(one.cost.nanos or 0 for one in self._sent if not one.open)

    def cost(self) -> CallCost:
        """Return what the call cost by the attempts that have ended; unknown while one is open."""
        if len(self._sent) == 1:
            return self._sent[0].cost
        if not self._sent:
            return NO_COST
        return call_cost([AttemptCost(one.cause, one.cost, one.error is None and not one.lost) for one in self._sent])

    def logged_records(self) -> tuple[AttemptRecord, ...]:
        """Return the attempts for the log, which tells of a single one only where it says which server it went to."""
        if len(self._sent) == 1 and not self._sent[0].target.provider.address:
            return ()
        return self.records()

    def records(self) -> tuple[AttemptRecord, ...]:
        """Return the attempts in the order in which they were sent."""
        found = []
        for one in self._sent:
            usage, error, provider = one.usage or _NO_USAGE, one.error, one.target.provider
            record = AttemptRecord(
                cause=one.cause,
                provider=provider.id,
                model=one.target.model,
                why=one.why,
                address=provider.address,
                key=one.key,
                started=round(one.started, 6),
                seconds=None if one.seconds is None else round(one.seconds, 6),
                status=error.status if error is not None else 200 if one.whole else None,
                error="" if error is None else type(error).__name__,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                reasoning_tokens=usage.reasoning_tokens,
                cached_input_tokens=usage.cached_input_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                nanos=one.cost.nanos,
                tokens_approx=usage.approx,
            )
            found.append(record)
        return tuple(found)


def _may_have_cost(error: BardoError | None) -> bool:
    """Return whether an attempt that ended like this may be billed: not where it was refused, or never reached the provider."""
    if error is None:
        return True
    if isinstance(error, UpstreamRefused):
        return error.status in _AT_WORK or error.upstream_code == _FILTERED
    if isinstance(error, ProviderError):
        return error.reached
    if isinstance(error, OverBudget):
        return True  # It had been sent, and was cut.
    return not isinstance(error, CallerError | OperatorError)


_NO_USAGE = Usage()


def new_request_id(now: float) -> str:
    """Return the id of a call that begins at `now`, Unix time: four digits for its second, which come again after 18 hours, 80 random bits.

    Calls of one second stand side by side in the log's index of ids, so a batch of rows changes few of its pages.
    """
    return f"req_{int(now) & 0xFFFF:04x}{CHANCE.getrandbits(80):020x}"


def subsystem_of(request: Request, attempt: Attempt | None) -> str | None:
    """Return which part of an agent, or which workload, asked, or None if the request does not tell."""
    if attempt is not None and attempt.route is not None and (workload := attempt.route.fields.get("workload")):
        return str(workload)
    intent = request.options.intent
    return None if intent is None else intent.subsystem or None


class Call:
    """One call: whose it is, what it asks, its attempts with their keys and costs, what its layers left, and how it ended.

    It begins when this is made: `started_at` is Unix time. `client_key` is what the client proved itself with, which nothing may quote, and
    `account` whose it is. `awaits_verdict`: the call is one of a cascade, and its row is written when it is known whether its answer was
    good enough.
    """

    logged = False
    """Whether its row was made."""
    first_byte: float | None = None
    """After how many seconds its reply began, or None if none has."""
    key_label = ""
    """The label of the key of the latest attempt, empty where its provider has no more than one."""
    _conversation: bytes | None = None
    _tried_keys: frozenset[tuple[str, str]] = frozenset()
    _unjudged: LogRow | None = None

    def __init__(
        self,
        services: Services,
        request: Request | EmbedRequest,
        *,
        tenant: str = "",
        account: Account | None = None,
        client_key: str = "",
        operation: Operation = "generate",
        streamed: bool = False,
        layers: CallLayers | None = None,
        awaits_verdict: bool = False,
        login: ClientLogin | None = None,
    ) -> None:
        self.login = login
        self.logins: Mapping[str, Mapping[str, str]] = {}
        """The headers of the client's own login, by the ids of the providers that get them."""
        self.services = services
        self.request = request
        self.operation: Operation = operation
        self.streamed = streamed
        self.started_at = services.clock()
        self.request_id = new_request_id(self.started_at)
        name_task(self.request_id)
        self.tenant = tenant
        self.key_id = None if account is None else account.id
        self.tags = () if account is None else account.tags
        self.client_key = client_key
        self.layers = layers
        self.awaits_verdict = awaits_verdict
        self.payments = None if services.payments is None else services.payments.of_call(self.request_id, tenant)
        self.attempts = CallAttempts(services.watch, services.prices, self.started_at, self.payments)
        self.labels = call_labels(request, self._without_known_key)

    @property
    def cost(self) -> CallCost:
        """What the call cost by the attempts that have ended; unknown while one is open."""
        return self.attempts.cost()

    @property
    def details(self) -> CallDetails | None:
        """What telemetry is told of the call, or None if nobody is told."""
        telemetry = self.services.telemetry
        return None if telemetry is None else telemetry.details(self.request_id)

    def use_layers(self, layers: CallLayers) -> None:
        """Take the layers that work on the call."""
        self.layers = layers

    def use_logins(self, logins: Mapping[str, Mapping[str, str]]) -> None:
        """Take the headers of the client's own login, by the ids of the providers that get them."""
        self.logins = logins

    def choose_key(self, target: Target) -> str:
        """Return the label of the key that an attempt uses."""
        provider, services, self.key_label = target.provider, self.services, ""
        if provider.row.several_keys:
            tried = [label for name, label in self._tried_keys if name == provider.place]
            if self._conversation is None:
                self._conversation = conversation_head(self.request, self.tenant)
            head, rests, now = self._conversation, services.health.store.rests, services.watch()
            self.key_label = services.keyring.choose(provider, target.model, rests, now, conversation=head, tried=tried)
        return self.key_label

    def may_change_key(self, target: Target, key: str, problem: BardoError) -> bool:
        """Whether a call that failed with the key of a label may go at once to another key of the same provider."""
        provider, model, services = target.provider, target.model, self.services
        if (
            not key
            or error_class(problem) not in ("rate_limited", "key_refused")
            or (isinstance(problem, UpstreamRefused) and is_about_content(problem))
        ):
            return False
        self._tried_keys |= {(provider.place, key)}
        rests, now = services.health.store.rests, services.watch()
        return any(
            (provider.place, label) not in self._tried_keys and rests.rest(provider.place, label, model, now) is None
            for label in services.keyring.labels(provider)
        )

    def note_first_byte(self) -> None:
        """Take the time at which a reply had begun."""
        self.first_byte = self.attempts.age()

    def note_attempt(
        self, attempt: Attempt, request: Request, *, cause: AttemptCause = "first", why: str = "", key: str = ""
    ) -> SentAttempt:
        """Note an attempt at a reply before it is sent, with the label of its key. `why` says what led to it."""
        subsystem = subsystem_of(request, attempt)
        if self.payments is not None:
            self.payments.expect(attempt, request, self.services.prices, self.started_at, subsystem=subsystem)
        self.services.facts.searches.note(attempt)
        return self.note_sent(attempt.target, cause=cause, why=why, key=key, subsystem=subsystem)

    def note_sent(
        self, target: Target, *, cause: AttemptCause, why: str = "", key: str = "", subsystem: str | None = None
    ) -> SentAttempt:
        """Note that something is about to be sent to a target: it may cost money from then on."""
        sent = self.attempts.send(target, cause=cause, why=why, key=key)
        if self.services.telemetry is not None and (details := self.details) is not None:
            details.sent(target)
        begun = PendingCall(
            self.request_id,
            self.started_at,
            self.request.dialect,
            target.provider.id,
            target.provider.row.dialect,
            self.request.model,
            target.model,
            self.streamed,
            self.attempts.count,
            self.operation,
            self.key_id,
            None if subsystem is None else self.without_key(subsystem),
            self.tags,
            session=self.labels.session or None,
            agent=self.labels.agent or None,
            repository=self.labels.repository or None,
        )
        self.services.journal.begin(begun, target)
        return sent

    def without_key(self, text: str) -> str:
        """Return a word of the request, such as the name of a subsystem, without the client's key."""
        secrets = self.secrets()
        return secrets_of(secrets).in_text(text) if any(secret and secret in text for secret in secrets) else text

    def _without_known_key(self, text: str) -> str:
        # Without an account a key may be any word, such as "any", and a name may hold it.
        known = self.key_id is not None or any(map(looks_like_key, self.secrets()))
        return self.without_key(text) if known else text

    def login_secrets(self) -> tuple[str, ...]:
        """Return what of the client's own login nothing may keep: all of one that was sent, and else what looks like a key."""
        if self.login is None:
            return ()
        return self.login.secrets if self.logins else self.login.keys

    def secrets(self) -> tuple[str, ...]:
        """Return what no error of this call may quote."""
        own = (self.client_key,) if self.login is None else (self.client_key, *self.login.secrets)
        return own if self.payments is None else (*own, *self.payments.secrets)

    def clean(self, error: BardoError) -> None:
        """Take secrets, and more text than a person reads, out of an error of this call."""
        self.services.clean(error, self.secrets())

    def cleaner(self) -> Callable[[BardoError], None]:
        """Return what cleans an error and does not hold this call: a call in a circle of references waits for the garbage collector."""
        return partial(self.services.clean, extra_secrets=self.secrets())

    async def final(self, problem: BardoError, model: str) -> BardoError:
        """Return the error with which a call for `model` ends, cleaned: it says that it was paid for where it was."""
        final = problem if self.payments is None else self.payments.final(problem)
        await self.services.directory.suggest(final, model)
        self.clean(final)
        final.request_id = self.request_id
        return final

    def write(self, row: LogRow) -> None:
        """Write the call's row, or hold it until `judge` where the answer is judged."""
        self.logged = True
        if self.awaits_verdict:
            self._unjudged = row
        else:
            self.services.journal.write(row)

    def judge(self, *, escalated: bool) -> None:
        """Write the row of a call of a cascade. Where it was `escalated`, all that it cost is the cost of an escalation."""
        row, self._unjudged = self._unjudged, None
        if row is None:
            return
        if escalated:
            parts = as_part(self.cost, "escalation").parts
            row = msgspec.structs.replace(row, cost_parts=parts or None)
        self.services.journal.write(row)

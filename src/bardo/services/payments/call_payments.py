"""The payments of one call: in which order its ways to pay are tried, and that none is paid for twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from bardo.accounting.cost import estimate
from bardo.accounting.payments import Method, Payer, payment_order
from bardo.adapters.net.calls import Call, Deadlines, Reply, Transport
from bardo.adapters.net.keys import Keyring
from bardo.planning.route import Provider
from bardo.services.facts.health import HealthKeeper
from bardo.services.payments.payer import PaymentOrder, Payments, Send
from bardo.services.payments.problems import unsettled
from bardo.values.error_cleaning import clean_error
from bardo.values.error_kinds import RETRYABLE_STATUSES
from bardo.values.errors import BardoError, ProviderError
from bardo.values.payments import PaymentRefused, PaymentUnsettled
from bardo.values.secrets import secrets_of

if TYPE_CHECKING:
    from bardo.planning.attempt import Attempt
    from bardo.services.facts.price_book import PriceBook
    from bardo.services.payments.ledger import LedgerEntry
    from bardo.values.request import Request

Refusal = Callable[[Reply, Provider, float], Awaitable[ProviderError]]

PAYMENT_REQUIRED = 402
_NOT_PAID = frozenset({401, PAYMENT_REQUIRED})
"""Statuses of a provider that wants to be paid in another way."""


class _Limits(Protocol):
    @property
    def deadlines(self) -> Deadlines: ...


class PaidCallContext(Protocol):
    """What a call that is paid for needs of whoever runs it."""

    transport: Transport
    keyring: Keyring
    health: HealthKeeper
    clock: Callable[[], float]

    @property
    def limits(self) -> _Limits: ...


class CallPayments:
    """The payments of one call. `payer` and `estimate` (nano-dollars) are set before each attempt.

    `made` are its payments, oldest first, and `secrets` what of them nobody may quote. `refused` says why the wallet did not pay where
    another way was taken.
    """

    def __init__(self, payments: Payments, request_id: str) -> None:
        self.payer = Payer()
        self.estimate: int | None = None
        self.made: list[LedgerEntry] = []
        self.secrets: tuple[str, ...] = ()
        self.refused = ""
        self._payments = payments
        self._request_id = request_id
        self._purchases: set[str] = set()
        self._open = ""
        self._taken = 0

    def order(self, context: PaidCallContext, provider: Provider) -> tuple[Method, ...]:
        """Return the ways in which a call to a provider is paid for, in order; none where it is sent as ever."""
        row = provider.row
        if "x402" not in row.payment:
            return ()
        spent = context.health.balances.is_spent(provider.id, "diem", context.clock())
        diem_left = "diem" in row.payment and context.keyring.has(row) and not spent
        return payment_order(
            self._payments.wallet.order,
            row.payment,
            has_key=context.keyring.has(row),
            has_wallet=True,
            diem_left=diem_left,
        )

    async def send(
        self,
        context: PaidCallContext,
        provider: Provider,
        call: Call,
        key: str,
        methods: tuple[Method, ...],
        refusal: Refusal,
    ) -> Reply:
        """Send a call to a provider, and pay for it in the first way that works; `key` is the label of its key, where it has several.

        Raises PaymentRefused and PaymentUnsettled.
        """
        for method in methods[:-1]:
            try:
                reply = await self._by(method, context, provider, call, key, refusal)
            except PaymentRefused as problem:
                self.refused = problem.message
                continue
            if reply.status not in _NOT_PAID:
                return reply
            await reply.close()
        return await self._by(methods[-1], context, provider, call, key, refusal)

    async def _by(
        self, method: Method, context: PaidCallContext, provider: Provider, call: Call, key: str, refusal: Refusal
    ) -> Reply:
        async def send(one: Call) -> Reply:
            return await context.transport.send(one, context.limits.deadlines)

        if method != "wallet":
            return await send(context.keyring.sign(call, provider, clock=context.clock, key=key))
        keyless = msgspec.structs.replace(
            provider, row=msgspec.structs.replace(provider.row, auth="none", key_variables=())
        )
        reply = await send(context.keyring.sign(call, keyless, clock=context.clock))
        if reply.status != PAYMENT_REQUIRED:
            return reply
        try:
            self._check(call, provider)
            paid, entry = await self._pay(call, reply, send)
        finally:
            await reply.close()
        if paid.status >= 300:
            try:
                raise await self._unanswered(paid, entry, provider, refusal)
            finally:
                await paid.close()
        return paid

    def _check(self, call: Call, provider: Provider) -> None:
        """Raise PaymentUnsettled for what this call paid for before, and PaymentRefused while one of its payments is open."""
        if self._payments.purchase_of(call) in self._purchases:
            raise unsettled(self.made[-1], "the payment was made, and the same was asked once more")
        if self._open:
            message = f"{provider.id} was not paid: payment {self._open} of the same call is open"
            raise PaymentRefused(message, hint="bardo payments list --open shows it", provider=provider.id)

    async def _pay(self, call: Call, reply: Reply, send: Send) -> tuple[Reply, LedgerEntry]:
        order = PaymentOrder(
            call=call, request_id=self._request_id, payer=self.payer, estimate=self.estimate, note=self._note
        )
        try:
            return await self._payments.pay(order, reply, send)
        except PaymentUnsettled as problem:
            if problem.payment is not None:
                self._open = problem.payment.id
            raise

    def _note(self, entry: LedgerEntry, secrets: tuple[str, ...]) -> None:
        """Keep a payment, before its signature leaves and when more is known of it."""
        self.made = [*(one for one in self.made if one.payment_id != entry.payment_id), entry]
        self._purchases.add(entry.purchase)
        self.secrets = (*self.secrets, *secrets)

    async def _unanswered(
        self, reply: Reply, entry: LedgerEntry, provider: Provider, refusal: Refusal
    ) -> ProviderError:
        """Return the error of a call that was paid for and is answered with an error, without the payment's signature.

        What the caller must change is told in the provider's own words. Else the status is 402, which clients do not try again: another
        call would be another payment.
        """
        if entry.state != "settled":
            self._open = entry.payment_id
        said = await refusal(reply, provider, entry.changed_at)
        clean_error(said, secrets_of(self.secrets), now=entry.changed_at)
        if 400 <= reply.status < 500 and reply.status not in (*RETRYABLE_STATUSES, PAYMENT_REQUIRED):
            return said
        words = entry.note if reply.status == PAYMENT_REQUIRED else f"status {reply.status}: {said.message}"
        problem = unsettled(entry, words)
        problem.__cause__ = said
        return problem

    def final(self, problem: BardoError) -> BardoError:
        """Return the error with which a call ends: once it was paid for, one that clients do not answer with another try."""
        again = isinstance(problem, ProviderError) and problem.status in RETRYABLE_STATUSES
        if not self.made or not again:
            return problem
        wrapped = unsettled(self.made[-1], problem.message)
        wrapped.__cause__ = problem
        return wrapped

    def fields(self) -> dict[str, Any] | None:
        """Return what the receipt says of the call's payments; None where there is nothing to say."""
        if not self.made:
            return {"method": "prepaid", "refused": self.refused} if self.refused else None
        last = self.made[-1].payment.fields()
        earlier = [entry.payment.fields() for entry in self.made[:-1]]
        return {"method": "wallet", **last, **({"earlier": earlier} if earlier else {})}

    def take_nanos(self) -> int:
        """Return what was paid, or may have been, since this was last asked: the cost of the attempt that ends, in nano-dollars."""
        paid = sum(entry.nanos for entry in self.made if entry.state != "released")
        taken, self._taken = paid - self._taken, paid
        return taken

    def expect(self, attempt: Attempt, request: Request, prices: PriceBook, now: float) -> None:
        """Work out what an attempt may cost at most by the prices that are known, where its provider asks for a payment."""
        target = attempt.target
        if "x402" in target.provider.row.payment:
            price = prices.price(target.provider, target.model, now)
            # A token has about four characters of prose, and three of code.
            self.estimate = estimate(price, len(attempt.wire.body) // 3, request.max_output_tokens)

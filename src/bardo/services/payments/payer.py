"""Pay for calls: one payment for each purchase, on disk before its signature leaves, and never a second one while the first is open.

The ways to pay of one call are tried in order, and none is paid for twice.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from bardo.accounting.cost import estimate
from bardo.accounting.payments import (
    Method,
    Payer,
    PaymentRules,
    Quote,
    Spending,
    cap_refusal,
    dollars,
    payment_order,
    quotes,
)
from bardo.adapters.net.calls import Call, Deadlines, Reply, Transport
from bardo.adapters.net.keys import Keyring
from bardo.adapters.stores.database.problems import DatabaseProblem
from bardo.planning.route import Provider
from bardo.services.facts.health import HealthKeeper
from bardo.services.payments.challenge import Challenge, read_challenge, read_objection, read_settlement
from bardo.services.payments.network import PaymentNetworks
from bardo.services.payments.signer import Authorization, Signer
from bardo.values.error_cleaning import clean_error, printable
from bardo.values.errors import RETRYABLE_STATUSES, BardoError, MalformedReply, ProviderError, Unavailable
from bardo.values.payments import PaymentRefused, PaymentState, PaymentUnsettled
from bardo.values.secrets import secrets_of

if TYPE_CHECKING:
    from bardo.planning.attempt import Attempt
    from bardo.services.facts.price_book import PriceBook
    from bardo.services.payments.ledger import Ledger, LedgerEntry
    from bardo.values.request import Request


PAYING_HEADERS = ("payment-signature", "x-payment")
_HOW_TO_LOOK = "bardo payments list --open shows it, bardo payments reconcile asks the network"


Send = Callable[[Call], Awaitable[Reply]]
Result = TypeVar("Result")

_log = logging.getLogger("bardo.payments")

_CHALLENGE_BYTES = 256 * 1024
_POLL_SECONDS = 0.05


class Wallet(msgspec.Struct, frozen=True, kw_only=True):
    """The parts that make payments. `order` are the ways to pay; a call waits `wait_seconds` for another's payment for the same."""

    signer: Signer
    rules: PaymentRules
    order: tuple[Method, ...]
    ledger_path: Path | str
    wait_seconds: float


class PaymentOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A call to pay for: as it was sent, for whom, and its highest expected cost.

    `note` gets the payment, and the secrets in it, before its signature leaves, and again when more is known.
    """

    call: Call
    request_id: str
    payer: Payer
    estimate: int | None
    note: Callable[[Any, tuple[str, ...]], None]


class Payments:
    """Makes payments of one wallet. The ledger is opened with the first one. `clock` gives Unix time."""

    def __init__(self, wallet: Wallet, networks: PaymentNetworks, *, clock: Callable[[], float]) -> None:
        self.wallet = wallet
        self._networks = networks
        self._clock = clock
        self._ledger: Ledger | None = None
        self._opening = threading.Lock()

    def __repr__(self) -> str:
        return f"Payments({self.wallet.signer!r})"

    def of_call(self, request_id: str, tenant: str) -> CallPayments:
        """Return the payments of one call of a tenant, of which there are none so far."""
        return CallPayments(self, request_id, tenant)

    def close(self) -> None:
        """Close the ledger."""
        with self._opening:
            ledger, self._ledger = self._ledger, None
        if ledger is not None:
            ledger.close()

    async def pay(self, order: PaymentOrder, reply: Reply, send: Send) -> tuple[Reply, LedgerEntry]:
        """Pay what a reply of status 402 asks for a call, send it again, and return the reply and the payment.

        Raises PaymentRefused where nothing was paid, and PaymentUnsettled where an earlier payment for the same is open, or this one is
        now. An error of the provider after a payment that it took is in the reply.
        """
        call = order.call
        try:
            body = await reply.read(_CHALLENGE_BYTES)
        except MalformedReply as problem:
            message = f"{call.provider} was not paid: what it asks to be paid cannot be read: {problem.message}"
            raise PaymentRefused(message, hint=problem.hint, provider=call.provider) from problem
        challenge = read_challenge(reply.headers, body, call.provider)
        quote = self._quote(challenge, call.provider)
        held: list[LedgerEntry] = []
        try:
            entry = await self._reserve(order, quote, held)
            headers = await _ended(asyncio.to_thread(self._sign, challenge, quote, entry))
        except BaseException as problem:
            # Its signature, if there is one, was not sent.
            for payment in held:
                await self._noted(payment, "released", among=("reserved", "delivered"), note="not sent")
            if isinstance(problem, DatabaseProblem):
                raise _away() from problem
            raise
        order.note(entry, quotable(headers))
        paid = msgspec.structs.replace(call, headers={**call.headers, **headers})
        answered, entry = await self._send_paid(paid, entry, send, order)
        order.note(entry, ())
        return answered, entry

    def purchase_of(self, call: Call) -> str:
        """Return the digest of a request and its provider, which only this wallet can make."""
        parts = (call.provider.encode(), call.method.encode(), call.url.encode(), call.body)
        return self.wallet.signer.digest(b"purchase", *parts).hex()

    def _quote(self, challenge: Challenge, provider: str) -> Quote:
        """Return the cheapest offer that the rules allow. Raises PaymentRefused."""
        allowed, refused = quotes(challenge.offers, self.wallet.rules)
        if allowed:
            return allowed[0]
        reasons = "; ".join(dict.fromkeys(refused[:4])) or "none of its offers can be read"
        hint = "what may be paid stands under [payments] in bardo.toml: networks, assets and recipients"
        raise PaymentRefused(f"{provider} was not paid: {reasons}", hint=hint, provider=provider)

    async def _reserve(self, order: PaymentOrder, quote: Quote, held: list[LedgerEntry]) -> LedgerEntry:
        """Hold the amount back: `held` gets the payment, also where the call is cancelled meanwhile.

        Raises PaymentRefused over a cap, and PaymentUnsettled while another payment for the same is open.
        """
        purchase = self.purchase_of(order.call)
        until = self._clock() + self.wallet.wait_seconds
        reconciled = False
        while True:
            entry = await self._in_ledger(lambda ledger: self._reserved(ledger, order, quote, purchase, held))
            if held:
                return entry
            waited = self._clock() >= until
            if not reconciled and self._is_settleable(entry, waited=waited):
                reconciled = True
                await self._reconcile(entry)
            elif entry.state == "unknown" or waited:
                raise still_open(entry)
            else:
                await asyncio.sleep(_POLL_SECONDS)

    def _reserved(
        self, ledger: Ledger, order: PaymentOrder, quote: Quote, purchase: str, held: list[LedgerEntry]
    ) -> LedgerEntry:
        from bardo.services.payments.ledger import CapReached

        provider = order.call.provider

        def refusal(spent: Spending) -> tuple[str, str]:
            return cap_refusal(quote.nanos, self.wallet.rules, spent, order.payer, order.estimate)

        try:
            entry, made = ledger.reserve(
                purchase, lambda ordinal: self._entry(order, quote, purchase, ordinal), refusal
            )
        except CapReached as over:
            hint = f"the cap is payments.{over.key} in bardo.toml"
            raise PaymentRefused(f"{provider} was not paid: {over.reason}", hint=hint, provider=provider) from over
        held += [entry] if made else []
        return entry

    def _entry(self, order: PaymentOrder, quote: Quote, purchase: str, ordinal: int) -> LedgerEntry:
        from bardo.services.payments.ledger import LedgerEntry, day_of

        signer, now = self.wallet.signer, self._clock()
        payment_id = f"pay_{signer.digest(b'payment', purchase.encode(), str(ordinal).encode()).hex()[:40]}"
        return LedgerEntry(
            payment_id=payment_id,
            purchase=purchase,
            ordinal=ordinal,
            request_id=order.request_id,
            provider=order.call.provider,
            state="reserved",
            proof="bardo",
            created_at=now,
            changed_at=now,
            day=day_of(now),
            tenant=order.payer.tenant,
            subsystem=order.payer.subsystem,
            payer=signer.address,
            recipient=quote.offer.pay_to,
            network=quote.asset.network,
            asset=quote.asset.address,
            symbol=quote.asset.symbol,
            amount=str(quote.atomic),
            nanos=quote.nanos,
            nonce=signer.nonce_of(payment_id),
            valid_before=int(now) + quote.offer.seconds,
        )

    def _sign(self, challenge: Challenge, quote: Quote, entry: LedgerEntry) -> dict[str, str]:
        """Return the header that pays, once the ledger says that it may leave. Raises PaymentRefused where the amount was released."""
        wanted = Authorization(
            payer=entry.payer,
            recipient=entry.recipient,
            atomic=quote.atomic,
            valid_before=entry.valid_before,
            nonce=entry.nonce,
        )
        headers = self.wallet.signer.header(challenge, quote, wanted, entry.payment_id)
        if self._open_ledger().move(entry.payment_id, "delivered", among=("reserved",), now=self._clock()) is None:
            raise PaymentRefused(
                f"{entry.provider} was not paid: the payment was released meanwhile", provider=entry.provider
            )
        return headers

    async def _send_paid(
        self, call: Call, entry: LedgerEntry, send: Send, order: PaymentOrder
    ) -> tuple[Reply, LedgerEntry]:
        """Send a call with its payment. Raises PaymentUnsettled where no answer came, and it is not known what became of the payment."""
        try:
            reply = await send(call)
        except BardoError as problem:
            moved = await self._noted(entry, "unknown", among=("delivered",), note=type(problem).__name__)
            order.note(moved, ())
            raise unsettled(moved, f"no answer came: {problem.message}") from problem
        except BaseException:
            # Whoever cancels a call takes its payment nowhere back.
            await asyncio.shield(self._noted(entry, "unknown", among=("delivered",), note="the call was cancelled"))
            raise
        try:
            return reply, await self._judged(reply, entry, quotable(call.headers))
        except BaseException:
            await reply.close()
            raise

    async def _judged(self, reply: Reply, entry: LedgerEntry, secrets: tuple[str, ...]) -> LedgerEntry:
        """Note what the head of a reply says of its payment, without what of the payment it quotes."""
        settlement = read_settlement(reply.headers)
        words = printable(secrets_of(secrets).in_text(settlement.reason or read_objection(reply.headers)))
        note = ", ".join(part for part in ("" if reply.status < 300 else f"status {reply.status}", words) if part)
        if settlement.success:
            return await self._noted(
                entry,
                "settled",
                among=("delivered",),
                proof="provider",
                transaction=printable(settlement.transaction),
                note=note,
            )
        state: PaymentState = "settling" if reply.status < 300 else "unknown"
        note = note or "answered without proof of the payment"
        return await self._noted(
            entry, state, among=("delivered",), transaction=printable(settlement.transaction), note=note
        )

    async def _noted(
        self,
        entry: LedgerEntry,
        state: PaymentState,
        *,
        among: Sequence[PaymentState],
        proof: str = "bardo",
        transaction: str = "",
        note: str = "",
    ) -> LedgerEntry:
        """Bring a payment to a state, and return its entry.

        Where the ledger cannot be written, the payment stays as it stands there, and open: what was paid for reaches its caller all the
        same, and the payment is looked up later as after a kill.
        """

        def move(ledger: Ledger) -> LedgerEntry | None:
            return ledger.move(
                entry.payment_id,
                state,
                among=among,
                now=self._clock(),
                proof=proof,
                transaction_hash=transaction,
                note=note,
            ) or ledger.entry(entry.payment_id)

        try:
            return await self._in_ledger(move) or entry
        except Unavailable as problem:
            _log.error("the payment %s stays open: %s", entry.payment_id, problem.__cause__)
            return entry

    def _is_settleable(self, entry: LedgerEntry, *, waited: bool) -> bool:
        """Whether an open payment may be closed by looking at it: a call that is gone held it back, or its network can be asked.

        A call that has `waited` asks the network also for a payment whose process may have been killed.
        """
        from bardo.services.payments.reconcile import STALE_SECONDS

        if entry.state == "reserved":
            return self._clock() - entry.created_at > STALE_SECONDS
        return (waited or entry.state == "unknown") and self._networks.knows(entry.network)

    async def _reconcile(self, entry: LedgerEntry) -> None:
        from bardo.services.payments.reconcile import Reconciler

        try:
            ledger = await asyncio.to_thread(self._open_ledger)
            await Reconciler(ledger, self._networks, self._clock).one(entry)
        except DatabaseProblem as problem:
            raise _away() from problem

    async def _in_ledger(self, work: Callable[[Ledger], Result]) -> Result:
        """Return what `work` does in the ledger. Raises Unavailable where that cannot be read or written."""
        try:
            return await _ended(asyncio.to_thread(lambda: work(self._open_ledger())))
        except DatabaseProblem as problem:
            raise _away() from problem

    def _open_ledger(self) -> Ledger:
        """Return the ledger, opened once. Blocks."""
        with self._opening:
            if self._ledger is None:
                from bardo.services.payments.ledger import open_ledger

                self._ledger = open_ledger(self.wallet.ledger_path)
            return self._ledger


async def _ended(work: Coroutine[Any, Any, Result]) -> Result:
    """Return what `work` in a thread gives. A call that is cancelled meanwhile ends behind it: it cannot be taken back."""
    running = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


def _away() -> Unavailable:
    """Return what a caller is told while the ledger cannot be used; where that is stands in the log of the program alone."""
    message = "nothing can be paid now: the gateway's ledger of payments cannot be used"
    return Unavailable(message, hint="try again soon; the gateway's log says why")


Refusal = Callable[[Reply, Provider, float], Awaitable[ProviderError]]

PAYMENT_REQUIRED = 402
_NOT_PAID = frozenset({401, PAYMENT_REQUIRED})
"""Statuses of a provider that wants to be paid in another way."""


class _Limits(Protocol):
    @property
    def deadlines(self) -> Deadlines: ...


class PaidCallContext(Protocol):
    """The parts of the runner that a paid call needs."""

    @property
    def transport(self) -> Transport: ...
    @property
    def keyring(self) -> Keyring: ...
    @property
    def health(self) -> HealthKeeper: ...
    @property
    def clock(self) -> Callable[[], float]: ...
    @property
    def limits(self) -> _Limits: ...


class CallPayments:
    """The payments of one call. `expect` says before each attempt what it may cost.

    `made` are its payments, oldest first, and `secrets` the parts of them that may not be quoted. `refused` says why the wallet did not pay
    where another way was taken.
    """

    def __init__(self, payments: Payments, request_id: str, tenant: str) -> None:
        self.payer = Payer(tenant=tenant)
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
        """Return the ways in which a call to a provider is paid for, in order, or none if it is sent without payment."""
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
        async def send(call: Call) -> Reply:
            return await context.transport.send(call, context.limits.deadlines)

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
        self.made = [*(payment for payment in self.made if payment.payment_id != entry.payment_id), entry]
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
        error = await refusal(reply, provider, entry.changed_at)
        clean_error(error, secrets_of(self.secrets), now=entry.changed_at)
        if 400 <= reply.status < 500 and reply.status not in (*RETRYABLE_STATUSES, PAYMENT_REQUIRED):
            return error
        words = entry.note if reply.status == PAYMENT_REQUIRED else f"status {reply.status}: {error.message}"
        problem = unsettled(entry, words)
        problem.__cause__ = error
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
        """Return what the receipt says of the call's payments, or None if there is nothing to say."""
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

    def expect(
        self, attempt: Attempt, request: Request, prices: PriceBook, now: float, *, subsystem: str | None = None
    ) -> None:
        """Work out what an attempt may cost at most by the prices that are known, where its provider asks for a payment.

        `subsystem` is the part of an agent for which it is paid.
        """
        target = attempt.target
        self.payer = Payer(tenant=self.payer.tenant, subsystem=subsystem or "")
        if "x402" in target.provider.row.payment:
            price = prices.price(target.provider, target.model, now)
            # A token has about four characters of prose, and three of code.
            self.estimate = estimate(price, len(attempt.wire.body) // 3, request.max_output_tokens)


def quotable(headers: dict[str, str]) -> tuple[str, ...]:
    """Return the secrets of the header that pays, which a provider could quote: all of it, and the signature in it."""
    values = tuple(value for name, value in headers.items() if name in PAYING_HEADERS)
    payloads = [msgspec.json.decode(base64.b64decode(value)) for value in values]
    return (*values, *(payload["payload"]["signature"][2:] for payload in payloads))


def unsettled(entry: LedgerEntry, why: str) -> PaymentUnsettled:
    """Return the error of a call that was paid for, or may have been, and has no answer."""
    took = "took" if entry.state == "settled" else "may have taken"
    message = f"{entry.provider} {took} a payment of {dollars(entry.nanos)} and did not answer: {why}"
    problem = PaymentUnsettled(message, hint=f"payment {entry.payment_id}: {_HOW_TO_LOOK}", provider=entry.provider)
    problem.payment = entry.payment
    return problem


def still_open(entry: LedgerEntry) -> PaymentUnsettled:
    """Return the error of a call whose like was paid for, while it is unknown what became of that payment."""
    message = (
        f"{entry.provider} is not paid again: an earlier payment of {dollars(entry.nanos)} for the same request is open"
    )
    problem = PaymentUnsettled(message, hint=f"payment {entry.payment_id}: {_HOW_TO_LOOK}", provider=entry.provider)
    problem.payment = entry.payment
    return problem

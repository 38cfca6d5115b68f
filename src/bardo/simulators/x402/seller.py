"""A provider that is paid by each call, honest or not: it asks with 402, has a facilitator settle, and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal, TypeAlias, get_args

from bardo.simulators.delivery import Action, AwaitDisconnect, End, Head, Leave, Send
from bardo.simulators.exchange import Incoming
from bardo.simulators.fields import Fields, compact
from bardo.simulators.simulator import Simulator
from bardo.simulators.x402.authorization import Authorization, PaymentTerms, in_base64, read_authorization
from bardo.simulators.x402.network import SimulatedNetwork

SellerBehaviour: TypeAlias = Literal[
    "honest",
    # It asks for something that a careful payer refuses.
    "wrong-network",
    "wrong-asset",
    "wrong-recipient",
    "wrong-scheme",
    "too-dear",
    "negative-price",
    "long-validity",
    "malformed-challenge",
    "deep-challenge",
    "huge-challenge",
    "empty-challenge",
    # It takes the payment, and the payer does not learn it.
    "settles-then-times-out",
    "bad-gateway-after-settling",
    "hangs-up-after-settling",
    "silent-after-settling",
    "challenges-after-settling",
    "raises-price-after-settling",
    "malformed-proof",
    "answers-without-proof",
    # It takes the payment, proves it, and does not answer.
    "bad-gateway-with-proof",
    "page-with-proof",
    "cut-with-proof",
    # It does not take the payment, or not yet.
    "challenges-again",
    "raises-price",
    "refuses-the-request",
    "bad-gateway",
    "settlement-pending",
    "says-nonce-was-used",
    "claims-to-have-settled",
    "quotes-the-signature",
    # It tries to take more than it was given.
    "settles-twice",
    "settles-for-more",
    "settles-for-another",
]
SELLER_BEHAVIOURS: tuple[SellerBehaviour, ...] = get_args(SellerBehaviour)

_ELSEWHERE = "0x00000000000000000000000000000000000000EE"
_ASKS: dict[SellerBehaviour, Callable[[PaymentTerms], PaymentTerms]] = {
    "wrong-network": lambda terms: replace(terms, network="eip155:66666"),
    "wrong-asset": lambda terms: replace(terms, asset=_ELSEWHERE),
    "wrong-recipient": lambda terms: replace(terms, recipient=_ELSEWHERE),
    "wrong-scheme": lambda terms: replace(terms, scheme="upto"),
    "too-dear": lambda terms: replace(terms, amount=terms.amount * 10_000),
    "negative-price": lambda terms: replace(terms, amount=-terms.amount),
    "long-validity": lambda terms: replace(terms, seconds=10**9),
}
_TAKES = frozenset[SellerBehaviour](
    (
        "honest",
        "settles-then-times-out",
        "bad-gateway-after-settling",
        "hangs-up-after-settling",
        "silent-after-settling",
        "challenges-after-settling",
        "raises-price-after-settling",
        "malformed-proof",
        "answers-without-proof",
        "bad-gateway-with-proof",
        "page-with-proof",
        "cut-with-proof",
        "settles-twice",
    )
)
_STATUS: dict[SellerBehaviour, int] = {
    "settles-then-times-out": 504,
    "bad-gateway-after-settling": 502,
    "bad-gateway": 502,
    "refuses-the-request": 400,
    "bad-gateway-with-proof": 502,
    "quotes-the-signature": 500,
}


class PaidSimulator(Simulator):
    """A simulator whose model answers who pays, on the terms of its network.

    A call with a bearer token is on the account of that, and pays nothing. `paid_requests` are those that carried a payment.
    """

    def __init__(
        self, preset: str, network: SimulatedNetwork, behaviour: SellerBehaviour = "honest", **options: Any
    ) -> None:
        super().__init__(preset, **options)
        if behaviour not in SELLER_BEHAVIOURS:
            raise ValueError(f"no seller is called {behaviour!r}; there are: {', '.join(SELLER_BEHAVIOURS)}")
        self.network = network
        self.behaviour: SellerBehaviour = behaviour
        self.paid_requests: list[Authorization] = []
        self.pending: list[Authorization] = []

    def actions(self, incoming: Incoming) -> Iterator[Action]:
        if incoming.method != "POST" or incoming.bearer:
            return super().actions(incoming)
        authorization = read_authorization(dict(incoming.headers))
        if authorization is None:
            self.requests.append(incoming)
            return self._challenge()
        self.paid_requests.append(authorization)
        return self._answer_paid(incoming, authorization)

    def settle_pending(self) -> None:
        """Settle the payments that the facilitator has not settled yet."""
        for authorization in self.pending:
            self.network.transfer(authorization, self.network.terms)
        self.pending.clear()

    def _asked_terms(self) -> PaymentTerms:
        terms = self.network.terms
        return _ASKS[self.behaviour](terms) if self.behaviour in _ASKS else terms

    def _challenge(self, terms: PaymentTerms | None = None, why: str = "Payment required") -> Iterator[Action]:
        asked = terms or self._asked_terms()
        value: Fields = asked.challenge(why)
        if self.behaviour == "empty-challenge":
            value = {**value, "accepts": []}
        if self.behaviour == "deep-challenge":
            value = {**value, "accepts": [{"extra": _nested_list(5_000)}]}
        body = b"{" if self.behaviour == "malformed-challenge" else compact(value)
        if self.behaviour == "huge-challenge":
            body = compact({**value, "accepts": [asked.offer()] * 4_000})
        if asked.version == 1 or self.behaviour == "huge-challenge":
            return _answer(402, body)
        header = "e30x!" if self.behaviour == "malformed-challenge" else in_base64(value)
        return _answer(402, b"{}", (("payment-required", header),))

    def _answer_paid(self, incoming: Incoming, authorization: Authorization) -> Iterator[Action]:
        """Return what happens once a payment came."""
        behaviour, terms = self.behaviour, self.network.terms
        why = self.network.objection(authorization, terms)
        if why:
            return self._challenge(why=why)
        self._overreach(authorization)
        transaction = self.network.transfer(authorization, terms) if behaviour in _TAKES else ""
        if behaviour == "settles-twice":
            self.network.transfer(authorization, terms)
        match behaviour:
            case "hangs-up-after-settling":
                return iter([Leave(reset=True)])
            case "silent-after-settling":
                return iter([AwaitDisconnect()])
            case "challenges-after-settling" | "challenges-again":
                return self._challenge(why="settlement_failed")
            case "settles-for-more" | "settles-for-another":
                return self._challenge(why=self.network.refused[-1])
            case "raises-price" | "raises-price-after-settling":
                return self._challenge(replace(terms, amount=terms.amount * 2))
            case "says-nonce-was-used":
                return self._challenge(why="nonce_already_used")
        if behaviour in ("settlement-pending", "claims-to-have-settled"):
            self.pending.append(authorization)
        return self._answer_after_payment(incoming, authorization, transaction)

    def _overreach(self, authorization: Authorization) -> None:
        """Try to have more transferred than was signed for, or to somebody else."""
        if self.behaviour == "settles-for-more":
            self.network.transfer(replace(authorization, value=authorization.value * 2), self.network.terms)
        if self.behaviour == "settles-for-another":
            elsewhere = replace(self.network.terms, recipient=_ELSEWHERE)
            self.network.transfer(replace(authorization, recipient=_ELSEWHERE), elsewhere)

    def _answer_after_payment(
        self, incoming: Incoming, authorization: Authorization, transaction: str
    ) -> Iterator[Action]:
        """Return the model's answer, or the error that comes in its place, with what is said of the payment."""
        headers = self._proof(authorization, transaction)
        status = _STATUS.get(self.behaviour)
        if status is not None:
            self.requests.append(incoming)
            quoted = f" for {authorization.signature}" if self.behaviour == "quotes-the-signature" else ""
            sent = incoming.headers.get("payment-signature") or incoming.headers.get("x-payment", "")
            quoted += f" in {sent}" if quoted else ""
            return _answer(status, compact({"error": {"message": f"The seller failed{quoted}."}}), headers)
        if self.behaviour == "page-with-proof":
            self.requests.append(incoming)
            return _answer(200, b"<html>Bad Gateway</html>", headers, "text/html")
        admitted = replace(incoming, headers={**incoming.headers, "authorization": "Bearer paid"})
        actions = super().actions(admitted)
        return _with_headers(actions, headers, cut=self.behaviour == "cut-with-proof")

    def _proof(self, authorization: Authorization, transaction: str) -> tuple[tuple[str, str], ...]:
        name = "x-payment-response" if self.network.terms.version == 1 else "payment-response"
        if self.behaviour in ("honest", "bad-gateway-with-proof", "page-with-proof", "cut-with-proof", "settles-twice"):
            return ((name, in_base64(self._settlement(authorization, success=True, transaction=transaction))),)
        if self.behaviour == "settlement-pending":
            pending = self._settlement(authorization, success=False, transaction="")
            return ((name, in_base64({**pending, "errorReason": "settlement_pending"})),)
        if self.behaviour == "claims-to-have-settled":
            return ((name, in_base64(self._settlement(authorization, success=True, transaction=f"0x{'f' * 64}"))),)
        return ((name, "{"),) if self.behaviour == "malformed-proof" else ()

    def _settlement(self, authorization: Authorization, *, success: bool, transaction: str) -> Fields:
        network = self.network.terms.network
        return {"success": success, "transaction": transaction, "network": network, "payer": authorization.payer}


def _answer(
    status: int, body: bytes, headers: tuple[tuple[str, str], ...] = (), content_type: str = "application/json"
) -> Iterator[Action]:
    yield Head(status, (("content-type", content_type), *headers), len(body))
    yield Send(body)
    yield End()


def _with_headers(actions: Iterator[Action], headers: tuple[tuple[str, str], ...], *, cut: bool) -> Iterator[Action]:
    """Put headers on a reply, which may be cut off behind its head."""
    for action in actions:
        if not isinstance(action, Head):
            yield action
            continue
        yield replace(action, headers=(*action.headers, *headers))
        if cut:
            yield Leave(reset=True)
            return


def _nested_list(depth: int) -> object:
    """Return lists within lists."""
    value: object = 1
    for _ in range(min(depth, 500)):
        value = [value]
    return value

"""Providers that are paid by each call: x402's resource server, its facilitator, and the network that holds the books.

    network = SimulatedNetwork()
    with PaidSimulator("openai_chat", network, "bad-gateway-after-settling").running() as seller:
        ...  # pay it, then look at network.transfers

The network has one token, as a facilitator and a payer see it: who has how much, which nonces are used up, and the server that is asked.
Time goes on with the machine's, and `pass_time` moves it forward, so that signatures expire when a test wants it. A seller is honest or
not: it asks with 402, has a facilitator settle, and answers. Signatures (a payer's signed authorization of a transfer by EIP-3009) are
verified with `eth-account` where that is installed; elsewhere only their form is looked at.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from bardo.simulators.delivery import Action, AwaitDisconnect, End, Head, Leave, Send
from bardo.simulators.exchange import Incoming
from bardo.simulators.fields import Fields, compact, fields, text
from bardo.simulators.simulator import Simulator, in_thread
from bardo.simulators.wire import listening

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_NONCE = re.compile(r"0x[0-9a-fA-F]{64}")
_SIGNATURE = re.compile(r"0x[0-9a-fA-F]{130}")
_NUMBER = re.compile(r"[0-9]{1,78}")
_TRANSFER = [
    {"name": "from", "type": "address"},
    {"name": "to", "type": "address"},
    {"name": "value", "type": "uint256"},
    {"name": "validAfter", "type": "uint256"},
    {"name": "validBefore", "type": "uint256"},
    {"name": "nonce", "type": "bytes32"},
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentTerms:
    """A seller's terms for a call. `version` is that of x402; `domain_name` and `domain_version` are the token's."""

    amount: int = 2_500
    recipient: str = "0x00000000000000000000000000000000000000A1"
    network: str = "eip155:84532"
    asset: str = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
    domain_name: str = "USDC"
    domain_version: str = "2"
    seconds: int = 60
    scheme: str = "exact"
    version: int = 2

    @property
    def chain_id(self) -> int:
        """The number of the network in a signature."""
        return int(self.network.rpartition(":")[2])

    def offer(self) -> Fields:
        """Return the terms as one of the ways to pay that a challenge lists."""
        extra: Fields = {"name": self.domain_name, "version": self.domain_version}
        offer: Fields = {
            "scheme": self.scheme,
            "network": self.network,
            "asset": self.asset,
            "payTo": self.recipient,
            "maxTimeoutSeconds": self.seconds,
            "extra": extra,
        }
        if self.version == 1:
            named = {"eip155:84532": "base-sepolia", "eip155:8453": "base"}.get(self.network, self.network)
            words: Fields = {"resource": "https://seller.example/v1", "description": "", "mimeType": "application/json"}
            return {**offer, **words, "network": named, "maxAmountRequired": str(self.amount)}
        return {**offer, "amount": str(self.amount)}

    def challenge(self, why: str = "Payment required") -> Fields:
        """Return the challenge that asks for a payment."""
        if self.version == 1:
            return {"x402Version": 1, "error": why, "accepts": [self.offer()]}
        return {
            "x402Version": 2,
            "error": why,
            "resource": {
                "url": "https://seller.example/v1",
                "description": "An answer",
                "mimeType": "application/json",
            },
            "accepts": [self.offer()],
            "extensions": {"payment-identifier": {"info": {"required": False}, "schema": {"type": "object"}}},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorization:
    """A signed authorization as it was sent. `identifier` is the payer's own name of the payment, where it gave one."""

    payer: str
    recipient: str
    value: int
    valid_after: int
    valid_before: int
    nonce: str
    signature: str
    network: str
    identifier: str = ""

    def is_signed(self, terms: PaymentTerms) -> bool:
        """Whether the payer signed exactly this transfer of the token of `terms`."""
        packages = _packages()
        if packages is None:
            return True
        account, encode_typed_data = packages
        domain = {
            "name": terms.domain_name,
            "version": terms.domain_version,
            "chainId": terms.chain_id,
            "verifyingContract": terms.asset,
        }
        message = {
            "from": self.payer,
            "to": self.recipient,
            "value": self.value,
            "validAfter": self.valid_after,
            "validBefore": self.valid_before,
            "nonce": bytes.fromhex(self.nonce[2:]),
        }
        signed = encode_typed_data(domain, {"TransferWithAuthorization": _TRANSFER}, message)
        try:
            signer: str = account.recover_message(signed, signature=self.signature)
        except Exception:  # noqa: BLE001 - whatever the library finds wrong with it, it is not the payer's signature.
            return False
        return signer.lower() == self.payer.lower()


def _packages() -> tuple[Any, Any] | None:
    """Return what checks a signature, or None if it is not installed. What it needs raises the process's recursion limit, which stays."""
    limit = sys.getrecursionlimit()
    try:
        from eth_account import Account
        from eth_account.messages import encode_typed_data
    except ImportError:
        return None
    finally:
        sys.setrecursionlimit(limit)
    return Account, encode_typed_data


def read_authorization(headers: dict[str, str]) -> Authorization | None:
    """Return the payment that a request carries, in either version, or None if it carries none that can be read."""
    header = headers.get("payment-signature") or headers.get("x-payment")
    if not header:
        return None
    try:
        sent = fields(json.loads(base64.b64decode(header, validate=True)))
    except (ValueError, binascii.Error):
        return None
    payload = fields(sent.get("payload"))
    authorization = fields(payload.get("authorization"))
    network = text(fields(sent.get("accepted")).get("network")) or text(sent.get("network"))
    numbers = [text(authorization.get(name)) for name in ("value", "validAfter", "validBefore")]
    addresses = [text(authorization.get(name)) for name in ("from", "to")]
    nonce, signature = text(authorization.get("nonce")), text(payload.get("signature"))
    well_formed = all(map(_NUMBER.fullmatch, numbers)) and all(map(_ADDRESS.fullmatch, addresses))
    if not well_formed or not _NONCE.fullmatch(nonce) or not _SIGNATURE.fullmatch(signature):
        return None
    info = fields(fields(fields(sent.get("extensions")).get("payment-identifier")).get("info"))
    return Authorization(
        payer=addresses[0],
        recipient=addresses[1],
        value=int(numbers[0]),
        valid_after=int(numbers[1]),
        valid_before=int(numbers[2]),
        nonce=nonce,
        signature=signature,
        network=network,
        identifier=text(info.get("id")),
    )


def in_base64(value: Fields) -> str:
    """Write JSON as a header of x402 carries it."""
    return base64.b64encode(compact(value)).decode()


_LOOPBACK = "127.0.0.1"
_AUTHORIZATION_STATE = "0xe94a0102"
RICH = 10**12


@dataclass(frozen=True, slots=True)
class Transfer:
    """One transfer that the network made."""

    payer: str
    recipient: str
    value: int
    nonce: str
    transaction: str


class SimulatedNetwork:
    """The books of a network. A payer without an entry has `balance` in the token's smallest unit."""

    def __init__(self, terms: PaymentTerms | None = None, *, balance: int = RICH) -> None:
        self.terms = terms or PaymentTerms()
        self.transfers: list[Transfer] = []
        self.refused: list[str] = []
        self._balance = balance
        self._used: set[tuple[str, str]] = set()
        self._ahead = 0.0
        self._lock = threading.Lock()

    @property
    def paid(self) -> int:
        """All that was transferred, in the token's smallest unit."""
        return sum(transfer.value for transfer in self.transfers)

    def pass_time(self, seconds: float) -> None:
        """Move the network's time forward."""
        self._ahead += seconds

    def now(self) -> float:
        """Return the network's time."""
        return time.time() + self._ahead

    def objection(self, authorization: Authorization, terms: PaymentTerms) -> str:
        """Return why an authorization does not pay `terms`, in x402's words; empty where it does. A facilitator verifies so."""
        if authorization.recipient.lower() != terms.recipient.lower():
            return "invalid_exact_evm_payload_recipient_mismatch"
        if authorization.value < terms.amount:
            return "invalid_exact_evm_payload_authorization_value"
        if not authorization.valid_after <= self.now() < authorization.valid_before:
            return "invalid_exact_evm_payload_authorization_valid_before"
        if self.is_used(authorization.payer, authorization.nonce):
            return "nonce_already_used"
        if self._balance - self.paid < authorization.value:
            return "insufficient_funds"
        return "" if authorization.is_signed(terms) else "invalid_exact_evm_payload_signature"

    def transfer(self, authorization: Authorization, terms: PaymentTerms) -> str:
        """Make the transfer, once, and give its hash; empty where it is refused. A facilitator settles so."""
        with self._lock:
            why = self.objection(authorization, terms)
            if why:
                self.refused.append(why)
                return ""
            self._used.add((authorization.payer.lower(), authorization.nonce.lower()))
            transaction = f"0x{len(self.transfers) + 1:064x}"
            self.transfers.append(
                Transfer(
                    authorization.payer, authorization.recipient, authorization.value, authorization.nonce, transaction
                )
            )
            return transaction

    def is_used(self, payer: str, nonce: str) -> bool:
        """Whether a nonce of a payer is used up."""
        return (payer.lower(), nonce.lower()) in self._used

    @contextmanager
    def running(self) -> Iterator[str]:
        """Serve JSON-RPC in a thread; gives the address."""
        with in_thread(lambda: listening(self._actions, _LOOPBACK, 0), "simulated-network") as address:
            yield address

    def _actions(self, incoming: Incoming) -> Iterator[Action]:
        body = incoming.fields
        answer: Fields = {"jsonrpc": "2.0", "id": body.get("id"), **self._answer(text(body.get("method")), body)}
        data = compact(answer)
        yield Head(200, (("content-type", "application/json"),), len(data))
        yield Send(data)
        yield End()

    def _answer(self, method: str, body: Fields) -> Fields:
        params = body.get("params")
        first = params[0] if isinstance(params, list) and params else None
        if method == "eth_chainId":
            return {"result": hex(self.terms.chain_id)}
        if method == "eth_getBlockByNumber" and first in ("latest", "finalized"):
            return {"result": {"number": "0x10", "timestamp": hex(int(self.now()))}}
        if method == "eth_call":
            return {"result": self._answer_call(fields(first))}
        return {"error": {"code": -32601, "message": f"the method {method} does not exist"}}

    def _answer_call(self, call: Fields) -> str:
        """Return the token's answer, or `0x` for any other call."""
        data = text(call.get("data"))
        if text(call.get("to")).lower() != self.terms.asset.lower() or not data.startswith(_AUTHORIZATION_STATE):
            return "0x"
        payer, nonce = f"0x{data[34:74]}", f"0x{data[74:138]}"
        return f"0x{int(self.is_used(payer, nonce)):064x}"


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
        """Return the model's answer, or the error that comes in its place, with the report on the payment."""
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


__all__ = [
    "SELLER_BEHAVIOURS",
    "Authorization",
    "PaidSimulator",
    "PaymentTerms",
    "SellerBehaviour",
    "SimulatedNetwork",
    "Transfer",
]

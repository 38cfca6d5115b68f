"""A network with one token, as a facilitator and a payer see it: who has how much, which nonces are used up, and the server that is asked.

Time goes on with the machine's, and `pass_time` moves it forward, so that signatures expire when a test wants it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bardo.simulators.delivery import Action, End, Head, Send
from bardo.simulators.exchange import Incoming
from bardo.simulators.fields import Fields, compact, fields, text
from bardo.simulators.threads import in_thread
from bardo.simulators.wire import listening
from bardo.simulators.x402.authorization import Authorization, PaymentTerms

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
    """The books of a network. A payer that nobody gave anything has `balance` in the token's smallest unit."""

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
        return sum(one.value for one in self.transfers)

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
        """Return what the token answers; what is no token answers nothing."""
        data = text(call.get("data"))
        if text(call.get("to")).lower() != self.terms.asset.lower() or not data.startswith(_AUTHORIZATION_STATE):
            return "0x"
        payer, nonce = f"0x{data[34:74]}", f"0x{data[74:138]}"
        return f"0x{int(self.is_used(payer, nonce)):064x}"

"""The errors of payments, and what of a payment no error may quote."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import msgspec

from bardo.accounting.payments import dollars
from bardo.values.payments import PaymentUnsettled

if TYPE_CHECKING:
    from bardo.services.payments.ledger import LedgerEntry

PAYING_HEADERS = ("payment-signature", "x-payment")
_HOW_TO_LOOK = "bardo payments list --open shows it, bardo payments reconcile asks the network"


def quotable(headers: dict[str, str]) -> tuple[str, ...]:
    """Return what a provider could quote of the header that pays, and nobody may see: all of it, and the signature in it."""
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
    """Return the error of a call whose like was paid for, while nobody knows what became of that payment."""
    message = (
        f"{entry.provider} is not paid again: an earlier payment of {dollars(entry.nanos)} for the same request is open"
    )
    problem = PaymentUnsettled(message, hint=f"payment {entry.payment_id}: {_HOW_TO_LOOK}", provider=entry.provider)
    problem.payment = entry.payment
    return problem

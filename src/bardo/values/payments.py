"""A payment for a call, and how one can fail.

ProviderError
├── PaymentRefused      402  the provider asks for a payment that bardo does not make; nothing was paid
└── PaymentUnsettled    402  a payment was sent, and no answer came for it, or it is unknown whether it was taken
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from bardo.values.errors import Kind, ProviderError

PaymentState = Literal["reserved", "delivered", "settling", "settled", "unknown", "released"]
"""How far a payment is: its amount is held back; its signature may have left; the answer came before the proof; paid for certain; nobody
knows; certainly not paid. Only what is released counts against no cap."""
OPEN_STATES: tuple[PaymentState, ...] = ("reserved", "delivered", "settling", "unknown")


class Payment(msgspec.Struct, frozen=True, kw_only=True):
    """One payment as the receipt of its call shows it. `amount` is in the token's smallest unit, `nanos` in nano-dollars."""

    id: str
    state: PaymentState
    nanos: int
    amount: str
    asset: str
    network: str
    recipient: str
    transaction: str = ""

    def fields(self) -> dict[str, Any]:
        """Return the payment as JSON shows it."""
        return {**msgspec.structs.asdict(self), "usd": self.nanos / 10**9}


class PaymentRefused(ProviderError):
    """The provider asks for a payment that bardo does not make: a rule, a cap or its own form is against it. Nothing was paid."""

    status = 402
    kind: Kind = "billing"


class PaymentUnsettled(ProviderError):
    """A payment was sent, and no answer came for it, or it is not known yet whether it was taken. bardo does not pay again for it."""

    status = 402
    kind: Kind = "billing"
    payment: Payment | None = None

"""Settle the open payments of the ledger by the state that the networks report for each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from bardo.services.payments.ledger import Ledger, LedgerEntry
from bardo.services.payments.network import NetworkUnavailable, PaymentNetworks, Verdict
from bardo.values.errors import ConfigError
from bardo.values.payments import OPEN_STATES, PaymentState

STALE_SECONDS = 60.0
"""After so long an amount that is only held back belongs to a process that is gone: signing takes milliseconds."""

_CLOSED: dict[Verdict, tuple[PaymentState, str]] = {
    "paid": ("settled", "network"),
    "paid_at_latest": ("settled", "latest"),
    "unpaid": ("released", "network"),
}


class ReconciledPayment(msgspec.Struct, frozen=True, kw_only=True):
    """A payment that was looked at: as the ledger has it now, its state before, and why nothing more is known of it."""

    entry: LedgerEntry
    before: PaymentState
    why: str = ""


class Reconciler:
    """Looks up payments at their networks, and brings the ledger to what it finds. `clock` gives Unix time."""

    def __init__(self, ledger: Ledger, networks: PaymentNetworks, clock: Callable[[], float]) -> None:
        self._ledger = ledger
        self._networks = networks
        self._clock = clock

    async def all(self) -> list[ReconciledPayment]:
        """Look up every payment of which its network has not said what became of it."""
        return [await self.one(entry) for entry in await asyncio.to_thread(self._ledger.unproven)]

    async def one(self, entry: LedgerEntry) -> ReconciledPayment:
        """Look up one payment."""
        if entry.state == "reserved":
            return await self._stale(entry)
        try:
            verdict = await self._networks.verdict(entry)
        except NetworkUnavailable as problem:
            return ReconciledPayment(entry=entry, before=entry.state, why=str(problem))
        if verdict == "open":
            return ReconciledPayment(
                entry=entry, before=entry.state, why="not paid so far, and its signature is still valid"
            )
        state, proof = _CLOSED[verdict]
        note = "paid according to the network" if state == "settled" else "expired without being paid"
        moved = await asyncio.to_thread(
            self._ledger.move,
            entry.payment_id,
            state,
            among=(*OPEN_STATES, "settled"),
            now=self._clock(),
            proof=proof,
            note=note,
        )
        return ReconciledPayment(entry=moved or entry, before=entry.state)

    async def _stale(self, entry: LedgerEntry) -> ReconciledPayment:
        """Release an amount that was held back and never signed for: who still means to sign finds that it is released, and does not."""
        now = self._clock()
        if now - entry.created_at < STALE_SECONDS:
            return ReconciledPayment(entry=entry, before=entry.state, why="a call is about to pay it")
        note = "never signed for"
        moved = await asyncio.to_thread(
            self._ledger.move, entry.payment_id, "released", among=("reserved",), now=now, note=note
        )
        return ReconciledPayment(entry=moved or entry, before=entry.state)


def resolve_by_hand(ledger: Ledger, payment_id: str, *, paid: bool, now: float) -> LedgerEntry:
    """Bring a payment to what its operator knows of it. Raises ConfigError for one that is not open, or may still be paid."""
    entry = ledger.entry(payment_id)
    if entry is None or entry.state not in OPEN_STATES:
        raise ConfigError(f"no open payment {payment_id!r}", hint="bardo payments list --open shows them")
    if not paid and entry.state != "reserved" and now <= entry.valid_before:
        seconds = int(entry.valid_before - now) + 1
        raise ConfigError(
            f"the signature of {payment_id} is still valid, so that it may yet be paid",
            hint=f"wait {seconds} seconds, and look at the wallet again",
        )
    state: PaymentState = "settled" if paid else "released"
    moved = ledger.move(
        payment_id, state, among=OPEN_STATES, now=now, proof="operator", note="resolved by the operator"
    )
    if moved is None:
        raise ConfigError(f"payment {payment_id!r} is not open any more", hint="bardo payments list shows it")
    return moved

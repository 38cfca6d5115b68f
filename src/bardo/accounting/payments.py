"""Which payments may be made: how a call is paid for, what a provider's offer must hold, and what may be spent.

Pure: what was spent so far and the time are arguments. Amounts are nano-dollars unless they are called atomic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from bardo.catalog.payment_rows import PaymentAsset, payment_asset

Method = Literal["diem", "wallet", "prepaid"]
"""How a call is paid for: the provider's daily allocation, a payment of its own from the wallet, or the balance behind an API key."""
METHODS: tuple[Method, ...] = ("diem", "wallet", "prepaid")

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_AMOUNT = re.compile(r"[1-9][0-9]{0,38}")
_SCHEME = "exact"
SHORTEST_SECONDS = 5
LONGEST_SECONDS = 3600
"""How long a signature may be valid. A signature that stays valid holds its amount back until it is used or expires."""
_EVERY_TRANSFER = "eip3009"


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """One way to pay that a provider offers, as it says it: `amount` is atomic, `transfer` the method of its transfer."""

    scheme: str
    network: str
    asset: str
    amount: str
    pay_to: str
    seconds: int
    transfer: str = _EVERY_TRANSFER
    position: int = 0


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """An offer that bardo can pay: its token is known, and its amount and recipient can be read."""

    offer: Offer
    asset: PaymentAsset
    atomic: int
    nanos: int


class PaymentRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of payments: amounts, payees and networks. Caps are nano-dollars; those of tenants and subsystems are for a day.

    `recipients` are addresses in lower case. `over_estimate` is how many times the estimated cost of a call its price may be; 0: no bound.
    """

    per_call: int
    per_day: int
    recipients: frozenset[str] = frozenset()
    networks: frozenset[str] = frozenset()
    symbols: frozenset[str] = frozenset()
    tenants: Mapping[str, int] = {}
    subsystems: Mapping[str, int] = {}
    over_estimate: float = 0.0


class Payer(msgspec.Struct, frozen=True, kw_only=True):
    """For whom a call is paid: its tenant and the subsystem of the agent, empty where there is none."""

    tenant: str = ""
    subsystem: str = ""


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """The amounts paid or held back today: by all, by the tenant and by the subsystem of one call."""

    day: int = 0
    tenant: int = 0
    subsystem: int = 0


def payment_order(
    order: Sequence[Method], traits: Iterable[str], *, has_key: bool, has_wallet: bool, diem_left: bool
) -> tuple[Method, ...]:
    """Return the ways in which a call to a provider may be paid for, in the order they are tried.

    `traits` are the provider's: `diem`, and `x402` for a wallet. A provider without `x402` is asked with its key, as ever.
    """
    offered = frozenset(traits)
    possible = {
        "diem": has_key and diem_left and "diem" in offered,
        "wallet": has_wallet and "x402" in offered,
        "prepaid": has_key,
    }
    return tuple(method for method in order if possible[method])


def quotes(offers: Sequence[Offer], rules: PaymentRules) -> tuple[list[Quote], list[str]]:
    """Return the offers that the rules allow whatever was spent, cheapest first, and why each other one is refused."""
    allowed, refused = [], []
    for offer in offers:
        reason, quote = _parse_offer(offer)
        if quote is not None:
            reason = _refusal(quote, rules)
        if quote is not None and not reason:
            allowed.append(quote)
        else:
            refused.append(reason)
    return sorted(allowed, key=lambda quote: quote.nanos), refused


def _parse_offer(offer: Offer) -> tuple[str, Quote | None]:
    """Return an offer with its token and its amount read, or why it cannot be paid."""
    if offer.scheme != _SCHEME:
        return f"its scheme is {_quoted(offer.scheme)}, and bardo pays by {_SCHEME!r}", None
    if offer.transfer != _EVERY_TRANSFER:
        return f"it asks for a transfer by {_quoted(offer.transfer)}, and bardo signs those of EIP-3009", None
    asset = payment_asset(offer.network, offer.asset)
    if asset is None:
        return f"the token {_quoted(offer.asset)} on {_quoted(offer.network)} is not known", None
    if not _ADDRESS.fullmatch(offer.pay_to):
        return f"its recipient {_quoted(offer.pay_to)} is no address", None
    if not _AMOUNT.fullmatch(offer.amount):
        return f"its amount {_quoted(offer.amount)} is no whole number above 0", None
    atomic = int(offer.amount)
    return "", Quote(offer=offer, asset=asset, atomic=atomic, nanos=asset.nanos(atomic))


def _refusal(quote: Quote, rules: PaymentRules) -> str:
    """Return which rule refuses a quote, whatever was spent; empty where none does."""
    if quote.asset.network not in rules.networks:
        return f"{quote.asset.network} ({quote.asset.title}) is not among the networks that may be paid on"
    if quote.asset.symbol not in rules.symbols:
        return f"{quote.asset.symbol} is not among the assets that may be paid in"
    if quote.offer.pay_to.lower() not in rules.recipients:
        return f"the recipient {quote.offer.pay_to} is not among those that may be paid"
    if not SHORTEST_SECONDS <= quote.offer.seconds <= LONGEST_SECONDS:
        bounds = f"{SHORTEST_SECONDS} to {LONGEST_SECONDS}"
        return f"a signature for it would be valid for {quote.offer.seconds} seconds, and {bounds} are allowed"
    return ""


def cap_refusal(
    nanos: int, rules: PaymentRules, spent: Spending, payer: Payer, estimate: int | None = None
) -> tuple[str, str]:
    """Return why a payment goes over a cap, and the key of `[payments]` that holds it; both empty where it does not.

    `estimate` is what the call was expected to cost at most, or None if it is unknown.
    """
    if nanos > rules.per_call:
        return f"{dollars(nanos)} is above the cap of a call, {dollars(rules.per_call)}", "usd_per_call"
    if estimate is not None and rules.over_estimate and nanos > estimate * rules.over_estimate:
        times = f"{rules.over_estimate:g} times what it was expected to cost, {dollars(estimate)}"
        return f"{dollars(nanos)} is more than {times}", "most_of_estimate"
    if spent.day + nanos > rules.per_day:
        return _over("the cap of a day", nanos, spent.day, rules.per_day), "usd_per_day"
    cap = rules.tenants.get(payer.tenant)
    if cap is not None and spent.tenant + nanos > cap:
        return _over(f"the daily cap of tenant {payer.tenant!r}", nanos, spent.tenant, cap), "tenants"
    cap = rules.subsystems.get(payer.subsystem)
    if cap is not None and spent.subsystem + nanos > cap:
        return _over(f"the daily cap of subsystem {payer.subsystem!r}", nanos, spent.subsystem, cap), "subsystems"
    return "", ""


def _over(name: str, nanos: int, spent: int, cap: int) -> str:
    return f"{dollars(nanos)} beside {dollars(spent)} spent today is above {name}, {dollars(cap)}"


def dollars(nanos: int) -> str:
    """Return an amount as people read it."""
    text = f"{nanos // 10**9}.{nanos % 10**9:09d}".rstrip("0")
    whole, _, cents = text.partition(".")
    return f"${whole}.{cents.ljust(2, '0')}"


def _quoted(text: str) -> str:
    """Return a word of a provider as a message may quote it."""
    return repr(text if len(text) <= 80 else f"{text[:77]}...")

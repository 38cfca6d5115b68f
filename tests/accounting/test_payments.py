"""Which payments may be made."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.accounting.payments import (
    METHODS,
    Offer,
    Payer,
    PaymentRules,
    Spending,
    cap_refusal,
    dollars,
    payment_order,
    quotes,
)

USDC = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
SELLER = "0x00000000000000000000000000000000000000A1"
RULES = PaymentRules(
    per_call=10_000_000,
    per_day=100_000_000,
    recipients=frozenset({SELLER.lower()}),
    networks=frozenset({"eip155:8453"}),
    symbols=frozenset({"USDC"}),
    tenants={"a": 20_000_000},
    subsystems={"dream": 5_000_000},
    over_estimate=2.0,
)
OFFER = Offer(scheme="exact", network="eip155:8453", asset=USDC, amount="2500", pay_to=SELLER, seconds=60)


def test_the_cheapest_offer_that_is_allowed_goes_first() -> None:
    dear = msgspec.structs.replace(OFFER, amount="9000", position=0)
    cheap = msgspec.structs.replace(OFFER, amount="1000", position=1)
    elsewhere = msgspec.structs.replace(OFFER, amount="1", pay_to=USDC, position=2)
    allowed, refused = quotes((dear, cheap, elsewhere), RULES)
    assert [quote.nanos for quote in allowed] == [1_000_000, 9_000_000]
    assert refused == [f"the recipient {USDC} is not among those that may be paid"]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"scheme": "upto"}, "scheme"),
        ({"transfer": "permit2"}, "EIP-3009"),
        ({"network": "eip155:1"}, "not known"),
        ({"asset": SELLER}, "not known"),
        ({"amount": "0"}, "amount"),
        ({"amount": "-5"}, "amount"),
        ({"amount": "1e3"}, "amount"),
        ({"amount": "２５"}, "amount"),
        ({"amount": "9" * 400}, "amount"),
        ({"pay_to": "0x1"}, "no address"),
        ({"seconds": 1}, "seconds"),
        ({"seconds": 10**9}, "seconds"),
        ({"seconds": -1}, "seconds"),
    ],
)
def test_an_offer_that_cannot_or_may_not_be_paid_is_refused_with_its_reason(
    changes: dict[str, object], word: str
) -> None:
    allowed, (reason,) = quotes((msgspec.structs.replace(OFFER, **changes),), RULES)
    assert not allowed
    assert word in reason
    assert len(reason) < 300


def test_the_name_of_version_1_is_the_same_network() -> None:
    (quote,), _ = quotes((msgspec.structs.replace(OFFER, network="base"),), RULES)
    assert quote.asset.network == "eip155:8453"


@pytest.mark.parametrize(
    ("nanos", "spent", "payer", "estimate", "key"),
    [
        (10_000_000, Spending(), Payer(), None, ""),
        (10_000_001, Spending(), Payer(), None, "usd_per_call"),
        (2_000_001, Spending(), Payer(), 1_000_000, "most_of_estimate"),
        (2_000_000, Spending(), Payer(), 1_000_000, ""),
        (1, Spending(day=100_000_000), Payer(), None, "usd_per_day"),
        (1_000, Spending(tenant=20_000_000), Payer(tenant="a"), None, "tenants"),
        (1_000, Spending(tenant=20_000_000), Payer(tenant="b"), None, ""),
        (5_000_001, Spending(), Payer(subsystem="dream"), None, "subsystems"),
    ],
)
def test_each_cap_refuses_what_is_above_it(
    nanos: int, spent: Spending, payer: Payer, estimate: int | None, key: str
) -> None:
    reason, named = cap_refusal(nanos, RULES, spent, payer, estimate)
    assert named == key
    assert bool(reason) == bool(key)


@given(st.integers(0, 10**20))
def test_dollars_read_back_as_the_same_amount(nanos: int) -> None:
    from decimal import Decimal

    assert int(Decimal(dollars(nanos)[1:]) * 10**9) == nanos


@pytest.mark.parametrize(
    ("traits", "key", "diem", "order"),
    [
        (("x402", "prepaid"), False, False, ("wallet",)),
        (("x402", "prepaid"), True, False, ("wallet", "prepaid")),
        (("diem", "x402"), True, True, ("diem", "wallet", "prepaid")),
        (("diem", "x402"), True, False, ("wallet", "prepaid")),
    ],
)
def test_ways_to_pay_are_tried_in_order(traits: tuple[str, ...], key: bool, diem: bool, order: tuple[str, ...]) -> None:
    assert payment_order(METHODS, traits, has_key=key, has_wallet=True, diem_left=diem) == order
    assert payment_order(METHODS[::-1], traits, has_key=key, has_wallet=True, diem_left=diem) == order[::-1]

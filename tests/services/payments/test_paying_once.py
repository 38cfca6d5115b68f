"""A call is paid exactly once or not at all, whatever the seller does; and the ledger says in the end what the network's books say."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bardo.accounting.payments import Payer
from bardo.adapters.config.accounts import PaymentSettings, rules_of
from bardo.adapters.net.client import Call, Deadlines, HttpTransport
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.services.payments.ledger import Ledger
from bardo.services.payments.network import PaymentNetworks
from bardo.services.payments.payer import PaymentOrder, Payments, Wallet
from bardo.services.payments.reconcile import Reconciler
from bardo.services.payments.signer import Signer
from bardo.simulators.x402 import SELLER_BEHAVIOURS, PaymentTerms, SellerBehaviour, SimulatedNetwork
from support.paying import WALLET_KEY, Shop, opened, shop
from support.x402_packages import needs_payment_packages

pytestmark = needs_payment_packages

ANSWERED = {
    "honest", "malformed-proof", "answers-without-proof", "settlement-pending", "claims-to-have-settled", "settles-twice",
}  # fmt: skip
NEVER_SIGNED = {
    "wrong-network", "wrong-asset", "wrong-recipient", "wrong-scheme", "too-dear", "negative-price", "long-validity",
    "malformed-challenge", "deep-challenge", "huge-challenge", "empty-challenge",
}  # fmt: skip
PROVEN = {"bad-gateway-with-proof", "page-with-proof", "cut-with-proof"}
# The last one answers nothing until its client leaves: a test of its own has the deadline for that.
HERE = [one for one in SELLER_BEHAVIOURS if one != "silent-after-settling"]


def reconcile(market: Shop) -> None:
    """Bring the ledger to what the network says, once every signature has been used or has expired."""
    if market.seller.behaviour == "settlement-pending":
        market.seller.settle_pending()
    market.network.pass_time(120)

    async def run(server: str) -> None:
        transport = HttpTransport()
        with opened(market.state) as ledger:
            networks = PaymentNetworks(transport, {market.network.terms.network: server})
            await Reconciler(ledger, networks, time.time).all()
        await transport.close()

    with market.network.running() as server:
        asyncio.run(run(server))


def assert_the_books_agree(market: Shop) -> None:
    books = {one.nonce: one.value for one in market.network.transfers}
    assert len(books) == len(market.network.transfers), "no payment was made twice"
    assert {entry.nonce: int(entry.amount) for entry in market.entries() if entry.state == "settled"} == books
    assert {entry.state for entry in market.entries()} <= {"settled", "released"}, "nothing stays open"


@pytest.mark.sampled(12)
@pytest.mark.parametrize("version", [1, 2], ids=["x402 v1", "x402 v2"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("behaviour", HERE)
def test_a_call_is_paid_once_or_not_at_all(
    behaviour: SellerBehaviour, stream: bool, version: int, tmp_path: Path
) -> None:
    with shop(tmp_path / "state.db", behaviour, terms=PaymentTerms(version=version), reachable=False) as market:
        answer = market.ask(stream=stream)
        signed = {given.nonce for given in market.seller.paid_requests}
        entries = market.entries()
        if behaviour in NEVER_SIGNED:
            assert (answer.status_code, signed, entries) == (402, set(), [])
        else:
            assert len(signed) == 1
            assert answer.status_code == (200 if behaviour in ANSWERED else 400 if "request" in behaviour else 402)
            wanted = (
                "settled" if behaviour in PROVEN | {"honest", "settles-twice", "claims-to-have-settled"} else "unknown"
            )
            proofless = behaviour in {"malformed-proof", "answers-without-proof", "settlement-pending"}
            assert [entry.state for entry in entries] == ["settling" if proofless else wanted]
        reconcile(market)
        assert_the_books_agree(market)


@pytest.mark.parametrize("behaviour", [one for one in HERE if one not in ANSWERED | NEVER_SIGNED | PROVEN])
def test_a_payment_of_which_nothing_is_known_is_never_answered_by_another(
    behaviour: SellerBehaviour, tmp_path: Path
) -> None:
    with shop(tmp_path / "state.db", behaviour, reachable=False) as market:
        market.ask()
        sent = len(market.seller.paid_requests)
        again = market.ask()
        assert again.status_code == 402
        assert again.json()["error"]["code"] == "payment_unsettled"
        assert "an earlier payment of $0.0025 for the same request is open" in again.json()["error"]["message"]
        assert len(market.seller.paid_requests) == sent, "no signature left"
        other = market.ask("something else")
        assert other.status_code in (400, 402)
        assert len({given.nonce for given in market.seller.paid_requests}) == 2, (
            "what is asked for the first time is paid"
        )
        reconcile(market)
        assert_the_books_agree(market)


def test_once_the_network_says_that_a_payment_was_made_the_same_may_be_bought_again(tmp_path: Path) -> None:
    with shop(tmp_path / "state.db", "challenges-after-settling") as market:
        assert market.ask().status_code == 402
        assert [entry.state for entry in market.entries()] == ["unknown"]
        market.seller.behaviour = "honest"
        assert market.ask().status_code == 200
        assert [(entry.state, entry.proof) for entry in market.entries()] == [
            ("settled", "network"),
            ("settled", "provider"),
        ]
        assert market.network.paid == 2 * market.network.terms.amount


def test_a_payment_whose_process_was_killed_is_looked_up_at_its_network(tmp_path: Path) -> None:
    with shop(tmp_path / "state.db") as market:
        assert market.ask().status_code == 200
        with opened(market.state) as ledger:
            (entry,) = market.entries()
            assert ledger.move(entry.payment_id, "delivered", among=("settled",), now=time.time()) is not None
        assert market.ask().status_code == 200
        assert [(entry.state, entry.proof) for entry in market.entries()] == [
            ("settled", "network"),
            ("settled", "provider"),
        ]


def test_a_payment_that_expired_unused_is_made_anew(tmp_path: Path) -> None:
    with shop(tmp_path / "state.db", "challenges-again") as market:
        market.ask()
        assert market.ask().status_code == 402
        assert len(market.seller.paid_requests) == 1, "its signature is still valid"
        reconcile(market)
        market.network.pass_time(-120)
        market.seller.behaviour = "honest"
        assert market.ask().status_code == 200
        assert [entry.state for entry in market.entries()] == ["released", "settled"]
        assert market.network.paid == market.network.terms.amount


def test_a_silent_seller_leaves_an_unknown_payment(tmp_path: Path) -> None:
    with shop(tmp_path / "state.db", "silent-after-settling", reachable=False, first_byte=1.0) as market:
        assert market.ask().status_code == 402
        assert [entry.state for entry in market.entries()] == ["unknown"]
        reconcile(market)
        assert_the_books_agree(market)


def test_two_calls_for_the_same_at_once_are_two_purchases_one_after_the_other(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with shop(tmp_path / "state.db", wait_seconds=60) as market, ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: market.ask().status_code, range(4)))
        assert answers == [200] * 4
        assert [entry.ordinal for entry in market.entries()] == [0, 1, 2, 3]
        assert_the_books_agree(market)


def test_calls_that_run_side_by_side_stay_below_the_cap_of_a_day_together(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with shop(tmp_path / "state.db", usd_per_day=0.0075) as market, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda place: market.ask(f"question {place}").status_code, range(8)))
        assert sorted(answers) == [200] * 3 + [402] * 5
        assert market.network.paid == 3 * market.network.terms.amount


def test_an_account_without_money_pays_nothing(tmp_path: Path) -> None:
    with shop(tmp_path / "state.db", network=SimulatedNetwork(balance=2_499), reachable=False) as market:
        answer = market.ask()
        assert answer.status_code == 402
        assert "insufficient_funds" in answer.json()["error"]["message"]
        reconcile(market)
        assert_the_books_agree(market)


@pytest.mark.parametrize("step", ["reserve", "move"], ids=["while-it-is-held-back", "while-it-is-signed"])
def test_a_payment_of_a_call_that_is_cancelled_before_it_is_sent_is_released(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terms = PaymentTerms()
    settings = PaymentSettings(recipients=(terms.recipient,), networks=(terms.network,))
    challenge = FakeReply(status=402, chunks=(msgspec.json.encode(terms.challenge()),))
    transport = FakeTransport(lambda _: challenge)
    do, done, may_return = getattr(Ledger, step), threading.Event(), threading.Event()

    def held_up(*words: Any, **fields: Any) -> Any:
        found = do(*words, **fields)
        if not done.is_set():
            done.set()
            assert may_return.wait(60)
        return found

    async def run() -> None:
        signer = Signer(WALLET_KEY)
        wallet = Wallet(
            signer=signer,
            rules=rules_of(settings),
            order=("wallet",),
            ledger_path=tmp_path / "state.db",
            wait_seconds=0,
        )
        payments = Payments(wallet, PaymentNetworks(transport, {}), clock=time.time)
        call = Call(url="https://seller.example/v1/chat/completions", headers={}, body=b"{}", provider="seller")
        order = PaymentOrder(call=call, request_id="req_1", payer=Payer(), estimate=None, note=lambda *_: None)
        deadlines = Deadlines(connect=1, first_byte=1, idle=1)
        reply = await transport.send(call, deadlines)
        paying = asyncio.ensure_future(payments.pay(order, reply, lambda one: transport.send(one, deadlines)))
        monkeypatch.setattr(Ledger, step, held_up)
        await asyncio.to_thread(done.wait, 60)
        paying.cancel()
        await asyncio.sleep(0)
        may_return.set()
        with pytest.raises(asyncio.CancelledError):
            await paying
        payments.close()

    asyncio.run(run())
    with opened(tmp_path / "state.db") as ledger:
        assert [entry.state for entry in ledger.latest(10)] == ["released"]
    assert len(transport.calls) == 1

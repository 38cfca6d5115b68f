"""What a paid call says and costs, in which order its ways to pay are tried, and that no key or signature is shown anywhere."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from bardo.adapters.stores.database.problems import DatabaseUnusable
from bardo.services.payments.ledger import Ledger, LedgerEntry
from bardo.services.payments.packages import recursion_limit_kept
from bardo.services.payments.signer import Signer
from bardo.simulators.x402 import PaidSimulator, PaymentTerms, SimulatedNetwork
from bardo.values.errors import ConfigError
from support.any_model import Simulator
from support.gateway import KEY_VARIABLE, house
from support.patience import PATIENCE
from support.paying import WALLET_ADDRESS, WALLET_KEY, WALLET_VARIABLE, payments_toml, shop
from support.x402_packages import needs_payment_packages

pytestmark = needs_payment_packages

RECEIPT = {"include": ["receipt"]}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_the_payment_is_the_cost_of_the_call_and_stands_in_its_receipt(stream: bool, tmp_path: Path) -> None:
    with shop(tmp_path / "state.db") as market:
        answer = market.ask(stream=stream, bardo=RECEIPT)
        (entry,) = market.entries()
        assert f'"id":"{entry.payment_id}"' in answer.text
        assert '"transaction":"0x0000' in answer.text
        (row,) = market.house.log.wait(lambda row: True)
        assert (row.cost_nanos, row.reported_cost_nanos, row.price_source) == (2_500_000, 2_500_000, "provider")
        assert sum((row.cost_parts or {}).values()) == 2_500_000
        assert row.receipt is not None
        assert row.receipt["payment"]["state"] == "settled"
        if not stream:
            assert answer.headers["x-bardo-cost-usd"] == "0.0025"


def test_a_payment_without_an_answer_is_the_cost_of_its_call(tmp_path: Path) -> None:
    with shop(tmp_path / "state.db", "bad-gateway-with-proof") as market:
        market.ask()
        (row,) = market.house.log.wait(lambda row: True)
        assert (row.outcome, row.status, row.cost_nanos, row.cost_parts) == (
            "error",
            402,
            2_500_000,
            {"fee": 2_500_000},
        )


def test_the_official_sdk_pays_once_for_a_seller_that_fails(tmp_path: Path) -> None:
    with shop(tmp_path / "state.db", "bad-gateway-after-settling") as market:
        client = openai.OpenAI(base_url=f"{market.house.address}/v1", api_key="any", max_retries=3)
        with pytest.raises(openai.APIStatusError) as raised:
            client.chat.completions.create(model="openai_chat/m1", messages=[{"role": "user", "content": "hi"}])
        assert raised.value.status_code == 402
        assert len(market.network.transfers) == 1
        client.close()


def test_a_call_is_paid_from_the_wallet_before_its_key(tmp_path: Path) -> None:
    with shop(tmp_path / "state.db", key="sk-prepaid", order=["wallet", "prepaid"]) as market:
        assert market.ask().status_code == 200
        assert [one.headers.get("authorization") for one in market.seller.requests] == [None, "Bearer paid"]
        assert not any("sk-prepaid" in str(one.headers) for one in market.seller.requests), "the key stays at home"


def test_the_key_pays_what_the_wallet_may_not(tmp_path: Path) -> None:
    with shop(tmp_path / "state.db", key="sk-prepaid", order=["wallet", "prepaid"], usd_per_call=0.001) as market:
        answer = market.ask(bardo=RECEIPT)
        assert answer.status_code == 200
        assert market.seller.requests[-1].bearer == "sk-prepaid"
        assert answer.json()["bardo"]["payment"]["method"] == "prepaid"
        assert "above the cap of a call" in answer.json()["bardo"]["payment"]["refused"]
        assert market.network.transfers == []


def test_the_daily_allocation_goes_before_the_wallet(tmp_path: Path) -> None:
    with shop(tmp_path / "state.db", key="sk-diem") as market:
        assert market.ask().status_code == 200
        assert market.seller.requests[-1].bearer == "sk-diem"
        assert market.network.transfers == []


def test_subsystems_have_caps_of_their_own(tmp_path: Path) -> None:
    with shop(tmp_path / "state.db", subsystems={"fast": 0.004}) as market:

        def ask(text: str, subsystem: str) -> int:
            return market.ask(text, bardo={"intent": {"subsystem": subsystem}}).status_code

        assert [ask("one", "fast"), ask("two", "fast"), ask("three", "best")] == [200, 402, 200]
        assert [entry.subsystem for entry in market.entries()] == ["fast", "best"]


def test_vectors_are_paid_too(tmp_path: Path) -> None:
    with shop(tmp_path / "state.db") as market:
        body = {"model": "openai_chat/text-embedding-3-small", "input": "hello"}
        answer = httpx.post(f"{market.house.address}/v1/embeddings", json=body, timeout=PATIENCE)
        assert answer.status_code == 200, answer.text
        assert len(market.network.transfers) == 1
        (row,) = market.house.log.wait(lambda row: True)
        assert row.cost_nanos == 2_500_000


def test_without_a_wallet_a_402_is_the_providers_error_with_a_hint() -> None:
    seller = PaidSimulator("openai_chat", SimulatedNetwork(), models=())
    with house([seller], each={"payment": ("x402",)}, environment={KEY_VARIABLE: " "}) as running:
        body = {"model": "openai_chat/m1", "messages": [{"role": "user", "content": "hi"}]}
        answer = httpx.post(f"{running.address}/v1/chat/completions", json=body, timeout=PATIENCE)
        assert answer.status_code in (401, 402)
        assert seller.paid_requests == []


def test_no_key_and_no_signature_is_shown_anywhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    shown = []
    with shop(tmp_path / "state.db", "quotes-the-signature", keep_content=True) as market:
        for stream in (False, True):
            shown.append(market.ask(f"{stream}", stream=stream, bardo=RECEIPT).text)
        shown += [str(row) for row in market.house.log.wait(lambda row: True)]
        signatures = [given.signature[2:] for given in market.seller.paid_requests]
        assert len(signatures) == 2
    shown += [caplog.text, *capfd.readouterr(), (tmp_path / "state.db").read_bytes().decode("latin-1")]
    shown += [path.read_bytes().decode("latin-1") for path in tmp_path.glob("state.db-*")]
    for secret in (WALLET_KEY[2:], *signatures):
        assert not any(secret.lower() in text.lower() for text in shown)


@pytest.mark.parametrize("key", ["", "0x1", "g" * 64, "0" * 64, "f" * 64, WALLET_KEY + "00"])
def test_a_key_that_is_none_is_not_quoted(key: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Signer(key, WALLET_VARIABLE)
    assert not key or key not in str(raised.value)


def test_a_signer_shows_no_key() -> None:
    signer = Signer(WALLET_KEY, WALLET_VARIABLE)
    assert signer.address == WALLET_ADDRESS
    assert WALLET_KEY[2:] not in repr(signer) + str(signer) + repr(vars(type(signer)))
    with pytest.raises(TypeError):
        __import__("pickle").dumps(signer)


@pytest.mark.parametrize("version", [1, 2])
def test_the_reference_implementation_reads_and_verifies_what_is_signed(version: int, tmp_path: Path) -> None:
    with recursion_limit_kept():
        pytest.importorskip("web3")
        from eth_account import Account
        from x402.http.utils import decode_payment_required_header, decode_payment_signature_header
        from x402.mechanisms.evm.eip712 import hash_eip3009_authorization
        from x402.mechanisms.evm.types import ExactEIP3009Payload

    terms = PaymentTerms(version=version)
    with shop(tmp_path / "state.db", terms=terms) as market:
        assert market.ask().status_code == 200
        sent = market.seller.requests[-1].headers
    payment = decode_payment_signature_header(sent["x-payment" if version == 1 else "payment-signature"])
    assert payment.x402_version == version
    payload = ExactEIP3009Payload.from_dict(payment.payload)
    digest = hash_eip3009_authorization(
        payload.authorization, terms.chain_id, terms.asset, terms.domain_name, terms.domain_version
    )
    assert payload.signature is not None
    assert Account._recover_hash(digest, signature=payload.signature) == WALLET_ADDRESS
    if version == 2:
        from bardo.simulators.x402 import in_base64

        asked = decode_payment_required_header(in_base64(terms.challenge()))
        assert payment.accepted == asked.accepts[0]  # type: ignore[union-attr]
        assert payment.extensions["payment-identifier"]["info"]["id"].startswith("pay_")  # type: ignore[union-attr, index]


def test_a_gateway_without_payments_loads_nothing_of_them() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from bardo.wiring import assemble; from bardo.adapters.config.settings import parse_settings;"
        "assemble(parse_settings('[log]\\nenabled = false'));"
        "print([name for name in sys.modules if name.startswith(('bardo.services.payments', 'eth_', 'x402'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_settings_name_the_line_and_the_fix() -> None:
    from bardo.adapters.config.settings import parse_settings

    for line, words in (
        ('recipients = ["0x1"]', "no address"),
        ('networks = ["eip155:999"]', "cannot pay with"),
        ('assets = ["DOGE"]', "cannot pay with"),
        (f'wallet_key_env = "{WALLET_KEY}"', "not the name of an environment variable"),
        ("usd_per_day = -1", "usd_per_day"),
        ('order = ["cash"]', "order"),
    ):
        with pytest.raises(ConfigError) as raised:
            parse_settings(f"[payments]\n{line}\n")
        assert "line 2" in str(raised.value)
        assert words in str(raised.value)
        assert WALLET_KEY[2:] not in str(raised.value)
    parse_settings(payments_toml(PaymentTerms()))


def test_a_provider_that_asks_for_a_key_in_the_place_of_a_payment_gets_its_key(tmp_path: Path) -> None:
    seller = Simulator("openai_chat", key="sk-prepaid")
    environment = {WALLET_VARIABLE: WALLET_KEY, KEY_VARIABLE: "sk-prepaid"}
    toml, state = payments_toml(PaymentTerms()), tmp_path / "state.db"
    with house(
        [seller], each={"payment": ("x402", "prepaid")}, environment=environment, toml=toml, state=state
    ) as running:
        body = {"model": "openai_chat/m1", "messages": [{"role": "user", "content": "hi"}]}
        assert httpx.post(f"{running.address}/v1/chat/completions", json=body, timeout=PATIENCE).status_code == 200
    assert not state.exists(), "nothing was paid"


@pytest.mark.parametrize(("after", "status"), [("settled", 200), ("delivered", 503)])
def test_a_ledger_that_is_locked_keeps_no_answer_back_that_was_paid_for(
    after: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    move = Ledger.move

    def locked(ledger: Ledger, payment_id: str, state: str, **said: Any) -> LedgerEntry | None:
        if state == after:
            raise DatabaseUnusable(f"the database at {tmp_path} is locked")
        return move(ledger, payment_id, state, **said)  # type: ignore[arg-type]

    monkeypatch.setattr(Ledger, "move", locked)
    with shop(tmp_path / "state.db") as market:
        answer = market.ask()
        assert answer.status_code == status
        assert str(tmp_path) not in answer.text
        (entry,) = market.entries()
        assert entry.state == ("delivered" if after == "settled" else "released")

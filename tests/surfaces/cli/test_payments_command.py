"""`bardo payments` and what `bardo doctor` says of the wallet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.simulators.x402 import PaymentTerms, SimulatedNetwork
from bardo.surfaces.cli import main
from bardo.surfaces.cli.doctor import check_payments
from support.one_day import stay_in_one_day
from support.paying import WALLET_ADDRESS, WALLET_KEY, WALLET_VARIABLE, payments_toml, shop
from support.x402_packages import needs_payment_packages

pytestmark = needs_payment_packages


def configured(folder: Path, server: str = "") -> Path:
    """Write a bardo.toml whose ledger is `state.db` beside it."""
    file = folder / "bardo.toml"
    text = payments_toml(PaymentTerms(), server=server)
    file.write_text(f'[state]\nurl = "{folder / "state.db"}"\n{text}\n')
    return file


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main(words)
    said = capsys.readouterr()
    return code, said.out + said.err


def test_nothing_was_paid_and_no_ledger_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = configured(tmp_path)
    for command in (["list"], ["list", "--by", "day"], ["reconcile"]):
        assert run(capsys, "payments", *command, "--config", str(file))[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["bardo.toml"]


def test_payments_are_listed_and_reconciled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network = SimulatedNetwork()
    with shop(tmp_path / "state.db", "challenges-after-settling", network=network, reachable=False) as market:
        market.ask()
    with network.running() as server:
        file = str(configured(tmp_path, server))
        code, said = run(capsys, "payments", "list", "--open", "--json", "--config", file)
        (entry,) = json.loads(said)["payments"]
        assert (code, entry["state"]) == (0, "unknown")
        assert "unknown" in run(capsys, "payments", "list", "--config", file)[1]
        assert json.loads(run(capsys, "payments", "list", "--by", "provider", "--json", "--config", file)[1]) == {
            "provider": {"openai_chat": {"usd": 0.0025, "nanos": 2_500_000}}
        }
        assert run(capsys, "payments", "resolve", entry["payment_id"], "--unpaid", "--config", file)[0] == 2
        code, said = run(capsys, "payments", "reconcile", "--json", "--config", file)
        (found,) = json.loads(said)["payments"]
        assert (code, found["before"], found["state"], found["proof"]) == (0, "unknown", "settled", "network")
        assert "every payment" in run(capsys, "payments", "reconcile", "--config", file)[1]


def test_a_payment_whose_network_cannot_be_asked_stays_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with shop(tmp_path / "state.db", "challenges-again", reachable=False) as market:
        market.ask()
        (entry,) = market.entries()
    file = str(configured(tmp_path))
    code, said = run(capsys, "payments", "reconcile", "--config", file)
    assert code == 1
    assert "cannot be asked" in " ".join(said.split())
    assert run(capsys, "payments", "resolve", entry.payment_id, "--paid", "--config", file)[0] == 0
    assert run(capsys, "payments", "list", "--open", "--config", file)[1].strip() == "no open payments"


def test_doctor_shows_the_wallet_its_caps_and_what_was_spent_and_no_key(tmp_path: Path) -> None:
    stay_in_one_day()
    with shop(tmp_path / "state.db") as market:
        market.ask()
    settings = parse_settings(configured(tmp_path).read_text())
    (finding,) = check_payments(settings, {WALLET_VARIABLE: WALLET_KEY})
    assert finding.status == "ok"
    assert finding.found == f"wallet {WALLET_ADDRESS}, at most $0.10 a call and $5.00 a day, $0.0025 spent today"
    assert WALLET_KEY[2:] not in finding.found
    (finding,) = check_payments(settings, {})
    assert (finding.status, WALLET_VARIABLE in finding.found) == ("problem", True)
    assert check_payments(parse_settings(""), {}) == []

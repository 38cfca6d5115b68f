"""The spread (003, "Configuration", `BARDO_INFERENCE_SPREAD_PCT`): keys are charged more than the provider's cost, and are told both."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from bardo.adapters.config.accounts import BudgetSettings
from bardo.simulators import Script, Turn
from bardo.simulators.turns import Usage
from support.any_model import Simulator
from support.keyed_gateway import PRICE, KeyedGateway, keyed_gateway
from support.patience import PATIENCE

ASK = {"model": "deepseek/m1", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 100}
COST, CHARGED = 0.002, 0.0024


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedGateway]:
    # 1000 tokens at one dollar a million, and 100 at ten.
    script = Script((Turn(text="yes", usage=Usage(input_tokens=1000, answer_tokens=100)),))
    toml = f"{PRICE}[budgets]\nspread_percent = 20\n"
    with keyed_gateway(tmp_path_factory.mktemp("s"), [Simulator("deepseek", script=script)], toml=toml) as running:
        yield running


def ask(gateway: KeyedGateway, key: str, **more: Any) -> httpx.Response:
    headers = {"authorization": f"Bearer {key}"}
    address = f"{gateway.address}/v1/chat/completions"
    return httpx.post(address, json={**ASK, **more}, headers=headers, timeout=PATIENCE)


def until_counted(gateway: KeyedGateway, key: str) -> dict[str, Any]:
    """Return the figures of a key once its one call is in the log."""
    waited = threading.Event()
    for _ in range(int(PATIENCE * 100)):
        told = usage_of(gateway, key)
        if told["today"]["calls"] == 1:
            return told
        waited.wait(0.01)
    raise AssertionError("the call is not in the log")


def usage_of(gateway: KeyedGateway, key: str) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {key}"}
    found: dict[str, Any] = httpx.get(f"{gateway.address}/v1/bardo/usage", headers=headers, timeout=PATIENCE).json()
    return found


@pytest.mark.parametrize("key", [{}, {"usd_per_day": "1"}], ids=["no budget", "a budget"])
def test_a_key_is_charged_the_cost_and_the_spread_and_is_told_both(gateway: KeyedGateway, key: dict[str, str]) -> None:
    own = gateway.key(**key)
    bardo = ask(gateway, own, bardo={"include": ["receipt"]}).json()["bardo"]
    assert (bardo["cost_usd"], bardo["charged_usd"]) == (COST, CHARGED)
    assert bardo["cost"]["usd"] == COST
    told = until_counted(gateway, own)
    assert (told["today"]["cost_usd"], told["today"]["spent_usd"]) == (COST, CHARGED)
    assert (told["by_model"][0]["cost_usd"], told["by_model"][0]["charged_usd"]) == (COST, CHARGED)
    if key:
        assert told["limits"]["usd_per_day"]["spent"] == CHARGED


def test_a_budget_holds_the_spread(gateway: KeyedGateway) -> None:
    # What a call may cost is a little above 0.001 dollars for its answer alone; one goes through and its charge is all there is.
    own = gateway.key(usd_per_day="0.0023")
    assert ask(gateway, own).status_code == 200
    assert until_counted(gateway, own)["limits"]["usd_per_day"]["remaining"] == 0
    assert ask(gateway, own).status_code in (402, 429)
    # The answer alone may cost 0.001 dollars, and is charged more.
    assert ask(gateway, gateway.key(usd_per_day="0.0011")).status_code in (402, 429)


@pytest.mark.parametrize(
    ("percent", "nanos", "charged"),
    [(0, 7, 7), (20, 10, 12), (20, 1, 2), (12.5, 1_000_000_000, 1_125_000_000), (0.1, 1000, 1001), (20, 0, 0)],
)
def test_a_part_of_a_nano_dollar_is_charged_as_a_whole_one(percent: float, nanos: int, charged: int) -> None:
    assert BudgetSettings(spread_percent=percent).charged(nanos) == charged

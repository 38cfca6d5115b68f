"""What batches cost: half the price, by the item, within the budget of the key."""

from __future__ import annotations

from pathlib import Path

import openai
import pytest

from bardo.simulators.script import Script
from bardo.simulators.turns import Turn, Usage
from support.any_model import Simulator
from support.batches import batch_house, chat_line
from surfaces.gateway.test_batches import MODELS, results_of, run_batch

PRICES = """
[[prices]]
provider = ["openai_chat"]
match = ["gpt-5-mini"]
input = 2.0
output = 10.0
"""


def test_items_cost_half_and_the_batch_tells_their_sum(tmp_path: Path) -> None:
    script = Script((Turn(text="yes", usage=Usage(input_tokens=1000, answer_tokens=100)),))
    with batch_house(tmp_path, [Simulator("openai_chat", script=script)], more=PRICES) as house:
        client = openai.OpenAI(base_url=f"{house.address}/v1", api_key="sk-one", max_retries=0)
        batch = run_batch(client, [chat_line(f"i{n}", MODELS["openai_chat"]) for n in range(3)])
        # 1000 tokens at 2 dollars a million and 100 at 10 are 3 million nano-dollars; in a batch half of it.
        for line in results_of(client, batch.output_file_id).values():
            assert line["bardo"]["cost_usd"] == pytest.approx(0.0015)
        told = batch.model_extra["bardo"]  # type: ignore[index]
        assert told["cost_nanos"] == 4_500_000
        assert {row.cost_nanos for row in house.rows()} == {1_500_000}
        assert {row.session for row in house.rows()} == {f"batch {batch.id}"}
        assert all(row.receipt and row.receipt["batch"]["id"] == batch.id for row in house.rows())
        assert batch.usage is not None
        assert (batch.usage.input_tokens, batch.usage.output_tokens) == (3000, 300)


KEYS = """
[[keys]]
id = "poor"
key_env = "POOR_KEY"
usd_per_day = 0.000001
tags = ["night"]

[[keys]]
id = "narrow"
key_env = "NARROW_KEY"
models = ["nothing-but-this"]
tenant = "narrow"

[[keys]]
id = "rich"
key_env = "RICH_KEY"
usd_per_day = 100
concurrency = 1
tags = ["night"]
"""
VARIABLES = {name: f"sk-of-{name.lower()}-0123456789" for name in ("POOR_KEY", "NARROW_KEY", "RICH_KEY")}


def test_a_key_pays_for_its_batches_within_its_budget_and_asks_its_models_alone(tmp_path: Path) -> None:
    simulator = Simulator("openai_chat")
    with batch_house(tmp_path, [simulator], more=PRICES + KEYS, environment=VARIABLES) as house:

        def client(name: str) -> openai.OpenAI:
            return openai.OpenAI(base_url=f"{house.address}/v1", api_key=VARIABLES[name], max_retries=0)

        lines = [chat_line(f"i{n}", MODELS["openai_chat"], max_completion_tokens=100) for n in range(3)]
        for name, status in (("POOR_KEY", 402), ("NARROW_KEY", 403)):
            refused = run_batch(client(name), lines)
            errors = results_of(client(name), refused.error_file_id)
            told = {line["response"]["status_code"] for line in errors.values()}
            assert told == {status}, errors
            assert not house.batches("openai_chat").jobs, "nothing was sent"
        batch = run_batch(client("RICH_KEY"), lines)
        assert len(results_of(client("RICH_KEY"), batch.output_file_id)) == 3
        paid = [row for row in house.rows() if row.key_id == "rich"]
        assert len(paid) == 3
        assert all(row.tags == ("night", "batch") and row.cost_nanos for row in paid)
        with pytest.raises(openai.AuthenticationError):
            openai.OpenAI(base_url=f"{house.address}/v1", api_key="sk-unknown", max_retries=0).batches.list()

"""What all callers together make a gateway keep is bounded in bytes, shown by its metrics, and changes no byte of another's call."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bardo import reuse
from bardo.adapters.config.settings import parse_settings
from bardo.values.errors import ConfigError
from support.two_keys import Arrived, Given, TwoKeys, two_keys

pytestmark = pytest.mark.usefixtures("reused")
MOST = 400_000
_TOML = f"[gateway]\nmax_reuse_bytes = {MOST}\n[telemetry]\nmetrics = true\n"


def answer(arrived: Arrived) -> Given:
    message = {"role": "assistant", "content": json.dumps({"number": 1})}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return Given(200, json.dumps({"id": "c", "object": "chat.completion", "created": 1, "choices": [choice]}).encode())


def asked(number: int) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"number": {"type": "integer", "maximum": number}}}
    wide = {**schema["properties"], **{f"a field {place}": {"enum": [place, number]} for place in range(20)}}  # type: ignore[dict-item]
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": wide}}}
    return {
        "model": "lab/gpt-4o",
        "messages": [{"role": "user", "content": "Count."}],
        "tools": [tool],
        "response_format": {"type": "json_schema", "json_schema": {"name": "count", "schema": schema}},
        f"x_field_{number}": [{}] * 200,
    }


def metric(running: TwoKeys, name: str) -> float:
    status, _, page = running.call("operator", "GET", "/metrics")
    found = re.search(rf"^{name} (\S+)$", page.decode(), re.MULTILINE)
    assert status == 200
    assert found
    return float(found[1])


def test_a_flood_of_one_key_stays_below_the_budget_and_changes_no_byte_of_another_key(tmp_path: Path) -> None:
    with two_keys(tmp_path, {"lab": "openai"}, answer, toml=_TOML) as running:
        before = running.ask("b", "/v1/chat/completions", asked(0))
        assert before.status == 200
        for number in range(1, 60):
            assert running.ask("a", "/v1/chat/completions", asked(number)).status == 200
            assert 0 < metric(running, "bardo_reuse_bytes") <= MOST
        assert metric(running, "bardo_reuse_bytes") > MOST / 2
        assert metric(running, "bardo_reuse_max_bytes") == MOST
        assert running.ask("b", "/v1/chat/completions", asked(0)) == before


def test_a_gateway_that_may_keep_nothing_answers_as_one_that_keeps(tmp_path: Path) -> None:
    with two_keys(tmp_path, {"lab": "openai"}, answer, toml=_TOML) as running:
        kept = [running.ask("b", "/v1/chat/completions", asked(0)) for _ in range(2)]
    with two_keys(tmp_path, {"lab": "openai"}, answer, toml=_TOML.replace(str(MOST), "0")) as running:
        anew = [running.ask("b", "/v1/chat/completions", asked(0)) for _ in range(2)]
        assert metric(running, "bardo_reuse_bytes") == reuse.held_bytes() == 0
    assert kept == anew


def test_a_budget_below_nothing_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="max_reuse_bytes"):
        parse_settings("[gateway]\nmax_reuse_bytes = -1\n")

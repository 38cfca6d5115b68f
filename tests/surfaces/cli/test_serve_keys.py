"""Several workers share keys and limits: what one lets through counts for all, and a revoked key is refused by each."""

from __future__ import annotations

import json
import re
import signal
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import HTTPError

import pytest

from bardo.accounting.limits import day_number
from bardo.services.accounts.usage import LogSpend
from support.any_model import Simulator
from support.keyed_gateway import make_key
from support.one_day import stay_in_one_day
from support.patience import PATIENCE
from surfaces.cli.support import line_with, program, running

CONFIGURATION = """
[log]
path = "{folder}/log.db"
[[prices]]
match = "*"
input = 1.0
output = 10.0
[[providers]]
id = "lab"
preset = "deepseek"
api_key_env = "LAB_KEY"
base_url = "{address}"
models = ["m1"]
"""


def status(address: str, key: str) -> int:
    """Ask by a connection of its own, so that either worker may answer."""
    body = {"model": "lab/m1", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 100}
    headers = {"content-type": "application/json", "connection": "close", "authorization": f"Bearer {key}"}
    request = urllib.request.Request(f"{address}/v1/chat/completions", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return int(answer.status)
    except HTTPError as refused:
        refused.close()
        return refused.code


def test_two_workers_share_keys_and_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", "key")
    with Simulator("deepseek").running() as provider:
        config = tmp_path / "bardo.toml"
        config.write_text(CONFIGURATION.format(folder=tmp_path, address=provider.base_url))
        refused = program("serve", "--config", str(config), "--host", "0.0.0.0", "--port", "0")
        assert refused.code == 2
        assert "bardo keys create" in refused.err
        state = tmp_path / "state.db"
        stay_in_one_day()
        today = day_number(time.time())
        limited = make_key(state, requests_per_minute=10)[1]
        # The estimate of one call is a little more than 100 tokens of an answer: 0.001 US dollars.
        poor_account, poor = make_key(state, usd_per_day="0.0035")
        account, free = make_key(state)
        with running("serve", "--config", str(config), "--host", "0.0.0.0", "--port", "0", "--workers", "2") as gateway:
            said = re.findall(r"http://\S+:(\d+)", line_with(gateway.stderr, "listens on"))[0]
            address = f"http://127.0.0.1:{said}"
            with ThreadPoolExecutor(8) as threads:
                assert Counter(threads.map(lambda _: status(address, limited), range(30))) == {200: 10, 429: 20}
                asked = Counter(threads.map(lambda _: status(address, poor), range(30)))
            assert asked[200] >= 3
            assert asked[429] == 30 - asked[200]
            assert status(address, free) == 200
            assert program("keys", "revoke", account.id, "--config", str(config)).code == 0
            refusals, until = 0, time.monotonic() + PATIENCE
            # Each of two workers has said no where twelve answers of either are no.
            while refusals < 12:
                assert time.monotonic() < until
                refusals = refusals + 1 if status(address, free) == 401 else 0
            gateway.send_signal(signal.SIGTERM)
            gateway.wait(PATIENCE)
    spend = LogSpend(tmp_path / "log.db")
    assert 0 < spend(poor_account.id, today, today) <= 3_500_000
    spend.close()

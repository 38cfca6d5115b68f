"""A wrong value is met with what is wrong and what to write instead, never with a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from bardo.adapters.stores.log import LogRow
from surfaces.cli.support import bardo, write_log

HUGE = "9" * 5000
WRONG = [
    "demo nobody",
    "serve --port 70000",
    "serve --port x",
    "serve --workers 0",
    "serve --host no.such.host.invalid",
    "serve --host -",
    "ask hi --model m --reasoning sideways",
    f"ask hi --model m --reasoning {HUGE}",
    "ask hi --model m --reasoning -3",
    "ask hi --model m --reasoning ",
    "ask hi --model m --temperature nan",
    "ask hi --model m --temperature inf",
    "doctor --watch --every nan",
    "ask hi --model m --config .",
    "ask hi --model m --config missing.toml",
    "ask hi --model m --config binary",
    "explain --model m --reasoning sideways",
    f"explain --model m --reasoning {HUGE}",
    "explain --model gpt-5 --dialect klingon",
    "explain klingon.json --model gpt-5",
    "explain . --model gpt-5",
    "explain binary --model gpt-5",
    "explain list.json --model gpt-5",
    "explain empty.json --dialect klingon",
    "explain --model gpt-5 --provider nobody",
    "parse missing",
    "parse .",
    "parse binary --provider nobody",
    "parse binary --format nobody",
    "parse binary --format think --prompt missing",
    "log --limit 0",
    "log --limit x",
    f"log --limit {HUGE}",
    "log --limit 99999999999999999999",
    "log --since yesterday",
    f"log --since {'9' * 400}w",
    "log --since 0001-01-01",
    "log --since ",
    "log --outcome fine",
    "log --verdict fine",
    "log --config .",
    "log show nobody",
    "log show ",
    "costs --since yesterday",
    f"costs --since {'9' * 400}w",
    "costs --config .",
    "catalog everything",
    "catalog show",
    "catalog providers model",
    "catalog show m --provider nobody --offline",
    "catalog formats --config missing.toml",
    "probe m --provider nobody --dry-run",
    "probe claude-opus-4-8 --form klingon --dry-run",
    "probe claude-opus-4-8 --repeats 0",
    "probe claude-opus-4-8 --max-calls 0",
    "probe claude-opus-4-8 --max-cost nan",
    "probe claude-opus-4-8 --max-cost -1",
    "probe claude-opus-4-8 --seed x",
    "probe claude-opus-4-8 --resume missing.json",
    "probe claude-opus-4-8 --resume .",
    "probe claude-opus-4-8 --resume binary",
    "probe claude-opus-4-8 --resume list.json",
    "probe claude-opus-4-8 --out no/such/folder/audit.json --max-calls 1",
    "simulate nobody",
    "simulate --fault status=abc",
    "simulate --fault status=",
    "simulate --fault status=42",
    "simulate --fault status=1000",
    "simulate --fault nothing",
    "simulate --fault ",
    "simulate --fault cut=-1",
    "simulate --fault cut=1.5",
    "simulate --fault slow=nan",
    "simulate --fault slow=inf",
    "simulate --fault slow=-1",
    "simulate --fault drip=0",
    "simulate --fault oversized=-5",
    f"simulate --fault oversized={HUGE}",
    "simulate --fault status=429,retry-after=soon",
    "simulate --fault status=429,retry-after=nan",
    "simulate --fault status=429,retry-after=-1",
    "simulate --fault status=429,times=-1",
    "simulate --fault status=429,colour=red",
    "simulate --fault status=429,",
    "simulate --thinking-behaviour sideways",
    "simulate --pace x",
    "simulate --pace -1",
    "simulate --pace nan",
    "simulate --pace inf",
    "simulate --port 65001",
    "simulate --script missing.toml",
    "simulate --script .",
    "simulate --script binary",
    "simulate --script list.json",
]


@pytest.mark.parametrize("words", WRONG, ids=lambda words: words[:70])
def test_a_wrong_value_is_named_and_nothing_is_done(words: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    (folder / "binary").write_bytes(bytes(range(256)))
    (folder / "list.json").write_text("[1, 2]")
    (folder / "empty.json").write_text("{}")
    if words.startswith(("log", "costs")):
        write_log([LogRow(request_id="req_1", started_at=1.0, outcome="ok")])
    ran = bardo(*words.split(" "))
    assert ran.code == 2, ran
    assert ran.out == ""
    assert "Error:" in ran.err or ran.err.startswith("bardo: ")
    assert len(ran.err) < 8 * 1024

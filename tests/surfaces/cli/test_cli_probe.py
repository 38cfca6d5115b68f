"""`bardo probe`: shows before it sends, keeps what it paid for, and says what it found."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bardo.catalog.models import builtin_models
from bardo.simulators import Fault, ThinkingBehaviour
from bardo.simulators.thinking_behaviour import BehaviourKind
from bardo.surfaces.cli import probe as probing
from bardo.surfaces.render.wording import dollars
from support.any_model import Simulator
from surfaces.cli.support import Ran, bardo, simulated

MODEL = "Qwen/Qwen3-0.6B"
FILES = ("probe-vllm-qwen-qwen3-0.6b.json", "probe-vllm-qwen-qwen3-0.6b.toml")


def probe(
    *arguments: str, folder: Path, thinking_behaviour: BehaviourKind = "honour", **options: Any
) -> tuple[Ran, Simulator]:
    """Run a probe of a simulated vLLM."""
    simulator = Simulator("vllm", thinking_behaviour=ThinkingBehaviour(thinking_behaviour), **options)
    with simulated(simulator, folder=folder):
        return bardo("probe", MODEL, "--provider", "vllm", *arguments), simulator


def asked(simulator: Simulator) -> list[Any]:
    return [one.fields for one in simulator.requests if one.method == "POST"]


def test_a_probe_says_what_it_found_and_writes_a_row_and_an_audit(folder: Path) -> None:
    ran, simulator = probe(folder=folder)
    assert ran.code == 0
    lines = {line.split()[0]: line for line in ran.out.splitlines()[1:]}
    assert "honours" in lines["effort"]
    assert "times as much as low" in lines["effort"]
    assert "p = 0.008" in lines["effort"]
    assert sorted(file.name for file in folder.glob("probe-*")) == sorted(FILES)
    tables = tomllib.loads((folder / FILES[1]).read_text())["models"]
    assert builtin_models().over(tables).find("vllm", MODEL).row is not None
    assert len(json.loads((folder / FILES[0]).read_text())["trials"]) == len(asked(simulator))
    assert len(ran.err.splitlines()) >= len(asked(simulator))


@pytest.mark.parametrize(
    ("thinking_behaviour", "verdict"),
    [("honour", "honours"), ("flatten", "ignores"), ("ignore", "ignores"), ("refuse", "refuses")],
)
def test_a_program_gets_the_verdicts(folder: Path, thinking_behaviour: BehaviourKind, verdict: str) -> None:
    """vLLM is told off in another field than an effort, so a flattened effort is the same as one that is not read."""
    found = probe("--json", folder=folder, thinking_behaviour=thinking_behaviour)[0].json
    assert {one["verdict"] for one in found["verdicts"] if one["setting"] == "effort"} == {verdict}
    assert (found["provider"], found["model"], found["stopped"]) == ("vllm", MODEL, "")
    assert (found["audit_file"], found["row_file"]) == FILES
    assert ("effort" in found["row"]["control"]) is (verdict == "honours")


def test_a_dry_run_sends_nothing_and_shows_exactly_what_would_be_sent(folder: Path) -> None:
    dry, silent = probe("--dry-run", "--json", folder=folder)
    real, simulator = probe(folder=folder)
    assert real.code == 0
    assert list(silent.requests) == []
    planned = {json.dumps(one["body"], sort_keys=True): one["times"] for one in dry.json["requests"]}
    sent = [json.dumps(body, sort_keys=True) for body in asked(simulator)]
    assert {body: sent.count(body) for body in sent} == planned
    assert dry.json["calls"] == len(sent)


def test_a_dry_run_needs_no_key_and_no_server(folder: Path) -> None:
    ran = bardo("probe", "qwen/qwen3.6-27b", "--provider", "openrouter", "--dry-run")
    assert ran.code == 0
    assert '{"reasoning": {"max_tokens": 4096}}' in ran.out
    assert "50 requests to https://openrouter.ai/api/v1/chat/completions" in ran.err
    assert list(folder.glob("probe-*")) == []


def test_a_probe_that_was_stopped_goes_on(folder: Path) -> None:
    first, _ = probe("--max-calls", "7", folder=folder)
    assert first.code == 1
    assert f"--resume {FILES[0]}" in first.err
    assert not (folder / FILES[1]).exists()
    second, simulator = probe("--resume", FILES[0], "--json", folder=folder)
    assert second.code == 0
    assert second.json["calls"] == len(asked(simulator)) + 7
    assert (folder / FILES[1]).exists()


def test_an_audit_that_was_paid_for_is_not_written_over(folder: Path) -> None:
    probe("--max-calls", "1", folder=folder)
    before = (folder / FILES[0]).read_text()
    ran, simulator = probe(folder=folder)
    assert ran.code == 2
    assert f"--resume {FILES[0]}" in ran.err
    assert asked(simulator) == []
    assert (folder / FILES[0]).read_text() == before


def test_the_audits_file_can_be_named_and_the_row_goes_beside_it(folder: Path) -> None:
    probe("--out", "mine.json", folder=folder)
    assert sorted(file.name for file in folder.glob("mine*")) == ["mine.json", "mine.toml"]


def test_a_cost_that_nobody_tells_is_said(folder: Path) -> None:
    ran, _ = probe("--max-cost", "0.01", "--repeats", "1", folder=folder)
    assert "--max-cost could not be kept" in ran.err


def test_a_server_that_fails_leaves_what_came_before(folder: Path) -> None:
    ran, simulator = probe(folder=folder, fault=Fault("status", status=503))
    assert ran.code == 1
    assert "3 requests in a row failed" in ran.err
    assert len(asked(simulator)) == 3
    assert (folder / FILES[0]).exists()


def test_another_form_can_be_tried(folder: Path) -> None:
    ran, simulator = probe("--form", "sglang", "--dry-run", "--json", folder=folder)
    assert ran.json["forms"] == ["sglang"]
    assert asked(simulator) == []


@pytest.mark.parametrize(
    ("answer", "arguments", "sends"), [("n\n", (), False), ("y\n", (), True), ("", ("--yes",), True)]
)
def test_on_a_terminal_the_cost_is_said_and_asked(
    folder: Path, answer: str, arguments: tuple[str, ...], sends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    simulator = Simulator("vllm")
    with simulated(simulator, folder=folder):
        ran = bardo("probe", MODEL, "--provider", "vllm", "--max-calls", "2", *arguments, given=answer)
    assert "2 requests to vllm/Qwen/Qwen3-0.6B, of up to " in ran.err
    assert ("Send them?" in ran.err) is not bool(arguments)
    assert (len(asked(simulator)) == 2) is sends
    assert ran.code == 1, "it is refused, or not finished"


def test_a_known_price_is_told_as_the_most_that_the_probe_may_cost(folder: Path) -> None:
    (folder / "bardo.toml").write_text(
        '[[providers]]\nid = "lab"\npreset = "vllm"\nbase_url = "http://127.0.0.1:9/v1"\nmodels = ["qwen3-8b"]\n'
        '[[prices]]\nprovider = "lab"\nmatch = ["*"]\ninput = 0.0\noutput = 1.0\n'
    )
    ran = bardo("probe", "qwen3-8b", "--provider", "lab", "--max-calls", "1")
    limit = int(re.search(r"up to ([\d,]+) tokens", ran.err)[1].replace(",", ""))  # type: ignore[index]
    assert f"at most about {dollars(limit / 1e6)}" in ran.err


WRONG = {
    "an unknown form": (("probe", "m", "--provider", "vllm", "--form", "sglan"), "did you mean sglang"),
    "no audit": (("probe", "m", "--provider", "vllm", "--resume", "none.json"), "no audit"),
    "nobody serves it": (("probe", "no-such-model", "--dry-run"), "--provider"),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_told_with_what_to_do(arguments: tuple[str, ...], said: str) -> None:
    ran = bardo(*arguments)
    assert ran.code == 2
    assert said in ran.err

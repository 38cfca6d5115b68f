"""A probe against simulated models that honour, flatten, ignore or refuse their settings; its limits, and going on after a stop."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bardo.adapters.net.client import Call, HttpTransport
from bardo.adapters.net.fake import FakeReply, FakeTransport, Handler
from bardo.adapters.net.keys import Keyring
from bardo.catalog.load import builtin
from bardo.operators.probe.audit import Audit, read_audit, resumed, write_audit
from bardo.operators.probe.cells import BASELINE
from bardo.operators.probe.prober import Limits, Sender, conclude, plan_probe, run_probe
from bardo.planning.route import Provider, Target
from bardo.reasoning.control import ControlTarget, know
from bardo.simulators import ThinkingBehaviour
from bardo.simulators.thinking_behaviour import BehaviourKind
from bardo.values.errors import BardoError, InvalidRequest, Unreachable, UpstreamRefused
from support.any_model import Simulator

pytestmark = pytest.mark.each_python

KEYS = {"OPENROUTER_API_KEY": "sk-secret", "ANTHROPIC_API_KEY": "sk-secret", "GEMINI_API_KEY": "sk-secret"}
DAY = datetime.date(2026, 11, 22)
MODELS = {
    "openrouter": ("openrouter", "qwen/qwen3.6-27b"),
    "anthropic": ("anthropic", "claude-haiku-4-5"),
    "vllm": ("vllm", "Qwen/Qwen3-0.6B"),
    "llama_server": ("llama-server", "qwen3-8b"),
    "gemini": ("gemini", "gemini-2.5-flash"),
    "ollama_native": ("ollama", "qwen3:latest"),
}


def target(preset: str, base_url: str = "http://127.0.0.1:9") -> Target:
    row_name, model = MODELS[preset]
    row = builtin().provider(row_name)
    assert row is not None
    return Target(provider=Provider(id=preset, row=row, base_url=base_url), model=model)


def begun(where: Target, *, repeats: int = 5) -> Audit:
    row = where.provider.row
    known = know(ControlTarget(row.id, row.dialect, where.model))
    return Audit(plan=plan_probe(where, known, repeats=repeats))


def concluded(audit: Audit, where: Target) -> Audit:
    row = where.provider.row
    return conclude(audit, know(ControlTarget(row.id, row.dialect, where.model)), DAY, "note")


def probed(preset: str, kind: BehaviourKind, *, noise: float = 0.1) -> tuple[Audit, Simulator]:
    """Probe a simulated model to the end."""
    simulator = Simulator(preset, thinking_behaviour=ThinkingBehaviour(kind, noise=noise))

    async def scenario() -> Audit:
        transport = HttpTransport()
        try:
            async with simulator.serve() as base_url:
                where = target(preset, base_url)
                return concluded(await run_probe(begun(where), Sender(where, transport, Keyring(KEYS))), where)
        finally:
            await transport.close()

    return asyncio.run(scenario()), simulator


def verdicts(audit: Audit) -> dict[str, str]:
    assert audit.decision is not None
    return {one.setting: one.verdict for one in audit.decision.verdicts}


HONOURED = {"off": "honours", "effort": "honours", "budget": "honours"}
REFUSED = {"off": "refuses", "on": "refuses", "effort": "refuses", "budget": "refuses"}
FOUND: dict[tuple[str, BehaviourKind], dict[str, str]] = {
    ("openrouter", "honour"): {**HONOURED, "on": "inconclusive"},
    ("openrouter", "flatten"): {"off": "honours", "on": "inconclusive", "effort": "flattens", "budget": "flattens"},
    ("openrouter", "ignore"): {"off": "ignores", "on": "inconclusive", "effort": "ignores", "budget": "ignores"},
    ("openrouter", "refuse"): REFUSED,
    ("anthropic", "honour"): {"off": "honours", "budget": "honours"},
    ("anthropic", "flatten"): {"off": "honours", "budget": "flattens"},
    ("anthropic", "ignore"): {"off": "ignores", "budget": "ignores"},
    ("anthropic", "refuse"): {"off": "refuses", "budget": "refuses"},
    ("gemini", "honour"): {"off": "honours", "budget": "honours"},
    ("gemini", "ignore"): {"off": "ignores", "budget": "ignores"},
    ("llama_server", "honour"): {**HONOURED, "on": "inconclusive"},
    ("llama_server", "flatten"): {"off": "honours", "on": "inconclusive", "effort": "ignores", "budget": "flattens"},
    ("llama_server", "refuse"): REFUSED,
    ("vllm", "honour"): {**HONOURED, "on": "inconclusive"},
    ("ollama_native", "honour"): {"off": "honours", "on": "inconclusive", "effort": "honours"},
    ("ollama_native", "flatten"): {"off": "honours", "on": "inconclusive", "effort": "flattens"},
    ("ollama_native", "ignore"): {"off": "ignores", "on": "inconclusive", "effort": "ignores"},
}


@pytest.mark.parametrize(("preset", "kind"), FOUND, ids=lambda value: value)
def test_what_a_model_does_with_its_settings_is_found_out(preset: str, kind: BehaviourKind) -> None:
    audit, _ = probed(preset, kind)
    assert verdicts(audit) == FOUND[preset, kind]
    assert audit.stopped == ""


@pytest.mark.parametrize("kind", ["honour", "ignore"])
def test_wide_noise_changes_no_clear_verdict(kind: BehaviourKind) -> None:
    audit, _ = probed("openrouter", kind, noise=0.25)
    assert verdicts(audit)["effort"] == {"honour": "honours", "ignore": "ignores"}[kind]


def test_a_refusal_is_asked_for_twice_and_quoted() -> None:
    audit, simulator = probed("openrouter", "refuse")
    assert audit.decision is not None
    assert {one.why for one in audit.decision.verdicts if one.setting == "effort"} == {
        "status 400: Unsupported parameter: 'effort' is not supported with this model."
    }
    turned = [one for one in simulator.requests if "reasoning" in one.fields]
    assert len(turned) == 2 * 8


def test_only_the_setting_differs_between_requests() -> None:
    _, simulator = probed("openrouter", "honour")
    bodies = [one.fields for one in simulator.requests]
    assert len(bodies) == 10 * 5
    assert {body["max_tokens"] for body in bodies} == {16_384 + 8192}
    assert {frozenset(body) for body in bodies} <= {
        frozenset({"model", "messages", "max_tokens"}),
        frozenset({"model", "messages", "max_tokens", "reasoning"}),
    }


def ran(handler: Handler, audit: Audit, where: Target, **options: Any) -> tuple[Audit, FakeTransport]:
    async def scenario() -> tuple[Audit, FakeTransport]:
        transport = FakeTransport(handler)
        return await run_probe(audit, Sender(where, transport, Keyring(KEYS)), **options), transport

    return asyncio.run(scenario())


def said(status: int = 200, *, cost: float | None = None, tokens: int = 100) -> Handler:
    details = {"reasoning_tokens": tokens}
    usage = {"prompt_tokens": 10, "completion_tokens": tokens + 5, "completion_tokens_details": details}
    reply = {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "1"}, "finish_reason": "stop"}],
        "usage": usage if cost is None else {**usage, "cost": cost},
    }
    error = {"error": {"message": "no: sk-secret", "code": status}}
    body = msgspec.json.encode(reply if status == 200 else error)
    return lambda call: FakeReply(status=status, headers={"content-type": "application/json"}, chunks=[body])


WHERE = target("openrouter")


def test_no_more_calls_are_made_than_allowed() -> None:
    audit, transport = ran(said(), begun(WHERE), WHERE, limits=Limits(calls=7))
    assert len(transport.calls) == len(audit.trials) == 7
    assert audit.stopped == "the limit of 7 calls is reached"


def test_no_more_is_spent_than_allowed() -> None:
    audit, _ = ran(said(cost=0.3), begun(WHERE), WHERE, limits=Limits(cost_usd=1.0))
    assert len(audit.trials) == 3
    assert audit.cost_usd == pytest.approx(0.9)
    assert "$1" in audit.stopped


def test_an_unknown_cost_is_not_taken_for_nothing() -> None:
    audit, _ = ran(said(), begun(WHERE, repeats=1), WHERE, limits=Limits(cost_usd=0.0))
    assert audit.cost_usd is None
    assert len(audit.trials) == 10


def test_a_provider_that_fails_again_and_again_is_left_alone() -> None:
    audit, transport = ran(said(503), begun(WHERE), WHERE)
    assert len(transport.calls) == 3
    assert "3 requests in a row failed" in audit.stopped


def test_what_failed_is_sent_again_when_the_probe_goes_on() -> None:
    broken, _ = ran(said(503), begun(WHERE, repeats=1), WHERE)
    mended, transport = ran(said(), resumed(broken, begun(WHERE, repeats=1).plan), WHERE)
    assert len(transport.calls) == 10
    assert mended.stopped == ""


def unreachable(call: Call) -> FakeReply:
    raise Unreachable("no connection", provider=call.provider)


@pytest.mark.parametrize("handler", [unreachable, said(429), said(500)], ids=["no connection", "429", "500"])
def test_a_failure_says_nothing_of_a_setting(handler: Handler) -> None:
    audit, _ = ran(handler, begun(WHERE), WHERE)
    assert {trial.outcome for trial in audit.trials} == {"failed"}
    assert set(verdicts(concluded(audit, WHERE)).values()) == {"inconclusive"}
    assert concluded(audit, WHERE).row is None


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_a_wrong_key_or_no_balance_ends_the_probe_and_keeps_what_came_before(status: int) -> None:
    kept: list[Audit] = []
    good, bad = said(), said(status)

    def handler(call: Call) -> Any:
        return good(call) if len(kept) < 2 else bad(call)

    with pytest.raises(UpstreamRefused):
        ran(handler, begun(WHERE), WHERE, keep=kept.append)
    assert len(kept[-1].trials) == 2


def test_a_missing_key_ends_the_probe_before_anything_is_sent() -> None:
    async def scenario() -> None:
        transport = FakeTransport(said())
        with pytest.raises(BardoError, match="no key"):
            await run_probe(begun(WHERE), Sender(WHERE, transport, Keyring({})))
        assert transport.calls == []

    asyncio.run(scenario())


@pytest.mark.parametrize("stops", [[1], [7], [7, 3, 20], [49]], ids=str)
def test_a_probe_that_stops_and_goes_on_comes_to_the_same(stops: Sequence[int], tmp_path: Path) -> None:
    """However often it stops: the same cells and rounds, each once, in the same order."""
    whole, _ = ran(said(), begun(WHERE), WHERE)
    audit, file = begun(WHERE), tmp_path / "audit.json"
    for calls in [*stops, None]:
        audit, _ = ran(said(), audit, WHERE, limits=Limits(calls=calls))
        write_audit(audit, file)
        audit = resumed(read_audit(file), begun(WHERE).plan)
    order = [(trial.cell, trial.round) for trial in audit.trials]
    assert order == [(trial.cell, trial.round) for trial in whole.trials]


def test_an_audit_holds_what_was_sent_and_no_key(tmp_path: Path) -> None:
    audit, transport = ran(said(400), begun(WHERE, repeats=1), WHERE)
    write_audit(concluded(audit, WHERE), tmp_path / "audit.json")
    text = (tmp_path / "audit.json").read_text()
    read = read_audit(tmp_path / "audit.json")
    assert "sk-secret" not in text
    assert transport.calls[0].headers["authorization"] == "Bearer sk-secret"
    assert {trial.message for trial in read.trials} == {"no: [key]"}
    sent = [msgspec.json.decode(call.body) for call in transport.calls]
    assert all(request.body in sent for request in read.plan.requests)
    assert list(tmp_path.iterdir()) == [tmp_path / "audit.json"]


OTHER = {
    "another model": msgspec.structs.replace(WHERE, model="openai/gpt-5"),
    "another provider": target("vllm"),
}


@pytest.mark.parametrize("where", OTHER.values(), ids=OTHER)
def test_a_probe_does_not_go_on_from_the_audit_of_another(where: Target) -> None:
    with pytest.raises(InvalidRequest, match="other requests"):
        resumed(begun(WHERE), begun(where).plan)


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff", b'{"version": 1, "plan": 3}'], ids=repr)
def test_what_is_no_audit_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "audit.json").write_bytes(content)
    with pytest.raises(InvalidRequest, match="no audit"):
        read_audit(tmp_path / "audit.json")


def test_an_unknown_cell_in_an_audit_counts_for_nothing() -> None:
    audit, _ = ran(said(), begun(WHERE), WHERE)
    strange = msgspec.structs.replace(audit.trials[0], cell="gone")
    more = msgspec.structs.replace(audit, trials=(*audit.trials, strange))
    assert concluded(more, WHERE).decision == concluded(audit, WHERE).decision
    assert BASELINE in {trial.cell for trial in audit.trials}

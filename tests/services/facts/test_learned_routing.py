"""The strategy `learned` in a running program: it chooses, learns from what comes back, keeps it, and each choice can be made again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from bardo.adapters.config.settings import Settings, parse_settings
from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.adapters.stores.log import LogReader
from bardo.adapters.stores.log.row import LogRow
from bardo.call.open import open_call
from bardo.embedding.static_embedding import shipped_embedding
from bardo.routing.learned.router import repeat
from bardo.services.facts.learned_routing import LearnedRouting, load_state, pending_of, state_path, success_of
from bardo.values.blocks import TextBlock
from bardo.values.errors import BardoError, UpstreamRefused
from bardo.values.request import BardoOptions, Intent, Message, Request
from bardo.wiring import assemble

CONFIGURATION = """
[[providers]]
id = "first"
preset = "vllm"
base_url = "http://127.0.0.1:9/v1"
models = ["qwen3-8b"]

[[providers]]
id = "second"
preset = "vllm"
base_url = "http://127.0.0.1:9/v1"
models = ["qwen3-32b"]

[log]
path = "{folder}/log.db"

[routing]
strategy = "{strategy}"

[routing.learned]
file = "{folder}/learned.json"
comparison_share = 0.2

[reasoning]
introspect = false
"""


def whole(finish: str) -> bytes:
    message = {"role": "assistant", "content": "Four."}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return msgspec.json.encode(
        {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
    )


def settings(folder: Path, strategy: str = "learned") -> Settings:
    return parse_settings(CONFIGURATION.format(folder=folder, strategy=strategy))


def request(text: str) -> Request:
    return Request(
        dialect="openai_chat",
        model="",
        messages=(Message("user", (TextBlock(text),)),),
        options=BardoOptions(intent=Intent(quality="minimum")),
    )


async def run(of: Settings, bad: str, calls: int, error: BardoError | None = None) -> None:
    """Make calls; the provider `bad`, or the one asked first, cuts every answer short or fails with an error."""

    def answer(call: Call) -> FakeReply:
        nonlocal bad
        bad = bad or call.provider
        if call.provider == bad and error is not None:
            raise error
        body = whole("length" if call.provider == bad else "stop")
        return FakeReply(headers={"content-type": "application/json"}, chunks=(body,))

    assembly = assemble(of, transport=FakeTransport(answer))
    try:
        for number in range(calls):
            live = await open_call(assembly.services, request(f"What is {number} and {number}?"))
            async for _ in live.updates():
                pass
    finally:
        await assembly.close()


def rows(of: Settings) -> list[LogRow]:
    with LogReader(of.log.path) as reader:
        return list(reader.recent(limit=1000))


def test_the_provider_that_answers_badly_is_asked_less_and_all_of_it_is_kept(tmp_path: Path) -> None:
    of = settings(tmp_path)
    asyncio.run(run(of, "first", 120))
    state = load_state(state_path(of), shipped_embedding())
    assert state is not None
    asked = [row.provider for row in sorted(rows(of), key=lambda row: row.started_at)]
    assert asked[60:].count("second") > 50
    assert sum(row.whole.count for row in state.rows.values()) == pytest.approx(120, abs=0.1)
    assert state.routes["default"].routed.count + state.routes["default"].single.count == 120


def test_every_choice_in_the_log_can_be_made_again(tmp_path: Path) -> None:
    of = settings(tmp_path)
    asyncio.run(run(of, "first", 40))
    pending = [(row, pending_of(row)) for row in rows(of)]
    assert len(pending) == 40
    for row, one in pending:
        assert one is not None
        assert repeat(one.choice) == one.choice.asked == f"{row.provider}/{row.model}"


def test_a_provider_that_fails_counts_as_a_failure_of_its_own(tmp_path: Path) -> None:
    of = settings(tmp_path)
    asyncio.run(run(of, "", 30, UpstreamRefused("busy", status=503)))
    state = load_state(state_path(of), shipped_embedding())
    assert state is not None
    answered = {f"{row.provider}/{row.model}" for row in rows(of)}
    assert len(answered) == 1
    (failing,) = state.rows.keys() - answered
    assert state.rows[failing].whole.count >= 1
    assert state.rows[failing].whole.successes == 0


def test_another_strategy_learns_nothing(tmp_path: Path) -> None:
    of = settings(tmp_path, "score")
    asyncio.run(run(of, "first", 3))
    assert load_state(state_path(of), shipped_embedding()) is None
    assert all(pending_of(row) is None for row in rows(of))


ROW = LogRow(request_id="r", started_at=0, provider="p", model="m")
CASES = {
    "an answer": (ROW, 1.0),
    "cut short": (msgspec.structs.replace(ROW, finish_reason="length"), 0.0),
    "refused": (msgspec.structs.replace(ROW, finish_reason="refusal"), 0.0),
    "a tool called in no readable form": (
        msgspec.structs.replace(ROW, degraded=({"what": "tool_calls", "sent": "text"},)),
        0.0,
    ),
    "a tool called with broken arguments": (
        msgspec.structs.replace(ROW, route={"malformed_tool_calls": ["f"]}),
        0.0,
    ),
    "a tool call that was mended": (
        msgspec.structs.replace(ROW, degraded=({"what": "tool_calls", "sent": "a tool call"},)),
        1.0,
    ),
    "another answered": (msgspec.structs.replace(ROW, model="other"), 0.0),
    "the client left": (msgspec.structs.replace(ROW, outcome="cancelled"), None),
    "the caller's fault": (msgspec.structs.replace(ROW, outcome="error", status=400), None),
    "too many calls": (msgspec.structs.replace(ROW, outcome="error", status=429), 0.0),
    "the provider's fault": (msgspec.structs.replace(ROW, outcome="error", status=503), 0.0),
    "broken off": (msgspec.structs.replace(ROW, outcome="broken"), 0.0),
}


@pytest.mark.parametrize("name", CASES)
def test_a_call_says_how_the_model_did(name: str) -> None:
    row, expected = CASES[name]
    assert success_of(row, "p/m") == expected


def test_feedback_counts_for_the_model_that_was_asked(tmp_path: Path) -> None:
    learned = LearnedRouting.of(settings(tmp_path))
    router = learned.router
    pending = router.choose("What is 2 and 2?", {"p/m": None, "p/n": None}, request_id="r", at=0)
    provider, _, model = pending.choice.asked.partition("/")
    route = {"learned": msgspec.to_builtins(pending)}
    learned.note(LogRow(request_id="r", started_at=0, provider=provider, model=model, route=route))
    before = router.state.rows[pending.choice.asked].whole
    assert (before.count, before.successes) == (1, 1)
    learned.correct("r", 0.0, 1)
    learned.correct("never seen", 0.0, 1)
    after = router.state.rows[pending.choice.asked].whole
    assert after.count == pytest.approx(2, rel=1e-5)
    assert after.successes == pytest.approx(1, rel=1e-5)
    learned.close()
    assert load_state(tmp_path / "learned.json", shipped_embedding()) is not None

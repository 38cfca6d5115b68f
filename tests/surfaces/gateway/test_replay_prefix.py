"""Models that bind their thinking to what stood before it: a changed history never breaks a session, and what it costs is said."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bardo.reasoning.replay.guard import OnChange
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.replay_loops import CITIES, TOOL, Talk, homes, talk
from surfaces.gateway.test_sdk_tool_loops import sealed_in

MODEL = "claude-fable-5-1"
OTHER_TOOL = {"type": "function", "function": {"name": "time", "parameters": {"type": "object", "properties": {}}}}
BETA = "thinking-binding-controls-2026-08-01"


def new_prompt(conversation: Talk) -> None:
    conversation.history[0] = {"role": "system", "content": "Be long."}


def new_question(conversation: Talk) -> None:
    conversation.history[1] = {"role": "user", "content": "Compare two cities."}


def new_result(conversation: Talk) -> None:
    conversation.history[3] = {**conversation.history[3], "content": "rainy"}


CHANGES = {"system prompt": new_prompt, "message 0": new_question, "message 2": new_result}


@whole_and_streamed
def test_an_unchanged_history_keeps_all_thinking(stream: bool) -> None:
    with homes(["anthropic"]) as running, talk(running, stream=stream, system="Be brief.") as conversation:
        for _ in CITIES:
            conversation.step("anthropic", MODEL)
        assert conversation.step("anthropic", MODEL)["content"] == "Oslo is the coldest."
        assert len(sealed_in(running.arrived("anthropic")[-1].raw)) == 3
    assert not any("reasoning" in one for one in conversation.degraded)


@pytest.mark.parametrize("on_change", ["restore", "drop"])
@pytest.mark.parametrize(("part", "change"), CHANGES.items(), ids=list(CHANGES))
def test_thinking_behind_a_changed_prefix_is_left_out_with_all_after_it(
    part: str, change: Callable[[Talk], None], on_change: OnChange
) -> None:
    with homes(["anthropic"], on_change=on_change) as running, talk(running, system="Be brief.") as conversation:
        for _ in CITIES[:2]:
            conversation.step("anthropic", MODEL)
        change(conversation)
        conversation.step("anthropic", MODEL, extra_headers={"X-Bardo-Include": "receipt"})
        # What was made behind a changed result is what came after it.
        kept = 1 if part == "message 2" else 0
        assert len(sealed_in(running.arrived("anthropic")[-1].raw)) == kept
        row = running.log.wait(lambda row: row.model == MODEL)[-1]
        told = [one for one in row.degraded if one["what"] == "reasoning"]
        assert any(part in one["why"] for one in told)
        assert conversation.step("anthropic", MODEL)["content"] == "Oslo is the coldest."


@pytest.mark.parametrize(("part", "change"), CHANGES.items(), ids=list(CHANGES))
def test_the_provider_can_be_asked_to_leave_it_out(part: str, change: Callable[[Talk], None]) -> None:
    with homes(["anthropic"], on_change="drop_block") as running, talk(running, system="Be brief.") as conversation:
        for _ in CITIES[:2]:
            conversation.step("anthropic", MODEL)
        change(conversation)
        conversation.step("anthropic", MODEL)
        last = running.arrived("anthropic")[-1]
        assert last.fields["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}  # type: ignore[index]
        assert BETA in last.headers["anthropic-beta"]
        assert len(sealed_in(last.raw)) == 2
        row = running.log.wait(lambda row: row.model == MODEL)[-1]
        assert any(one.get("sent") == "drop_block" and part in one["why"] for one in row.degraded)


def test_tools_in_another_order_are_put_back_in_the_order_of_before() -> None:
    with homes(["anthropic"]) as running, talk(running) as conversation:
        conversation.step("anthropic", MODEL, tools=[TOOL, OTHER_TOOL])
        conversation.step("anthropic", MODEL, tools=[OTHER_TOOL, TOOL])
        assert [tool["name"] for tool in running.last("anthropic")["tools"]] == ["weather", "time"]
        assert len(sealed_in(running.arrived("anthropic")[-1].raw)) == 1
    assert "tools" in conversation.degraded[-1]


def test_a_further_tool_costs_the_thinking() -> None:
    with homes(["anthropic"]) as running, talk(running) as conversation:
        conversation.step("anthropic", MODEL)
        conversation.step("anthropic", MODEL, tools=[TOOL, OTHER_TOOL])
        assert not sealed_in(running.arrived("anthropic")[-1].raw)
    assert "reasoning" in conversation.degraded[-1]

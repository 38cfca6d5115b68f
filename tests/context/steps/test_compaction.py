"""Long conversations that are compacted: what stays, what is summarized, by whom, and how often."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from msgspec.structs import replace

from bardo.context.effects import AskModel, ModelAnswer
from bardo.context.layer import Effect, EffectFailed
from bardo.context.steps.compress import Compress
from bardo.context.steps.settings import CompactionWay, CompressSettings
from bardo.values.blocks import TextBlock, ToolCallBlock, ToolResultBlock, UnknownBlock
from bardo.values.request import BardoOptions, Message, Request
from context.steps.histories import agent_history, histories, said, user
from support.growth import check_growth
from support.layer_runs import ANSWERING, Memory, facts, run_layer

MARK = "[Summary of the conversation up to here"


def layer(*ways: CompactionWay, above: int = 100, turns: int = 1) -> Compress:
    settings = CompressSettings(
        compact=ways,
        compact_above_tokens=above,
        keep_turns=turns,
        above_tokens=10**6,
        model="small",
        summary_tokens=200,
    )
    return Compress(settings)


def texts(request: Request) -> str:
    return "\n".join(message.text for message in request.messages)


def is_valid(messages: tuple[Message, ...]) -> bool:
    """Whether a strict provider takes these: they begin with the user, roles alternate, and each result stands behind its call."""
    turns = [message for message in messages if message.role != "system"]
    roles = [message.role for message in turns]
    calls: set[str] = set()
    for message in turns:
        for block in message.blocks:
            if isinstance(block, ToolCallBlock):
                calls.add(block.id)
            elif isinstance(block, ToolResultBlock) and block.call_id not in calls:
                return False
    return roles[0] == "user" and all(one != other for one, other in pairwise(roles))


@given(request=histories())
def test_a_compacted_conversation_is_one_that_strict_providers_take(request: Request) -> None:
    after = run_layer(layer("rules", above=1), request).request
    assert is_valid(request.messages)
    assert is_valid(after.messages)


@given(request=histories())
def test_the_system_prompt_the_last_words_of_the_user_and_the_last_turns_stay(request: Request) -> None:
    after = run_layer(layer("rules", above=1), request).request
    turn = max((place for place, one in enumerate(request.messages) if one.role == "assistant"), default=0)
    assert after.messages[-len(request.messages[turn:]) :] == request.messages[turn:]
    assert [one for one in after.messages if one.role == "system"] == [
        one for one in request.messages if one.role == "system"
    ]
    prompt = next(one for one in reversed(request.messages) if one.role == "user" and one.text)
    assert any(one.blocks[-len(prompt.blocks) :] == prompt.blocks for one in after.messages)


def test_a_conversation_that_is_not_too_long_stays() -> None:
    request = agent_history(["short"] * 4)
    assert run_layer(layer("rules", above=10_000), request).request is request


def test_the_same_summary_is_sent_in_every_later_turn_and_the_next_one_takes_it_in() -> None:
    memory = Memory()
    results = [f"{number}: {'x y ' * 400}" for number in range(6)]
    first = run_layer(layer("rules", above=1_000), agent_history(results[:4]), None, memory).request
    second = run_layer(layer("rules", above=1_000), agent_history(results[:5]), None, memory).request
    assert second.messages[: len(first.messages)] == first.messages
    third = run_layer(layer("rules", above=1_000), agent_history(results), None, memory).request
    assert third.messages[0] != first.messages[0]
    assert "Before that:" in third.messages[0].text


def test_conversations_that_begin_alike_do_not_lose_their_summaries_to_each_other() -> None:
    memory, asked = Memory(), []

    def perform(effect: Effect) -> ModelAnswer:
        asked.append(effect)
        return ModelAnswer(text="Summary.")

    one, other = (agent_history([f"{kind} {'x y ' * 400}"] * 3) for kind in ("this", "that"))
    for request in (one, other, one, other):
        run_layer(layer("model", above=1_000), request, None, memory, perform)
    assert len(asked) == 2


def test_another_beginning_is_not_what_a_summary_stands_for() -> None:
    memory = Memory()
    run_layer(layer("rules", above=1_000), agent_history(["x y " * 900] * 3), None, memory)
    other = agent_history(["a b"] * 6)
    assert run_layer(layer("rules", above=1_000), other, None, memory).request.messages == other.messages


def test_a_model_is_asked_for_what_was_said_without_the_system_prompt() -> None:
    asked: list[AskModel] = []

    def perform(effect: Effect) -> ModelAnswer:
        assert isinstance(effect, AskModel)
        asked.append(effect)
        return ModelAnswer(text="The files hold rates.", request_id="req_1", cost_nanos=12)

    history = agent_history(["x y " * 900] * 3)
    system = Message(role="system", blocks=(TextBlock("The password is swordfish."),))
    passed = run_layer(layer("model"), replace(history, messages=(system, *history.messages)), perform=perform)
    assert "swordfish" not in asked[0].prompt
    assert "What is in these files?" in asked[0].prompt
    assert (passed.receipt.saw["request_id"], passed.receipt.saw["cost_nanos"]) == ("req_1", 12)
    assert "The files hold rates." in texts(passed.request)


@pytest.mark.parametrize("answer", [EffectFailed("nobody"), ModelAnswer(text=" ")], ids=["no answer", "empty answer"])
def test_rules_make_the_summary_where_the_model_does_not(answer: EffectFailed | ModelAnswer) -> None:
    steps = layer("model").steps(agent_history(["x y " * 900] * 3), facts())
    effect = next(steps)
    while not isinstance(effect, AskModel):
        effect = steps.send(None)
    effect = steps.throw(answer) if isinstance(answer, EffectFailed) else steps.send(answer)
    passed = None
    while passed is None:
        try:
            effect = steps.send(None)
        except StopIteration as stop:
            passed = stop.value
    assert "read_file (2 times)" in texts(passed.request)


def test_nothing_is_asked_of_a_model_where_nothing_is_sent() -> None:
    request = agent_history(["x y " * 900] * 3)
    memory = Memory()
    passed = run_layer(layer("model"), request, facts(dry=True), memory)
    assert MARK in texts(passed.request)
    assert not memory


def test_a_compaction_that_costs_more_than_it_saves_waits() -> None:
    memory = Memory()
    # Nearly all stands in the turns that stay, and all of it is in the cache.
    request = agent_history(["x y " * 1_200, "x y " * 3_000])
    priced = replace(ANSWERING, input_nanos=10**9, cache_read_nanos=10**8, warm_tokens=10**6)
    assert run_layer(layer("rules"), request, facts(priced), memory).request is request
    assert run_layer(layer("rules"), request, facts(replace(priced, warm_tokens=0))).request is not request


def test_at_the_end_of_the_window_it_does_not_wait() -> None:
    request = agent_history(["x y " * 1_200, "x y " * 3_000])
    full = replace(ANSWERING, input_nanos=10**9, cache_read_nanos=10**8, warm_tokens=10**6, window=4_300)
    assert MARK in texts(run_layer(layer("rules"), request, facts(full)).request)


def test_state_that_only_its_provider_reads_is_not_summarized_away() -> None:
    state = UnknownBlock("anthropic_messages", {"type": "compaction", "content": "…"})
    history = agent_history(["x y " * 900] * 3)
    marked = (*history.messages[:1], Message(role="assistant", blocks=(state,)), user("Go on."), *history.messages[1:])
    request = replace(history, messages=marked)
    assert run_layer(layer("rules"), request).request is request


def test_a_provider_is_asked_only_in_its_own_dialect_and_not_over_the_clients_own_words() -> None:
    target = replace(ANSWERING, row="openai", dialect="openai_responses", model="gpt-5")
    request = replace(agent_history(["x"]), dialect="openai_responses")
    asked = run_layer(layer("provider"), request, facts(target)).request
    assert asked.extra == {"context_management": [{"type": "compaction", "compact_threshold": 100}]}
    assert asked.messages == request.messages
    chat = replace(request, dialect="openai_chat")
    assert run_layer(layer("provider"), chat, facts(target)).request is chat
    own = replace(request, extra={"context_management": []})
    assert run_layer(layer("provider"), own, facts(target)).request is own
    # Several targets are asked one after the other with the same request.
    further = replace(target, row="groq")
    both = replace(facts(target), targets=(target, further))
    assert run_layer(layer("provider"), request, both).request is request


def test_time_is_linear_in_the_length_of_a_conversation() -> None:
    def work(turns: int) -> None:
        run_layer(layer("rules"), agent_history(["x y " * 200] * turns))

    check_growth(work, 50, 500, below=25)


def test_answers_are_summarized_too() -> None:
    request = Request(
        model="m", messages=(user("One?" * 200), said("It is one."), user("Two?"), said("Two."), user("Three?"))
    )
    after = run_layer(layer("rules"), request).request
    assert "It is one." in after.messages[0].text
    assert [one.role for one in after.messages] == ["user", "assistant", "user"]


@pytest.mark.parametrize("masked", [False, True])
def test_the_model_gets_personal_data_as_little_as_the_call_does(masked: bool) -> None:
    asked: list[AskModel] = []

    def perform(effect: Effect) -> ModelAnswer:
        assert isinstance(effect, AskModel)
        asked.append(effect)
        return ModelAnswer(text="Summary.")

    request = replace(agent_history(["x y " * 900] * 3), options=BardoOptions(private=masked))
    run_layer(
        layer("model"), request, facts(layers=("compress", "privacy") if masked else ("compress",)), perform=perform
    )
    assert [(one.masked, one.private) for one in asked] == [(masked, masked)]

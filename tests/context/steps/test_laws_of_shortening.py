"""What no layer that shortens a prompt may do, for any conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from msgspec.structs import replace

from bardo.context.layer import Layer
from bardo.context.steps.compress import Compress
from bardo.context.steps.settings import CompressSettings, DedupSettings, FormatSettings, RelevanceSettings
from bardo.context.steps.shortening import dedup, format_results, relevance
from bardo.values.blocks import Carried, ImageBlock, TextBlock, ToolCallBlock, ToolResultBlock, UnknownBlock
from bardo.values.request import Message, Request
from context.steps.histories import agent_history, call, histories, said, user
from support.growth import check_growth
from support.layer_runs import ANSWERING, Memory, count, facts, run_layer

LAYERS: dict[str, Callable[[], Layer]] = {
    "compress": lambda: Compress(CompressSettings(above_tokens=0, longest=50, keep_turns=1)),
    "dedup": lambda: dedup(DedupSettings(above_tokens=0, least=10, least_lines=3, keep_turns=1)),
    "relevance": lambda: relevance(RelevanceSettings(above_tokens=0, longest=300, keep=100, keep_turns=1)),
    "format": lambda: format_results(FormatSettings(above_tokens=0, least=1, keep_turns=1)),
}
each_layer = pytest.mark.parametrize("name", LAYERS)


def skeleton(request: Request) -> list[tuple[str, list[object]]]:
    """Return what must stay of each message: its role, its calls and results, all that a model said, its opaque state, and markers."""
    return [(message.role, list(_stable(message))) for message in request.messages]


def _stable(message: Message) -> Iterator[object]:
    for block in message.blocks:
        if message.role != "user":
            yield block
        elif isinstance(block, ToolResultBlock):
            yield (
                block.call_id,
                [one.carried for one in block.content if not isinstance(one, UnknownBlock)],
                block.carried,
            )
        else:
            yield type(block), getattr(block, "carried", None)


def newest(request: Request) -> tuple[Message, ...]:
    """Return the last thing that the user said, and the last turn of the model with all that follows."""
    turn = max((place for place, one in enumerate(request.messages) if one.role == "assistant"), default=0)
    prompt = max(
        place
        for place, one in enumerate(request.messages)
        if one.role == "user" and not all(isinstance(block, ToolResultBlock) for block in one.blocks)
    )
    return (request.messages[prompt], *request.messages[turn:])


@each_layer
@given(request=histories())
def test_calls_results_words_of_the_model_and_opaque_state_stay(name: str, request: Request) -> None:
    assert skeleton(run_layer(LAYERS[name](), request).request) == skeleton(request)


@each_layer
@given(request=histories())
def test_the_newest_turn_stays(name: str, request: Request) -> None:
    assert newest(run_layer(LAYERS[name](), request).request) == newest(request)


@each_layer
@given(request=histories())
def test_a_layer_never_makes_a_prompt_longer_and_says_how_much_shorter_it_is(name: str, request: Request) -> None:
    passed = run_layer(LAYERS[name](), request)
    receipt = passed.receipt
    assert count(passed.request) <= count(request)
    if passed.request is request:
        assert not receipt.did
        assert not passed.degraded
    else:
        assert (receipt.tokens_before, receipt.tokens_after) == (count(request), count(passed.request))
        assert [one.why for one in passed.degraded] == [receipt.did]
        assert passed.request.body is None


@each_layer
@given(request=histories())
def test_what_was_shortened_is_not_shortened_again(name: str, request: Request) -> None:
    once = run_layer(LAYERS[name](), request).request
    assert run_layer(LAYERS[name](), once).request.messages == once.messages


@each_layer
@given(request=histories())
def test_what_was_sent_lately_is_sent_again_unchanged_where_reading_it_from_the_cache_is_free(
    name: str, request: Request
) -> None:
    layer, memory = LAYERS[name](), Memory()
    sent: tuple[Message, ...] = ()
    target = replace(ANSWERING, input_nanos=10**9, cache_read_nanos=0)
    for place, message in enumerate(request.messages):
        if message.role == "user":
            turn = Request(model="m", messages=request.messages[: place + 1])
            now = run_layer(layer, turn, facts(target), memory).request.messages
            assert now[: len(sent)] == sent
            sent = now


@each_layer
@given(request=histories())
def test_thinking_that_is_bound_to_its_prompt_keeps_it(name: str, request: Request) -> None:
    bound = facts(replace(ANSWERING, model="claude-opus-5-5", dialect="anthropic_messages"))
    assert run_layer(LAYERS[name](), request, bound).request is request


@each_layer
@given(request=histories())
def test_a_decision_of_an_earlier_turn_holds_whatever_a_change_would_save_now(name: str, request: Request) -> None:
    layer, memory = LAYERS[name](), Memory()
    first = run_layer(layer, request, facts(now=1_000.0), memory).request
    answered = (*request.messages, said("Yes."), user("And now?"))
    free = replace(ANSWERING, input_nanos=10**9, cache_read_nanos=0)
    later = run_layer(layer, Request(model="m", messages=answered), facts(free, now=1_001.0), memory).request
    assert later.messages[: len(first.messages)] == first.messages


@pytest.mark.sampled(2)
@each_layer
def test_time_is_linear_in_the_length_of_a_conversation(name: str) -> None:
    def history(turns: int) -> Request:
        lines = "\n".join(f"line {number} of a file that is read again and again" for number in range(60))
        return agent_history([f"{turn}\n{lines}" for turn in range(turns)])

    small, large = history(50), history(500)
    check_growth(lambda one: run_layer(LAYERS[name](), one), small, large, below=25)


@pytest.mark.parametrize(
    ("window", "answer", "changes"),
    [(None, 0, False), (9_000, 0, False), (9_000, 4_000, True), (4_000, 0, True)],
    ids=["no window", "room for both", "no room for the answer", "no room for the prompt"],
)
def test_what_the_cache_holds_is_changed_only_where_prompt_and_answer_do_not_fit(
    window: int | None, answer: int, changes: bool
) -> None:
    # About 5,500 tokens, most of them behind the text that would be shortened: reading them anew costs more than it saves.
    history = agent_history(["a line of text\n" * 100, "short", "another line\n" * 1_500])
    request = replace(history, max_output_tokens=answer)
    warm = facts(replace(ANSWERING, input_nanos=10**9, cache_read_nanos=0, warm_tokens=10**6, window=window))
    assert 5_000 < count(request) < 6_000
    layer = Compress(CompressSettings(above_tokens=0, longest=50, keep_turns=1))
    assert (run_layer(layer, request, warm).request is not request) == changes


def test_calls_stay_before_their_results() -> None:
    request = agent_history(["long text\n" * 500] * 6)
    passed = run_layer(LAYERS["compress"](), request).request
    calls = [block.id for one in passed.messages for block in one.blocks if isinstance(block, ToolCallBlock)]
    results = [block.call_id for one in passed.messages for block in one.blocks if isinstance(block, ToolResultBlock)]
    assert calls == results == [f"call_{number}" for number in range(6)]


@pytest.mark.parametrize("pictures", [True, False])
def test_old_pictures_of_tools_are_left_out_where_that_is_wanted(pictures: bool) -> None:
    marked = Carried("anthropic_messages", {"cache_control": {"type": "ephemeral"}})
    shots = [
        Message(
            role="user",
            blocks=(
                ToolResultBlock(
                    call_id=f"call_{number}",
                    content=(TextBlock("seen"), ImageBlock(media_type="image/png", data=f"{number}", carried=marked)),
                ),
            ),
        )
        for number in range(3)
    ]
    turns = [message for number, shot in enumerate(shots) for message in (call(number), shot)]
    layer = Compress(CompressSettings(above_tokens=0, keep_turns=1, pictures=pictures))
    request = Request(model="m", messages=(user("Click."), *turns))
    after = run_layer(layer, request)
    kinds = [[type(one) for one in shot.blocks[0].content] for shot in after.request.messages[2::2]]  # type: ignore[union-attr]
    first = after.request.messages[2].blocks[0].content[1]  # type: ignore[union-attr]
    assert kinds == [[TextBlock, TextBlock if pictures and number < 2 else ImageBlock] for number in range(3)]
    assert isinstance(first, TextBlock | ImageBlock)
    assert first.carried == marked
    assert ("2 old pictures were left out" in after.receipt.did) == pictures


@each_layer
@given(request=histories())
def test_a_conversation_that_begins_alike_does_not_undo_what_was_decided(name: str, request: Request) -> None:
    layer, memory = LAYERS[name](), Memory()
    first = run_layer(layer, request, facts(now=1_000.0), memory).request
    run_layer(layer, Request(model="m", messages=(user("Hello?"),)), facts(now=1_000.5), memory)
    free = replace(ANSWERING, input_nanos=10**9, cache_read_nanos=0, warm_tokens=10**6)
    assert run_layer(layer, request, facts(free, now=1_001.0), memory).request.messages == first.messages

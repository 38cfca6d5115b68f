"""A request gets the tools that belong to what is asked; what must stay stays, and a session's list is only appended to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.context.effects import LoadForSession, StoreForSession
from bardo.context.layer import Effect, EffectFailed, LayerFacts, Passed
from bardo.context.tool_choice.layer import ToolChoice
from bardo.context.tool_choice.session import ToolChoiceSettings
from bardo.values.blocks import Carried, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import Message, OutputFormat, Request, Tool
from bardo.values.request import ToolChoice as Choice

NAMES = [
    "get_weather", "send_email", "find_flight", "book_hotel", "translate_text", "read_calendar", "make_invoice", "play_music",
    "search_news", "convert_currency", "resize_picture", "list_files", "open_ticket", "track_parcel", "count_words",
    "start_timer", "find_recipe", "rent_car",
]  # fmt: skip
TOOLS = tuple(Tool(name=name, description=f"{name.replace('_', ' ').capitalize()}.", schema={}) for name in NAMES)
WORDS = ToolChoiceSettings(most=5, vectors=False)


def said(text: str, *further: Message) -> tuple[Message, ...]:
    return (Message("user", (TextBlock(text),)), *further)


def request_of(text: str = "What shall I cook tonight?", **fields: Any) -> Request:
    return Request(**{"model": "m", "messages": said(text), "tools": TOOLS, **fields})


def facts_of(session: str = "s", **fields: Any) -> LayerFacts:
    def count(request: Request, target: object) -> int:
        return 10 * len(request.tools)

    return LayerFacts(
        **{"tenant": "t", "session": session, "now": 0.0, "profile": "p", "count_tokens": count, **fields}
    )


class Sessions:
    """Performs the effects of sessions, and of nothing else."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def perform(self, effect: Effect) -> Any:
        if isinstance(effect, LoadForSession):
            return self.kept.get(effect.session)
        if isinstance(effect, StoreForSession):
            self.kept[effect.session] = effect.value
            return None
        raise EffectFailed(type(effect).__name__)


def chosen(
    request: Request,
    settings: ToolChoiceSettings = WORDS,
    *,
    sessions: Sessions | None = None,
    facts: LayerFacts | None = None,
) -> Passed:
    """Run the layer."""
    perform: Callable[[Effect], Any] = (sessions or Sessions()).perform
    steps = ToolChoice(settings).steps(request, facts or facts_of())
    try:
        effect = next(steps)
        while True:
            try:
                result = perform(effect)
            except EffectFailed as failed:
                effect = steps.throw(failed)
            else:
                effect = steps.send(result)
    except StopIteration as done:
        passed: Passed = done.value
        return passed


def names(passed: Passed) -> list[str]:
    return [tool.name for tool in passed.request.tools]


def test_few_tools_are_sent_as_they_came() -> None:
    request = request_of(tools=TOOLS[:5])
    passed = chosen(request)
    assert passed.request is request
    assert not passed.degraded


def test_the_tools_that_belong_to_the_question_are_sent_and_the_others_are_named() -> None:
    passed = chosen(request_of("I need a hotel room and a rental car in Rome"))
    assert {"book_hotel", "rent_car"} < {*names(passed)}
    assert len(names(passed)) == 5
    [lost] = passed.degraded
    assert (lost.what, lost.asked, lost.sent) == ("tools", "18 tools", "5 tools")
    assert "play_music" in lost.why
    assert (passed.receipt.tokens_before, passed.receipt.tokens_after) == (180, 50)
    assert passed.receipt.saw["by"] == "words"
    assert set(passed.receipt.saw["left_out"]) == {*NAMES} - {*names(passed)}


@pytest.mark.parametrize(
    "text",
    ["Use play_music.", "now `play_music`!", "PLAY_MUSIC", "please play music for me", "playMusic is what I want"],
)
def test_a_tool_that_the_user_names_stays(text: str) -> None:
    assert "play_music" in names(chosen(request_of(f"Cook a recipe, book a hotel, rent a car, find news. {text}")))


def test_a_word_is_no_name_but_a_name_of_one_word_is_found_as_it_is_written() -> None:
    tools = (*TOOLS, Tool(name="Now", description="Trends.", schema={}))
    question = "hotel car news weather email calendar invoice"
    assert "Now" not in names(chosen(request_of(f"{question} now", tools=tools)))
    assert "Now" in names(chosen(request_of(f"{question} Now", tools=tools)))


def test_the_chosen_tool_and_the_used_ones_stay() -> None:
    call = Message("assistant", (ToolCallBlock(id="c1", name="count_words", arguments="{}"),))
    result = Message("user", (ToolResultBlock(call_id="c1", content=(TextBlock("7"),)),))
    request = request_of(messages=said("Weather?", call, result), tool_choice=Choice(mode="named", name="start_timer"))
    assert {"count_words", "start_timer", "get_weather"} <= {*names(chosen(request))}


def test_tools_of_providers_and_those_with_a_loading_of_their_own_are_untouched() -> None:
    hosted = Tool(name="web_search", hosted=True, carried=Carried("d", {"type": "web_search"}))
    deferred = Tool(name="rare", schema={}, carried=Carried("d", {"defer_loading": True}))
    passed = chosen(request_of(tools=(*TOOLS, hosted, deferred)))
    assert {"web_search", "rare"} < {*names(passed)}
    assert len(passed.request.tools) == 7


def test_a_client_that_chooses_itself_gets_all_its_tools() -> None:
    request = request_of(extra={"tool_choice": {"type": "allowed_tools"}})
    assert chosen(request).request is request


def test_a_mark_of_the_cache_moves_to_the_last_tool_that_is_kept() -> None:
    marked = Tool(name="zzz", schema={}, carried=Carried("d", {"cache_control": {"type": "ephemeral"}, "x": 1}))
    sent = chosen(request_of(tools=(*TOOLS, marked))).request.tools
    assert sent[-1].carried == Carried("d", {"cache_control": {"type": "ephemeral"}})
    assert sent[-1].name != "zzz"


def test_a_session_keeps_its_tools_and_appends() -> None:
    sessions = Sessions()
    first = names(chosen(request_of("Book a hotel"), sessions=sessions))
    again = names(chosen(request_of("Book a hotel"), sessions=sessions))
    assert again == first
    later = names(chosen(request_of("Now play_music"), sessions=sessions))
    assert later[: len(first)] == first
    assert "play_music" in later[len(first) :]
    assert names(chosen(request_of("And again the hotel"), sessions=sessions))[: len(later)] == later


def test_a_dry_run_keeps_nothing() -> None:
    sessions = Sessions()
    chosen(request_of(), sessions=sessions, facts=facts_of(dry=True))
    assert not sessions.kept


@pytest.mark.parametrize("facts", [{"workload": "travel"}, {"found": {"classify": {"domain": "travel"}}}])
def test_a_task_has_its_tools(facts: Mapping[str, Any]) -> None:
    settings = ToolChoiceSettings(most=5, vectors=False, tasks={"travel": ("find_flight", "rent_car", "gone")})
    passed = chosen(request_of("Any news, recipe, music?"), settings, facts=facts_of(**facts))
    assert names(passed) == ["find_flight", "rent_car"]
    assert passed.receipt.saw["task"] == "travel"


def test_the_order_may_be_that_of_names() -> None:
    found = names(chosen(request_of(), ToolChoiceSettings(most=5, vectors=False, order="name")))
    assert found == sorted(found)


def test_an_answer_in_a_schema_gets_no_functions() -> None:
    settings = ToolChoiceSettings(most=5, vectors=False, meta_above=10)
    assert "search_tools" in names(chosen(request_of(), settings))
    typed = request_of(output_format=OutputFormat(mode="json_schema", schema={}))
    assert "search_tools" not in names(chosen(typed, settings))


@given(
    texts=st.lists(
        st.sampled_from([*NAMES, "hotel", "tell me the news", "weather in Rome", ""]), min_size=1, max_size=5
    ),
    most=st.integers(1, 20),
    count=st.integers(0, len(TOOLS)),
)
def test_what_is_named_is_there_and_every_turn_begins_with_the_tools_of_the_one_before(
    texts: list[str], most: int, count: int
) -> None:
    sessions = Sessions()
    before: list[str] = []
    tools = TOOLS[:count]
    for place in range(len(texts)):
        messages = tuple(Message("user", (TextBlock(text),)) for text in texts[: place + 1])
        settings = ToolChoiceSettings(most=most, vectors=False)
        passed = chosen(request_of(messages=messages, tools=tools), settings, sessions=sessions)
        sent = names(passed)
        assert {*sent} <= {tool.name for tool in tools}
        assert {text for text in texts[: place + 1] if text in {tool.name for tool in tools}} <= {*sent}
        assert sent[: len(before)] == before
        before = sent

"""Calls of the gateway's search are held in time linear in the reply, and no longer than a query may be."""

from __future__ import annotations

from bardo.planning.hosted_search import SearchPlan
from bardo.replies.citations import SearchFunction
from bardo.replies.own_calls import OwnCallStage
from bardo.values.events import ContentChunk, Finish, ToolCallChunk, ToolCallEnd, ToolCallStart

MOST_ARGUMENTS = 20_000
FUNCTIONS = {"web_search": SearchFunction(SearchPlan(tool="web_search", most=3), "")}


def test_arguments_are_held_up_to_their_bound_however_they_are_cut() -> None:
    for size in (1, 7, 3 * MOST_ARGUMENTS):
        stage = OwnCallStage(FUNCTIONS, MOST_ARGUMENTS)
        stage.feed(ToolCallStart(0, "call_1", "web_search"))
        for begin in range(0, 2 * MOST_ARGUMENTS, size):
            assert stage.feed(ToolCallChunk(0, "x" * min(size, 2 * MOST_ARGUMENTS - begin))) == ()
        stage.feed(ToolCallEnd(0))
        [call] = stage.calls
        assert (call.id, call.arguments) == ("call_1", "x" * MOST_ARGUMENTS)


def test_what_is_no_search_passes_and_the_end_waits() -> None:
    stage, text = OwnCallStage(FUNCTIONS, MOST_ARGUMENTS), ContentChunk(0, "hello")
    assert stage.feed(text) == (text,)
    assert stage.feed(Finish("stop")) == ()
    assert (stage.pending, stage.calls, stage.next_block) == ([Finish("stop")], [], 1)

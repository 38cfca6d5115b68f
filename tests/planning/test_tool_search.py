"""Tools that are loaded when a search finds them: what a target without such a thing is sent, and what a search finds."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.planning.tool_search import ToolSearchPlan, found_text, with_tool_search
from bardo.values.blocks import ToolCallBlock, ToolResultBlock
from bardo.values.request import OutputFormat, Request, Tool
from bardo.values.wire import Arrival

ROWS = {row.id: row for row in builtin().providers}
CLOCK = {"name": "clock", "description": "Tells the time", "input_schema": {"type": "object"}}
BM25 = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
REGEX = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}


def deferred(name: str, description: str = "", **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties}
    return {"name": name, "description": description, "input_schema": schema, "defer_loading": True}


WEATHER = deferred(
    "get_weather", "Tells the weather of a place", city={"type": "string", "description": "Name of the town"}
)
MAIL = deferred("sendMail", "Sends a letter to somebody", to={"type": "string"})
FILES = deferred("list_files", "Lists what is in a folder")
HI = {"role": "user", "content": "Hi"}


def asked(*tools: Any, messages: Any = (HI,), **fields: Any) -> Request:
    body = {"model": "m", "max_tokens": 9, "tools": [*tools], "messages": [*messages], **fields}
    return dialect("anthropic_messages").decode_request(json.dumps(body).encode(), Arrival())


def planned(request: Request, row: str = "deepseek", model: str = "m") -> tuple[list[str], ToolSearchPlan | None]:
    sent, plan = with_tool_search(request, ROWS[row], model)
    return [tool.name for tool in sent.tools], plan


def searched(use: str, *found: str, name: str = "tool_search_tool_bm25") -> list[dict[str, Any]]:
    references = [{"type": "tool_reference", "tool_name": one} for one in found]
    content = {"type": "tool_search_tool_search_result", "tool_references": references}
    return [
        {"type": "server_tool_use", "id": use, "name": name, "input": {"query": "x"}},
        {"type": "tool_search_tool_result", "tool_use_id": use, "content": content},
    ]


def test_only_what_is_loaded_is_sent_and_the_search_is_a_function() -> None:
    sent, plan = with_tool_search(asked(BM25, WEATHER, CLOCK, MAIL), ROWS["deepseek"], "m")
    assert [tool.name for tool in sent.tools] == ["clock", "tool_search_tool_bm25"]
    assert sent.tools[1].schema is not None
    assert "query" in sent.tools[1].schema["properties"]
    assert not any(tool.hosted for tool in sent.tools)
    assert plan is not None
    assert (plan.tool, plan.by, [tool.name for tool in plan.deferred]) == (
        "tool_search_tool_bm25",
        "words",
        ["get_weather", "sendMail"],
    )
    assert [one.what for one in sent.degraded] == ["tool tool_search_tool_bm25"]
    assert sent.body is None, "the client's own bytes are not forwarded"


def test_what_a_conversation_found_stands_behind_the_others_in_the_order_in_which_it_was_found() -> None:
    first = [{"role": "assistant", "content": [{"type": "text", "text": "I look."}, *searched("s1", "list_files")]}]
    more = [*first, HI, {"role": "assistant", "content": searched("s2", "get_weather", "list_files", "gone")}]
    tools = (BM25, WEATHER, CLOCK, MAIL, FILES)
    before, _ = planned(asked(*tools))
    after_one, _ = planned(asked(*tools, messages=[HI, *first, HI]))
    after_two, plan = planned(asked(*tools, messages=[HI, *more, HI]))
    assert after_one == [*before, "list_files"]
    assert after_two == [*before, "list_files", "get_weather"], "what was sent is the beginning of what is sent now"
    assert plan is not None
    assert [tool.name for tool in plan.deferred] == ["sendMail"]


def test_searches_of_the_history_are_calls_of_the_function_and_their_results() -> None:
    call = {"type": "tool_use", "id": "c", "name": "get_weather", "input": {}}
    turns = [
        HI,
        {"role": "assistant", "content": [*searched("s1", "get_weather"), call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "sunny"}]},
    ]
    sent, _ = with_tool_search(asked(BM25, WEATHER, messages=turns), ROWS["deepseek"], "m")
    blocks = [block for message in sent.messages for block in message.blocks]
    calls = [(one.id, one.name) for one in blocks if isinstance(one, ToolCallBlock)]
    results = [one for one in blocks if isinstance(one, ToolResultBlock)]
    assert calls == [("s1", "tool_search_tool_bm25"), ("c", "get_weather")]
    assert [one.call_id for one in results] == ["s1", "c"]
    assert json.loads(results[0].text)["tools"] == [
        {"name": "get_weather", "description": "Tells the weather of a place"}
    ]
    assert [message.role for message in sent.messages] == ["user", "assistant", "user", "assistant", "user"]


_CALL = {"type": "tool_use", "id": "c", "name": "get_weather", "input": {}}


def _made(key: str) -> list[dict[str, Any]]:
    """Return a search that bardo made, in the round that its id begins with."""
    return searched(f"srvtoolu_bardo{key}", "get_weather")


_ONE, _TWO = searched("s1", "get_weather"), searched("s2", "list_files")


@pytest.mark.parametrize(
    ("said", "turns"),
    [
        pytest.param([*_ONE, *_TWO], [["s1"], ["s1"], ["s2"], ["s2"]], id="one after the other"),
        pytest.param([_ONE[0], _TWO[0], _ONE[1], _TWO[1]], [["s1", "s2"], ["s1", "s2"]], id="both at once"),
        pytest.param([*_made("01s1"), *_made("01s2")], [["s1", "s2"], ["s1", "s2"]], id="both of one round"),
        pytest.param([*_made("01s1"), *_made("02s2")], [["s1"], ["s1"], ["s2"], ["s2"]], id="of two rounds"),
        pytest.param([_CALL, *_ONE, *_TWO], [["c", "s1", "s2"], ["s1", "s2"], ["c"]], id="beside a client's call"),
        pytest.param([_ONE[1]], [["s1"]], id="a result alone"),
        pytest.param([_ONE[0], *_TWO, *_TWO], [["s1", "s2"], ["s2"], ["s2"], ["s2"]], id="one without a result"),
    ],
)
def test_every_call_of_a_turn_is_answered_right_behind_it(said: list[Any], turns: list[list[str]]) -> None:
    asks = [HI, {"role": "assistant", "content": said}]
    if _CALL in said:
        asks.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "sunny"}]})
    sent, _ = with_tool_search(asked(BM25, WEATHER, FILES, messages=asks), ROWS["deepseek"], "m")
    found = [
        [block.id if isinstance(block, ToolCallBlock) else block.call_id for block in message.blocks]  # type: ignore[union-attr]
        for message in sent.messages[1:]
    ]
    assert found == turns


@pytest.mark.parametrize(
    ("row", "model", "native"),
    [
        ("anthropic", "claude-sonnet-4-5-20250929", True),
        ("anthropic", "claude-opus-5", True),
        ("anthropic", "claude-3-5-haiku-latest", False),
        ("vertex-anthropic", "claude-opus-4-6", True),
        ("azure-anthropic", "claude-3-haiku", False),
        ("openai", "gpt-5", False),
    ],
)
def test_a_target_that_searches_itself_gets_the_request_as_it_came(row: str, model: str, native: bool) -> None:
    request = asked(BM25, WEATHER)
    sent, plan = with_tool_search(request, ROWS[row], model)
    assert (sent is request) is native
    assert (plan is None) is native


def test_a_request_without_deferred_tools_is_returned_itself() -> None:
    for request in (asked(CLOCK), asked(), asked({**WEATHER, "defer_loading": False})):
        assert with_tool_search(request, ROWS["deepseek"], "m") == (request, None)


def test_a_client_that_searches_itself_gets_what_it_referred_to() -> None:
    reference = {"type": "tool_reference", "tool_name": "sendMail"}
    call = {"type": "tool_use", "id": "c", "name": "clock", "input": {}}
    turns = [
        HI,
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [reference]}]},
    ]
    assert planned(asked(CLOCK, WEATHER, MAIL)) == (["clock"], None)
    assert planned(asked(CLOCK, WEATHER, MAIL, messages=turns)) == (["clock", "sendMail"], None)


def test_a_tool_that_must_be_called_is_loaded() -> None:
    names, _ = planned(asked(BM25, WEATHER, MAIL, tool_choice={"type": "tool", "name": "sendMail"}))
    assert names == ["tool_search_tool_bm25", "sendMail"]


def test_all_tools_are_sent_where_the_answer_must_fit_a_schema() -> None:
    request = msgspec.structs.replace(asked(BM25, WEATHER, CLOCK), output_format=OutputFormat(mode="json_object"))
    sent, plan = with_tool_search(request, ROWS["deepseek"], "m")
    assert ([tool.name for tool in sent.tools], plan) == (["clock", "get_weather"], None)
    assert [one.what for one in sent.degraded] == ["defer_loading"]


def test_a_clients_own_tool_keeps_its_name() -> None:
    own = {**CLOCK, "name": "tool_search_tool_bm25"}
    names, plan = planned(asked(BM25, own, WEATHER))
    assert names == ["tool_search_tool_bm25", "bardo_tool_search_tool_bm25"]
    assert plan is not None
    assert plan.tool == names[1]


def find(by: str, asks: Any, *tools: dict[str, Any]) -> tuple[list[str], str]:
    search = REGEX if by == "pattern" else BM25
    _, plan = planned(asked(search, *(tools or (WEATHER, MAIL, FILES))))
    assert plan is not None
    found, error = plan.found({by: asks})
    return [tool.name for tool in found], error


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("weather", "get_weather"),
        ("wether forecast", "get_weather"),
        ("name of a town", "get_weather"),
        ("write a letter", "sendMail"),
        ("send mail", "sendMail"),
        ("sendMail", "sendMail"),
        ("what is in this folder", "list_files"),
    ],
)
def test_words_find_names_descriptions_and_arguments(query: str, first: str) -> None:
    found, error = find("query", query)
    assert (found[0], error) == (first, "")


def test_what_has_nothing_in_common_is_not_found() -> None:
    assert find("query", "zzzz") == ([], "")
    assert find("query", "weather")[0] == ["get_weather"]


def test_at_most_five_are_found() -> None:
    many = [deferred(f"file_{number}", "Works on files") for number in range(30)]
    assert len(find("query", "files", *many)[0]) == 5
    assert len(find("pattern", "file", *many)[0]) == 5


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("weather", ["get_weather"]),
        ("get_.*", ["get_weather"]),
        ("(?i)SENDMAIL", ["sendMail"]),
        ("mail.*|letter", ["sendMail"]),
        ("town", ["get_weather"]),
        ("^list|somebody", ["list_files", "sendMail"]),
        ("nothing_like_it", []),
    ],
)
def test_a_pattern_is_looked_for_as_python_does(pattern: str, found: list[str]) -> None:
    assert find("pattern", pattern) == (found, "")


@pytest.mark.parametrize("asks", ["[", "(?=x)", "x" * 201, "", None, 7, ["a"]])
def test_what_is_no_pattern_is_told_to_the_model(asks: Any) -> None:
    assert find("pattern", asks) == ([], "invalid_tool_input")


def test_no_pattern_takes_long() -> None:
    tools = [deferred(f"t{number}", "a" * 3_000) for number in range(40)]
    assert find("pattern", "(a+)+(a+)+(a|aa)+$b", *tools)[0] == []
    # Backtracking would never end.


def test_the_model_reads_what_it_may_call_or_why_it_may_not() -> None:
    assert json.loads(found_text([Tool(name="a", description="b" * 900)]))["tools"][0]["description"] == "b" * 400
    assert "Search with other words" in found_text([])
    assert json.loads(found_text([], "too_many_requests")) == {"error": "too_many_requests"}


SPACE = {
    "type": "namespace",
    "name": "crm",
    "description": "Customers",
    "tools": [
        {
            "type": "function",
            "name": "find",
            "description": "Finds one",
            "parameters": {"type": "object"},
            "defer_loading": True,
        },
        {"type": "function", "name": "note", "description": "Notes", "parameters": {"type": "object"}},
    ],
}


def test_functions_of_a_namespace_are_deferred_one_by_one() -> None:
    body = {"model": "m", "input": "Hi", "tools": [{"type": "tool_search"}, SPACE]}
    request = dialect("openai_responses").decode_request(json.dumps(body).encode(), Arrival())
    names, plan = planned(request)
    assert names == ["crm__note", "tool_search"]
    assert plan is not None
    assert [tool.name for tool in plan.deferred] == ["crm__find"]
    assert planned(request, "openai", "gpt-5.5")[1] is None
    output = {
        "type": "tool_search_output",
        "execution": "server",
        "call_id": None,
        "status": "completed",
        "tools": [SPACE],
    }
    call = {
        "type": "tool_search_call",
        "execution": "server",
        "call_id": None,
        "arguments": {"paths": ["crm"]},
        "id": "t",
    }
    items = [{"role": "user", "content": "Hi"}, call, {**output, "id": "t"}, {"role": "user", "content": "Go on"}]
    request = dialect("openai_responses").decode_request(json.dumps({**body, "input": items}).encode(), Arrival())
    assert planned(request)[0] == ["crm__note", "tool_search", "crm__find"]


@pytest.mark.parametrize("ids", [True, False], ids=["with ids of items", "as Codex sends them"])
def test_searches_of_openai_have_no_call_id_and_belong_together_by_their_order(ids: bool) -> None:
    items: list[dict[str, Any]] = [{"role": "user", "content": "Hi"}]
    for number in range(2):
        call = {"type": "tool_search_call", "execution": "server", "call_id": None, "arguments": {"query": "crm"}}
        output = {"type": "tool_search_output", "execution": "server", "call_id": None, "tools": [SPACE]}
        items += [call | ({"id": f"tsc_{number}"} if ids else {}), output | ({"id": f"tso_{number}"} if ids else {})]
        items.append({"role": "user", "content": "Go on"})
    body = {"model": "m", "input": items, "tools": [{"type": "tool_search"}, SPACE]}
    request = dialect("openai_responses").decode_request(json.dumps(body).encode(), Arrival())
    sent, _ = with_tool_search(request, ROWS["deepseek"], "m")
    blocks = [block for message in sent.messages for block in message.blocks]
    assert [one.id for one in blocks if isinstance(one, ToolCallBlock)] == ["search_1", "search_2"]
    assert [one.call_id for one in blocks if isinstance(one, ToolResultBlock)] == ["search_1", "search_2"]


def test_a_search_that_the_client_runs_is_left_to_it() -> None:
    search = {"type": "tool_search", "execution": "client", "description": "Finds", "parameters": {"type": "object"}}
    body = {"model": "m", "input": "Hi", "tools": [search]}
    request = dialect("openai_responses").decode_request(json.dumps(body).encode(), Arrival())
    assert with_tool_search(request, ROWS["deepseek"], "m") == (request, None)

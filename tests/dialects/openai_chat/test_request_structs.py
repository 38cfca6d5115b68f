"""Requests read by the structs of the dialect: what they allow is read, what no struct has is carried from any depth."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.dialects.openai_chat import DIALECT, wire
from bardo.dialects.openai_chat.completions import decode_completion
from bardo.dialects.openai_chat.operations import decode_request as decode_embeddings
from bardo.dialects.openai_chat.request_out import DECLARATION, encode_body
from bardo.dialects.shared.losses import Losses
from bardo.values.blocks import Carried, ImageBlock, TextBlock, ToolCallBlock, ToolResultBlock, UnknownBlock
from bardo.values.errors import CallerError, InvalidRequest
from bardo.values.request import Message, Request
from bardo.values.wire import Arrival
from dialects.openai_chat.chat import asked, request_of, row_with, sent
from support.generated_wire import GeneratedValues

CHAT = "openai_chat"
# A server that takes all that the dialect can say.
ROW = row_with(replay="reasoning_details", developer_role=True, media_in_results=True, thought_signatures=True)


def _read(body: Any) -> Request:
    return DIALECT.decode_request(json.dumps(body).encode(), Arrival())


def test_nothing_but_a_refusal_comes_of_what_the_structs_allow_and_of_what_they_do_not() -> None:
    refused = 0
    for seed in range(120):
        message = GeneratedValues(("message", seed), (0.0, 0.02, 0.1)[seed % 3]).of(wire.Message)
        body = GeneratedValues(("request", seed), 0.02).of(wire.Request) if seed % 2 else {"model": "m", "messages": []}
        if isinstance(message, dict) and isinstance(body, dict):
            message["role"] = ("user", "assistant", "tool")[seed % 3]
            body["messages"] = [message]
        try:
            _read(body)
        except CallerError:
            refused += 1
    assert 10 < refused < 110


def test_what_bardo_has_no_word_for_is_in_the_order_of_the_client() -> None:
    for seed in range(40):
        body = GeneratedValues(("request", seed)).of(wire.Request)
        names = {*wire.Request.CARRIED, "zz", "unheard_of"} - {"chat_template_kwargs"}
        body = {name: value for name, value in body.items() if name in names}
        body = {"zz": 1, **body, "model": "m", "messages": [], "unheard_of": {"a": None}, "nothing": None}
        extra = _read(body).extra
        assert [*extra.items()] == [(name, body[name]) for name in body if name in names and body[name] is not None]


def test_what_is_read_and_written_anew_reads_as_the_same_messages() -> None:
    for seed in range(60):
        message = GeneratedValues(("message", seed)).of(wire.Message)
        message["role"] = "assistant"
        message.pop("function_call", None)
        for call in message.get("tool_calls") or ():
            for name, text in (("function", "arguments"), ("custom", "input")):
                if call.get(name):
                    call[name][text] = "{}"
        request = _read({"model": "m", "messages": [message]})
        body, _ = sent(request, ROW)
        again = _read(body)
        assert [_said(one.blocks) for one in again.messages] == [_said(one.blocks) for one in request.messages], message


@pytest.mark.parametrize("name", [*wire.Message.CARRIED, "unheard_of"])
@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
def test_each_field_of_a_message_that_has_no_word_here_is_carried_where_it_stands_alone(role: str, name: str) -> None:
    held = "f" if name == "name" else {"x": 1}
    message = {"role": role, "content": "a", name: held, **({"tool_call_id": "c"} if role == "tool" else {})}
    (found,) = _read({"model": "m", "messages": [message]}).messages
    carrier = found.blocks[0] if role == "tool" else found
    assert not isinstance(carrier, UnknownBlock)
    assert carrier.carried == Carried(CHAT, {name: held})


@pytest.mark.parametrize("inside", [False, True], ids=["of the call", "of its function"])
def test_each_field_of_a_call_that_has_no_word_here_is_carried_where_it_stands_alone(inside: bool) -> None:
    further = {"unheard_of": {"x": 1}}
    function = {"name": "f", "arguments": "{}", **(further if inside else {})}
    call = {"id": "c", "type": "function", "function": function, **({} if inside else further)}
    (found,) = _read({"model": "m", "messages": [{"role": "assistant", "tool_calls": [call]}]}).messages[0].calls
    assert found.carried == Carried(CHAT, {"function": further} if inside else further)


def _said(blocks: Any) -> Any:
    text = "".join(block.text for block in blocks if isinstance(block, TextBlock))
    calls = [(block.id, block.name) for block in blocks if isinstance(block, ToolCallBlock)]
    return text, calls


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
PLACES: dict[str, tuple[dict[str, Any], Any]] = {
    "a message": ({"role": "user", "content": "a", "x": 1}, lambda message: message.carried),
    "a part": (
        {"role": "user", "content": [{"type": "text", "text": "a", "x": 1}]},
        lambda message: message.blocks[0].carried,
    ),
    "a picture": (
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}, "x": 1}]},
        lambda message: message.blocks[0].carried,
    ),
    "a call": (
        {"role": "assistant", "tool_calls": [{**CALL, "x": 1}]},
        lambda message: message.blocks[0].carried,
    ),
    "a result": (
        {"role": "tool", "tool_call_id": "c", "content": "a", "x": 1},
        lambda message: message.blocks[0].carried,
    ),
    "an older result": (
        {"role": "function", "name": "f", "content": "a", "x": 1},
        lambda message: message.blocks[0].carried,
    ),
}


@pytest.mark.parametrize(("message", "find"), PLACES.values(), ids=PLACES.keys())
def test_a_field_that_no_struct_has_is_carried(message: dict[str, Any], find: Any) -> None:
    assert find(asked(messages=[message]).messages[0]) == Carried(CHAT, {"x": 1})


def test_a_field_inside_the_function_of_a_call_or_a_tool_is_carried_there() -> None:
    call = {**CALL, "function": {"name": "f", "arguments": "{}", "x": 1}}
    tool = {"type": "function", "function": {"name": "f", "x": 1, "y": None}, "z": None}
    request = asked(messages=[{"role": "assistant", "tool_calls": [call]}], tools=[tool])
    block = request.messages[0].blocks[0]
    assert isinstance(block, ToolCallBlock)
    assert block.carried == Carried(CHAT, {"function": {"x": 1}})
    assert request.tools[0].carried == Carried(CHAT, {"z": None, "function": {"x": 1}})


@pytest.mark.parametrize("kind", [None, "", "function"])
def test_a_tool_without_a_type_is_a_function(kind: Any) -> None:
    assert asked(tools=[{"type": kind, "function": {"name": "f"}}]).tools[0].hosted is False


@pytest.mark.parametrize("inside", [{"function": {"name": "$web_search"}}, {"function": 5}, {"n": None}])
def test_a_tool_of_another_type_is_carried_as_it_came(inside: dict[str, Any]) -> None:
    tool = {"type": "builtin_function", **inside}
    found = asked(tools=[tool]).tools[0]
    assert (found.hosted, found.name, found.carried) == (True, "builtin_function", Carried(CHAT, tool))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"temperature": "hot"}, "temperature must be a number, not a string"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"stop": 3}, "stop must be a string or an array, not a number"),
        ({"stop": ["a", 3]}, "stop[1] must be a string, not a number"),
        ({"think": 3}, "think must be a boolean or a string, not a number"),
        ({"thinking": 3}, "thinking must be a boolean or an object, not a number"),
        ({"bardo": []}, "bardo must be an object, not an array"),
        ({"stream_options": {"include_usage": 1}}, "stream_options.include_usage must be a boolean, not a number"),
        ({"tools": [3]}, "tools[0] must be an object, not a number"),
        ({"tools": [{"type": 3}]}, "tools[0].type must be a string, not a number"),
        ({"functions": [{}]}, "functions[0].name is required"),
        ({"tool_choice": {"function": {}}}, "tool_choice.function.name is required"),
        ({"output_config": {"format": 3}}, "output_config.format must be an object, not a number"),
        ({"max_tokens": "a", "max_completion_tokens": 5}, "max_tokens must be a number, not a string"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": 3}}},
            "response_format.json_schema.schema must be an object or a boolean, not a number",
        ),
    ],
)
def test_what_is_wrong_is_told_in_words(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        asked(**fields)
    assert refusal.value.message == words


@pytest.mark.parametrize("wanted", [{"type": "json_object", "json_schema": 3}, {"type": "text", "json_schema": 3}])
def test_a_format_that_has_no_schema_is_not_asked_for_one(wanted: dict[str, Any]) -> None:
    found = asked(response_format=wanted).output_format
    assert found is None or found.mode == "json_object"


def test_the_longer_name_of_the_limit_goes_before_the_other() -> None:
    assert asked(max_tokens=0, max_completion_tokens=5).max_output_tokens == 5


def test_a_result_keeps_its_name_where_the_older_form_has_it_in_its_place() -> None:
    newer, older = asked(
        messages=[{"role": "tool", "tool_call_id": "c", "name": "f"}, {"role": "function", "name": "f"}]
    ).messages
    assert newer.blocks == (ToolResultBlock(call_id="c", name="f", carried=Carried(CHAT, {"name": "f"})),)
    assert older.blocks == (ToolResultBlock(call_id="", name="f"),)


def test_a_completion_is_read_by_its_own_fields_and_a_chats() -> None:
    body = {"model": "m", "prompt": "p", "echo": True, "logprobs": 0, "best_of": 3, "n": 2, "user": "u"}
    found = decode_completion(json.dumps(body).encode())
    assert (found.prompts, found.echo) == (("p",), True)
    request = found.requests[0]
    assert request.extra == {"user": "u", "logprobs": True}
    assert [one.what for one in request.degraded] == ["best_of", "logprobs"]
    with pytest.raises(InvalidRequest) as refusal:
        decode_completion(json.dumps({**body, "echo": 1}).encode())
    assert refusal.value.message == "echo must be a boolean, not a number"


@pytest.mark.parametrize(("kind", "task"), [("query", "query"), ("zz", None), ([1], None), ({}, None)])
def test_what_vectors_are_for_is_read_where_it_is_a_word_that_is_known(kind: Any, task: str | None) -> None:
    body = {"model": "m", "input": "a", "input_type": kind, "user": "u"}
    found = decode_embeddings(json.dumps(body).encode(), Arrival())
    assert found.task == task
    assert found.extra == {**({} if task else {"input_type": kind}), "user": "u"}


POSITIONS: dict[str, tuple[Any, list[tuple[int, int]], list[str]]] = {
    "inside a text": ("abcdef", [(2, 0), (4, 0)], ["ab", "0", "cd", "1", "ef", "c"]),
    "at the end of a part": ([{"type": "text", "text": "ab"}, {"type": "text", "text": "cd"}], [(2, 0)], ["ab", "0", "cd", "c"]),
    "behind all": ("ab", [(9, 5)], ["ab", "c", "0"]),
    "behind a call": ("ab", [(0, 1), (0, 0)], ["c", "0", "1", "ab"]),
    "a text with fields is not cut": ([{"type": "text", "text": "abcd", "x": 1}], [(2, 0)], ["abcd", "0", "c"]),
}  # fmt: skip


@pytest.mark.parametrize(("content", "positions", "expected"), POSITIONS.values(), ids=POSITIONS.keys())
def test_thinking_stands_behind_as_much_as_it_says(
    content: Any, positions: list[tuple[int, int]], expected: list[str]
) -> None:
    details = [
        {
            "type": "reasoning.text",
            "text": str(place),
            "index": place,
            "position": {"content": text, "tool_calls": calls},
        }
        for place, (text, calls) in enumerate(positions)
    ]
    message = {"role": "assistant", "content": content, "reasoning_details": details, "tool_calls": [CALL]}
    (found,) = asked(messages=[message]).messages
    assert [getattr(block, "text", "") or getattr(block, "id", "") for block in found.blocks] == expected


def _written(*messages: Message) -> list[tuple[str, Any]]:
    body = encode_body(request_of(*messages), row_with(), Losses(DECLARATION))
    return [(one["role"], one["content"]) for one in body["messages"]]


def test_pictures_come_behind_the_results_of_their_turn_alone() -> None:
    picture = [{"type": "image_url", "image_url": {"url": "u"}}]
    assert _written(
        Message("user", (ToolResultBlock(call_id="a", content=(ImageBlock(url="u"),)),)),
        Message("user", (ToolResultBlock(call_id="b"), TextBlock("c"))),
        Message("assistant", (TextBlock("d"),)),
        Message("user", (ToolResultBlock(call_id="e"),)),
    ) == [("tool", ""), ("tool", ""), ("user", picture), ("user", "c"), ("assistant", "d"), ("tool", "")]


def test_without_a_picture_what_is_said_between_results_stays_there() -> None:
    turns = [Message("user", (ToolResultBlock(call_id=name), TextBlock(name))) for name in "ab"]
    assert _written(*turns) == [("tool", ""), ("user", "a"), ("tool", ""), ("user", "b")]


def test_a_message_of_what_this_dialect_cannot_say_is_left_out() -> None:
    unknown = UnknownBlock("other", {"type": "map"})
    assert _written(
        Message("assistant", (unknown,)), Message("user", (unknown,)), Message("user", (TextBlock("a"),))
    ) == [("user", "a")]
    assert _written(Message("assistant", (unknown, TextBlock("")))) == [("assistant", "")]


def test_what_a_field_with_state_holds_beside_it_is_carried() -> None:
    extra = {"google": {"thought_signature": "s", "x": 1}, "y": 2}
    left = {"google": {"x": 1}, "y": 2}
    message = {
        "role": "assistant",
        "content": "a",
        "extra_content": extra,
        "tool_calls": [{**CALL, "extra_content": extra}],
    }
    (found,) = asked(messages=[message]).messages
    assert found.carried == Carried(CHAT, {"extra_content": left})
    assert found.blocks[1].carried == Carried(CHAT, {"extra_content": left})  # type: ignore[union-attr]


@pytest.mark.parametrize(("included", "omitted"), [(False, True), (True, False), (None, False)])
def test_thinking_that_the_client_excludes_is_left_out_of_the_reply(included: bool | None, omitted: bool) -> None:
    assert asked(include_reasoning=included).options.omit_reasoning is omitted


@pytest.mark.parametrize(
    ("role", "taken", "lost"), [("developer", False, True), ("developer", True, False), ("system", False, False)]
)
def test_a_role_that_the_server_does_not_take_is_reported(role: str, taken: bool, lost: bool) -> None:
    request = asked(messages=[{"role": role, "content": "a"}])
    _, wire_request = sent(request, row_with(developer_role=taken))
    assert ("messages.role.developer" in [one.what for one in wire_request.degraded]) is lost


@pytest.mark.parametrize("tools", [None, 1.5, "f", {"f": 1}, [], [3], [{"type": "function"}]])
def test_a_choice_among_tools_that_names_none_stays_as_it_came(tools: Any) -> None:
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": tools}}
    request = asked(tools=[{"function": {"name": "f"}}], tool_choice=choice)
    assert DIALECT.as_functions(request) is request
    assert request.extra == {"tool_choice": choice}

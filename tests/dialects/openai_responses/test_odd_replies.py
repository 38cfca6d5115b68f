"""What servers write in another type than the dialect demands is read as far as it says something."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.dialects.openai_responses import DIALECT
from bardo.streams.frames import Frame
from bardo.values.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.events import ContentChunk, Failed
from dialects.openai_responses.replies import ROW, read, read_whole

TEXT = {"type": "output_text", "text": "Hi"}
PLACE = {"item_id": "msg_1", "output_index": 0, "content_index": 0}


def whole(*output: Any, **fields: Any) -> dict[str, Any]:
    return {"object": "response", "id": "resp_1", "model": "m", "status": "completed", "output": [*output], **fields}


def message(**fields: Any) -> dict[str, Any]:
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": [TEXT], **fields}


READ: dict[str, dict[str, Any]] = {
    "an id that is a number": whole(message(id=5), id=7),
    "a model that is none": whole(message(), model=None),
    "a time that is text": whole(message(), created_at="now"),
    "a status that is none": whole(message(), status=5),
    "no status": whole(message(), status=None),
    "details of another type": whole(message(), incomplete_details="x"),
    "a reason of another type": whole(message(), incomplete_details={"reason": 5}),
    "content that is a text": whole(message(content="Hi")),
    "a text within an object": whole(message(content=[{"type": "output_text", "text": {"text": "Hi"}}])),
    "a part by its older name": whole(message(content=[{"type": "text", "text": "Hi"}])),
    "no annotations": whole(message(content=[{**TEXT, "annotations": None}])),
}


@pytest.mark.parametrize("case", READ)
def test_a_text_is_read_beside_fields_of_another_type(case: str) -> None:
    response = read_whole(READ[case])
    assert response.error is None
    assert [block.text for block in response.blocks if isinstance(block, TextBlock)] == ["Hi"]
    assert response.finish.reason == "stop"


@pytest.mark.parametrize(
    ("fields", "call"),
    [
        ({"name": 5, "call_id": 6, "arguments": None}, ("6", "5", "")),
        ({"name": "f", "call_id": "", "id": "fc_1", "arguments": {"a": 1}}, ("fc_1", "f", '{"a":1}')),
        ({"name": None, "call_id": None, "id": 7, "arguments": "{}"}, ("7", "", "{}")),
        ({}, ("", "", "")),
    ],
)
def test_a_call_is_read_whatever_its_fields_are(fields: dict[str, Any], call: tuple[str, str, str]) -> None:
    (block,) = read_whole(whole({"type": "function_call", **fields})).blocks
    assert isinstance(block, ToolCallBlock)
    assert (block.id, block.name, block.arguments) == call


def test_thinking_may_stand_in_plain_texts_and_beside_ciphertext_of_another_type() -> None:
    item = {"type": "reasoning", "summary": ["a", {"text": "b"}], "content": None, "encrypted_content": 5, "format": []}
    (block,) = read_whole(whole(item)).blocks
    assert isinstance(block, ReasoningBlock)
    assert block.summary == ("a", "b")
    assert block.opaque == ()


@pytest.mark.parametrize("place", [{"output_index": -1}, {"output_index": True}, {"output_index": "0"}, {}])
def test_a_piece_without_a_place_is_of_the_latest_item(place: dict[str, Any]) -> None:
    response = read(
        {"type": "response.output_item.added", "output_index": 0, "item": message(content=[])},
        {"type": "response.output_text.delta", "delta": "H", **PLACE},
        {"type": "response.output_text.delta", "delta": "i", **place},
        {"type": "response.completed", "response": whole(message())},
    )
    assert [block.text for block in response.blocks if isinstance(block, TextBlock)] == ["Hi"]


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (whole(output=5), "an array was expected, not int"),
        (whole(5), "an object was expected, not int"),
        (whole(message(content=5)), "an array was expected, not int"),
        (whole(message(content=[5])), "an object was expected, not int"),
        (whole(message(content=[{"type": "output_text", "text": 5}])), "a text is int, not a string"),
        (whole(message(content=[{**TEXT, "annotations": 5}])), "an array was expected, not int"),
        (whole({"type": "reasoning", "summary": 5}), "an array was expected, not int"),
        (whole({"type": "reasoning", "content": [5]}), "an object was expected, not int"),
        (whole(usage=5), "an object was expected, not int"),
        ([5], "an object was expected, not list"),
        ({"x": 1}, "neither an event nor a response"),
    ],
)
def test_what_has_no_reading_is_named(broken: Any, words: str) -> None:
    error = read_whole(broken).error
    assert error is not None
    assert str(error) == f"the reply is not of the Responses dialect: {words}"


def test_what_came_before_a_wrong_field_is_told() -> None:
    response = read_whole(whole(message(), usage=5))
    assert [block.text for block in response.blocks if isinstance(block, TextBlock)] == ["Hi"]


def test_an_announced_response_may_say_anything_of_what_it_does_not_hold_yet() -> None:
    response = read(
        {"type": "response.created", "response": {"id": "resp_1", "output": 5, "usage": [], "error": 5}},
        {"type": "response.completed", "response": whole(message())},
    )
    assert (response.id, response.error) == ("resp_1", None)


@pytest.mark.parametrize("odd", [{"unheard_of": 1}, {"item_id": 5}, {"obfuscation": []}, {"sequence_number": "1"}])
def test_a_piece_with_an_odd_field_continues_the_text_before_it(odd: dict[str, Any]) -> None:
    piece = {"type": "response.output_text.delta", **PLACE}
    response = read(
        {"type": "response.output_item.added", "output_index": 0, "item": {"id": "msg_1"}},
        {**piece, "delta": "a"},
        {**piece, "delta": "b", **odd},
        {**piece, "delta": "c"},
        {"type": "response.completed", "response": whole()},
    )
    assert [block.text for block in response.blocks if isinstance(block, TextBlock)] == ["abc"]


def test_a_frame_without_a_type_continues_nothing() -> None:
    frame = {"type": "", "delta": "x", "output_index": -1, "content_index": -1, "summary_index": -1}
    decoder = DIALECT.open_decoder(ROW)
    assert decoder.feed(Frame(msgspec.json.encode(frame))) == []


def test_pieces_of_one_text_are_one_decode_each_and_others_find_their_own() -> None:
    decoder = DIALECT.open_decoder(ROW)

    def feed(**fields: Any) -> list[Any]:
        frame = msgspec.json.encode({"type": "response.output_text.delta", **PLACE, **fields})
        return [event for event in decoder.feed(Frame(frame)) if isinstance(event, ContentChunk | Failed)]

    assert feed(delta="a") == [ContentChunk(0, "a")]
    assert feed(delta="b", logprobs=[{"token": "b"}], obfuscation="x") == [ContentChunk(0, "b")]
    assert feed(delta="c", content_index=1) == [ContentChunk(1, "c")]
    assert feed(delta="d", unheard_of=1) == [ContentChunk(0, "d")]
    assert feed(delta="e", output_index=1, item_id="msg_2") == [ContentChunk(2, "e")]
    (failed,) = feed(delta=5)
    assert "a text is int" in str(failed.error)

"""Compacted conversations as items: what a trigger is, what an item stands for, and what a model is asked for a summary."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.dialects.openai_responses.compaction import (
    HEADING,
    PROMPT,
    Summary,
    is_triggered,
    messages_of_user,
    part_request,
    parts_of,
    sealed_item,
    summary_request,
    with_summaries,
)
from bardo.dialects.openai_responses.request_in import decode_request
from bardo.values.errors import InvalidRequest
from bardo.values.request import Request
from bardo.values.wire import Arrival

TRIGGER = {"type": "compaction_trigger"}
USER = {"role": "user", "content": "Hi"}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c", "output": "a" * 50}
PICTURE = {
    "role": "user",
    "content": [{"type": "input_image", "image_url": "https://x/y.png"}, {"type": "input_text", "text": "See"}],
}
ITEM = sealed_item(Summary("What was said.", "p/m"), lambda text: text.hex(), "cmp_bardo_1")
FOREIGN = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}


def asked(*items: Any, **fields: Any) -> Request:
    return decode_request(json.dumps({"model": "m", "input": [*items], **fields}).encode(), Arrival())


def opened(text: str) -> bytes | None:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return None


def shown(*items: Any) -> list[Any]:
    body = with_summaries(asked(*items), Arrival(), opened).body
    assert body is not None
    return list(body["input"])


def test_a_trigger_asks_where_it_is_the_last_item_and_is_refused_elsewhere() -> None:
    assert is_triggered(asked(USER, TRIGGER))
    assert not is_triggered(asked(USER))
    assert not is_triggered(asked(USER, {**USER, "content": "compaction_trigger"}))
    with pytest.raises(InvalidRequest) as caught:
        is_triggered(asked(TRIGGER, USER))
    assert caught.value.param == "input[0]"


@pytest.mark.parametrize("kind", ["compaction", "compaction_summary", "context_compaction"])
def test_an_item_stands_for_a_message_that_tells_what_it_is(kind: str) -> None:
    [before, message, after] = shown(USER, {**ITEM, "type": kind}, USER)
    assert (before, after) == (USER, USER)
    assert message["role"] == "user"
    assert message["content"][0]["text"] == f"{HEADING}\n\nWhat was said."


def test_an_item_of_a_provider_and_a_request_without_items_stay_as_they_are() -> None:
    for items in ((USER, FOREIGN), (USER,), ({"type": "context_compaction"},)):
        request = asked(*items)
        assert with_summaries(request, Arrival(), opened) is request


@pytest.mark.parametrize(
    "broken",
    [
        {**ITEM, "encrypted_content": ITEM["encrypted_content"] + "x"},
        {**ITEM, "encrypted_content": ITEM["encrypted_content"][:9]},
        {**ITEM, "encrypted_content": "gAAAA"},
        {**ITEM, "encrypted_content": 7},
        {"type": "compaction", "id": "cmp_bardo_1"},
    ],
    ids=["changed", "cut in its name", "another text", "a number", "nothing"],
)
def test_an_item_that_cannot_be_read_is_refused_with_its_place(broken: Any) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read") as caught:
        shown(USER, broken)
    assert caught.value.param == "input[1].encrypted_content"


def test_what_stands_before_a_trigger_is_left_out_where_its_compaction_follows() -> None:
    assert shown(USER, TRIGGER, FOREIGN, USER) == [FOREIGN, USER]
    assert len(shown(USER, TRIGGER, ITEM, USER, TRIGGER, ITEM, USER)) == 2
    assert shown(USER, FOREIGN, TRIGGER) == [USER, FOREIGN, TRIGGER]
    with pytest.raises(InvalidRequest) as caught:
        shown(USER, TRIGGER, ITEM, {**ITEM, "encrypted_content": "bardo_compaction_1.x"})
    assert caught.value.param == "input[3].encrypted_content", "the place is that of the client's own list"


def test_a_summary_is_asked_behind_the_whole_conversation_without_what_would_change_its_form() -> None:
    request = asked(
        USER, CALL, RESULT, TRIGGER,
        instructions="Be kind.", tools=[{"type": "function", "name": "f", "parameters": {}}], tool_choice="required", store=True,
        previous_response_id="resp_1", text={"format": {"type": "json_object"}, "verbosity": "low"}, reasoning={"effort": "low"},
    )  # fmt: skip
    body = summary_request(request, Arrival()).body
    assert body is not None
    assert body["input"][:-1] == [USER, CALL, RESULT]
    assert body["input"][-1]["content"][0]["text"] == PROMPT
    assert body["tool_choice"] == "none"
    assert body["text"] == {"verbosity": "low"}
    assert (body["instructions"], body["reasoning"], body["stream"]) == ("Be kind.", {"effort": "low"}, True)
    assert not {"store", "previous_response_id"} & body.keys()
    plain = summary_request(asked(USER, TRIGGER), Arrival()).body
    assert plain is not None
    assert "tool_choice" not in plain, "OpenAI refuses a choice among no tools"


def test_a_part_is_asked_for_as_text_with_the_summary_before_it() -> None:
    request = asked(USER, TRIGGER, tools=[{"type": "function", "name": "f", "parameters": {}}], tool_choice="auto")
    part = part_request(request, Arrival(), "user: Hi", "Earlier.")
    text = part.messages[-1].text
    assert text.index("Earlier.") < text.index("user: Hi") < text.index(PROMPT)
    assert part.tools == ()


@pytest.mark.parametrize("most", [7, 20, 1000])
def test_parts_hold_every_word_in_order_and_name_what_is_no_text(most: int) -> None:
    parts = parts_of(asked(USER, CALL, RESULT, PICTURE, instructions="Not this.").messages, most)
    whole = "user: Hi call of f: {} result of f: " + "a" * 50 + " user: [a picture] user: See"
    assert "".join("".join(parts).split()) == "".join(whole.split())
    assert all(len(part) <= most + 1 for part in parts)
    assert (len(parts) == 1) is (most == 1000)


def test_no_conversation_has_no_parts() -> None:
    assert parts_of((), 100) == []


def test_what_the_user_said_stays_and_nothing_else() -> None:
    typed = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}
    kept = messages_of_user([USER, {"role": "developer", "content": "d"}, CALL, RESULT, typed, ITEM])
    assert [one["content"][0]["text"] for one in kept] == ["Hi", "x"]
    assert all(one["type"] == "message" and one["status"] == "completed" for one in kept)

"""Gemini matches results with calls by name and order, and counts them in the one content that follows the calls."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.dialects.gemini import DIALECT
from bardo.values.blocks import ImageBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import Message, Request
from dialects.gemini.support import ROW

ASKED = Message("user", (TextBlock("Look."),))
CALLS = tuple(ToolCallBlock(id=f"c{place}", name="look", arguments=f'{{"q": {place}}}') for place in range(3))
CALLED = Message("assistant", CALLS)
WAIT = Message("user", (TextBlock("Wait."),))


def _result(place: int, *beside: Any) -> ToolResultBlock:
    return ToolResultBlock(call_id=f"c{place}", content=(TextBlock(f"r{place}"), *beside))


def _results(*places: int) -> Message:
    return Message("user", tuple(_result(place) for place in places))


def _contents(*messages: Message, dialect: str = "openai_chat") -> list[dict[str, Any]]:
    wanted = Request(model="gemini-2.5-flash", messages=messages, dialect=dialect)
    return list(msgspec.json.decode(DIALECT.encode_request(wanted, ROW).body)["contents"])


def _said(contents: list[dict[str, Any]]) -> list[list[str]]:
    """Return what each content says: texts, the output of results, and the kind of any other part."""
    return [
        [
            part["functionResponse"]["response"]["output"] if "functionResponse" in part else _words(part)
            for part in parts
        ]
        for parts in (content["parts"] for content in contents)
    ]


def _words(part: dict[str, Any]) -> str:
    return str(part.get("text", next(iter(part))))


@pytest.mark.parametrize(
    "results",
    [
        (_results(2, 0, 1),),
        (_results(2), _results(1), _results(0)),
        (_results(1, 0), _results(2)),
    ],
)
def test_results_stand_in_the_order_of_the_calls(results: tuple[Message, ...]) -> None:
    contents = _contents(ASKED, CALLED, *results)
    assert _said(contents)[2:] == [["r0", "r1", "r2"]]
    assert contents[2]["role"] == "user"


@pytest.mark.parametrize("at", range(4))
def test_what_is_said_between_results_follows_them(at: int) -> None:
    turn = [_results(2), _results(1), _results(0)]
    turn.insert(at, WAIT)
    assert _said(_contents(ASKED, CALLED, *turn))[2:] == [["r0", "r1", "r2"], ["Wait."]]


def test_a_text_beside_results_follows_all_results() -> None:
    mixed = Message("user", (_result(1), TextBlock("Now?")))
    assert _said(_contents(ASKED, CALLED, mixed, _results(2, 0)))[2:] == [["r0", "r1", "r2"], ["Now?"]]


def test_a_text_beside_all_results_stands_behind_them_in_their_content() -> None:
    mixed = Message("user", (TextBlock("Now?"), *_results(1, 0, 2).blocks))
    assert _said(_contents(ASKED, CALLED, mixed))[2:] == [["r0", "r1", "r2", "Now?"]]


def test_an_image_of_a_result_stays_with_it() -> None:
    image = ImageBlock(media_type="image/png", data="AAAA")
    turn = (Message("user", (_result(1, image),)), _results(2, 0))
    assert _said(_contents(ASKED, CALLED, *turn))[2:] == [["r0", "r1", "inlineData", "r2"]]


def test_results_of_unknown_calls_are_told_in_words_behind_the_others() -> None:
    said = _said(_contents(ASKED, CALLED, _results(9, 7, 1, 2, 0)))[2:]
    assert said[0] == ["r0", "r1", "r2"]
    assert [word for word in said[1] if word.startswith("r")] == ["r9", "r7"]


def test_calls_in_several_messages_are_one_turn() -> None:
    calls = [Message("assistant", (call,)) for call in CALLS]
    assert _said(_contents(ASKED, *calls, _results(2, 1, 0)))[-1] == ["r0", "r1", "r2"]


def test_each_turn_has_its_own_results() -> None:
    again = _results(1, 0, 2)
    found = _said(_contents(ASKED, CALLED, _results(2, 1, 0), WAIT, CALLED, again, CALLED, again))
    assert [one for one in found if "r0" in one] == [["r0", "r1", "r2"]] * 3
    assert found[3] == ["Wait."]


def test_ids_that_gemini_gave_go_back_on_the_call_and_its_result() -> None:
    called = Message("assistant", (msgspec.structs.replace(CALLS[0], own_id=True), CALLS[1]))
    contents = _contents(ASKED, called, _results(1, 0), CALLED, _results(0, 1, 2))
    calls = [part["functionCall"].get("id") for content in contents[1::2] for part in content["parts"]]
    results = [part["functionResponse"].get("id") for content in contents[2::2] for part in content["parts"]]
    # The second turn has calls of the same ids, which are not known to be Gemini's.
    assert calls == results == ["c0", None, None, None, None]


def test_a_gemini_client_keeps_its_own_order_of_results() -> None:
    contents = _contents(ASKED, CALLED, _results(1, 2, 0), WAIT, dialect="gemini")
    assert _said(contents)[2:] == [["r1", "r2", "r0"], ["Wait."]]


def test_a_gemini_client_that_left_out_a_result_has_one_for_each_call() -> None:
    contents = _contents(ASKED, CALLED, _results(1), WAIT, _results(0), dialect="gemini")
    assert [len(content["parts"]) for content in contents[2:]] == [3, 1]
    assert all("functionResponse" in part for part in contents[2]["parts"])


def test_a_turn_that_goes_on_changes_nothing_that_was_written() -> None:
    history = [ASKED, CALLED, _results(2), WAIT, _results(0), _results(1), CALLED, _results(1), _results(0, 2)]
    alone = [_contents(*[msgspec.structs.replace(one) for one in history[:end]]) for end in range(1, len(history) + 1)]
    assert [_contents(*history[:end]) for end in range(1, len(history) + 1)] == alone
    assert [_contents(*history[:end]) for end in range(len(history), 0, -1)] == alone[::-1]

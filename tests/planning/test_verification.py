"""What a second model is asked about an answer, who it is, and what is read of its reply."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.planning.workloads import Judge, Verification, judge_of, judging_request, read_verdict
from bardo.routing.workloads import WorkloadRow, Workloads
from bardo.values.blocks import ImageBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import BardoOptions, Intent, Message, Request
from bardo.values.response import Response

JUDGE = Judge(model="p/second")


def asked(messages: tuple[Message, ...], answer: str = "yes") -> Any:
    request = Request(model="p/first", messages=messages)
    made = judging_request(JUDGE, request, Response(blocks=(TextBlock(answer),)))
    return msgspec.json.decode(made.messages[-1].text)


def test_it_is_given_the_turns_in_order_and_what_is_no_text_is_named() -> None:
    messages = (
        Message("system", (TextBlock("Be short."),)),
        Message("user", (TextBlock("What is this?"), ImageBlock(media_type="image/png", data="AAAA"))),
        Message("assistant", (ToolCallBlock(id="1", name="look", arguments="{}"),)),
        Message("user", (ToolResultBlock(call_id="1", content=(TextBlock("a cat"),)),)),
    )
    turns = asked(messages, "a cat")["conversation"]
    assert [turn["role"] for turn in turns] == ["system", "user", "assistant", "user"]
    assert turns[0]["text"] == "Be short."
    assert turns[1]["text"] == "What is this?\n\n[a part that is no text is left out]"
    assert "look" in turns[2]["text"]
    assert "a cat" in turns[3]["text"]


def test_long_texts_are_cut_in_the_middle_and_the_last_turn_goes_first() -> None:
    turns = tuple(Message("user", (TextBlock(f"{place}:" + "x" * 9_000),)) for place in range(50))
    given = asked((Message("system", (TextBlock("s" * 100_000),)), *turns), "a" * 90_000 + "end")
    assert given["conversation"][-1]["text"].startswith("49:")
    assert given["answer"].endswith("end")
    assert "characters are left out" in given["answer"]
    assert len(msgspec.json.encode(given)) < 60_000
    assert any("earlier turns are left out" in turn["text"] for turn in given["conversation"])


@pytest.mark.parametrize(
    "text", ["", "yes", "{}", '{"agrees": 1, "why": ""}', '{"agrees": true}', "[" * 100_000, '"\ud800"']
)
def test_what_is_no_verdict_is_none(text: str) -> None:
    assert read_verdict(Response(blocks=(TextBlock(text),))) is None


def test_a_verdict_is_read_and_its_reason_is_bounded() -> None:
    found = read_verdict(Response(blocks=(TextBlock('{"agrees": false, "why": "' + "w" * 50_000 + '"}'),)))
    assert found is not None
    assert not found.agrees
    assert len(found.why) < 2_000


ROWS = {"risk": WorkloadRow(model="p/first", verify="p/second"), "secret": WorkloadRow(verify="p/second", private=True)}


@pytest.mark.parametrize(
    ("model", "options", "expected"),
    [
        ("p/first", BardoOptions(), None),
        ("bardo/risk", BardoOptions(), Judge(model="p/second")),
        ("bardo/risk", BardoOptions(verify="p/third"), Judge(model="p/third")),
        ("bardo/risk", BardoOptions(verify=""), None),
        ("bardo/secret", BardoOptions(), Judge(model="p/second", private=True)),
        ("p/first", BardoOptions(intent=Intent(subsystem="risk")), Judge(model="p/second")),
        ("p/first", BardoOptions(verify="p/third", private=True), Judge(model="p/third", private=True)),
        (
            "p/first",
            BardoOptions(verify="p/third", intent=Intent(require=("privacy",))),
            Judge(model="p/third", private=True),
        ),
    ],
)
def test_who_judges_and_whether_in_private(model: str, options: BardoOptions, expected: Judge | None) -> None:
    workload = Workloads().with_rows(ROWS).of_call(options.intent, model)
    assert judge_of(options, workload) == expected


def test_only_an_agreement_is_no_loss() -> None:
    lost = [Verification(model="m", agrees=agrees, why="w").degradation() for agrees in (True, False, None)]
    assert lost[0] is None
    assert [one.sent for one in lost if one is not None] == ["disagrees", "no verdict"]

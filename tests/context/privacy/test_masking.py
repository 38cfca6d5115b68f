"""What is sent holds no value that was found, wherever it stood, and putting the values back gives what was asked."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bardo.catalog.pii_rows import pii_entities
from bardo.context.layer import LayerFacts, Passed
from bardo.context.privacy.detect import find
from bardo.context.privacy.layer import FindPersonalData, PrivacyLayer
from bardo.context.privacy.placeholders import Placeholders
from bardo.context.privacy.restore import Restoring
from bardo.values.blocks import (
    Block,
    Carried,
    DocumentBlock,
    ImageBlock,
    Opaque,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.errors import InternalError
from bardo.values.request import Message, OutputFormat, Request
from support.growth import growth

MAIL, CARD, SSN = "jane@example.org", "4111111111111111", "536-90-4399"
LABELS = {row.label for row in pii_entities().values()}
FACTS = LayerFacts(tenant="", session="", now=0, profile="", count_tokens=lambda request, target: 0)


def masked(request: Request) -> Passed:
    """Return what the layer makes of a request."""
    steps: Generator[Any, Any, Any] = PrivacyLayer("mask", LABELS).steps(request, FACTS)
    try:
        effect = next(steps)
        assert isinstance(effect, FindPersonalData)
        steps.send([find(text) for text in effect.texts])
    except StopIteration as done:
        outcome = done.value
    assert isinstance(outcome, Passed)
    return outcome


def said(*blocks: Block, role: Any = "user", **fields: Any) -> Request:
    return Request(model="m", messages=(Message(role, blocks),), **fields)


PLACES: dict[str, Request] = {
    "text": said(TextBlock(f"a {MAIL} b")),
    "system prompt": said(TextBlock(f"You serve {MAIL}."), role="system"),
    "result of a tool": said(ToolResultBlock(call_id="c", content=(TextBlock(f"from {MAIL}"),))),
    "JSON result": said(ToolResultBlock(call_id="c", content=(TextBlock(json.dumps({"m": f"\n{MAIL}\t"})),))),
    "JSON within JSON": said(TextBlock(json.dumps({"m": json.dumps({"n": f"x\n{MAIL}"})}))),
    "escaped JSON": said(
        ToolCallBlock(id="c", name="f", arguments='{"m": "jane\\u0040example.org"}'), role="assistant"
    ),
    "arguments of a call": said(ToolCallBlock(id="c", name="f", arguments=json.dumps({"m": [MAIL]})), role="assistant"),
    "broken arguments": said(ToolCallBlock(id="c", name="f", arguments=f'{{"m": "{MAIL}'), role="assistant"),
    "number in arguments": said(ToolCallBlock(id="c", name="f", arguments=f'{{"card": {CARD}}}'), role="assistant"),
    "thinking": said(ReasoningBlock(text=f"to {MAIL}", opaque=(Opaque("signature", "sig"),)), role="assistant"),
    "summary": said(ReasoningBlock(summary=("a", f"to {MAIL}")), role="assistant"),
    "document": said(DocumentBlock(text=f"to {MAIL}", name=f"{MAIL}.txt")),
    "field of a block": said(TextBlock("a", carried=Carried("x", {"citations": [{"cited_text": MAIL}]}))),
    "unknown block": said(UnknownBlock("x", {"content": [{"text": f"to {MAIL}"}]})),
    "field of the request": said(TextBlock("a"), extra={"metadata": {"user": MAIL}}),
    "guidance": said(TextBlock("a"), output_format=OutputFormat(mode="json_object", guidance=f"name {MAIL}")),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_value_is_masked_wherever_it_stands(place: str) -> None:
    request = PLACES[place]
    outcome = masked(request)
    written = repr(outcome.request)
    assert MAIL not in written
    assert CARD not in written
    assert "jane" not in written
    assert "<EMAIL_1>" in written or "<CARD_1>" in written
    assert outcome.request.body is None
    for block in outcome.request.messages[0].blocks:
        if isinstance(block, ToolCallBlock) and place != "broken arguments":
            json.loads(block.arguments)


def test_what_a_word_gave_away_is_masked_where_it_stands_alone() -> None:
    request = Request(
        model="m",
        messages=(
            Message("user", (TextBlock("Is 912803456 valid?"),)),
            Message("user", (TextBlock("My passport number is 912803456."),)),
        ),
    )
    assert [one.text for one in masked(request).request.messages] == [
        "Is <PASSPORT_1> valid?",
        "My passport number is <PASSPORT_1>.",
    ]


def test_what_holds_no_value_is_the_same_request() -> None:
    request = said(TextBlock("Hello <b>you</b>, 12 items at 1,234.50"), body={"model": "m"}, body_bytes=b"{}")
    outcome = masked(request)
    assert outcome.request is request
    assert outcome.reply is None
    assert outcome.receipt.did == ""


def test_what_is_not_searched_is_said_and_left_as_it_is() -> None:
    picture, file = (
        ImageBlock(media_type="image/png", data="AAAA"),
        DocumentBlock(media_type="application/pdf", data="AAAA"),
    )
    outcome = masked(said(picture, file, TextBlock(MAIL)))
    assert outcome.request.messages[0].blocks[:2] == (picture, file)
    assert [one.what for one in outcome.degraded] == ["privacy.files", "privacy.pictures"]


def test_ids_and_signatures_are_left_as_they_are() -> None:
    block = UnknownBlock("x", {"id": CARD, "signature": MAIL, "text": CARD})
    outcome = masked(said(block)).request.messages[0].blocks[0]
    assert outcome == UnknownBlock("x", {"id": CARD, "signature": MAIL, "text": "<CARD_1>"})


# A backslash before a value is taken for the escape of a placeholder.
PARTS = st.lists(
    st.sampled_from([MAIL, CARD, SSN, " ", ", ", "EMAIL_1", "<CARD_2>", "text", "\n", '"', "é", "jane", "(", "<", ">"]),
    max_size=12,
)


@given(PARTS)
@example(["é", SSN, SSN])
@example([SSN, "é", SSN, SSN, " ", SSN])
@example(["EMAIL_1", MAIL, CARD, " ", MAIL])
@example([MAIL, MAIL, CARD, "EMAIL_1", " ", CARD])
def test_masked_text_is_restored_to_what_it_was(parts: list[str]) -> None:
    text = "".join(parts)
    outcome = masked(said(TextBlock(text)))
    sent = outcome.request.messages[0].text
    values = {text[span.start : span.end] for span in find(text)}
    if outcome.reply is None:
        assert not values
        return
    placeholders = Placeholders()
    placeholders.avoid(text, LABELS)
    for span in find(text):
        placeholders.take(text[span.start : span.end], span.label)
    assert Restoring(placeholders).whole(sent) == text
    assert not {sent[span.start : span.end] for span in find(sent)} & values


def test_a_search_that_fails_keeps_the_request() -> None:
    steps: Generator[Any, Any, Any] = PrivacyLayer("mask", LABELS).steps(said(TextBlock(MAIL)), FACTS)
    next(steps)
    with pytest.raises(InternalError) as problem:
        steps.throw(ValueError(MAIL))
    assert MAIL not in str(problem.value)


@pytest.mark.parametrize("piece", [f"{MAIL} ", "x@y.org ", '{"a": "', '\\"', '["', "536-90-4399 ", "EMAIL_1 "])
def test_time_grows_with_the_request_only(piece: str) -> None:
    count = 12_000 // len(piece)
    small, large = said(TextBlock("{" + piece * count)), said(TextBlock("{" + piece * count * 4))
    assert growth(masked, small, large) < 9


def test_many_values_take_time_by_their_number_only() -> None:
    def of(count: int) -> Request:
        return said(TextBlock(" ".join(f"n{number}@example.org" for number in range(count))))

    assert growth(masked, of(1_000), of(4_000)) < 9

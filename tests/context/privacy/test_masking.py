"""What is sent holds no value that was found, wherever it stood, and putting the values back gives what was asked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator
from string import ascii_lowercase
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bardo.catalog.layer_rows import pii_entities
from bardo.context.layer import LayerFacts, Passed
from bardo.context.privacy import search
from bardo.context.privacy.detect import Span, find
from bardo.context.privacy.known_values import KnownValues
from bardo.context.privacy.layer import MaskedReply, PrivacyLayer
from bardo.context.privacy.search import FindPersonalData
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
from bardo.values.errors import InternalError, InvalidRequest
from bardo.values.request import Message, OutputFormat, Request
from bardo.values.response import Response
from support.growth import check_growth

pytestmark = pytest.mark.each_python

MAIL, CARD, SSN = "jane@example.org", "4111111111111111", "536-90-4399"
LABELS = {row.label for row in pii_entities().values()}
FACTS = LayerFacts(tenant="", session="", now=0, profile="", count_tokens=lambda request, target: 0)


def masked(request: Request) -> Passed:
    """Return what the layer makes of a request."""
    return searched(request, find)


def searched(request: Request, search: Callable[[str], list[Span]]) -> Passed:
    """Return what the layer makes of a request that is searched so."""
    steps: Generator[Any, Any, Any] = PrivacyLayer("mask", [*LABELS, "PIN"]).steps(request, FACTS)
    try:
        effect = next(steps)
        while True:
            assert isinstance(effect, FindPersonalData)
            effect = steps.send([search(text) for text in effect.texts])
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


def restored(outcome: Passed, sent: str) -> str:
    """Return what a client gets of a reply that says what was sent."""
    assert isinstance(outcome.reply, MaskedReply)
    return outcome.reply.shown(Response(blocks=(TextBlock(sent),))).text


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
    assert restored(outcome, sent) == text
    assert not {sent[span.start : span.end] for span in find(sent)} & values


VALUES = (
    *(MAIL, CARD, SSN, "4111 1111 1111 1111", "+44 20 7946 0958", "DE89370400440532013000", "192.168.10.12"),
    *("00:1B:44:11:3A:B7", "2001:db8::ff00:42:8329", "1BoatSLRHtKNngkdXEeobR76b53LETtpyT", "bob@example.com"),
)
GLUE = st.sampled_from(["", "-", "_", ".", "+", "/", ":", " ", "x", "é", "7"])
PLACEHOLDER = re.compile("<[A-Z]+_[0-9]+>")


@given(st.lists(st.tuples(st.sampled_from(VALUES), GLUE), min_size=1, max_size=8))
@example([(SSN, "."), ("00:1B:44:11:3A:B7", "")])
@example([("+44 20 7946 0958", "-"), (CARD, "")])
@example([("DE89370400440532013000", "."), (MAIL, "")])
@example([(SSN, "."), ("00:1B:44:11:3A:B7", "."), (SSN, "."), ("2001:db8::ff00:42:8329", ".")])
@example([("192.168.10.12", "_"), (SSN, "_"), (SSN, "_"), (CARD, "_")])
def test_nothing_shows_beside_a_value_that_is_masked(parts: list[tuple[str, str]]) -> None:
    text = "".join(value + glue for value, glue in parts)
    outcome = masked(said(TextBlock(text)))
    sent = outcome.request.messages[0].text
    assert find(PLACEHOLDER.sub("\ufffc", sent)) == []
    if outcome.reply is not None:
        assert restored(outcome, sent) == text


def test_values_that_show_late_have_their_place_in_the_order_of_the_text() -> None:
    first = TextBlock(f"{SSN}.00:1B:44:11:3A:B7")
    short, long = said(first), said(first, TextBlock("536-90-4398 and 00:1B:44:11:3A:B8"))
    sent = masked(long).request.messages[0].blocks
    assert sent[0] == masked(short).request.messages[0].blocks[0] == TextBlock("<SSN_1>.<MAC_1>")
    assert sent[1] == TextBlock("<SSN_2> and <MAC_2>")


@pytest.mark.parametrize("value", ["7", "71", "712", "7123"])
def test_short_values_are_masked(value: str) -> None:
    def search(text: str) -> list[Span]:
        return [Span(one.start(), one.end(), "PIN", "PIN", 1.0) for one in re.finditer(rf"\b{value}\b", text)]

    outcome = searched(said(TextBlock(f"my pin {value} is {value}. 9{value}")), search)
    assert outcome.request.messages[0].text == f"my pin <PIN_1> is <PIN_1>. 9{value}"


def test_what_never_ends_is_not_sent() -> None:
    def first_letter(text: str) -> list[Span]:
        found = re.search("[a-z]", text)
        return [] if found is None else [Span(found.start(), found.end(), "PIN", "PIN", 1.0)]

    assert searched(said(TextBlock("1a2b3c4")), first_letter).request.messages[0].text == "1<PIN_1>2<PIN_2>3<PIN_3>4"
    with pytest.raises(InvalidRequest, match="runs on without a break"):
        searched(said(TextBlock("1".join(ascii_lowercase))), first_letter)


@pytest.mark.parametrize("text", [f"{SSN}.00:1B:44:11:3A:B7", f"{MAIL} and {CARD}"])
def test_a_reply_that_comes_later_is_restored_by_what_was_kept(text: str) -> None:
    request = said(TextBlock(text), output_format=OutputFormat(mode="json_object"))
    outcome = masked(request)
    assert isinstance(outcome.reply, MaskedReply)
    later = MaskedReply.of_kept(outcome.reply.kept())
    assert later.kept() == outcome.reply.kept()
    sent = Response(blocks=(TextBlock(outcome.request.messages[0].text),))
    assert later.shown(sent).text == text
    assert later.masked(later.shown(sent)) == sent
    assert later.masked_request(request).messages == outcome.request.messages


def test_a_search_that_fails_keeps_the_request() -> None:
    steps: Generator[Any, Any, Any] = PrivacyLayer("mask", LABELS).steps(said(TextBlock(MAIL)), FACTS)
    next(steps)
    with pytest.raises(InternalError) as problem:
        steps.throw(ValueError(MAIL))
    assert MAIL not in str(problem.value)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("piece", [f"{MAIL} ", "x@y.org ", '{"a": "', '\\"', '["', "536-90-4399 ", "EMAIL_1 "])
def test_time_grows_with_the_request_only(piece: str) -> None:
    count = 12_000 // len(piece)
    small, large = said(TextBlock("{" + piece * count)), said(TextBlock("{" + piece * count * 4))
    check_growth(masked, small, large, below=9)


def test_many_values_take_time_by_their_number_only() -> None:
    def of(count: int) -> Request:
        return said(TextBlock(" ".join(f"n{number}@example.org" for number in range(count))))

    check_growth(masked, of(1_000), of(4_000), below=9)
    check_growth(masked, of(2_000), of(16_000), below=20)


def test_values_that_begin_alike_cost_no_more_than_others() -> None:
    def cut(count: int) -> object:
        known = KnownValues()
        for length in range(0, count, 2):
            known.add("http://example.org/" + "x" * length)
        return known.pieces("http://example.org " * count)

    check_growth(cut, 500, 2_000, below=9)


def test_a_long_value_is_found_by_its_longest_form() -> None:
    known = KnownValues()
    for value in ("abc", "http://a.example/b", "http://a.example/bcdefghijklmnop", "x" * 100):
        known.add(value)
    text = f"abc http://a.example/bcdefghijklmnop http://a.example/b {'x' * 100} {'x' * 99}"
    assert [part for part, is_value in known.pieces(text) if is_value] == [
        "abc",
        "http://a.example/bcdefghijklmnop",
        "http://a.example/b",
        "x" * 100,
    ]


def test_more_values_than_can_be_masked_are_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_VALUES", 3)
    assert masked(said(TextBlock("a@b.example c@d.example e@f.example"))).reply is not None
    with pytest.raises(InvalidRequest, match="more than 3 different personal values"):
        masked(said(TextBlock("a@b.example c@d.example e@f.example g@h.example")))

"""Values are put back wherever the text is cut, however a model writes their placeholders, and nothing else is changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.context.privacy.layer import RestoreStage
from bardo.context.privacy.placeholders import ExactRestorer, JsonRestorer, Placeholders, RestorePlan, TextRestorer
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    Finish,
    RefusalChunk,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
)
from bardo.values.fold import fold
from support.growth import check_growth

MAIL, CARD = "jane@example.org", "4111 1111 1111 1111"


def restoring() -> RestorePlan:
    made = Placeholders()
    made.take(MAIL, "EMAIL")
    made.take(CARD, "CARD")
    for number in range(2, 13):
        made.take(f"n{number}@example.org", "EMAIL")
    return RestorePlan(made)


RESTORING = restoring()

FORMS = [
    ("Write to <EMAIL_1>.", f"Write to {MAIL}."),
    ("<EMAIL_1><CARD_1>", MAIL + CARD),
    (r"a \<EMAIL\_1\> b", f"a {MAIL} b"),
    ("a &lt;EMAIL_1&gt; b", f"a {MAIL} b"),
    (r"a \u003cEMAIL_1\u003e b", f"a {MAIL} b"),
    ("a <email_1> b", f"a {MAIL} b"),
    ("a < Email 1 > b", f"a {MAIL} b"),
    ("a <EMAIL-1> b", f"a {MAIL} b"),
    ("a EMAIL_1 b", f"a {MAIL} b"),
    (r"**EMAIL\_1**", f"**{MAIL}**"),
    ("[EMAIL_1](mailto:EMAIL_1)", f"[{MAIL}](mailto:{MAIL})"),
    ("<EMAIL_12>, <EMAIL_2>", "n12@example.org, n2@example.org"),
    ("EMAIL_12 EMAIL_2", "n12@example.org n2@example.org"),
    ("<EMAIL_1, <EMAIL_1", f"<{MAIL}, <{MAIL}"),
    ("<EMAIL_99> <PHONE_1> EMAIL_99 email_1 MY_EMAIL_1 EMAIL_1X EMAIL_ EMAIL", None),
    ("if a < b and c <EM or <EMAIL", None),
]


def in_pieces(text: str, cuts: Iterable[int]) -> list[str]:
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[begin:end] for begin, end in pairwise(places)]


def restored(pieces: Sequence[str], kind: type[TextRestorer | JsonRestorer | ExactRestorer]) -> str:
    restorer = kind(RESTORING)
    return "".join([*(restorer.feed(piece) for piece in pieces), restorer.finish()])


@pytest.mark.parametrize(("written", "meant"), FORMS)
def test_each_form_is_read_at_every_cut(written: str, meant: str | None) -> None:
    meant = written if meant is None else meant
    assert restored(list(written), TextRestorer) == meant
    for first in range(len(written) + 1):
        for second in range(first, len(written) + 1):
            pieces = [written[:first], written[first:second], written[second:]]
            assert restored(pieces, TextRestorer) == meant


PIECES = st.sampled_from(
    [
        "<EMAIL_1>",
        "EMAIL_1",
        "<CARD_1>",
        r"\<EMAIL\_1\>",
        "<email_2>",
        "<",
        ">",
        "EM",
        "E",
        "_",
        "1",
        " ",
        "\\",
        "&lt;",
        "é",
        "<EMAIL_",
        "x",
    ]
)


@given(st.lists(PIECES, max_size=12), st.lists(st.integers(0, 200), max_size=8))
def test_any_cut_gives_the_same_text(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    assert restored(in_pieces(text, cuts), TextRestorer) == RESTORING.whole(text)
    assert restored(in_pieces(text, cuts), ExactRestorer) == RESTORING.exactly(text)


def escaped(text: str, every: int) -> str:
    """Write a JSON string with each nth character as an escape."""
    return "".join(
        f"\\u{ord(char):04x}" if place % every == 0 and ord(char) < 0x10000 else json.dumps(char)[1:-1]
        for place, char in enumerate(text)
    )


@given(
    st.lists(PIECES | st.sampled_from(['"', "\n", "😀"]), max_size=10),
    st.integers(1, 5),
    st.lists(st.integers(0, 400), max_size=8),
)
def test_arguments_are_restored_through_their_escapes(parts: list[str], every: int, cuts: list[int]) -> None:
    said = "".join(parts)
    raw = f'{{"text": "{escaped(said, every)}"}}'
    whole = restored([raw], JsonRestorer)
    assert restored(in_pieces(raw, cuts), JsonRestorer) == whole
    assert json.loads(whole) == {"text": RESTORING.whole(said)}


def test_a_value_is_escaped_where_it_is_put_into_json() -> None:
    made = Placeholders()
    made.take('say "hi" \\ now', "NOTE")
    restorer = JsonRestorer(RestorePlan(made))
    assert json.loads(restorer.feed('{"a": "<NOTE_1>"}') + restorer.finish()) == {"a": 'say "hi" \\ now'}


def test_only_what_may_be_a_placeholder_is_held() -> None:
    restorer = TextRestorer(RESTORING)
    assert restorer.feed("Hello, ") == "Hello, "
    assert restorer.feed("write <EMA") == "write "
    assert restorer.feed("RLY>") == "<EMARLY>"
    assert restorer.feed("CALL 5 < 6 ") == "CALL 5 < 6 "
    assert restorer.feed("<") == ""
    assert restorer.feed("EMAIL_1>") == MAIL


def events(pieces: Sequence[str]) -> list[Event]:
    """Say the same in each place of a reply that holds text, in these pieces."""
    said: list[Event] = [ReplyStart(id="r"), ThinkStart(0)]
    said += [ThinkChunk(0, piece) for piece in pieces]
    said += [ThinkEnd(0)]
    said += [ContentChunk(1, piece) for piece in pieces]
    said += [ToolCallStart(2, "c1", "send")]
    said += [ToolCallChunk(2, piece) for piece in ['{"to": "', *pieces, '"}']]
    said += [ToolCallEnd(2), BlockFields(1, "x", {"cited_text": "".join(pieces)}), ContentChunk(0, "E", 1)]
    return [*said, Finish("stop"), Finish("stop", choice=1)]


@given(st.lists(st.integers(0, 60), max_size=10))
def test_every_place_of_a_reply_is_restored_at_any_cut(cuts: list[int]) -> None:
    text = "to <EMAIL_1> and <CARD_1>, <EMAIL_12>"
    stage = RestoreStage(RESTORING, typed=False)
    out = [event for item in events(in_pieces(text, cuts)) for event in stage.feed(item)] + list(stage.finish())
    meant = f"to {MAIL} and {CARD}, n12@example.org"
    response = fold(out)
    thinking, answer, call = response.blocks
    assert (thinking.text, answer.text, json.loads(call.arguments)) == (meant, meant, {"to": meant})  # type: ignore[union-attr]
    assert answer.carried is not None  # type: ignore[union-attr]
    assert answer.carried.fields == {"cited_text": meant}  # type: ignore[union-attr]
    assert response.alternatives[0].text == "E"
    ended = next(place for place, event in enumerate(out) if isinstance(event, ThinkEnd))
    assert not any(isinstance(event, ThinkChunk) for event in out[ended:])


SAID = st.lists(st.sampled_from(["a ", "<", "EMAIL", "_1", ">", "<CAR"]), min_size=1, max_size=4)
KINDS: dict[str, Callable[[int, list[str]], list[Event]]] = {
    "text": lambda at, pieces: [ContentChunk(at, piece) for piece in pieces],
    "cited text": lambda at, pieces: [BlockFields(at, "x", {"a": 1}), *(ContentChunk(at, piece) for piece in pieces)],
    "refusal": lambda at, pieces: [RefusalChunk(at, piece) for piece in pieces],
    "thinking": lambda at, pieces: [ThinkStart(at), *(ThinkChunk(at, piece) for piece in pieces), ThinkEnd(at)],
    "call": lambda at, pieces: [ToolCallStart(at, "c", "f"), ToolCallChunk(at, json.dumps(pieces)), ToolCallEnd(at)],
    "hosted tool": lambda at, pieces: [UnknownContent(at, "x", {"text": "".join(pieces)})],
}


@given(st.lists(st.tuples(st.sampled_from([*KINDS]), SAID), max_size=6))
def test_what_was_held_of_a_block_comes_before_the_next_block(blocks: list[tuple[str, list[str]]]) -> None:
    said = [event for at, (kind, pieces) in enumerate(blocks) for event in KINDS[kind](at, pieces)]
    stage = RestoreStage(RESTORING, typed=False)
    out = [event for item in [*said, Finish("stop")] for event in stage.feed(item)]
    assert list(stage.finish()) == []
    places = [event.block for event in out if not isinstance(event, Finish)]  # type: ignore[union-attr]
    assert places == sorted(places)


def test_fields_of_an_earlier_block_cut_no_placeholder() -> None:
    stage = RestoreStage(RESTORING, typed=False)
    said: list[Event] = [
        ContentChunk(0, "a"),
        ContentChunk(1, "<EMA"),
        BlockFields(0, "x", {"a": 1}),
        ContentChunk(1, "IL_1>"),
    ]
    out = [event for item in [*said, Finish("stop")] for event in stage.feed(item)]
    assert "".join(event.text for event in out if isinstance(event, ContentChunk)) == f"a{MAIL}"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "piece", ["<", "E", "EMAIL_", "<EMAIL_1", "\\", "\\u003c", "<EMAIL_1>", "&lt;", " ", "<EMAIL_1 "]
)
@pytest.mark.parametrize("kind", [TextRestorer, JsonRestorer, ExactRestorer])
def test_time_grows_with_the_reply_only(piece: str, kind: type[TextRestorer | JsonRestorer | ExactRestorer]) -> None:
    text = piece * (20_000 // len(piece))

    def work(pieces: Sequence[str]) -> str:
        return restored(pieces, kind)

    check_growth(work, [text], [text * 4], below=8)
    check_growth(work, list(text[:5000]), list(text * 2)[:20_000], below=8)

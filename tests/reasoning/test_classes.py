"""A class of the user's own reads replies wherever a row does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bardo.reasoning import (
    ParserConfig,
    ParserResult,
    ReasoningParser,
    ReasoningParserFactory,
    Segment,
    open_parser,
    split,
)
from bardo.reasoning.classes import ClassFormat
from bardo.reasoning.inline import InlineReasoning
from bardo.reasoning.machines import splitter_for
from bardo.reasoning.registry import builtin_formats
from bardo.values.events import ContentChunk, Finish
from bardo.values.fold import ResponseFold


class Shouting:
    """Takes capitals for thinking, and holds the last letter back."""

    def __init__(self) -> None:
        self._held = ""

    def parse_reasoning_streaming_incremental(self, chunk: str) -> ParserResult:
        text, self._held = (self._held + chunk)[:-1], (self._held + chunk)[-1:]
        return self._read(text)

    def finish(self) -> ParserResult:
        return self._read(self._held)

    def _read(self, text: str) -> ParserResult:
        loud = "".join(letter for letter in text if letter.isupper())
        return ParserResult("".join(letter for letter in text if not letter.isupper()), loud)


class Marked(ReasoningParser):
    """A parser with tags of its own."""

    def __init__(self) -> None:
        super().__init__(ParserConfig("<m>", "</m>"), model_type="marked")


SHOUTING = ClassFormat(name="shouting", creator=Shouting, patterns=("shout-",))
MARKED = ClassFormat(name="marked", creator=Marked)


def test_a_class_splits_a_reply() -> None:
    assert split("THINKanswer", SHOUTING) == ("THINK", "answer")
    splitter = splitter_for(SHOUTING)
    assert [*splitter.feed("THINKan"), *splitter.finish()] == [
        Segment(True, "THINK", True),
        Segment(False, "a"),
        Segment(False, "n"),
    ]


def test_a_block_that_stays_open_is_closed_at_the_end() -> None:
    splitter = splitter_for(SHOUTING)
    assert splitter.feed("TH") == [Segment(True, "T")]
    assert splitter.inside
    assert splitter.finish() == [Segment(True, "H"), Segment(True, "", True)]
    assert not splitter.inside


@given(st.text("ABab<m>/", max_size=20), st.integers(0, 20))
def test_every_block_that_begins_is_closed_once(text: str, cut: int) -> None:
    for row in (SHOUTING, MARKED):
        splitter = splitter_for(row)
        segments = [*splitter.feed(text[:cut]), *splitter.feed(text[cut:]), *splitter.finish()]
        open_blocks = 0
        for segment in segments:
            assert segment.reasoning or not open_blocks
            open_blocks = 0 if segment.closes else int(segment.reasoning)
        assert open_blocks == 0


def test_a_class_separates_the_thinking_of_a_reply() -> None:
    stage, fold = InlineReasoning(SHOUTING), ResponseFold()
    for event in (ContentChunk(0, "THI"), ContentChunk(0, "NKanswer"), Finish("stop")):
        for given_event in stage.feed(event):
            fold.feed(given_event)
    response = fold.response()
    assert (response.reasoning.content, response.text) == ("THINK", "answer")


def test_a_class_is_told_where_a_reply_begins_if_it_asks() -> None:
    assert split("hm</m>ok", MARKED, starts_inside=True) == ("hm", "ok")
    assert split("THINKok", SHOUTING, starts_inside=True) == ("THINK", "ok")
    parser = open_parser(MARKED, starts_inside=True)
    assert isinstance(parser, Marked)
    assert parser.detect_and_parse_reasoning("hm</m>ok") == ParserResult("ok", "hm")


def test_every_reply_has_a_parser_of_its_own() -> None:
    known = builtin_formats().with_rows([SHOUTING])
    first, second = (open_parser(model="shout-1", formats=known) for _ in range(2))
    assert first is not second
    parsers = ReasoningParserFactory(known)
    assert isinstance(parsers.get_pooled("shout-1"), Shouting)
    assert parsers.get_pooled("shout-1") is not parsers.get_pooled("shout-1")

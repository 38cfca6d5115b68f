"""A reply's bytes to events: the stages in order, with plain values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.replies.reply_reader import ReplyHandling, ReplyReader, row_reader
from bardo.replies.reply_stages import FillMissingFields, WithoutReasoning
from bardo.replies.translation_stages import ForeignContent
from bardo.streams.frames import MAX_FRAME_BYTES
from bardo.values.blocks import Opaque, ReasoningBlock, TextBlock
from bardo.values.errors import BrokenStream, MalformedReply
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Degraded,
    Event,
    Failed,
    Finish,
    OpaqueState,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallStart,
    UnknownContent,
    WithheldThought,
)

pytestmark = pytest.mark.each_python


def row(preset: str) -> ProviderRow:
    found = builtin().provider(preset)
    assert found is not None
    return found


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    body = {
        "id": "c1",
        "model": "real",
        "created": 5,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return b"data: " + msgspec.json.encode(body) + b"\n\n"


INLINE = b"".join(
    [
        chunk({"role": "assistant", "content": "<thi"}),
        chunk({"content": "nk>\nTwo and "}),
        chunk({"content": "two.</th"}),
        chunk({"content": "ink>\n\nFour."}),
        chunk({}, "stop"),
        b"data: [DONE]\n\n",
    ]
)
STAMP = ReplyStart(id="req_1", model="asked", created=9)


def reader(preset: str = "vllm", *, streamed: bool = True, provider: str = "", **handling: Any) -> ReplyReader:
    return row_reader(row(preset), streamed=streamed, provider=provider, handling=ReplyHandling(**handling))


def test_inline_thinking_is_separated() -> None:
    reading = reader()
    events = [*reading.feed(INLINE), *reading.finish()]
    assert reading.fold.response().text.strip() == "Four."
    assert reading.fold.response().reasoning.content == "\nTwo and two."
    assert reading.failure is None
    assert type(events[0]) is ReplyStart


@given(st.lists(st.integers(0, len(INLINE)), max_size=12))
def test_any_cut_says_the_same(cuts: list[int]) -> None:
    whole, pieces = reader(), reader()
    whole.feed(INLINE)
    whole.finish()
    places = [0, *sorted(cuts), len(INLINE)]
    for start, end in pairwise(places):
        pieces.feed(INLINE[start:end])
    pieces.finish()
    assert pieces.fold.response() == whole.fold.response()


def test_content_is_only_content_where_the_row_says_so() -> None:
    reading = reader("deepseek")
    reading.feed(INLINE)
    reading.finish()
    assert reading.fold.response().reasoning.content is None
    assert "<think>" in reading.fold.response().text


def test_omitting_leaves_the_answer_alone() -> None:
    reading = reader(thinking=WithoutReasoning())
    events = [*reading.feed(INLINE), *reading.finish()]
    assert not [event for event in events if isinstance(event, ThinkStart | ThinkChunk | ThinkEnd)]
    assert reading.fold.response().text.strip() == "Four."
    assert reading.fold.response().blocks == (TextBlock(reading.fold.response().text),)


def test_what_the_provider_says_of_itself_stands_and_the_rest_is_stamped() -> None:
    named = reader(stamp=STAMP)
    named.feed(INLINE)
    assert (named.fold.response().id, named.fold.response().model, named.fold.response().created) == ("c1", "real", 5)
    silent = reader(stamp=STAMP, streamed=False)
    silent.feed(b'{"choices": [{"message": {"content": "Four."}, "finish_reason": "stop"}]}')
    silent.finish()
    response = silent.fold.response()
    assert (response.id, response.model, response.created) == ("req_1", "asked", 9)


def test_a_stream_that_ends_early_is_broken_and_keeps_what_came() -> None:
    reading = reader()
    reading.feed(INLINE[: INLINE.index(b"Four.") - 60])
    events = reading.finish()
    assert isinstance(events[-1], Failed)
    assert isinstance(reading.failure, BrokenStream)
    assert reading.fold.response().error == reading.failure
    assert "Two and two." in str(reading.fold.response().reasoning.content)


def test_an_error_from_outside_ends_the_reply_after_what_was_held() -> None:
    reading = reader()
    held = reading.feed(chunk({"content": "a <thi"}))
    events = reading.fail(BrokenStream("cut"))
    said = "".join(event.text for event in (*held, *events) if isinstance(event, ContentChunk))
    assert said == "a <thi"
    assert events[-1] == Failed(BrokenStream("cut"))
    assert [event for event in events if isinstance(event, Failed)] == events[-1:]
    assert reading.failure == reading.fold.response().error == BrokenStream("cut")


def test_nothing_follows_a_failure() -> None:
    reading = reader()
    reading.fail(BrokenStream("cut"))
    assert reading.fail(BrokenStream("again")) == []
    assert reading.feed(INLINE) == []
    assert reading.finish() == []
    assert reading.failure == BrokenStream("cut")


@pytest.mark.parametrize("streamed", [True, False])
def test_an_oversized_frame_fails_the_reply(streamed: bool) -> None:
    reading = reader(streamed=streamed, provider="lab")
    first = reading.feed(chunk({"content": "So far."})) if streamed else []
    events = reading.feed(b"data: " + b"x" * (MAX_FRAME_BYTES + 1))
    assert isinstance(events[-1], Failed)
    assert isinstance(reading.failure, MalformedReply)
    assert reading.failure.provider == "lab"
    assert bool(first) is streamed
    assert reading.fold.response().text == ("So far." if streamed else "")


def through(stage: Any, events: Sequence[Event]) -> list[Event]:
    return [given for event in events for given in stage.feed(event)] + list(stage.finish())


def test_the_state_of_thinking_is_omitted_with_it_and_that_of_calls_is_kept() -> None:
    ours, theirs = Opaque("signature", "s"), Opaque("signature", "t")
    events: list[Event] = [
        ThinkStart(0),
        ThinkChunk(0, "Hm."),
        ThinkEnd(0),
        OpaqueState(0, ours),
        ToolCallStart(1, "c", "f"),
        OpaqueState(1, theirs),
        ToolCallChunk(1, "{}"),
        ThinkStart(0, choice=1),
        ContentChunk(0, "x"),
    ]
    kept = through(WithoutReasoning(), events)
    assert kept[0] == WithheldThought()
    assert kept[1:] == [
        ToolCallStart(1, "c", "f"),
        OpaqueState(1, theirs),
        ToolCallChunk(1, "{}"),
        ContentChunk(0, "x"),
    ]


def test_a_client_that_was_told_a_time_is_not_told_another() -> None:
    first, later = ReplyStart(id="r", model="m"), ReplyStart(id="r", model="m", created=77)
    assert through(FillMissingFields(STAMP), [first, ContentChunk(0, "x"), later])[-1] == ReplyStart(
        id="r", model="m", created=9
    )


def test_a_stamp_comes_before_everything() -> None:
    assert through(FillMissingFields(STAMP), [ContentChunk(0, "x")]) == [STAMP, ContentChunk(0, "x")]
    half = ReplyStart(id="own")
    assert through(FillMissingFields(STAMP), [half, ContentChunk(0, "x")])[0] == ReplyStart(
        id="own", model="asked", created=9
    )


def test_fields_of_a_choice_come_after_the_start() -> None:
    fields = ReplyFields("openai_chat", {"message.audio": [{}]}, choice=0)
    assert through(FillMissingFields(STAMP), [ReplyStart(model="m"), fields])[0] == ReplyStart(
        id=STAMP.id, model="m", created=9
    )


def test_a_later_start_adds_to_what_is_known() -> None:
    starts = through(FillMissingFields(STAMP), [ReplyStart(id="own"), ReplyStart(model="real")])
    assert starts[-1] == ReplyStart(id="own", model="real", created=9)


def test_an_id_that_comes_after_a_first_frame_without_one_is_the_only_one_told() -> None:
    # Azure's first frame is about the prompt, and has no id; an encoder may write the first it is told at once.
    fields = ReplyFields("openai_chat", {"prompt_filter_results": []})
    given = through(
        FillMissingFields(STAMP), [ReplyStart(model="real"), fields, ReplyStart(id="own"), ContentChunk(0, "x")]
    )
    assert given == [fields, ReplyStart(id="own", model="real", created=9), ContentChunk(0, "x")]
    assert through(FillMissingFields(STAMP), [ReplyStart(model="real")]) == [
        ReplyStart(id="req_1", model="real", created=9)
    ]


def test_foreign_content_is_noted_once() -> None:
    events: list[Event] = [
        UnknownContent(0, "anthropic_messages", {"type": "server_tool_use"}),
        UnknownContent(1, "anthropic_messages", {"type": "server_tool_use"}),
        BlockFields(2, "anthropic_messages", {"citations": [{"type": "char_location"}]}),
    ]
    notes = [
        event.degradation.what for event in through(ForeignContent("openai_chat"), events) if type(event) is Degraded
    ]
    assert notes == ["content.server_tool_use", "citations"]
    assert through(ForeignContent("anthropic_messages"), events) == events


def test_a_fold_of_the_events_is_the_response() -> None:
    reading = reader("deepseek", streamed=False)
    message = {"role": "assistant", "reasoning_content": "Hm.", "content": "Four."}
    body = {"id": "c", "model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}
    reading.feed(msgspec.json.encode(body))
    reading.finish()
    response = reading.fold.response()
    assert [type(block) for block in response.blocks] == [ReasoningBlock, TextBlock]
    assert (response.finish, response.provider) == (Finish("stop", "stop"), "deepseek")


def test_an_endless_id_or_model_of_a_reply_is_cut() -> None:
    (start,) = FillMissingFields(ReplyStart(id="own", model="m")).feed(
        ReplyStart(id="i" * 100_000, model="m" * 100_000)
    )
    assert isinstance(start, ReplyStart)
    assert (len(start.id), len(start.model)) == (500, 500)


def test_readers_share_the_names_of_their_attributes() -> None:
    """With thirty attributes and more each reader has a table of names of its own, and each open stream 1.3 kB more."""
    readers = [reader("deepseek") for _ in range(3)]
    assert len({frozenset(vars(one)) for one in readers}) == 1
    assert len(vars(readers[-1])) < 30

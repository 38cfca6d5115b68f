"""Frames that are alike are read in one go, and nothing but the number of events tells."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.catalog.rows import ProviderRow
from bardo.planning.attempt import Attempt
from bardo.planning.route import Provider, Target
from bardo.planning.text_formats import TextFormats
from bardo.reasoning.inline import InlineReasoning
from bardo.reasoning.registry import builtin_formats, find_format
from bardo.replies.citations import citations_between
from bardo.replies.forwarding import Forwarding
from bardo.replies.reply_reader import ReplyHandling, ReplyReader, row_reader
from bardo.replies.reply_stages import WithoutReasoning, pass_through
from bardo.streams.stage import Stage
from bardo.values.events import BlockFields, ContentChunk, Event, Finish, ThinkChunk, ToolCallChunk
from bardo.values.response import Response
from bardo.values.secrets import Secrets
from bardo.values.wire import WireRequest

ROW = ProviderRow(id="lab", name="Lab", dialect="openai_chat")
TEXTS = st.lists(
    st.sampled_from(["", " a", 'quo"te', "back\\slash", "line\nend", "é🙂", "}}]}", '"},']), min_size=3, max_size=30
)
START = {"role": "assistant", "content": ""}


def frame(delta: Mapping[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


SIGNED = {"type": "reasoning.text", "signature": "c2lnbmVk", "format": "anthropic-claude-v1", "index": 0}
FIELDS = ["content", "reasoning_content", "reasoning_details"]


def delta(text: str, field: str) -> dict[str, object]:
    """Return what says a text: as OpenRouter says its thinking, twice."""
    if field != "reasoning_details":
        return {field: text}
    detail = {"type": "reasoning.text", "text": text, "format": "anthropic-claude-v1", "index": 0}
    return {"content": "", "reasoning": text, "reasoning_details": [detail]}


def stream(texts: Sequence[str], field: str = "content") -> bytes:
    frames = [frame(START), *(frame(delta(text, field)) for text in texts)]
    if field == "reasoning_details":
        frames += [frame({"content": "", "reasoning": None, "reasoning_details": [SIGNED]})]
    return b"".join([*frames, frame({}, "stop")]) + b"data: [DONE]\n\n"


def read(pieces: Sequence[bytes], *, joined: bool) -> tuple[Response, bytes]:
    reader = row_reader(ROW, streamed=True)
    taken = [one for piece in pieces for one in reader.read(piece, joined=joined)] + reader.read_rest()
    return reader.fold.response(), b"".join(said for _, said in taken)


@given(TEXTS, st.sampled_from(FIELDS), st.lists(st.integers(0, 3000), max_size=6), st.booleans())
def test_any_cut_says_the_same_and_keeps_every_byte(
    texts: list[str], field: str, cuts: list[int], joined: bool
) -> None:
    data = stream(texts, field)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[begin:end] for begin, end in itertools.pairwise(edges)]
    one_by_one, _ = read([data[place : place + 1] for place in range(len(data))], joined=False)
    response, said = read(pieces, joined=joined)
    assert response == one_by_one
    assert said == data
    assert (response.text if field == "content" else response.reasoning.content or "") == "".join(texts)


def directly(reader: ReplyReader, pieces: Sequence[bytes]) -> bytes:
    """Return the bytes that go on to the client of a forwarded stream where each piece is offered first."""
    forwarding = Forwarding(reader, forward=True, withhold_usage=False, hold_end=False)
    updates = [forwarding.repeated(piece) or forwarding.update(piece) for piece in pieces]
    return b"".join([one.raw for one in (*updates, forwarding.rest())])


@given(TEXTS, st.sampled_from(FIELDS), st.lists(st.integers(0, 30)), st.integers(1, 4))
def test_pieces_that_are_passed_on_at_once_say_the_same(texts: list[str], field: str, looks: list[int], n: int) -> None:
    """However many frames come in one read, and whoever asks in between how far the reply has come."""
    frames = [part + b"\n\n" for part in stream(texts, field).split(b"\n\n") if part]
    pieces = [b"".join(frames[place : place + n]) for place in range(0, len(frames), n)]
    response, said = read(pieces, joined=True)
    reader = row_reader(ROW, streamed=True, handling=ReplyHandling(forward=True))
    forwarding = Forwarding(reader, forward=True, withhold_usage=False, hold_end=False)
    sent = b""
    for place, piece in enumerate(pieces):
        sent += (forwarding.repeated(piece) or forwarding.update(piece)).raw
        if place in looks:
            so_far = reader.response()
            known = so_far.text if field == "content" else so_far.reasoning.content or ""
            assert known == "".join(texts[: (place + 1) * n - 1])
    assert sent + forwarding.rest().raw == said
    assert reader.response() == response


RESPONSES = ProviderRow(id="lab", name="Lab", dialect="openai_responses")


def numbered_stream(texts: Sequence[str]) -> list[bytes]:
    """Return the frames of a stream each of which has another number, so that none repeats the one before."""
    place = {"item_id": "i1", "output_index": 0, "content_index": 0}
    said = {"type": "output_text", "text": "".join(texts), "annotations": []}
    item = {"id": "i1", "type": "message", "role": "assistant", "status": "completed", "content": [said]}
    whole = {"id": "r1", "object": "response", "status": "completed", "model": "m", "output": [item]}
    events: list[dict[str, object]] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "item": {**item, "content": []}, "output_index": 0},
        *({"type": "response.output_text.delta", **place, "delta": text} for text in texts),
        {"type": "response.output_item.done", "item": item, "output_index": 0},
        {"type": "response.completed", "response": whole},
    ]
    numbered = [json.dumps({**event, "sequence_number": number}) for number, event in enumerate(events)]
    return [b"data: " + one.encode() + b"\n\n" for one in numbered]


class Seen:
    """A stage that passes text on, and must see its first piece."""

    passes_text = True

    def __init__(self) -> None:
        self.seen: list[Event] = []

    def feed(self, item: Event) -> Sequence[Event]:
        self.seen.append(item)
        return (item,)

    def finish(self) -> Sequence[Event]:
        return ()


class Upper(Seen):
    """A stage that changes text."""

    passes_text = False

    def feed(self, item: Event) -> Sequence[Event]:
        return (ContentChunk(item.block, item.text.upper()),) if isinstance(item, ContentChunk) else (item,)


class UpperArguments(Seen):
    """A stage that changes the arguments of calls, and no text."""

    touches = frozenset((ToolCallChunk,))

    def feed(self, item: Event) -> Sequence[Event]:
        return (ToolCallChunk(item.block, item.arguments.upper()),) if isinstance(item, ToolCallChunk) else (item,)


def test_a_text_that_a_stage_looks_at_is_not_read_later() -> None:
    texts = [f"word {number} " for number in range(9)]
    reader = row_reader(ROW, streamed=True, handling=ReplyHandling(forward=True, stages=(Upper(),)))
    forwarding = Forwarding(reader, forward=True, withhold_usage=False, hold_end=False)
    sent = [frame(START), *(frame({"content": text}) for text in texts)]
    updates = [forwarding.repeated(one) or forwarding.update(one) for one in sent]
    said = [event.text for one in updates for event in one.events if isinstance(event, ContentChunk)]
    assert "".join(said) == "".join(texts).upper()


def test_a_text_that_has_said_nothing_yet_is_not_read_later() -> None:
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
        for text in ("", "", "", "Hi")
    ]
    *sent, last = [b"data: " + json.dumps(one).encode() + b"\n\n" for one in (start, *deltas)]
    row = ProviderRow(id="lab", name="Lab", dialect="anthropic_messages")
    reader = row_reader(row, streamed=True, handling=ReplyHandling(forward=True))
    forwarding = Forwarding(reader, forward=True, withhold_usage=False, hold_end=False)
    for one in sent:
        assert forwarding.repeated(one) or forwarding.update(one)
    assert not reader.has_token
    assert forwarding.repeated(last)
    assert reader.has_token


@pytest.mark.parametrize("forward", [True, False])
def test_frames_of_one_text_that_came_together_pass_the_stages_together(forward: bool) -> None:
    texts = [f"word {number} " for number in range(30)]
    frames = numbered_stream(texts)
    before, behind = Seen(), Seen()
    reader = row_reader(
        RESPONSES, streamed=True, handling=ReplyHandling(forward=forward, stages=(before, Upper(), behind))
    )
    pieces = [*reader.read(b"".join(frames), joined=forward), *reader.read_rest()]
    assert b"".join([raw for _, raw in pieces]) == b"".join(frames)
    assert reader.response().text == "".join(texts).upper()
    said = [event.text for events, _ in pieces for event in events if isinstance(event, ContentChunk)]
    assert said == [text.upper() for text in texts]
    # The first frame opens the block.
    assert [raw for events, raw in pieces if ContentChunk in map(type, events)] == [frames[2], b"".join(frames[3:32])]
    seen = [[one.text for one in stage.seen if isinstance(one, ContentChunk)] for stage in (before, behind)]
    assert seen == [texts[:2], said[:3]]


SAYING = {
    "an answer": ["", "An", " answer", "", " of", " <b>some", " words"],
    "thinking in the text": ["<think>", "Let", " me", " see", "</th", "ink>", "An", " answer", " <think>again"],
    "thinking that follows a text": ["An", " answer", " <think>", " goes", "</think>", " on"],
    "a marker that follows a text": ["An", " answer", " goes", " on<|message_sep|>", " and", " on"],
}


@pytest.mark.parametrize("texts", SAYING.values(), ids=SAYING)
@pytest.mark.parametrize("field", ["", "reasoning_content", "reasoning_details"])
@pytest.mark.parametrize("name", ["think", "qwen35", "gpt_oss", "granite32", "gigachat3"])
@pytest.mark.parametrize("undecided", [False, True])
def test_thinking_in_a_text_is_found_in_frames_that_came_together(
    texts: list[str], field: str, name: str, undecided: bool
) -> None:
    thoughts = [frame(delta(f"thought {number} ", field)) for number in range(5) if field]
    frames = [frame(START), *thoughts, *(frame({"content": text}) for text in texts), frame({}, "stop")]
    formats = TextFormats(reasoning=find_format(name), undecided=undecided, hold_limit=1)
    target = Target(provider=Provider(id=ROW.id, row=ROW, base_url=""), model="")
    attempt = Attempt(target=target, wire=WireRequest(path="", body=b""), formats=formats)
    one_by_one = ReplyReader(attempt, streamed=True, handling=ReplyHandling())
    together = ReplyReader(attempt, streamed=True, handling=ReplyHandling())
    said = [event for one in frames for event in one_by_one.feed(one)] + one_by_one.finish()
    assert together.feed(b"".join(frames)) + together.finish() == said
    assert together.response() == one_by_one.response()


STAGES: dict[str, tuple[Callable[[], Stage[Event, Event]], str]] = {
    "citations of whole blocks": (lambda: citations_between("anthropic_messages", "openai_chat")[0], ""),
    "thinking in the text": (lambda: InlineReasoning.of("think"), "<think>"),
    "thinking that is left out": (WithoutReasoning, ""),
    "arguments of calls": (UpperArguments, ""),
    **{
        f"a marker of {one.name}": (partial(InlineReasoning.of, one.name), one.dropped[-1])
        for one in builtin_formats().rows.values()
        if one.dropped
    },
}
CITED = {
    "type": "web_search_result_location",
    "url": "https://a.example",
    "title": "A",
    "encrypted_index": "e",
    "cited_text": "c",
}


@pytest.mark.parametrize(("make", "mark"), STAGES.values(), ids=STAGES)
def test_a_stage_gives_of_many_events_what_it_gives_of_each(make: Callable[[], Stage[Event, Event]], mark: str) -> None:
    texts = ["An", " answer", "", " goes", " on", mark, " and", f" on{mark}", ""]
    events: list[Event] = [ContentChunk(0, text) for text in texts]
    events += [
        BlockFields(0, "anthropic_messages", {"citations": [CITED]}),
        *events,
        *(ThinkChunk(1, text) for text in texts),
        *(ToolCallChunk(3, text) for text in texts),
    ]
    events += [ContentChunk(2, text) for text in ("c", "d", f"d{mark}", "e")] + [Finish("stop", "stop")]
    together, alone = make(), make()
    assert [*pass_through(events, [together])] == [one for event in events for one in alone.feed(event)]
    assert [*together.finish()] == [*alone.finish()]


@pytest.mark.parametrize("size", [0, 1], ids=["in one read", "one by one"])
def test_a_text_that_names_the_end_of_a_call_is_not_held_back_with_it(size: int) -> None:
    frames = numbered_stream(["a", "_arguments.done", "b", "c"])
    call = {"id": "f1", "type": "function_call", "call_id": "c1", "name": "f", "arguments": ""}
    begun = [
        {"type": "response.output_item.added", "item": call, "output_index": 1},
        {"type": "response.function_call_arguments.delta", "item_id": "f1", "output_index": 1, "delta": '{"a'},
    ]
    why = {"id": "r1", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    ended = {"type": "response.incomplete", "response": why}
    calls = [b"data: " + json.dumps(one).encode() + b"\n\n" for one in begun]
    told = {"type": "response.function_call_arguments.done", "item_id": "f1", "output_index": 1, "arguments": '{"a'}
    end = [b"data: " + json.dumps(one).encode() + b"\n\n" for one in (told, ended)]
    sent = [*frames[:3], *calls, *frames[3:6], *end]
    reader = row_reader(RESPONSES, streamed=True, handling=ReplyHandling(forward=True))
    reads = sent if size else [b"".join(sent)]
    pieces = [*(one for read in reads for one in reader.read(read, joined=True)), *reader.read_rest()]
    assert b"".join([raw for _, raw in pieces]) == b"".join([*sent[:-2], sent[-1]])


@pytest.mark.parametrize("said", ["_arguments.done", "output_item.done of a_call"])
def test_arguments_that_name_the_end_of_a_call_are_not_held_back_with_it(said: str) -> None:
    frames = numbered_stream([])
    call = {"id": "f1", "type": "function_call", "call_id": "c1", "name": "f", "arguments": ""}
    delta = {"type": "response.function_call_arguments.delta", "item_id": "f1", "output_index": 1}
    told = {**delta, "type": "response.function_call_arguments.done", "arguments": f'{{"a": "{said}'}
    why = {"id": "r1", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    events = [
        {"type": "response.output_item.added", "item": call, "output_index": 1},
        *({**delta, "delta": piece} for piece in ('{"a": "', said)),
        told,
        {"type": "response.output_item.done", "item": {**call, "arguments": told["arguments"]}, "output_index": 1},
        {"type": "response.incomplete", "response": why},
    ]
    sent = [*frames[:1], *(b"data: " + json.dumps(one).encode() + b"\n\n" for one in events)]
    reader = row_reader(RESPONSES, streamed=True, handling=ReplyHandling(forward=True))
    pieces = [*(one for read in sent for one in reader.read(read, joined=True)), *reader.read_rest()]
    assert b"".join([raw for _, raw in pieces]) == b"".join([*sent[:4], sent[-1]])


def test_a_secret_among_frames_that_came_together_is_taken_out_of_its_frame_alone() -> None:
    secret, frames = "sk-aB3dE5gH7jK9mN1pQ3sT5v", numbered_stream(["a", "b", "c"])
    quoting = frames[3].replace(b'"type"', b'"note": "%s", "type"' % secret.encode())
    reader = row_reader(RESPONSES, streamed=True, handling=ReplyHandling(forward=True, secrets=Secrets([secret])))
    pieces = reader.read(b"".join([*frames[:3], quoting, *frames[4:]]), joined=True)
    assert [raw for _, raw in pieces if raw in frames] == [*frames[:3], *frames[4:]]
    assert secret.encode() not in b"".join([raw for _, raw in pieces])
    assert reader.response().text == "abc"


def test_a_long_text_is_read_now_and_then_and_no_piece_of_it_is_lost() -> None:
    texts = [f" {number}" for number in range(500)]
    frames = [part + b"\n\n" for part in stream(texts).split(b"\n\n") if part]
    reader = row_reader(ROW, streamed=True, handling=ReplyHandling(forward=True))
    assert directly(reader, frames) == b"".join(frames)
    assert reader.response().text == "".join(texts)


def test_only_frames_that_continue_a_text_are_passed_on_at_once() -> None:
    reader = row_reader(ROW, streamed=True, handling=ReplyHandling(forward=True))
    forwarding = Forwarding(reader, forward=True, withhold_usage=False, hold_end=False)
    first, text, last = frame(START), frame({"content": "a"}), frame({}, "stop")
    assert forwarding.repeated(first) is None
    for piece in (first, text, text, text):
        forwarding.update(piece)
    assert forwarding.repeated(text) is not None
    assert forwarding.repeated(text + text[:20]) is None
    assert forwarding.repeated(last) is None
    forwarding.update(last)
    assert forwarding.repeated(text) is None
    assert reader.response().text == "aaaa"


def test_a_secret_beside_the_text_is_taken_out_behind_pieces_that_were_passed_on() -> None:
    secret, text = "sk-aB3dE5gH7jK9mN1pQ3sT5v", frame({"content": "x"})
    quoting = text.replace(b'"object"', b'"note": "%s", "object"' % secret.encode())
    reader = row_reader(ROW, streamed=True, handling=ReplyHandling(forward=True, secrets=Secrets([secret])))
    sent = directly(reader, [frame(START), *[text] * 5, quoting, text, frame({}, "stop")])
    assert secret.encode() not in sent
    assert b'"note": "[' in sent
    assert reader.response().text == "x" * 7


def test_what_many_frames_say_is_one_event_where_that_is_wanted() -> None:
    reader = row_reader(ROW, streamed=True)
    reader.read(frame(START) + frame({"content": "a"}) * 2, joined=True)
    many = frame({"content": "b"}) + frame({"content": "c"}) + frame({"content": "d"})
    assert reader.read(many, joined=True) == [((ContentChunk(0, "bcd", 0),), many)]
    assert [event for events, _ in reader.read(many, joined=False) for event in events] == [
        ContentChunk(0, text, 0) for text in "bcd"
    ]


@pytest.mark.parametrize("field", FIELDS)
def test_frames_are_read_in_one_go_up_to_the_one_that_begins_as_they_do_and_goes_on_otherwise(field: str) -> None:
    reader = row_reader(ROW, streamed=True)
    reader.read(frame(START) + frame(delta("a", field)) * 2, joined=True)
    many = b"".join([frame(delta(text, field)) for text in "bcd"])
    last = frame(
        {**delta("", field), field: None} if field != "reasoning_details" else {**delta("", field), "reasoning": None}
    )
    (events, raw), *rest = reader.read(many + last + frame({}, "stop"), joined=True)
    assert raw == many
    assert [getattr(event, "text", "") for event in events] == ["bcd"]
    assert b"".join([raw for _, raw in rest]) == last + frame({}, "stop")
    response = reader.response()
    assert (response.text if field == "content" else response.reasoning.content) == "aabcd"


@pytest.mark.parametrize("second", ["x", "ab", ""])
def test_a_frame_that_says_another_text_in_its_second_place_is_read_by_itself(second: str) -> None:
    reader = row_reader(ROW, streamed=True)
    reader.read(frame(START) + frame(delta("a", "reasoning_details")) * 2, joined=True)
    other = {**delta(second, "reasoning_details"), "reasoning": "b"}
    reader.read(
        frame(delta("c", "reasoning_details")) + frame(other) + frame(delta("d", "reasoning_details")), joined=True
    )
    by_itself = row_reader(ROW, streamed=True)
    before: list[Mapping[str, object]] = [
        START,
        *[delta("a", "reasoning_details")] * 2,
        delta("c", "reasoning_details"),
    ]
    for said in (*before, other, delta("d", "reasoning_details")):
        by_itself.read(frame(said), joined=False)
    assert reader.response() == by_itself.response()


BROKEN = {
    "two strings": b'"a","b"',
    "half a string": b'"a',
    "halves that would make whole ones": b'"a","b"\x00"c\x00d"',
    "a line end": b'"a\nb"',
    "a number": b"1",
    "nothing": b"",
    "no UTF-8": b'"\xff"',
}


@pytest.mark.parametrize("values", BROKEN.values(), ids=BROKEN)
def test_frames_that_only_look_alike_are_read_one_by_one(values: bytes) -> None:
    head, tail = frame({"content": "x"}).split(b'"x"')
    frames = b"".join(head + value + tail for value in values.split(b"\x00"))
    data = frame(START) + frame({"content": "x"}) + frames
    at_once, _ = read([frame(START) + frame({"content": "x"}), frames], joined=True)
    byte_by_byte, _ = read([data[place : place + 1] for place in range(len(data))], joined=True)
    assert at_once == byte_by_byte
    reader, plain = row_reader(ROW, streamed=True, handling=ReplyHandling(forward=True)), frame({"content": "x"})
    sent = directly(reader, [frame(START), plain, *(head + value + tail for value in values.split(b"\x00"))])
    other = row_reader(ROW, streamed=True, handling=ReplyHandling(forward=True))
    forwarding = Forwarding(other, forward=True, withhold_usage=False, hold_end=False)
    updates = [forwarding.update(data[place : place + 1]) for place in range(len(data))]
    assert sent == b"".join([one.raw for one in (*updates, forwarding.rest())])
    assert reader.response() == other.response()

"""Replies of the Responses dialect, read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.catalog.rows import Quirks
from bardo.dialects.openai_responses import DIALECT
from bardo.streams.frames import Frame
from bardo.values.blocks import Carried, Opaque, ReasoningBlock, RefusalBlock, TextBlock, ToolCallBlock, UnknownBlock
from bardo.values.degradation import Degradation
from bardo.values.errors import BrokenStream, MalformedReply, UpstreamRefused
from bardo.values.events import ContentChunk, Failed, ThinkEnd, ToolCallEnd
from bardo.values.response import Response
from dialects.openai_responses.replies import ROW, events_of, read, read_whole, stream_of

ID = Opaque("id", "rs_1", "openai-responses-v1")


def created(**fields: Any) -> dict[str, Any]:
    return {"type": "response.created", "response": {"id": "resp_1", "model": "gpt-6", "created_at": 7, **fields}}


def completed(*output: dict[str, Any], status: str = "completed", **fields: Any) -> dict[str, Any]:
    response = {"id": "resp_1", "model": "gpt-6", "created_at": 7, "status": status, "output": list(output), **fields}
    return {"type": f"response.{status}", "response": response}


def added(index: int, **item: Any) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, **item: Any) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def delta(kind: str, index: int, text: Any, **place: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "output_index": index, "delta": text, **place}


def message(text: str, item_id: str = "msg_1", **fields: Any) -> dict[str, Any]:
    return {"type": "message", "id": item_id, "content": [{"type": "output_text", "text": text}], **fields}


def reasoning(**fields: Any) -> dict[str, Any]:
    return {"type": "reasoning", "id": "rs_1", "summary": [], **fields}


def only_block(response: Response) -> Any:
    (block,) = response.blocks
    return block


TELLINGS: dict[str, list[dict[str, Any]]] = {
    "deltas": [added(0, type="message", id="msg_1"), delta("output_text", 0, "Hi "), delta("output_text", 0, "you")],
    "only in the text's end": [
        added(0, type="message", id="msg_1"),
        {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "Hi you"},
    ],
    "only in the part's end": [
        added(0, type="message", id="msg_1"),
        {
            "type": "response.content_part.done",
            "output_index": 0,
            "content_index": 0,
            "part": {"type": "output_text", "text": "Hi you"},
        },
    ],
    "only in the item's end": [done(0, **message("Hi you"))],
    "begun by deltas, ended by the item": [
        added(0, type="message", id="msg_1"),
        delta("output_text", 0, "Hi "),
        done(0, **message("Hi you")),
    ],
    "never announced": [delta("output_text", 0, "Hi ", item_id="msg_1"), delta("output_text", 0, "you")],
    "no index": [
        {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "Hi "},
        {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "you"},
    ],
    "neither index nor id": [
        {"type": "response.output_item.added", "item": {"type": "message"}},
        {"type": "response.output_text.delta", "delta": "Hi "},
        {"type": "response.output_text.delta", "delta": "you"},
        {"type": "response.output_item.done", "item": message("Hi you")},
    ],
    "another index in the stream than in the list": [
        added(0, type="message", id="msg_1"),
        delta("output_text", 0, "Hi you", content_index=1),
        done(0, **message("Hi you")),
    ],
    "another id each time": [
        added(0, type="message", id="msg_1"),
        delta("output_text", 0, "Hi ", item_id="x"),
        delta("output_text", 0, "you", item_id="y"),
        done(0, **message("Hi you", "msg_2")),
    ],
    "nothing": [],
}


@pytest.mark.parametrize(
    ("telling", "listed"), [(name, listed) for name in TELLINGS for listed in (True, False) if listed or TELLINGS[name]]
)
def test_a_text_is_taken_once_however_often_it_is_told(telling: str, listed: bool) -> None:
    output = [message("Hi you")] if listed else []
    response = read(created(), *TELLINGS[telling], completed(*output))
    assert response.blocks == (TextBlock("Hi you", carried=Carried("openai_responses", {"item": {"id": "msg_1"}})),)
    assert not response.degraded


def test_a_finished_text_that_contradicts_the_stream_is_reported() -> None:
    response = read(
        created(),
        added(0, type="message", id="msg_1"),
        delta("output_text", 0, "Hi you"),
        done(0, **message("Ho you two")),
        completed(message("Ho you two")),
    )
    assert response.text == "Hi you"
    why = "the finished text contradicts what was streamed, which was kept"
    assert response.degraded == (Degradation("text", asked="10 characters", sent="6 characters", why=why),)


@pytest.mark.parametrize(
    ("kind", "place"),
    [("reasoning_text", {"content_index": 0}), ("reasoning", {})],
    ids=["as it is", "as older documents have it"],
)
def test_full_thinking_is_text(kind: str, place: dict[str, Any]) -> None:
    response = read(
        created(),
        added(0, **reasoning()),
        {"type": "response.reasoning_part.added", "output_index": 0, "part": {"type": "reasoning_text", "text": ""}},
        delta(kind, 0, "Let me ", **place),
        delta(kind, 0, "think", **place),
        {"type": f"response.{kind}.done", "output_index": 0, "text": "Let me think", **place},
        done(0, **reasoning(content=[{"type": "reasoning_text", "text": "Let me think"}])),
        completed(),
    )
    assert response.blocks == (ReasoningBlock(text="Let me think", format="openai-responses-v1", opaque=(ID,)),)


def test_summary_parts_stay_apart_even_empty_ones() -> None:
    parts = [{"type": "summary_text", "text": text} for text in ("one", "", "three")]
    response = read(
        created(),
        added(0, **reasoning()),
        delta("reasoning_summary_text", 0, "o", summary_index=0),
        delta("reasoning_summary_text", 0, "ne", summary_index=0),
        delta("reasoning_summary_text", 0, "three", summary_index=2),
        done(0, **reasoning(summary=parts)),
        completed(reasoning(summary=parts)),
    )
    assert only_block(response).summary == ("one", "", "three")


def test_the_ciphertext_of_the_finished_item_is_kept() -> None:
    response = read(
        created(),
        added(0, **reasoning(encrypted_content="provisional")),
        done(0, **reasoning(encrypted_content="final")),
        completed(reasoning(encrypted_content="another")),
    )
    assert only_block(response).opaque == (ID, Opaque("encrypted", "final", "openai-responses-v1"))


def test_an_items_own_format_says_whose_its_ciphertext_is() -> None:
    item = reasoning(encrypted_content="x", format="google-gemini-v1")
    block = only_block(read(created(), added(0, **reasoning()), done(0, **item), completed(item)))
    assert block.opaque[1] == Opaque("encrypted", "x", "google-gemini-v1")
    assert block.carried == Carried("openai_responses", {"format": "google-gemini-v1"})


def test_reasoning_may_begin_inside_a_message() -> None:
    response = read(
        created(),
        added(0, type="message", id="msg_1"),
        delta("output_text", 0, "Hel"),
        added(1, **reasoning()),
        delta("output_text", 0, "lo"),
        delta("reasoning_text", 1, "hm"),
        done(0, **message("Hello")),
        done(1, **reasoning(content=[{"type": "reasoning_text", "text": "hm"}])),
        completed(),
    )
    assert [type(block) for block in response.blocks] == [TextBlock, ReasoningBlock]
    assert (response.text, response.reasoning.content) == ("Hello", "hm")


def test_a_string_where_the_settings_belong_is_thinking() -> None:
    response = read_whole({"object": "response", "id": "r", "model": "m", "reasoning": "hm", "output": [message("Hi")]})
    assert [type(block) for block in response.blocks] == [ReasoningBlock, TextBlock]
    assert response.reasoning.content == "hm"
    assert response.carried == Carried("openai_responses", {})


def test_a_refusal_is_a_block_of_its_own() -> None:
    part = {"type": "refusal", "refusal": "I cannot"}
    response = read(
        created(),
        added(0, type="message", id="msg_1"),
        delta("refusal", 0, "I "),
        delta("refusal", 0, "cannot"),
        done(0, type="message", id="msg_1", content=[part]),
        completed(),
    )
    assert isinstance(only_block(response), RefusalBlock)
    assert response.refusal == "I cannot"


def test_annotations_come_once_and_logprobs_stay() -> None:
    notes: list[dict[str, Any]] = [{"type": "url_citation", "url": "a"}, {"type": "url_citation", "url": "b"}]
    part = {"type": "output_text", "text": "Hi", "annotations": notes, "logprobs": [{"token": "Hi"}], "new": 0}
    response = read(
        created(),
        added(0, type="message", id="msg_1"),
        delta("output_text", 0, "Hi"),
        {
            "type": "response.output_text.annotation.added",
            "output_index": 0,
            "content_index": 0,
            "annotation": notes[0],
        },
        done(0, type="message", id="msg_1", content=[part], phase="commentary", status="incomplete"),
        completed(message("Hi")),
    )
    item = {"id": "msg_1", "phase": "commentary", "status": "incomplete"}
    fields = {"item": item, "annotations": notes, "logprobs": [{"token": "Hi"}], "new": 0}
    assert response.blocks == (TextBlock("Hi", carried=Carried("openai_responses", fields)),)


def test_a_call_waits_for_its_name() -> None:
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "f",
        "arguments": '{"a":1}',
        "caller": "x",
    }
    response = read(
        created(),
        delta("function_call_arguments", 0, '{"a"', item_id="fc_1"),
        delta("function_call_arguments", 0, ":1", item_id="fc_1"),
        done(0, **call),
        completed(call),
    )
    carried = Carried("openai_responses", {"id": "fc_1", "caller": "x"})
    assert response.blocks == (ToolCallBlock(id="call_1", name="f", arguments='{"a":1}', carried=carried),)
    assert response.finish.reason == "tool_calls"


def test_other_items_are_passed_on_as_they_ended() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "x"}}
    tools = {"type": "mcp_list_tools", "id": "mcp_1", "tools": [1]}
    response = read(
        created(),
        added(0, type="web_search_call", id="ws_1", status="in_progress"),
        {"type": "response.web_search_call.searching", "output_index": 0, "item_id": "ws_1"},
        done(0, **search),
        added(1, type="mcp_list_tools", id="mcp_1", tools=[]),
        completed(search, tools),
    )
    assert response.blocks == (UnknownBlock("openai_responses", search), UnknownBlock("openai_responses", tools))


def test_a_content_part_without_a_name_here_is_passed_on() -> None:
    part = {"type": "output_audio", "data": "x"}
    item = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "content": [part, {"type": "output_text", "text": "Hi"}],
    }
    blocks = read(created(), done(0, **item), completed(item)).blocks
    assert isinstance(blocks[0], UnknownBlock)
    assert blocks[0].value["content"] == [part]
    assert isinstance(blocks[1], TextBlock)


ENDINGS: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "completed": ({"status": "completed"}, ("stop", "completed")),
    "length": (
        {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
        ("length", "max_output_tokens"),
    ),
    "filtered": (
        {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
        ("refusal", "content_filter"),
    ),
    "steered": ({"status": "incomplete", "incomplete_details": {"reason": "steered"}}, ("unknown", "steered")),
    "untold": ({"status": "incomplete"}, ("unknown", "incomplete")),
    "queued": ({"status": "queued"}, ("unknown", "queued")),
    "no status": ({}, ("stop", "completed")),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_end_keeps_the_providers_word(ending: str) -> None:
    fields, (reason, raw) = ENDINGS[ending]
    response = read_whole({"object": "response", "id": "r", "model": "m", "output": [], **fields})
    assert (response.finish.reason, response.finish.raw) == (reason, raw)


FAILURES: dict[str, tuple[list[dict[str, Any]], int]] = {
    "an object": ([{"type": "error", "error": {"code": "insufficient_quota", "message": "No money"}}], 429),
    "flat": ([{"type": "error", "code": "server_error", "message": "No money", "param": None}], 500),
    "a failed response": ([completed(status="failed", error={"code": "invalid_prompt", "message": "No money"})], 400),
    "unknown code": ([{"type": "error", "error": {"code": "odd", "message": "No money"}}], 502),
    "no event": ([{"error": {"message": "No money", "type": "server_error"}}], 500),
    "a bare string": ([{"error": "No money"}], 502),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_keeps_what_came_before_it(failure: str) -> None:
    told, status = FAILURES[failure]
    begun = [created(store=True), added(0, **reasoning()), delta("reasoning_text", 0, "hm")]
    response = read(*begun, *told, delta("reasoning_text", 0, "more"))
    assert isinstance(response.error, UpstreamRefused)
    assert (response.error.message, response.error.status) == ("No money", status)
    assert response.reasoning.content == "hm"
    assert response.carried is not None


def test_a_stream_that_stops_is_broken_and_ends_no_call() -> None:
    begun = stream_of(created(), added(0, **reasoning()), added(1, type="function_call", name="f", call_id="c"))
    events = events_of([begun], sse=True)
    assert any(isinstance(event, ThinkEnd) for event in events)
    assert not any(isinstance(event, ToolCallEnd) for event in events)
    assert isinstance(events[-1], Failed)
    assert isinstance(events[-1].error, BrokenStream)


@pytest.mark.parametrize(
    "frame",
    [b"{", b"[]", b'"x"', b"{}", b'{"type":"response.output_item.added","item":3}', b"[" * 5000],
    ids=["cut", "an array", "a string", "no shape", "no item", "too deep"],
)
def test_what_cannot_be_read_fails_once(frame: bytes) -> None:
    decoder = DIALECT.open_decoder(ROW)
    (failed,) = decoder.feed(Frame(frame))
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, MalformedReply)
    assert not decoder.feed(Frame(b"{"))
    assert not decoder.finish()


def test_comments_and_done_marks_say_nothing_and_a_last_frame_may_lack_its_blank_line() -> None:
    body = b": ping\n\n" + stream_of(created(), delta("output_text", 0, "Hi")) + b"data: [DONE]\n\n"
    events = events_of([body + stream_of(completed(message("Hi"))).rstrip()], sse=True)
    assert [event.text for event in events if isinstance(event, ContentChunk)] == ["Hi"]
    assert not any(isinstance(event, Failed) for event in events)


def test_a_lone_surrogate_costs_one_character() -> None:
    text = b'{"type":"response.output_text.delta","output_index":0,"delta":"a\\ud800b"}'
    decoder = DIALECT.open_decoder(ROW)
    events = [*decoder.feed(Frame(text)), *decoder.feed(Frame(text))]
    assert [event.text for event in events if isinstance(event, ContentChunk)] == ["a\ufffdb"] * 2


USAGES: dict[str, tuple[dict[str, Any], bool | None, tuple[Any, ...]]] = {
    "inside": (
        {"input_tokens": 9, "output_tokens": 8, "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 17},
        None,
        (9, 8, 5),
    ),
    "beside by its total": (
        {"input_tokens": 9, "output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 17},
        None,
        (9, 8, 5),
    ),
    "beside by its row": ({"output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 5}}, True, (None, 8, 5)),
    "at the top": ({"input_tokens": 9, "output_tokens": 8, "reasoning_tokens": 5}, None, (9, 8, 5)),
    "not told": ({"input_tokens": 9, "output_tokens": 8}, None, (9, 8, None)),
    "too many": ({"output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 5}}, False, (None, 3, 3)),
    "negative": ({"input_tokens": 9, "output_tokens": -9}, None, (9, None, None)),
    "of another type": ({"input_tokens": "9", "output_tokens": 2.0}, None, (None, 2, None)),
}


@pytest.mark.parametrize("name", USAGES)
def test_usage_keeps_one_algebra(name: str) -> None:
    raw, beside, expected = USAGES[name]
    row = ROW.__class__(id="x", name="x", dialect="openai_responses", quirks=Quirks(output_excludes_reasoning=beside))
    response = read_whole({"object": "response", "output": [], "usage": raw}, row)
    usage = response.usage
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == expected
    assert usage.raw == raw
    assert bool(response.degraded) == (name in ("too many", "negative", "of another type"))


def test_a_reported_price_is_read() -> None:
    assert read(created(), completed(usage={"cost": 0.25})).usage.cost_usd == 0.25
    assert read(created(), completed(usage={"cost_in_usd_ticks": 12856000})).usage.cost_usd == pytest.approx(0.0012856)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_FIELDS = st.fixed_dictionaries(
    {"type": st.sampled_from(sorted({one["type"] for telling in TELLINGS.values() for one in telling} | {"error"}))},
    optional={
        name: _JSON | st.sampled_from([0, 1, "message", "reasoning", "function_call"])
        for name in (
            "item",
            "delta",
            "output_index",
            "content_index",
            "part",
            "response",
            "text",
            "annotation",
            "item_id",
        )
    },
)
_ITEMS = st.fixed_dictionaries(
    {"type": st.sampled_from(["message", "reasoning", "function_call", "other"])},
    optional={
        name: _JSON | st.just([{"type": "output_text", "text": "x"}])
        for name in ("id", "content", "summary", "arguments")
    },
)
_EVENTS = _FIELDS | st.builds(lambda item, index: done(index, **item), _ITEMS, st.integers(0, 2))


@given(st.lists(_EVENTS | st.just(completed()) | st.builds(lambda item: completed(item), _ITEMS), max_size=6))
def test_no_shape_of_events_raises(told: list[dict[str, Any]]) -> None:
    response = read(*told)
    assert response.error is not None or response.finish.reason != "error"


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_no_bytes_raise(frames: list[bytes]) -> None:
    decoder = DIALECT.open_decoder(ROW)
    events = [event for frame in frames for event in decoder.feed(Frame(frame))]
    events += decoder.finish()
    assert isinstance(events[-1], Failed)

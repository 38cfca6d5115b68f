"""Clients that keep the ciphertext of an item and drop its text (the AI SDK, LangChain) bring the whole thinking back all the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.dialects.openai_responses import DIALECT
from bardo.values.blocks import Opaque, ReasoningBlock
from bardo.values.events import (
    Event,
    Finish,
    OpaqueState,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallEnd,
    ToolCallStart,
)
from bardo.values.fold import fold
from bardo.values.request import Request
from bardo.values.wire import Arrival

CLAUDE = Opaque("signature", "EqQBCkYIBxgCKkBqdxA1", "anthropic-claude-v1")
TEXT = "First one thing.\n\nThen another."


def request_of(summary: str | None) -> Request:
    body: dict[str, Any] = {"model": "m", "input": "?"}
    if summary is not None:
        body["reasoning"] = {"summary": summary}
    return DIALECT.decode_request(json.dumps(body).encode(), Arrival())


def item_of(*, summary: str | None, stream: bool, states: tuple[Opaque, ...] = (CLAUDE,)) -> dict[str, Any]:
    """Return the reasoning item a client gets, and check that its stream says the same."""
    style = states[0].format if states else "reasoning_content"
    events: list[Event] = [ReplyStart(id="r", model="m"), ThinkStart(0, style)]
    events += [ThinkChunk(0, TEXT[:6]), ThinkChunk(0, TEXT[6:])]
    events += [*(OpaqueState(0, state) for state in states), ThinkEnd(0)]
    events += [ToolCallStart(1, "call_1", "look"), ToolCallEnd(1), Finish("tool_calls")]
    request = request_of(summary)
    if not stream:
        found: dict[str, Any] = json.loads(DIALECT.encode_response(fold(events), request))["output"][0]
        return found
    encoder = DIALECT.open_encoder(request, Arrival())
    written = b"".join([*(piece for event in events for piece in encoder.feed(event)), *encoder.finish()]).decode()
    told = [json.loads(line[6:]) for line in written.splitlines() if line.startswith("data: {")]
    kind = "reasoning_text" if summary is None else "reasoning_summary_text"
    deltas = [one["delta"] for one in told if one["type"] == f"response.{kind}.delta"]
    assert "".join(deltas) == TEXT
    assert [one["text"] for one in told if one["type"] == f"response.{kind}.done"] == [TEXT]
    done: dict[str, Any] = next(one for one in told if one["type"] == "response.output_item.done")["item"]
    assert told[-1]["response"]["output"][0] == done
    return done


def read(item: dict[str, Any]) -> ReasoningBlock:
    """Return the thinking of a request that sends the item back."""
    call = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"}
    body = {"model": "m", "input": [{"role": "user", "content": "?"}, item, call]}
    request = DIALECT.decode_request(json.dumps(body).encode(), Arrival())
    block = request.messages[1].blocks[0]
    assert isinstance(block, ReasoningBlock)
    return block


both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
asked = pytest.mark.parametrize("summary", [None, "auto", "detailed"])
DROPPED = {
    "nothing": (),
    "the content": ("content",),
    "the content and the summary": ("content", "summary"),
    "all but the ciphertext": ("content", "summary", "id", "status"),
}


@both
@asked
@pytest.mark.parametrize("dropped", DROPPED.values(), ids=list(DROPPED))
def test_signed_thinking_comes_back_with_its_exact_text(
    dropped: tuple[str, ...], summary: str | None, stream: bool
) -> None:
    item = item_of(summary=summary, stream=stream)
    block = read({name: value for name, value in item.items() if name not in dropped} | {"type": "reasoning"})
    assert (block.text, block.summary, block.opaque, block.format) == (TEXT, (), (CLAUDE,), CLAUDE.format)


@both
@asked
def test_visible_thinking_is_a_summary_where_one_was_asked_for(summary: str | None, stream: bool) -> None:
    item = item_of(summary=summary, stream=stream)
    shown = [part["text"] for part in item["summary"]]
    said = [part["text"] for part in item.get("content", ())]
    assert (shown, said) == (([], [TEXT]) if summary is None else ([TEXT], []))


@both
def test_unsigned_thinking_shown_as_a_summary_comes_back_as_text(stream: bool) -> None:
    item = item_of(summary="auto", stream=stream, states=())
    for dropped in DROPPED.values():
        block = read({name: value for name, value in item.items() if name not in dropped} | {"type": "reasoning"})
        assert (block.text, block.summary, block.opaque) == (TEXT, (), ())


@both
def test_unsigned_thinking_has_no_ciphertext_where_no_summary_was_asked_for(stream: bool) -> None:
    item = item_of(summary=None, stream=stream, states=())
    assert "encrypted_content" not in item
    assert read(item).text == TEXT


@both
def test_a_client_that_changed_the_text_keeps_its_own(stream: bool) -> None:
    item = item_of(summary=None, stream=stream)
    item["content"] = [{"type": "reasoning_text", "text": "Mine."}]
    assert read(item).text == "Mine."


def test_openais_own_ciphertext_stays_as_it_is() -> None:
    own = Opaque("encrypted", "gAAAAABqcmhGUY8i3WwdW", "openai-responses-v1")
    item = item_of(summary=None, stream=False, states=(own,))
    assert item["encrypted_content"] == own.data

"""Thinking between texts and calls comes back from every official library where it stood."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.dialects import dialect
from bardo.values.blocks import Block, Opaque, ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.events import (
    ContentChunk,
    Event,
    Finish,
    OpaqueState,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
)
from bardo.values.fold import fold
from bardo.values.wire import Arrival
from conformance.clients import READERS
from conformance.replies import written_stream, written_whole

FORMATS = ("anthropic-claude-v1", "bedrock-reasoning", "google-gemini-v1")
# T: thinking with a signature, R: redacted thinking, x: text, c: a call of a tool.
ORDERS = ("TcTc", "TccTc", "TxTxc", "xTcTx", "cTc", "TxcTxcTxc", "RcTc", "TcR", "TTcTTc")


def events_of(order: str, style: str) -> list[Event]:
    """Return the events of a reply whose blocks come in this order."""
    events: list[Event] = [ReplyStart(id="msg_1", model="m", created=1)]
    for block, kind in enumerate(order):
        match kind:
            case "T":
                events += [ThinkStart(block, style), ThinkChunk(block, f"thought {block}. ")]
                events += [OpaqueState(block, Opaque("signature", f"c2lnbmF0dXJl{block}000", style)), ThinkEnd(block)]
            case "R":
                events += [ThinkStart(block, style)]
                events += [OpaqueState(block, Opaque("redacted", f"cmVkYWN0ZWQh{block}000", style)), ThinkEnd(block)]
            case "x":
                events += [ContentChunk(block, f"text {block}. "), ContentChunk(block, "And more. ")]
            case _:
                events += [ToolCallStart(block, f"call_{block}", "look"), ToolCallChunk(block, f'{{"at":{block}}}')]
                events.append(ToolCallEnd(block))
    return [*events, Finish("tool_calls" if "c" in order else "stop")]


def order_of(blocks: tuple[Block, ...]) -> list[str]:
    """Return what stands where: state of thinking, text, ids of calls. What a library leaves empty is passed over."""
    found: list[str] = []
    spoken = False
    for block in blocks:
        continued, spoken = spoken, isinstance(block, TextBlock)
        match block:
            case ReasoningBlock():
                found += [state.data.replace("-", "+").replace("_", "/") for state in block.opaque]
            case TextBlock(text=text) if text.strip() and continued:
                # Google's library gives each chunk of a text as a part of its own.
                found[-1] = f"{found[-1]} {text.strip()}"
            case TextBlock(text=text) if text.strip():
                found.append(text.strip())
            case ToolCallBlock(arguments=arguments):
                found.append(json.dumps(json.loads(arguments)))
            case _:
                pass
    return found


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("style", FORMATS)
@pytest.mark.parametrize("client", list(READERS))
def test_every_library_gives_the_blocks_back_in_their_order(client: str, style: str, order: str, stream: bool) -> None:
    if style == "google-gemini-v1" and "R" in order:
        pytest.skip("Gemini redacts nothing")
    events = events_of(order, style)
    reply = fold(events)
    body = written_stream(events, client) if stream else written_whole(reply, client)
    turn: Any = READERS[client](body, stream=stream).turn()
    request = dialect(client).decode_request(json.dumps(turn).encode(), Arrival(model="m"))
    (blocks,) = (message.blocks for message in request.messages if message.role == "assistant")
    assert order_of(blocks) == order_of(tuple(reply.blocks))


@pytest.mark.parametrize("order", ORDERS)
def test_converse_gives_the_blocks_back_in_their_order(order: str) -> None:
    reply = fold(events_of(order, "anthropic-claude-v1"))
    turn = json.loads(written_whole(reply, "bedrock_converse"))["output"]["message"]
    body = {"messages": [{"role": "user", "content": [{"text": "?"}]}, turn]}
    request = dialect("bedrock_converse").decode_request(json.dumps(body).encode(), Arrival(model="m"))
    assert order_of(request.messages[1].blocks) == order_of(tuple(reply.blocks))


@pytest.mark.parametrize(
    "position",
    [{"content": -1}, {"content": 10**9, "tool_calls": 99}, {"tool_calls": "2"}, {"content": True}, [], "0", None],
    ids=repr,
)
def test_a_position_that_cannot_be_loses_nothing(position: Any) -> None:
    detail = {"type": "reasoning.text", "text": "Hm.", "signature": "s", "format": "anthropic-claude-v1", "index": 0}
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    turn = {
        "role": "assistant",
        "content": "Let me see.",
        "tool_calls": [call],
        "reasoning_details": [{**detail, "position": position}],
    }
    body = {"model": "m", "messages": [{"role": "user", "content": "?"}, turn]}
    request = dialect("openai_chat").decode_request(json.dumps(body).encode(), Arrival())
    blocks = request.messages[1].blocks
    assert sorted(type(block).__name__ for block in blocks) == ["ReasoningBlock", "TextBlock", "ToolCallBlock"]
    assert request.messages[1].text == "Let me see."

"""The prefix guard: what counts as the same prefix, which part is named, and what is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.catalog.replay import Reader, builtin_replay
from bardo.reasoning.replay import Recalled, ReplyRecord, amended, prefix_of, remember, restore
from bardo.reasoning.replay.guard import OnChange
from bardo.values.blocks import Carried, ImageBlock, Opaque, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import Message, Request, Tool
from bardo.values.response import Response
from bardo.values.wire import WireRequest

ROW = builtin().provider("anthropic")
assert ROW is not None
READER: Reader = builtin_replay().reader("anthropic", ROW, "claude-opus-5-5")
IDS = {"one": "toolu_01Xq7Kd92LmPvR4sT8wYzB3n", "two": "toolu_01Jh5Gf83NcQwE6rU2iOaS9k"}
CALL = ToolCallBlock(id="c1", name="weather", arguments='{"city":"Paris"}')
TOOLS = (Tool(name="weather", schema={"type": "object"}), Tool(name="time"))
FIRST = Request(
    model="m",
    messages=(Message("system", (TextBlock("Be brief."),)), Message("user", (TextBlock("Weather?"),))),
    tools=TOOLS,
)


def thought(signature: str) -> ReasoningBlock:
    return ReasoningBlock(format="anthropic-claude-v1", opaque=(Opaque("signature", signature, "anthropic-claude-v1"),))


def result(text: str = "sunny") -> Message:
    return Message("user", (ToolResultBlock(call_id="c1", content=(TextBlock(text),)),))


def after(request: Request, *messages: Message, **changes: Any) -> Request:
    return msgspec.structs.replace(request, messages=(*request.messages, *messages), **changes)


def two_turns(on_change: OnChange) -> tuple[Request, Recalled]:
    """Return a request with two replies of calls in its history, their thinking dropped, and what is known of them."""
    found: dict[str, ReplyRecord] = {}
    request = FIRST
    for signature in ("one", "two"):
        call = msgspec.structs.replace(CALL, id=IDS[signature])
        blocks = (thought(signature), call)
        sent = restore(request, READER, Recalled(found=found)).request
        for memory in remember(Response(blocks=blocks), request, sent, READER):
            found |= dict.fromkeys(memory.keys, memory.kept)
        request = after(request, Message("assistant", (call,)), result(f"sunny {signature}"))
    return request, Recalled(found=found, on_change=on_change)


def signatures(request: Request) -> list[str]:
    blocks = [block for message in request.messages for block in message.blocks if isinstance(block, ReasoningBlock)]
    return [state.data for block in blocks for state in block.opaque]


def with_message(request: Request, place: int, message: Message) -> Request:
    return msgspec.structs.replace(
        request, messages=(*request.messages[:place], message, *request.messages[place + 1 :])
    )


def test_an_unchanged_prefix_keeps_everything() -> None:
    request, known = two_turns("restore")
    found = restore(request, READER, known)
    assert signatures(found.request) == ["one", "two"]
    assert found.degraded == ()


Change = Callable[[Request], Request]
CHANGED: dict[str, tuple[Change, list[str]]] = {
    "system prompt": (lambda one: with_message(one, 0, Message("system", (TextBlock("Be long."),))), []),
    "list of tools": (lambda one: msgspec.structs.replace(one, tools=TOOLS[:1]), []),
    "message 0": (lambda one: with_message(one, 1, Message("user", (TextBlock("Time?"),))), []),
    "message 2": (lambda one: with_message(one, 3, result("rainy")), ["one"]),
}


@pytest.mark.parametrize("on_change", ["restore", "drop"])
@pytest.mark.parametrize("part", list(CHANGED))
def test_the_first_part_that_differs_is_named_and_what_follows_it_left_out(part: str, on_change: OnChange) -> None:
    change, kept = CHANGED[part]
    request, known = two_turns(on_change)
    found = restore(change(request), READER, known)
    assert signatures(found.request) == kept
    (told,) = found.degraded
    assert part in told.why


@pytest.mark.parametrize("part", list(CHANGED))
def test_asked_to_have_it_dropped_bardo_sends_all_and_the_words_for_that(part: str) -> None:
    change, _ = CHANGED[part]
    request, known = two_turns("drop_block")
    found = restore(change(request), READER, known)
    assert signatures(found.request) == ["one", "two"]
    assert found.degraded[0].sent == "drop_block"
    wire = WireRequest(
        path="messages", body=b'{"thinking":{"type":"adaptive","display":"omitted"}}', headers={"anthropic-beta": "a"}
    )
    assert found.ask is not None
    sent = amended(wire, found.ask)
    assert msgspec.json.decode(sent.body)["thinking"] == {
        "type": "adaptive",
        "display": "omitted",
        "block_binding": {"prefix_mismatch_behavior": "drop_block"},
    }
    assert sent.headers == {"anthropic-beta": "a,thinking-binding-controls-2026-08-01"}


def test_a_request_without_thinking_settings_gets_what_the_words_cannot_stand_without() -> None:
    request, known = two_turns("drop_block")
    found = restore(CHANGED["system prompt"][0](request), READER, known)
    assert found.ask is not None
    body = msgspec.json.decode(amended(WireRequest(path="messages", body=b"{}"), found.ask).body)
    assert body["thinking"]["type"] == "adaptive"


def test_a_reply_whose_thinking_is_gone_costs_the_thinking_after_it() -> None:
    request, known = two_turns("restore")
    gone = {key: kept for key, kept in known.found.items() if kept.states[0].data != "one"}
    found = restore(request, READER, msgspec.structs.replace(known, found=gone))
    assert signatures(found.request) == []
    assert "message 1" in found.degraded[0].why


def test_tools_in_another_order_are_put_back_and_that_is_said() -> None:
    request, known = two_turns("restore")
    found = restore(msgspec.structs.replace(request, tools=TOOLS[::-1]), READER, known)
    assert found.request.tools == TOOLS
    assert signatures(found.request) == ["one", "two"]
    assert [one.what for one in found.degraded] == ["tools"]


def test_the_prefix_of_others_is_not_looked_at() -> None:
    assert ROW is not None
    free = builtin_replay().reader("anthropic", ROW, "claude-opus-4-5")
    call = msgspec.structs.replace(CALL, id=IDS["one"])
    (memory,) = remember(Response(blocks=(thought("one"), call)), FIRST, FIRST, free)
    assert memory.kept.prefix is None
    changed = CHANGED["system prompt"][0](after(FIRST, Message("assistant", (call,)), result()))
    found = restore(changed, free, Recalled(found=dict.fromkeys(memory.keys, memory.kept)))
    assert signatures(found.request) == ["one"]


SAME = [
    (TextBlock("Weather?", carried=Carried("anthropic_messages", {"cache_control": {"type": "ephemeral"}})),),
    (TextBlock("Wea"), TextBlock("ther?")),
]


@pytest.mark.parametrize("blocks", SAME, ids=["a cache mark", "cut otherwise"])
def test_what_says_the_same_is_the_same_prefix(blocks: tuple[TextBlock, ...]) -> None:
    assert prefix_of(with_message(FIRST, 1, Message("user", blocks))) == prefix_of(FIRST)


OTHER = [
    (TextBlock("weather?"),),
    (TextBlock("Weather?"), ImageBlock(url="https://example.org/a.png")),
    (TextBlock("Weather?"), thought("x")),
    (TextBlock("Weather?"), CALL),
]


@pytest.mark.parametrize("blocks", OTHER, ids=["a letter", "a picture", "a thought", "a call"])
def test_what_says_something_else_is_not(blocks: tuple[TextBlock, ...]) -> None:
    made, now = prefix_of(FIRST), prefix_of(with_message(FIRST, 1, Message("user", blocks)))
    assert made.difference(now) == "message 0"
    assert made.whole != now.whole

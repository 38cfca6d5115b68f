"""Of a reply that is only text nothing is kept, so that nobody need look for it."""

from __future__ import annotations

import pytest

from bardo.catalog.load import builtin
from bardo.catalog.replay import builtin_replay
from bardo.dialects.openai_chat import DIALECT
from bardo.reasoning.replay import is_only_text, remember
from bardo.streams.frames import Frame
from bardo.streams.sse import SseDecoder
from bardo.values.blocks import Opaque, ReasoningBlock, ReplyBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.fold import fold
from bardo.values.request import Message, Request
from bardo.values.response import Response
from recordings import Recording, each_recording, rows

ROW = builtin().provider("deepseek")
ASKED = Request(model="m", messages=(Message("user", (TextBlock("hi"),)),))
AFTER_A_TOOL = Request(
    model="m",
    messages=(
        Message("assistant", (ToolCallBlock(id="call_1", name="f", arguments="{}"),)),
        Message("user", (ToolResultBlock(call_id="call_1", content=(TextBlock("3"),)),)),
    ),
)
CHAT = [one for name in ("openai-chat", "deepseek", "openrouter") for one in rows(name)]


@each_recording(CHAT)
def test_nothing_is_kept_of_a_recorded_reply_of_text(recording: Recording) -> None:
    assert ROW is not None
    decoder, framing = DIALECT.open_decoder(ROW), SseDecoder()
    body = recording.body
    frames = [*framing.feed(body), *framing.finish()] if recording.framing == "sse" else [Frame(body, raw=body)]
    response = fold([event for frame in frames for event in decoder.feed(frame)] + [*decoder.finish()])
    for request in (ASKED, AFTER_A_TOOL):
        reader = builtin_replay().reader(ROW.id, ROW, "m")
        kept = remember(response, request, request, reader)
        assert not (kept and is_only_text(response, request))


OTHERS: dict[str, tuple[ReplyBlock, ...]] = {
    "thinking": (ReasoningBlock(text="Hm."), TextBlock("3")),
    "a call": (ToolCallBlock(id="call_1", name="f", arguments="{}"),),
    "state": (TextBlock("3", (Opaque("signature", "x", "f"),)),),
}


@pytest.mark.parametrize("blocks", OTHERS.values(), ids=OTHERS)
def test_a_reply_with_anything_else_is_looked_at(blocks: tuple[ReplyBlock, ...]) -> None:
    assert not is_only_text(Response(blocks=blocks), ASKED)


def test_a_reply_behind_a_tools_result_is_looked_at() -> None:
    plain = Response(blocks=(TextBlock("3"),))
    assert is_only_text(plain, ASKED)
    assert not is_only_text(plain, AFTER_A_TOOL)
    assert not is_only_text(Response(blocks=plain.blocks, alternatives=(plain,)), ASKED)

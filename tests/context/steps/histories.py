"""Conversations of agents, generated: prompts, calls of tools, their results, thinking and answers, as clients send them."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from bardo.values.blocks import Block, Opaque, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import Message, Request

SENTENCES = (
    "The tower is in Paris and has three levels. ",
    "Rates of the second quarter are in the table below. ",
    "def main() -> None:\n    print('nothing')\n",
    '{"name": "a",  "values": [1,  2, 3.10]}\n',
    "A line of text that stands here more than once.\n",
)


def user(text: str) -> Message:
    return Message(role="user", blocks=(TextBlock(text),))


def said(text: str) -> Message:
    return Message(role="assistant", blocks=(TextBlock(text),))


def call(number: int, name: str = "read_file", *before: Block) -> Message:
    return Message(role="assistant", blocks=(*before, ToolCallBlock(id=f"call_{number}", name=name, arguments="{}")))


def result(number: int, text: str) -> Message:
    return Message(role="user", blocks=(ToolResultBlock(call_id=f"call_{number}", content=(TextBlock(text),)),))


def agent_history(results: Sequence[str], question: str = "What is in these files?") -> Request:
    """Return a conversation with one prompt and one call for each result."""
    turns = [message for number, text in enumerate(results) for message in (call(number), result(number, text))]
    return Request(model="m", messages=(user(question), *turns))


def thinking(number: int) -> ReasoningBlock:
    state = Opaque("signature", f"signature-{number}" * 4, "anthropic-claude-v1")
    return ReasoningBlock(text="hm", format="anthropic-claude-v1", opaque=(state,))


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Draw a text that is short or long, and may repeat another."""
    return draw(st.sampled_from(SENTENCES)) * draw(st.integers(1, 60))


@st.composite
def histories(draw: st.DrawFn) -> Request:
    """Draw a request as a client may send it: roles alternate, each call has its result behind it."""
    messages: list[Message] = []
    if draw(st.booleans()):
        messages.append(Message(role="system", blocks=(TextBlock(draw(texts())),)))
    number = 0
    for _ in range(draw(st.integers(1, 3))):
        messages.append(user(draw(texts())))
        for _ in range(draw(st.integers(0, 4))):
            thought = (thinking(number),) if draw(st.booleans()) else ()
            messages += [call(number, draw(st.sampled_from(("read_file", "search"))), *thought)]
            messages += [result(number, draw(texts()))]
            number += 1
        if draw(st.booleans()) or messages[-1].role == "user":
            messages.append(said(draw(texts())))
    messages.append(user(draw(texts())))
    return Request(model="m", messages=tuple(messages))

"""All layers that shorten prompts, one after the other, over conversations as clients of each dialect send them, turn by turn.

What is checked is what the provider gets: a request that is written in its dialect, and read again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bardo.catalog.load import builtin
from bardo.context.layer import Layer
from bardo.context.steps.compress import Compress
from bardo.context.steps.order import Constraints, Reorder
from bardo.context.steps.settings import (
    CompressSettings,
    ConstraintsSettings,
    DedupSettings,
    FormatSettings,
    RelevanceSettings,
    ReorderSettings,
)
from bardo.context.steps.shortening import dedup, format_results, relevance
from bardo.dialects import dialect
from bardo.values.blocks import Block, Opaque, Origin, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import Message, Request, Tool
from bardo.values.wire import Arrival
from context.steps.histories import said, texts, user
from support.layer_runs import ANSWERING, Memory, facts, run_layer

FORMS = {
    "openai_chat": "openai-chat",
    "openai_responses": "openai",
    "anthropic_messages": "anthropic",
    "gemini": "gemini",
    "gemini_interactions": "gemini-interactions",
    "cohere": "cohere",
    "ollama": "ollama",
    "bedrock_converse": "bedrock",
    "bedrock_invoke": "bedrock-invoke",
}
CLAUDE = "claude-opus-4-5"
MODELS = {
    "anthropic_messages": CLAUDE,
    "bedrock_converse": f"anthropic.{CLAUDE}",
    "bedrock_invoke": f"anthropic.{CLAUDE}",
}
COMPRESS = CompressSettings(
    above_tokens=0, longest=50, keep_turns=1, compact=("rules",), compact_above_tokens=600, summary_tokens=50
)
LAYERS: tuple[Callable[[], Layer], ...] = (
    lambda: Reorder(ReorderSettings(least_document=1)),
    lambda: Compress(COMPRESS),
    lambda: dedup(DedupSettings(above_tokens=0, least=10, least_lines=3, keep_turns=1)),
    lambda: relevance(RelevanceSettings(above_tokens=0, longest=300, keep=100, keep_turns=1)),
    lambda: Constraints(ConstraintsSettings(must=("Be brief.",), above_tokens=0, every_tokens=300)),
    lambda: format_results(FormatSettings(above_tokens=0, least=1, keep_turns=1)),
)
TOOLS = tuple(
    Tool(name=name, description=name, schema={"type": "object", "properties": {}}) for name in ("read_file", "search")
)


def thought(number: int) -> ReasoningBlock:
    """Return thinking with a signature, as Claude gives it at Anthropic."""
    origin = Origin(provider="anthropic", platform="anthropic", model=CLAUDE, dialect="anthropic_messages")
    signature = Opaque("signature", f"signature-{number}" * 8, "anthropic-claude-v1", origin)
    return ReasoningBlock(text="hm", format="anthropic-claude-v1", opaque=(signature,))


@st.composite
def conversations(draw: st.DrawFn) -> Request:
    """Draw a conversation with several calls in one turn, words beside calls, and words of the user beside results."""
    messages: list[Message] = []
    if draw(st.booleans()):
        messages.append(Message("system", (TextBlock(draw(texts())),)))
    number = 0
    messages.append(user(draw(texts())))
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(("calls", "calls", "words")))
        if kind == "words":
            messages += [said(draw(texts())), user(draw(texts()))]
            continue
        count = draw(st.integers(1, 3))
        calls: list[Block] = [
            ToolCallBlock(
                id=f"call_{number + one}", name=draw(st.sampled_from(("read_file", "search"))), arguments="{}"
            )
            for one in range(count)
        ]
        before: list[Block] = [thought(number)] if draw(st.booleans()) else []
        before += [TextBlock("Let me look.")] if draw(st.booleans()) else []
        results: list[Block] = [
            ToolResultBlock(call_id=f"call_{number + one}", content=(TextBlock(draw(texts())),)) for one in range(count)
        ]
        after: list[Block] = [TextBlock("And hurry.")] if draw(st.integers(0, 4)) == 0 else []
        messages += [Message("assistant", (*before, *calls)), Message("user", (*results, *after))]
        number += count
    if messages[-1].role == "assistant" or draw(st.booleans()):
        messages += [said(draw(texts())), user("And now?")]
    return Request(model="m", messages=tuple(messages), tools=TOOLS)


def as_sent(request: Request, form: str) -> Request:
    """Return a request as it is read by whoever gets it in a dialect."""
    row = builtin().provider(FORMS[form])
    assert row is not None
    model = MODELS.get(form, "m")
    body = dialect(form).encode_request(replace(request, model=model, dialect=form), row).body
    read: Any = dialect(form).decode_request
    found: Request = read(body, Arrival(model=model))
    return found


def signatures(messages: tuple[Message, ...]) -> list[str]:
    """Return the signatures of all thinking, in order."""
    blocks = [block for message in messages for block in message.blocks if isinstance(block, ReasoningBlock)]
    return [one.data for block in blocks for one in block.opaque]


def check_pairs(messages: tuple[Message, ...]) -> None:
    """Check that each call has its result in the next turn of the user, and each result its call in the turn before."""
    open_calls: list[str] = []
    for message in messages:
        calls = [one.id for one in message.blocks if isinstance(one, ToolCallBlock)]
        results = [one.call_id for one in message.blocks if isinstance(one, ToolResultBlock)]
        for result in results:
            assert result in open_calls
            open_calls.remove(result)
        if calls or (message.role == "user" and not results):
            assert not open_calls
        open_calls += calls
    assert not open_calls


@pytest.mark.sampled(4)
@pytest.mark.parametrize("form", FORMS)
@given(conversation=conversations())
def test_pairs_of_calls_and_results_and_the_cached_beginning_stay(form: str, conversation: Request) -> None:
    layers, memory = [make() for make in LAYERS], Memory()
    target = replace(ANSWERING, model=MODELS.get(form, "m"), dialect=form, input_nanos=10**9, cache_read_nanos=0)
    sent: tuple[Message, ...] = ()
    summaries = 0
    for end, message in enumerate(conversation.messages, 1):
        if message.role != "user":
            continue
        asked = turn = as_sent(replace(conversation, messages=conversation.messages[:end]), form)
        check_pairs(turn.messages)
        for layer in layers:
            turn = run_layer(layer, turn, facts(target), memory).request
        check_pairs(turn.messages)
        now = as_sent(turn, form)
        check_pairs(now.messages)
        made = len(memory.get(("compaction", "s"), b""))
        if made == summaries:
            assert turn.messages[: len(sent)] == sent
        left = signatures(now.messages)
        assert left == signatures(asked.messages)[len(signatures(asked.messages)) - len(left) :]
        sent, summaries = turn.messages, made


@given(conversation=conversations())
def test_nothing_is_changed_where_thinking_is_bound_to_the_prompt(conversation: Request) -> None:
    begun = [place for place, one in enumerate(conversation.messages) if one.role == "user"][1:]
    bound = facts(
        replace(ANSWERING, model="claude-opus-5-5", dialect="anthropic_messages", input_nanos=10**9, cache_read_nanos=0)
    )
    for end in begun:
        turn = replace(conversation, messages=conversation.messages[: end + 1])
        for make in LAYERS:
            assert run_layer(make(), turn, bound).request.messages == turn.messages

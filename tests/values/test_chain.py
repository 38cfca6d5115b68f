"""The thinking of a reply, and its tokens told true."""

from __future__ import annotations

import pytest

from bardo.catalog.features import shows_summaries
from bardo.values.blocks import Opaque, ReasoningBlock, ReplyBlock, TextBlock, ToolCallBlock, UnknownBlock
from bardo.values.events import ContentChunk, Finish, ThinkChunk, ThinkEnd, ThinkStart
from bardo.values.fold import ResponseFold, build_chain
from bardo.values.reasoning import ReasoningChain
from bardo.values.usage import Usage, estimate_tokens

pytestmark = pytest.mark.each_python

FULL = ReasoningBlock(text="I think.")
SUMMARY = ReasoningBlock(summary=("First.", "Then."))
SEALED = ReasoningBlock(opaque=(Opaque("encrypted", "abc"),))
EMPTY = ReasoningBlock()
ANSWER = TextBlock("Done.")
SIGNED_ANSWER = TextBlock("Done.", (Opaque("signature", "sig"),))
CALL = ToolCallBlock(id="c", name="f")
SIGNED_CALL = ToolCallBlock(id="c", name="f", opaque=(Opaque("signature", "sig"),))
SERVER_TOOL = UnknownBlock("d", {"type": "server_tool_use"})


def chain(*blocks: ReplyBlock, tokens: int | None = None) -> ReasoningChain:
    usage = Usage(output_tokens=100, reasoning_tokens=tokens)
    return build_chain(blocks, usage, provider="p", model="m", billed_as_output=True)


@pytest.mark.parametrize(
    ("blocks", "tokens", "visibility"),
    [
        ((FULL, ANSWER), None, "visible"),
        ((SUMMARY, FULL), None, "visible"),
        ((SUMMARY, SEALED), 10, "summarized"),
        ((SEALED, ANSWER), None, "opaque"),
        ((SEALED, ANSWER), 0, "opaque"),
        ((ANSWER,), 10, "opaque"),
        ((EMPTY, ANSWER), 10, "opaque"),
        ((SIGNED_ANSWER,), None, "opaque"),
        ((SIGNED_CALL,), None, "opaque"),
        ((EMPTY, ANSWER), None, "none"),
        ((ANSWER,), 0, "none"),
        ((ANSWER,), None, "none"),
        ((), None, "none"),
    ],
)
def test_visibility(blocks: tuple[ReplyBlock, ...], tokens: int | None, visibility: str) -> None:
    assert chain(*blocks, tokens=tokens).visibility == visibility


@pytest.mark.parametrize(
    ("blocks", "tokens", "told"),
    {
        "the provider's count": ((FULL,), 7, (7, True, False)),
        "its count without text": ((ANSWER,), 7, (7, True, False)),
        "its 0 without text": ((ANSWER,), 0, (0, True, False)),
        "its 0 beside text is no count": ((FULL,), 0, (2, True, True)),
        "an estimate of what can be read": ((FULL,), None, (2, False, True)),
        "an estimate of a summary": ((SUMMARY,), None, (estimate_tokens("First.\n\nThen."), False, True)),
        "nothing known is not 0": ((SEALED,), None, (0, False, False)),
        "nothing at all": ((), None, (0, False, False)),
    }.values(),
)
def test_tokens(blocks: tuple[ReplyBlock, ...], tokens: int | None, told: tuple[int, bool, bool]) -> None:
    found = chain(*blocks, tokens=tokens)
    assert (found.reasoning_tokens, found.reported, found.tokens_approx) == told
    assert found.cost.reasoning_tokens == told[0]
    assert found.cost.usd is None


@pytest.mark.parametrize(
    ("blocks", "interleaved"),
    [
        ((FULL, CALL, FULL), True),
        ((FULL, SERVER_TOOL, FULL), True),
        ((FULL, CALL), False),
        ((FULL, ANSWER, FULL, CALL), False),
        ((CALL, ANSWER), False),
        ((CALL, SEALED), True),
    ],
)
def test_interleaved_is_thinking_that_resumes_after_a_tool(blocks: tuple[ReplyBlock, ...], interleaved: bool) -> None:
    assert chain(*blocks).interleaved is interleaved


def test_content_joins_what_can_be_read() -> None:
    assert chain(FULL, SEALED, SUMMARY).content == "I think.\n\nFirst.\n\nThen."
    assert chain(SEALED).content is None


def test_the_chain_keeps_its_blocks_and_its_origin() -> None:
    found = build_chain((FULL, ANSWER, SEALED), Usage(), provider="p", model="m", billed_as_output=False)
    assert found.blocks == (FULL, SEALED)
    assert (found.provider, found.model, found.cost.billed_as_output) == ("p", "m", False)


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        ("claude-sonnet-4-5", "summarized"),
        ("us.anthropic.claude-opus-4-6-v1:0", "summarized"),
        ("anthropic/claude-haiku-4.5", "summarized"),
        ("claude-3-7-sonnet-20250219", "visible"),
        ("deepseek-r1", "visible"),
        ("gpt-oss-120b", "visible"),
        ("", "visible"),
    ],
)
def test_rc2_what_a_model_shows_of_its_thinking_may_be_a_summary(model: str, shown: str) -> None:
    collector = ResponseFold(model=model, summarizes=shows_summaries)
    for event in (ThinkStart(0), ThinkChunk(0, "thought"), ThinkEnd(0), ContentChunk(1, "said"), Finish("stop")):
        collector.feed(event)
    assert collector.response().reasoning.visibility == shown

"""The blocks of one reply and its usage, read as a ReasoningChain."""

from __future__ import annotations

from bardo.values.blocks import ReasoningBlock, ReplyBlock, TextBlock, ToolCallBlock, UnknownBlock
from bardo.values.reasoning import ReasoningChain, ReasoningCost, visibility_of
from bardo.values.usage import Usage, estimate_tokens


def build_chain(
    blocks: tuple[ReplyBlock, ...],
    usage: Usage,
    *,
    provider: str,
    model: str,
    billed_as_output: bool,
    empty: bool = False,
    withheld: bool = False,
    not_held: int = 0,
    summarizes: bool = False,
) -> ReasoningChain:
    """Return the thinking among `blocks`, with its tokens told true (RC7).

    `empty`: the reply held a block of thinking with nothing in it. `withheld`: it held thinking that was left out for the caller.
    `not_held` is how many characters of it are not among the blocks, because a stream was too long to hold.
    `summarizes`: the model shows summaries of its thinking, in whatever field.
    """
    thoughts = tuple([block for block in blocks if type(block) is ReasoningBlock])
    content = (
        "\n\n".join([readable for block in thoughts if (readable := block.readable)]) or None if thoughts else None
    )
    tokens = usage.reasoning_tokens or 0
    reported = usage.reasoning_tokens is not None and not (usage.approx and tokens)
    # Some hosts report 0 beside readable thinking (Venice, Ollama's Responses route): their 0 is no count.
    approximate = (content is not None and tokens == 0) or bool(usage.approx and tokens)
    if approximate and tokens == 0:
        tokens = estimate_tokens(content or "") + not_held // 4
        if usage.output_tokens is not None:
            # Thinking is a part of the output, so that no estimate of it is larger.
            tokens = min(tokens, usage.output_tokens)
    return ReasoningChain(
        provider=provider,
        model=model,
        visibility=visibility_of(thoughts, evidence=tokens > 0 or _holds_state(blocks), summarizes=summarizes),
        content=content,
        reasoning_tokens=tokens,
        reported=reported,
        tokens_approx=approximate,
        empty=empty and content is None and not withheld,
        withheld=withheld,
        interleaved=bool(thoughts) and _follows_a_call(blocks),
        blocks=thoughts,
        cost=ReasoningCost(reasoning_tokens=tokens, billed_as_output=billed_as_output),
    )


def _holds_state(blocks: tuple[ReplyBlock, ...]) -> bool:
    """Whether text or a call has opaque state, as only a model that thought leaves it."""
    # Asked for every reply, where a loop costs half of what `any` does.
    for block in blocks:  # noqa: SIM110
        if (type(block) is TextBlock or type(block) is ToolCallBlock) and block.opaque:
            return True
    return False


def _follows_a_call(blocks: tuple[ReplyBlock, ...]) -> bool:
    # A tool the provider ran itself is an unknown block: thinking after its result is resumed thinking too.
    called = False
    for block in blocks:
        kind = type(block)
        if called and kind is ReasoningBlock:
            return True
        called = called or kind is ToolCallBlock or kind is UnknownBlock
    return False

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
    # One pass, for every reply: of one with thinking it takes a third of the time that passes for each question do.
    found: list[ReasoningBlock] = []
    interleaved = called = holds_state = False
    for block in blocks:
        if type(block) is ReasoningBlock:
            found.append(block)
            interleaved = interleaved or called
        elif type(block) is TextBlock:
            holds_state = holds_state or bool(block.opaque)
        elif type(block) is ToolCallBlock:
            called, holds_state = True, holds_state or bool(block.opaque)
        elif type(block) is UnknownBlock:
            # A tool the provider ran itself: thinking after its result is resumed thinking too.
            called = True
    thoughts = tuple(found)
    content: str | None = None
    if len(thoughts) == 1:
        content = thoughts[0].readable or None
    elif thoughts:
        content = "\n\n".join([readable for block in thoughts if (readable := block.readable)]) or None
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
        visibility=visibility_of(thoughts, evidence=tokens > 0 or holds_state, summarizes=summarizes),
        content=content,
        reasoning_tokens=tokens,
        reported=reported,
        tokens_approx=approximate,
        empty=empty and content is None and not withheld,
        withheld=withheld,
        interleaved=interleaved,
        blocks=thoughts,
        cost=ReasoningCost(reasoning_tokens=tokens, billed_as_output=billed_as_output),
    )

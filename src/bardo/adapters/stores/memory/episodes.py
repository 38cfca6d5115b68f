"""Take what is kept of a call that has ended: what was asked, what was thought, what was answered.

A draft holds texts of bounded length and the call's row, and nothing else of the call, so that many may wait to be stored.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.adapters.stores.log.row import LogRow, mended_text
from bardo.reasoning.steps import chain_fields
from bardo.values.blocks import TextBlock
from bardo.values.episodes import Episode
from bardo.values.reasoning import ReasoningChain, ReasoningCost, ReasoningVisibility
from bardo.values.request import Request
from bardo.values.response import Response

LONGEST_QUESTION = 20_000
LONGEST_THINKING = 60_000
LONGEST_ANSWER = 20_000
"""Characters. What is longer keeps its beginning, with a mark that says how much is missing."""


class EpisodeDraft(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a call, before its vector is made. `row` is the call's row without content."""

    row: LogRow
    session: str = ""
    question: str
    thinking: str
    answer: str
    chain: ReasoningChain
    schema_ok: bool | None = None

    @property
    def request_id(self) -> str:
        """The call's."""
        return self.row.request_id


def draft_of(
    row: LogRow, request: Request, response: Response, *, session: str = "", schema_ok: bool | None = None
) -> EpisodeDraft | None:
    """Return what is kept of a call; None where nothing was thought. `response` has all the reasoning that may be kept."""
    chain = response.reasoning
    if chain.visibility is ReasoningVisibility.NONE:
        return None
    return EpisodeDraft(
        row=msgspec.structs.replace(
            row, request_content=None, reply_content=None, sent_content=None, usage_raw=None, receipt=None
        ),
        session=session,
        question=mended_text(question_of(request), LONGEST_QUESTION),
        # Blocks are what layers mask; the chain of the client's reply holds values that were put back.
        thinking=mended_text(
            "\n\n".join(filter(None, (block.readable for block in response.reasoning_blocks))), LONGEST_THINKING
        ),
        answer=mended_text(response.text, LONGEST_ANSWER),
        # Blocks hold signatures and other states that only a provider can read.
        chain=msgspec.structs.replace(chain, content=None, blocks=(), control=None, cost=ReasoningCost()),
        schema_ok=schema_ok,
    )


def question_of(request: Request) -> str:
    """Return what the user said last: a turn of tool results alone is part of an answer to what was asked before it."""
    for message in reversed(request.messages):
        if message.role == "user" and any(type(block) is TextBlock and block.text for block in message.blocks):
            return message.paragraphs
    return ""


def episode_id(request_id: str) -> str:
    """Return the id of a call's episode."""
    return f"ep_{request_id.removeprefix('req_')}"


def episode_fields(episode: Episode) -> dict[str, Any]:
    """Return everything of an episode as plain values for JSON, its reasoning steps found."""
    chain = chain_fields(episode.reasoning)
    names = ("visibility", "content", "reasoning_tokens", "reported", "tokens_approx", "interleaved", "steps")
    return {**msgspec.to_builtins(episode), "reasoning": {name: chain[name] for name in names}}

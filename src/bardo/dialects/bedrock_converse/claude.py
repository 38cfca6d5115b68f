"""What a Claude model takes beside its messages, asked of the Anthropic dialect, which knows Claude's rules.

Bedrock hands `thinking`, `output_config` and `top_k` on to Claude, and refuses what Anthropic refuses: sampling beside thinking, a forced
tool beside a budget, tool results whose thinking is lost. So the request is written for Anthropic with an echo of its messages, and its
controls are read from there.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.dialects.bedrock_converse.words import FIELD
from bardo.values.blocks import Block, Opaque, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.degradation import Degradation
from bardo.values.request import Message, Request, Tool

ANTHROPIC = "anthropic_messages"
SIGNED = "anthropic-claude-v1"
"""The format of what the Anthropic dialect takes for its own."""

# Losses that Converse has words of its own for.
_OURS = frozenset(("n", "min_p", "frequency_penalty", "presence_penalty", "seed", "stop"))


class Controls(msgspec.Struct, frozen=True, kw_only=True):
    """Anthropic's fields by their names, and what had to differ."""

    fields: dict[str, Any]
    degraded: tuple[Degradation, ...]

    def some(self, *names: str) -> dict[str, Any]:
        """Return those of the fields that are there."""
        return {name: self.fields[name] for name in names if name in self.fields}


def claude_controls(request: Request, turns: list[dict[str, Any]], row: ProviderRow) -> Controls:
    """Return what Claude is told beside `turns`, the messages as Converse has them."""
    echo = msgspec.structs.replace(
        request,
        messages=_echo(turns),
        tools=tuple(Tool(name=tool.name) for tool in request.tools if not tool.hosted),
        output_format=None,
        extra={},
        dialect="",
    )
    written = dialect(ANTHROPIC).encode_request(echo, row)
    degraded = tuple(one for one in written.degraded if one.what not in _OURS)
    return Controls(fields=msgspec.json.decode(written.body), degraded=degraded)


def _echo(turns: list[dict[str, Any]]) -> tuple[Message, ...]:
    """Return messages that show what Claude's rules look at: whether tools are answered whose call began with thinking."""
    answered = turns and any("toolResult" in block for block in turns[-1]["content"])
    if not answered or len(turns) < 2:
        return (Message("user", (TextBlock("x"),)),)
    called: list[Block] = [ToolCallBlock(id="x", name="x")]
    if FIELD in (turns[-2]["content"] or [{}])[0]:
        called.insert(0, ReasoningBlock(text="x", opaque=(Opaque("signature", "x", SIGNED),)))
    return Message("assistant", tuple(called)), Message("user", (ToolResultBlock(call_id="x"),))

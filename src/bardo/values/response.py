"""One whole reply, and what can be asked of it."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.values.blocks import (
    Carried,
    ReasoningBlock,
    RefusalBlock,
    ReplyBlock,
    TextBlock,
    ToolCallBlock,
    has_no_arguments,
)
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError
from bardo.values.events import Finish
from bardo.values.notebook import html_of, one_line
from bardo.values.reasoning import ReasoningChain
from bardo.values.usage import Usage


class ToolInvocation(msgspec.Struct, frozen=True):
    """A tool call with its arguments parsed.

    `raw_arguments` is what the model wrote; `arguments` is `{}` where that is no JSON object, with `malformed` set.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    raw_arguments: str = ""
    malformed: bool = False

    @classmethod
    def of(cls, block: ToolCallBlock) -> ToolInvocation:
        """Parse a call's arguments; no arguments at all is an empty object."""
        if has_no_arguments(block.arguments):
            return cls(block.id, block.name, {}, block.arguments)
        try:
            parsed = msgspec.json.decode(block.arguments)
        except msgspec.DecodeError:
            parsed = None
        if not isinstance(parsed, dict):
            return cls(block.id, block.name, {}, block.arguments, malformed=True)
        return cls(block.id, block.name, parsed, block.arguments)


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """A reply with its blocks in order.

    `finish.raw` is the provider's own word. `alternatives` are further choices, where several were asked for. `error` is set where
    the reply broke; what had arrived by then is here. `bardo` holds ids, cost and the receipt of the call.
    """

    id: str = ""
    model: str = ""
    provider: str = ""
    created: int | None = None
    blocks: tuple[ReplyBlock, ...] = ()
    reasoning: ReasoningChain = ReasoningChain()
    usage: Usage = Usage()
    finish: Finish = Finish("unknown")
    degraded: tuple[Degradation, ...] = ()
    error: BardoError | None = None
    alternatives: tuple[Response, ...] = ()
    carried: Carried | None = None
    choice_carried: Carried | None = None
    bardo: dict[str, Any] = {}

    def __repr__(self) -> str:
        calls = [call.name for call in self.tool_calls]
        thinking = sum(len(block.readable) for block in self.reasoning_blocks)
        error = None if self.error is None else f"{type(self.error).__name__}: {self.error}"
        parts = (
            ("model", self.model), ("text", self.text), ("refusal", self.refusal), ("tool_calls", calls),
            ("thinking_characters", thinking), ("finish", self.finish.reason), ("error", error),
            ("degraded", len(self.degraded)),
        )  # fmt: skip
        return one_line(type(self).__name__, parts)

    def _repr_html_(self) -> str:
        """Return the reply as notebooks show it."""
        return html_of(self)

    @property
    def text(self) -> str:
        """The answer: all text blocks joined, verbatim."""
        return "".join(block.text for block in self.blocks if isinstance(block, TextBlock))

    @property
    def refusal(self) -> str:
        """The words of a refusal, empty where there was none."""
        return "".join(block.text for block in self.blocks if isinstance(block, RefusalBlock))

    @property
    def tool_calls(self) -> list[ToolInvocation]:
        """The calls the model asks for, in order. A call in which the reply broke off is not among them: it is a block only."""
        return [
            ToolInvocation.of(block) for block in self.blocks if isinstance(block, ToolCallBlock) and block.complete
        ]

    @property
    def reasoning_blocks(self) -> list[ReasoningBlock]:
        """The stretches of thinking, in order."""
        return [block for block in self.blocks if isinstance(block, ReasoningBlock)]

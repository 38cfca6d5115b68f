"""A request whose tools were called behind thinking that is not at hand: some models refuse to think on behind it."""

from __future__ import annotations

import msgspec

from bardo.reasoning.replay.keys import states_of
from bardo.reasoning.replay.switch import Switch
from bardo.values.blocks import ReasoningBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import ReasoningPolicy, Request


def lacks_thinking(request: Request) -> bool:
    """Whether thinking is asked for, and the tools that are being answered were called without any that can be sent."""
    if request.reasoning is None or request.reasoning.mode == "off":
        return False
    calling = next((one for one in reversed(request.messages) if one.role == "assistant"), None)
    answers = any(isinstance(block, ToolResultBlock) for block in request.messages[-1].blocks)
    if calling is None or not answers or not any(isinstance(block, ToolCallBlock) for block in calling.blocks):
        return False
    return not any(isinstance(block, ReasoningBlock) and states_of(block) for block in calling.blocks)


def open_loop(request: Request) -> frozenset[int]:
    """Return the places of the messages whose calls belong to the tool loop that goes on, where thinking is asked for."""
    if request.reasoning is None or request.reasoning.mode == "off":
        return frozenset()
    places: set[int] = set()
    for place in range(len(request.messages) - 1, -1, -1):
        message = request.messages[place]
        if message.role == "assistant":
            places |= {place} if any(isinstance(block, ToolCallBlock) for block in message.blocks) else set()
        elif not any(isinstance(block, ToolResultBlock) for block in message.blocks):
            break
    return frozenset(places)


def thoughtless(request: Request, switch: Switch) -> Request:
    """Return the request with thinking turned off, and say so."""
    policy = request.reasoning
    asked = policy and (policy.effort or policy.budget or policy.mode)
    switch.tell(str(asked), "off", "the thinking that led to the tool calls is not at hand")
    return msgspec.structs.replace(request, reasoning=ReasoningPolicy(mode="off"))

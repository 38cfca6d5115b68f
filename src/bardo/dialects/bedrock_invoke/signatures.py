"""Claude's signatures on Bedrock: written like Anthropic's, and readable by Bedrock only.

The Anthropic dialect takes them for its own, so they are named anew on their way in and out. Redacted thinking stands in Converse as
base64 of what Anthropic's payload holds; it is kept as Converse has it, so that a conversation can move between the two.
"""

from __future__ import annotations

import base64
import binascii

import msgspec

from bardo.dialects.bedrock_converse.wire import FORMAT
from bardo.values.blocks import Block, Opaque, ReasoningBlock, ReplyBlock
from bardo.values.degradation import Degradation
from bardo.values.events import Event, OpaqueState, ThinkStart
from bardo.values.request import Message
from bardo.values.response import Response

ANTHROPIC = "anthropic-claude-v1"
DIRECT = f"{ANTHROPIC}-direct"
"""What Anthropic itself signed, on its way to a client of InvokeModel and back: there the plain format is Bedrock's."""


def bedrocks(state: Opaque) -> Opaque:
    """Return state of an Anthropic payload under Bedrock's name, or under Anthropic's where Anthropic itself signed it."""
    if state.format == DIRECT:
        return Opaque(state.kind, state.data, ANTHROPIC)
    if state.format != ANTHROPIC:
        return state
    data = base64.b64encode(state.data.encode()).decode() if state.kind == "redacted" else state.data
    return Opaque(state.kind, data, FORMAT)


def anthropics(state: Opaque) -> Opaque:
    """Return Bedrock's state as an Anthropic payload has it."""
    if state.format != FORMAT:
        return state
    return Opaque(state.kind, _decoded(state.data) if state.kind == "redacted" else state.data, ANTHROPIC)


def clients(state: Opaque) -> Opaque:
    """Return state as an Anthropic payload has it for a client of InvokeModel."""
    return Opaque(state.kind, state.data, DIRECT) if state.format == ANTHROPIC else anthropics(state)


def event_of_bedrock(event: Event) -> Event:
    """Return a decoded event with its state under Bedrock's name."""
    if type(event) is OpaqueState:
        return OpaqueState(event.block, bedrocks(event.opaque), event.choice)
    if type(event) is ThinkStart and event.format == ANTHROPIC:
        return ThinkStart(event.block, FORMAT, event.choice)
    return event


def event_of_anthropic(event: Event) -> Event:
    """Return an event with its state as an Anthropic payload has it for a client."""
    if type(event) is OpaqueState:
        return OpaqueState(event.block, clients(event.opaque), event.choice)
    return event


def response_of_anthropic(response: Response) -> Response:
    """Return a reply with its state as an Anthropic payload has it for a client."""
    return msgspec.structs.replace(response, blocks=tuple(_reply_block(block) for block in response.blocks))


def message_of_bedrock(message: Message) -> Message:
    """Return a client's message with each state under the name of who signed it."""
    blocks: tuple[Block, ...] = tuple(
        _block_of_bedrock(block) if isinstance(block, ReasoningBlock) else block for block in message.blocks
    )
    return msgspec.structs.replace(message, blocks=blocks)


def _block_of_bedrock(block: ReasoningBlock) -> ReasoningBlock:
    if not any(state.format in (ANTHROPIC, DIRECT) for state in block.opaque):
        return block
    states = tuple(bedrocks(state) for state in block.opaque)
    return msgspec.structs.replace(block, format=states[0].format, opaque=states)


def messages_for_claude(messages: tuple[Message, ...]) -> tuple[tuple[Message, ...], list[Degradation]]:
    """Return a history for Claude on Bedrock, without the thinking that Anthropic itself signed."""
    degradations: list[Degradation] = []
    return tuple(
        msgspec.structs.replace(message, blocks=tuple(_for_claude(message.blocks, degradations)))
        for message in messages
    ), degradations


def _for_claude(blocks: tuple[Block, ...], degradations: list[Degradation]) -> list[Block]:
    kept: list[Block] = []
    for block in blocks:
        if not isinstance(block, ReasoningBlock) or not block.opaque:
            kept.append(block)
            continue
        states = tuple(anthropics(state) for state in block.opaque if state.format != ANTHROPIC)
        if len(states) < len(block.opaque):
            why = "only thinking that Bedrock signed may be sent back to it"
            degradations.append(Degradation("reasoning", asked=ANTHROPIC, why=why))
        if states:
            kept.append(msgspec.structs.replace(block, opaque=states))
    return kept


def _reply_block(block: ReplyBlock) -> ReplyBlock:
    if not isinstance(block, ReasoningBlock):
        return block
    return msgspec.structs.replace(block, opaque=tuple(clients(state) for state in block.opaque))


def _decoded(data: str) -> str:
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return data

"""Earlier reasoning as one target takes it back: what a client dropped is restored, what the target cannot read is left out.

Everything that differs from what the client sent in this regard is reported, except what is restored: that is what the model said.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bardo.catalog.replay import Binding, Reader, ReplayRules, builtin_replay
from bardo.reasoning.replay.finding import assigned
from bardo.reasoning.replay.guard import OnChange, guard
from bardo.reasoning.replay.kept import Kept
from bardo.reasoning.replay.keys import state_key, states_of
from bardo.reasoning.replay.merge import merged
from bardo.reasoning.replay.needed import lacks_thinking, thoughtless
from bardo.reasoning.replay.switch import Switch
from bardo.values.blocks import Block, Opaque, Origin, ReasoningBlock, ToolCallBlock, ToolResultBlock
from bardo.values.degradation import Degradation
from bardo.values.request import Message, Request

_PLAIN = "reasoning_content"


class Recalled(msgspec.Struct, frozen=True, kw_only=True):
    """What was found for one request, by its keys, and how a changed prefix is dealt with."""

    found: Mapping[str, Kept] = {}
    on_change: OnChange = "restore"
    rules: ReplayRules | None = None


NOTHING = Recalled()


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """A request for one target. `altered` where its history is not the client's; `ask` is what the provider must be asked by."""

    request: Request
    degraded: tuple[Degradation, ...] = ()
    altered: bool = False
    ask: Binding | None = None


def restore(request: Request, reader: Reader, recalled: Recalled = NOTHING) -> Restored:
    """Return the request with the reasoning that `reader` takes back, exactly where it stood."""
    if not any(message.role == "assistant" for message in request.messages):
        return Restored(request=request)
    work = _Work(request, reader, recalled)
    messages = work.messages()
    altered = any(now is not before for now, before in zip(messages, request.messages, strict=True))
    changed = msgspec.structs.replace(request, messages=messages) if altered else request
    if work.rules.needs_thinking(reader) and lacks_thinking(changed):
        changed, altered = thoughtless(changed, work.switch), True
    binding = work.rules.binding(reader)
    if binding is None:
        return Restored(request=changed, degraded=tuple(work.switch.told), altered=altered)
    guarded = guard(changed, work.made, binding, recalled.on_change)
    return Restored(
        request=guarded.request,
        degraded=(*work.switch.told, *guarded.degraded),
        altered=altered or guarded.request is not changed or guarded.asks,
        ask=binding if guarded.asks else None,
    )


class _Work:
    """The history of one request, message by message. `made`: what is known of how each was made, by its place."""

    def __init__(self, request: Request, reader: Reader, recalled: Recalled) -> None:
        self.rules = recalled.rules or builtin_replay()
        self.switch = Switch(reader, self.rules, self._origin_of)
        self.made: dict[int, Kept] = {}
        self._request = request
        self._reader = reader
        self._found = recalled.found
        self._kept = assigned(request, recalled.found) if recalled.found else {}
        self._fill = self.rules.text(reader)
        self._tools = _tool_turns(request) if self._fill.required else frozenset()

    def messages(self) -> tuple[Message, ...]:
        """Return all messages, those that stay as they are unchanged."""
        return tuple(self._message(place, message) for place, message in enumerate(self._request.messages))

    def _message(self, place: int, message: Message) -> Message:
        if message.role != "assistant":
            return message
        kept = self._kept.get(place)
        if kept is None and place not in self._tools and not any(map(states_of, message.blocks)):
            return message
        blocks = self._restored(message.blocks, kept) if kept is not None else None
        if kept is not None and not self.switch.refusal(kept.states, kept.origin):
            self.made[place] = kept
        blocks = self.switch.sorted_out(message.blocks) if blocks is None else blocks
        blocks = self._required(blocks, kept) if place in self._tools else blocks
        same = len(blocks) == len(message.blocks) and all(map(_is, blocks, message.blocks))
        return message if same else msgspec.structs.replace(message, blocks=blocks)

    def _restored(self, blocks: tuple[Block, ...], kept: Kept) -> tuple[Block, ...] | None:
        """Return the message with what was kept; None where it lacks nothing, or where that may not be sent."""
        if self._holds(blocks, kept):
            return None
        if kept.states:
            why = self.switch.refusal(kept.states, kept.origin)
            if not why:
                return merged(blocks, kept)
            self.switch.tell(_named(kept), "text" if self._gives_text(blocks, kept) else None, why)
            return None
        at_home = kept.origin.platform == self._reader.platform
        return merged(blocks, kept) if at_home and self._reader.row.quirks.replay != "none" else None

    def _gives_text(self, blocks: tuple[Block, ...], kept: Kept) -> bool:
        return bool(self._fill.required and kept.readable and any(isinstance(one, ToolCallBlock) for one in blocks))

    def _holds(self, blocks: tuple[Block, ...], kept: Kept) -> bool:
        held = {state.data for block in blocks for state in states_of(block)}
        if kept.states:
            return all(state.data in held for state in kept.states)
        return any(isinstance(block, ReasoningBlock) and block.readable for block in blocks)

    def _required(self, blocks: tuple[Block, ...], kept: Kept | None) -> tuple[Block, ...]:
        """Return a turn with calls and some thinking before them, where the provider refuses it without."""
        if any(isinstance(block, ReasoningBlock) and block.readable for block in blocks):
            return blocks
        text = kept.readable if kept is not None and self._fill.foreign == "text" else ""
        if not text:
            why = "this provider refuses a tool call without its reasoning, which is not at hand"
            self.switch.tell("the reasoning behind a tool call", self._fill.fill, why)
        elif kept is not None and not kept.states and kept.origin.platform != self._reader.platform:
            self.switch.tell(_named(kept), "text", "another provider's reasoning, which this one takes as text")
        return (ReasoningBlock(text=text or self._fill.fill, format=_PLAIN), *blocks)

    def _origin_of(self, state: Opaque) -> Origin | None:
        if state.origin is not None:
            return state.origin
        kept = self._found.get(state_key(state)) if self._found else None
        return kept.origin if kept is not None else None


def _is(one: Block, other: Block) -> bool:
    return one is other


def _named(kept: Kept) -> str:
    formats = [state.format for state in kept.states] or ["text"]
    return f"{formats[0]} of {kept.origin.provider}/{kept.origin.model}"


def _tool_turns(request: Request) -> frozenset[int]:
    """Return the places of the messages that call tools, and of those that answer once the tools have."""
    return frozenset(
        place
        for place, message in enumerate(request.messages)
        if message.role == "assistant" and (_calls(message) or (place and _results(request.messages[place - 1])))
    )


def _calls(message: Message) -> bool:
    return any(isinstance(block, ToolCallBlock) for block in message.blocks)


def _results(message: Message) -> bool:
    return any(isinstance(block, ToolResultBlock) for block in message.blocks)

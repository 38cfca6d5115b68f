"""Decides which reasoning of a conversation may go to another provider or model: what may not is left out, and reported.

No state is ever rewritten: it goes where it can be read, or nowhere. Its readable text goes along where the target takes such text. Some
models refuse to think after tool calls whose thinking is missing; then thinking is turned off.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec

from bardo.catalog.replay import Reader, ReplayRules
from bardo.reasoning.replay.keys import call_digest, states_of
from bardo.values.blocks import (
    Block,
    Carried,
    Opaque,
    Origin,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from bardo.values.degradation import Degradation
from bardo.values.request import ReasoningPolicy, Request

_REFUSED = "this provider refused it"
_ITEMS = (TextBlock, ToolCallBlock)
OriginOf = Callable[[Opaque], Origin | None]


class Switch:
    """Sorts out the state of one request for one reader. `degradations` are what had to differ.

    `client` is the dialect of the request. State of unknown origin that a client of the reader's own dialect sends natively is what the
    reader gave it: the dialect does not say whose it is, and what bardo gave of others is sealed or known. `refused` is the data of states
    that the reader refused in this call, None for all.
    """

    def __init__(
        self,
        reader: Reader,
        rules: ReplayRules,
        origin_of: OriginOf,
        client: str = "",
        refused: Collection[str] | None = (),
    ) -> None:
        self.reader = reader
        self.rules = rules
        self.degradations: list[Degradation] = []
        self._reported: set[tuple[str, str | None, str]] = set()
        self._origin_of = origin_of
        self._refused = refused
        self._refusals: dict[tuple[str, ...], str] = {}
        self.own_rules = rules.of(reader)
        self.signed = self.own_rules.signed
        self._speaks_same = client == reader.row.dialect

    def refusal(self, states: Sequence[Opaque], origin: Origin | None = None) -> str:
        """Return why any of these states may not be sent, empty where all may."""
        if states and (
            self._refused is None or (self._refused and any(state.data in self._refused for state in states))
        ):
            return _REFUSED
        for state in states:
            made = origin or self._origin_of(state)
            # Most state of a conversation has one origin, but for its prefix, which no row looks at.
            key = (state.format, made.provider, made.platform, made.model, made.account) if made else (state.format,)
            why = self._refusals.get(key)
            if why is None:
                own = made is None and self._speaks_same and self.rules.native(self.reader.row.dialect, state.format)
                why = self._refusals[key] = "" if own else self.rules.refusal(state.format, made, self.reader)
            if why:
                return why
        return ""

    def sorted_out(self, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        """Return the blocks of one message without the state, and the unsigned thinking, that may not be sent: themselves where all may."""
        changed: dict[int, Block | None] = {}
        without_thinking = False
        for place, block in enumerate(blocks):
            if type(block) is ReasoningBlock:
                if not block.opaque:
                    if self.signed:
                        why = "this model refuses thinking without its own signature"
                        self.tell("thinking without a signature", None, why)
                        changed[place], without_thinking = None, True
                elif why := self.refusal(block.opaque):
                    text = block.readable if self.takes_text() else ""
                    self.tell(self.name(block), "text" if text else None, why)
                    changed[place] = ReasoningBlock(text=text, format="reasoning_content") if text else None
                    without_thinking = True
            elif (
                (type(block) is TextBlock or type(block) is ToolCallBlock)
                and block.opaque
                and (why := self.refusal(block.opaque))
            ):
                self.tell(self.name(block), None, why)
                changed[place] = msgspec.structs.replace(block, opaque=())
        if not changed:
            return blocks
        remaining = [now for place, block in enumerate(blocks) if (now := changed.get(place, block)) is not None]
        return tuple([_without_id(block, self.rules) for block in remaining] if without_thinking else remaining)

    def tell(self, what: str, sent: str | None, why: str) -> None:
        """Report a difference, once."""
        if (what, sent, why) not in self._reported:
            self._reported.add((what, sent, why))
            self.degradations.append(Degradation("reasoning", asked=what, sent=sent, why=why))

    def name(self, block: Block) -> str:
        """Return whose state it is, for a report."""
        for state in states_of(block):
            origin = self._origin_of(state)
            return f"{state.format} of {origin.provider}/{origin.model}" if origin else state.format
        return block.format if isinstance(block, ReasoningBlock) else ""

    def takes_text(self) -> bool:
        """Whether the reader is given the thinking of others as text."""
        return self.own_rules.text.foreign == "text" and self.reader.row.quirks.replay != "none"


def _without_id(block: Block, rules: ReplayRules) -> Block:
    """Leave out the id of an item whose reasoning is left out: OpenAI refuses the one without the other."""
    if not isinstance(block, _ITEMS) or block.carried is None:
        return block
    dialect = block.carried.dialect
    if not rules.binds_ids(dialect):
        return block
    fields = {name: value for name, value in block.carried.fields.items() if name != "id"}
    if isinstance(item := fields.get("item"), dict):
        fields["item"] = {name: value for name, value in item.items() if name != "id"}
    return msgspec.structs.replace(block, carried=Carried(dialect, fields) if fields else None)


def lacks_thinking(request: Request) -> bool:
    """Whether thinking is asked for, and no turn of the tool loop that goes on has any that can be sent.

    A loop is one turn to Claude: it thinks at its beginning, and may call further tools without. Where some of its thinking is at hand, a
    host refuses that thinking if it is turned off (BerriAI/litellm#18926, 2026-01). What lacks thinking before the loop is refused nowhere.
    """
    return (
        request.reasoning is not None and request.reasoning.mode != "off" and set(_thinking_of_loop(request)) == {False}
    )


def may_lack_thinking(request: Request) -> bool:
    """Whether thinking is not turned off, and some turn of the tool loop that goes on has none that can be sent."""
    off = request.reasoning is not None and request.reasoning.mode == "off"
    return not off and not all(_thinking_of_loop(request))


def _thinking_of_loop(request: Request) -> Iterator[bool]:
    """Yield, of each turn that called tools in the loop that goes on, whether it has thinking that can be sent."""
    if request.messages and ToolResultBlock in request.messages[-1].kinds:
        for place in _loop_places(request):
            blocks = request.messages[place].blocks
            yield any(isinstance(block, ReasoningBlock) and states_of(block) for block in blocks)


def open_loop(request: Request) -> frozenset[int]:
    """Return the places of the messages whose calls belong to the tool loop that goes on, where thinking is asked for."""
    if request.reasoning is None or request.reasoning.mode == "off":
        return frozenset()
    return frozenset(_loop_places(request))


def loop_calls(request: Request) -> frozenset[str]:
    """Return names of the calls of the tool loop that goes on, by which it is known in the next turns."""
    blocks = (block for place in _loop_places(request) for block in request.messages[place].blocks)
    return frozenset(f"{block.id}\0{call_digest(block)}" for block in blocks if isinstance(block, ToolCallBlock))


def _loop_places(request: Request) -> Iterator[int]:
    for place in range(len(request.messages) - 1, -1, -1):
        message = request.messages[place]
        if message.role == "assistant":
            if ToolCallBlock in map(type, message.blocks):
                yield place
        elif ToolResultBlock not in map(type, message.blocks):
            break


def thoughtless(request: Request, switch: Switch) -> Request:
    """Return the request with thinking turned off, and say so."""
    policy = request.reasoning
    asked = policy and (policy.effort or policy.budget or policy.mode)
    switch.tell(str(asked), "off", "the thinking that led to the tool calls is not at hand")
    return msgspec.structs.replace(request, reasoning=ReasoningPolicy(mode="off"))

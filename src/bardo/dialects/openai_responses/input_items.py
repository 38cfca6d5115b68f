"""The items of a request's `input`, read as messages.

Items of one assistant turn (reasoning, messages, calls, what server tools did) become the blocks of one message, results of consecutive
calls those of one user message. What belongs to a whole item is carried, so that the same items can be written again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from bardo.dialects.carriers import Carrier, settled
from bardo.dialects.jsonfield import optional, required, take
from bardo.dialects.known_beginnings import KnownBeginnings
from bardo.dialects.openai_responses import wire
from bardo.dialects.openai_responses.function_names import INPUT, SEARCH, TOOL_SEARCH_OUTPUT
from bardo.dialects.openai_responses.input_parts import blocks_of
from bardo.dialects.openai_responses.state import FORMAT, NAME, SealContent, is_made, opened
from bardo.dialects.signed_blocks import AFTER, NEXT
from bardo.dialects.structs import Wire, carried_fields, read
from bardo.dialects.wire import encode_json
from bardo.values.blocks import (
    Block,
    Carried,
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.errors import InvalidRequest
from bardo.values.request import Message, Role

_ROLES: dict[str, Role] = {"user": "user", "system": "system", "developer": "system", "assistant": "assistant"}


def decode_input(items: list[Any], at: str) -> list[Message]:
    """Return the messages of a list of input items. Raises InvalidRequest, naming the item."""

    def take_item(reader: InputReader, item: Any, place: int) -> None:
        reader.take(take(item, dict, f"{at}[{place}]"), f"{at}[{place}].")

    return _BEGINNINGS.read(items, InputReader, take_item).finish()


class InputReader:
    """Gathers the blocks of a turn until the next one begins."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._turn: list[Block | Carrier] = []
        self._results: list[Block] = []
        self._names: dict[str, str] = {}

    def take(self, item: dict[str, Any], at: str) -> None:
        """Take one item; one with a role and no type is a message."""
        kind = optional(item, "type", str, at) or _kind_untold(item, at)
        struct = wire.ITEMS.get(kind)
        if struct is not None:
            found = read(item if item.get("type") else {**item, "type": kind}, struct, at[:-1])
            self.READERS[struct](self, found, at)
        elif kind in ("tool_search_call", TOOL_SEARCH_OUTPUT):
            self._search(item, at)
        else:
            self._say(UnknownBlock(NAME, item))

    def copy(self) -> InputReader:
        """Return a reader that has read the same, and goes on by itself."""
        copied = InputReader()
        copied._messages, copied._turn = [*self._messages], [*self._turn]
        copied._results, copied._names = [*self._results], {**self._names}
        return copied

    def finish(self) -> list[Message]:
        """Return the messages."""
        self._end_turn()
        self._end_results()
        return self._messages

    def _say(self, *blocks: Block | Carrier) -> None:
        self._end_results()
        self._turn.extend(blocks)

    def _end_turn(self) -> None:
        if self._turn:
            self._messages.append(Message("assistant", settled(self._turn)))
            self._turn = []

    def _end_results(self) -> None:
        if self._results:
            self._messages.append(Message("user", tuple(self._results)))
            self._results = []

    def _message(self, item: wire.Message, at: str) -> None:
        if item.role not in _ROLES:
            raise InvalidRequest(f"{at}role must be one of {', '.join(_ROLES)}", param=f"{at}role")
        blocks = blocks_of(item.content, answer=item.role == "assistant")
        additional = _additional(item)
        if item.role == "assistant":
            sealed = opened(str(additional.get("encrypted_content", "")))
            if sealed is not None:
                del additional["encrypted_content"]
                blocks = _with_sealed(blocks, sealed)
            self._say(*_with_message_id(blocks, additional))
            return
        self._end_turn()
        self._end_results()
        if item.role != "user":
            additional["role"] = item.role
        self._messages.append(Message(_ROLES[item.role], blocks, _carried(additional)))

    def _reasoning(self, item: wire.Reasoning, at: str) -> None:
        encrypted = item.encrypted_content
        sealed = opened(encrypted) if encrypted else None
        if sealed is not None and sealed.target:
            self._return_state(sealed)
            return
        text, summary = "".join(_texts(item.content)), _texts(item.summary)
        if sealed is not None and sealed.text and not text:
            text = sealed.text
            # A summary that says the same is how bardo showed the text.
            summary = [] if "".join(summary) == text else summary
        own = item.format or FORMAT
        states = sealed.states if sealed is not None else _states(item.id, encrypted, own)
        self._say(
            ReasoningBlock(
                text=text,
                summary=tuple(summary),
                format=_format_of(sealed) or own,
                opaque=states,
                carried=_carried(_additional(item)),
            )
        )

    def _return_state(self, sealed: SealContent) -> None:
        """Return sealed state back to the block it belongs to; where that is gone, keep it as reasoning."""
        for index in range(len(self._turn) - 1, -1, -1):
            block = self._turn[index]
            if _is_target(block, sealed.target) and isinstance(block, TextBlock | ToolCallBlock | ReasoningBlock):
                self._turn[index] = _with_states(block, sealed.states)
                return
        if self._returned_to_call(sealed):
            return
        form = sealed.states[0].format if sealed.states else FORMAT
        thinking = ReasoningBlock(format=form, opaque=sealed.states)
        # A call may come behind its state: clients put all reasoning first.
        kind, _, owner = sealed.target.partition(":")
        if sealed.target in (NEXT, AFTER):
            self._say(Carrier(sealed.states, sealed.target, thinking))
        else:
            self._say(Carrier(sealed.states, owner, thinking) if kind == "call" else thinking)

    def _returned_to_call(self, sealed: SealContent) -> bool:
        """Return state back to a call whose result came before it: some clients write each result directly behind its call."""
        if self._turn or not self._messages or self._messages[-1].role != "assistant":
            return False
        last = self._messages[-1]
        for index, block in enumerate(last.blocks):
            if isinstance(block, ToolCallBlock) and _is_target(block, sealed.target):
                given = _with_states(block, sealed.states)
                blocks = (*last.blocks[:index], given, *last.blocks[index + 1 :])
                self._messages[-1] = msgspec.structs.replace(last, blocks=blocks)
                return True
        return False

    def _call(self, item: wire.FunctionCall, at: str) -> None:
        self._names[item.call_id] = item.name
        carried = _carried(_additional(item))
        self._say(ToolCallBlock(id=item.call_id, name=item.name, arguments=item.arguments or "", carried=carried))

    def _custom_call(self, item: wire.CustomToolCall, at: str) -> None:
        self._names[item.call_id] = item.name
        arguments = encode_json({INPUT: item.input}).decode()
        carried = _carried({"type": "custom_tool_call", **_additional(item)})
        self._say(ToolCallBlock(id=item.call_id, name=item.name, arguments=arguments, carried=carried))

    def _search(self, item: dict[str, Any], at: str) -> None:
        """Take a search for tools and what it found, where the client searched; a provider's own is passed on."""
        if item.get("execution") != "client" or not isinstance(item.get("call_id"), str):
            self._say(UnknownBlock(NAME, item))
            return
        call_id, kind = required(item, "call_id", str, at), item["type"]
        self._names[call_id] = SEARCH
        rest = {name: value for name, value in item.items() if name not in _SEARCH and value is not None}
        carried = Carried(NAME, {"type": kind, **_without_made_id(rest)})
        if kind == TOOL_SEARCH_OUTPUT:
            self._end_turn()
            self._results.append(ToolResultBlock(call_id=call_id, name=SEARCH, carried=carried))
        else:
            arguments = encode_json(item.get("arguments") or {}).decode()
            self._say(ToolCallBlock(id=call_id, name=SEARCH, arguments=arguments, carried=carried))

    def _result(self, item: wire.FunctionCallOutput, at: str) -> None:
        additional = _additional(item)
        if isinstance(item, wire.CustomToolCallOutput):
            additional = {"type": "custom_tool_call_output", **additional}
        self._end_turn()
        self._results.append(
            ToolResultBlock(
                call_id=item.call_id,
                name=self._names.get(item.call_id, ""),
                content=blocks_of(item.output, answer=False),  # type: ignore[arg-type]
                carried=_carried(additional),
            )
        )

    READERS: ClassVar[dict[type[Wire], Callable[[InputReader, Any, str], None]]] = {
        wire.Message: _message,
        wire.Reasoning: _reasoning,
        wire.FunctionCall: _call,
        wire.CustomToolCall: _custom_call,
        wire.FunctionCallOutput: _result,
        wire.CustomToolCallOutput: _result,
    }


_BEGINNINGS: KnownBeginnings[InputReader] = KnownBeginnings()
_SEARCH = frozenset({"type", "call_id", "arguments"})


def _format_of(sealed: SealContent | None) -> str:
    """Return whose sealed thinking it is; text alone is nobody's."""
    if sealed is None:
        return ""
    return sealed.states[0].format if sealed.states else "reasoning_content" if sealed.text else ""


def _kind_untold(item: dict[str, Any], at: str) -> str:
    if "role" in item:
        return "message"
    return "item_reference" if "id" in item else required(item, "type", str, at)


def _additional(item: Wire) -> dict[str, Any]:
    """Return the fields bardo has no word for."""
    return _without_made_id(carried_fields(item) or {})


def _without_made_id(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields without an id that bardo made, which means nothing to a provider."""
    if isinstance(fields.get("id"), str) and is_made(fields["id"]):
        del fields["id"]
    return fields


def _carried(fields: dict[str, Any]) -> Carried | None:
    return Carried(NAME, fields) if fields else None


def _with_sealed(blocks: tuple[Block, ...], sealed: SealContent) -> tuple[Block, ...]:
    """Return the blocks of a message with the state that it held: that of its last text, or of an empty one behind it."""
    for index in range(len(blocks) - 1, -1, -1) if sealed.target != AFTER else ():
        if isinstance(text := blocks[index], TextBlock):
            return (*blocks[:index], _with_states(text, sealed.states), *blocks[index + 1 :])
    return (*blocks, TextBlock("", sealed.states))


def _with_message_id(blocks: tuple[Block, ...], item: dict[str, Any]) -> list[Block]:
    """Mark the blocks with the message they stand in: all of them by its id, or the first as where it begins."""
    marked: list[Block] = []
    for block in blocks:
        if isinstance(block, TextBlock | RefusalBlock) and (not marked or "id" in item):
            fields = {**(block.carried.fields if block.carried else {}), "item": item}
            block = msgspec.structs.replace(block, carried=Carried(NAME, fields))
        elif isinstance(block, UnknownBlock):
            block = UnknownBlock(NAME, {"type": "message", "role": "assistant", **item, "content": [block.value]})
        marked.append(block)
    return marked


def _states(item_id: str | None, encrypted: str | None, own: str) -> tuple[Opaque, ...]:
    states = [Opaque("id", item_id, FORMAT)] if item_id and not is_made(item_id) else []
    return (*states, Opaque("encrypted", encrypted, own)) if encrypted else tuple(states)


def _texts(pieces: list[wire.Thought | str] | None) -> list[str]:
    return [piece if isinstance(piece, str) else piece.text for piece in pieces or ()]


def _is_target(block: Block | Carrier, target: str) -> bool:
    if isinstance(block, ToolCallBlock):
        return target == f"call:{block.id}"
    return (isinstance(block, TextBlock) and target == "text") or (
        isinstance(block, ReasoningBlock) and target == "reasoning"
    )


def _with_states(block: TextBlock | ToolCallBlock | ReasoningBlock, states: tuple[Opaque, ...]) -> Block:
    return msgspec.structs.replace(block, opaque=(*block.opaque, *states))

"""Which cache markers are kept where a provider takes fewer than a client of another dialect has set.

A provider looks for what is cached at each marker, so that the last ones find most of a conversation; one at the end of tools and system
prompt finds what all conversations share.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from bardo.values.blocks import Block, Carried, ToolResultBlock
from bardo.values.request import Message, Request, Tool

T = TypeVar("T")


def with_last_markers(request: Request, name: str, most: int) -> Request:
    """Return a request with at most `most` markers of this name: the last of tools and system prompt, and the last of the turns."""
    found = [*_markers(request, name)]
    kept = {place for place, _ in found[-most:]} if most > 0 else set()
    fixed = [place for place, is_fixed in found if is_fixed]
    if fixed and most > 1 and fixed[-1] not in kept:
        kept = {place for place, _ in found[len(found) - most + 1 :]} | {fixed[-1]}
    remover = _Remover(name, kept)
    tools = tuple([remover.tool(tool) for tool in request.tools])
    return msgspec.structs.replace(
        request, tools=tools, messages=tuple([remover.message(one) for one in request.messages])
    )


def with_marked_end(request: Request, name: str) -> Request:
    """Return a request whose own field of this name marks its last message, for a target that has the marker but no such field.

    Anthropic's `cache_control` of a whole request means the end of the prompt.
    """
    marker = request.extra.get(name)
    if marker is None or not request.messages:
        return request
    last = request.messages[-1]
    fields = {} if last.carried is None else last.carried.fields
    extra = {field: value for field, value in request.extra.items() if field != name}
    marked = msgspec.structs.replace(last, carried=Carried(request.dialect, {name: marker, **fields}))
    return msgspec.structs.replace(request, messages=(*request.messages[:-1], marked), extra=extra)


def _markers(request: Request, name: str) -> Iterator[tuple[int, bool]]:
    """Yield the places of markers in the order of the prompt, and whether one ends what all conversations share."""
    fixed = True
    for place, (carried, is_turn) in enumerate(_all_carried(request)):
        fixed = fixed and not is_turn
        if _is_marked(carried, name):
            yield place, fixed


def _all_carried(request: Request) -> Iterator[tuple[Carried | None, bool]]:
    """Yield the fields of all that may be marked, and whether they are of a turn, in the order in which `_Remover` sees them."""
    for tool in request.tools:
        yield tool.carried, False
    for message in request.messages:
        is_turn = message.role != "system"
        for block in message.blocks:
            for part in block.content if isinstance(block, ToolResultBlock) else ():
                yield _carried_of(part), is_turn
            yield _carried_of(block), is_turn
        yield message.carried, is_turn


class _Remover:
    """Takes the markers away whose places are not kept. To be given each thing in the order of the prompt."""

    def __init__(self, name: str, kept: set[int]) -> None:
        self._name, self._kept, self._place = name, kept, 0

    def tool(self, tool: Tool) -> Tool:
        """Return the tool, with its marker where that is kept."""
        return self._without(tool, tool.carried)

    def message(self, message: Message) -> Message:
        """Return the message, with those of its markers that are kept."""
        blocks = tuple([self._block(block) for block in message.blocks])
        same = all(one is other for one, other in zip(blocks, message.blocks, strict=True))
        return self._without(message if same else msgspec.structs.replace(message, blocks=blocks), message.carried)

    def _block(self, block: Any) -> Any:
        if isinstance(block, ToolResultBlock):
            content = tuple([self._without(part, _carried_of(part)) for part in block.content])
            if not all(one is other for one, other in zip(content, block.content, strict=True)):
                block = msgspec.structs.replace(block, content=content)
        return self._without(block, _carried_of(block))

    def _without(self, held: T, carried: Carried | None) -> T:
        place, self._place = self._place, self._place + 1
        if place in self._kept or carried is None or not _is_marked(carried, self._name):
            return held
        fields = {name: value for name, value in carried.fields.items() if name != self._name}
        if isinstance(inner := fields.get("function"), dict):
            fields["function"] = {name: value for name, value in inner.items() if name != self._name}
        kept: T = msgspec.structs.replace(held, carried=Carried(carried.dialect, fields) if fields else None)  # type: ignore[type-var]
        return kept


def _carried_of(block: Block) -> Carried | None:
    return getattr(block, "carried", None)


def _is_marked(carried: Carried | None, name: str) -> bool:
    if carried is None:
        return False
    inner = carried.fields.get("function")
    return carried.fields.get(name) is not None or (isinstance(inner, dict) and inner.get(name) is not None)

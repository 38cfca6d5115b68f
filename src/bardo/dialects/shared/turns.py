"""The turns of a request as one target takes them.

Turns of one role are joined where roles must alternate; fields that a server refuses are left out; parts that only their own dialect knows
become words; of cache markers the last are kept where a provider takes few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from bardo.dialects.shared.json_values import JsonObject
from bardo.dialects.shared.losses import Losses
from bardo.dialects.shared.media import sound_of
from bardo.values.blocks import Block, Carried, TextBlock, ToolResultBlock, UnknownBlock
from bardo.values.errors import Unsupported
from bardo.values.request import Message, Request, Tool


def with_turn(request: Request, losses: Losses) -> Request:
    """Return a request with a turn: where all it says is of the system, the last of that becomes the user's turn, which is reported.

    A request that has a turn, or that says nothing, is returned itself.
    """
    if any(message.role != "system" and says_something(message) for message in reversed(request.messages)):
        return request
    places = [place for place, message in enumerate(request.messages) if says_something(message)]
    if not places:
        return request
    losses.lose("messages.role", "system", f"{losses.declaration.title} needs a message of the user", sent="user")
    place = places[-1]
    last, others = request.messages[place], (*request.messages[:place], *request.messages[place + 1 :])
    return msgspec.structs.replace(
        request, messages=(*others, Message("user", last.blocks, _without_role(last.carried)))
    )


def says_something(message: Message) -> bool:
    """Whether a message has more than empty texts."""
    for block in message.blocks:  # noqa: SIM110 - asked of each message of each call, where a loop costs half of what `any` does.
        if type(block) is not TextBlock or (block.text and not block.text.isspace()):
            return True
    return False


def _without_role(carried: Carried | None) -> Carried | None:
    """Return what a message carries beside the role `developer` of its own dialect."""
    if carried is None:
        return None
    fields = {name: value for name, value in carried.fields.items() if name != "role"}
    return Carried(carried.dialect, fields) if fields else None


def answers_without_thinking(turns: Iterable[tuple[str, bool, bool]]) -> bool:
    """Return whether results of tools stand at the end, and no turn of the model in this loop of calls and results begins with thinking.

    `turns` are from the last one on: who speaks, whether it begins with thinking, whether it holds results of tools. Those of the model
    that follow each other are one. Claude refuses such a conversation together with a budget for thinking.
    """
    # A loop is one turn to Claude: it thinks at its beginning, and then may call further tools without. Where that thinking is at hand,
    # Claude refuses the thinking if it is turned off (BerriAI/litellm#18926, 2026-01).
    answers = called = begins_last = False
    for role, begins, has_results in turns:
        if role == "assistant":
            if not answers:
                return False
            called, begins_last = True, begins
            continue
        if begins_last:
            return False
        if called and not has_results:
            break
        answers = answers or has_results
    return called and not begins_last


_REFUSAL = "refusal"


def holds_fields(body: JsonObject, names: Sequence[str]) -> bool:
    """Whether an assistant's message of a body has one of these fields."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return False
    # For most messages no function is called to find that they have none.
    if {*map(type, messages)} == {dict} and all(map(frozenset(names).isdisjoint, messages)):
        return False
    return any(map(_finding(names), messages))


def without_fields(body: JsonObject, names: Sequence[str], losses: Losses) -> JsonObject:
    """Return a body whose assistant's messages lack these fields, which is told of those that said something.

    What a model refused becomes its answer.
    """
    if not holds_fields(body, names):
        return body
    holds = _finding(names)
    messages = [_without(message, names, losses) if holds(message) else message for message in body["messages"]]
    return {**body, "messages": messages}


def _finding(names: Sequence[str]) -> Callable[[object], bool]:
    taken_out = frozenset(names)

    def holds(message: object) -> bool:
        return isinstance(message, dict) and message.get("role") == "assistant" and not taken_out.isdisjoint(message)

    return holds


def _without(message: JsonObject, names: Sequence[str], losses: Losses) -> JsonObject:
    remaining = {name: value for name, value in message.items() if name not in names}
    for name in names:
        value = message.get(name)
        if value and not (name == _REFUSAL and isinstance(value, str)):
            losses.lose(f"messages.{name}", value, "the provider takes no such field of an earlier answer", key=name)
    refusal = message.get(_REFUSAL)
    if _REFUSAL in names and isinstance(refusal, str) and refusal:
        losses.lose(
            f"messages.{_REFUSAL}", refusal, "the provider takes it as an answer alone", sent="content", key=_REFUSAL
        )
        content = remaining.get("content")
        text = {"type": "text", "text": refusal}
        remaining["content"] = [*content, text] if isinstance(content, list) else f"{content or ''}{refusal}"
    return remaining


_TOOL = "tool_reference"
_LONGEST = 65_536
"""Letters of JSON that are given as words. A longer text is data that no model reads."""


def unknown_as_words(request: Request, losses: Losses, parts: frozenset[type[Block]]) -> Request:
    """Return a request of another dialect whose results and user's turns say in words what only that dialect can say otherwise.

    References to tools always are words, others where a result or a message holds nothing else. `parts` are as `facts_of` gives them.
    Raises Unsupported for data that cannot be said.
    """
    if UnknownBlock not in parts:
        return request
    messages = tuple([_with_words(message, losses) for message in request.messages])
    return msgspec.structs.replace(request, messages=messages)


def _with_words(message: Message, losses: Losses) -> Message:
    if message.role == "assistant" or UnknownBlock not in message.parts:
        return message
    blocks: list[Any] = [
        _result(block, losses) if isinstance(block, ToolResultBlock) else block for block in message.blocks
    ]
    if any(_is_foreign(block, losses) for block in blocks):
        blocks = _in_words(blocks, losses)
    same = all(new is old for new, old in zip(blocks, message.blocks, strict=True))
    return message if same else msgspec.structs.replace(message, blocks=tuple(blocks))


def _result(result: ToolResultBlock, losses: Losses) -> ToolResultBlock:
    if not any(_is_foreign(part, losses) for part in result.content):
        return result
    return msgspec.structs.replace(result, content=tuple(_in_words(result.content, losses)))


def _in_words(parts: Sequence[Block], losses: Losses) -> list[Any]:
    alone = not any(_says_something(part) for part in parts)
    content: list[Any] = []
    for part in parts:
        if not isinstance(part, UnknownBlock) or not _is_foreign(part, losses) or sound_of(part) is not None:
            content.append(part)
        elif _named_tool(part):
            losses.lose(f"content.{_TOOL}", _named_tool(part), "a block that only its own dialect knows", sent="text")
            content.append(TextBlock(f"The tool {_named_tool(part)} can be called now.\n"))
        elif alone:
            content.append(TextBlock(_as_json(part, losses)))
        else:
            content.append(part)
    return content


def _is_foreign(part: Block, losses: Losses) -> bool:
    return isinstance(part, UnknownBlock) and part.dialect != losses.dialect


def _says_something(part: Block) -> bool:
    return not isinstance(part, UnknownBlock) and not (isinstance(part, TextBlock) and not part.text.strip())


def _named_tool(part: UnknownBlock) -> str:
    value = part.value if isinstance(part.value, dict) else {}
    name = value.get("tool_name")
    return name if value.get("type") == _TOOL and isinstance(name, str) else ""


def _as_json(part: UnknownBlock, losses: Losses) -> str:
    written = msgspec.json.encode(part.value).decode(errors="replace")
    kind = part.value.get("type") if isinstance(part.value, dict) else None
    named = kind if isinstance(kind, str) else part.dialect
    if len(written) > _LONGEST:
        message = f"a message holds nothing but {named}, which this model cannot be told"
        raise Unsupported(
            message, hint="give it as text, or ask a model whose provider takes such parts", param="messages"
        )
    losses.lose(f"content.{named}", named, f"a block that only {part.dialect} knows", sent="text")
    return written


T = TypeVar("T")


def with_last_markers(request: Request, name: str, most: int) -> Request:
    """Return a request with at most `most` markers of this name: the last of tools and system prompt, and the last of the turns."""
    markers = [*_markers(request, name)]
    places = {place for place, _ in markers[-most:]} if most > 0 else set()
    fixed = [place for place, is_fixed in markers if is_fixed]
    if fixed and most > 1 and fixed[-1] not in places:
        places = {place for place, _ in markers[len(markers) - most + 1 :]} | {fixed[-1]}
    remover = _Remover(name, places)
    tools = tuple([remover.tool(tool) for tool in request.tools])
    return msgspec.structs.replace(
        request, tools=tools, messages=tuple([remover.message(message) for message in request.messages])
    )


def with_marked_end(request: Request, name: str) -> Request:
    """Return a request whose own field of this name marks its last block, for a target that has the marker but no such field.

    Anthropic's `cache_control` of a whole request means the end of the prompt.
    """
    marker = request.extra.get(name)
    if marker is None or not request.messages:
        return request
    *before, last = request.messages
    extra = {field: value for field, value in request.extra.items() if field != name}
    for place, block in reversed([*enumerate(last.blocks)]):
        if isinstance(block, TextBlock | ToolResultBlock):
            fields = {} if block.carried is None else block.carried.fields
            marked = msgspec.structs.replace(block, carried=Carried(request.dialect, {name: marker, **fields}))
            blocks = (*last.blocks[:place], marked, *last.blocks[place + 1 :])
            messages = (*before, msgspec.structs.replace(last, blocks=blocks))
            return msgspec.structs.replace(request, messages=messages, extra=extra)
    return request


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
        same = all(block is other for block, other in zip(blocks, message.blocks, strict=True))
        return self._without(message if same else msgspec.structs.replace(message, blocks=blocks), message.carried)

    def _block(self, block: Block) -> Block:
        if isinstance(block, ToolResultBlock):
            content = tuple([self._without(part, _carried_of(part)) for part in block.content])
            if not all(part is other for part, other in zip(content, block.content, strict=True)):
                block = msgspec.structs.replace(block, content=content)
        return self._without(block, _carried_of(block))

    def _without(self, held: T, carried: Carried | None) -> T:
        place, self._place = self._place, self._place + 1
        if place in self._kept or carried is None or not _is_marked(carried, self._name):
            return held
        fields = {name: value for name, value in carried.fields.items() if name != self._name}
        if isinstance(inner := fields.get("function"), dict):
            fields["function"] = {name: value for name, value in inner.items() if name != self._name}
        changed: T = msgspec.structs.replace(held, carried=Carried(carried.dialect, fields) if fields else None)  # type: ignore[type-var]
        return changed


def _carried_of(block: Block) -> Carried | None:
    return getattr(block, "carried", None)


def _is_marked(carried: Carried | None, name: str) -> bool:
    if carried is None:
        return False
    inner = carried.fields.get("function")
    return carried.fields.get(name) is not None or (isinstance(inner, dict) and inner.get(name) is not None)

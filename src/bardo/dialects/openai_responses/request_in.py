"""A client's request, read and checked.

Fields that bardo has a word for become values; the rest stays in `extra`, and goes to providers of this dialect as it came.

The items of a request's `input`, read as messages.

Items of one assistant turn (reasoning, messages, calls, what server tools did) become the blocks of one message, results of consecutive
calls those of one user message. What belongs to a whole item is carried, so that the same items can be written again.

The content of one input item: a string, or a list of parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from bardo.dialects.openai_responses import wire
from bardo.dialects.openai_responses.functions import INPUT, SEARCH, TOOL_SEARCH_OUTPUT
from bardo.dialects.openai_responses.wire import FORMAT, NAME, SealContent, is_made, opened
from bardo.dialects.shared.control_fields import OPENAI_SAMPLING, decode_sampling, read_thinking, without_thinking
from bardo.dialects.shared.json_values import decode_object, encode_json, optional, required, take
from bardo.dialects.shared.known_beginnings import KnownBeginnings
from bardo.dialects.shared.media import picture_or_document, read_file, split_data_url
from bardo.dialects.shared.options import read_options
from bardo.dialects.shared.repeated_items import read_once, without_own
from bardo.dialects.shared.repeated_tools import REPEATED_TOOLS
from bardo.dialects.shared.states import AFTER, NEXT, Carrier, settled
from bardo.dialects.shared.structs import Wire, as_it_came, carried_fields, read
from bardo.values.blocks import (
    Block,
    Carried,
    DocumentBlock,
    ImageBlock,
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.errors import InvalidRequest
from bardo.values.request import Message, OutputFormat, Request, Role, Tool, ToolChoice
from bardo.values.wire import Arrival

_EMPTY: tuple[Any, ...] = (None, [], {})


def blocks_of(content: str | list[wire.Part], *, answer: bool) -> tuple[Block, ...]:
    """Return the blocks of some content. `answer`: it is the model's own, so that it may hold refusals but no pictures."""
    if isinstance(content, str):
        return (TextBlock(content),)
    return tuple([_block(part, answer=answer) for part in content])


def _block(part: wire.Part, *, answer: bool) -> Block:
    if isinstance(part, wire.Text):
        return TextBlock(part.text, carried=_carried_part(part))
    if isinstance(part, wire.Refusal) and answer:
        return RefusalBlock(part.refusal, carried=_carried_part(part))
    if isinstance(part, wire.InputImage) and not answer and isinstance(part.image_url, str):
        return _image(part, part.image_url)
    if isinstance(part, wire.InputFile) and not answer and part.file_id is None:
        return _file(part)
    return UnknownBlock(NAME, as_it_came(part))


def _file(part: wire.InputFile) -> DocumentBlock | UnknownBlock:
    """Return a document: its data, or its address."""
    name, data, url = part.filename or "", part.file_data, part.file_url
    found = read_file(data, name) if data else DocumentBlock(url=url, name=name) if url else None
    if found is None or (data and url):
        return UnknownBlock(NAME, as_it_came(part))
    return msgspec.structs.replace(found, carried=_carried_part(part))


def _image(part: wire.InputImage, url: str) -> ImageBlock | DocumentBlock:
    """Return a picture; a data URL of another type is a document, which some clients send so."""
    carried, detail, inline = _carried_part(part), part.detail or "", split_data_url(url)
    if inline:
        return picture_or_document(*inline, detail=detail, carried=carried)
    return ImageBlock(url=url, detail=detail, carried=carried)


def _carried_part(part: Wire) -> Carried | None:
    fields = carried_fields(part)
    if fields is None:
        return None
    said = {name: value for name, value in fields.items() if value not in _EMPTY}
    return Carried(NAME, said) if said else None


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


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read a request. Raises InvalidRequest, naming the field."""
    fields = decode_object(body)
    options = read_options(fields)
    asked = read_thinking(fields, NAME)
    if asked.omit:
        options = msgspec.structs.replace(options, omit_reasoning=True)
    stream = optional(fields, "stream", bool) or False
    return Request(
        model=_model(fields, arrival),
        messages=_messages(fields),
        tools=REPEATED_TOOLS.read(optional(fields, "tools", list) or [], NAME, _tools),
        tool_choice=_tool_choice(fields),
        max_output_tokens=_output_limit(fields),
        sampling=decode_sampling(fields, OPENAI_SAMPLING, one_stop=True),
        reasoning=asked.policy,
        output_format=read_once(fields, "text", f"{NAME}.format", lambda: _output_format(fields)),
        stream=stream if arrival.stream is None else arrival.stream,
        dialect=NAME,
        extra=_extra(fields),
        body=without_own(fields),
        body_bytes=body,
        options=options,
    )


def _model(fields: dict[str, Any], arrival: Arrival) -> str:
    model = arrival.model or required(fields, "model", str)
    if not model:
        raise InvalidRequest("model is required", param="model")
    return model


def _messages(fields: dict[str, Any]) -> tuple[Message, ...]:
    instructions = optional(fields, "instructions", str)
    leading = read_once(fields, "instructions", f"{NAME}.system", lambda: _leading(instructions))
    value: Any = optional(fields, "input", (str, list))
    if value is None and not any(fields.get(name) is not None for name in _STORED):
        raise InvalidRequest("input is required", param="input", hint="give a string, or a list of input items")
    if isinstance(value, str):
        return (*leading, Message("user", (TextBlock(value),)))
    return (*leading, *decode_input(value or [], "input"))


def _leading(instructions: str | None) -> tuple[Message, ...]:
    return (Message("system", (TextBlock(instructions),)),) if instructions else ()


_STORED = ("prompt", "previous_response_id", "conversation")


def _tools(values: list[Any]) -> tuple[Tool, ...]:
    return tuple(_tool(take(value, dict, f"tools[{index}]"), f"tools[{index}].") for index, value in enumerate(values))


def _tool(value: dict[str, Any], at: str) -> Tool:
    kind = required(value, "type", str, at)
    if kind != "function":
        name = value.get("name")
        return Tool(name=name if isinstance(name, str) else kind, hosted=True, carried=Carried(NAME, value))
    additional = {name: one for name, one in value.items() if name not in _FUNCTION}
    return Tool(
        name=required(value, "name", str, at),
        description=optional(value, "description", str, at) or "",
        schema=optional(value, "parameters", dict, at),
        strict=optional(value, "strict", bool, at),
        carried=Carried(NAME, additional) if additional else None,
    )


_FUNCTION = frozenset({"type", "name", "description", "parameters", "strict"})


def _tool_choice(fields: dict[str, Any]) -> ToolChoice | None:
    value: Any = optional(fields, "tool_choice", (str, dict))
    parallel = optional(fields, "parallel_tool_calls", bool)
    if isinstance(value, str):
        if value not in ("auto", "none", "required"):
            raise InvalidRequest("tool_choice must be auto, none, required or an object", param="tool_choice")
        return ToolChoice(mode=value, parallel=parallel)  # type: ignore[arg-type]
    if value is not None and value.get("type") == "function" and "namespace" not in value:
        return ToolChoice(mode="named", name=required(value, "name", str, "tool_choice."), parallel=parallel)
    return None if parallel is None else ToolChoice(parallel=parallel)


def _output_limit(fields: dict[str, Any]) -> int | None:
    limit = optional(fields, "max_output_tokens", int)
    if limit is not None and limit < 1:
        raise InvalidRequest("max_output_tokens must be at least 1", param="max_output_tokens")
    return limit


def _output_format(fields: dict[str, Any]) -> OutputFormat | None:
    value = optional(optional(fields, "text", dict) or {}, "format", dict, "text.") or {}
    kind = optional(value, "type", str, "text.format.") or "text"
    if kind == "text":
        return None
    if kind == "json_object":
        return OutputFormat(mode="json_object")
    if kind != "json_schema":
        raise InvalidRequest("text.format.type must be text, json_object or json_schema", param="text.format.type")
    return OutputFormat(
        mode="json_schema",
        name=optional(value, "name", str, "text.format.") or "",
        schema=required(value, "schema", dict, "text.format."),
        strict=optional(value, "strict", bool, "text.format."),
        description=optional(value, "description", str, "text.format.") or "",
    )


def _extra(fields: dict[str, Any]) -> dict[str, Any]:
    extra = without_thinking({name: one for name, one in fields.items() if name not in READ and one is not None})
    text = {name: value for name, value in (fields.get("text") or {}).items() if name != "format" and value is not None}
    if text:
        extra["text"] = text
    choice = fields.get("tool_choice")
    if isinstance(choice, dict) and (choice.get("type") != "function" or "namespace" in choice):
        extra["tool_choice"] = choice
    return extra


READ = frozenset(
    {
        "model",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "max_output_tokens",
        "text",
        "stream",
        "bardo",
        *OPENAI_SAMPLING.values(),
    }
)

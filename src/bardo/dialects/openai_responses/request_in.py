"""A client's request, read and checked.

Items of one assistant turn (reasoning, messages, calls, what server tools did) become the blocks of one message, results of consecutive
calls those of one user message. What belongs to a whole item is carried, so that the same items can be written again.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bardo.dialects.openai_responses import wire
from bardo.dialects.openai_responses.functions import INPUT, SEARCH, TOOL_SEARCH_OUTPUT
from bardo.dialects.openai_responses.wire import FORMAT, NAME, SealContent, is_made, opened
from bardo.dialects.shared.control_fields import OPENAI_SAMPLING, decode_sampling, read_thinking, without_thinking
from bardo.dialects.shared.json_values import (
    JsonObject,
    JsonValue,
    decode_object,
    encode_json,
    inner_fields,
    optional,
    take,
    without,
)
from bardo.dialects.shared.media import picture_or_document, read_file, split_data_url
from bardo.dialects.shared.options import read_options, without_own
from bardo.dialects.shared.states import AFTER, NEXT, Carrier, settled
from bardo.dialects.shared.structs import Wire, as_it_came, carried_fields, names_of, read
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

_READ = names_of(wire.CreateResponse) | {"bardo", *OPENAI_SAMPLING.values()}
"""The fields of a body that bardo has a word for, beside those of thinking."""
_FUNCTION = names_of(wire.Function)
_INNER = {("tool_choice",): names_of(wire.NamedFunction), ("text", "format"): names_of(wire.JsonSchema)}
"""The known fields inside them."""


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read a request. Raises InvalidRequest, naming the field."""
    fields = decode_object(body)
    options = read_options(fields)
    thinking = read_thinking(fields, NAME)
    if thinking.omit:
        options = msgspec.structs.replace(options, omit_reasoning=True)
    asked = read(fields, wire.CreateResponse, "")
    model = arrival.model or asked.model
    if not model:
        raise InvalidRequest("model is required", param="model")
    limit = asked.max_output_tokens
    if limit is not None and limit < 1:
        raise InvalidRequest("max_output_tokens must be at least 1", param="max_output_tokens")
    extra = _extra(fields)
    return Request(
        model=model,
        messages=_messages(asked),
        tools=tuple([_tool(value, f"tools[{place}]") for place, value in enumerate(asked.tools or ())]),
        tool_choice=_tool_choice(asked),
        max_output_tokens=limit,
        sampling=decode_sampling(fields, OPENAI_SAMPLING, one_stop=True),
        reasoning=thinking.policy,
        output_format=_output_format(asked.text),
        stream=bool(asked.stream) if arrival.stream is None else arrival.stream,
        dialect=NAME,
        extra=extra,
        inner_fields=inner_fields(without(fields, "tool_choice") if "tool_choice" in extra else fields, _INNER),
        body=without_own(fields),
        body_bytes=body,
        options=options,
    )


def _messages(asked: wire.CreateResponse) -> tuple[Message, ...]:
    leading = (Message("system", (TextBlock(asked.instructions),)),) if asked.instructions else ()
    if isinstance(asked.input, str):
        return (*leading, Message("user", (TextBlock(asked.input),)))
    if (
        asked.input is None
        and asked.prompt is None
        and asked.previous_response_id is None
        and asked.conversation is None
    ):
        raise InvalidRequest("input is required", param="input", hint="give a string, or a list of input items")
    return (*leading, *decode_input(asked.input or (), "input"))


def _tool(value: JsonValue, at: str) -> Tool:
    fields = take(value, dict, at)
    kind, name = fields.get("type"), fields.get("name")
    if isinstance(kind, str) and kind != "function":
        return Tool(name=name if isinstance(name, str) else kind, hosted=True, carried=Carried(NAME, fields))
    tool = read(fields, wire.Function, at)
    beside = {name: value for name, value in fields.items() if name not in _FUNCTION}
    return Tool(
        name=tool.name,
        description=tool.description or "",
        schema=tool.parameters,
        strict=tool.strict,
        carried=Carried(NAME, beside) if beside else None,
    )


def _tool_choice(asked: wire.CreateResponse) -> ToolChoice | None:
    choice, parallel = asked.tool_choice, asked.parallel_tool_calls
    if isinstance(choice, str):
        for mode in ("auto", "none", "required"):
            if choice == mode:
                return ToolChoice(mode=mode, parallel=parallel)
        raise InvalidRequest("tool_choice must be auto, none, required or an object", param="tool_choice")
    if choice is not None and _is_function(choice):
        return ToolChoice(mode="named", name=read(choice, wire.NamedFunction, "tool_choice").name, parallel=parallel)
    return None if parallel is None else ToolChoice(parallel=parallel)


def _is_function(choice: JsonObject) -> bool:
    """Whether a choice is one that every dialect has; any other is a further field."""
    return choice.get("type") == "function" and "namespace" not in choice


def _output_format(text: wire.TextSettings | None) -> OutputFormat | None:
    if text is None or not text.format:
        return None
    kind = optional(text.format, "type", str, "text.format.") or "text"
    if kind == "text":
        return None
    if kind == "json_object":
        return OutputFormat(mode="json_object")
    if kind != "json_schema":
        raise InvalidRequest("text.format.type must be text, json_object or json_schema", param="text.format.type")
    form = read(text.format, wire.JsonSchema, "text.format")
    return OutputFormat(
        mode="json_schema",
        name=form.name or "",
        schema=form.schema,
        strict=form.strict,
        description=form.description or "",
    )


def _extra(fields: JsonObject) -> JsonObject:
    extra = without_thinking({name: value for name, value in fields.items() if name not in _READ and value is not None})
    text = {name: value for name, value in (fields.get("text") or {}).items() if name != "format" and value is not None}
    if text:
        extra["text"] = text
    choice = fields.get("tool_choice")
    if isinstance(choice, dict) and not _is_function(choice):
        extra["tool_choice"] = choice
    return extra


def decode_input(items: Sequence[JsonValue], at: str) -> list[Message]:
    """Return the messages of a list of input items. Raises InvalidRequest, naming the item."""
    reader = _InputReader()
    for place, item in enumerate(items):
        reader.take(item, at, place)
    return reader.finish()


class _InputReader:
    """Gathers the blocks of a turn until the next one begins."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._turn: list[Block | Carrier] = []
        self._results: list[Block] = []
        self._names: dict[str, str] = {}

    def take(self, item: JsonValue, at: str, place: int) -> None:
        """Take the item at some place of the list at `at`; one with a role and no type is a message."""
        fields: JsonObject = item if type(item) is dict else take(item, dict, f"{at}[{place}]")
        kind = fields.get("type")
        if type(kind) is not str or not kind:
            kind = _kind_untold(fields, f"{at}[{place}]")
            fields = {**fields, "type": kind} if kind == "message" else fields
        struct = wire.ITEMS.get(kind)
        if struct is None:
            if kind in ("tool_search_call", TOOL_SEARCH_OUTPUT):
                self._search(fields)
            else:
                self._say(UnknownBlock(NAME, fields))
            return
        try:
            value: Wire = msgspec.convert(fields, struct)
        except msgspec.ValidationError:
            value = read(fields, struct, f"{at}[{place}]")
        if isinstance(value, wire.Message):
            self._message(value, at, place)
        elif isinstance(value, wire.Reasoning):
            self._reasoning(value)
        elif isinstance(value, wire.Call):
            self._names[value.call_id] = value.name
            additional = _additional(value)
            if isinstance(value, wire.CustomToolCall):
                arguments = encode_json({INPUT: value.input}).decode()
                additional = {"type": "custom_tool_call", **additional}
            else:
                arguments = value.arguments or ""  # type: ignore[attr-defined]
            self._end_results()
            self._turn.append(
                ToolCallBlock(id=value.call_id, name=value.name, arguments=arguments, carried=_carried(additional))
            )
        elif isinstance(value, wire.FunctionCallOutput):
            additional = _additional(value)
            if isinstance(value, wire.CustomToolCallOutput):
                additional = {"type": "custom_tool_call_output", **additional}
            self._end_turn()
            self._results.append(
                ToolResultBlock(
                    call_id=value.call_id,
                    name=self._names.get(value.call_id, ""),
                    content=_blocks(value.output, answer=False),  # type: ignore[arg-type]
                    carried=_carried(additional),
                )
            )

    def finish(self) -> list[Message]:
        """Return the messages."""
        self._end_turn()
        self._end_results()
        return self._messages

    def _say(self, *blocks: Block | Carrier) -> None:
        self._end_results()
        self._turn += blocks

    def _end_turn(self) -> None:
        if self._turn:
            turn = self._turn
            blocks = settled(turn) if Carrier in map(type, turn) else tuple(turn)
            self._messages.append(Message("assistant", blocks))  # type: ignore[arg-type]
            self._turn = []

    def _end_results(self) -> None:
        if self._results:
            self._messages.append(Message("user", tuple(self._results)))
            self._results = []

    def _message(self, item: wire.Message, at: str, place: int) -> None:
        if item.role not in _ROLES:
            where = f"{at}[{place}].role"
            raise InvalidRequest(f"{where} must be one of {', '.join(_ROLES)}", param=where)
        blocks = _blocks(item.content, answer=item.role == "assistant")
        additional = _additional(item)
        if item.role == "assistant":
            sealed = opened(str(additional["encrypted_content"])) if "encrypted_content" in additional else None
            if sealed is not None:
                del additional["encrypted_content"]
                blocks = _with_sealed(blocks, sealed)
            self._say(*_with_message(blocks, additional))
            return
        self._end_turn()
        self._end_results()
        if item.role != "user":
            additional["role"] = item.role
        self._messages.append(Message(_ROLES[item.role], blocks, _carried(additional)))

    def _reasoning(self, item: wire.Reasoning) -> None:
        sealed = opened(item.encrypted_content) if item.encrypted_content else None
        if sealed is not None and sealed.target:
            self._return_state(sealed)
            return
        text, summary = "".join(_texts(item.content)) if item.content else "", _texts(item.summary)
        form = item.format or FORMAT
        if sealed is None:
            states = [Opaque("id", item.id, FORMAT)] if item.id and not is_made(item.id) else []
            if item.encrypted_content:
                states.append(Opaque("encrypted", item.encrypted_content, form))
        else:
            states = [*sealed.states]
            if sealed.text and not text:
                text = sealed.text
                # A summary that says the same is how bardo showed the text.
                summary = [] if "".join(summary) == text else summary
            # Text alone belongs to no provider.
            form = states[0].format if states else "reasoning_content" if sealed.text else ""
        rest = _additional(item)
        for name, pieces in (("summary", item.summary), ("content", item.content)):
            beside = [(isinstance(piece, wire.Thought) and carried_fields(piece)) or {} for piece in pieces or ()]
            if any(beside):
                rest[name] = beside
        self._say(
            ReasoningBlock(
                text=text,
                summary=tuple(summary),
                format=form or item.format or FORMAT,
                opaque=tuple(states),
                carried=_carried(rest),
            )
        )

    def _return_state(self, sealed: SealContent) -> None:
        """Give sealed state back to the block it belongs to; where that is gone, keep it as reasoning."""
        for index in range(len(self._turn) - 1, -1, -1):
            block = self._turn[index]
            if isinstance(block, TextBlock | ToolCallBlock | ReasoningBlock) and _is_target(block, sealed.target):
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
        """Give state back to a call whose result came before it: some clients write each result directly behind its call."""
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

    def _search(self, item: JsonObject) -> None:
        """Take a search for tools and what it found, where the client searched; a provider's own is passed on."""
        call_id, kind = item.get("call_id"), item["type"]
        if item.get("execution") != "client" or not isinstance(call_id, str):
            self._say(UnknownBlock(NAME, _without_made_id({**item})))
            return
        self._names[call_id] = SEARCH
        rest = {name: value for name, value in item.items() if name not in _SEARCH and value is not None}
        carried = Carried(NAME, {"type": kind, **_without_made_id(rest)})
        if kind == TOOL_SEARCH_OUTPUT:
            self._end_turn()
            self._results.append(ToolResultBlock(call_id=call_id, name=SEARCH, carried=carried))
        else:
            arguments = encode_json(item.get("arguments") or {}).decode()
            self._say(ToolCallBlock(id=call_id, name=SEARCH, arguments=arguments, carried=carried))


_ROLES: dict[str, Role] = {"user": "user", "system": "system", "developer": "system", "assistant": "assistant"}
_SEARCH = frozenset({"type", "call_id", "arguments"})


def _kind_untold(item: JsonObject, at: str) -> str:
    """Return the type of an item that does not say it."""
    optional(item, "type", str, f"{at}.")
    if "role" not in item and "id" not in item:
        raise InvalidRequest(f"{at}.type is required", param=f"{at}.type")
    return "message" if "role" in item else "item_reference"


def _blocks(content: str | list[wire.Part], *, answer: bool) -> tuple[Block, ...]:
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
        beside, detail, inline = _carried_part(part), part.detail or "", split_data_url(part.image_url)
        if inline:
            # Data of another type is a document, which some clients send so.
            return picture_or_document(*inline, detail=detail, carried=beside)
        return ImageBlock(url=part.image_url, detail=detail, carried=beside)
    if isinstance(part, wire.InputFile) and not answer and part.file_id is None:
        name, data, url = part.filename or "", part.file_data, part.file_url
        document = read_file(data, name) if data else DocumentBlock(url=url, name=name) if url else None
        if document is not None and not (data and url):
            return msgspec.structs.replace(document, carried=_carried_part(part))
    return UnknownBlock(NAME, as_it_came(part))


def _carried_part(part: Wire) -> Carried | None:
    fields = carried_fields(part)
    # Clients give back the empty lists of annotations and log probabilities that came with each text.
    return _carried({name: value for name, value in (fields or {}).items() if value != [] or name not in part.CARRIED})


def _carried(fields: JsonObject) -> Carried | None:
    return Carried(NAME, fields) if fields else None


def _additional(item: Wire) -> JsonObject:
    """Return the fields bardo has no word for."""
    fields = carried_fields(item)
    return {} if fields is None else _without_made_id(fields)


def _without_made_id(fields: JsonObject) -> JsonObject:
    """Return fields without an id that bardo made, which means nothing to a provider."""
    own = fields.get("id")
    if isinstance(own, str) and is_made(own):
        del fields["id"]
    return fields


def _with_sealed(blocks: tuple[Block, ...], sealed: SealContent) -> tuple[Block, ...]:
    """Return the blocks of a message with the state that it held: that of its last text, or of an empty one behind it."""
    for index in range(len(blocks) - 1, -1, -1) if sealed.target != AFTER else ():
        if isinstance(text := blocks[index], TextBlock):
            return (*blocks[:index], _with_states(text, sealed.states), *blocks[index + 1 :])
    return (*blocks, TextBlock("", sealed.states))


def _with_message(blocks: tuple[Block, ...], item: JsonObject) -> list[Block]:
    """Mark the blocks with the message they stand in: all of them by its id, or the first as where it begins."""
    if item and not blocks:
        return [UnknownBlock(NAME, {"type": "message", "role": "assistant", **item, "content": []})]
    marked: list[Block] = []
    for block in blocks:
        if isinstance(block, TextBlock | RefusalBlock) and (not marked or "id" in item):
            held = Carried(NAME, {**(block.carried.fields if block.carried else {}), "item": item})
            block = (
                TextBlock(block.text, block.opaque, held)
                if isinstance(block, TextBlock)
                else RefusalBlock(block.text, held)
            )
        elif isinstance(block, UnknownBlock):
            block = UnknownBlock(NAME, {"type": "message", "role": "assistant", **item, "content": [block.value]})
        marked.append(block)
    return marked


def _texts(pieces: list[wire.Thought | str] | None) -> list[str]:
    return [piece if isinstance(piece, str) else piece.text for piece in pieces or ()]


def _is_target(block: TextBlock | ToolCallBlock | ReasoningBlock, target: str) -> bool:
    if isinstance(block, ToolCallBlock):
        return target == f"call:{block.id}"
    return target == ("text" if isinstance(block, TextBlock) else "reasoning")


def _with_states(block: TextBlock | ToolCallBlock | ReasoningBlock, states: tuple[Opaque, ...]) -> Block:
    return msgspec.structs.replace(block, opaque=(*block.opaque, *states))

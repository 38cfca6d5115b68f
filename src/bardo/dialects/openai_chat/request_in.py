"""A Chat Completions request, as a client sends it, to a Request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

import msgspec

from bardo.dialects.openai_chat import wire
from bardo.dialects.openai_chat.thinking import PlacedDetail, ThinkingBlocks, decode_details, plain_before
from bardo.dialects.openai_chat.wire import NAME, decode_states
from bardo.dialects.shared.control_fields import read_thinking, whole_number, without_thinking
from bardo.dialects.shared.json_values import (
    JsonObject,
    JsonValue,
    decode_object,
    inner_fields,
    kind_of,
    required,
    take,
    without,
)
from bardo.dialects.shared.media import picture_or_document, read_file, split_data_url
from bardo.dialects.shared.options import read_options
from bardo.dialects.shared.structs import Unknown, as_it_came, carried, carried_fields, carried_with, names_of, read
from bardo.dialects.shared.tools import with_allowed_tools
from bardo.values.blocks import (
    Block,
    Carried,
    DocumentBlock,
    ImageBlock,
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    ResultPart,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.errors import InvalidRequest
from bardo.values.request import BardoOptions, Message, OutputFormat, Request, Role, Sampling, Tool, ToolChoice

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "user",
    "function": "user",
}
_OF_MODEL = (
    "tool_calls", "function_call", "refusal", "reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "extra_content",
)  # fmt: skip
_MISPLACED = dict.fromkeys(_ROLES, (*_OF_MODEL, "tool_call_id")) | {"assistant": ("tool_call_id",), "tool": _OF_MODEL}
"""The fields read in messages of other roles only."""
_BESIDE = {role: attrgetter("name", "annotations", "audio", "others", *names) for role, names in _MISPLACED.items()}
_READ = names_of(wire.Request)
_KNOWN = _READ.union(wire.Request.CARRIED)
"""The fields of a request that bardo has a word for."""
_INNER = {
    ("tool_choice",): {"type", "function"},
    ("tool_choice", "function"): names_of(wire.ChosenFunction),
    ("function_call",): {"name"},
    ("response_format",): names_of(wire.JsonSchemaFormat),
    ("response_format", "json_schema"): names_of(wire.SchemaFormat),
    ("output_config", "format"): {"type", "schema"},
}
"""The known fields inside them."""


def decode_request(body: bytes) -> Request:
    """Read a request. Raises InvalidRequest naming the field."""
    fields = decode_object(body)
    # Servers of the family have fields by the dozen: what none of them is called by here is carried without a look at it.
    own = fields if fields.keys() <= _KNOWN else {name: value for name, value in fields.items() if name in _KNOWN}
    asked = read(own, wire.Request, "")
    thinking, options = read_thinking(fields, NAME), read_options(fields) if asked.bardo is not None else BardoOptions()
    limit = _count(asked.max_completion_tokens, "max_completion_tokens")
    if limit is None:
        limit = _count(asked.max_tokens, "max_tokens")
    # In the order in which the client wrote them: their losses are reported in it.
    extra = {name: value for name, value in fields.items() if name not in _READ and value is not None}
    if "chat_template_kwargs" in extra:
        extra = without_thinking(extra)
    stream_options = asked.stream_options
    if stream_options is not None and (more := carried_fields(stream_options)):
        extra["stream_options"] = more
    choice, unusual = _tool_choice(asked)
    return Request(
        model=asked.model,
        messages=tuple([_message(message, f"messages[{place}]") for place, message in enumerate(asked.messages)]),
        tools=_tools(asked, fields),
        tool_choice=choice,
        max_output_tokens=limit,
        sampling=Sampling(
            temperature=asked.temperature,
            top_p=asked.top_p,
            top_k=None if asked.top_k is None else whole_number(fields, "top_k"),
            min_p=asked.min_p,
            repetition_penalty=asked.repetition_penalty,
            frequency_penalty=asked.frequency_penalty,
            presence_penalty=asked.presence_penalty,
            seed=None if asked.seed is None else whole_number(fields, "seed"),
            stop=(asked.stop,) if isinstance(asked.stop, str) else tuple(asked.stop or ()),
        ),
        reasoning=thinking.policy,
        output_format=_output_format(asked),
        choices=_count(asked.n, "n") or 1,
        stream=bool(asked.stream),
        stream_usage=stream_options is not None and bool(stream_options.include_usage),
        dialect=NAME,
        extra=extra | unusual,
        inner_fields=inner_fields(without(fields, *unusual) if unusual else fields, _INNER),
        body={name: value for name, value in fields.items() if name != "bardo"} if "bardo" in fields else fields,
        body_bytes=body,
        options=msgspec.structs.replace(options, omit_reasoning=True) if thinking.omit else options,
    )


def _count(count: int | None, name: str) -> int | None:
    if count is not None and count < 1:
        raise InvalidRequest(f"{name} must be at least 1", param=name)
    return count


def decode_message(value: JsonValue, at: str) -> Message:
    """Return one message. Raises InvalidRequest naming the field."""
    return _message(read(value, wire.Message, at), at)


def _message(message: wire.Message, at: str) -> Message:
    role = _ROLES.get(message.role)
    if role is None:
        roles = ", ".join(sorted(_ROLES))
        raise InvalidRequest(f"{at}.role is {message.role!r}", hint=f"use one of {roles}", param=f"{at}.role")
    # Of a long history most messages have no fields that are only carried, and no function is called to find that.
    beside = _BESIDE[message.role](message)
    rest = None if beside.count(None) == len(beside) else carried_fields(message, _MISPLACED[message.role])
    if message.role == "tool" or message.role == "function":
        return Message(role, (_tool_result(message, rest, at),))
    blocks = _content(message.content)
    if role != "assistant":
        return Message(role, tuple(blocks), Carried(NAME, rest) if rest else None)
    if message.extra_content is not None:
        states, extra = decode_states(message.extra_content)
        blocks = _with_states(blocks, states) if states else blocks
        rest = {**(rest or {}), "extra_content": extra} if extra else rest
    if message.refusal:
        blocks.append(RefusalBlock(message.refusal))
    calls = [_call(call, at, place) for place, call in enumerate(message.tool_calls)] if message.tool_calls else []
    older = message.function_call
    if older is not None and older != wire.OlderCall():
        if older.name is None:
            raise InvalidRequest(f"{at}.function_call.name is required", param=f"{at}.function_call.name")
        more = {"function": given} if (given := carried_fields(older)) else {}
        form = Carried(NAME, {"function_call": True, **more})
        calls.append(ToolCallBlock(id="", name=older.name, arguments=older.arguments or "", carried=form))
    if message.reasoning_details is not None or message.thinking_blocks:
        blocks = interleaved(_details(message), blocks, calls)
    else:
        if text := message.reasoning_content or message.reasoning:
            form_of = "reasoning_content" if message.reasoning_content else "reasoning"
            blocks.insert(0, ReasoningBlock(text=text, format=form_of))
        blocks += calls
    return Message(role, tuple(blocks), Carried(NAME, rest) if rest else None)


def _details(message: wire.Message) -> list[PlacedDetail]:
    """Return the thinking of details that a client gives back, and the plain field's before it; state alone goes with plain text."""
    details = message.reasoning_details
    if isinstance(details, str):
        return [PlacedDetail(ReasoningBlock(text=details, format="reasoning_details"))] if details else []
    text, name = message.reasoning_content, "reasoning_content"
    if not text:
        text, name = message.reasoning or "", "reasoning"
    pieces = decode_details(details or ThinkingBlocks().pieces(message.thinking_blocks or ()))
    readable = [words for piece in pieces if (words := piece.block.readable)]
    if not text or readable:
        before = plain_before(text, readable)
        return [PlacedDetail(ReasoningBlock(text=before, format=name)), *pieces] if before else pieces
    states = tuple(state for piece in pieces for state in piece.block.opaque)
    return [PlacedDetail(ReasoningBlock(text=text, format=pieces[0].block.format if pieces else name, opaque=states))]


def _call(call: wire.Call, at: str, place: int) -> Block:
    custom = call.type == "custom"
    function = call.custom if custom else call.function
    if function is None:
        return UnknownBlock(NAME, {"tool_call": as_it_came(call)})
    text = function.input if isinstance(function, wire.Custom) else function.arguments
    if text is not None and not isinstance(text, str):
        where = f"{at}.tool_calls[{place}]." + ("custom.input" if custom else "function.arguments")
        hint = "arguments are JSON text, not JSON" if isinstance(text, dict) else ""
        raise InvalidRequest(f"{where} must be a string, not {kind_of(text)}", hint=hint, param=where)
    rest = None if call.others is None else carried_fields(call)
    states: tuple[Opaque, ...] = ()
    if function.others is not None and (more := carried_fields(function)):
        rest = {**(rest or {}), "function": more}
    if call.extra_content is not None:
        states, extra = decode_states(call.extra_content)
        rest = {**(rest or {}), "extra_content": extra} if extra else rest
    if custom:
        rest = {**(rest or {}), "type": "custom"}
    return ToolCallBlock(
        id=call.id or "",
        name=function.name,
        arguments=text or "",
        opaque=states,
        carried=Carried(NAME, rest) if rest else None,
    )


def _tool_result(message: wire.Message, rest: JsonObject | None, at: str) -> ToolResultBlock:
    older = message.role == "function"
    name, call_id = message.name, message.tool_call_id
    if (name if older else call_id) is None:
        missing = f"{at}.name" if older else f"{at}.tool_call_id"
        raise InvalidRequest(f"{missing} is required", param=missing)
    if older and rest is not None:
        # The older form has the name in its place.
        rest = {field: value for field, value in rest.items() if field != "name"}
    content = _content(message.content)
    for place, block in enumerate(content):
        if not isinstance(block, ResultPart):
            place_of = f"{at}.content[{place}]"
            raise InvalidRequest(f"{place_of} cannot stand in the result of a tool", param=place_of)
    return ToolResultBlock(
        call_id="" if older else call_id or "",
        name=take(name, str, f"{at}.name") if name else "",
        content=tuple(content),  # type: ignore[arg-type]
        carried=Carried(NAME, rest) if rest else None,
    )


def interleaved(thoughts: Sequence[PlacedDetail], said: Sequence[Block], calls: Sequence[Block]) -> list[Block]:
    """Return the blocks of a message, each stretch of thinking behind as much text and as many calls as it says."""
    if not any(thought.characters or thought.calls for thought in thoughts):
        return [*[thought.block for thought in thoughts], *said, *calls]
    blocks: list[Block] = []
    place = begin = characters = called = 0
    for thought in thoughts:
        while place < len(said) and characters < thought.characters:
            block = said[place]
            length = (len(block.text) if isinstance(block, TextBlock) else 0) - begin
            room = thought.characters - characters
            if length > room and isinstance(block, TextBlock) and not block.opaque and block.carried is None:
                blocks.append(TextBlock(block.text[begin : begin + room]))
                begin, characters = begin + room, thought.characters
            else:
                # Text with state or fields is not cut.
                blocks.append(_behind(block, begin))
                place, begin, characters = place + 1, 0, characters + length
        upto = min(max(called, thought.calls), len(calls))
        blocks += calls[called:upto]
        called = upto
        blocks.append(thought.block)
    if place < len(said):
        blocks += [_behind(said[place], begin), *said[place + 1 :]]
    return [*blocks, *calls[called:]]


def _behind(block: Block, begin: int) -> Block:
    """Return what of a block stands behind as many characters."""
    return TextBlock(block.text[begin:]) if begin and isinstance(block, TextBlock) else block


def _content(content: str | list[wire.Part | str] | None) -> list[Block]:
    if content is None or isinstance(content, str):
        return [TextBlock(content)] if content else []
    return [_READERS[type(part)](part) for part in content]


def _with_states(blocks: list[Block], states: tuple[Opaque, ...]) -> list[Block]:
    for place in range(len(blocks) - 1, -1, -1):
        block = blocks[place]
        if isinstance(block, TextBlock):
            return [*blocks[:place], msgspec.structs.replace(block, opaque=states), *blocks[place + 1 :]]
    return [*blocks, TextBlock("", opaque=states)]


def _read_text(part: wire.Text) -> TextBlock:
    return TextBlock(part.text, carried=carried(part, NAME))


def _read_file(part: wire.File) -> DocumentBlock | UnknownBlock:
    """Return a document. What was uploaded before is known to its provider only."""
    file = part.file
    data = file.file_data if file.others is None else None
    document = read_file(data, file.filename or "") if data else None
    if document is None:
        return UnknownBlock(NAME, as_it_came(part))
    return msgspec.structs.replace(document, carried=carried(part, NAME))


def _read_image(part: wire.Image) -> ImageBlock | DocumentBlock:
    """Return a picture; a data URL of another type is a document, which some clients send so."""
    image, rest = part.image_url, carried_with(part, "image_url", part.image_url, NAME)
    url, detail = (image, None) if isinstance(image, str) else (image.url, image.detail)
    inline = split_data_url(url)
    if inline:
        return picture_or_document(*inline, detail=detail or "", carried=rest)
    return ImageBlock(url=url, detail=detail or "", carried=rest)


def _read_thinking(part: wire.Thinking) -> ReasoningBlock:
    pieces = part.thinking if isinstance(part.thinking, list) else [part.thinking]
    texts = [piece.text if isinstance(piece, wire.Thought) else piece for piece in pieces]
    rest = carried_fields(part) or {}
    beside = [without(piece.others or {}, "type") if isinstance(piece, wire.Thought) else {} for piece in pieces]
    if any(beside):
        rest["thinking"] = beside
    return ReasoningBlock(
        text="".join(text or "" for text in texts),
        format="content_list",
        opaque=(Opaque("signature", part.signature, "content_list"),) if part.signature else (),
        carried=carried(rest, NAME),
    )


_READERS: dict[type, Callable[..., Block]] = {
    str: TextBlock,
    wire.Text: _read_text,
    wire.InputText: _read_text,
    wire.OutputText: _read_text,
    wire.Refusal: lambda part: RefusalBlock(part.refusal, carried(part, NAME)),
    wire.Image: _read_image,
    wire.File: _read_file,
    wire.Thinking: _read_thinking,
    Unknown: lambda part: UnknownBlock(NAME, part.whole.value),
}


def _tools(asked: wire.Request, fields: JsonObject) -> tuple[Tool, ...]:
    tools = _read_tools(fields.get("tools") or [])
    return (*tools, *[_function(function, {}) for function in asked.functions]) if asked.functions else tools


def _read_tools(tools: list[JsonObject]) -> tuple[Tool, ...]:
    return tuple([decode_tool(tool, f"tools[{place}]") for place, tool in enumerate(tools)])


def decode_tool(value: JsonValue, at: str) -> Tool:
    """Return one tool. Raises InvalidRequest naming the field; a tool that is no function is carried whole."""
    tool = take(value, dict, at)
    kind = tool.get("type")
    if isinstance(kind, str) and kind not in ("", "function"):
        return Tool(name=kind, carried=Carried(NAME, tool), hosted=True)
    function = read(tool, wire.FunctionTool, at).function
    return _function(function, {name: held for name, held in tool.items() if name not in ("type", "function")})


def _function(function: wire.FunctionDefinition, rest: JsonObject) -> Tool:
    if more := carried_fields(function):
        rest = {**rest, "function": more}
    return Tool(
        name=function.name,
        description=function.description or "",
        schema=function.parameters,
        strict=function.strict,
        carried=Carried(NAME, rest) if rest else None,
    )


def _tool_choice(asked: wire.Request) -> tuple[ToolChoice | None, JsonObject]:
    """Return the choice, and one of a form that only this dialect has."""
    choice, parallel = asked.tool_choice, asked.parallel_tool_calls
    if choice is None:
        # The field of older clients: a word, or the name alone.
        older = asked.function_call
        choice = {"function": older} if isinstance(older, dict) else older
    if choice is None:
        return (ToolChoice(parallel=parallel) if parallel is not None else None), {}
    if choice in ("auto", "none", "required"):
        return ToolChoice(mode=choice, parallel=parallel), {}
    if isinstance(choice, dict) and isinstance(choice.get("function"), dict):
        name = read(choice["function"], wire.ChosenFunction, "tool_choice.function").name
        return ToolChoice(mode="named", name=name, parallel=parallel), {}
    if isinstance(choice, dict) and choice.get("type") in ("allowed_tools", "custom"):
        return (ToolChoice(parallel=parallel) if parallel is not None else None), {"tool_choice": choice}
    raise InvalidRequest(
        "tool_choice must be auto, none, required, or name a function",
        hint='{"type": "function", "function": {"name": …}}',
        param="tool_choice",
    )


def with_plain_choice(request: Request) -> Request:
    """Return the request without a choice among some of its tools, which only this dialect's targets take as it is."""
    choice = request.extra.get("tool_choice")
    allowed = choice.get("allowed_tools") if isinstance(choice, dict) else None
    if not isinstance(allowed, dict) or not isinstance(allowed.get("tools"), list):
        return request
    named = [_tool_name(tool) for tool in allowed["tools"] if isinstance(tool, dict)]
    plain = with_allowed_tools(request, [name for name in named if name], required=allowed.get("mode") == "required")
    if plain is request:
        return request
    extra = {name: value for name, value in request.extra.items() if name != "tool_choice"}
    return msgspec.structs.replace(plain, extra=extra)


def _tool_name(tool: JsonObject) -> str:
    """Return the name of a tool that a choice lists, empty where it has none."""
    inner = tool.get(str(tool.get("type")))
    name = inner.get("name") if isinstance(inner, dict) else tool.get("name")
    return name if isinstance(name, str) else ""


def _output_format(asked: wire.Request) -> OutputFormat | None:
    wanted = asked.response_format
    if wanted is None and asked.output_config is not None and asked.output_config.get("format") is not None:
        # Anthropic's form of it: the schema stands in the object itself.
        own = required(asked.output_config, "format", dict, "output_config.")
        wanted = {"type": own.get("type"), "json_schema": {"schema": own.get("schema")}}
    if wanted is None or wanted.get("type") == "text":
        return None
    if wanted.get("type") == "json_object":
        return OutputFormat(mode="json_object")
    if wanted.get("type") != "json_schema":
        raise InvalidRequest(
            "response_format.type must be text, json_object or json_schema", param="response_format.type"
        )
    inner = read(wanted, wire.JsonSchemaFormat, "response_format").json_schema
    return OutputFormat(
        mode="json_schema",
        name=inner.name or "answer",
        schema=None if inner.schema is None else take(inner.schema, (dict, bool), "response_format.json_schema.schema"),
        strict=inner.strict,
        description=inner.description or "",
    )

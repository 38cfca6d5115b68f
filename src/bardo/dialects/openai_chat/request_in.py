"""A Chat Completions request, as a client sends it, to a Request.

Chat messages to blocks: what a client sends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from bardo.dialects.openai_chat import wire
from bardo.dialects.openai_chat.thinking import PlacedDetail, ThinkingBlocks, decode_details, plain_before
from bardo.dialects.openai_chat.wire import NAME, decode_states
from bardo.dialects.shared.control_fields import OPENAI_SAMPLING, decode_sampling, read_thinking, without_thinking
from bardo.dialects.shared.json_values import decode_object, kind_of, optional, required, take, without
from bardo.dialects.shared.media import picture_or_document, read_file, split_data_url
from bardo.dialects.shared.options import read_options
from bardo.dialects.shared.repeated_items import read_messages, read_once, without_own
from bardo.dialects.shared.repeated_tools import REPEATED_TOOLS
from bardo.dialects.shared.structs import Unknown, Wire, as_it_came, carried_fields, read
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
from bardo.values.request import Message, OutputFormat, Request, Role, Tool, ToolChoice

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "user",
    "function": "user",
}
_SPEAKERS: dict[str, Role] = {name: role for name, role in _ROLES.items() if name not in ("tool", "function")}
_THINKING: tuple[Literal["reasoning_content", "reasoning"], ...] = ("reasoning_content", "reasoning")


def decode_message(value: Any, at: str) -> Message:
    """Return one message. Raises InvalidRequest naming the field."""
    if type(value) is dict and len(value) == 2 and type(text := value.get("content")) is str:
        # Most messages are no more.
        speaker = _SPEAKERS.get(name) if type(name := value.get("role")) is str else None
        if speaker is not None:
            return Message(speaker, (TextBlock(text),) if text else ())
    message = read(value, wire.Message, at)
    role = _ROLES.get(message.role)
    if role is None:
        known = ", ".join(sorted(_ROLES))
        raise InvalidRequest(f"{at}.role is {message.role!r}", hint=f"use one of {known}", param=f"{at}.role")
    if message.role in ("tool", "function"):
        return Message(role, (_tool_result(message, at),))
    states, extra = decode_states(message.extra_content) if message.extra_content is not None else ((), {})
    said = _with_states(_content(message.content), states) if states else _content(message.content)
    if message.refusal:
        said.append(RefusalBlock(message.refusal))
    blocks = interleaved(_reasoning(message), said, _calls(message, at))
    return Message(role, tuple(blocks), _carried(message, {"extra_content": extra} if extra else {}))


def _carried(struct: Wire, more: dict[str, Any] | None = None) -> Carried | None:
    """Return what is only carried of a struct, and more than that; None where there is nothing."""
    fields = carried_fields(struct)
    if more:
        fields = {**(fields or {}), **more}
    return Carried(NAME, fields) if fields else None


def _reasoning(message: wire.Message) -> list[PlacedDetail]:
    """Return the thinking a client gives back: of the details, else of the first plain field; state alone goes with plain text."""
    details, blocks = message.reasoning_details, message.thinking_blocks
    if isinstance(details, str):
        return [PlacedDetail(ReasoningBlock(text=details, format="reasoning_details"))] if details else []
    placed = decode_details(details or ThinkingBlocks().pieces(blocks or ())) if details or blocks else []
    name, text = next(((name, text) for name in _THINKING if (text := getattr(message, name))), ("", ""))
    readable = [one.block.readable for one in placed if one.block.readable]
    if not text or readable:
        before = plain_before(text, readable)
        return [PlacedDetail(ReasoningBlock(text=before, format=name)), *placed] if before else placed
    states = tuple(state for one in placed for state in one.block.opaque)
    return [PlacedDetail(ReasoningBlock(text=text, format=placed[0].block.format if placed else name, opaque=states))]


def _calls(message: wire.Message, at: str) -> list[Block]:
    blocks = [_call(call, f"{at}.tool_calls[{place}]") for place, call in enumerate(message.tool_calls or ())]
    older = message.function_call
    if older is not None and older != wire.OlderCall():
        if older.name is None:
            raise InvalidRequest(f"{at}.function_call.name is required", param=f"{at}.function_call.name")
        form = Carried(NAME, {"function_call": True})
        blocks.append(ToolCallBlock(id="", name=older.name, arguments=older.arguments or "", carried=form))
    return blocks


def _call(call: wire.Call, at: str) -> Block:
    kind = "custom" if call.type == "custom" else "function"
    said = call.custom if kind == "custom" else call.function
    if said is None:
        return UnknownBlock(NAME, {"tool_call": as_it_came(call)})
    text = "input" if isinstance(said, wire.Custom) else "arguments"
    states, extra = decode_states(call.extra_content) if call.extra_content is not None else ((), {})
    rest: dict[str, Any] = {}
    if more := carried_fields(said):
        rest["function"] = more
    if extra:
        rest["extra_content"] = extra
    if kind == "custom":
        rest["type"] = kind
    return ToolCallBlock(
        id=call.id or "",
        name=said.name,
        arguments=_arguments(getattr(said, text), f"{at}.{kind}.{text}"),
        opaque=states,
        carried=_carried(call, rest),
    )


def _arguments(value: Any, at: str) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    hint = "arguments are JSON text, not JSON" if isinstance(value, dict) else ""
    raise InvalidRequest(f"{at} must be a string, not {kind_of(value)}", hint=hint, param=at)


def _tool_result(message: wire.Message, at: str) -> ToolResultBlock:
    older = message.role == "function"
    for name in ("name",) if older else ("tool_call_id",):
        if getattr(message, name) is None:
            raise InvalidRequest(f"{at}.{name} is required", param=f"{at}.{name}")
    rest = _carried(message)
    if older and rest is not None:
        left = {name: value for name, value in rest.fields.items() if name != "name"}
        rest = Carried(NAME, left) if left else None
    content: list[ResultPart] = []
    for place, block in enumerate(_content(message.content)):
        if not isinstance(block, ResultPart):
            place_of = f"{at}.content[{place}]"
            raise InvalidRequest(f"{place_of} cannot stand in the result of a tool", param=place_of)
        content.append(block)
    return ToolResultBlock(
        call_id="" if older else message.tool_call_id or "",
        name=take(message.name or "", str, f"{at}.name"),
        content=tuple(content),
        carried=rest,
    )


def interleaved(thoughts: Sequence[PlacedDetail], said: Sequence[Block], calls: Sequence[Block]) -> list[Block]:
    """Return the blocks of a message, each stretch of thinking behind as much text and as many calls as it says."""
    blocks: list[Block] = []
    rest, characters, called = list(said), 0, 0
    for one in thoughts:
        before, rest = _split_blocks(rest, one.characters - characters)
        blocks += before
        characters += sum(_length(block) for block in before)
        upto = min(max(called, one.calls), len(calls))
        blocks += calls[called:upto]
        called = upto
        blocks.append(one.block)
    return [*blocks, *rest, *calls[called:]]


def _split_blocks(blocks: Sequence[Block], characters: int) -> tuple[list[Block], list[Block]]:
    """Return the blocks that hold the first characters of the text, and the others. Text with state or fields is not cut."""
    first: list[Block] = []
    for place, block in enumerate(blocks):
        if characters <= 0:
            return first, list(blocks[place:])
        length = _length(block)
        if length > characters and isinstance(block, TextBlock) and not block.opaque and block.carried is None:
            first.append(TextBlock(block.text[:characters]))
            return first, [TextBlock(block.text[characters:]), *blocks[place + 1 :]]
        first.append(block)
        characters -= length
    return first, []


def _length(block: Block) -> int:
    return len(block.text) if isinstance(block, TextBlock) else 0


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
    return TextBlock(part.text, carried=_carried(part))


def _read_file(part: wire.File) -> DocumentBlock | UnknownBlock:
    """Return a document. What was uploaded before is known to its provider only."""
    file = part.file
    data = file.file_data if file.others is None else None
    found = read_file(data, file.filename or "") if data else None
    if found is None:
        return UnknownBlock(NAME, as_it_came(part))
    return msgspec.structs.replace(found, carried=_carried(part))


def _read_image(part: wire.Image) -> ImageBlock | DocumentBlock:
    """Return a picture; a data URL of another type is a document, which some clients send so."""
    image = part.image_url
    url, detail = (image, None) if isinstance(image, str) else (image.url, image.detail)
    inline = split_data_url(url)
    if inline:
        return picture_or_document(*inline, detail=detail or "", carried=_carried(part))
    return ImageBlock(url=url, detail=detail or "", carried=_carried(part))


def _read_thinking(part: wire.Thinking) -> ReasoningBlock:
    pieces = part.thinking if isinstance(part.thinking, list) else [part.thinking]
    texts = [piece.text if isinstance(piece, wire.Thought) else piece for piece in pieces]
    return ReasoningBlock(
        text="".join(text or "" for text in texts),
        format="content_list",
        opaque=(Opaque("signature", part.signature, "content_list"),) if part.signature else (),
    )


_READERS: dict[type, Callable[[Any], Block]] = {
    str: TextBlock,
    wire.Text: _read_text,
    wire.InputText: _read_text,
    wire.OutputText: _read_text,
    wire.Refusal: lambda part: RefusalBlock(part.refusal),
    wire.Image: _read_image,
    wire.File: _read_file,
    wire.Thinking: _read_thinking,
    Unknown: lambda part: UnknownBlock(NAME, part.whole.value),
}


READ = frozenset(
    {
        "model", "messages", "tools", "functions", "tool_choice", "function_call", "parallel_tool_calls", "n", "stream",
        "max_tokens", "max_completion_tokens", "stream_options", "response_format", "bardo", *OPENAI_SAMPLING.values(),
    }
)  # fmt: skip


_TOOL_FIELDS = frozenset({"tools", "functions", "tool_choice", "function_call", "parallel_tool_calls"})
# All that most requests hold.
_COMMON = frozenset(
    {"model", "messages", "stream", "max_tokens", "max_completion_tokens", "stream_options", *OPENAI_SAMPLING.values()}
    | _TOOL_FIELDS
)


def decode_request(body: bytes) -> Request:
    """Read a request. Raises InvalidRequest naming the field."""
    fields = decode_object(body)
    messages = required(fields, "messages", list)
    # Most requests lack most fields: what none of them names is not looked for one by one.
    stream_options = (optional(fields, "stream_options", dict) or {}) if "stream_options" in fields else {}
    limit = _count(fields, "max_completion_tokens") if "max_completion_tokens" in fields else None
    if limit is None and "max_tokens" in fields:
        limit = _count(fields, "max_tokens")
    request = Request(
        model=required(fields, "model", str),
        messages=tuple(read_messages(messages, "messages", NAME, decode_message)),
        max_output_tokens=limit,
        sampling=decode_sampling(fields, OPENAI_SAMPLING, one_stop=True),
        stream="stream" in fields and bool(optional(fields, "stream", bool)),
        stream_usage=bool(stream_options and optional(stream_options, "include_usage", bool, "stream_options.")),
        dialect=NAME,
        extra=_stream_extra(stream_options) if stream_options else {},
        body=fields,
        body_bytes=body,
    )
    if not _TOOL_FIELDS.isdisjoint(fields):
        request = _with_tools(request, fields)
    return request if fields.keys() <= _COMMON else _with_others(request, fields)


def _with_tools(request: Request, fields: dict[str, Any]) -> Request:
    choice, unusual = _tool_choice(fields)
    extra = {**request.extra, **unusual} if unusual else request.extra
    return msgspec.structs.replace(request, tools=_tools(fields), tool_choice=choice, extra=extra)


def _with_others(request: Request, fields: dict[str, Any]) -> Request:
    """Return the request with all that its less common fields say."""
    options, asked = read_options(fields), read_thinking(fields, NAME)
    if asked.omit:
        options = msgspec.structs.replace(options, omit_reasoning=True)
    return msgspec.structs.replace(
        request,
        reasoning=asked.policy,
        output_format=_output_format(fields),
        choices=_count(fields, "n") or 1,
        extra={**_extra(fields), **request.extra},
        body=without_own(fields),
        options=options,
    )


def _count(fields: dict[str, Any], name: str) -> int | None:
    count = optional(fields, name, int)
    if count is not None and count < 1:
        raise InvalidRequest(f"{name} must be at least 1", param=name)
    return count


def _extra(fields: dict[str, Any]) -> dict[str, Any]:
    return without_thinking({name: value for name, value in fields.items() if name not in READ and value is not None})


def _stream_extra(stream_options: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in stream_options.items() if name != "include_usage" and value is not None}
    return {"stream_options": rest} if rest else {}


def _tools(fields: dict[str, Any]) -> tuple[Tool, ...]:
    tools = REPEATED_TOOLS.read(optional(fields, "tools", list) or [], NAME, _read_tools)
    older = optional(fields, "functions", list) or []
    if not older:
        return tools
    return (*tools, *[_function(function, f"functions[{place}]", {}) for place, function in enumerate(older)])


def _read_tools(tools: list[Any]) -> tuple[Tool, ...]:
    return tuple([decode_tool(tool, f"tools[{place}]") for place, tool in enumerate(tools)])


def decode_tool(value: Any, at: str) -> Tool:
    """Return one tool. Raises InvalidRequest naming the field; a tool that is no function is carried whole."""
    tool = take(value, dict, at)
    kind = optional(tool, "type", str, f"{at}.") or "function"
    if kind != "function":
        return Tool(name=kind, carried=Carried(NAME, tool), hosted=True)
    rest = {name: held for name, held in tool.items() if name not in ("type", "function")}
    return _function(required(tool, "function", dict, f"{at}."), f"{at}.function", rest)


def _function(value: Any, at: str, rest: dict[str, Any]) -> Tool:
    function = take(value, dict, at)
    if more := without(function, "name", "description", "parameters", "strict"):
        rest = {**rest, "function": more}
    return Tool(
        name=required(function, "name", str, f"{at}."),
        description=optional(function, "description", str, f"{at}.") or "",
        schema=optional(function, "parameters", dict, f"{at}."),
        strict=optional(function, "strict", bool, f"{at}."),
        carried=Carried(NAME, rest) if rest else None,
    )


def with_plain_choice(request: Request) -> Request:
    """Return the request without a choice among some of its tools, which only this dialect's targets take as it is."""
    choice = request.extra.get("tool_choice")
    allowed = choice.get("allowed_tools") if isinstance(choice, dict) else None
    if not isinstance(allowed, dict):
        return request
    named = [_tool_name(tool) for tool in allowed.get("tools") or () if isinstance(tool, dict)]
    plain = with_allowed_tools(request, [name for name in named if name], required=allowed.get("mode") == "required")
    if plain is request:
        return request
    extra = {name: value for name, value in request.extra.items() if name != "tool_choice"}
    return msgspec.structs.replace(plain, extra=extra)


def _tool_name(tool: dict[str, Any]) -> str:
    """Return the name of a tool that a choice lists, empty where it has none."""
    inner = tool.get(str(tool.get("type")))
    name = inner.get("name") if isinstance(inner, dict) else tool.get("name")
    return name if isinstance(name, str) else ""


def _tool_choice(fields: dict[str, Any]) -> tuple[ToolChoice | None, dict[str, Any]]:
    """Return the choice, and one of a form that only this dialect has."""
    choice = fields.get("tool_choice")
    if choice is None:
        # The field of older clients: a word, or the name alone.
        older = fields.get("function_call")
        choice = {"function": older} if isinstance(older, dict) else older
    parallel = optional(fields, "parallel_tool_calls", bool)
    if choice is None:
        return (ToolChoice(parallel=parallel) if parallel is not None else None), {}
    if choice in ("auto", "none", "required"):
        return ToolChoice(mode=choice, parallel=parallel), {}
    if isinstance(choice, dict) and isinstance(choice.get("function"), dict):
        name = required(choice["function"], "name", str, "tool_choice.function.")
        return ToolChoice(mode="named", name=name, parallel=parallel), {}
    if isinstance(choice, dict) and choice.get("type") in ("allowed_tools", "custom"):
        return (ToolChoice(parallel=parallel) if parallel is not None else None), {"tool_choice": choice}
    raise InvalidRequest(
        "tool_choice must be auto, none, required, or name a function",
        hint='{"type": "function", "function": {"name": …}}',
        param="tool_choice",
    )


def _output_format(fields: dict[str, Any]) -> OutputFormat | None:
    field = "output_config" if fields.get("response_format") is None else "response_format"
    return read_once(fields, field, f"{NAME}.format", lambda: _read_format(fields))


def _read_format(fields: dict[str, Any]) -> OutputFormat | None:
    wanted = optional(fields, "response_format", dict)
    config = optional(fields, "output_config", dict) or {}
    if wanted is None and config.get("format") is not None:
        # Anthropic's form of it: the schema stands in the object itself.
        own = required(config, "format", dict, "output_config.")
        wanted = {"type": own.get("type"), "json_schema": {"schema": own.get("schema")}}
    if wanted is None or wanted.get("type") == "text":
        return None
    if wanted.get("type") == "json_object":
        return OutputFormat(mode="json_object")
    if wanted.get("type") != "json_schema":
        raise InvalidRequest(
            "response_format.type must be text, json_object or json_schema", param="response_format.type"
        )
    inner = required(wanted, "json_schema", dict, "response_format.")
    return OutputFormat(
        mode="json_schema",
        name=optional(inner, "name", str, "response_format.json_schema.") or "answer",
        schema=optional(inner, "schema", (dict, bool), "response_format.json_schema."),
        strict=optional(inner, "strict", bool, "response_format.json_schema."),
        description=optional(inner, "description", str, "response_format.json_schema.") or "",
    )

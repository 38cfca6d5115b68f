"""A client's Messages request, or one whose tokens are only counted, to a Request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

import msgspec

from bardo.dialects.anthropic_messages import wire
from bardo.dialects.anthropic_messages.wire import FORMAT, NAME, PARTS, PARTS_JOIN, SIGNED_BLOCKS
from bardo.dialects.shared.bounded_json import FEW_LEVELS, SLICED_BYTES, has_many_levels
from bardo.dialects.shared.control_fields import as_whole_number
from bardo.dialects.shared.dialect import ATTRIBUTION
from bardo.dialects.shared.json_values import (
    JsonObject,
    JsonValue,
    arguments_of,
    check_depth,
    decode_object,
    encode_json,
    header_value,
    inner_fields,
    take,
    without,
)
from bardo.dialects.shared.media import picture_or_document
from bardo.dialects.shared.options import read_options, without_own
from bardo.dialects.shared.states import Carrier, settled
from bardo.dialects.shared.structs import Unknown, as_it_came, carried, carried_fields, carried_with, names_of, read
from bardo.values.blocks import (
    Block,
    Carried,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    ResultPart,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest
from bardo.values.request import (
    EFFORTS,
    BardoOptions,
    Effort,
    Message,
    OutputFormat,
    ReasoningPolicy,
    Request,
    Role,
    Sampling,
    Tool,
    ToolChoice,
)
from bardo.values.wire import OF_CLOUD, Arrival

READ: Final = names_of(wire.Request)
"""The fields that are read; all others are carried."""
_INNER = {
    ("tool_choice",): names_of(wire.ToolChoice),
    ("output_config", "format"): names_of(wire.OutputFormat),
    ("output_format",): names_of(wire.OutputFormat),
}
"""The fields read inside them."""
# All that most requests hold.
_COMMON = READ - {"thinking", "output_config", "output_format", "bardo"}
_ITEMS: dict[str, type] = {"messages": wire.Message, "tools": dict, "stop_sequences": str}
_UNASKED = BardoOptions(omit_unasked=True)
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_CHOICES: dict[str, Literal["auto", "none", "required", "named"]] = {
    "auto": "auto",
    "any": "required",
    "none": "none",
    "tool": "named",
}
_LONGEST_ATTRIBUTION = 2000
"""Characters; a longer text is part of a prompt."""
_DISPLAYS = {"summarized": True, "omitted": False, "updates": True}
_KNOWN_DISPLAYS = ("summarized", "omitted")
"""Fields that other dialects have too."""


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read a request. Raises InvalidRequest naming the field; one that is only counted needs no `max_tokens`."""
    try:
        fields = decode_object(body, checks_depth=False)
        headers: dict[str, str] = {}
        if arrival.endpoint == OF_CLOUD:
            # The body that Anthropic itself takes, and its headers.
            #
            # Clouds take the version and the betas in the body, and have the model and whether it streams in the path.
            own = {name: fields.pop(name) for name in ("anthropic_version", "anthropic_beta") if name in fields}
            betas = read(own, wire.CloudFields, "").anthropic_beta or []
            names = [header_value(name, f"anthropic_beta[{place}]") for place, name in enumerate(betas)]
            named_by_path: JsonObject = {"model": arrival.model} if arrival.model else {}
            if arrival.stream is not None and not arrival.counting:
                fields.pop("stream", None)
                named_by_path |= {"stream": True} if arrival.stream else {}
            fields, headers = {**fields, **named_by_path}, {"anthropic-beta": ",".join(names)} if names else {}
            body = encode_json(fields)
        try:
            request = _request(fields, body, arrival)
            return msgspec.structs.replace(request, headers=headers) if headers else request
        except InvalidRequest:
            # That it is nested too deeply is said before anything else.
            check_depth(fields, body)
            raise
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None


def _request(fields: JsonObject, raw: bytes, arrival: Arrival) -> Request:
    # Where the path names the model, that of the body is not used.
    body = _body({**fields, "model": arrival.model} if arrival.model else fields, raw)
    if body.model is None:
        raise InvalidRequest("model is required", param="model")
    limit = body.max_tokens
    if limit is None and not arrival.counting:
        raise InvalidRequest("max_tokens is required", param="max_tokens")
    # 0 fills the prompt cache without an answer: anthropic 2.12.0, message_create_params.py.
    if limit is not None and limit < 0:
        raise InvalidRequest("max_tokens must not be negative", param="max_tokens")
    # What may be nested to any depth, of a body whose other levels its struct says.
    free = [value for name, value in fields.items() if name != "messages" and type(value) in (dict, list)]
    attribution, unmarked = _take_attribution(body)
    messages = _messages(body, free)
    if has_many_levels(free):
        check_depth(fields, raw)
    request = Request(
        model=body.model,
        messages=messages,
        tools=tuple([_tool(tool, f"tools[{place}]") for place, tool in enumerate(body.tools or ())]),
        tool_choice=None if body.tool_choice is None else _tool_choice(body.tool_choice),
        max_output_tokens=limit,
        sampling=Sampling(
            temperature=body.temperature,
            top_p=body.top_p,
            top_k=as_whole_number(body.top_k, "top_k"),
            stop=tuple(body.stop_sequences or ()),
        ),
        stream=bool(body.stream if arrival.stream is None else arrival.stream),
        dialect=NAME,
        body=fields,
        body_bytes=raw,
        inner_fields=inner_fields(fields, _INNER),
        options=_UNASKED,
        attribution=attribution,
        degraded=unmarked,
    )
    if fields.keys() <= _COMMON:
        return request
    extra = {name: value for name, value in fields.items() if name not in READ}
    config = fields.get("output_config") or {}
    if left := {name: value for name, value in config.items() if name not in ("effort", "format")}:
        extra["output_config"] = left
    return msgspec.structs.replace(
        request,
        reasoning=_reasoning(body),
        output_format=_output_format(body),
        extra=extra,
        body=without_own(fields),
        options=_options(fields, body),
    )


def _take_attribution(body: wire.Request) -> tuple[str, tuple[Degradation, ...]]:
    """Return the text by which Claude Code names itself, and leave it out of the system prompt at whose head it stands.

    Claude Code writes it as a block of its own; programs that join the blocks leave it as the first line of a text.
    """
    system = body.system
    first = system[0] if isinstance(system, list) and system else system
    text = first.text if type(first) is wire.Text else first
    if not isinstance(text, str) or not text.startswith(ATTRIBUTION):
        return "", ()
    line, _, rest = text.partition("\n")
    if len(line) > _LONGEST_ATTRIBUTION or not (line.isascii() and line.isprintable()):
        return "", ()
    if not isinstance(system, list):
        body.system = rest or None
        return line, ()
    if rest and type(first) is wire.Text:
        body.system = [msgspec.structs.replace(first, text=rest), *system[1:]]
        return line, ()
    body.system = system[1:] or None
    fields = None if type(first) is not wire.Text else carried_fields(first)
    why = "the block is no part of the prompt"
    return text, tuple(
        Degradation(f"attribution.{name}", asked=value, why=why) for name, value in (fields or {}).items()
    )


def _body(fields: JsonObject, raw: bytes) -> wire.Request:
    """Return the body as its struct. The items of a long one are read one by one: a call of C holds up all other threads."""
    if len(raw) < SLICED_BYTES:
        try:
            return msgspec.convert(fields, wire.Request)
        except msgspec.ValidationError:
            # Unknown fields may be nested to any depth.
            check_depth(fields, raw)
            return read(fields, wire.Request, "")
    lists = {name: fields[name] for name in _ITEMS if isinstance(fields.get(name), list)}
    body = read({**fields, **{name: [] for name in lists}}, wire.Request, "")
    for name, items in lists.items():
        setattr(body, name, [read(item, _ITEMS[name], f"{name}[{place}]") for place, item in enumerate(items)])
    return body


def _messages(body: wire.Request, free: list[JsonValue]) -> tuple[Message, ...]:
    """Return the system prompt as the first message, and the turns. Each result of a tool gets the name of the tool that was called.

    `free` takes what in them may be nested to any depth.
    """
    contents = [body.system, *[turn.content for turn in body.messages]]
    names = {
        block.id: block.name
        for blocks in contents
        if type(blocks) is list
        for block in blocks
        if type(block) is wire.ToolUse
    }
    messages = [] if body.system is None else [Message("system", _blocks(body.system, names, free))]
    for place, turn in enumerate(body.messages):
        role = _ROLES.get(turn.role)
        if role is None:
            at = f"messages[{place}].role"
            raise InvalidRequest(f"{at} is {turn.role!r}", hint=f"use {', '.join(_ROLES)}", param=at)
        more = None if turn.others is None else carried(turn, NAME)
        messages.append(Message(role, _blocks(turn.content, names, free), more))
    return tuple(messages)


def _blocks(content: str | list[wire.Block], names: Mapping[str, str], free: list[JsonValue]) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (TextBlock(content),) if content else ()
    blocks: list[Block | Carrier] = []
    has_carrier = False
    # One step for each block of a long history: most have no fields beside their own, and no function is called to find that.
    for block in content:
        if type(block) is wire.Text:
            if block.cache_control is None and block.citations is None and block.others is None:
                blocks.append(TextBlock(block.text))
                continue
            more = carried(block, NAME)
            made: Block | Carrier = TextBlock(block.text, carried=more)
        elif type(block) is wire.Thinking:
            more = None if block.others is None else carried(block, NAME)
            states = SIGNED_BLOCKS.decode_signature(block.signature) if block.signature else ()
            # Thinking without a signature is of no provider: bardo wrote it so for a provider that signs nothing.
            form = states[0].format if states else "thinking"
            made = ReasoningBlock(text=block.thinking, format=form, opaque=states, carried=more)
        elif type(block) is wire.ToolUse:
            arguments = arguments_of(block.input) if block.input else "{}"
            if len(arguments) > FEW_LEVELS:
                free.append(block.input)
            plain = block.cache_control is None and block.caller is None and block.toolset_name is None
            more = None if plain and block.others is None else carried(block, NAME)
            made = ToolCallBlock(id=block.id, name=block.name, arguments=arguments, carried=more)
        elif type(block) is wire.ToolResult:
            plain = block.cache_control is None and block.toolset_name is None and block.others is None
            more = None if plain else carried(block, NAME)
            within = block.content
            made = ToolResultBlock(
                call_id=block.tool_use_id,
                name=names.get(block.tool_use_id, ""),
                content=(TextBlock(within),) if isinstance(within, str) else _parts(within or [], free),
                is_error=bool(block.is_error),
                carried=more,
            )
        else:
            made, more = _READERS[type(block)](block), None
            has_carrier = has_carrier or type(made) is Carrier
            free += _free_in(block)
        if more is not None:
            free.append(more.fields)
        blocks.append(made)
    return settled(blocks) if has_carrier else tuple(blocks)  # type: ignore[arg-type]


def _parts(content: list[wire.ResultPart], free: list[JsonValue]) -> tuple[ResultPart, ...]:
    for part in content:
        free += _free_in(part)
    return tuple([_PART_READERS[type(part)](part) for part in content])


def _free_in(block: wire.Block) -> list[JsonValue]:
    """Return what in a block may be nested to any depth."""
    if isinstance(block, Unknown):
        return [block.whole.value]
    parts = [*(carried_fields(block) or {}).values()]
    return [*parts, block.content] if type(block) is wire.SearchResult else parts


def _text(block: wire.Text) -> TextBlock:
    return TextBlock(block.text, carried=carried(block, NAME))


def _image(block: wire.Image) -> ImageBlock | DocumentBlock:
    """Return a picture; data of another type is a document, which some clients send so."""
    source, rest = block.source, carried_with(block, "source", block.source, NAME)
    if isinstance(source, wire.UrlSource):
        return ImageBlock(url=source.url, carried=rest)
    return picture_or_document(source.media_type, source.data, carried=rest)


def _document(block: wire.Document) -> DocumentBlock:
    source, name, rest = block.source, block.title or "", carried_with(block, "source", block.source, NAME)
    if isinstance(source, wire.UrlSource):
        return DocumentBlock(url=source.url, name=name, carried=rest)
    if isinstance(source, wire.TextSource):
        return DocumentBlock(media_type=source.media_type or "", text=source.data, name=name, carried=rest)
    return DocumentBlock(media_type=source.media_type or "", data=source.data, name=name, carried=rest)


def _search_result(block: wire.SearchResult) -> DocumentBlock | UnknownBlock:
    """Return a result of the caller's own search as a document that says where it was found."""
    texts = [
        part["text"]
        for part in block.content
        if isinstance(part, dict) and part.keys() == {"type", "text"} and isinstance(part["text"], str)
    ]
    if not block.source or not texts or len(texts) < len(block.content):
        return UnknownBlock(NAME, as_it_came(block))
    rest = carried(block, NAME)
    if len(texts) > 1:
        rest = Carried(NAME, {**(rest.fields if rest else {}), PARTS: texts})
    return DocumentBlock(text=PARTS_JOIN.join(texts), name=block.title or "", source=block.source, carried=rest)


def _redacted_thinking(block: wire.RedactedThinking) -> ReasoningBlock | Carrier:
    redacted = SIGNED_BLOCKS.decode_redacted(block.data)
    form = redacted.states[0].format if redacted.states else FORMAT
    thinking = ReasoningBlock(format=form, opaque=redacted.states, carried=carried(block, NAME))
    return thinking if redacted.owner is None else Carrier(redacted.states, redacted.owner, thinking)


_PART_READERS: dict[type, Callable[..., ResultPart]] = {
    wire.Text: _text,
    wire.Image: _image,
    wire.Document: _document,
    wire.SearchResult: _search_result,
    Unknown: lambda block: UnknownBlock(NAME, block.whole.value),
}
_READERS: dict[type, Callable[..., Block | Carrier]] = {**_PART_READERS, wire.RedactedThinking: _redacted_thinking}


def _tool(fields: JsonObject, at: str) -> Tool:
    if fields.get("type") not in (None, "", "custom"):
        hosted = read(fields, wire.HostedTool, at)
        return Tool(name=hosted.name or hosted.type, hosted=True, carried=Carried(NAME, fields))
    tool = read(fields, wire.Tool, at)
    return Tool(
        name=tool.name,
        description=tool.description or "",
        schema=tool.input_schema,
        strict=tool.strict,
        carried=carried(tool, NAME),
    )


def _tool_choice(choice: wire.ToolChoice) -> ToolChoice:
    mode = _CHOICES.get(choice.type)
    if mode is None:
        hint = f"use {', '.join(_CHOICES)}"
        raise InvalidRequest(f"tool_choice.type is {choice.type!r}", hint=hint, param="tool_choice.type")
    if mode == "named" and choice.name is None:
        raise InvalidRequest("tool_choice.name is required", param="tool_choice.name")
    one_at_a_time = choice.disable_parallel_tool_use
    return ToolChoice(
        mode=mode,
        name=choice.name or "" if mode == "named" else "",
        parallel=None if one_at_a_time is None else not one_at_a_time,
    )


def _reasoning(body: wire.Request) -> ReasoningPolicy | None:
    """Return how the model should think. What else stands in the `thinking` object is carried."""
    thinking, effort = body.thinking, _effort(body.output_config)
    told: JsonObject = {} if effort is None else {"output_config": {"effort": effort}}
    if thinking is None:
        if effort is None:
            return None
        return ReasoningPolicy(mode="effort", effort=effort, enables_thinking=False, raw_fields=told)
    display = thinking.display
    if display is not None and display not in _DISPLAYS:
        hint = f"use {', '.join(_DISPLAYS)}"
        raise InvalidRequest(f"thinking.display is {display!r}", hint=hint, param="thinking.display")
    read = {"type": thinking.type, "budget_tokens": thinking.budget_tokens}
    rest = carried_fields(thinking) or {}
    (read if display in _KNOWN_DISPLAYS else rest)["display"] = display
    read, rest = without(read), without(rest)
    return ReasoningPolicy(
        mode=_mode(thinking.type, effort),
        effort=effort,
        budget=_budget(thinking.budget_tokens) if thinking.type == "enabled" else None,
        visible=None if display is None else _DISPLAYS[display],
        between_tools=thinking.type == "between_tools",
        carried=Carried(NAME, {"thinking": rest}) if rest else None,
        raw_fields={"thinking": read, **told},
    )


def _mode(kind: str, effort: Effort | None) -> Literal["off", "effort", "budget", "auto"]:
    if kind == "disabled":
        return "off"
    if kind == "enabled":
        return "budget"
    if kind in ("adaptive", "between_tools"):
        return "auto" if effort is None else "effort"
    hint = "use enabled, adaptive, disabled or between_tools"
    raise InvalidRequest(f"thinking.type is {kind!r}", hint=hint, param="thinking.type")


def _budget(given: JsonValue) -> int:
    at = "thinking.budget_tokens"
    if given is None:
        raise InvalidRequest(f"{at} is required", param=at)
    budget = take(given, int, at)
    if budget < 1:
        raise InvalidRequest(f"{at} must be at least 1", param=at)
    return budget


def _effort(config: wire.OutputConfig | None) -> Effort | None:
    word = None if config is None else config.effort
    if word is None:
        return None
    for effort in EFFORTS:
        if effort == word:
            return effort
    at = "output_config.effort"
    raise InvalidRequest(f"{at} is {word!r}", hint=f"use {', '.join(EFFORTS)}", param=at)


def _output_format(body: wire.Request) -> OutputFormat | None:
    """Return the shape of the answer. The older place counts only where the newer says nothing."""
    format_asked, at = None if body.output_config is None else body.output_config.format, "output_config.format"
    if format_asked is None and body.output_format is not None:
        format_asked, at = read(body.output_format, wire.OutputFormat, "output_format"), "output_format"
    if format_asked is None:
        return None
    if format_asked.type != "json_schema":
        raise InvalidRequest(f"{at}.type is {format_asked.type!r}", hint="use json_schema", param=f"{at}.type")
    if format_asked.schema is None:
        raise InvalidRequest(f"{at}.schema is required", param=f"{at}.schema")
    return OutputFormat(mode="json_schema", schema=format_asked.schema, strict=True)


def _options(fields: JsonObject, body: wire.Request) -> BardoOptions:
    """Return the options. Clients that do not ask for thinking read `content[0].text`, so they get none unless they say `include`."""
    options = read_options(fields)
    asks = body.thinking is not None and body.thinking.type != "disabled"
    if asks or (body.bardo or {}).get("reasoning") is not None:
        return options
    return msgspec.structs.replace(options, omit_unasked=True)

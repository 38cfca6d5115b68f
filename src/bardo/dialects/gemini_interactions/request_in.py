"""A client's interaction to a Request.

Its `input` is a text, contents of one turn, or the steps of a conversation. Steps that follow one another on the same side are one message,
and so are contents without a step around them.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from bardo.dialects.gemini.wire import FORMAT, arguments_text
from bardo.dialects.gemini_interactions import wire
from bardo.dialects.gemini_interactions.wire import NAME, states_of
from bardo.dialects.shared.control_fields import as_whole_number
from bardo.dialects.shared.json_values import JsonObject, decode_object, encode_json, inner_fields, take, without
from bardo.dialects.shared.options import read_options
from bardo.dialects.shared.structs import Unknown, as_it_came, carried, carried_fields, names_of, read
from bardo.dialects.shared.tools import with_allowed_tools
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
from bardo.values.errors import InvalidRequest
from bardo.values.request import (
    EFFORTS,
    Message,
    OutputFormat,
    ReasoningPolicy,
    Request,
    Role,
    Sampling,
    Tool,
    ToolChoice,
)
from bardo.values.wire import Arrival

_AT = "generation_config."
_MODES: dict[str, Literal["auto", "none", "required"]] = {
    "auto": "auto",
    "validated": "auto",
    "any": "required",
    "none": "none",
}
_OTHER_CONTENTS = frozenset({"audio", "video", "file"})
# Formats whose readable part is a summary; what any other provider thought is full text.
_SUMMARISING = frozenset({FORMAT, "openai-responses-v1", "xai-responses-v1"})
READ = frozenset({"model", "input", "system_instruction", "tools", "generation_config", "stream"})
"""The fields that stay in no request's `extra`."""
_INNER = {
    ("generation_config", "tool_choice"): names_of(wire.ToolChoice),
    ("generation_config", "tool_choice", "allowed_tools"): names_of(wire.AllowedTools),
}
"""The fields read deeper inside them."""


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read a request. Raises InvalidRequest naming the field."""
    try:
        return _request(decode_object(body), body, arrival)
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None


def _request(body: JsonObject, raw: bytes, arrival: Arrival) -> Request:
    own = without(body, "bardo")
    request = read(own, wire.Request, "")
    config = request.generation_config or wire.GenerationConfig()
    choice, carried_choice = _tool_choice(config.tool_choice)
    output_format, carries_format = _output_format(request)
    others = {**(carried_fields(config) or {}), **carried_choice}
    # In the order in which the client sent them: so its losses are told.
    extra = without(own, *READ, *(() if carries_format else ("response_format", "response_mime_type")))
    return Request(
        model=_model(request, arrival),
        messages=(*_system(request.system_instruction), *_messages(request)),
        tools=tuple(map(_tool, request.tools or ())),
        tool_choice=choice,
        max_output_tokens=as_whole_number(config.max_output_tokens, f"{_AT}max_output_tokens"),
        sampling=Sampling(
            temperature=config.temperature,
            top_p=config.top_p,
            seed=as_whole_number(config.seed, f"{_AT}seed"),
            stop=tuple(config.stop_sequences or ()),
        ),
        reasoning=_reasoning(config),
        output_format=output_format,
        stream=bool(request.stream if arrival.stream is None else arrival.stream),
        dialect=NAME,
        extra={**extra, **({"generation_config": others} if others else {})},
        inner_fields=inner_fields(own, _INNER),
        body=own,
        body_bytes=raw,
        options=read_options(body),
    )


def _model(request: wire.Request, arrival: Arrival) -> str:
    # An agent stands in the place of a model; its field is sent on as it came.
    model = arrival.model
    for name, value in (("model", request.model), ("agent", request.agent)):
        model = model or (take(value, str, name) if value is not None else "")
    if not model and request.model is None:
        raise InvalidRequest("model is required", param="model")
    return model.removeprefix("models/")


def _output_format(request: wire.Request) -> tuple[OutputFormat | None, bool]:
    """Return the shape of the answer, and whether its fields must go on as they came."""
    given, is_json = request.response_format, request.response_mime_type == "application/json"
    only = given[0] if isinstance(given, list) and len(given) == 1 else given
    if only is None:
        return (OutputFormat(mode="json_object"), False) if is_json else (None, True)
    if not isinstance(only, dict):
        return None, True
    if only.get("type") == "text":
        mime, schema = only.get("mime_type"), only.get("schema")
        if mime is not None and take(mime, str, "response_format.mime_type") == "application/json":
            more = bool(without(only, "type", "mime_type", "schema"))
            if schema is None:
                return OutputFormat(mode="json_object"), more
            return OutputFormat(mode="json_schema", schema=take(schema, dict, "response_format.schema")), more
    elif is_json:
        # Before it got types of its own, the field was the bare schema.
        return OutputFormat(mode="json_schema", schema=only), False
    return None, True


def _reasoning(config: wire.GenerationConfig) -> ReasoningPolicy | None:
    level, summaries = (config.thinking_level or "").lower(), config.thinking_summaries
    if not level and not summaries:
        return None
    words = {"thinking_level": config.thinking_level, "thinking_summaries": summaries}
    if level and level not in EFFORTS:
        hint = f"one of {', '.join(EFFORTS)}"
        raise InvalidRequest(f"unknown thinking_level {level!r:.60}", hint=hint, param=f"{_AT}thinking_level")
    return ReasoningPolicy(
        mode="effort" if level else "auto",
        effort=level or None,
        visible=None if summaries is None else summaries != "none",
        # Who only asks for summaries does not ask for thinking.
        enables_thinking=bool(level),
        raw_fields={"generation_config": {name: word for name, word in words.items() if word}},
    )


def _tool_choice(given: str | wire.ToolChoice | None) -> tuple[ToolChoice | None, JsonObject]:
    """Return the choice, and the field itself where bardo has no word for all of it."""
    if given is None:
        return None, {}
    if isinstance(given, str):
        return ToolChoice(mode=_mode(given)), {"tool_choice": given} if given == "validated" else {}
    allowed = given.allowed_tools or wire.AllowedTools()
    mode, names = allowed.mode or "auto", allowed.tools or []
    if mode == "any" and len(names) == 1:
        return ToolChoice(mode="named", name=names[0]), {}
    held = {name: value for name, value in (("mode", allowed.mode), ("tools", allowed.tools)) if value is not None}
    return ToolChoice(mode=_mode(mode)), {
        "tool_choice": {"allowed_tools": held} if given.allowed_tools is not None else {}
    }


def with_plain_choice(request: Request) -> Request:
    """Return the request without a choice among some of its tools, which only this dialect's targets take as it is."""
    config: JsonObject = request.extra.get("generation_config", {})
    given = config.get("tool_choice")
    allowed: JsonObject = given.get("allowed_tools", {}) if isinstance(given, dict) else {}
    if not allowed.get("tools"):
        return request
    plain = with_allowed_tools(request, allowed["tools"], required=_mode(allowed.get("mode") or "auto") == "required")
    if plain is request:
        return request
    extra = {**request.extra, "generation_config": without(config, "tool_choice")}
    remaining = {name: value for name, value in extra.items() if value or name != "generation_config"}
    return msgspec.structs.replace(plain, extra=remaining)


def _mode(word: str) -> Literal["auto", "none", "required"]:
    if word in _MODES:
        return _MODES[word]
    hint = f"one of {', '.join(_MODES)}"
    raise InvalidRequest(f"unknown tool_choice {word!r:.60}", hint=hint, param=f"{_AT}tool_choice")


def _tool(tool: wire.Function | Unknown) -> Tool:
    if isinstance(tool, Unknown):
        return Tool(name=tool.whole.value["type"], carried=Carried(NAME, tool.whole.value), hosted=True)
    return Tool(name=tool.name, description=tool.description or "", schema=tool.parameters, carried=carried(tool, NAME))


def _system(text: str | None) -> tuple[Message, ...]:
    return (Message("system", (TextBlock(text),)),) if text else ()


def _messages(request: wire.Request) -> tuple[Message, ...]:
    given = request.input
    if given is None:
        if request.continuation_token is not None:
            return ()
        raise InvalidRequest("input is required", param="input")
    if isinstance(given, str):
        return (Message("user", (TextBlock(given),)),)
    messages: list[Message] = []
    turn: tuple[Role, object] | None = None
    beside: Carried | None = None
    blocks: list[Block] = []
    for place, item in enumerate(given if isinstance(given, list) else [given]):
        goes_on, more = _item(item, f"input[{place}]" if isinstance(given, list) else "input")
        if turn is not None and goes_on != turn:
            messages.append(Message(turn[0], tuple(blocks), beside))
            blocks = []
        turn, beside = goes_on, carried(item, NAME) if isinstance(item, wire.UserInput) else None
        blocks += more
    return (*messages, Message(turn[0], tuple(blocks), beside)) if turn is not None else ()


def _item(item: wire.Item, at: str) -> tuple[tuple[Role, object], list[Block]]:
    """Return the turn that an item belongs to, and its blocks. Each input of the user is a turn of its own."""
    match item:
        case wire.UserInput():
            return ("user", at), _contents(item.content)
        case wire.FunctionResult():
            return ("user", "results"), [_result(item)]
        case wire.Text() | wire.Image() | wire.Document():
            return ("user", "contents"), [_medium(item)]
        case wire.Thought():
            return ("assistant", "steps"), [_thought(item, at)]
        case wire.ModelOutput():
            return ("assistant", "steps"), _output(item)
        case wire.FunctionCall():
            return ("assistant", "steps"), [_call(item)]
        case _:
            block = UnknownBlock(NAME, item.whole.value)
            is_content = item.whole.value["type"] in _OTHER_CONTENTS
            return (("user", "contents") if is_content else ("assistant", "steps")), [block]


def _thought(thought: wire.Thought, at: str) -> ReasoningBlock:
    opaque, texts, others, beside = tuple(states_of(thought.signature or "")), [], [], []
    for place, item in enumerate(thought.summary or ()):
        if item.type != "text":
            others.append(as_it_came(item))
        elif item.text is None:
            raise InvalidRequest(f"{at}.summary[{place}].text is required", param=f"{at}.summary[{place}].text")
        else:
            texts.append(item.text)
            beside.append(carried_fields(item) or {})
    others += beside if any(beside) else []
    fields = {**(carried_fields(thought) or {}), **({"summary": others} if others else {})}
    form = opaque[0].format if opaque else FORMAT
    summarised = form in _SUMMARISING
    return ReasoningBlock(
        # Clients keep the pieces of a stream as items.
        text="" if summarised else "".join(texts),
        summary=tuple(texts) if summarised else (),
        format=form,
        opaque=opaque,
        carried=Carried(NAME, fields) if fields else None,
    )


def _output(output: wire.ModelOutput) -> list[Block]:
    """Return the blocks of what the model says, whose first text has what stands beside; whole, where that has no text to stand with."""
    blocks, opaque = _contents(output.content), tuple(states_of(output.signature or ""))
    beside = carried_fields(output)
    if not opaque and beside is None:
        return blocks
    for place, block in enumerate(blocks):
        if isinstance(block, TextBlock):
            own = {} if block.carried is None else block.carried.fields
            blocks[place] = TextBlock(
                block.text, opaque, carried({**own, **({"step": beside} if beside else {})}, NAME)
            )
            return blocks
    return [UnknownBlock(NAME, as_it_came(output))]


def _call(call: wire.FunctionCall) -> ToolCallBlock:
    return ToolCallBlock(
        id=call.id,
        name=call.name,
        arguments=arguments_text(call.arguments or {}),
        opaque=tuple(states_of(call.signature or "")),
        carried=carried(call, NAME),
    )


def _result(result: wire.FunctionResult) -> ToolResultBlock:
    given, content = result.result, tuple[ResultPart, ...]()
    if isinstance(given, list):
        content = tuple(map(_medium, given))
    else:
        content = (TextBlock(given if isinstance(given, str) else encode_json(given).decode()),)
    return ToolResultBlock(
        call_id=result.call_id,
        name=result.name or "",
        content=content,
        is_error=result.is_error or False,
        carried=carried(result, NAME),
    )


def _contents(given: str | list[wire.Content] | wire.Content | None) -> list[Block]:
    if isinstance(given, str):
        return [TextBlock(given)]
    listed = given if isinstance(given, list) else [] if given is None else [given]
    return [_result(item) if isinstance(item, wire.FunctionResult) else _medium(item) for item in listed]


def _medium(part: wire.Medium) -> ResultPart:
    match part:
        case wire.Text():
            return TextBlock(part.text, carried=carried(part, NAME))
        case wire.Image() | wire.Document() if part.data or part.uri:
            block = ImageBlock if isinstance(part, wire.Image) else DocumentBlock
            return block(
                media_type=part.mime_type or "", data=part.data or "", url=part.uri or "", carried=carried(part, NAME)
            )
        case _:
            return UnknownBlock(NAME, part.whole.value if isinstance(part, Unknown) else as_it_came(part))

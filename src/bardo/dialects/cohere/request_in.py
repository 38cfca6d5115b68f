"""A Cohere v2 chat request, as a client sends it, to a Request."""

from __future__ import annotations

from typing import Literal

from bardo.dialects.cohere import wire
from bardo.dialects.cohere.wire import NAME, PLAN, SAMPLING, THINKING
from bardo.dialects.shared.control_fields import decode_sampling
from bardo.dialects.shared.json_values import JsonObject, decode_object, inner_fields, required, without, write_json
from bardo.dialects.shared.options import read_options
from bardo.dialects.shared.states import unseal
from bardo.dialects.shared.structs import as_it_came, carried, carried_fields, carried_with, names_of, read
from bardo.values.blocks import (
    Block,
    Carried,
    ImageBlock,
    Opaque,
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
    Effort,
    Message,
    OutputFormat,
    ReasoningPolicy,
    Request,
    Role,
    Tool,
    ToolChoice,
)
from bardo.values.wire import Arrival

_READ = names_of(wire.Request)
_APART = ("model", "bardo")
_INNER: dict[tuple[str, ...], frozenset[str]] = {("response_format",): names_of(wire.ResponseFormat)}
"""The fields read inside it."""


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read a request. Raises InvalidRequest naming the field."""
    try:
        fields = decode_object(body)
        # Fields that are only carried are not looked at: where one is unknown, the messages need no second look.
        request = read({name: value for name, value in fields.items() if name in _READ}, wire.Request, "")
        if request.max_tokens is not None and request.max_tokens < 1:
            raise InvalidRequest("max_tokens must be at least 1", param="max_tokens")
        return Request(
            model=arrival.model or required(fields, "model", str),
            messages=_messages(request.messages),
            tools=_tools(request, fields),
            tool_choice=None if request.tool_choice is None else _tool_choice(request.tool_choice),
            max_output_tokens=request.max_tokens,
            sampling=decode_sampling(fields, SAMPLING),
            reasoning=_reasoning(request),
            output_format=None if request.response_format is None else _output_format(request.response_format),
            stream=bool(request.stream if arrival.stream is None else arrival.stream),
            dialect=NAME,
            extra={
                name: value
                for name, value in fields.items()
                if name not in _READ and name not in _APART and value is not None
            },
            inner_fields=inner_fields(fields, _INNER),
            body={name: value for name, value in fields.items() if name != "bardo"},
            body_bytes=body,
            options=read_options(fields),
        )
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None


def _messages(messages: list[wire.Message]) -> tuple[Message, ...]:
    """Return the messages. A result has the name of the tool that was called before it."""
    names: dict[str, str] = {}
    turns: list[Message] = []
    for place, message in enumerate(messages):
        role = _ROLES.get(message.role)
        if role is None:
            param = f"messages[{place}].role"
            raise InvalidRequest(f"{param} is {message.role!r}", hint=f"use {', '.join(_ROLES)}", param=param)
        content = message.content or []
        parts = [wire.Text(text=content)] if isinstance(content, str) else content
        blocks: list[Block] = []
        if message.role == "tool":
            if message.tool_call_id is None:
                param = f"messages[{place}].tool_call_id"
                raise InvalidRequest(f"{param} is required", param=param)
            blocks.append(
                ToolResultBlock(
                    call_id=message.tool_call_id,
                    name=names.get(message.tool_call_id, ""),
                    content=tuple([_result_part(part) for part in parts]),
                )
            )
        else:
            blocks += [_thinking(part) if isinstance(part, wire.Thinking) else _result_part(part) for part in parts]
        if message.role == "assistant":
            if message.tool_plan:
                # A reply has its plan behind the thinking, before the text.
                behind = (n for n, block in enumerate(blocks) if not isinstance(block, ReasoningBlock))
                blocks.insert(next(behind, len(blocks)), ReasoningBlock(text=message.tool_plan, format=PLAN))
            for call in message.tool_calls or ():
                names[call.id] = call.function.name
                blocks.append(_call(call))
        turns.append(Message(role, tuple(blocks), carried(carried_fields(message, _MISPLACED[message.role]), NAME)))
    return tuple(turns)


_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "user"}
_MISPLACED: dict[str, tuple[str, ...]] = dict.fromkeys(_ROLES, ("tool_plan", "tool_calls", "tool_call_id"))
_MISPLACED |= {"assistant": ("tool_call_id",), "tool": ("tool_plan", "tool_calls")}
"""The fields read in messages of other roles only."""


def _thinking(part: wire.Thinking) -> ReasoningBlock:
    states, rest = _unsealed(part)
    form = states[0].format if states else THINKING
    return ReasoningBlock(text=part.thinking, format=form, opaque=states, carried=rest)


def _result_part(part: wire.Part) -> ResultPart:
    """Return a part that may stand in the result of a tool too: thinking is none of what a tool gives."""
    match part:
        case wire.Text():
            states, rest = _unsealed(part)
            return TextBlock(part.text, states, rest)
        case wire.Image():
            return _image(part)
        case wire.Document():
            return _document(part)
        case wire.Thinking():
            return UnknownBlock(NAME, as_it_came(part))
        case _:
            return UnknownBlock(NAME, part.whole.value)


def _document(part: wire.Document) -> TextBlock | UnknownBlock:
    """Return a document as text for other dialects, which goes back to Cohere as it was; one without data stays unknown."""
    document = part.document
    data = document.get("data") if isinstance(document, dict) else document
    if not isinstance(data, str | dict) or not data:
        return UnknownBlock(NAME, as_it_came(part))
    text = data if isinstance(data, str) else write_json(data).decode()
    return TextBlock(text, carried=carried({"document": document, **(carried_fields(part) or {})}, NAME))


def _image(part: wire.Image) -> ImageBlock:
    url, detail = part.image_url.url, part.image_url.detail or ""
    rest = carried_with(part, "image_url", part.image_url, NAME)
    head, comma, data = url.partition(";base64,")
    if head.startswith("data:") and comma:
        return ImageBlock(media_type=head.removeprefix("data:"), data=data, detail=detail, carried=rest)
    return ImageBlock(url=url, detail=detail, carried=rest)


def _call(call: wire.Call) -> ToolCallBlock:
    states, rest = _unsealed(call)
    if call.function.others is not None and (more := carried_fields(call.function)):
        rest = Carried(NAME, {**(rest.fields if rest else {}), "function": more})
    return ToolCallBlock(
        id=call.id, name=call.function.name, arguments=call.function.arguments or "", opaque=states, carried=rest
    )


def _unsealed(part: wire.Signed) -> tuple[tuple[Opaque, ...], Carried | None]:
    """Return the opaque state that bardo sealed, and the other fields."""
    states = unseal(part.signature) if isinstance(part.signature, str) else None
    if states is None:
        return (), carried(part, NAME)
    return states, carried(without(carried_fields(part) or {}, "signature"), NAME)


def _tools(request: wire.Request, fields: JsonObject) -> tuple[Tool, ...]:
    """Return the functions, and tools of other types, which are carried whole."""
    tools: list[Tool] = []
    for place, tool in enumerate(request.tools or ()):
        whole, kind, function = fields["tools"][place], tool.type or "function", tool.function
        if kind != "function":
            tools.append(Tool(name=kind, carried=Carried(NAME, whole), hosted=True))
            continue
        if function is None:
            param = f"tools[{place}].function"
            raise InvalidRequest(f"{param} is required", param=param)
        rest = carried_fields(tool) or {}
        if more := carried_fields(function):
            rest["function"] = more
        tools.append(
            Tool(
                name=function.name,
                description=function.description or "",
                schema=function.parameters,
                strict=request.strict_tools,
                carried=carried(rest, NAME),
            )
        )
    return tuple(tools)


_CHOICES: dict[str, Literal["none", "required"]] = {"NONE": "none", "REQUIRED": "required"}


def _tool_choice(choice: str) -> ToolChoice:
    if choice not in _CHOICES:
        raise InvalidRequest(f"tool_choice is {choice!r}", hint="use REQUIRED or NONE", param="tool_choice")
    return ToolChoice(mode=_CHOICES[choice])


def _reasoning(request: wire.Request) -> ReasoningPolicy | None:
    """Return how the model should think; what else stands in `thinking` is carried."""
    thinking = request.thinking
    kind = None if thinking is None else thinking.type
    budget = None if thinking is None else thinking.token_budget
    if kind not in (None, "enabled", "disabled"):
        raise InvalidRequest(f"thinking.type is {kind!r}", hint="use enabled or disabled", param="thinking.type")
    if budget is not None and budget < 1:
        raise InvalidRequest("thinking.token_budget must be at least 1", param="thinking.token_budget")
    level = None if request.reasoning_effort is None else _level(request.reasoning_effort)
    if kind is None and level is None:
        return None
    effort = None if level == "none" else level
    off = kind == "disabled" or (kind is None and level == "none")
    rest = None if thinking is None else carried_fields(thinking)
    raw_fields: JsonObject = {}
    if kind is not None:
        raw_fields["thinking"] = {"type": kind} if budget is None else {"type": kind, "token_budget": budget}
    if level is not None:
        raw_fields["reasoning_effort"] = level
    return ReasoningPolicy(
        mode="off" if off else "budget" if budget is not None else "auto" if effort is None else "effort",
        budget=budget,
        effort=effort,
        carried=carried({"thinking": rest} if rest else None, NAME),
        raw_fields=raw_fields,
    )


def _level(word: str) -> Effort | Literal["none"]:
    if word == "none":
        return "none"
    for level in EFFORTS:
        if word == level:
            return level
    hint = f"use one of none, {', '.join(EFFORTS)}"
    raise InvalidRequest(f"reasoning_effort is {word!r}", hint=hint, param="reasoning_effort")


def _output_format(wanted: wire.ResponseFormat) -> OutputFormat | None:
    if wanted.type == "text":
        return None
    if wanted.type != "json_object":
        hint = "use text or json_object"
        raise InvalidRequest("response_format.type is no such type", hint=hint, param="response_format.type")
    schema = wanted.schema if wanted.json_schema is None else wanted.json_schema
    if schema is None:
        return OutputFormat(mode="json_object")
    return OutputFormat(mode="json_schema", name="answer", schema=schema, strict=True)

"""A Cohere v2 chat request, as a client sends it, to a Request.

The messages of a Cohere request to ours.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from bardo.dialects.cohere import wire
from bardo.dialects.cohere.wire import NAME, PLAN, SAMPLING, THINKING
from bardo.dialects.shared.control_fields import decode_sampling
from bardo.dialects.shared.json_values import decode_object, optional, required, without, write_json
from bardo.dialects.shared.options import read_options
from bardo.dialects.shared.states import unseal
from bardo.dialects.shared.structs import as_it_came, carried_fields, read
from bardo.dialects.shared.tools import read_tool
from bardo.values.blocks import (
    Block,
    Carried,
    ImageBlock,
    Opaque,
    ReasoningBlock,
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

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "user"}


def read_messages(messages: list[Any]) -> tuple[Message, ...]:
    """Return the messages. Raises InvalidRequest naming the field."""
    names: dict[str, str] = {}
    return tuple(
        [
            _message(read(one, wire.Message, f"messages[{place}]"), f"messages[{place}].", names)
            for place, one in enumerate(messages)
        ]
    )


def _message(message: wire.Message, at: str, names: dict[str, str]) -> Message:
    role = _ROLES.get(message.role)
    if role is None:
        raise InvalidRequest(f"{at}role is {message.role!r}", hint=f"use {', '.join(_ROLES)}", param=f"{at}role")
    carried = _carried(carried_fields(message))
    if message.role == "tool":
        call_id = message.tool_call_id
        if call_id is None:
            raise InvalidRequest(f"{at}tool_call_id is required", param=f"{at}tool_call_id")
        # Thinking is none of what a tool gives.
        content = tuple(
            UnknownBlock(NAME, as_it_came(part)) if isinstance(part, wire.Thinking) else _block(part)
            for part in _parts(message)
        )
        result = ToolResultBlock(call_id=call_id, name=names.get(call_id, ""), content=content)  # type: ignore[arg-type]
        return Message(role, (result,), carried)
    blocks = [_block(part) for part in _parts(message)]
    if message.role == "assistant":
        calls = [_call(call) for call in message.tool_calls or ()]
        names |= {call.id: call.name for call in calls}
        blocks = [*_with_plan(blocks, message.tool_plan or ""), *calls]
    return Message(role, tuple(blocks), carried)


def _parts(message: wire.Message) -> list[wire.Part]:
    content = message.content or []
    return [wire.Text(text=content)] if isinstance(content, str) else content


def _with_plan(blocks: list[Block], plan: str) -> list[Block]:
    """Put the plan where a reply has it: behind the thinking, before what is said."""
    if not plan:
        return blocks
    place = next((n for n, block in enumerate(blocks) if not isinstance(block, ReasoningBlock)), len(blocks))
    return [*blocks[:place], ReasoningBlock(text=plan, format=PLAN), *blocks[place:]]


def _block(part: wire.Part) -> Block:
    match part:
        case wire.Text():
            states, rest = _unsealed(part)
            return TextBlock(part.text, states, _carried(rest))
        case wire.Thinking():
            states, rest = _unsealed(part)
            form = states[0].format if states else THINKING
            return ReasoningBlock(text=part.thinking, format=form, opaque=states, carried=_carried(rest))
        case wire.Image():
            return _image(part)
        case wire.Document():
            return _document(part)
        case _:
            return UnknownBlock(NAME, part.whole.value)


def _document(part: wire.Document) -> TextBlock | UnknownBlock:
    """Return a document as text for other dialects, which goes back to Cohere as it was; one without data stays unknown."""
    document = part.document
    data = document.get("data") if isinstance(document, dict) else document
    if not isinstance(data, str | dict) or not data:
        return UnknownBlock(NAME, as_it_came(part))
    text = data if isinstance(data, str) else write_json(data).decode()
    return TextBlock(text, carried=_carried({"document": document, **(carried_fields(part) or {})}))


def _image(part: wire.Image) -> ImageBlock:
    url, detail, carried = part.image_url.url, part.image_url.detail or "", _carried(carried_fields(part))
    head, comma, data = url.partition(";base64,")
    if head.startswith("data:") and comma:
        return ImageBlock(media_type=head.removeprefix("data:"), data=data, detail=detail, carried=carried)
    return ImageBlock(url=url, detail=detail, carried=carried)


def _call(call: wire.Call) -> ToolCallBlock:
    states, rest = _unsealed(call)
    more = carried_fields(call.function)
    return ToolCallBlock(
        id=call.id,
        name=call.function.name,
        arguments=call.function.arguments or "",
        opaque=states,
        carried=_carried({**(rest or {}), **({"function": more} if more else {})}),
    )


def _unsealed(part: wire.Text | wire.Thinking | wire.Call) -> tuple[tuple[Opaque, ...], dict[str, Any] | None]:
    """Return the opaque state that bardo sealed, and the other fields."""
    fields = carried_fields(part)
    states = unseal(part.signature) if isinstance(part.signature, str) else None
    return ((), fields) if states is None else (states, without(fields or {}, "signature"))


def _carried(fields: dict[str, Any] | None) -> Carried | None:
    return Carried(NAME, fields) if fields else None


READ = frozenset(
    (
        "model", "messages", "tools", "strict_tools", "tool_choice", "max_tokens", "thinking", "reasoning_effort",
        "response_format", "stream", "bardo", *SAMPLING.values(),
    )
)  # fmt: skip
_CHOICES: dict[str, Literal["none", "required"]] = {"NONE": "none", "REQUIRED": "required"}


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read a request. Raises InvalidRequest naming the field."""
    try:
        return _read(decode_object(body), body, arrival)
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None


def _read(fields: dict[str, Any], raw: bytes, arrival: Arrival) -> Request:
    stream = optional(fields, "stream", bool)
    return Request(
        model=arrival.model or required(fields, "model", str),
        messages=read_messages(required(fields, "messages", list)),
        tools=_tools(fields),
        tool_choice=_tool_choice(fields),
        max_output_tokens=_limit(fields),
        sampling=decode_sampling(fields, SAMPLING),
        reasoning=_reasoning(fields),
        output_format=_output_format(fields),
        stream=bool(stream if arrival.stream is None else arrival.stream),
        dialect=NAME,
        extra={name: value for name, value in fields.items() if name not in READ and value is not None},
        body={name: value for name, value in fields.items() if name != "bardo"},
        body_bytes=raw,
        options=read_options(fields),
    )


def _tools(fields: dict[str, Any]) -> tuple[Tool, ...]:
    strict = optional(fields, "strict_tools", bool)
    tools = [read_tool(tool, f"tools[{n}]", NAME) for n, tool in enumerate(optional(fields, "tools", list) or ())]
    return tuple(tool if tool.hosted else msgspec.structs.replace(tool, strict=strict) for tool in tools)


def _tool_choice(fields: dict[str, Any]) -> ToolChoice | None:
    choice = optional(fields, "tool_choice", str)
    if choice is None:
        return None
    if choice not in _CHOICES:
        raise InvalidRequest(f"tool_choice is {choice!r}", hint="use REQUIRED or NONE", param="tool_choice")
    return ToolChoice(mode=_CHOICES[choice])


def _limit(fields: dict[str, Any]) -> int | None:
    limit = optional(fields, "max_tokens", int)
    if limit is not None and limit < 1:
        raise InvalidRequest("max_tokens must be at least 1", param="max_tokens")
    return limit


def _reasoning(fields: dict[str, Any]) -> ReasoningPolicy | None:
    """Return how the model should think; what else stands in `thinking` is carried."""
    thinking: dict[str, Any] = optional(fields, "thinking", dict) or {}
    kind = required(thinking, "type", str, "thinking.") if fields.get("thinking") is not None else None
    if kind not in (None, "enabled", "disabled"):
        raise InvalidRequest(f"thinking.type is {kind!r}", hint="use enabled or disabled", param="thinking.type")
    budget = optional(thinking, "token_budget", int, "thinking.")
    if budget is not None and budget < 1:
        raise InvalidRequest("thinking.token_budget must be at least 1", param="thinking.token_budget")
    level = _effort(fields)
    if kind is None and level is None:
        return None
    effort = None if level == "none" else level
    rest = {name: one for name, one in thinking.items() if name not in ("type", "token_budget") and one is not None}
    return ReasoningPolicy(
        mode="off" if kind == "disabled" or (kind is None and level == "none") else _amount(budget, effort),
        budget=budget,
        effort=effort,
        carried=Carried(NAME, {"thinking": rest}) if rest else None,
        raw_fields=_raw_fields(kind, budget, level),
    )


def _amount(budget: int | None, effort: Effort | None) -> Literal["budget", "effort", "auto"]:
    return "budget" if budget is not None else "auto" if effort is None else "effort"


def _raw_fields(kind: str | None, budget: int | None, effort: str | None) -> dict[str, Any]:
    """Return the words that were read, as they stand in the body."""
    thinking = {"type": kind} if budget is None else {"type": kind, "token_budget": budget}
    found = {"thinking": thinking if kind else None, "reasoning_effort": effort}
    return {name: value for name, value in found.items() if value is not None}


def _effort(fields: dict[str, Any]) -> Effort | Literal["none"] | None:
    given = optional(fields, "reasoning_effort", str)
    if given is None or given == "none":
        return None if given is None else "none"
    for level in EFFORTS:
        if given == level:
            return level
    hint = f"use one of none, {', '.join(EFFORTS)}"
    raise InvalidRequest(f"reasoning_effort is {given!r}", hint=hint, param="reasoning_effort")


def _output_format(fields: dict[str, Any]) -> OutputFormat | None:
    wanted = optional(fields, "response_format", dict)
    if wanted is None or wanted.get("type") == "text":
        return None
    if wanted.get("type") != "json_object":
        hint = "use text or json_object"
        raise InvalidRequest("response_format.type is no such type", hint=hint, param="response_format.type")
    schema = optional(wanted, "json_schema", dict, "response_format.")
    # The older name of the same field.
    schema = optional(wanted, "schema", dict, "response_format.") if schema is None else schema
    if schema is None:
        return OutputFormat(mode="json_object")
    return OutputFormat(mode="json_schema", name="answer", schema=schema, strict=True)

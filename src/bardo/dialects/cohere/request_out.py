"""A Request for Cohere's v2 chat: thinking and text as content, the plan for calls in its own field, results as messages of their own."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.catalog.fragments import merge_fields
from bardo.catalog.rows import ProviderRow
from bardo.dialects.cohere.wire import NAME, PLAN, SAMPLING, TITLE
from bardo.dialects.shared.control_fields import encode_sampling
from bardo.dialects.shared.declaration import Declaration, limitations, sampling_fields
from bardo.dialects.shared.json_values import JsonObject
from bardo.dialects.shared.losses import Losses
from bardo.dialects.shared.media import behind_results
from bardo.dialects.shared.tools import write_tool
from bardo.values.blocks import (
    Block,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
    argument_text,
)
from bardo.values.request import Control, Message, Request, Tool, ToolChoice

DECLARATION = Declaration(
    dialect=NAME,
    title=TITLE,
    expresses=frozenset(("tools.strict", "image.detail", *sampling_fields(SAMPLING))),
    lacks={
        **limitations("Cohere takes no such documents", "document"),
        **limitations("Cohere answers once", "choices", sent=1),
        **limitations("Cohere has no such parameter", *sampling_fields(SAMPLING, others=True)),
        **limitations("Cohere leaves the number of calls to the model", "tool_choice.parallel", same=(True,)),
        **limitations("Cohere does not tell a failed tool from another", "tool_result.is_error"),
        **limitations("Cohere always holds to the schema", "output_format.strict", same=(True,)),
        **limitations("Cohere has no such field", "output_format.description"),
    },
)


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> JsonObject:
    """Return the body."""
    messages = behind_results([wire for message in request.messages for wire in _messages(message, losses)])
    body: JsonObject = {"model": request.model, "messages": messages}
    offered, choice = _offered(request, losses)
    tools = [wire for tool in offered for wire in write_tool(tool, losses)]
    if tools:
        body |= {"tools": tools, **choice, **_strict(offered, losses)}
    if request.max_output_tokens is not None:
        body["max_tokens"] = request.max_output_tokens
    body |= encode_sampling(request.sampling, SAMPLING)
    body |= _response_format(request, losses, tools=bool(tools))
    if request.stream:
        body["stream"] = True
    body |= losses.own_extra(request)
    return merge_fields(body, encode_control(request, losses))


def _messages(message: Message, losses: Losses) -> list[JsonObject]:
    """Return the results of a message as messages, and behind them one of all else: pictures from tools stand in it, first."""
    fields = losses.own_fields(message.carried)
    results = [block for block in message.blocks if isinstance(block, ToolResultBlock)]
    calls = [block for block in message.blocks if isinstance(block, ToolCallBlock)]
    pictures = [part for result in results for part in result.content if isinstance(part, ImageBlock)]
    if pictures:
        why = "Cohere takes no pictures from tools"
        losses.lose("tool_result.image", "in the result", why, sent="in a user message after it")
    written: list[JsonObject] = []
    for result in results:
        parts = [wire for part in result.content if not isinstance(part, ImageBlock) for wire in _part(part, losses)]
        answer = {"role": "tool", "tool_call_id": result.call_id, "content": _shortest(parts)}
        written.append({**answer, **losses.own_fields(result.carried)})
    if pictures or not results or len(results) < len(message.blocks):
        content: list[JsonObject] = []
        plans: list[ReasoningBlock] = []
        for block in (*pictures, *message.blocks):
            if calls and isinstance(block, ReasoningBlock) and block.format == PLAN:
                plans.append(block)
            else:
                content += _part(block, losses)
        wire: JsonObject = {"role": message.role}
        if content or not calls:
            wire["content"] = _shortest(content)
        if plans:
            for plan in plans:
                losses.lose_states(plan.opaque, sent="text")
            wire["tool_plan"] = "\n\n".join(plan.readable for plan in plans)
        if calls:
            wire["tool_calls"] = [_call(call, losses) for call in calls]
        written.append(wire)
    written[-1] |= fields
    return written


def _part(block: Block, losses: Losses) -> list[JsonObject]:
    """Return a block as a part of content, or none if it stands elsewhere or is empty."""
    match block:
        case ToolCallBlock() | ToolResultBlock() | DocumentBlock():
            return []
        case UnknownBlock():
            return [block.value] if block.dialect == NAME and isinstance(block.value, dict) else []
        case ReasoningBlock():
            text = block.readable
            losses.lose_states(block.opaque, sent="text" if text else None)
            losses.lose_fields(block.carried)
            fields = losses.own_fields(block.carried)
            return [{"type": "thinking", "thinking": text, **fields}] if text else []
        case ImageBlock():
            url = block.url or f"data:{block.media_type or 'image/png'};base64,{block.data}"
            detail = {"detail": block.detail} if block.detail else {}
            image = {"type": "image_url", "image_url": {"url": url, **detail}}
            return [merge_fields(image, losses.own_fields(block.carried))]
    fields = losses.own_fields(block.carried)
    if isinstance(block, TextBlock):
        losses.lose_states(block.opaque)
        if "document" in fields:
            return [{"type": "document", **fields}]
    return [{"type": "text", "text": block.text, **fields}] if block.text or fields else []


def _shortest(content: Sequence[JsonObject]) -> str | Sequence[JsonObject]:
    """Return content as a bare text where it is nothing else."""
    if not content:
        return ""
    return str(content[0]["text"]) if len(content) == 1 and content[0].keys() == {"type", "text"} else content


def _call(call: ToolCallBlock, losses: Losses) -> JsonObject:
    losses.lose_states(call.opaque)
    function = {"name": call.name, "arguments": argument_text(call.arguments)}
    carried = losses.own_fields(call.carried)
    if carried:
        function |= carried.get("function", {})
    rest = {name: value for name, value in carried.items() if name not in ("function", "signature")}
    return {"id": call.id, "type": "function", "function": function, **rest}


def encode_control(request: Request, losses: Losses) -> JsonObject:
    """Return the fields for thinking: the control, and a Cohere client's own words in the object that says whether to think."""
    control = request.control or Control()
    words = losses.own_fields(request.reasoning.carried) if request.reasoning is not None else {}
    if words and "thinking" not in control.fields:
        losses.lose("thinking", words["thinking"], "it goes only beside a type of thinking")
        words = {}
    return merge_fields(words, control.fields)


def _offered(request: Request, losses: Losses) -> tuple[tuple[Tool, ...], JsonObject]:
    """Return the tools, and which may be called: Cohere cannot name one, but one alone needs no name."""
    choice = request.tool_choice or ToolChoice()
    if choice.mode in ("none", "required"):
        return request.tools, {"tool_choice": choice.mode.upper()}
    if choice.mode != "named":
        return request.tools, {}
    losses.lose("tool_choice", choice.name, "Cohere cannot name a tool, so only that one is offered", sent="REQUIRED")
    return tuple(tool for tool in request.tools if tool.name == choice.name), {"tool_choice": "REQUIRED"}


def _strict(tools: tuple[Tool, ...], losses: Losses) -> JsonObject:
    values = {tool.strict for tool in tools if not tool.hosted}
    if len(values) > 1:
        asked = [tool.name for tool in tools if tool.strict]
        losses.lose("tools.strict", asked, "Cohere is strict with all tools or with none", sent=True in values)
    if True in values:
        return {"strict_tools": True}
    return {"strict_tools": False} if values == {False} else {}


def _response_format(request: Request, losses: Losses, *, tools: bool) -> JsonObject:
    wanted = request.output_format
    if wanted is None:
        return {}
    if tools and request.dialect != NAME:
        losses.lose("response_format", wanted.name or wanted.mode, "Cohere takes no format beside tools")
        return {}
    schema = {"json_schema": wanted.schema} if wanted.mode == "json_schema" and wanted.schema is not None else {}
    return {"response_format": {"type": "json_object", **schema}}

"""A Request for a provider that speaks Anthropic Messages.

Messages for Anthropic: system text on top, turns that alternate, tool results first.

What a request says of thinking: the control it was given, and beside it what the caller said in this dialect and no other knows.

Bedrock hands Claude the same object, so Converse writes it here too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.catalog.dialect_models import dialect_models
from bardo.catalog.fragments import merge_fields
from bardo.catalog.rows import ProviderRow
from bardo.dialects.anthropic_messages.wire import (
    FORMAT,
    MARKER,
    NAME,
    PARTS,
    PARTS_JOIN,
    SAMPLING,
    SIGNED_BLOCKS,
    TITLE,
)
from bardo.dialects.shared.control_fields import encode_sampling
from bardo.dialects.shared.declaration import Declaration, limitations
from bardo.dialects.shared.json_values import INVALID_JSON, input_of, is_object, without
from bardo.dialects.shared.losses import Losses, fold_without_loss
from bardo.dialects.shared.media import PDF, data_of, text_of
from bardo.dialects.shared.repeated_tools import written_tools
from bardo.dialects.shared.turns import WrittenTurns, answers_without_thinking
from bardo.values.blocks import (
    Block,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    RefusalBlock,
    ResultPart,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
    fields_for,
    has_no_arguments,
)
from bardo.values.degradation import Degradation
from bardo.values.histories import Messages, fold_history
from bardo.values.request import Message, Request, Tool, ToolChoice

Wire = dict[str, Any]
# What is found of a conversation once.
_WRITTEN = "anthropic_messages.written"
_BLANK = "history.empty_text"
_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


def encode_messages(request: Request, losses: Losses) -> Wire:
    """Return the `system` and `messages` fields."""
    leading = 0
    while leading < len(request.messages) and _is_prompt(request.messages[leading]):
        leading += 1
    system = [wire for message in request.messages[:leading] for wire in _system(message, losses)]
    keeps_system = request.dialect == NAME or dialect_models(NAME, request.model).system_turns
    form = (keeps_system, losses.dialect, losses.markers)

    def extend(found: WrittenTurns, messages: Messages, place: int) -> WrittenTurns:
        new = [_turn(message, losses, keeps_system=keeps_system) for message in messages[place:]]
        return found.extended(new, _as_sent)

    if request.dialect == NAME and has_blank_text(request):
        losses.lose(_BLANK, "", "text of nothing but space is not accepted")
    written = fold_without_loss(request.messages[leading:], _WRITTEN, form, losses, WrittenTurns([], []), extend)
    fields: Wire = {"system": _shortest(system)} if system else {}
    return {**fields, "messages": written.sent}


def has_blank_text(request: Request) -> bool:
    """Whether a text has nothing but space in it: Anthropic refuses those, and they are left out."""

    def extend(found: bool, messages: Messages, place: int) -> bool:
        return found or any(
            isinstance(block, TextBlock) and not block.text.strip()
            for message in messages[place:]
            for block in message.blocks
        )

    return fold_history(request.messages, "blank_text", None, False, extend)


def _is_prompt(message: Message) -> bool:
    # A system message that carries fields (an effort for the turns after it) means its place.
    return message.role == "system" and not fields_for(NAME, message.carried)


def _system(message: Message, losses: Losses) -> list[Wire]:
    written = [wire for block in message.blocks for wire in _block(block, losses)]
    for wire in written:
        if wire.get("type") != "text":
            losses.lose_each("system", wire.get("type"), "Anthropic's system prompt is text")
    return _with_last_marker(
        [wire for wire in written if wire.get("type") == "text"], losses.own_fields(message.carried), losses
    )


def _turn(message: Message, losses: Losses, *, keeps_system: bool) -> Wire:
    fields = dict(losses.own_fields(message.carried))
    role: str = message.role
    if role == "system" and not keeps_system:
        role = "user"
        losses.lose("system", "system", "this model takes system text only before the conversation", sent="user")
    content = _with_last_marker([wire for block in message.blocks for wire in _block(block, losses)], fields, losses)
    return {"role": role, "content": content, **{name: value for name, value in fields.items() if name != MARKER}}


def _with_last_marker(blocks: list[Wire], fields: Wire, losses: Losses) -> list[Wire]:
    """Put a marker of the whole message on its last block: Anthropic marks blocks."""
    if MARKER not in fields:
        return blocks
    if not blocks:
        losses.lose(MARKER, fields[MARKER], "nothing is left of the message to be marked", key="empty")
        return blocks
    return [*blocks[:-1], {**blocks[-1], MARKER: fields[MARKER]}]


def _as_sent(turn: Wire) -> Wire:
    return {**turn, "content": _shortest(_results_first(turn))}


def _results_first(turn: Wire) -> list[Wire]:
    return sorted(turn["content"], key=lambda block: block.get("type") != "tool_result")


def _shortest(blocks: list[Wire]) -> str | list[Wire]:
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"} and blocks[0]["type"] == "text":
        return str(blocks[0]["text"])
    return blocks


def _block(block: Block, losses: Losses) -> list[Wire]:
    if isinstance(block, ReasoningBlock):
        return _thinking(block, losses)
    if isinstance(block, ToolCallBlock):
        return [_call(block, losses)]
    if isinstance(block, ToolResultBlock):
        return [_result(block, losses)]
    return _plain(block, losses)


def _plain(block: RefusalBlock | ResultPart, losses: Losses) -> list[Wire]:
    if isinstance(block, UnknownBlock):
        return _unknown(block)
    if isinstance(block, ImageBlock):
        return [_image(block, losses)]
    if isinstance(block, DocumentBlock):
        return _document(block, losses)
    if isinstance(block, TextBlock):
        losses.lose_states(block.opaque)
    if not block.text.strip():
        # Anthropic refuses text without a word in it.
        if block.text:
            losses.lose(_BLANK, block.text, "text of nothing but space is not accepted")
        return []
    return [{"type": "text", "text": block.text, **losses.own_fields(block.carried)}]


def _unknown(block: UnknownBlock) -> list[Wire]:
    if block.dialect == NAME and isinstance(block.value, dict):
        return [block.value]
    return []


def _image(block: ImageBlock, losses: Losses) -> Wire:
    inline = _DATA_URL.fullmatch(block.url)
    source: Wire = {"type": "url", "url": block.url}
    if inline or block.data or not block.url:
        media_type, data = (inline[1], inline[2]) if inline else (block.media_type or "image/png", block.data)
        source = {"type": "base64", "media_type": media_type, "data": data}
    return {"type": "image", "source": source, **losses.own_fields(block.carried)}


def _search_result(block: DocumentBlock, losses: Losses) -> list[Wire]:
    # Where a layer has changed the text, the parts are no longer what it says.
    own = losses.own_fields(block.carried)
    parts = own.get(PARTS, [])
    if PARTS_JOIN.join(parts) != block.text:
        parts = [block.text]
    own = {name: value for name, value in own.items() if name != PARTS}
    content = [{"type": "text", "text": part} for part in parts]
    return [{"type": "search_result", "source": block.source, "title": block.name, "content": content, **own}]


def _document(block: DocumentBlock, losses: Losses) -> list[Wire]:
    if block.source:
        return _search_result(block, losses)
    media_type, data = data_of(block)
    text = text_of(block)
    source: Wire = {"type": "url", "url": block.url}
    if text:
        source = {"type": "text", "media_type": "text/plain", "data": text}
    elif data:
        source = {"type": "base64", "media_type": media_type, "data": data}
    if data and not text and media_type.lower() != PDF:
        losses.lose("document", media_type, "Anthropic takes PDF and plain text")
        return []
    title = {"title": block.name} if block.name else {}
    return [{"type": "document", "source": source, **title, **losses.own_fields(block.carried)}]


def _thinking(block: ReasoningBlock, losses: Losses) -> list[Wire]:
    # Hosts that pass Claude's thinking on (OpenRouter, Snowflake) give it an id, for which Anthropic has no place.
    own = [state for state in block.opaque if state.format == FORMAT and state.kind != "id"]
    if not own:
        losses.lose_reasoning(block.opaque[0].format if block.opaque else "")
        return []
    losses.lose_states(block.opaque)
    losses.lose_fields(block.carried)
    signed = SIGNED_BLOCKS.sign(own)
    if signed.only_behind:
        return list(signed.behind)
    return [SIGNED_BLOCKS.thinking(block.text, signed.signature), *signed.behind]


def _call(block: ToolCallBlock, losses: Losses) -> Wire:
    losses.lose_states(block.opaque)
    if not has_no_arguments(block.arguments) and not is_object(block.arguments):
        losses.lose(
            "tool arguments", block.arguments, "input must be a JSON object", sent={INVALID_JSON: block.arguments}
        )
    return {
        "type": "tool_use",
        "id": block.id,
        "name": block.name,
        "input": input_of(block.arguments),
        **losses.own_fields(block.carried),
    }


def _result(block: ToolResultBlock, losses: Losses) -> Wire:
    content = [wire for part in block.content for wire in _plain(part, losses)]
    fields: Wire = {"content": _shortest(content)} if content else {}
    if block.is_error:
        fields["is_error"] = True
    return {
        "type": "tool_result",
        "tool_use_id": block.call_id,
        **fields,
        **losses.own_fields(block.carried),
    }


def lacks_thinking(turns: Sequence[Wire]) -> bool:
    """Whether the tools that are being answered were called in a turn that does not begin with thinking."""
    return answers_without_thinking(
        turns,
        is_result=lambda block: block.get("type") == "tool_result",
        is_thinking=lambda block: block.get("type") in ("thinking", "redacted_thinking"),
    )


def control_fields(request: Request) -> dict[str, Any]:
    """Return the fragment of the body that the control is."""
    return request.control.fields if request.control is not None else {}


def own_words(request: Request) -> dict[str, Any]:
    """Return what the caller said in `thinking` beside the mode and the budget: a `display`, a `block_binding`."""
    policy = request.reasoning
    if policy is None or request.dialect != NAME:
        return {}
    read = without(policy.raw_fields.get("thinking", {}), "type", "budget_tokens")
    return {**read, **fields_for(NAME, policy.carried).get("thinking", {})}


def with_thinking(
    fields: dict[str, Any], settings: dict[str, Any], *, lacks_thinking: bool
) -> tuple[dict[str, Any], tuple[Degradation, ...]]:
    """Return `fields` with the words `settings` in their `thinking`, and what had to differ.

    `lacks_thinking`: tools are answered that were called in a turn without its thinking, which is refused beside a budget.
    """
    thinking = fields.get("thinking")
    if not isinstance(thinking, dict):
        why = "nothing is said of thinking here"
        return fields, tuple(Degradation(f"thinking.{name}", asked=value, why=why) for name, value in settings.items())
    degraded: tuple[Degradation, ...] = ()
    if lacks_thinking and "budget_tokens" in thinking:
        why = "the thinking that led to the tool calls is not at hand"
        degraded = (Degradation("reasoning", asked=thinking, sent="off", why=why),)
        thinking = {"type": "disabled"}
    # Thinking that is off has no display.
    kept = without(settings, "display") if thinking.get("type") == "disabled" else settings
    return {**fields, "thinking": {**thinking, **kept}}, degraded


_CHOICES = {"auto": "auto", "none": "none", "required": "any", "named": "tool"}
_LIMIT = 8192
"""`max_tokens`, which must be there, where neither the caller nor the control named one."""

DECLARATION = Declaration(
    dialect=NAME,
    title=TITLE,
    needs_turn=True,
    own_format=FORMAT,
    # "A maximum of 4 blocks with cache_control may be provided" (Anthropic's answer with status 400).
    markers={MARKER: 4},
    reasoning_why="only thinking that Anthropic signed may be sent back to it",
    expresses=frozenset(
        (
            "tools.strict",
            "tool_choice.parallel",
            "document",
            "document.source",
            "document.name",
            "tool_result.is_error",
            "sampling.top_k",
        )
    ),
    lacks={
        **limitations("Anthropic answers once", "choices", sent=1),
        **limitations(
            "Anthropic has no such parameter",
            "sampling.min_p",
            "sampling.repetition_penalty",
            "sampling.frequency_penalty",
            "sampling.presence_penalty",
            "sampling.seed",
        ),
        **limitations("Anthropic chooses the detail itself", "image.detail", same=("auto",)),
        **limitations("Anthropic always holds to the schema", "output_format.strict", same=(True,)),
        **limitations("Anthropic has no such field", "output_format.description"),
    },
)


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> dict[str, Any]:
    """Return the body. What is said of thinking is the request's control, and the caller's own words beside it."""
    said = encode_messages(request, losses)
    tools = _tools(request, losses)
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens or _LIMIT,
        **said,
        **({"tools": tools} if tools else {}),
        **_tool_choice(request.tool_choice, bool(tools), losses),
        **_sampling(request, losses),
        **({"stream": True} if request.stream else {}),
        **losses.own_extra(request),
    }
    config = {"output_config": shape} if (shape := _output_format(request, losses)) else {}
    lacks = lacks_thinking(said["messages"])
    return merge_fields(merge_fields(body, config), encode_control(request, losses, lacks_thinking=lacks))


def encode_control(request: Request, losses: Losses, *, lacks_thinking: bool = False) -> dict[str, Any]:
    """Return what is written of thinking: the control, and the caller's own words beside it."""
    fields, degraded = with_thinking(control_fields(request), own_words(request), lacks_thinking=lacks_thinking)
    losses.add_all(degraded)
    return fields


def _tools(request: Request, losses: Losses) -> list[dict[str, Any]] | msgspec.Raw:
    strict = _binds_schemas(request.model)

    def write(tools: Sequence[Tool], losses: Losses) -> list[dict[str, Any]]:
        return [wire for tool in tools if (wire := _tool(tool, losses, strict=strict)) is not None]

    return written_tools(request, losses, write, strict)


def _tool(tool: Tool, losses: Losses, *, strict: bool) -> dict[str, Any] | None:
    own = tool.carried is not None and tool.carried.dialect == NAME
    if tool.hosted:
        if own and tool.carried is not None:
            return tool.carried.fields
        losses.lose_tool(tool)
        return None
    schema = {"type": "object", **(tool.schema or {"properties": {}})}
    wire: dict[str, Any] = {"name": tool.name, "input_schema": schema}
    if tool.description:
        wire["description"] = tool.description
    if tool.strict is not None and (strict or own):
        wire["strict"] = tool.strict
    elif tool.strict:
        losses.lose("tools.strict", True, "this model does not bind tool arguments to their schema")
    return {**wire, **losses.own_fields(tool.carried)}


def _tool_choice(choice: ToolChoice | None, tools: bool, losses: Losses) -> dict[str, Any]:
    if choice is None:
        return {}
    if not tools:
        if choice.mode in ("required", "named"):
            losses.lose("tool_choice", choice.name or choice.mode, "no tool is left to choose")
        return {}
    wire: dict[str, Any] = {"type": _CHOICES[choice.mode]}
    if choice.mode == "named":
        wire["name"] = choice.name
    if choice.parallel is not None and choice.mode != "none":
        wire["disable_parallel_tool_use"] = not choice.parallel
    return {"tool_choice": wire}


def has_blank_stop(request: Request) -> bool:
    """Whether a stop sequence has nothing but space in it: Anthropic refuses those."""
    return not all(stop.strip() for stop in request.sampling.stop)


def _sampling(request: Request, losses: Losses) -> dict[str, Any]:
    sampling = request.sampling
    wire = encode_sampling(sampling, SAMPLING)
    stops = [stop for stop in sampling.stop if stop.strip()]
    if has_blank_stop(request):
        losses.lose("stop", list(sampling.stop), "stop sequences of nothing but space are not accepted", sent=stops)
    return {**without(wire, "stop_sequences"), **({"stop_sequences": stops} if stops else {})}


def _output_format(request: Request, losses: Losses) -> dict[str, Any]:
    shape = request.output_format
    if shape is None:
        return {}
    if shape.mode == "json_object":
        losses.lose("response_format", "json_object", "Anthropic needs a schema to promise JSON")
        return {}
    if request.dialect != NAME and not _binds_schemas(request.model):
        losses.lose("response_format", shape.name or "json_schema", "this model has no structured output")
        return {}
    return {"format": {"type": "json_schema", "schema": shape.schema}}


def _binds_schemas(model: str) -> bool:
    """Whether a model has structured output."""
    return dialect_models(NAME, model).binds_schemas

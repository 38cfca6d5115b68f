"""A Request for a provider that speaks Anthropic Messages.

System text stands on top, turns alternate, and results of tools come first in theirs. Bedrock hands Claude the same object for thinking,
so Converse writes it here too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, TypeAlias

import msgspec

from bardo.catalog.endpoint_choice import dialect_models
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
from bardo.dialects.shared.declaration import Declaration, limitations, sampling_fields
from bardo.dialects.shared.json_values import INVALID_JSON, JsonObject, input_of, is_object, without
from bardo.dialects.shared.losses import Losses
from bardo.dialects.shared.media import PDF, data_of, text_of
from bardo.dialects.shared.tools import no_arguments
from bardo.dialects.shared.turns import answers_without_thinking
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
from bardo.values.request import Message, Request, Tool, ToolChoice

Written: TypeAlias = dict[str, object]
"""An object of a body."""

_BLANK: Final = "history.empty_text"
_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)
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
            *sampling_fields(SAMPLING),
        )
    ),
    lacks={
        **limitations("Anthropic answers once", "choices", sent=1),
        **limitations("Anthropic has no such parameter", *sampling_fields(SAMPLING, others=True)),
        **limitations("Anthropic chooses the detail itself", "image.detail", same=("auto",)),
        **limitations("Anthropic always holds to the schema", "output_format.strict", same=(True,)),
        **limitations("Anthropic has no such field", "output_format.description"),
    },
)


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> JsonObject:
    """Return the body. Its fields for thinking are the request's control, and the caller's own words beside it."""
    system, turns = _messages(request, losses)
    if request.attribution:
        system.insert(0, {"type": "text", "text": request.attribution})
    binds = _binds_schemas(request.model)
    tools = [written for tool in request.tools if (written := _tool(tool, losses, binds=binds)) is not None]
    body: JsonObject = {
        "model": request.model,
        "max_tokens": request.max_output_tokens or _LIMIT,
        **({"system": _shortest(system)} if system else {}),
        "messages": [turn.written() for turn in turns],
        **({"tools": tools} if tools else {}),
        **_tool_choice(request.tool_choice, bool(tools), losses),
        **_sampling(request, losses),
        **({"stream": True} if request.stream else {}),
        **losses.own_extra(request),
    }
    if shape := _output_format(request, losses):
        body = merge_fields(body, {"output_config": shape})
    lacks_thinking = answers_without_thinking(
        (turn.role, types[0] in ("thinking", "redacted_thinking"), "tool_result" in types)
        for turn in reversed(turns)
        if (types := [block.get("type") for block in turn.blocks])
    )
    return merge_fields(body, encode_control(request, losses, lacks_thinking=lacks_thinking))


class _Turn:
    """One turn: its role, its blocks, and the fields that only this dialect has."""

    __slots__ = ("blocks", "fields", "role")

    def __init__(self, role: str, blocks: list[Written], fields: JsonObject) -> None:
        self.role, self.blocks, self.fields = role, blocks, fields

    def written(self) -> Written:
        """Return it as it is sent: results of tools first, and one text without fields as a string."""
        blocks = self.blocks
        results = [block for block in blocks if block.get("type") == "tool_result"] if len(blocks) > 1 else []
        if results:
            blocks = results + [block for block in blocks if block.get("type") != "tool_result"]
        written: Written = {"role": self.role, "content": _shortest(blocks)}
        return {**written, **self.fields} if self.fields else written


def _messages(request: Request, losses: Losses) -> tuple[list[Written], list[_Turn]]:
    """Return the blocks of the system prompt, and the turns; those of one role that have no fields are one."""
    messages = request.messages
    keeps_system = request.dialect == NAME or dialect_models(NAME, request.model).system_turns
    system: list[Written] = []
    turns: list[_Turn] = []
    leading = 0
    while leading < len(messages) and _leads(messages[leading]):
        system += _system(messages[leading], losses)
        leading += 1
    if request.dialect == NAME and has_blank_text(chain.from_iterable([message.blocks for message in messages])):
        losses.lose(_BLANK, "", "text of nothing but space is not accepted")
    for message in messages[leading:]:
        role: str = message.role
        fields: JsonObject = {} if message.carried is None else losses.own_fields(message.carried)
        if role == "system" and not keeps_system:
            role = "user"
            losses.lose("system", "system", "this model takes system text only before the conversation", sent="user")
        blocks = _blocks(message, losses, own=request.dialect == NAME)
        if MARKER in fields:
            blocks = _with_last_marker(blocks, fields, losses)
            fields = {name: value for name, value in fields.items() if name != MARKER}
        last = turns[-1] if turns else None
        if not fields and last is not None and last.role == role and not last.fields:
            last.blocks += blocks
        elif fields or blocks:
            turns.append(_Turn(role, blocks, fields))
    return system, turns


def _leads(message: Message) -> bool:
    # A system message that carries fields (an effort for the turns after it) means its place.
    return message.role == "system" and not fields_for(NAME, message.carried)


def has_blank_text(blocks: Iterable[Block]) -> bool:
    """Whether a text has nothing but space in it: Anthropic refuses those, and they are left out."""
    texts = [block.text for block in blocks if type(block) is TextBlock]
    return "" in texts or any(map(str.isspace, texts))


def _system(message: Message, losses: Losses) -> list[Written]:
    texts, unknown = [], [block.value for block in message.blocks if type(block) is UnknownBlock]
    for block in _blocks(message, losses):
        if block.get("type") == "text" or block in unknown:
            texts.append(block)
        else:
            losses.lose_each("system", block.get("type"), "Anthropic's system prompt is text")
    return _with_last_marker(texts, losses.own_fields(message.carried), losses)


def _with_last_marker(blocks: list[Written], fields: JsonObject, losses: Losses) -> list[Written]:
    """Put a marker of the whole message on its last block: Anthropic marks blocks."""
    if MARKER not in fields:
        return blocks
    if not blocks:
        losses.lose(MARKER, fields[MARKER], "nothing is left of the message to be marked", key="empty")
        return blocks
    return [*blocks[:-1], {**blocks[-1], MARKER: fields[MARKER]}]


def _shortest(blocks: list[Written]) -> object:
    """Return one text without fields as a string, anything else as it is."""
    if len(blocks) == 1 and len(blocks[0]) == 2 and blocks[0].get("type") == "text" and "text" in blocks[0]:
        return str(blocks[0]["text"])
    return blocks


def _blocks(message: Message, losses: Losses, *, own: bool = False) -> list[Written]:
    """Return the blocks of a message. `own`: its client writes this dialect."""
    written_blocks: list[Written] = []
    for block in message.blocks:
        if type(block) is ToolCallBlock:
            written_blocks.append(_call(block, losses))
        elif type(block) is ToolResultBlock:
            content: list[Written] = []
            for part in block.content:
                # No refusal of a result of nothing but space is known, and in a body that is sent on it stays as it came (2026-12).
                if own and type(part) is TextBlock and part.text.isspace():
                    content.append({"type": "text", "text": part.text, **losses.own_fields(part.carried)})
                else:
                    _add_part(part, content, losses)
            written: Written = {"type": "tool_result", "tool_use_id": block.call_id}
            if content:
                written["content"] = _shortest(content)
            if block.is_error:
                written["is_error"] = True
            written_blocks.append(written if block.carried is None else {**written, **losses.own_fields(block.carried)})
        elif type(block) is ReasoningBlock:
            written_blocks += _thinking(block, losses)
        else:
            _add_part(block, written_blocks, losses)  # type: ignore[arg-type]
    return written_blocks


def _add_part(block: RefusalBlock | ResultPart, written_parts: list[Written], losses: Losses) -> None:
    """Add a block that may also stand in the result of a tool."""
    if type(block) is TextBlock or type(block) is RefusalBlock:
        if type(block) is TextBlock and block.opaque:
            losses.lose_states(block.opaque)
        text = block.text
        if text and not text.isspace():
            written: Written = {"type": "text", "text": text}
            written_parts.append(written if block.carried is None else {**written, **losses.own_fields(block.carried)})
        elif text:
            # Anthropic refuses text without a word in it.
            losses.lose(_BLANK, text, "text of nothing but space is not accepted")
    elif type(block) is UnknownBlock:
        if block.dialect == NAME and isinstance(block.value, dict):
            written_parts.append(block.value)
    elif type(block) is ImageBlock:
        written_parts.append(_image(block, losses))
    elif type(block) is DocumentBlock:
        written_parts += _document(block, losses)


def _image(block: ImageBlock, losses: Losses) -> Written:
    inline = _DATA_URL.fullmatch(block.url)
    source: Written = {"type": "url", "url": block.url}
    if inline or block.data or not block.url:
        media_type, data = (inline[1], inline[2]) if inline else (block.media_type or "image/png", block.data)
        source = {"type": "base64", "media_type": media_type, "data": data}
    return merge_fields({"type": "image", "source": source}, losses.own_fields(block.carried))


def _document(block: DocumentBlock, losses: Losses) -> list[Written]:
    if block.source:
        # Where a layer has changed the text, the parts are no longer what it says.
        own = losses.own_fields(block.carried)
        parts = own.get(PARTS, [])
        if PARTS_JOIN.join(parts) != block.text:
            parts = [block.text]
        return [
            {
                "type": "search_result",
                "source": block.source,
                "title": block.name,
                "content": [{"type": "text", "text": part} for part in parts],
                **{name: value for name, value in own.items() if name != PARTS},
            }
        ]
    media_type, data = data_of(block)
    text = text_of(block)
    source: Written = {"type": "url", "url": block.url}
    if text:
        source = {"type": "text", "media_type": "text/plain", "data": text}
    elif data:
        source = {"type": "base64", "media_type": media_type, "data": data}
    if data and not text and media_type.lower() != PDF:
        losses.lose("document", media_type, "Anthropic takes PDF and plain text")
        return []
    title = {"title": block.name} if block.name else {}
    return [merge_fields({"type": "document", "source": source, **title}, losses.own_fields(block.carried))]


def _thinking(block: ReasoningBlock, losses: Losses) -> Sequence[Written]:
    own = [*filter(SIGNED_BLOCKS.is_own, block.opaque)]
    if not own:
        losses.lose_reasoning(block.opaque[0].format if block.opaque else "")
        return ()
    if len(own) < len(block.opaque):
        losses.lose_states(block.opaque)
    if block.carried is not None:
        losses.lose_fields(block.carried)
    signed = SIGNED_BLOCKS.sign(own)
    written = [*signed.behind]
    if not signed.only_behind:
        written.insert(0, SIGNED_BLOCKS.thinking(block.text, signed.signature))
    return [{**written[0], **fields_for(NAME, block.carried)}, *written[1:]]


def _call(block: ToolCallBlock, losses: Losses) -> Written:
    if block.opaque:
        losses.lose_states(block.opaque)
    arguments = block.arguments
    if is_object(arguments):
        given = msgspec.Raw(arguments.encode())
    else:
        given = input_of(arguments)
        if not has_no_arguments(arguments):
            losses.lose("tool arguments", arguments, "input must be a JSON object", sent={INVALID_JSON: arguments})
    written: Written = {"type": "tool_use", "id": block.id, "name": block.name, "input": given}
    return written if block.carried is None else {**written, **losses.own_fields(block.carried)}


def _tool(tool: Tool, losses: Losses, *, binds: bool) -> Written | None:
    own = tool.carried is not None and tool.carried.dialect == NAME
    if tool.hosted:
        if own and tool.carried is not None:
            return tool.carried.fields
        losses.lose_tool(tool)
        return None
    written: Written = {"name": tool.name, "input_schema": {"type": "object", **(tool.schema or no_arguments(tool))}}
    if tool.description:
        written["description"] = tool.description
    if tool.strict is not None and (binds or own):
        written["strict"] = tool.strict
    elif tool.strict:
        losses.lose("tools.strict", True, "this model does not bind tool arguments to their schema")
    return written | losses.own_fields(tool.carried)


def _tool_choice(choice: ToolChoice | None, tools: bool, losses: Losses) -> Written:
    if choice is None:
        return {}
    if not tools:
        if choice.mode in ("required", "named"):
            losses.lose("tool_choice", choice.name or choice.mode, "no tool is left to choose")
        return {}
    written: Written = {"type": _CHOICES[choice.mode]}
    if choice.mode == "named":
        written["name"] = choice.name
    if choice.parallel is not None and choice.mode != "none":
        written["disable_parallel_tool_use"] = not choice.parallel
    return {"tool_choice": written}


def _sampling(request: Request, losses: Losses) -> Written:
    written = encode_sampling(request.sampling, SAMPLING)
    if has_blank_stop(request):
        stops = [stop for stop in request.sampling.stop if stop.strip()]
        why = "stop sequences of nothing but space are not accepted"
        losses.lose("stop", list(request.sampling.stop), why, sent=stops)
        written = {**without(written, "stop_sequences"), **({"stop_sequences": stops} if stops else {})}
    return written


def has_blank_stop(request: Request) -> bool:
    """Whether a stop sequence has nothing but space in it: Anthropic refuses those."""
    return not all(stop.strip() for stop in request.sampling.stop)


def _output_format(request: Request, losses: Losses) -> Written:
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


def yields_to_calls(request: Request) -> bool:
    """Whether thinking within a budget may be off because tools are answered that were called without it, as the messages are."""
    return "budget_tokens" in (control_fields(request).get("thinking") or ()) and answers_without_thinking(
        (
            message.role,
            type(first := message.blocks[0]) is ReasoningBlock and any(map(SIGNED_BLOCKS.is_own, first.opaque)),
            ToolResultBlock in message.kinds,
        )
        for message in reversed(request.messages)
        if message.blocks
    )


def encode_control(request: Request, losses: Losses, *, lacks_thinking: bool = False) -> JsonObject:
    """Return the fields for thinking: the control, and the caller's own words beside it (a `display`, a `block_binding`)."""
    policy, own = request.reasoning, dict[str, object]()
    if policy is not None and request.dialect == NAME:
        own = without(policy.raw_fields.get("thinking", {}), "type", "budget_tokens")
        own |= fields_for(NAME, policy.carried).get("thinking", {})
    fields, degraded = with_thinking(control_fields(request), own, lacks_thinking=lacks_thinking)
    losses.add_all(degraded)
    return fields


def control_fields(request: Request) -> JsonObject:
    """Return the fragment of the body that the control is."""
    return request.control.fields if request.control is not None else {}


def with_thinking(
    fields: JsonObject, settings: Mapping[str, object], *, lacks_thinking: bool
) -> tuple[JsonObject, tuple[Degradation, ...]]:
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
    off = thinking.get("type") == "disabled"
    remaining = {name: value for name, value in settings.items() if not (off and name == "display")}
    return {**fields, "thinking": {**thinking, **remaining}}, degraded

"""A client's Messages request (or `count_tokens` request) to a Request.

The messages of a request: Anthropic's content blocks to ours.

What a request says beside its messages: tools, thinking, output format, sampling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from bardo.dialects.anthropic_messages import wire
from bardo.dialects.anthropic_messages.wire import FORMAT, NAME, PARTS, PARTS_JOIN, SAMPLING, SIGNED_BLOCKS
from bardo.dialects.shared.control_fields import decode_sampling
from bardo.dialects.shared.json_values import arguments_of, decode_object, optional, required, take, without
from bardo.dialects.shared.media import picture_or_document
from bardo.dialects.shared.options import read_options
from bardo.dialects.shared.repeated_items import read_messages, read_once, without_own
from bardo.dialects.shared.repeated_tools import REPEATED_TOOLS
from bardo.dialects.shared.states import Carrier, settled
from bardo.dialects.shared.structs import Unknown, Wire, as_it_came, carried_fields, read
from bardo.values.blocks import (
    Block,
    Carried,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.errors import InvalidRequest
from bardo.values.histories import LEAST_MESSAGES, Messages, fold_history
from bardo.values.request import (
    EFFORTS,
    BardoOptions,
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

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
# What is found of a message once.
_NAMED, _NAMES = "anthropic.named", "anthropic.names"


def read_system(value: Any) -> tuple[Message, ...]:
    """Return the system prompt, text or blocks, as the first message."""
    if value is None:
        return ()
    content: str | list[wire.Block] = read(value, str | list[wire.Block], "system")
    return (Message("system", _content(content)),)


def read_message(value: Any, place: str) -> Message:
    """Return one message. Raises InvalidRequest naming the field."""
    message = read(value, wire.Message, place)
    role = _ROLES.get(message.role)
    if role is None:
        at = f"{place}.role"
        raise InvalidRequest(f"{at} is {message.role!r}", hint=f"use {', '.join(_ROLES)}", param=at)
    return Message(role, _content(message.content), carried(message))


def with_tool_names(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return each tool result the name of the tool that was called, which other dialects ask for."""
    if len(messages) < LEAST_MESSAGES and not [one for one in messages if ToolResultBlock in one.kinds]:
        return tuple(messages)
    return fold_history(tuple(messages), _NAMES, None, _CallNames({}, frozenset(), ()), _extended).messages


class _CallNames(NamedTuple):
    """The names of the tools that were called, by the ids of the calls, the ids that results name, and the messages with the names."""

    names: dict[str, str]
    answered: frozenset[str]
    messages: tuple[Message, ...]


def _extended(found: _CallNames, messages: Messages, place: int) -> _CallNames:
    new = messages[place:]
    called = {block.id: block.name for message in new for block in message.blocks if isinstance(block, ToolCallBlock)}
    names = {**found.names, **called} if called else found.names
    if not names:
        before, begin = messages, len(messages)
    elif any(call_id in found.answered and found.names.get(call_id) != name for call_id, name in called.items()):
        # The last call of an id gives its name to all results, those before it too.
        before, begin = (), 0
    else:
        before, begin = found.messages, place
    answered = [block.call_id for message in new for block in message.blocks if isinstance(block, ToolResultBlock)]
    named = [_with_names(message, names) for message in messages[begin:]]
    return _CallNames(names, found.answered.union(answered), (*before, *named))


def _with_names(message: Message, names: dict[str, str]) -> Message:
    """Return a message whose tool results say which tools were called."""
    if ToolResultBlock not in message.kinds:
        return message
    return msgspec.structs.replace(message, blocks=tuple([_with_tool_name(block, names) for block in message.blocks]))


def _with_tool_name(block: Block, names: dict[str, str]) -> Block:
    if not isinstance(block, ToolResultBlock):
        return block
    return msgspec.structs.replace(block, name=names.get(block.call_id, ""))


def carried(struct: Wire) -> Carried | None:
    """Return what is only carried of a struct, or None where there is nothing."""
    fields = carried_fields(struct)
    return Carried(NAME, fields) if fields else None


def _content(content: str | list[wire.Block]) -> tuple[Block, ...]:
    if type(content) is str:
        return (TextBlock(content),) if content else ()
    blocks = [_READERS[type(block)](block) for block in content]
    return tuple(blocks) if Carrier not in map(type, blocks) else settled(blocks)


def _read_text(block: wire.Text) -> TextBlock:
    return TextBlock(block.text, carried=carried(block))


def _read_unknown(block: Unknown) -> UnknownBlock:
    return UnknownBlock(NAME, block.whole.value)


def _read_search_result(block: wire.SearchResult) -> DocumentBlock | UnknownBlock:
    """Return a result of the caller's own search as a document that says where it was found."""
    parts = [
        part.get("text") if isinstance(part, dict) and part.keys() == {"type", "text"} else None
        for part in block.content
    ]
    texts = [text for text in parts if isinstance(text, str)]
    if not block.source or not texts or len(texts) < len(parts):
        return UnknownBlock(NAME, as_it_came(block))
    rest = carried(block)
    if len(texts) > 1:
        rest = Carried(NAME, {**(rest.fields if rest else {}), PARTS: texts})
    return DocumentBlock(text=PARTS_JOIN.join(texts), name=block.title or "", source=block.source, carried=rest)


def _read_image(block: wire.Image) -> ImageBlock | DocumentBlock:
    """Return a picture; data of another type is a document, which some clients send so."""
    rest = carried(block)
    if isinstance(block.source, wire.UrlSource):
        return ImageBlock(url=block.source.url, carried=rest)
    return picture_or_document(block.source.media_type, block.source.data, carried=rest)


def _read_document(block: wire.Document) -> DocumentBlock:
    source, name = block.source, block.title or ""
    rest = carried(block)
    if isinstance(source, wire.UrlSource):
        return DocumentBlock(url=source.url, name=name, carried=rest)
    if isinstance(source, wire.TextSource):
        return DocumentBlock(media_type=source.media_type or "", text=source.data, name=name, carried=rest)
    return DocumentBlock(media_type=source.media_type or "", data=source.data, name=name, carried=rest)


def _read_thinking(block: wire.Thinking) -> ReasoningBlock:
    states = SIGNED_BLOCKS.decode_signature(block.signature or "")
    # Thinking without a signature is nobody's: bardo wrote it so for a provider that signs nothing.
    form = states[0].format if states else "thinking"
    return ReasoningBlock(text=block.thinking, format=form, opaque=states, carried=carried(block))


def _read_redacted(block: wire.RedactedThinking) -> ReasoningBlock | Carrier:
    found = SIGNED_BLOCKS.decode_redacted(block.data)
    form = found.states[0].format if found.states else FORMAT
    thinking = ReasoningBlock(format=form, opaque=found.states, carried=carried(block))
    return thinking if found.owner is None else Carrier(found.states, found.owner, thinking)


def _read_call(block: wire.ToolUse) -> ToolCallBlock:
    return ToolCallBlock(
        id=block.id,
        name=block.name,
        arguments=arguments_of(block.input or {}),
        carried=carried(block),
    )


def _read_result(block: wire.ToolResult) -> ToolResultBlock:
    content = block.content
    return ToolResultBlock(
        call_id=block.tool_use_id,
        content=(TextBlock(content),)
        if isinstance(content, str)
        else tuple([_READERS[type(part)](part) for part in content or ()]),
        is_error=bool(block.is_error),
        carried=carried(block),
    )


_READERS: dict[type, Callable[[Any], Any]] = {
    wire.Text: _read_text,
    wire.Image: _read_image,
    wire.Document: _read_document,
    wire.SearchResult: _read_search_result,
    wire.Thinking: _read_thinking,
    wire.RedactedThinking: _read_redacted,
    wire.ToolUse: _read_call,
    wire.ToolResult: _read_result,
    Unknown: _read_unknown,
}


_CHOICES: dict[str, Literal["auto", "none", "required", "named"]] = {
    "auto": "auto",
    "any": "required",
    "none": "none",
    "tool": "named",
}
_DISPLAYS = {"summarized": True, "omitted": False, "updates": True}
_KNOWN_DISPLAYS = ("summarized", "omitted")
"""What other dialects can say too."""


def read_tool(value: Any, at: str) -> Tool:
    """Return a function, or a tool that Anthropic defines itself (it has a `type`), which is carried whole."""
    fields = take(value, dict, at)
    kind = optional(fields, "type", str, f"{at}.") or "custom"
    if kind != "custom":
        name = optional(fields, "name", str, f"{at}.") or kind
        return Tool(name=name, hosted=True, carried=Carried(NAME, fields))
    tool = read(fields, wire.Tool, at)
    return Tool(
        name=tool.name,
        description=tool.description or "",
        schema=tool.input_schema,
        strict=tool.strict,
        carried=carried(tool),
    )


def read_tool_choice(fields: dict[str, Any]) -> ToolChoice | None:
    """Return which tools may be called."""
    value = fields.get("tool_choice")
    if value is None:
        return None
    choice = read(value, wire.ToolChoice, "tool_choice")
    if choice.type not in _CHOICES:
        raise InvalidRequest(
            f"tool_choice.type is {choice.type!r}", hint=f"use {', '.join(_CHOICES)}", param="tool_choice.type"
        )
    named = choice.type == "tool"
    if named and choice.name is None:
        raise InvalidRequest("tool_choice.name is required", param="tool_choice.name")
    one_at_a_time = choice.disable_parallel_tool_use
    return ToolChoice(
        mode=_CHOICES[choice.type],
        name=choice.name or "" if named else "",
        parallel=None if one_at_a_time is None else not one_at_a_time,
    )


def read_reasoning(fields: dict[str, Any], config: dict[str, Any]) -> ReasoningPolicy | None:
    """Return how the model should think. What else stands in the `thinking` object is carried."""
    thinking = optional(fields, "thinking", dict)
    effort = _effort(config)
    if thinking is None:
        told = {"output_config": {"effort": effort}}
        return (
            None
            if effort is None
            else ReasoningPolicy(mode="effort", effort=effort, enables_thinking=False, raw_fields=told)
        )
    kind = required(thinking, "type", str, "thinking.")
    display = optional(thinking, "display", str, "thinking.")
    if display is not None and display not in _DISPLAYS:
        raise InvalidRequest(
            f"thinking.display is {display!r}", hint=f"use {', '.join(_DISPLAYS)}", param="thinking.display"
        )
    rest = without(thinking, "type", "budget_tokens", "display" if display in _KNOWN_DISPLAYS else "")
    read = without(thinking, *rest)
    return ReasoningPolicy(
        mode=_mode(kind, effort),
        effort=effort,
        budget=_budget(thinking) if kind == "enabled" else None,
        visible=None if display is None else _DISPLAYS[display],
        between_tools=kind == "between_tools",
        carried=Carried(NAME, {"thinking": rest}) if rest else None,
        raw_fields={"thinking": read, **({"output_config": {"effort": effort}} if effort else {})},
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


def _budget(thinking: dict[str, Any]) -> int:
    budget = required(thinking, "budget_tokens", int, "thinking.")
    if budget < 1:
        raise InvalidRequest("thinking.budget_tokens must be at least 1", param="thinking.budget_tokens")
    return budget


def _effort(config: dict[str, Any]) -> Effort | None:
    word = optional(config, "effort", str, "output_config.")
    if word is None:
        return None
    for effort in EFFORTS:
        if effort == word:
            return effort
    raise InvalidRequest(
        f"output_config.effort is {word!r}", hint=f"use {', '.join(EFFORTS)}", param="output_config.effort"
    )


def read_output_format(fields: dict[str, Any], config: dict[str, Any]) -> OutputFormat | None:
    """Return the shape of the answer, from `output_config.format` or its older place, `output_format`."""
    found, at = optional(config, "format", dict, "output_config."), "output_config.format."
    if found is None:
        found, at = optional(fields, "output_format", dict), "output_format."
    if found is None:
        return None
    kind = required(found, "type", str, at)
    if kind != "json_schema":
        raise InvalidRequest(f"{at}type is {kind!r}", hint="use json_schema", param=f"{at}type")
    return OutputFormat(mode="json_schema", schema=required(found, "schema", dict, at), strict=True)


READ = frozenset(
    (
        "model",
        "messages",
        "system",
        "max_tokens",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "output_format",
        *SAMPLING.values(),
        "stream",
        "bardo",
    )
)


# All that most requests hold.
_COMMON = frozenset(("model", "messages", "system", "max_tokens", "stream", "tools", "tool_choice", *SAMPLING.values()))

_UNASKED = BardoOptions(omit_unasked=True)


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read a request. Raises InvalidRequest naming the field; one that is only counted needs no `max_tokens`."""
    try:
        return _read(decode_object(body), body, arrival)
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None


def _read(fields: dict[str, Any], raw: bytes, arrival: Arrival) -> Request:
    stream = optional(fields, "stream", bool)
    request = Request(
        model=arrival.model or required(fields, "model", str),
        messages=_messages(fields),
        tools=_tools(fields) if "tools" in fields else (),
        tool_choice=read_tool_choice(fields) if "tool_choice" in fields else None,
        max_output_tokens=_limit(fields, arrival.counting),
        sampling=decode_sampling(fields, SAMPLING),
        stream=bool(stream if arrival.stream is None else arrival.stream),
        dialect=NAME,
        body=fields,
        body_bytes=raw,
        options=_UNASKED,
    )
    return request if fields.keys() <= _COMMON else _with_others(request, fields)


def _with_others(request: Request, fields: dict[str, Any]) -> Request:
    """Return the request with all that its less common fields say."""
    config = optional(fields, "output_config", dict) or {}
    left = {name: value for name, value in config.items() if name not in ("effort", "format")}
    return msgspec.structs.replace(
        request,
        reasoning=read_reasoning(fields, config),
        output_format=_output_format(fields, config),
        extra={name: value for name, value in fields.items() if name not in READ}
        | ({"output_config": left} if left else {}),
        body=without_own(fields),
        options=_options(fields),
    )


def _output_format(fields: dict[str, Any], config: dict[str, Any]) -> OutputFormat | None:
    # The older name counts only where the newer says nothing, so one value of the two is all that is read.
    field = "output_format" if config.get("format") is None else "output_config"
    return read_once(fields, field, f"{NAME}.format", lambda: read_output_format(fields, config))


def _tools(fields: dict[str, Any]) -> tuple[Tool, ...]:
    return REPEATED_TOOLS.read(optional(fields, "tools", list) or [], NAME, _read_tools)


def _read_tools(tools: list[Any]) -> tuple[Tool, ...]:
    return tuple([read_tool(tool, f"tools[{place}]") for place, tool in enumerate(tools)])


def _options(fields: dict[str, Any]) -> BardoOptions:
    """Return the options. Clients that do not ask for thinking read `content[0].text`, so they get none unless they say `include`."""
    options = read_options(fields)
    asked = fields.get("thinking") or {"type": "disabled"}
    said = (fields.get("bardo") or {}).get("reasoning")
    unasked = asked.get("type") == "disabled" and said is None
    return msgspec.structs.replace(options, omit_unasked=True) if unasked else options


def _messages(fields: dict[str, Any]) -> tuple[Message, ...]:
    messages = read_messages(required(fields, "messages", list), "messages", NAME, read_message)
    if "system" not in fields:
        return with_tool_names(messages)
    system = read_once(fields, "system", f"{NAME}.system", lambda: read_system(fields.get("system")))
    return with_tool_names((*system, *messages))


def _limit(fields: dict[str, Any], counting: bool) -> int | None:
    limit = optional(fields, "max_tokens", int) if counting else required(fields, "max_tokens", int)
    # 0 fills the prompt cache without an answer: anthropic 2.12.0, message_create_params.py.
    if limit is not None and limit < 0:
        raise InvalidRequest("max_tokens must not be negative", param="max_tokens")
    return limit

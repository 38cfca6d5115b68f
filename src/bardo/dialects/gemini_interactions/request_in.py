"""A client's interaction to a Request.

A client's `input` as messages: text, contents of one turn, or the steps of a conversation.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from bardo.dialects.gemini.wire import FORMAT, arguments_text
from bardo.dialects.gemini_interactions.wire import NAME, SAMPLING, states_of
from bardo.dialects.shared.control_fields import decode_sampling
from bardo.dialects.shared.json_values import decode_object, encode_json, optional, required, take, without
from bardo.dialects.shared.options import read_options
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
from bardo.values.request import EFFORTS, Message, OutputFormat, ReasoningPolicy, Request, Role, Tool, ToolChoice
from bardo.values.wire import Arrival

_CONTENTS = frozenset({"text", "image", "audio", "document", "video", "file"})
# Formats whose readable part is a summary; what any other provider thought is full text.
_SUMMARISING = frozenset({FORMAT, "openai-responses-v1", "xai-responses-v1"})


def read_input(value: Any) -> tuple[Message, ...]:
    """Return the messages. Raises InvalidRequest naming the field."""
    given = take(value, (str, dict, list), "input")
    if isinstance(given, str):
        return (Message("user", (TextBlock(given),)),)
    turns = _Turns()
    if isinstance(given, dict):
        turns.add(given, "input")
    else:
        for place, item in enumerate(given):
            turns.add(take(item, dict, f"input[{place}]"), f"input[{place}]")
    return turns.messages()


class _Turns:
    """Steps that follow one another on the same side are one message; so are contents without a step around them."""

    def __init__(self) -> None:
        self._done: list[Message] = []
        self._role: Role = "user"
        self._kind = ""
        self._blocks: list[Block] = []

    def add(self, item: dict[str, Any], at: str) -> None:
        """Take one element of the input."""
        kind = required(item, "type", str, f"{at}.")
        if kind in _CONTENTS:
            self._turn("user", "content").append(_content(item, at))
        elif kind == "user_input":
            self._turn("user", at).extend(_contents(item, at))
        elif kind == "function_result":
            self._turn("user", "results").append(_result(item, at))
        else:
            self._turn("assistant", "steps").extend(_assistant_step(item, kind, at))

    def messages(self) -> tuple[Message, ...]:
        """Return all messages."""
        self._end()
        return tuple(self._done)

    def _turn(self, role: Role, kind: str) -> list[Block]:
        if (role, kind) != (self._role, self._kind):
            self._end()
            self._role, self._kind = role, kind
        return self._blocks

    def _end(self) -> None:
        if self._kind:
            self._done.append(Message(self._role, tuple(self._blocks)))
            self._blocks = []


def _assistant_step(item: dict[str, Any], kind: str, at: str) -> list[Block]:
    if kind == "thought":
        return [_decode_thought(item, at)]
    if kind == "model_output":
        return _output(item, at)
    if kind == "function_call":
        return [_call(item, at)]
    return [UnknownBlock(NAME, item)]


def _decode_thought(item: dict[str, Any], at: str) -> ReasoningBlock:
    opaque = tuple(states_of(optional(item, "signature", str, f"{at}.") or ""))
    given = optional(item, "summary", list, f"{at}.") or []
    items = [take(one, dict, f"{at}.summary[{place}]") for place, one in enumerate(given)]
    texts = [
        required(one, "text", str, f"{at}.summary[{place}].")
        for place, one in enumerate(items)
        if one.get("type", "text") == "text"
    ]
    others = [one for one in items if one.get("type", "text") != "text"]
    fields = {**without(item, "type", "signature", "summary"), **({"summary": others} if others else {})}
    form = opaque[0].format if opaque else FORMAT
    summarised = form in _SUMMARISING
    return ReasoningBlock(
        # Clients keep the pieces of a stream as items.
        text="" if summarised else "".join(texts),
        summary=tuple(texts) if summarised else (),
        format=form,
        opaque=opaque,
        carried=_carried_fields(fields),
    )


def _output(item: dict[str, Any], at: str) -> list[Block]:
    blocks = _contents(item, at)
    opaque = tuple(states_of(optional(item, "signature", str, f"{at}.") or ""))
    first = next((place for place, block in enumerate(blocks) if isinstance(block, TextBlock)), None)
    if opaque and first is not None and isinstance(blocks[first], TextBlock):
        blocks[first] = TextBlock(blocks[first].text, opaque, blocks[first].carried)  # type: ignore[union-attr]
    return blocks


def _call(item: dict[str, Any], at: str) -> ToolCallBlock:
    at = f"{at}."
    return ToolCallBlock(
        id=required(item, "id", str, at),
        name=required(item, "name", str, at),
        arguments=arguments_text(optional(item, "arguments", dict, at) or {}),
        opaque=tuple(states_of(optional(item, "signature", str, at) or "")),
        carried=_carried_fields(without(item, "type", "id", "name", "arguments", "signature")),
    )


def _result(item: dict[str, Any], at: str) -> ToolResultBlock:
    if item.get("result") is None:
        raise InvalidRequest(f"{at}.result is required", param=f"{at}.result")
    return ToolResultBlock(
        call_id=required(item, "call_id", str, f"{at}."),
        name=optional(item, "name", str, f"{at}.") or "",
        content=_result_content(item["result"], f"{at}.result"),
        is_error=optional(item, "is_error", bool, f"{at}.") or False,
        carried=_carried_fields(without(item, "type", "call_id", "name", "result", "is_error", "signature")),
    )


def _result_content(value: Any, at: str) -> tuple[ResultPart, ...]:
    given = take(value, (str, dict, list), at)
    if isinstance(given, str):
        return (TextBlock(given),)
    if isinstance(given, dict):
        return (TextBlock(encode_json(given).decode()),)
    return tuple(_medium(take(one, dict, f"{at}[{place}]"), f"{at}[{place}]") for place, one in enumerate(given))


def _contents(item: dict[str, Any], at: str) -> list[Block]:
    given = item.get("content")
    if isinstance(given, str):
        return [TextBlock(given)]
    listed = optional(item, "content", (list, dict), f"{at}.") or []
    at = f"{at}.content"
    return [
        _content(take(one, dict, f"{at}[{place}]"), f"{at}[{place}]")
        for place, one in enumerate([listed] if isinstance(listed, dict) else listed)
    ]


def _content(item: dict[str, Any], at: str) -> Block:
    # Some clients put results among the contents of a turn.
    return _result(item, at) if item.get("type") == "function_result" else _medium(item, at)


def _medium(item: dict[str, Any], at: str) -> ResultPart:
    kind = required(item, "type", str, f"{at}.")
    if kind == "text":
        return TextBlock(required(item, "text", str, f"{at}."), carried=_carried_fields(without(item, "type", "text")))
    if kind in ("image", "document") and (item.get("data") or item.get("uri")):
        block = ImageBlock if kind == "image" else DocumentBlock
        return block(
            media_type=optional(item, "mime_type", str, f"{at}.") or "",
            data=optional(item, "data", str, f"{at}.") or "",
            url=optional(item, "uri", str, f"{at}.") or "",
            carried=_carried_fields(without(item, "type", "mime_type", "data", "uri")),
        )
    return UnknownBlock(NAME, item)


def _carried_fields(fields: dict[str, Any]) -> Carried | None:
    return Carried(NAME, fields) if fields else None


READ = frozenset(("model", "input", "system_instruction", "tools", "generation_config", "stream", "bardo"))
_CONFIG = frozenset(
    (
        "max_output_tokens", "thinking_level", "thinking_summaries", "tool_choice", *SAMPLING.values(),
    )
)  # fmt: skip
_AT = "generation_config."
_MODES: dict[str, Literal["auto", "none", "required"]] = {
    "auto": "auto",
    "validated": "auto",
    "any": "required",
    "none": "none",
}


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read a request. Raises InvalidRequest naming the field."""
    try:
        return _read(decode_object(body), body, arrival)
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None


def _read(fields: dict[str, Any], raw: bytes, arrival: Arrival) -> Request:
    stream = optional(fields, "stream", bool)
    config = optional(fields, "generation_config", dict) or {}
    choice, kept = _tool_choice(config)
    output_format, shape = _output_format(fields)
    others = {**without(config, *_CONFIG), **kept}
    extra = without(fields, *READ, *(() if shape else ("response_format", "response_mime_type")))
    return Request(
        model=arrival.model or _model(fields),
        messages=(*_system(fields), *_input(fields)),
        tools=_tools(fields),
        tool_choice=choice,
        max_output_tokens=_whole(config, "max_output_tokens"),
        sampling=decode_sampling(config, SAMPLING, _AT),
        reasoning=_reasoning(config),
        output_format=output_format,
        stream=bool(stream if arrival.stream is None else arrival.stream),
        dialect=NAME,
        extra={**extra, **({"generation_config": others} if others else {})},
        body=without(fields, "bardo"),
        body_bytes=raw,
        options=read_options(fields),
    )


def _model(fields: dict[str, Any]) -> str:
    # An agent stands in the place of a model; its field is sent on as it came.
    name = optional(fields, "model", str) or optional(fields, "agent", str)
    return (name or required(fields, "model", str)).removeprefix("models/")


def _system(fields: dict[str, Any]) -> tuple[Message, ...]:
    text = optional(fields, "system_instruction", str)
    return (Message("system", (TextBlock(text),)),) if text else ()


def _input(fields: dict[str, Any]) -> tuple[Message, ...]:
    if fields.get("input") is None and fields.get("continuation_token") is not None:
        return ()
    return read_input(required(fields, "input", (str, dict, list)))


def _whole(config: dict[str, Any], name: str) -> int | None:
    value = optional(config, name, (int, float), _AT)
    if value is None:
        return None
    if value != value or value != value // 1:
        raise InvalidRequest(f"{_AT}{name} must be a whole number", param=f"{_AT}{name}")
    return int(value)


def _reasoning(config: dict[str, Any]) -> ReasoningPolicy | None:
    level = (optional(config, "thinking_level", str, _AT) or "").lower()
    summaries = optional(config, "thinking_summaries", str, _AT)
    if not level and not summaries:
        return None
    visible = None if summaries is None else summaries != "none"
    given = {name: config[name] for name in ("thinking_level", "thinking_summaries") if config.get(name)}
    raw_fields = {"generation_config": given}
    if not level:
        # Who only asks for summaries does not ask for thinking.
        return ReasoningPolicy(mode="auto", visible=visible, enables_thinking=False, raw_fields=raw_fields)
    if level not in EFFORTS:
        hint = f"one of {', '.join(EFFORTS)}"
        raise InvalidRequest(f"unknown thinking_level {level!r:.60}", hint=hint, param=f"{_AT}thinking_level")
    return ReasoningPolicy(mode="effort", effort=level, visible=visible, raw_fields=raw_fields)


def _tool_choice(config: dict[str, Any]) -> tuple[ToolChoice | None, dict[str, Any]]:
    """Return the choice, and the field itself where bardo has no word for all of it."""
    given: Any = optional(config, "tool_choice", (str, dict), _AT)
    if given is None:
        return None, {}
    if isinstance(given, str):
        return ToolChoice(mode=_mode(given)), {"tool_choice": given} if given == "validated" else {}
    at = f"{_AT}tool_choice.allowed_tools."
    allowed = optional(given, "allowed_tools", dict, f"{_AT}tool_choice.") or {}
    mode = optional(allowed, "mode", str, at) or "auto"
    listed = optional(allowed, "tools", list, at) or []
    names = [take(name, str, f"{at}tools[{place}]") for place, name in enumerate(listed)]
    if mode == "any" and len(names) == 1:
        return ToolChoice(mode="named", name=names[0]), {}
    return ToolChoice(mode=_mode(mode)), {"tool_choice": given}


def with_plain_choice(request: Request) -> Request:
    """Return the request without a choice among some of its tools, which only this dialect's targets take as it is."""
    config = request.extra.get("generation_config")
    given = config.get("tool_choice") if isinstance(config, dict) else None
    allowed = given.get("allowed_tools") if isinstance(given, dict) else None
    if config is None or not isinstance(allowed, dict) or not allowed.get("tools"):
        return request
    plain = with_allowed_tools(request, allowed["tools"], required=_mode(allowed.get("mode") or "auto") == "required")
    if plain is request:
        return request
    kept = {name: value for name, value in config.items() if name != "tool_choice"}
    extra = {name: value for name, value in request.extra.items() if name != "generation_config"}
    return msgspec.structs.replace(plain, extra={**extra, **({"generation_config": kept} if kept else {})})


def _mode(word: str) -> Literal["auto", "none", "required"]:
    if word in _MODES:
        return _MODES[word]
    hint = f"one of {', '.join(_MODES)}"
    raise InvalidRequest(f"unknown tool_choice {word!r:.60}", hint=hint, param=f"{_AT}tool_choice")


def _tools(fields: dict[str, Any]) -> tuple[Tool, ...]:
    given = optional(fields, "tools", list) or []
    return tuple(_tool(take(one, dict, f"tools[{place}]"), f"tools[{place}].") for place, one in enumerate(given))


def _tool(tool: dict[str, Any], at: str) -> Tool:
    kind = required(tool, "type", str, at)
    if kind != "function":
        return Tool(name=kind, carried=Carried(NAME, tool), hosted=True)
    rest = without(tool, "type", "name", "description", "parameters")
    return Tool(
        name=required(tool, "name", str, at),
        description=optional(tool, "description", str, at) or "",
        schema=optional(tool, "parameters", dict, at),
        carried=Carried(NAME, rest) if rest else None,
    )


def _output_format(fields: dict[str, Any]) -> tuple[OutputFormat | None, bool]:
    """Return the shape of the answer, and whether its fields must go on as they came."""
    given: Any = optional(fields, "response_format", (dict, list))
    mime = optional(fields, "response_mime_type", str)
    only = given[0] if isinstance(given, list) and len(given) == 1 else given
    if only is None:
        return (OutputFormat(mode="json_object"), False) if mime == "application/json" else (None, True)
    if not isinstance(only, dict):
        return None, True
    if only.get("type") == "text" and optional(only, "mime_type", str, "response_format.") == "application/json":
        schema = optional(only, "schema", dict, "response_format.")
        mode: Literal["json_object", "json_schema"] = "json_object" if schema is None else "json_schema"
        return OutputFormat(mode=mode, schema=schema), bool(without(only, "type", "mime_type", "schema"))
    if mime == "application/json" and only.get("type") != "text":
        # Before it got types of its own, the field was the bare schema.
        return OutputFormat(mode="json_schema", schema=only), False
    return None, True

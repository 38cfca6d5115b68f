"""Chat messages to blocks: what a client sends."""

from __future__ import annotations

from typing import Any

from bardo.dialects.jsonfield import kind_of, optional, required, take
from bardo.dialects.openai_chat.details import Placed, read_details
from bardo.dialects.openai_chat.extra import read_states
from bardo.dialects.openai_chat.interleaving import interleaved
from bardo.dialects.openai_chat.parts import read_content
from bardo.dialects.openai_chat.words import NAME
from bardo.values.blocks import (
    Block,
    Carried,
    ImageBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.errors import InvalidRequest
from bardo.values.request import Message, Role

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "user",
    "function": "user",
}
_READ = frozenset(
    {"role", "content", "tool_calls", "tool_call_id", "function_call", "refusal", "extra_content"}
    | {"reasoning_content", "reasoning", "reasoning_details"}
)
_READ_OF_CALL = frozenset({"id", "type", "function", "custom", "index", "extra_content"})


def read_message(value: Any, at: str) -> Message:
    """Return one message. Raises InvalidRequest naming the field."""
    fields = take(value, dict, at)
    wire_role = required(fields, "role", str, f"{at}.")
    role = _ROLES.get(wire_role)
    if role is None:
        known = ", ".join(sorted(_ROLES))
        raise InvalidRequest(f"{at}.role is {wire_role!r}", hint=f"use one of {known}", param=f"{at}.role")
    if wire_role in ("tool", "function"):
        return Message(role, (_tool_result(fields, wire_role, at),))
    states, extra = read_states(fields.get("extra_content"))
    said = [*read_content(fields.get("content"), f"{at}.content", states), *_refusal(fields, at)]
    blocks = interleaved(_reasoning(fields, at), said, _calls(fields, at))
    rest = {**_rest(fields), **({"extra_content": extra} if extra else {})}
    return Message(role, tuple(blocks), Carried(NAME, rest) if rest else None)


def _rest(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in _READ and value is not None}


def _reasoning(fields: dict[str, Any], at: str) -> list[Placed]:
    """Return the thinking a client gives back: of the details, else of the first plain field; state alone goes with plain text."""
    details = fields.get("reasoning_details")
    if isinstance(details, str):
        return [Placed(ReasoningBlock(text=details, format="reasoning_details"))] if details else []
    listed = optional(fields, "reasoning_details", list, f"{at}.") or []
    placed = read_details(
        [take(detail, dict, f"{at}.reasoning_details[{place}]") for place, detail in enumerate(listed)]
    )
    plain = [(name, optional(fields, name, str, f"{at}.")) for name in ("reasoning_content", "reasoning")]
    name, text = next(((name, text) for name, text in plain if text), ("", ""))
    if not text or any(one.block.readable for one in placed):
        return placed
    states = tuple(state for one in placed for state in one.block.opaque)
    return [Placed(ReasoningBlock(text=text, format=placed[0].block.format if placed else name, opaque=states))]


def _refusal(fields: dict[str, Any], at: str) -> list[Block]:
    refusal = optional(fields, "refusal", str, f"{at}.")
    return [RefusalBlock(refusal)] if refusal else []


def _calls(fields: dict[str, Any], at: str) -> list[Block]:
    calls = optional(fields, "tool_calls", list, f"{at}.") or []
    blocks: list[Block] = [_call(call, f"{at}.tool_calls[{place}]") for place, call in enumerate(calls)]
    older = optional(fields, "function_call", dict, f"{at}.")
    if older:
        name = required(older, "name", str, f"{at}.function_call.")
        arguments = optional(older, "arguments", str, f"{at}.function_call.") or ""
        blocks.append(
            ToolCallBlock(id="", name=name, arguments=arguments, carried=Carried(NAME, {"function_call": True}))
        )
    return blocks


def _call(value: Any, at: str) -> Block:
    call = take(value, dict, at)
    kind = "custom" if call.get("type") == "custom" else "function"
    if call.get(kind) is None:
        return UnknownBlock(NAME, {"tool_call": call})
    fields = take(call[kind], dict, f"{at}.{kind}")
    text = "input" if kind == "custom" else "arguments"
    states, extra = read_states(call.get("extra_content"))
    rest = {name: held for name, held in call.items() if name not in _READ_OF_CALL and held is not None}
    more = {name: held for name, held in fields.items() if name not in ("name", text) and held is not None}
    rest |= {"function": more} if more else {}
    rest |= {"extra_content": extra} if extra else {}
    rest |= {"type": kind} if kind == "custom" else {}
    return ToolCallBlock(
        id=optional(call, "id", str, f"{at}.") or "",
        name=required(fields, "name", str, f"{at}.{kind}."),
        arguments=_arguments(fields.get(text), f"{at}.{kind}.{text}"),
        opaque=states,
        carried=Carried(NAME, rest) if rest else None,
    )


def _arguments(value: Any, at: str) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    hint = "arguments are JSON text, not JSON" if isinstance(value, dict) else ""
    raise InvalidRequest(f"{at} must be a string, not {kind_of(value)}", hint=hint, param=at)


def _tool_result(fields: dict[str, Any], wire_role: str, at: str) -> ToolResultBlock:
    older = wire_role == "function"
    rest = {name: value for name, value in _rest(fields).items() if not (older and name == "name")}
    return ToolResultBlock(
        call_id="" if older else required(fields, "tool_call_id", str, f"{at}."),
        name=(required if older else optional)(fields, "name", str, f"{at}.") or "",
        content=_result_content(fields.get("content"), f"{at}.content"),
        carried=Carried(NAME, rest) if rest else None,
    )


def _result_content(content: Any, at: str) -> tuple[TextBlock | ImageBlock | UnknownBlock, ...]:
    found: list[TextBlock | ImageBlock | UnknownBlock] = []
    for place, block in enumerate(read_content(content, at, ())):
        if not isinstance(block, TextBlock | ImageBlock | UnknownBlock):
            raise InvalidRequest(f"{at}[{place}] cannot stand in the result of a tool", param=f"{at}[{place}]")
        found.append(block)
    return tuple(found)

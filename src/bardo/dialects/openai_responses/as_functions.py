"""A request whose tools, calls and results only this dialect has, put as plain functions for any other dialect.

The reply is put back by the same names: `function_names.py` finds the tool, `free_input.py` the text of a custom tool's input.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from bardo.dialects.allowed_tools import with_allowed_tools
from bardo.dialects.openai_responses.function_names import (
    INPUT,
    TOOL_SEARCH_OUTPUT,
    DeclaredTool,
    FunctionNames,
    ToolForm,
    ToolKind,
    declares_tools,
    found_items,
)
from bardo.dialects.openai_responses.state import NAME
from bardo.values.blocks import (
    Block,
    Carried,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
    fields_for,
)
from bardo.values.degradation import Degradation
from bardo.values.request import Message, Request, Tool, ToolChoice

_INPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {INPUT: {"type": "string", "description": "The whole input of the tool, as plain text"}},
    "required": [INPUT],
    "additionalProperties": False,
}
_READ_FIELDS = frozenset({"type", "name", "description", "parameters", "strict", "format", "execution"})
_MARKS = frozenset({"type", "namespace", "execution", "tools"})
_OWN_TOOLS = frozenset({"custom", "namespace", "tool_search"})
CALL_KINDS: dict[str, ToolKind] = {"custom_tool_call": "custom", "tool_search_call": "tool_search"}


def as_functions(request: Request) -> Request:
    """Return the request with plain functions only, and what changed in `degraded`; one that has nothing else is returned itself."""
    if not _has_own_forms(request):
        return request
    names = FunctionNames(request)
    functions = {id(tool.fields): tool for tool in names.declared}
    tools = [*_declared_tools(request, names, functions), *_found_tools(request, names)]
    called = _called_functions(request, names)
    messages = _without_declarations(_renamed(message, called, names) for message in request.messages)
    choice, extra = _choice(request, names)
    plain = msgspec.structs.replace(
        request,
        tools=tuple(tools),
        messages=messages,
        tool_choice=choice,
        extra=extra,
        degraded=(*request.degraded, *_reported(names)),
    )
    return _with_allowed(plain, names)


def own_tools_as_functions(request: Request) -> Request:
    """Return the request with plain functions only, for a server of this dialect that is not known to take its other tools."""
    kinds = {str(fields_for(NAME, tool.carried).get("type")) for tool in request.tools if tool.hosted}
    if _OWN_TOOLS.isdisjoint(kinds) and not any(_is_own(block) for one in request.messages for block in one.blocks):
        return request
    return as_functions(request)


def _has_own_forms(request: Request) -> bool:
    if isinstance(request.extra.get("tool_choice"), dict):
        return True
    return any(tool.hosted for tool in request.tools) or any(
        _is_own(block) for message in request.messages for block in message.blocks
    )


def _is_own(block: Block) -> bool:
    if isinstance(block, UnknownBlock):
        return declares_tools(block)
    return isinstance(block, ToolCallBlock | ToolResultBlock) and not _MARKS.isdisjoint(fields_for(NAME, block.carried))


def _declared_tools(request: Request, names: FunctionNames, functions: dict[int, DeclaredTool]) -> Iterable[Tool]:
    """Yield the tools of the field `tools`: those that a provider runs itself stay as they are."""
    for tool in request.tools:
        fields = fields_for(NAME, tool.carried)
        inner = fields.get("tools") if fields.get("type") == "namespace" else [fields]
        known = [functions[id(one)] for one in inner or () if id(one) in functions] if tool.hosted else []
        if known:
            yield from (_function(one, names) for one in known)
        elif fields.get("type") != "namespace":
            yield tool


def _found_tools(request: Request, names: FunctionNames) -> Iterable[Tool]:
    """Yield the tools that input items declare, and those among them that a provider runs itself."""
    given = {tool.name for tool in request.tools if not tool.hosted}
    own = {id(one) for tool in request.tools if tool.hosted for one in _values_of(fields_for(NAME, tool.carried))}
    yield from (
        _function(one, names)
        for one in names.declared
        if id(one.fields) not in own
        and not (one.form.kind == "function" and one.form.name in given and not one.form.namespace)
    )
    known = {id(one.fields) for one in names.declared}
    for item in found_items(request.messages):
        for value in item.get("tools") or ():
            if (
                isinstance(value, dict)
                and value.get("type") not in ("function", "custom", "namespace")
                and id(value) not in known
            ):
                yield Tool(name=str(value.get("type")), hosted=True, carried=Carried(NAME, value))


def _values_of(fields: dict[str, Any]) -> list[Any]:
    return [fields, *(fields.get("tools") or ())]


def _function(tool: DeclaredTool, names: FunctionNames) -> Tool:
    fields, form = tool.fields, tool.form
    described = fields.get("description")
    about = f"Tools of {form.namespace}: {tool.about}" if tool.about else ""
    left = {name: value for name, value in fields.items() if name not in _READ_FIELDS and value is not None}
    schema, strict = fields.get("parameters"), fields.get("strict")
    custom = form.kind == "custom"
    return Tool(
        name=names.name(form),
        description="\n\n".join(filter(None, (about, described or "", _grammar(fields) if custom else ""))),
        schema=_INPUT_SCHEMA if custom else schema if isinstance(schema, dict) else None,
        strict=strict if isinstance(strict, bool) and not custom else None,
        carried=Carried(NAME, left) if left else None,
    )


def _grammar(fields: dict[str, Any]) -> str:
    """Return the form of a custom tool's input in words: no other dialect holds a model to a grammar."""
    form = fields.get("format")
    if not isinstance(form, dict) or form.get("type") != "grammar":
        return ""
    return f"The text in `{INPUT}` must match this {form.get('syntax')} grammar:\n{form.get('definition')}"


def _without_declarations(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Leave out items that only declared tools, and a message of which nothing else is left. Turns that meet then are one."""
    kept: list[Message] = []
    for message in messages:
        blocks = tuple(one for one in message.blocks if not (isinstance(one, UnknownBlock) and declares_tools(one)))
        if message.blocks and not blocks:
            continue
        last = kept[-1] if kept else None
        if last is not None and last.role == message.role == "assistant" and last.carried is message.carried is None:
            kept[-1] = msgspec.structs.replace(last, blocks=(*last.blocks, *blocks))
        else:
            kept.append(message if blocks == message.blocks else msgspec.structs.replace(message, blocks=blocks))
    return tuple(kept)


def _called_functions(request: Request, names: FunctionNames) -> dict[str, str]:
    """Return the functions that calls of the history called, by the ids of those that name something else."""
    blocks = (block for message in request.messages for block in message.blocks)
    return {
        block.id: names.name(form_of(block)) for block in blocks if isinstance(block, ToolCallBlock) and _is_own(block)
    }


def form_of(call: ToolCallBlock) -> ToolForm:
    """Return the tool that a call of the history called."""
    fields = fields_for(NAME, call.carried)
    return ToolForm(CALL_KINDS.get(str(fields.get("type")), "function"), call.name, str(fields.get("namespace") or ""))


def _renamed(message: Message, called: dict[str, str], names: FunctionNames) -> Message:
    if not any(isinstance(block, ToolCallBlock | ToolResultBlock) for block in message.blocks):
        return message
    return msgspec.structs.replace(message, blocks=tuple(_plain(block, called, names) for block in message.blocks))


def _plain(block: Block, called: dict[str, str], names: FunctionNames) -> Block:
    if not isinstance(block, ToolCallBlock | ToolResultBlock):
        return block
    fields = fields_for(NAME, block.carried)
    left = {name: value for name, value in fields.items() if name not in _MARKS}
    carried = block.carried if left == fields else Carried(NAME, left) if left else None
    if isinstance(block, ToolCallBlock):
        return msgspec.structs.replace(block, name=called.get(block.id, block.name), carried=carried)
    content = _found_names(fields, names) if fields.get("type") == TOOL_SEARCH_OUTPUT else block.content
    return msgspec.structs.replace(block, name=called.get(block.call_id, block.name), content=content, carried=carried)


def _found_names(fields: dict[str, Any], names: FunctionNames) -> tuple[TextBlock]:
    """Return what a search found, in words: the tools themselves are declared with the others."""
    found = {id(one) for value in fields.get("tools") or () if isinstance(value, dict) for one in _values_of(value)}
    listed = [names.name(tool.form) for tool in names.declared if id(tool.fields) in found]
    return (TextBlock(f"These tools can be called now: {', '.join(listed)}" if listed else "No tool was found."),)


def _choice(request: Request, names: FunctionNames) -> tuple[ToolChoice | None, dict[str, Any]]:
    """Return the tool choice, and the further fields without one that names a custom tool, or one in a namespace."""
    asked = request.extra.get("tool_choice")
    if not isinstance(asked, dict) or asked.get("type") not in ("custom", "function"):
        return _found_choice(request.tool_choice, names), request.extra
    name = names.named(asked)
    parallel = None if request.tool_choice is None else request.tool_choice.parallel
    choice = ToolChoice(mode="named", name=name, parallel=parallel)
    return choice, _without_choice(request.extra)


def _found_choice(choice: ToolChoice | None, names: FunctionNames) -> ToolChoice | None:
    """Return the choice of a function, which may be one in a namespace, by the name that it has."""
    if choice is None or choice.mode != "named":
        return choice
    return msgspec.structs.replace(choice, name=names.named({"type": "function", "name": choice.name}))


def _with_allowed(request: Request, names: FunctionNames) -> Request:
    """Return the request with the tools alone that a choice among them allows."""
    asked = request.extra.get("tool_choice")
    if not isinstance(asked, dict) or asked.get("type") != "allowed_tools":
        return request
    listed = [tool for tool in asked.get("tools") or () if isinstance(tool, dict)]
    allowed = [name for tool in listed for name in (names.in_namespace(tool) or [names.named(tool)]) if name]
    plain = with_allowed_tools(request, allowed, required=asked.get("mode") == "required")
    return request if plain is request else msgspec.structs.replace(plain, extra=_without_choice(request.extra))


def _without_choice(extra: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in extra.items() if name != "tool_choice"}


def _reported(names: FunctionNames) -> Iterable[Degradation]:
    """Report what became of the tools. The reply names them as the client does."""
    spaces = [*dict.fromkeys(tool.form.namespace for tool in names.declared if tool.form.namespace)]
    if spaces:
        why = "the target has no namespaces: each tool in them is a function, named after both"
        yield Degradation("tools.namespace", asked=spaces, sent=None, why=why)
    custom = [tool.form.name for tool in names.declared if tool.form.kind == "custom"]
    if custom:
        why = "the target has no custom tools: each is a function with one text, and its grammar stands in the description"
        yield Degradation("tools.custom", asked=custom, sent="function", why=why)

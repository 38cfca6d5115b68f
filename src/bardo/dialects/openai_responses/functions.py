"""A request whose tools, calls and results only this dialect has, put as plain functions for any other dialect.

A `namespace` holds functions and custom tools, a `custom` tool takes free text, and a `tool_search` that the client runs finds further
tools. Tools are declared in the field `tools`, in input items of type `additional_tools` and in what a search found (`tool_search_output`).
The reply is put back by the same names: `FunctionNames` finds the tool, `FreeInput` the text of a custom tool's input.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from bardo.dialects.openai_responses.wire import NAME
from bardo.dialects.shared.content_forms import ToolSearchForm, ToolSearchPart
from bardo.dialects.shared.json_values import JsonObject
from bardo.dialects.shared.tools import with_allowed_tools
from bardo.values.blocks import Block, Carried, TextBlock, ToolCallBlock, ToolResultBlock, UnknownBlock, fields_for
from bardo.values.degradation import Degradation
from bardo.values.request import Message, Request, Tool, ToolChoice

ToolKind = Literal["function", "custom", "tool_search"]
ADDITIONAL = "additional_tools"
TOOL_SEARCH_OUTPUT = "tool_search_output"
SEARCH = "tool_search"
INPUT = "input"
"""The one parameter of the function that stands for a custom tool."""
_LONGEST = 64
"""Characters of a function's name that every provider takes: OpenAI's bound, the lowest there is."""
_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")


class ToolForm(msgspec.Struct, frozen=True):
    """How a tool is named and called in this dialect: a function and a custom tool may belong to a namespace."""

    kind: ToolKind
    name: str
    namespace: str = ""


class DeclaredTool(msgspec.Struct, frozen=True):
    """A tool with its declaration. `about` is the description of its namespace, given to the first tool in it."""

    form: ToolForm
    fields: JsonObject
    about: str = ""


class FunctionNames:
    """The functions that the tools of one request become. A name that another dialect's model calls tells which tool is meant."""

    def __init__(self, request: Request) -> None:
        self.declared = tuple(_declared(request))
        self._by_name: dict[str, ToolForm] = {}
        self._by_form: dict[ToolForm, str] = {}
        self._first_of: dict[tuple[ToolKind, str], ToolForm] = {}
        self._in_namespace: dict[str, list[str]] = {}
        plain = [tool.form for tool in self.declared if not tool.form.namespace]
        for form in (*plain, *(tool.form for tool in self.declared)):
            if form not in self._by_form:
                self._add(form)

    def form(self, name: str) -> ToolForm | None:
        """Return the tool that a function of this name stands for, or None if it is a function of this name."""
        form = self._by_name.get(name)
        return None if form is None or (form.kind == "function" and not form.namespace) else form

    def name(self, form: ToolForm) -> str:
        """Return the name of the function that stands for a tool. A tool of the history may be declared no more."""
        return self._by_form.get(form) or _qualified_name(form)

    def named(self, choice: JsonObject) -> str:
        """Return the function that stands for the tool which a choice names: by its namespace, or in any where it gives none.

        A tool that its provider runs is named by its type; empty where there is no name.
        """
        kind, name = choice.get("type"), choice.get("name")
        if not isinstance(name, str) or kind not in ("function", "custom"):
            return str(kind or "")
        space = choice.get("namespace")
        if isinstance(space, str) and space:
            return self.name(ToolForm(kind, name, space))
        plain = ToolForm(kind, name)
        return self.name(plain if plain in self._by_form else self._first_of.get((kind, name), plain))

    def in_namespace(self, choice: JsonObject) -> list[str]:
        """Return the functions of a namespace that a choice names as a whole."""
        if choice.get("type") != "namespace":
            return []
        name = choice.get("name")
        return self._in_namespace.get(name, []) if isinstance(name, str) else []

    def _add(self, form: ToolForm) -> None:
        name = _qualified_name(form)
        if name in self._by_name:
            digest = hashlib.sha256(repr(form).encode()).hexdigest()[:8]
            name = f"{name[: _LONGEST - 9]}_{digest}"
        self._by_name[name] = form
        self._by_form[form] = name
        self._first_of.setdefault((form.kind, form.name), form)
        if form.namespace:
            self._in_namespace.setdefault(form.namespace, []).append(name)


def _qualified_name(form: ToolForm) -> str:
    if not form.namespace:
        return form.name
    between = "" if form.namespace.endswith("__") else "__"
    whole = _REFUSED.sub("_", f"{form.namespace}{between}{form.name}")
    if len(whole) <= _LONGEST:
        return whole
    return f"{whole[: _LONGEST - 9]}_{hashlib.sha256(whole.encode()).hexdigest()[:8]}"


def _declared(request: Request) -> Iterator[DeclaredTool]:
    seen: set[ToolForm] = set()
    for value in _values(request):
        for tool in _of_value(value):
            if tool.form not in seen:
                seen.add(tool.form)
                yield tool


def _values(request: Request) -> Iterator[JsonObject]:
    """Yield the declarations in the order in which the model learns of them."""
    for tool in request.tools:
        if tool.hosted:
            if tool.carried is not None and tool.carried.dialect == NAME:
                yield tool.carried.fields
        else:
            yield {"type": "function", "name": tool.name}
    for item in found_items(request.messages):
        yield from tools_of(item)


def found_items(messages: Iterable[Message]) -> Iterator[JsonObject]:
    """Yield the fields of the input items of a conversation that declare further tools."""
    for message in messages:
        for block in message.blocks:
            if type(block) is ToolResultBlock:
                fields = fields_for(NAME, block.carried)
                if fields and fields.get("type") == TOOL_SEARCH_OUTPUT:
                    yield fields
            elif type(block) is UnknownBlock and declares_tools(block):
                yield block.value


def tools_of(value: JsonObject) -> list[JsonObject]:
    """Return the tools that a namespace, an item or a choice lists, or none if it is no list of objects."""
    listed = value.get("tools")
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


def declares_tools(block: UnknownBlock) -> bool:
    """Whether a block is an input item that only declares further tools."""
    return block.dialect == NAME and isinstance(block.value, dict) and block.value.get("type") == ADDITIONAL


def _of_value(value: JsonObject) -> Iterator[DeclaredTool]:
    kind, name = value.get("type"), value.get("name")
    if kind == "namespace" and isinstance(name, str):
        about = value.get("description")
        for inner in tools_of(value):
            if (form := _form(inner, name)) is not None:
                yield DeclaredTool(form, inner, about if isinstance(about, str) else "")
                about = ""
    elif (form := _form(value)) is not None:
        yield DeclaredTool(form, value)


def _form(value: JsonObject, namespace: str = "") -> ToolForm | None:
    kind, name = value.get("type"), value.get("name")
    if kind == SEARCH and value.get("execution") == "client":
        return ToolForm("tool_search", SEARCH)
    if kind in ("function", "custom") and isinstance(name, str) and name:
        return ToolForm(kind, name, namespace)
    return None


_INPUT_SCHEMA: JsonObject = {
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
    calls = [block for message in request.messages for block in message.blocks if isinstance(block, ToolCallBlock)]
    called = {call.id: names.name(form_of(call)) for call in calls if _is_own(call)}
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
    if _OWN_TOOLS.isdisjoint(kinds) and not any(_is_own(block) for part in request.messages for block in part.blocks):
        return request
    return as_functions(request)


def _has_own_forms(request: Request) -> bool:
    if isinstance(request.extra.get("tool_choice"), dict):
        return True
    return any(tool.hosted for tool in request.tools) or any(
        _is_own(block) for message in request.messages for block in message.blocks
    )


def _is_own(block: Block) -> bool:
    if type(block) is ToolCallBlock or type(block) is ToolResultBlock:
        return block.carried is not None and not _MARKS.isdisjoint(fields_for(NAME, block.carried))
    return type(block) is UnknownBlock and declares_tools(block)


def _declared_tools(request: Request, names: FunctionNames, functions: dict[int, DeclaredTool]) -> Iterable[Tool]:
    """Yield the tools of the field `tools`: those that a provider runs itself stay as they are."""
    for tool in request.tools:
        fields = fields_for(NAME, tool.carried)
        inner = tools_of(fields) if fields.get("type") == "namespace" else [fields]
        declared = [functions[id(tool)] for tool in inner if id(tool) in functions] if tool.hosted else []
        if declared:
            yield from (_function(tool, names) for tool in declared)
        elif fields.get("type") != "namespace":
            yield tool


def _found_tools(request: Request, names: FunctionNames) -> Iterable[Tool]:
    """Yield the tools that input items declare, and those among them that a provider runs itself."""
    given = {tool.name for tool in request.tools if not tool.hosted}
    own = {id(value) for tool in request.tools if tool.hosted for value in _values_of(fields_for(NAME, tool.carried))}
    yield from (
        _function(tool, names)
        for tool in names.declared
        if id(tool.fields) not in own
        and not (tool.form.kind == "function" and tool.form.name in given and not tool.form.namespace)
    )
    declared = {id(tool.fields) for tool in names.declared}
    for item in found_items(request.messages):
        for value in tools_of(item):
            if value.get("type") not in ("function", "custom", "namespace") and id(value) not in declared:
                yield Tool(name=str(value.get("type")), hosted=True, carried=Carried(NAME, value))


def _values_of(fields: JsonObject) -> list[JsonObject]:
    return [fields, *tools_of(fields)]


def _function(tool: DeclaredTool, names: FunctionNames) -> Tool:
    fields, form = tool.fields, tool.form
    described = described if isinstance(described := fields.get("description"), str) else ""
    about = f"Tools of {form.namespace}: {tool.about}" if tool.about else ""
    left = {name: value for name, value in fields.items() if name not in _READ_FIELDS and value is not None}
    schema, strict = fields.get("parameters"), fields.get("strict")
    custom, grammar = form.kind == "custom", ""
    if custom and isinstance(told := fields.get("format"), dict) and told.get("type") == "grammar":
        # No other dialect holds a model to a grammar.
        grammar = f"The text in `{INPUT}` must match this {told.get('syntax')} grammar:\n{told.get('definition')}"
    return Tool(
        name=names.name(form),
        description="\n\n".join(filter(None, (about, described, grammar))),
        schema=_INPUT_SCHEMA if custom else schema if isinstance(schema, dict) else None,
        strict=strict if isinstance(strict, bool) and not custom else None,
        carried=Carried(NAME, left) if left else None,
    )


def _without_declarations(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Leave out items that only declared tools, and a message of which nothing else is left. Turns that meet then are one."""
    rewritten: list[Message] = []
    for message in messages:
        blocks = tuple(
            block for block in message.blocks if not (isinstance(block, UnknownBlock) and declares_tools(block))
        )
        if message.blocks and not blocks:
            continue
        last = rewritten[-1] if rewritten else None
        if last is not None and last.role == message.role == "assistant" and last.carried is message.carried is None:
            rewritten[-1] = msgspec.structs.replace(last, blocks=(*last.blocks, *blocks))
        else:
            rewritten.append(message if blocks == message.blocks else msgspec.structs.replace(message, blocks=blocks))
    return tuple(rewritten)


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


def _found_names(fields: JsonObject, names: FunctionNames) -> tuple[TextBlock]:
    """Return what a search found, in words: the tools themselves are declared with the others."""
    ids = {id(part) for value in tools_of(fields) for part in _values_of(value)}
    listed = [names.name(tool.form) for tool in names.declared if id(tool.fields) in ids]
    return (TextBlock(f"These tools can be called now: {', '.join(listed)}" if listed else "No tool was found."),)


def _choice(request: Request, names: FunctionNames) -> tuple[ToolChoice | None, JsonObject]:
    """Return the tool choice by the name that its function has, and the further fields without one that names a tool of this dialect."""
    asked, choice = request.extra.get("tool_choice"), request.tool_choice
    if isinstance(asked, dict) and asked.get("type") in ("custom", "function"):
        parallel = None if choice is None else choice.parallel
        return ToolChoice(mode="named", name=names.named(asked), parallel=parallel), _without_choice(request.extra)
    if choice is not None and choice.mode == "named":
        choice = msgspec.structs.replace(choice, name=names.named({"type": "function", "name": choice.name}))
    return choice, request.extra


def _with_allowed(request: Request, names: FunctionNames) -> Request:
    """Return the request with the tools alone that a choice among them allows."""
    asked = request.extra.get("tool_choice")
    if not isinstance(asked, dict) or asked.get("type") != "allowed_tools":
        return request
    allowed = [name for tool in tools_of(asked) for name in (names.in_namespace(tool) or [names.named(tool)]) if name]
    plain = with_allowed_tools(request, allowed, required=asked.get("mode") == "required")
    return request if plain is request else msgspec.structs.replace(plain, extra=_without_choice(request.extra))


def _without_choice(extra: JsonObject) -> JsonObject:
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


_OPENING = re.compile(r'\s*\{\s*"' + INPUT + r'"\s*:\s*"')
_PLAIN = re.compile(r'[^"\\]+')
_HIGH = range(0xD800, 0xDC00)
_LOW = range(0xDC00, 0xE000)
_LONGEST_OPENING = 64
"""Characters that are waited for at the beginning before the arguments are taken for something else."""


class FreeInput:
    """Reads the text piece by piece. Arguments of another form are the text themselves, given at the end."""

    __slots__ = ("_buffer", "_closed", "_in_text", "_is_other", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._buffer = ""
        self._in_text = self._is_other = self._closed = False

    def feed(self, arguments: str) -> str:
        """Take a piece of the arguments, and return what it adds to the text."""
        if self._closed:
            return ""
        if self._in_text:
            return self._unescape(self._buffer + arguments)
        self._pieces.append(arguments)
        if self._is_other:
            return ""
        start = "".join(self._pieces)
        opening = _OPENING.match(start)
        if opening is None:
            self._is_other = len(start) > _LONGEST_OPENING
            return ""
        self._in_text = True
        self._pieces = []
        return self._unescape(start[opening.end() :])

    def finish(self) -> str:
        """Return the rest of the text."""
        if self._in_text:
            return ""
        whole = "".join(self._pieces)
        self._pieces = []
        return only_text(whole)

    def _unescape(self, text: str) -> str:
        """Return the text up to an escape that is cut off, or to the closing quote."""
        self._buffer = ""
        pieces: list[str] = []
        at = 0
        while at < len(text):
            plain = _PLAIN.match(text, at)
            if plain is not None:
                taken, end = plain.group(), plain.end()
            elif text[at] == '"':
                self._closed = True
                break
            elif (escape := _escape(text, at)) is not None:
                taken, end = escape
            else:
                self._buffer = text[at:]
                break
            pieces.append(taken)
            at = end
        return "".join(pieces)


def _escape(text: str, at: int) -> tuple[str, int] | None:
    """Return the character of the escape at `at`, and where it ends, or None if it is cut off."""
    if len(text) < at + 2:
        return None
    if text[at + 1] != "u":
        return _SHORT.get(text[at + 1], text[at : at + 2]), at + 2
    if len(text) < at + 6:
        return None
    code = _code(text, at)
    if code in _HIGH:
        if len(text) < at + 12 and text.startswith("\\u"[: len(text) - at - 6], at + 6):
            return None
        low = _code(text, at + 6) if text.startswith("\\u", at + 6) else -1
        if low in _LOW:
            return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)), at + 12
    return "\ufffd" if code in _HIGH or code in _LOW or code < 0 else chr(code), at + 6


def _code(text: str, at: int) -> int:
    try:
        return int(text[at + 2 : at + 6], 16)
    except ValueError:
        return -1


_SHORT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}


def only_text(arguments: str) -> str:
    """Return the one text that arguments of another form hold, or the arguments as they are."""
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return arguments
    if isinstance(value, dict):
        texts = [text for text in value.values() if isinstance(text, str)]
        if isinstance(value.get(INPUT), str):
            return str(value[INPUT])
        if len(value) == len(texts) == 1:
            return texts[0]
    return value if isinstance(value, str) else arguments


_OWN_CALL = "bardo"


def _asked_search(tool: Tool) -> Literal["regex", "words", ""]:
    fields = fields_for(NAME, tool.carried) if tool.hosted else {}
    return "words" if fields.get("type") == SEARCH and fields.get("execution") != "client" else ""


def _search_reader(request: Request) -> Callable[[JsonObject], ToolSearchPart | None]:
    names = FunctionNames(request)

    def read(item: JsonObject) -> ToolSearchPart | None:
        # OpenAI's own searches have no call_id, and each of their items its own id, which Codex leaves out.
        kind, called, number = item.get("type"), str(item.get("call_id") or ""), ""
        if (key := called.removeprefix(_OWN_CALL)) != called:
            called, number = key[2:] or called, key[:2]
        if kind == "tool_search_call":
            given = item.get("arguments")
            return ToolSearchPart(id=called, round=number, arguments=given if isinstance(given, dict) else {})
        if kind != TOOL_SEARCH_OUTPUT:
            return None
        forms = [tool.form for value in tools_of(item) for tool in _of_value(value)]
        return ToolSearchPart(id=called, found=tuple(names.name(form) for form in forms))

    return read


def _write_search(
    request: Request, key: str, name: str, arguments: JsonObject, found: Sequence[str], error: str
) -> list[JsonObject]:
    """Return the items of a search, with the definitions of what was found as the client gave them."""
    names = FunctionNames(request)
    by_name = {names.name(tool.form): tool for tool in names.declared}
    plain = {tool.name: tool for tool in request.tools if not tool.hosted}
    spaces: dict[str, JsonObject] = {}
    tools: list[JsonObject] = []
    for tool_name in found:
        declared = by_name.get(tool_name)
        if declared is not None and declared.form.namespace:
            if declared.form.namespace not in spaces:
                spaces[declared.form.namespace] = {
                    "type": "namespace",
                    "name": declared.form.namespace,
                    "description": _about(request, declared.form.namespace),
                    "tools": [],
                }
                tools.append(spaces[declared.form.namespace])
            spaces[declared.form.namespace]["tools"].append(declared.fields)
        elif (tool := plain.get(tool_name)) is not None:
            tools.append(
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.schema,
                    "strict": tool.strict,
                    **fields_for(NAME, tool.carried),
                }
            )
        elif declared is not None:
            tools.append(declared.fields)
    status = {"call_id": f"{_OWN_CALL}{key}", "execution": "server", "status": "incomplete" if error else "completed"}
    return [
        {"type": "tool_search_call", "id": f"tsc_bardo_{key}", "arguments": arguments, **status},
        {"type": TOOL_SEARCH_OUTPUT, "id": f"tso_bardo_{key}", "tools": tools, **status},
    ]


def _about(request: Request, namespace: str) -> str:
    values = (fields_for(NAME, tool.carried) for tool in request.tools if tool.hosted)
    descriptions = (
        item.get("description") for item in values if item.get("type") == "namespace" and item.get("name") == namespace
    )
    return next((about for about in descriptions if isinstance(about, str)), "")


TOOL_SEARCHES = ToolSearchForm(asked=_asked_search, reader=_search_reader, write=_write_search)
"""OpenAI's guide "Tool search", and the types of openai 3.54.0, as of 2026-11."""

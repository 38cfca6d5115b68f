"""The tools that only this dialect has, by the names of the functions they become for any other.

A `namespace` holds functions and custom tools, a `custom` tool takes free text, and a `tool_search` that the client runs finds further
tools. Tools are declared in the field `tools`, in input items of type `additional_tools` and in what a search found (`tool_search_output`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from bardo.dialects.openai_responses.state import NAME
from bardo.values.blocks import ToolResultBlock, UnknownBlock, fields_for
from bardo.values.request import Message, Request

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
    fields: dict[str, Any]
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
        """Return the tool that a function of this name stands for; None where it is a function of this name."""
        form = self._by_name.get(name)
        return None if form is None or (form.kind == "function" and not form.namespace) else form

    def name(self, form: ToolForm) -> str:
        """Return the name of the function that stands for a tool. A tool of the history may be declared no more."""
        return self._by_form.get(form) or _qualified_name(form)

    def named(self, choice: dict[str, Any]) -> str:
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

    def in_namespace(self, choice: dict[str, Any]) -> list[str]:
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


def _values(request: Request) -> Iterator[dict[str, Any]]:
    """Yield the declarations in the order in which the model learns of them."""
    for tool in request.tools:
        if tool.hosted:
            if tool.carried is not None and tool.carried.dialect == NAME:
                yield tool.carried.fields
        else:
            yield {"type": "function", "name": tool.name}
    for item in found_items(request.messages):
        yield from (tool for tool in item.get("tools") or () if isinstance(tool, dict))


def found_items(messages: Iterable[Message]) -> Iterator[dict[str, Any]]:
    """Yield the fields of the input items of a conversation that declare further tools."""
    for message in messages:
        for block in message.blocks:
            if isinstance(block, UnknownBlock) and declares_tools(block):
                yield block.value
            elif (
                isinstance(block, ToolResultBlock) and fields_for(NAME, block.carried).get("type") == TOOL_SEARCH_OUTPUT
            ):
                yield fields_for(NAME, block.carried)


def declares_tools(block: UnknownBlock) -> bool:
    """Whether a block is an input item that only declares further tools."""
    return block.dialect == NAME and isinstance(block.value, dict) and block.value.get("type") == ADDITIONAL


def _of_value(value: dict[str, Any]) -> Iterator[DeclaredTool]:
    kind, name = value.get("type"), value.get("name")
    if kind == "namespace" and isinstance(name, str):
        about = value.get("description")
        for inner in value.get("tools") or ():
            if isinstance(inner, dict) and (form := _form(inner, name)) is not None:
                yield DeclaredTool(form, inner, about if isinstance(about, str) else "")
                about = ""
    elif (form := _form(value)) is not None:
        yield DeclaredTool(form, value)


def _form(value: dict[str, Any], namespace: str = "") -> ToolForm | None:
    kind, name = value.get("type"), value.get("name")
    if kind == SEARCH and value.get("execution") == "client":
        return ToolForm("tool_search", SEARCH)
    if kind in ("function", "custom") and isinstance(name, str) and name:
        return ToolForm(kind, name, namespace)
    return None

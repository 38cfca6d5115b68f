"""Calls as output items: of functions, of custom tools, and of the search for tools that the client runs."""

from __future__ import annotations

from typing import Any

from bardo.dialects.openai_responses.free_input import FreeInput
from bardo.dialects.openai_responses.function_names import FunctionNames
from bardo.dialects.openai_responses.item_objects import call_item
from bardo.dialects.openai_responses.written_items import WrittenItem, WrittenPart
from bardo.dialects.wire import input_of
from bardo.values.blocks import Opaque


class WrittenCall(WrittenItem):
    """A function call. `part_kind` is the kind of its one part. `complete` False: the reply broke off in it."""

    prefix = "fc"
    part_kind = "arguments"
    complete = True

    def __init__(self, call_id: str, name: str, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.call_id = call_id
        self.name = name

    def read(self, arguments: str) -> str:
        """Take a piece of the arguments, and return what of it is written."""
        return arguments

    def read_rest(self) -> str:
        """Return what is written at the end of the arguments."""
        return ""

    def done_item(self, status: str) -> dict[str, Any]:
        arguments = "".join(part.text for part in self.parts)
        return {**call_item(self.id, status, self.call_id, self.name, arguments), **self.additional}

    def added_item(self) -> dict[str, Any]:
        return {**self.done_item("in_progress"), "status": "in_progress", "arguments": ""}

    def riders(self) -> list[tuple[str, list[Opaque]]]:
        return [(f"call:{self.call_id}", [*self.states])] if self.states else []


class WrittenCustomCall(WrittenCall):
    """A call of a custom tool. `read` reads its text from the arguments of the function that stood for it."""

    prefix = "ctc"
    part_kind = "input"

    def __init__(self, call_id: str, name: str, fields: dict[str, Any]) -> None:
        super().__init__(call_id, name, fields)
        self.reader = FreeInput()

    def read(self, arguments: str) -> str:
        return self.reader.feed(arguments)

    def read_rest(self) -> str:
        return self.reader.finish()

    def done_item(self, status: str) -> dict[str, Any]:
        return {
            "type": "custom_tool_call",
            "id": self.id,
            "status": status,
            "call_id": self.call_id,
            "input": "".join(part.text for part in self.parts),
            "name": self.name,
            **self.additional,
        }

    def added_item(self) -> dict[str, Any]:
        return {**self.done_item("in_progress"), "status": "in_progress", "input": ""}


class WrittenSearch(WrittenCall):
    """A call of the search for tools that the client runs: its arguments are an object, given at its end."""

    prefix = "tsc"
    part_kind = "search"

    def done_item(self, status: str) -> dict[str, Any]:
        return {
            "type": "tool_search_call",
            "id": self.id,
            "status": status,
            "call_id": self.call_id,
            "execution": "client",
            "arguments": input_of("".join(part.text for part in self.parts)),
            **self.additional,
        }

    def added_item(self) -> dict[str, Any]:
        return {**self.done_item("in_progress"), "status": "in_progress", "arguments": {}}


def call_for(call_id: str, name: str, fields: dict[str, Any], names: FunctionNames) -> WrittenCall:
    """Return the call of the tool that a function of this name stands for."""
    form = None if "namespace" in fields else names.form(name)
    if form is None:
        return WrittenCall(call_id, name, fields)
    space = {"namespace": form.namespace} if form.namespace else {}
    kinds = {"function": WrittenCall, "custom": WrittenCustomCall, "tool_search": WrittenSearch}
    return kinds[form.kind](call_id, form.name, {**fields, **space})


def target_of(unit: WrittenPart | WrittenItem) -> str:
    """Return what state that comes too late for `unit` is said to belong to."""
    if isinstance(unit, WrittenCall):
        return f"call:{unit.call_id}"
    return "text" if isinstance(unit, WrittenPart) else "reasoning"

"""Tools and calls in the forms that several dialects share.

Functions in OpenAI's form; a choice among some of the tools; tools that providers run themselves; ids for calls whose provider gave none.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable
from collections.abc import Set as AbstractSet
from operator import attrgetter

import msgspec

from bardo.catalog.fragments import merge_fields
from bardo.catalog.hosted_tools import HostedForm, HostedTool, hosted_tools
from bardo.catalog.matching import matches_any
from bardo.catalog.rows import ProviderRow
from bardo.catalog.shared_fields import not_granted
from bardo.dialects.shared.json_values import JsonObject, decode_leniently
from bardo.dialects.shared.losses import Losses, nested
from bardo.dialects.shared.losses import take_at as take_at
from bardo.streams.frames import Frame
from bardo.streams.sse import encode_sse
from bardo.values.blocks import Carried, fields_for
from bardo.values.degradation import Degradation
from bardo.values.request import Request, Tool, ToolChoice


def no_arguments(tool: Tool) -> JsonObject:
    """Return what the schema of a tool without arguments says: a strict tool's object is closed, which OpenAI and Anthropic ask for."""
    return {"properties": {}, "additionalProperties": False} if tool.strict else {"properties": {}}


def write_tool(tool: Tool, losses: Losses) -> list[JsonObject]:
    """Return the tool, or nothing where only its own provider runs it."""
    if tool.hosted:
        own = fields_for(losses.dialect, tool.carried)
        if not own:
            losses.lose_tool(tool)
        return [own] if own else []
    function: JsonObject = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.schema or {"type": "object", **no_arguments(tool)}
    own = dict(losses.own_fields(tool.carried))
    return [{"type": "function", "function": {**function, **own.pop("function", {})}, **own}]


_WHY = "the target has no choice among some of the tools: only these are sent"


def with_allowed_tools(request: Request, names: Collection[str], *, required: bool) -> Request:
    """Return the request with the tools of these names alone, one of which must be called where it is `required`.

    A request that has none of them is returned itself. What says so in `extra` is the caller's to take out.
    """
    allowed = frozenset(name for name in names if isinstance(name, str))
    tools = tuple(tool for tool in request.tools if is_named(tool, allowed))
    if not tools:
        return request
    choice = request.tool_choice or ToolChoice()
    if required and len(tools) == 1 and not tools[0].hosted:
        choice = msgspec.structs.replace(choice, mode="named", name=tools[0].name)
    else:
        choice = msgspec.structs.replace(choice, mode="required" if required else "auto", name="")
    lost = Degradation("tool_choice.allowed_tools", asked=sorted(allowed), sent="tools", why=_WHY)
    return msgspec.structs.replace(request, tools=tools, tool_choice=choice, degraded=(*request.degraded, lost))


def is_named(tool: Tool, names: AbstractSet[str]) -> bool:
    """Whether a tool has one of these names; one that its provider runs itself may be named by its type."""
    kind = tool.carried.fields.get("type") if tool.hosted and tool.carried is not None else None
    return tool.name in names or (isinstance(kind, str) and kind in names)


_is_hosted = attrgetter("hosted")


def carry_hosted(request: Request, row: ProviderRow, losses: Losses) -> tuple[Request, JsonObject]:
    """Return the request with its hosted tools as its target has them, and the fields that are such a tool there.

    A tool that the target is not known to run stays as it is, and is reported as one of another provider's.
    """
    if not (request.extra or any(map(_is_hosted, request.tools))):
        return request, {}
    fields: JsonObject = {}
    for tool in hosted_tools():
        client_form, target_form = _form_asked(tool, request), tool.form_at(row.dialect, row.id, request.model)
        if client_form is not None and _is_refused(request, row, client_form, target_form):
            request = _without_field(request, client_form.field, losses)
        if client_form is None or target_form is None or client_form is target_form or not _asks(request, client_form):
            continue
        if target_form.required and _must_be_called(request, client_form):
            request, target_form = _free(request), msgspec.structs.replace(target_form, written=target_form.required)
        if _may_be_sent(request, tool, client_form, target_form):
            request, added = _carried(request, tool, client_form, target_form, losses)
            fields |= added
    return request, fields


def is_asked_otherwise(request: Request, row: ProviderRow) -> bool:
    """Whether a request of the provider's own dialect asks for a hosted tool by a field that this provider does not take for the model."""
    for tool in hosted_tools():
        client_form = _form_asked(tool, request)
        if client_form is not None and client_form.field and client_form.field in request.extra:
            target_form = tool.form_at(row.dialect, row.id, request.model)
            if target_form is not None and target_form is not client_form:
                return True
            if _is_refused(request, row, client_form, target_form):
                return True
    return False


def _form_asked(tool: HostedTool, request: Request) -> HostedForm | None:
    """Return the form in which the client's dialect has a tool. A request of the library has none, and Chat's fields."""
    return tool.form_of(request.dialect or "openai_chat")


def _is_refused(request: Request, row: ProviderRow, client_form: HostedForm, target_form: HostedForm | None) -> bool:
    """Whether a provider of the client's dialect has the field of the tool, and not for this model."""
    same_dialect = client_form.dialect == row.dialect and bool(client_form.field) and client_form.field in request.extra
    return same_dialect and target_form is None and matches_any(row.id, client_form.providers)


def _without_field(request: Request, name: str, losses: Losses) -> Request:
    losses.lose(name, request.extra[name], "only the search models of this provider take it at this endpoint")
    return msgspec.structs.replace(request, extra={key: value for key, value in request.extra.items() if key != name})


def _asks(request: Request, client_form: HostedForm) -> bool:
    return client_form.field in request.extra or any(is_form(tool, client_form) for tool in request.tools)


def _must_be_called(request: Request, client_form: HostedForm) -> bool:
    """Whether the model must call the tool: a call is required, and there is no other tool."""
    choice = request.tool_choice
    forced = choice is not None and choice.mode in ("required", "named")
    return forced and bool(request.tools) and all(is_form(tool, client_form) for tool in request.tools)


def _free(request: Request) -> Request:
    return msgspec.structs.replace(request, tool_choice=None)


def _may_be_sent(request: Request, tool: HostedTool, client_form: HostedForm, target_form: HostedForm) -> bool:
    """Whether the target may get it: a choice among functions has no name for a hosted tool in most dialects."""
    choice = request.tool_choice
    forced = choice is not None and choice.mode in ("required", "named")
    if target_form.alone or target_form.field:
        return not forced and (bool(target_form.field) or all(is_form(tool, client_form) for tool in request.tools))
    names = [tool.name for tool in request.tools if is_form(tool, client_form)]
    return choice is None or choice.mode != "named" or choice.name not in (*names, tool.name)


def _carried(
    request: Request, hosted: HostedTool, client_form: HostedForm, target_form: HostedForm, losses: Losses
) -> tuple[Request, JsonObject]:
    tools, fields = [], JsonObject()
    for tool in request.tools:
        if not is_form(tool, client_form) or tool.carried is None:
            tools.append(tool)
            continue
        written = _rewritten(tool.carried.fields, client_form, target_form, losses)
        if target_form.field:
            fields[target_form.field] = written
        else:
            tools.append(Tool(name=hosted.name, hosted=True, carried=Carried(target_form.dialect, written)))
    extra = request.extra
    if client_form.field and isinstance(extra.get(client_form.field), dict):
        written = _rewritten(extra[client_form.field], client_form, target_form, losses)
        if target_form.field:
            # What the caller says in the provider's own words stands.
            own = extra.get(target_form.field)
            fields[target_form.field] = merge_fields(written, own) if isinstance(own, dict) else written
        else:
            tools.append(Tool(name=hosted.name, hosted=True, carried=Carried(target_form.dialect, written)))
        extra = {name: value for name, value in extra.items() if name != client_form.field}
    return msgspec.structs.replace(request, tools=tuple(tools), extra=extra), fields


def is_form(tool: Tool, form: HostedForm) -> bool:
    if not tool.hosted or tool.carried is None or tool.carried.dialect != form.dialect:
        return False
    kind = tool.carried.fields.get("type")
    return matches_any(kind if isinstance(kind, str) else tool.name, form.kinds)


def _rewritten(fields: JsonObject, client_form: HostedForm, target_form: HostedForm, losses: Losses) -> JsonObject:
    """Return the tool with its settings as the target names them; those that it does not have are reported."""
    left: JsonObject = copy.deepcopy(fields)
    written = copy.deepcopy(target_form.written)
    for name, path in client_form.settings.items():
        value = take_at(left, path)
        for beside in _paths(client_form.beside.get(path, {})):
            if isinstance(value, dict):
                value.pop(beside.rpartition(".")[2], None)
            take_at(left, beside)
        if value is None or name not in target_form.settings:
            if value is not None:
                losses.lose(name, value, f"{target_form.dialect} has no such setting of the tool")
            continue
        there = target_form.settings[name]
        written = merge_fields(merge_fields(written, nested(there, value)), target_form.beside.get(there, {}))
    for name, value in _unwritten(left, client_form).items():
        losses.lose(name, value, f"{target_form.dialect} has no such setting of the tool")
    return written


def _unwritten(left: JsonObject, client_form: HostedForm) -> JsonObject:
    """Return the settings that are left, where the client's form has some of them inside the object that names the tool."""
    held = [
        left[name] for name, value in client_form.written.items() if value == {} and isinstance(left.get(name), dict)
    ]
    settings = {name: value for name, value in left.items() if name not in client_form.written and name != "type"}
    for inner in held:
        settings |= inner
    given = {name: value for name, value in settings.items() if value not in (None, "", [], {})}
    return {name: value for name, value in given.items() if not_granted(client_form.dialect, name, value) is not None}


def hosted_as(known: HostedTool, language: str, settings: JsonObject) -> Tool:
    """Return a tool in the form of a dialect that has it, with settings by their names in all dialects."""
    form = known.form_of(language)
    assert form is not None
    written = copy.deepcopy(form.written)
    for name, value in settings.items():
        written = merge_fields(written, nested(form.settings[name], value))
    return Tool(name=known.name, hosted=True, carried=Carried(language, written))


def _paths(fields: JsonObject, before: str = "") -> list[str]:
    """Return the dotted paths of the values in an object of objects."""
    paths: list[str] = []
    for name, value in fields.items():
        paths += _paths(value, f"{before}{name}.") if isinstance(value, dict) else [f"{before}{name}"]
    return paths


class CallsInFrames(msgspec.Struct, frozen=True):
    """Where calls stand in a dialect's frames, whole bodies among them.

    `marker` is in every frame that holds a call, and in few others. `find` returns the calls of a frame: each one's place in the reply, its
    object, and the name of the field for its id.
    """

    marker: bytes
    find: Callable[[JsonObject], Iterable[tuple[int, JsonObject, str]]]


class FillCallIds:
    """Writes an id into each call of one reply that has none: a call that stands in several frames has the same in each."""

    def __init__(self, calls: CallsInFrames, make_id: Callable[[], str]) -> None:
        self._calls = calls
        self._make_id = make_id
        self._ids: dict[int, str] = {}

    def feed(self, item: Frame) -> Frame:
        """Return the frame with all ids: itself, unless one was missing."""
        data = item.data
        if data is None or self._calls.marker not in data or not item.complete:
            return item
        try:
            payload = decode_leniently(data)
        except (ValueError, RecursionError):
            return item
        if not isinstance(payload, dict) or not self._fill(payload):
            return item
        filled = msgspec.json.encode(payload)
        return Frame(filled, item.event, filled if item.raw is data else encode_sse(filled, item.event))

    def _fill(self, payload: JsonObject) -> bool:
        filled = False
        for place, call, name in self._calls.find(payload):
            if not call.get(name):
                if place not in self._ids:
                    self._ids[place] = self._make_id()
                call[name] = self._ids[place]
                filled = True
        return filled

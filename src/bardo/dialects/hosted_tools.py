"""Carry a tool that providers run themselves to a provider of another dialect which runs the same one."""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from bardo.catalog.fragments import merge_fields
from bardo.catalog.hosted_tools import HostedForm, HostedTool, hosted_tools
from bardo.catalog.matching import matches_any
from bardo.catalog.rows import ProviderRow
from bardo.dialects.losses import Losses
from bardo.dialects.shared_fields import nested, take
from bardo.values.blocks import Carried
from bardo.values.request import Request, Tool


def carry_hosted(request: Request, row: ProviderRow, losses: Losses) -> tuple[Request, dict[str, Any]]:
    """Return the request with its hosted tools as its target has them, and the fields that are such a tool there.

    A tool that the target is not known to run stays as it is, and is reported as one of another provider's.
    """
    if not (request.extra or any(tool.hosted for tool in request.tools)):
        return request, {}
    fields: dict[str, Any] = {}
    for known in hosted_tools():
        given, wanted = known.form_of(request.dialect), known.form_at(row.dialect, row.id, request.model)
        if given is None or wanted is None or given is wanted or not _asks(request, given):
            continue
        if wanted.required and _must_be_called(request, given):
            request, wanted = _free(request), msgspec.structs.replace(wanted, written=wanted.required)
        if _may_be_sent(request, known, given, wanted):
            request, added = _carried(request, known, given, wanted, losses)
            fields |= added
    return request, fields


def is_asked_otherwise(request: Request, row: ProviderRow) -> bool:
    """Whether a request of the provider's own dialect asks for a hosted tool by a field that this provider has another one for."""
    for known in hosted_tools():
        given = known.form_of(request.dialect)
        if given is not None and given.field and given.field in request.extra:
            wanted = known.form_at(row.dialect, row.id, request.model)
            if wanted is not None and wanted is not given:
                return True
    return False


def _asks(request: Request, given: HostedForm) -> bool:
    return given.field in request.extra or any(is_form(tool, given) for tool in request.tools)


def _must_be_called(request: Request, given: HostedForm) -> bool:
    """Whether the model must call the tool: a call is required, and there is no other tool."""
    choice = request.tool_choice
    forced = choice is not None and choice.mode in ("required", "named")
    return forced and bool(request.tools) and all(is_form(tool, given) for tool in request.tools)


def _free(request: Request) -> Request:
    return msgspec.structs.replace(request, tool_choice=None)


def _may_be_sent(request: Request, known: HostedTool, given: HostedForm, wanted: HostedForm) -> bool:
    """Whether the target may get it: a choice among functions has no name for a hosted tool in most dialects."""
    choice = request.tool_choice
    forced = choice is not None and choice.mode in ("required", "named")
    if wanted.alone or wanted.field:
        return not forced and (bool(wanted.field) or all(is_form(tool, given) for tool in request.tools))
    names = [tool.name for tool in request.tools if is_form(tool, given)]
    return choice is None or choice.mode != "named" or choice.name not in (*names, known.name)


def _carried(
    request: Request, known: HostedTool, given: HostedForm, wanted: HostedForm, losses: Losses
) -> tuple[Request, dict[str, Any]]:
    tools, fields = [], dict[str, Any]()
    for tool in request.tools:
        if not is_form(tool, given) or tool.carried is None:
            tools.append(tool)
            continue
        written = _rewritten(tool.carried.fields, given, wanted, losses)
        if wanted.field:
            fields[wanted.field] = written
        else:
            tools.append(Tool(name=known.name, hosted=True, carried=Carried(wanted.dialect, written)))
    extra = request.extra
    if given.field and isinstance(extra.get(given.field), dict):
        written = _rewritten(extra[given.field], given, wanted, losses)
        if wanted.field:
            # What the caller says in the provider's own words stands.
            own = extra.get(wanted.field)
            fields[wanted.field] = merge_fields(written, own) if isinstance(own, dict) else written
        else:
            tools.append(Tool(name=known.name, hosted=True, carried=Carried(wanted.dialect, written)))
        extra = {name: value for name, value in extra.items() if name != given.field}
    return msgspec.structs.replace(request, tools=tuple(tools), extra=extra), fields


def is_form(tool: Tool, form: HostedForm) -> bool:
    if not tool.hosted or tool.carried is None or tool.carried.dialect != form.dialect:
        return False
    kind = tool.carried.fields.get("type")
    return matches_any(kind if isinstance(kind, str) else tool.name, form.kinds)


def _rewritten(fields: dict[str, Any], given: HostedForm, wanted: HostedForm, losses: Losses) -> dict[str, Any]:
    """Return the tool with its settings as the target names them; those that it does not have are reported."""
    left: dict[str, Any] = copy.deepcopy(fields)
    written = copy.deepcopy(wanted.written)
    for name, path in given.settings.items():
        value = take(left, path)
        for beside in _paths(given.beside.get(path, {})):
            if isinstance(value, dict):
                value.pop(beside.rpartition(".")[2], None)
            take(left, beside)
        if value is None or name not in wanted.settings:
            if value is not None:
                losses.lose(name, value, f"{wanted.dialect} has no such setting of the tool")
            continue
        there = wanted.settings[name]
        written = merge_fields(merge_fields(written, nested(there, value)), wanted.beside.get(there, {}))
    for name, value in left.items():
        if name not in given.written and name != "type" and value:
            losses.lose(name, value, f"{wanted.dialect} has no such setting of the tool")
    return written


def hosted_as(known: HostedTool, language: str, settings: dict[str, Any]) -> Tool:
    """Return a tool in the form of a dialect that has it, with settings by their names in all dialects."""
    form = known.form_of(language)
    assert form is not None
    written = copy.deepcopy(form.written)
    for name, value in settings.items():
        written = merge_fields(written, nested(form.settings[name], value))
    return Tool(name=known.name, hosted=True, carried=Carried(language, written))


def _paths(fields: dict[str, Any], before: str = "") -> list[str]:
    """Return the dotted paths of the values in an object of objects."""
    found: list[str] = []
    for name, value in fields.items():
        found += _paths(value, f"{before}{name}.") if isinstance(value, dict) else [f"{before}{name}"]
    return found

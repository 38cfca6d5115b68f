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
    if request.dialect == row.dialect or not (request.extra or any(tool.hosted for tool in request.tools)):
        return request, {}
    fields: dict[str, Any] = {}
    for known in hosted_tools():
        given, wanted = known.form_of(request.dialect), known.form_of(row.dialect)
        if given is None or wanted is None or not wanted.runs_at(row.id, request.model):
            continue
        if _may_be_sent(request, known, given, wanted):
            request, added = _carried(request, known, given, wanted, losses)
            fields |= added
    return request, fields


def _may_be_sent(request: Request, known: HostedTool, given: HostedForm, wanted: HostedForm) -> bool:
    """Whether the target may get it: a choice among functions has no name for a hosted tool in most dialects."""
    choice = request.tool_choice
    forced = choice is not None and choice.mode in ("required", "named")
    if wanted.alone or wanted.field:
        return not forced and (bool(wanted.field) or all(_is_form(tool, given) for tool in request.tools))
    names = [tool.name for tool in request.tools if _is_form(tool, given)]
    return choice is None or choice.mode != "named" or choice.name not in (*names, known.name)


def _carried(
    request: Request, known: HostedTool, given: HostedForm, wanted: HostedForm, losses: Losses
) -> tuple[Request, dict[str, Any]]:
    tools, fields = [], dict[str, Any]()
    for tool in request.tools:
        if not _is_form(tool, given) or tool.carried is None:
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
        tools.append(Tool(name=known.name, hosted=True, carried=Carried(wanted.dialect, written)))
        extra = {name: value for name, value in extra.items() if name != given.field}
    return msgspec.structs.replace(request, tools=tuple(tools), extra=extra), fields


def _is_form(tool: Tool, form: HostedForm) -> bool:
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


def _paths(fields: dict[str, Any], before: str = "") -> list[str]:
    """Return the dotted paths of the values in an object of objects."""
    found: list[str] = []
    for name, value in fields.items():
        found += _paths(value, f"{before}{name}.") if isinstance(value, dict) else [f"{before}{name}"]
    return found

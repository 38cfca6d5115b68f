"""Offer a model the gateway's own web search as a function, where a client asks for a search tool that the provider does not run."""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from bardo.catalog.hosted_tools import HostedForm, HostedTool, hosted_tool
from bardo.catalog.rows import ProviderRow
from bardo.dialects.shared.losses import take_at as take
from bardo.dialects.shared.tools import is_form
from bardo.engine.hosted_search.history import as_calls, without_own_results
from bardo.values.degradation import Degradation
from bardo.values.request import Request, Tool

_TOOL = "web_search"
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What to search for."}},
    "required": ["query"],
    "additionalProperties": False,
}
_DESCRIPTION = "Search the web. Returns pages with their address, title, date and some of their text."


class SearchPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When the gateway searches: where the provider does not, or `always`; by which `service`; at most `most_searches` a reply."""

    service: str
    always: bool = False
    most_searches: int = 8


class SearchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How the searches of one reply are made: the name of the function that stands for them, how many at most, and on which domains."""

    tool: str
    most: int
    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()


def with_search(request: Request, row: ProviderRow, policy: SearchPolicy) -> tuple[Request, SearchPlan | None]:
    """Return the request with a function in the place of its search tool, and how the function's calls are executed.

    No plan where the provider runs the tool, or where the answer must fit a schema.
    """
    known = hosted_tool(_TOOL)
    given = known.form_of(request.dialect)
    fields = None if given is None else _search_tool(request, given)
    if given is None or fields is None or not _is_ours(request, row, known, policy):
        return without_own_results(request, row), None
    plan = _plan(request, fields, given, policy)
    extra = {name: value for name, value in request.extra.items() if name != given.field}
    tools = tuple(tool for tool in request.tools if not is_form(tool, given))
    function = Tool(name=plan.tool, description=_DESCRIPTION, schema=_SCHEMA)
    messages = as_calls(request, plan.tool)
    choice = request.tool_choice
    if choice is not None and choice.mode == "named" and choice.name not in {tool.name for tool in tools}:
        choice = msgspec.structs.replace(choice, name=plan.tool)
    why = f"{row.id} is not known to run it: bardo searches by {policy.service}"
    asked = msgspec.structs.replace(
        request,
        tools=(*tools, function),
        tool_choice=choice,
        extra=extra,
        messages=messages,
        body=None,
        body_bytes=b"",
        degraded=(*request.degraded, Degradation(f"tool {_TOOL}", sent=plan.tool, why=why)),
    )
    return asked, plan


def _is_ours(request: Request, row: ProviderRow, known: HostedTool, policy: SearchPolicy) -> bool:
    """Whether the gateway shall search for this target."""
    if request.output_format is not None or request.choices > 1 or request.options.hosted_only:
        return False
    return policy.always or known.form_at(row.dialect, row.id, request.model) is None


def _search_tool(request: Request, form: HostedForm) -> dict[str, Any] | None:
    """Return the search tool that a request asks for, as the client wrote it; None where it asks for none."""
    if form.field and isinstance(request.extra.get(form.field), dict):
        return dict(request.extra[form.field])
    found = next((tool for tool in request.tools if is_form(tool, form)), None)
    return None if found is None or found.carried is None else found.carried.fields


def _plan(request: Request, fields: dict[str, Any], form: HostedForm, policy: SearchPolicy) -> SearchPlan:
    left: dict[str, Any] = copy.deepcopy(fields)
    settings = {name: take(left, path) for name, path in form.settings.items()}
    most = settings.get("max_uses")
    names = {tool.name for tool in request.tools if not is_form(tool, form)}
    return SearchPlan(
        tool=_TOOL if _TOOL not in names else f"bardo_{_TOOL}",
        most=min(most, policy.most_searches) if type(most) is int and most > 0 else policy.most_searches,
        allowed=_domains(settings.get("allowed_domains")),
        blocked=_domains(settings.get("blocked_domains")),
    )


def _domains(value: Any) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else ()
    return tuple(one.strip().lower() for one in listed if isinstance(one, str) and one.strip())

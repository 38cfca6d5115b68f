"""Turn off the web search that a provider runs itself where its budget is used up: a number of calls a day, or an amount of money."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bardo.catalog.fragments import at_path, merge_fields, value_at
from bardo.catalog.hosted_tools import HostedForm, hosted_tool
from bardo.catalog.matching import matches_any
from bardo.planning.route import Target
from bardo.values.degradation import Degradation
from bardo.values.request import SearchLimit
from bardo.values.usage import nanos_of, usd
from bardo.values.wire import WireRequest

_TOOL = "web_search"


def searches(wire: WireRequest, target: Target) -> bool:
    """Whether a request asks its provider to search the web."""
    form = _form(target)
    return form is not None and _asks(msgspec.json.decode(wire.body), form)


def within_budget(wire: WireRequest, target: Target, used: int) -> tuple[WireRequest, tuple[Degradation, ...]]:
    """Return the request without its search where `used`, the searching calls of the day, reaches what the provider may get."""
    most, form = target.provider.row.searches_per_day, _form(target)
    if most is None or used < most or form is None:
        return wire, ()
    body = msgspec.json.decode(wire.body)
    if not _asks(body, form):
        return wire, ()
    why = f"the budget of {target.provider.id} is used up for today (UTC): searches_per_day = {most}"
    changed = msgspec.structs.replace(wire, body=msgspec.json.encode(_without(body, form)))
    return changed, (Degradation(f"tool {_TOOL}", why=why),)


def within_money(
    wire: WireRequest, target: Target, limits: Sequence[SearchLimit], spent: Callable[[str], int]
) -> tuple[WireRequest, tuple[Degradation, ...]]:
    """Return the request without its search where one limit has no money left for another one (003, `web_search_budget_per_cycle_usdc`).

    `spent` tells how many nano-dollars the searches of a limit's key have cost.
    """
    if not limits or not searches(wire, target):
        return wire, ()
    price = search_nanos()
    short = next((limit for limit in limits if spent(limit.key) + price > nanos_of(limit.usd)), None)
    form = _form(target)
    if short is None or form is None:
        return wire, ()
    left = max(0.0, short.usd - usd(spent(short.key)))
    why = f"a search costs ${usd(price):g}, and ${left:g} is left: {short.setting} = {short.usd:g}"
    body = _without(msgspec.json.decode(wire.body), form)
    return msgspec.structs.replace(wire, body=msgspec.json.encode(body)), (Degradation(f"tool {_TOOL}", why=why),)


def search_nanos() -> int:
    """Return what one searching call counts as, in nano-dollars."""
    return nanos_of(hosted_tool(_TOOL).usd)


def _form(target: Target) -> HostedForm | None:
    row = target.provider.row
    return hosted_tool(_TOOL).form_at(row.dialect, row.id, target.model)


def _asks(body: dict[str, Any], form: HostedForm) -> bool:
    if form.switch:
        return value_at(body, f"{form.field}.{form.switch}") not in (None, False, form.off)
    if form.field:
        return form.field in body
    return any(_is_search(tool, form) for tool in body.get("tools") or ())


def _without(body: dict[str, Any], form: HostedForm) -> dict[str, Any]:
    if form.switch:
        return merge_fields(body, at_path(f"{form.field}.{form.switch}", form.off))
    if form.field:
        return {name: value for name, value in body.items() if name != form.field}
    tools = [tool for tool in body["tools"] if not _is_search(tool, form)]
    # A choice that names the search, or that no tool is left for, cannot be kept.
    choice = body.get("tool_choice")
    names = {_TOOL, *(_kind(tool) for tool in body["tools"] if _is_search(tool, form))}
    named = isinstance(choice, dict) and bool(names & {choice.get("type"), choice.get("name")})
    dropped = {*(() if tools else ("tools", "tool_choice", "toolConfig")), *(("tool_choice",) if named else ())}
    return {name: value for name, value in {**body, "tools": tools}.items() if name not in dropped}


def _is_search(tool: Any, form: HostedForm) -> bool:
    return isinstance(tool, dict) and matches_any(_kind(tool), form.kinds)


def _kind(tool: dict[str, Any]) -> str:
    """Return the type of a tool, or the one field that it is where it has no type."""
    named = tool.get("type")
    return named if isinstance(named, str) else next(iter(tool), "")

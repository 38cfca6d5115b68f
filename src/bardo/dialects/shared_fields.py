"""Carry the fields of a request to a dialect that has them too, under the same name or in another place."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.catalog.fragments import merge_fields
from bardo.catalog.rows import ProviderRow
from bardo.catalog.shared_fields import ListSwitch, SharedFields, not_granted, shared_between
from bardo.dialects.losses import Losses
from bardo.values.request import Request

_CHAT = "openai_chat"
"""The dialect of a request's further fields where it came from the library."""


def carry_shared(request: Request, row: ProviderRow, losses: Losses) -> tuple[Request, dict[str, Any]]:
    """Return the request without the fields that its target's dialect has too, and these as they are written there.

    A provider that is not known to take them does not get them, which is reported.
    """
    request, of_reasoning = _carry_of_reasoning(request, row)
    client = request.dialect or _CHAT
    rows = shared_between(client, row.dialect) if request.extra else ()
    extra: dict[str, Any] = dict(request.extra) if rows else {}
    fields: dict[str, Any] = of_reasoning
    untouched = True
    for shared in sorted(rows, key=lambda one: (row.id not in one.providers, not one.specified)):
        found = _take_shared(extra, shared, client, row.dialect)
        untouched = untouched and not found
        for path, value in found.items():
            why = _refused(shared, row, path, value)
            if not why:
                fields = merge_fields(fields, nested(path, value))
            elif value not in shared.silent and not_granted(request.dialect, path, value) is not None:
                losses.lose(path, value, why)
    return (request if untouched else msgspec.structs.replace(request, extra=extra)), fields


def _carry_of_reasoning(request: Request, row: ProviderRow) -> tuple[Request, dict[str, Any]]:
    """Return the request without the words beside its reasoning policy that the target takes too, and these as they are written there."""
    policy = request.reasoning
    if policy is None or policy.carried is None or policy.carried.dialect != request.dialect:
        return request, {}
    rows = [
        one
        for one in shared_between(request.dialect, row.dialect)
        if row.id in one.providers or (row.generic and one.specified)
    ]
    there = dict(pair for one in rows for pair in one.paths(request.dialect, row.dialect))
    own = policy.carried.fields
    left = {path: value for path, value in own.items() if path not in there}
    if len(left) == len(own):
        return request, {}
    fields: dict[str, Any] = {}
    for path in own.keys() - left.keys():
        fields = merge_fields(fields, nested(there[path], own[path]))
    carried = msgspec.structs.replace(policy.carried, fields=left) if left else None
    return msgspec.structs.replace(request, reasoning=msgspec.structs.replace(policy, carried=carried)), fields


def _refused(shared: SharedFields, row: ProviderRow, path: str, value: Any) -> str:
    """Return why a provider does not get a field that its dialect has; empty where it does."""
    if row.id not in shared.providers and not (row.generic and shared.specified):
        return f"{row.id} is not known to take it"
    return "" if shared.takes(row.dialect, path, value) else "this endpoint has no such value"


def with_shared(body: dict[str, Any], carried: dict[str, Any]) -> dict[str, Any]:
    """Return a body with the fields that `carry_shared` gave; the items of a list go behind those that are there."""
    lists = {
        name: [*body[name], *(one for one in value if one not in body[name])]
        for name, value in carried.items()
        if isinstance(value, list) and isinstance(body.get(name), list)
    }
    return merge_fields(body, {**carried, **lists})


def _take_shared(extra: dict[str, Any], shared: SharedFields, source: str, target: str) -> dict[str, Any]:
    """Take all that is shared out of `extra`, and return it by its paths in the target."""
    found = _move_shared(extra, shared, source, target)
    for switch in shared.switch:
        if {source, target} == {switch.dialect, switch.in_dialect}:
            found |= _switched(extra, found, switch, source)
    return found


def _move_shared(extra: dict[str, Any], shared: SharedFields, source: str, target: str) -> dict[str, Any]:
    """Take the shared fields out of `extra`, and return them by their paths in the target."""
    found: dict[str, Any] = {}
    for path, there in shared.paths(source, target):
        value = take(extra, path)
        if value is not None:
            found[there] = value
    return found


def _switched(extra: dict[str, Any], found: dict[str, Any], switch: ListSwitch, source: str) -> dict[str, Any]:
    """Take a switch out of `extra`, and return it as the target has it."""
    if source == switch.dialect:
        return {switch.list: [switch.item]} if take(extra, switch.name) is True else {}
    listed = extra.get(switch.list)
    if not isinstance(listed, list):
        listed = []
    named = switch.item in listed
    if named:
        left = [one for one in listed if one != switch.item]
        extra.pop(switch.list)
        extra |= {switch.list: left} if left else {}
    return {switch.name: True} if named or switch.implied_by in found else {}


def take(extra: dict[str, Any], path: str) -> Any:
    """Take the value at a dotted path out of `extra`, and what holds nothing but it; None where there is none.

    An object on the way is not changed but replaced, so that `extra` may share it with others.
    """
    name, _, rest = path.partition(".")
    value = extra.get(name)
    if not rest:
        return extra.pop(name, None)
    if not isinstance(value, dict) or rest.partition(".")[0] not in value:
        return None
    left = dict(value)
    inner = take(left, rest)
    if inner is not None and left:
        extra[name] = left
    elif inner is not None:
        extra.pop(name)
    return inner


def nested(path: str, value: Any) -> dict[str, Any]:
    """Return an object that holds the value at a dotted path."""
    name, _, rest = path.partition(".")
    return {name: nested(rest, value) if rest else value}

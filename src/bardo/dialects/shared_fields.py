"""Carry the fields of a request to a dialect that has them too, under the same name or in another place."""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from bardo.catalog.fragments import merge_fields
from bardo.catalog.rows import ProviderRow
from bardo.catalog.shared_fields import ListSwitch, SharedFields, shared_between
from bardo.dialects.losses import Losses
from bardo.values.request import Request


def carry_shared(request: Request, row: ProviderRow, losses: Losses) -> tuple[Request, dict[str, Any]]:
    """Return the request without the fields that its target's dialect has too, and these as they are written there.

    A provider that is not known to take them does not get them, which is reported.
    """
    shared = shared_between(request.dialect, row.dialect) if request.extra else None
    if shared is None:
        return request, {}
    extra: dict[str, Any] = copy.deepcopy(request.extra)
    fields: dict[str, Any] = {}
    found = _moved(extra, shared, request.dialect, row.dialect)
    for switch in shared.switch:
        if {request.dialect, row.dialect} == {switch.dialect, switch.in_dialect}:
            found |= _switched(extra, found, switch, request.dialect)
    if not found:
        return request, {}
    if row.id in shared.providers:
        for path, value in found.items():
            fields = merge_fields(fields, nested(path, value))
    else:
        for path, value in found.items():
            losses.lose(path, value, f"{row.id} is not known to take it")
    return msgspec.structs.replace(request, extra=extra), fields


def with_shared(body: dict[str, Any], carried: dict[str, Any]) -> dict[str, Any]:
    """Return a body with the fields that `carry_shared` gave; the items of a list go behind those that are there."""
    lists = {
        name: [*body[name], *(one for one in value if one not in body[name])]
        for name, value in carried.items()
        if isinstance(value, list) and isinstance(body.get(name), list)
    }
    return merge_fields(body, {**carried, **lists})


def _moved(extra: dict[str, Any], shared: SharedFields, source: str, target: str) -> dict[str, Any]:
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
        return {switch.list: [switch.item]} if extra.pop(switch.name, None) is True else {}
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
    """Take the value at a dotted path out of `extra`, and what holds nothing but it; None where there is none."""
    name, _, rest = path.partition(".")
    value = extra.get(name)
    if not rest:
        return extra.pop(name, None)
    if not isinstance(value, dict):
        return None
    inner = take(value, rest)
    if inner is not None and not value:
        extra.pop(name)
    return inner


def nested(path: str, value: Any) -> dict[str, Any]:
    """Return an object that holds the value at a dotted path."""
    name, _, rest = path.partition(".")
    return {name: nested(rest, value) if rest else value}

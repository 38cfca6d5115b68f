"""The fields of a profile that only some providers take, for one target: sent where a row says how, else reported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from bardo.catalog.fragments import at_path, merge_fields
from bardo.catalog.hosted_tools import HostedForm, hosted_tools
from bardo.catalog.matching import matches_any, plain_id
from bardo.catalog.profile_fields import FieldForm, ProfileField, profile_fields
from bardo.planning.route import Target
from bardo.values.blocks import Carried, TextBlock, UnknownBlock
from bardo.values.degradation import Degradation
from bardo.values.profile import InferenceProfile
from bardo.values.request import Message, Request, Tool


class TargetFields(NamedTuple):
    """JSON fields that go into the upstream body, and what cannot be sent."""

    fields: dict[str, Any]
    degraded: tuple[Degradation, ...]


NOTHING = TargetFields({}, ())
_LONGEST_SHOWN = 100


def fields_at(request: Request, target: Target) -> TargetFields:
    """Return what of a request's profile goes into the body for a target. It depends on the shape of the request only."""
    profile = request.options.profile
    if profile is None:
        return NOTHING
    fields: dict[str, Any] = {}
    degraded: list[Degradation] = []
    for row, asked in _asked(profile):
        match form_at(row, target):
            case FieldForm(marker="") as form:
                if form.path.partition(".")[0] not in request.extra:
                    fields = merge_fields(fields, at_path(form.path, form.written(asked, target.model)))
            case HostedForm(field=field) as form:
                if field and field not in request.extra:
                    fields[field] = form.written
            case None:
                if not matches_any(target.provider.row.id, row.implied_at):
                    degraded.append(Degradation(row.name, asked=_shown(asked), why=row.why))
    return TargetFields(fields, tuple(degraded))


def with_content_of_profile(request: Request, target: Target) -> tuple[Request, tuple[Degradation, ...]]:
    """Return the request with the content that its profile asks for at a target, a hosted tool or a cache marker, and what cannot be."""
    profile = request.options.profile
    degraded: tuple[Degradation, ...] = ()
    for row, asked in () if profile is None else _asked(profile):
        match form_at(row, target):
            case FieldForm() as form:
                if form.marker:
                    request = _marked(request, row.name, form, form.written(asked, target.model))
            case HostedForm(field="") as form:
                if form.alone and request.tools and not any(tool.hosted for tool in request.tools):
                    why = "the provider runs it beside no functions"
                    degraded = (*degraded, Degradation(row.name, asked=_shown(asked), why=why))
                elif not any(tool.hosted for tool in request.tools):
                    tool = Tool(name=row.hosted, hosted=True, carried=Carried(form.dialect, form.written))
                    request = msgspec.structs.replace(request, tools=(*request.tools, tool))
    return request, degraded


def _asked(profile: InferenceProfile) -> Iterator[tuple[ProfileField, Any]]:
    for row in profile_fields():
        asked = getattr(profile, row.name)
        if asked:
            yield row, asked


def form_at(row: ProfileField, target: Target) -> FieldForm | HostedForm | None:
    """Return how a field goes to a target: in a form of its own, or as a tool that the provider runs; None where it does not."""
    provider = target.provider.row
    form = row.form_at(provider.id, provider.dialect, plain_id(target.model))
    return form or (_hosted(row.hosted, target) if row.hosted else None)


def _hosted(name: str, target: Target) -> HostedForm | None:
    provider = target.provider.row
    tool = next((tool for tool in hosted_tools() if tool.name == name), None)
    return None if tool is None else tool.form_at(provider.dialect, provider.id, target.model)


def _marked(request: Request, name: str, form: FieldForm, value: Any) -> Request:
    """Return the request with a marker behind its system prompt; one that the caller marked stays as it is."""
    if (
        name in request.extra
        or any(_holds(name, message) for message in request.messages)
        or _tools_hold(name, request)
    ):
        return request
    last = max((place for place, message in enumerate(_system(request)) if _is_text(message)), default=None)
    if last is None:
        return request
    message = request.messages[last]
    block = message.blocks[-1]
    assert isinstance(block, TextBlock)
    marked = msgspec.structs.replace(block, carried=Carried(form.marker, {name: value}))
    changed = msgspec.structs.replace(message, blocks=(*message.blocks[:-1], marked))
    return msgspec.structs.replace(request, messages=(*request.messages[:last], changed, *request.messages[last + 1 :]))


def _system(request: Request) -> Iterator[Message]:
    """Yield the messages of the system that head a prompt."""
    for message in request.messages:
        if message.role != "system":
            return
        yield message


def _is_text(message: Message) -> bool:
    last = message.blocks[-1] if message.blocks else None
    return isinstance(last, TextBlock) and last.carried is None


def _holds(name: str, message: Message) -> bool:
    return any(not isinstance(block, UnknownBlock) and _carries(name, block.carried) for block in message.blocks)


def _tools_hold(name: str, request: Request) -> bool:
    return any(_carries(name, tool.carried) for tool in request.tools)


def _carries(name: str, carried: Carried | None) -> bool:
    return carried is not None and name in carried.fields


def _shown(asked: Any) -> Any:
    return asked if isinstance(asked, bool) or len(asked) <= _LONGEST_SHOWN else f"{asked[:_LONGEST_SHOWN]}…"

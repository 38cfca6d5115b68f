"""Where each field of an upstream body comes from, told by what writes it.

The request is written once more without one of its parts after another: what is then missing, or differs, came from that part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

import msgspec

from bardo.catalog.fragments import leaves, value_at
from bardo.dialects import dialect
from bardo.engine.attempt import Attempt
from bardo.engine.explanation import FieldSource
from bardo.reasoning.control import ControlPlan
from bardo.values.degradation import Degradation
from bardo.values.request import Request

_AS_ASKED = "as asked"
_NAMED = "its name at this provider"
_USAGE = "bardo asks for usage, to count tokens"
_LIMIT = "a limit is needed here, and none was given"
_SCHEMA = "asks for the answer in its schema"
_PROFILE = "the profile"
_UNASKED = "sent unless the request says otherwise"


def field_sources(
    body: dict[str, Any], request: Request, attempt: Attempt, *, unprofiled: dict[str, Any] | None = None
) -> Iterator[FieldSource]:
    """Give the source of each field of `body` and of its objects, and of each element of a list that has several sources.

    `unprofiled` is the body of the request without its profile, None where it has none.
    """
    for place, of_leaves in groupby(
        _leaf_sources(body, request, attempt, unprofiled), key=lambda source: _two_levels(source.path)
    ):
        sources = list(of_leaves)
        same = len({(source.layer, source.reason) for source in sources}) == 1
        yield from (FieldSource(path=place, layer=sources[0].layer, reason=sources[0].reason),) if same else sources


def _two_levels(path: str) -> str:
    return ".".join(path.split(".")[:2])


def _leaf_sources(
    body: dict[str, Any], request: Request, attempt: Attempt, unprofiled: dict[str, Any] | None
) -> Iterator[FieldSource]:
    given = request.body or {}
    if attempt.written is None:
        yield from _as_it_came(body, given, request)
        return
    known = _by_part(body, attempt.written, request, attempt)
    if unprofiled is not None:
        known |= {path: _of_profile(path, known.get(path)) for path in _changed(body, unprofiled)}
    unasked = _unasked(attempt.written, attempt)
    for path, value in leaves(body):
        elements = [source for place, source in known.items() if place.startswith(f"{path}[")]
        if path in known:
            yield known[path]
        elif elements and isinstance(value, list):
            own = {source.path: source for source in elements}
            places = (f"{path}[{index}]" for index in range(len(value)))
            yield from (own.get(place) or FieldSource(path=place, reason=_AS_ASKED) for place in places)
        else:
            yield FieldSource(path=path, reason=_reason(path, value, given, unasked, request, attempt))


def _unasked(written: Request, attempt: Attempt) -> dict[str, Any]:
    """Return the body of a request that asks for nothing."""
    return _body(Request(model=written.model, messages=(), stream=written.stream, dialect=written.dialect), attempt)


def _as_it_came(body: dict[str, Any], given: Mapping[str, Any], request: Request) -> Iterator[FieldSource]:
    """Give the sources of a body that is the client's own: only the model's name and what bardo asks of usage may differ."""
    for path, value in leaves(body):
        differs = value_at(given, path) != value
        reason = _NAMED if path == "model" and request.model != value else _USAGE if differs else _AS_ASKED
        yield FieldSource(path=path, reason=reason)


def _reason(
    path: str, value: Any, given: Mapping[str, Any], unasked: dict[str, Any], request: Request, attempt: Attempt
) -> str:
    if path == "model" and value != request.model:
        return _NAMED
    if value_at(given, path) == value:
        return _AS_ASKED
    if path not in ("model", "messages") and value_at(unasked, path) == value:
        return _USAGE if path.startswith("stream_options") else _UNASKED
    spoken = attempt.target.provider.row.dialect
    return f"{_AS_ASKED}, written for {spoken}"


def _by_part(body: dict[str, Any], written: Request, request: Request, attempt: Attempt) -> dict[str, FieldSource]:
    """Return the sources that one part of the written request accounts for, by path."""
    found: dict[str, FieldSource] = {}
    for without, layer, reason in _parts(written, request, attempt):
        for path in _changed(body, _body(without, attempt)):
            found.setdefault(path, FieldSource(path=path, layer=layer, reason=reason))
    return found


def _of_profile(path: str, part: FieldSource | None) -> FieldSource:
    """Return the source of what the profile changes, with the part that it changed."""
    if part is None:
        return FieldSource(path=path, layer="profile", reason=_PROFILE)
    return msgspec.structs.replace(part, reason=f"{_PROFILE}: {part.reason}")


def _parts(written: Request, request: Request, attempt: Attempt) -> Iterator[tuple[Request, str, str]]:
    """Give the request without each of the parts that bardo decided, with the layer that did and the reason."""
    plan = attempt.control
    if plan is not None and written.control is not None:
        yield msgspec.structs.replace(written, control=None, reasoning=None), plan.layer, _asked(plan)
    if plan is not None and plan.max_output_tokens != request.max_output_tokens:
        yield msgspec.structs.replace(written, max_output_tokens=request.max_output_tokens), plan.layer, _LIMIT
    if attempt.answer is not None and not attempt.answer.as_asked:
        yield _unshaped(written, request), "", _SCHEMA
    for lost in attempt.degraded:
        if (without := _unchanged(written, request, lost)) is not None:
            yield without, "", lost.why


def _unshaped(written: Request, request: Request) -> Request:
    """Return the request without what was added for an answer in a schema."""
    return msgspec.structs.replace(
        written,
        messages=request.messages,
        tools=request.tools,
        tool_choice=request.tool_choice,
        output_format=None,
    )


def _unchanged(written: Request, request: Request, lost: Degradation) -> Request | None:
    """Return the request with a parameter as it was asked that a degradation says was changed; None where it names none."""
    if lost.sent is None:
        return None
    name = "choices" if lost.what == "n" else lost.what
    for now, asked, field in ((written.sampling, request.sampling, "sampling"), (written, request, "")):
        if name in now.__struct_fields__ and getattr(now, name) != getattr(asked, name):
            changed = msgspec.structs.replace(now, **{name: getattr(asked, name)})
            return msgspec.structs.replace(written, sampling=changed) if field else changed  # type: ignore[return-value]
    return None


def _body(request: Request, attempt: Attempt) -> dict[str, Any]:
    row = attempt.target.provider.row
    body: dict[str, Any] = msgspec.json.decode(dialect(row.dialect).encode_request(request, row).body)
    return body


def _changed(body: Any, without: Any, path: str = "") -> Iterator[str]:
    """Give the paths of what stands in `body` and is missing or different in `without`: leaves, and elements of lists."""
    if isinstance(body, Mapping) and body:
        other = without if isinstance(without, Mapping) else {}
        for name, value in body.items():
            yield from _changed(value, other.get(name), f"{path}.{name}" if path else name)
    elif isinstance(body, list) and isinstance(without, list) and body != without:
        kept = [element for element in body if element in without]
        yield from (
            (f"{path}[{index}]" for index, element in enumerate(body) if element not in without) if kept else (path,)
        )
    elif body != without:
        yield path


def _asked(plan: ControlPlan) -> str:
    return "thinking in readable form" if plan.mode == "none" else f"thinking, asked {plan.intent}: {plan.reason}"

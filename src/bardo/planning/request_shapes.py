"""What requests are alike in all that decides how they are sent, so that what was planned for one holds for the next.

A history that grew, another text, another id: none of it changes how a request is planned. What does is its shape.
"""

from __future__ import annotations

import copy
from operator import attrgetter
from typing import Any

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.planning.controlling import ControlledRequest, control
from bardo.planning.knowledge import Knowledge, TargetFacts
from bardo.planning.route import Target
from bardo.planning.text_formats import ReplyOpening, TextFormats, text_formats_of
from bardo.reasoning.starting import toggles_thinking
from bardo.reuse import is_on
from bardo.reuse.plans import LONGEST_SHAPE
from bardo.values.request import OutputFormat, Request, Tool

CONTENT = frozenset(
    {"messages", "tools", "output_format", "body", "body_bytes", "degraded", "client_headers", "kept_as", "attribution"}
)
"""The fields of a Request that are no part of its shape. Of the tools it counts whether there are none, one or more, of the
form of an answer all but its schema and its instruction."""

_shape_fields = attrgetter(*(name for name in Request.__struct_fields__ if name not in CONTENT))
_encode = msgspec.msgpack.Encoder().encode
# Stand for the tools of a request: one for one alone, two for more. They have no name that a plan could take.
_SOME_TOOLS = (Tool(name=""), Tool(name=""))


def shape_of(request: Request) -> bytes | None:
    """Return the shape of a request as bytes, the same for equal ones; None for one that is too long to keep, or cannot be written."""
    try:
        shape = _encode(
            (_shape_fields(request), min(len(request.tools), len(_SOME_TOOLS)), _without_schema(request.output_format))
        )
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    return shape if len(shape) <= LONGEST_SHAPE else None


def bare(request: Request) -> Request:
    """Return a request without its content."""
    return msgspec.structs.replace(
        request,
        messages=(),
        tools=_SOME_TOOLS[: len(request.tools)],
        output_format=_without_schema(request.output_format),
        body=None,
        body_bytes=b"",
        client_headers={},
        kept_as=None,
        attribution="",
        degraded=(),
    )


def _without_schema(wanted: OutputFormat | None) -> OutputFormat | None:
    if wanted is None:
        return None
    return msgspec.structs.replace(wanted, schema=None if wanted.schema is None else {}, guidance="")


class ShapePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of all requests of one shape at one target.

    `controlled` is the request without its content, as the target takes it. `formats` is how the reply's text is read where the request
    has no tools, `off` whether no thinking was asked for. `thinking` is what the target is told of thinking where the fields of a body in
    its own dialect may be sent as they came; None where they may not.
    """

    controlled: ControlledRequest
    formats: TextFormats
    off: bool
    thinking: dict[str, Any] | None


def plan_shape(request: Request, target: Target, facts: TargetFacts, knowledge: Knowledge) -> ShapePlan:
    """Return the plan of a request's shape, made before or now. Raises InvalidRequest and Unsupported, as planning does."""
    shape = shape_of(request) if is_on() else None
    if shape is None:
        return _made(bare(request), target, facts, knowledge)
    row = target.provider.row
    place = target.provider.place, row.dialect, shape
    kept: ShapePlan | None = knowledge.plans.find(place, row, facts)
    if kept is not None:
        return kept
    # A caller of the library may change its dictionaries later.
    asked = copy.deepcopy(bare(request))
    made = _made(asked, target, facts, knowledge)
    knowledge.plans.keep(place, row, facts, made, holds=asked)
    return made


def _made(request: Request, target: Target, facts: TargetFacts, knowledge: Knowledge) -> ShapePlan:
    done = control(request, target, facts, knowledge.budgets, prompt_words=knowledge.prompt_words)
    return settled(done, target, facts, knowledge)


def settled(done: ControlledRequest, target: Target, facts: TargetFacts, knowledge: Knowledge) -> ShapePlan:
    """Return the plan that follows from how the target is told to think."""
    toggles = _toggles(done)
    off = done.plan.asks_for_none or done.plan.emitted == "off" or toggles_thinking(toggles) is False
    beginning = _beginning(done, target.provider.row, facts, toggles, off=off)
    formats = text_formats_of(target.provider.row, target.model, formats=knowledge.formats, beginning=beginning)
    return ShapePlan(controlled=done, formats=formats, off=off, thinking=_own_thinking(done, target.provider.row))


def _beginning(
    done: ControlledRequest, row: ProviderRow, facts: TargetFacts, toggles: dict[str, Any], *, off: bool
) -> ReplyOpening:
    """Return what is known of where the reply begins, beside the format of its text."""
    asked = done.request
    if not row.quirks.inline_reasoning:
        return ReplyOpening(streamed=asked.stream)
    seen = facts.start_of_replies(off=off)
    if seen == "separated" and asked.extra.get("reasoning_format") == "none":
        # llama-server leaves the thinking in the text where a request says so, whatever it does otherwise (001 §7; tools/server/README.md).
        seen = None
    return ReplyOpening(
        streamed=asked.stream,
        toggles=toggles,
        off=off and not done.plan.floored,
        schema=asked.output_format is not None,
        rendered=facts.opens_thinking(toggles),
        seen=seen,
    )


def _toggles(done: ControlledRequest) -> dict[str, Any]:
    """Return the arguments of the chat template that are sent."""
    given, ours = done.request.extra.get("chat_template_kwargs"), done.plan.fields.get("chat_template_kwargs")
    return {**(given if isinstance(given, dict) else {}), **(ours or {})}


def _own_thinking(done: ControlledRequest, row: ProviderRow) -> dict[str, Any] | None:
    """Return what the target is told of thinking; None where it does not speak the request's dialect, or its fields must change."""
    request, language = done.request, dialect(row.dialect)
    if request.dialect != row.dialect or not done.unchanged:
        return None
    losses = language.field_losses(request)
    thinking = language.encode_control(request, losses)
    return None if losses.all else thinking

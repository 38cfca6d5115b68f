"""What is planned of a call without looking at what is said in it.

How a target shall think, which parameters it takes, how its reply's text is read and whether a body may be sent on as it came follow from
the shape of the request. Plans are kept by it.
"""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.engine.controlling import ControlledRequest, control
from bardo.engine.knowledge import Knowledge, TargetFacts
from bardo.engine.request_shape import bare, shape_of
from bardo.engine.route import Target
from bardo.engine.text_formats import ReplyOpening, TextFormats, text_formats_of
from bardo.reasoning.starting import toggles_thinking
from bardo.reuse import is_on
from bardo.values.request import Request


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
    made = _made(copy.deepcopy(bare(request)), target, facts, knowledge)
    knowledge.plans.keep(place, row, facts, made)
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

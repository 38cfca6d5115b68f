"""Bring a request into the form one target takes: how it shall think, and nothing beside that which the target is known to refuse.

A history that grew, another text, another id: none of it changes how a request is planned. What does is its shape, all that decides how it
is sent, so that what was planned for one request holds for the next of its shape.
"""

from __future__ import annotations

import copy
from operator import attrgetter
from typing import Any

import msgspec

from bardo.catalog.fragments import leaves, merge_fields, overwritten, value_at
from bardo.dialects import dialect
from bardo.planning.knowledge import Knowledge, TargetFacts
from bardo.planning.profiles import fields_at
from bardo.planning.refusals import ProviderWords
from bardo.planning.route import Target
from bardo.planning.text_formats import ReplyOpening, TextFormats, text_formats_of
from bardo.reasoning.control import (
    ControlPlan,
    RouteFact,
    as_told,
    fit_messages,
    fit_parameters,
    in_words,
    plan_reasoning,
    repair_refusal,
)
from bardo.reasoning.control.off import without_thinking
from bardo.reasoning.starting import toggles_thinking
from bardo.reuse import size_of
from bardo.values.blocks import TextBlock
from bardo.values.degradation import Degradation
from bardo.values.request import Control, HistoryFacts, Message, OutputFormat, ReasoningPolicy, Request, Tool

LONGEST_SHAPE = 4096
"""Bytes of a shape by which a plan is kept: clients choose what stands in their requests, so the size may not grow with them."""
_PLAN_BYTES = 4096
"""What a plan takes beside what it holds of the request: its control, how the reply's text is read, what was known."""
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
    form = request.output_format
    try:
        shape = _encode(
            (
                _shape_fields(request),
                min(len(request.tools), len(_SOME_TOOLS)),
                None if form is None else _without_schema(form),
            )
        )
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    return shape if len(shape) <= LONGEST_SHAPE else None


def bare(request: Request) -> Request:
    """Return a request without its content."""
    form = request.output_format
    return msgspec.structs.replace(
        request,
        messages=(),
        tools=_SOME_TOOLS[: len(request.tools)],
        output_format=None if form is None else _without_schema(form),
        body=None,
        body_bytes=b"",
        client_headers={},
        kept_as=None,
        attribution="",
        degraded=(),
    )


def _without_schema(wanted: OutputFormat) -> OutputFormat:
    return msgspec.structs.replace(wanted, schema=None if wanted.schema is None else {}, guidance="")


class ControlledRequest(msgspec.Struct, frozen=True):
    """A request that fits its target, how it came to that, and what differs. It does not depend on the content of the messages."""

    request: Request
    plan: ControlPlan
    degraded: tuple[Degradation, ...]

    def with_content(self, request: Request, facts: HistoryFacts) -> tuple[Request, tuple[Degradation, ...]]:
        """Return a request that differs from the one at hand in its content only, as the target takes it, and what its messages lose.

        `facts` are those of its messages.
        """
        fitted, choice = self.request, self.request.tool_choice
        if choice is not None and choice.mode == "named" and request.tool_choice != choice and request.tools:
            # A model that can be made to call a tool by its name only gets that of the only one.
            choice = msgspec.structs.replace(choice, name=request.tools[0].name)
        request = msgspec.structs.replace(
            request,
            tool_choice=choice,
            max_output_tokens=fitted.max_output_tokens,
            sampling=fitted.sampling,
            reasoning=fitted.reasoning,
            control=fitted.control,
            choices=fitted.choices,
            extra=fitted.extra,
        )
        request, degraded = fit_messages(request, self.plan, facts)
        if self.plan.system_text:
            # It stands at the end of what the system says.
            told, messages = TextBlock(self.plan.system_text), request.messages
            if messages and messages[0].role == "system":
                first = msgspec.structs.replace(messages[0], blocks=(*messages[0].blocks, told))
                messages = (first, *messages[1:])
            else:
                messages = (Message("system", (told,)), *messages)
            request = msgspec.structs.replace(request, messages=messages)
        return request, degraded


class ShapePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of all requests of one shape at one target.

    `controlled` is the request without its content, as the target takes it. `formats` is how the reply's text is read where the request
    has no tools, `off` whether no thinking was asked for. `thinking` is what the target is told of thinking where the fields of a body in
    its own dialect may be sent as they came, or None if they may not.
    """

    controlled: ControlledRequest
    formats: TextFormats
    off: bool
    thinking: dict[str, Any] | None


def plan_shape(request: Request, target: Target, facts: TargetFacts, knowledge: Knowledge) -> ShapePlan:
    """Return the plan of a request's shape, made before or now. Raises InvalidRequest and Unsupported, as planning does."""
    shape = shape_of(request)
    if shape is None:
        return _made(bare(request), target, facts, knowledge)
    row = target.provider.row
    place = target.provider.place, row.dialect, shape
    # It holds as long as what it was made from is the same: the provider's row, and what is known of the target.
    kept = knowledge.plans.find(place)
    if kept is not None and kept[0] is row and kept[1] is facts:
        plan: ShapePlan = kept[2]
        return plan
    # A caller of the library may change its dictionaries later.
    asked = copy.deepcopy(bare(request))
    made = _made(asked, target, facts, knowledge)
    knowledge.plans.keep(place, (row, facts, made), size_of((place, asked)) + _PLAN_BYTES)
    return made


def _made(request: Request, target: Target, facts: TargetFacts, knowledge: Knowledge) -> ShapePlan:
    policy = _policy(request)
    plan = plan_reasoning(
        policy,
        facts.known,
        max_output_tokens=request.max_output_tokens,
        on_impossible=request.options.on_impossible,
        budgets=knowledge.budgets,
        show=request.dialect not in dialects_of(target, facts),
    )
    if policy is request.reasoning and request.dialect == target.provider.row.dialect:
        plan = as_told(plan, request.max_output_tokens)
    profile = request.options.profile
    if knowledge.prompt_words or (profile is not None and profile.reasoning_effort is not None):
        plan = in_words(plan)
    return _fitted(request, plan, policy, target, facts, knowledge)


def repaired(
    plan: ControlPlan,
    words: ProviderWords,
    status: int,
    request: Request,
    target: Target,
    facts: TargetFacts,
    knowledge: Knowledge,
) -> tuple[ShapePlan, RouteFact | None] | None:
    """Return the plan of a request's shape by what the words of a refusal say of the model's thinking, and what that is.

    None: they say nothing new of it. Raises CannotTurnOff, as planning does.
    """
    repair = repair_refusal(
        plan,
        words.text,
        is_quoted=words.quotes,
        status=status,
        date=knowledge.today,
        facts=facts.layers,
        max_output_tokens=request.max_output_tokens,
        on_impossible=request.options.on_impossible,
        budgets=knowledge.budgets,
        show=request.dialect not in dialects_of(target, facts),
    )
    if repair is None:
        return None
    return _fitted(bare(request), repair.plan, _policy(request), target, facts, knowledge), repair.fact


def yielded(plan: ControlPlan, request: Request, target: Target, facts: TargetFacts, knowledge: Knowledge) -> ShapePlan:
    """Return the plan of a request's shape without thinking, which a forced tool does not go with: turned off, or else not asked for."""
    why = "a forced tool does not go with thinking here"
    off = without_thinking(plan, why)
    if off is None:
        lost = Degradation("reasoning", asked=plan.intent if plan.mode != "none" else plan.emitted, sent=None, why=why)
        degraded = (*plan.degraded, lost)
        off = msgspec.structs.replace(
            plan, fields={}, emitted="nothing", level=None, budget=None, thinks=None, clamped=True, degraded=degraded
        )
    return _fitted(bare(request), off, None, target, facts, knowledge)


def _policy(request: Request) -> ReasoningPolicy | None:
    """Return the policy asked of bardo, with what the caller's own words say beside it; or else theirs."""
    asked, said = request.options.reasoning, request.reasoning
    if asked is None or said is None:
        return asked or said
    visible = said.visible if asked.visible is None else asked.visible
    return msgspec.structs.replace(asked, visible=visible, carried=said.carried, raw_fields=said.raw_fields)


def _fitted(
    request: Request,
    plan: ControlPlan,
    policy: ReasoningPolicy | None,
    target: Target,
    facts: TargetFacts,
    knowledge: Knowledge,
) -> ShapePlan:
    """Return the plan that follows from how the target is told to think."""
    row, of_profile = target.provider.row, fields_at(request, target)
    fitted = fit_parameters(request, plan)
    plan, extra, own = fitted.plan, request.extra, request.reasoning
    fields = merge_fields(plan.fields, fitted.fields) if fitted.fields else plan.fields
    # What is written over fields of the caller's own: those that bardo has no word for, and those that `bardo.reasoning` replaces.
    replaced: list[Degradation] = []
    if fields and extra:
        why = "it is written by what the request says of thinking"
        replaced += [Degradation(path, asked=was, sent=now, why=why) for path, was, now in overwritten(extra, fields)]
    if request.options.reasoning is not None and own is not None:
        why = "what is asked of bardo itself goes before it"
        for path, was in leaves(own.raw_fields):
            now = value_at(fields, path)
            if now != was:
                replaced.append(Degradation(path, asked=was, sent=now, why=why))
    if of_profile.fields:
        fields = merge_fields(fields, of_profile.fields)
    changed = msgspec.structs.replace(
        fitted.request, reasoning=policy, control=Control(fields=fields, thinks=plan.thinks)
    )
    degraded = (*plan.degraded, *fitted.degraded, *of_profile.degraded, *replaced)
    # The arguments of the chat template that are sent.
    given, ours = changed.extra.get("chat_template_kwargs"), plan.fields.get("chat_template_kwargs")
    toggles = {**(given if isinstance(given, dict) else {}), **(ours or {})}
    off = plan.asks_for_none or plan.emitted == "off" or toggles_thinking(toggles) is False
    beginning = ReplyOpening(streamed=changed.stream)
    if row.quirks.inline_reasoning:
        seen = facts.start_of_replies(off=off)
        if seen == "separated" and changed.extra.get("reasoning_format") == "none":
            # llama-server leaves the thinking in the text where a request says so, whatever it does otherwise (001 §7;
            # tools/server/README.md).
            seen = None
        beginning = ReplyOpening(
            streamed=changed.stream,
            toggles=toggles,
            off=off and not plan.floored,
            schema=changed.output_format is not None,
            rendered=facts.opens_thinking(toggles),
            seen=seen,
        )
    thinking: dict[str, Any] | None = None
    # Whether nothing was taken out of the request, and nothing put in beside the fields of the control.
    unchanged = not (degraded or plan.system_text or changed.options.reasoning is not None)
    if unchanged and request.dialect == row.dialect:
        language = dialect(row.dialect)
        losses = language.field_losses(changed)
        told = language.encode_control(changed, losses)
        thinking = None if losses.all else told
    return ShapePlan(
        controlled=ControlledRequest(changed, plan, degraded),
        formats=text_formats_of(row, target.model, formats=knowledge.formats, beginning=beginning),
        off=off,
        thinking=thinking,
    )


def dialects_of(target: Target, facts: TargetFacts) -> tuple[str | None, ...]:
    """Return the dialects that a target reads as they come: its own, and the one that its endpoint wraps for this model."""
    return target.provider.row.dialect, facts.known.endpoint.payloads.get(facts.known.found.maker)

"""Bring a request into the form one target takes: how it shall think, and nothing beside that which it is known to refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from bardo.catalog.fragments import leaves, merge_fields, overwritten, value_at
from bardo.planning.knowledge import Knowledge, TargetFacts
from bardo.planning.profiles import TargetFields, fields_at
from bardo.planning.refusals import ProviderWords
from bardo.planning.route import Target
from bardo.reasoning.control import (
    ControlPlan,
    PortableBudgets,
    RouteFact,
    as_told,
    fit_messages,
    fit_parameters,
    in_words,
    plan_reasoning,
    repair_refusal,
)
from bardo.reasoning.control.off import without_thinking
from bardo.values.blocks import TextBlock
from bardo.values.degradation import Degradation
from bardo.values.request import Control, HistoryFacts, Message, ReasoningPolicy, Request


class ControlledRequest(msgspec.Struct, frozen=True):
    """A request that fits its target, how it came to that, and what differs. It does not depend on the content of the messages."""

    request: Request
    plan: ControlPlan
    degraded: tuple[Degradation, ...]

    def with_content(self, request: Request, facts: HistoryFacts) -> tuple[Request, tuple[Degradation, ...]]:
        """Return a request that differs from the one at hand in its content only, as the target takes it, and what its messages lose.

        `facts` are those of its messages.
        """
        changed, degraded = fit_messages(self.settled(request), self.plan, facts=facts)
        return (_told(changed, self.plan.system_text) if self.plan.system_text else changed), degraded

    def keeps_messages(self, request: Request, facts: HistoryFacts) -> bool:
        """Whether the target takes the messages of such a request, whose facts these are, as they are."""
        fitted, _ = fit_messages(request, self.plan, facts=facts)
        return fitted is request and not self.plan.system_text

    def settled(self, request: Request) -> Request:
        """Return a request that differs from the one at hand in its content only, with the fields that the target takes."""
        fitted, choice = self.request, self.request.tool_choice
        if choice is not None and choice.mode == "named" and request.tool_choice != choice and request.tools:
            # A model that can be made to call a tool by its name only gets that of the only one.
            choice = msgspec.structs.replace(choice, name=request.tools[0].name)
        return msgspec.structs.replace(
            request,
            tool_choice=choice,
            max_output_tokens=fitted.max_output_tokens,
            sampling=fitted.sampling,
            reasoning=fitted.reasoning,
            control=fitted.control,
            choices=fitted.choices,
            extra=fitted.extra,
        )

    @property
    def unchanged(self) -> bool:
        """Whether nothing was taken out of the request, and nothing put in beside the fields of the control."""
        return not (self.degraded or self.plan.system_text or self.request.options.reasoning is not None)

    def is_said_by(self, body: dict[str, Any], thinking: dict[str, Any]) -> bool:
        """Whether a body in the target's own language says what is written of thinking, and no more of it."""
        raw = self.request.reasoning.raw_fields if self.request.reasoning is not None else {}
        if not thinking and not raw:
            return True
        return merge_fields(body, thinking) == body and merge_fields(thinking, raw) == thinking


def control(
    request: Request, target: Target, facts: TargetFacts, budgets: PortableBudgets, *, prompt_words: bool = False
) -> ControlledRequest:
    """Return the request as the target takes it; with `prompt_words`, models without a control are told in the system prompt.

    Raises InvalidRequest and Unsupported, as planning does.
    """
    policy = _policy(request)
    plan = plan_reasoning(
        policy,
        facts.known,
        max_output_tokens=request.max_output_tokens,
        on_impossible=request.options.on_impossible,
        budgets=budgets,
        show=request.dialect not in dialects_of(target, facts),
    )
    if policy is request.reasoning and request.dialect == target.provider.row.dialect:
        plan = as_told(plan, request.max_output_tokens)
    profile = request.options.profile
    if prompt_words or (profile is not None and profile.reasoning_effort is not None):
        plan = in_words(plan)
    return _fitted(request, plan, policy, fields_at(request, target))


def repaired(
    plan: ControlPlan,
    words: ProviderWords,
    status: int,
    request: Request,
    target: Target,
    facts: TargetFacts,
    knowledge: Knowledge,
) -> tuple[ControlledRequest, RouteFact | None] | None:
    """Return the request written again by what the words of a refusal say of the model's thinking, and what that is.

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
    return _fitted(request, repair.plan, _policy(request), fields_at(request, target)), repair.fact


def yielded(plan: ControlPlan, request: Request, target: Target) -> ControlledRequest:
    """Return the request once more without thinking, which a forced tool does not go with there: turned off, or else not asked for."""
    why = "a forced tool does not go with thinking here"
    off = without_thinking(plan, why)
    if off is None:
        lost = Degradation("reasoning", asked=plan.intent if plan.mode != "none" else plan.emitted, sent=None, why=why)
        degraded = (*plan.degraded, lost)
        off = msgspec.structs.replace(
            plan, fields={}, emitted="nothing", level=None, budget=None, thinks=None, clamped=True, degraded=degraded
        )
    return _fitted(request, off, None, fields_at(request, target))


def _policy(request: Request) -> ReasoningPolicy | None:
    """Return the policy asked of bardo, with what the caller's own words say beside it; or else theirs."""
    asked, said = request.options.reasoning, request.reasoning
    if asked is None or said is None:
        return asked or said
    visible = said.visible if asked.visible is None else asked.visible
    return msgspec.structs.replace(asked, visible=visible, carried=said.carried, raw_fields=said.raw_fields)


def _fitted(
    request: Request, plan: ControlPlan, policy: ReasoningPolicy | None, of_profile: TargetFields
) -> ControlledRequest:
    fitted = fit_parameters(request, plan)
    plan = fitted.plan
    fields = merge_fields(plan.fields, fitted.fields) if fitted.fields else plan.fields
    replaced = _replaced(request, fields)
    if of_profile.fields:
        fields = merge_fields(fields, of_profile.fields)
    changed = msgspec.structs.replace(
        fitted.request, reasoning=policy, control=Control(fields=fields, thinks=plan.thinks)
    )
    return ControlledRequest(changed, plan, (*plan.degraded, *fitted.degraded, *of_profile.degraded, *replaced))


def _replaced(request: Request, fields: dict[str, Any]) -> Iterator[Degradation]:
    """Give what is written over fields of the caller's own: those that bardo has no word for, and those that `bardo.reasoning` replaces."""
    if fields and request.extra:
        why = "it is written by what the request says of thinking"
        for path, own, sent in overwritten(request.extra, fields):
            yield Degradation(path, asked=own, sent=sent, why=why)
    if request.options.reasoning is not None and request.reasoning is not None:
        for path, own in leaves(request.reasoning.raw_fields):
            sent = value_at(fields, path)
            if sent != own:
                yield Degradation(path, asked=own, sent=sent, why="what is asked of bardo itself goes before it")


def dialects_of(target: Target, facts: TargetFacts) -> tuple[str | None, ...]:
    """Return the dialects that a target reads as they come: its own, and the one that its endpoint wraps for this model."""
    return target.provider.row.dialect, facts.known.endpoint.payloads.get(facts.known.found.maker)


def _told(request: Request, text: str) -> Request:
    """Return the request with `text` at the end of what the system says."""
    first = request.messages[0] if request.messages else None
    if first is None or first.role != "system":
        return msgspec.structs.replace(request, messages=(Message("system", (TextBlock(text),)), *request.messages))
    longer = msgspec.structs.replace(first, blocks=(*first.blocks, TextBlock(text)))
    return msgspec.structs.replace(request, messages=(longer, *request.messages[1:]))

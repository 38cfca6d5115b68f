"""Bring a request into the form one target takes: how it shall think, and nothing beside that which it is known to refuse."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.engine.knowledge import Knowledge
from bardo.engine.route import Target
from bardo.reasoning.control import ControlPlan, as_told, fit_parameters, merged, plan_reasoning, repair_refusal
from bardo.reasoning.control.amounts import HEADROOM
from bardo.reasoning.control.fragments import overwritten
from bardo.values.blocks import TextBlock
from bardo.values.degradation import Degradation
from bardo.values.errors import UpstreamRefused
from bardo.values.request import Control, Message, ReasoningPolicy, Request


class Controlled(msgspec.Struct, frozen=True):
    """A request that fits its target, how it came to that, and what differs."""

    request: Request
    plan: ControlPlan
    degraded: tuple[Degradation, ...]

    def says(self, body: dict[str, Any], written: bytes) -> bool:
        """Whether a body in the target's own language says all of this already, no more of thinking, and nothing it refuses.

        `written` is what would be sent in its place, but for the messages.
        """
        if self.degraded or self.plan.system_text or self.request.options.reasoning is not None:
            return False
        fields = self.request.control.fields if self.request.control is not None else {}
        told = self.request.reasoning.told if self.request.reasoning is not None else {}
        if merged(body, fields) == body and merged(fields, told) == fields:
            return True
        shape = msgspec.json.decode(written)
        return all(shape.get(name) == body.get(name) for name in (*fields, *told))


def control(request: Request, target: Target, knowledge: Knowledge) -> Controlled:
    """Return the request as the target takes it. Raises InvalidRequest and Unsupported, as planning does."""
    policy = _policy(request)
    plan = plan_reasoning(
        policy,
        knowledge.known(target),
        **conditions(request, target, knowledge),
    )
    if policy is request.reasoning and request.dialect == target.provider.row.dialect:
        plan = as_told(plan, request.max_output_tokens)
    return _fitted(request, plan, policy)


def repaired(
    plan: ControlPlan, refusal: UpstreamRefused, request: Request, target: Target, knowledge: Knowledge
) -> Controlled | None:
    """Return the request written again by what a refusal says of the model's thinking; None where it says nothing new of it.

    What was learned goes into the knowledge. Raises CannotTurnOff, as planning does.
    """
    policy = _policy(request)
    repair = repair_refusal(
        plan,
        refusal.message,
        status=refusal.status,
        date=knowledge.today(),
        facts=knowledge.layers(target),
        **conditions(request, target, knowledge),
    )
    if repair is None:
        return None
    knowledge.learn(repair.fact)
    return _fitted(request, repair.plan, policy)


def _policy(request: Request) -> ReasoningPolicy | None:
    """Return the policy asked of bardo, with what the caller's own words say beside it; or else theirs."""
    asked, said = request.options.reasoning, request.reasoning
    if asked is None or said is None:
        return asked or said
    visible = said.visible if asked.visible is None else asked.visible
    return msgspec.structs.replace(asked, visible=visible, carried=said.carried, told=said.told)


def _fitted(request: Request, plan: ControlPlan, policy: ReasoningPolicy | None) -> Controlled:
    fitted = fit_parameters(request, plan)
    plan = fitted.plan
    written = Control(fields=merged(plan.fields, fitted.fields) if fitted.fields else plan.fields, thinks=plan.thinks)
    changed = msgspec.structs.replace(fitted.request, reasoning=policy, control=written)
    if plan.system_text:
        changed = _told(changed, plan.system_text)
    return Controlled(changed, plan, (*plan.degraded, *fitted.degraded, *_replaced(request, written.fields)))


def _replaced(request: Request, fields: dict[str, Any]) -> tuple[Degradation, ...]:
    """Return what is written over fields of the caller's own that bardo has no word for."""
    if not fields or not request.extra:
        return ()
    why = "it is written by what the request says of thinking"
    return tuple(
        Degradation(path, asked=own, sent=sent, why=why) for path, own, sent in overwritten(request.extra, fields)
    )


def conditions(request: Request, target: Target, knowledge: Knowledge) -> dict[str, Any]:
    """Return under which conditions a policy is written: a repair of the plan is made under the same."""
    spoken = _spoken(request, target, knowledge)
    return {
        "max_output_tokens": request.max_output_tokens,
        "answer_headroom": HEADROOM,
        "on_impossible": request.options.on_impossible,
        "budgets": knowledge.budgets,
        "show": not spoken,
    }


def _spoken(request: Request, target: Target, knowledge: Knowledge) -> bool:
    """Whether the request came in the language that the target's model is told how to think in."""
    return request.dialect in dialects_of(target, knowledge)


def dialects_of(target: Target, knowledge: Knowledge) -> tuple[str | None, ...]:
    """Return the dialects that a target reads as they come: its own, and the one that its endpoint wraps for this model."""
    known = knowledge.known(target)
    return target.provider.row.dialect, known.endpoint.payloads.get(known.found.maker)


def _told(request: Request, text: str) -> Request:
    """Return the request with `text` at the end of what the system says."""
    first = request.messages[0] if request.messages else None
    if first is None or first.role != "system":
        return msgspec.structs.replace(request, messages=(Message("system", (TextBlock(text),)), *request.messages))
    longer = msgspec.structs.replace(first, blocks=(*first.blocks, TextBlock(text)))
    return msgspec.structs.replace(request, messages=(longer, *request.messages[1:]))

"""Change a request as a plan says, and tell the caller what that costs."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from bardo.structured.plan import StructuredPlan
from bardo.structured.rewrite import Rewrite
from bardo.values.blocks import TextBlock
from bardo.values.degradation import Degradation, distinct
from bardo.values.request import Message, OutputFormat, Request, Tool, ToolChoice

_FIELD = "response_format"


class Applied(msgspec.Struct, frozen=True):
    """A changed request and what the caller must know of it."""

    request: Request
    degraded: tuple[Degradation, ...] = ()


def apply(plan: StructuredPlan, request: Request) -> Applied:
    """Return the request that asks for the plan's answer, in no dialect: any encoder writes it as it is.

    The caller's tools stay. Where its tool choice already demands a call of one of them, there is no answer to shape in this turn, and a
    tool is not put beside them.
    """
    degraded = distinct((*_of_mode(plan), *(_of_rewrite(loss) for loss in plan.losses)))
    if plan.form == "none":
        return Applied(replace(request, output_format=None))
    if plan.form == "json_schema":
        shape = OutputFormat(
            mode="json_schema",
            name=plan.name,
            schema=plan.schema,
            strict=plan.strict,
            description=_description(request),
        )
        return Applied(replace(request, output_format=shape), degraded)
    if plan.form == "json_object":
        asked = replace(request, output_format=OutputFormat(mode="json_object", name=plan.name))
        return Applied(with_instruction(asked, plan.guidance), degraded)
    if plan.form == "prompt":
        return Applied(with_instruction(replace(request, output_format=None), plan.guidance), degraded)
    return _with_tool(plan, request, degraded)


def _with_tool(plan: StructuredPlan, request: Request, degraded: tuple[Degradation, ...]) -> Applied:
    choice = request.tool_choice or ToolChoice()
    plain = replace(request, output_format=None)
    if choice.mode in ("required", "named"):
        why = "the request demands a call of one of its own tools, so there is no answer to shape"
        return Applied(plain, (Degradation(_FIELD, asked=plan.name, why=why),))
    own = request.tools if choice.mode != "none" else ()
    description = _description(request) or "Gives the final answer to the user."
    tool = Tool(name=plan.tool_name, description=description, schema=plan.schema, strict=plan.strict)
    changed = replace(plain, tools=(*own, tool), tool_choice=_choice(plan, choice, beside_others=bool(own)))
    if choice.mode == "none" and request.tools:
        why = "no tool may be called, and the answer is one"
        degraded = (*degraded, Degradation("tools", asked=len(request.tools), sent=0, why=why))
    return Applied(with_instruction(changed, plan.guidance), degraded)


def _choice(plan: StructuredPlan, choice: ToolChoice, *, beside_others: bool) -> ToolChoice:
    if plan.form == "tool_auto":
        return ToolChoice(mode="auto", parallel=choice.parallel)
    if beside_others:
        # Another tool may have to come first, so any of them satisfies the choice.
        return ToolChoice(mode="required", parallel=choice.parallel)
    return ToolChoice(mode="named", name=plan.tool_name, parallel=choice.parallel)


def with_instruction(request: Request, text: str) -> Request:
    """Return a request whose system prompt ends with `text`; unchanged for no text.

    It joins the system message that stands first: some models take no second one, and nothing before it changes for a prompt cache.
    """
    if not text:
        return request
    messages = request.messages
    if messages and messages[0].role == "system":
        first = replace(messages[0], blocks=(*messages[0].blocks, TextBlock("\n\n" + text)))
        return replace(request, messages=(first, *messages[1:]))
    return replace(request, messages=(Message("system", (TextBlock(text),)), *messages))


def _description(request: Request) -> str:
    return request.output_format.description if request.output_format is not None else ""


def _of_mode(plan: StructuredPlan) -> tuple[Degradation, ...]:
    if not plan.downgraded:
        return ()
    why = next((step.reason for step in plan.skipped), "the target offers nothing better")
    return (
        Degradation(_FIELD, asked=plan.wanted, sent=plan.mode if plan.form != "json_object" else plan.form, why=why),
    )


def _of_rewrite(step: Rewrite) -> Degradation:
    return Degradation(
        f"{_FIELD}.schema{step.path}", asked=step.kind.removesuffix("_dropped"), sent=step.effect, why=step.note
    )

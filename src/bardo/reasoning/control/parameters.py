"""Make the rest of a request fit a model.

Parameters that it refuses are taken out, brought into its limits, renamed or stood in for. So are refused ids of calls in its messages,
and an answer that the caller began; words say how much to think. Each difference is a Degradation. A parameter at its default says nothing,
so taking it out is no difference.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple, TypeGuard

import msgspec

from bardo.catalog.fragments import at_path, merge_fields
from bardo.catalog.parameters import CallIds, ParameterRule, Parameters, builtin_parameters
from bardo.catalog.shared_fields import chat_fields_elsewhere
from bardo.reasoning.control.off import without_thinking
from bardo.reasoning.control.plan import ControlPlan
from bardo.values.blocks import Block, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.degradation import Degradation
from bardo.values.errors import Unsupported
from bardo.values.request import NEUTRAL, HistoryFacts, Message, Request, Sampling, ToolChoice

_DEFAULTS = {**NEUTRAL, "logprobs": False}
_SAMPLING = frozenset(field.name for field in msgspec.structs.fields(Sampling))


class Fitted(NamedTuple):
    """A request that fits, JSON fields that go into the upstream body beside the plan's, the plan to use, and every difference."""

    request: Request
    fields: dict[str, Any]
    plan: ControlPlan
    degraded: tuple[Degradation, ...]


class _ParameterWork:
    """The parameters of one request while rules work on them. `foreign`: the client speaks another dialect than the provider."""

    def __init__(self, request: Request, *, foreign: bool) -> None:
        self.foreign = foreign
        self.values: dict[str, Any] = {
            name: value
            for name, value in msgspec.structs.asdict(request.sampling).items()
            if value is not None and value != ()
        }
        self.values |= {name: value for name, value in request.extra.items() if value is not None}
        self.elsewhere = _elsewhere(request)
        self.values |= self.elsewhere
        if request.max_output_tokens is not None:
            self.values["max_output_tokens"] = request.max_output_tokens
        self.values["choices"] = request.choices
        self.fields: dict[str, Any] = {}
        self.degraded: list[Degradation] = []
        self.touched = False

    def move(self, name: str, path: str) -> None:
        """Return a parameter its place in the provider's own body."""
        self.touched = True
        self.fields = merge_fields(self.fields, at_path(path, self.values.pop(name)))

    def lose(self, name: str, why: str, *, sent: Any = None) -> None:
        """Take a parameter out, and say so unless it said nothing."""
        self.touched = True
        asked = self.values.pop(name)
        if asked != _DEFAULTS.get(name):
            self.degraded.append(Degradation(_name(name), asked=_plain(asked), sent=sent, why=why))

    def change(self, name: str, value: Any, why: str) -> None:
        """Set a parameter to something else."""
        self.degraded.append(Degradation(_name(name), asked=_plain(self.values[name]), sent=_plain(value), why=why))
        self.touched = True
        self.values[name] = value


class _Substitute(msgspec.Struct, frozen=True):
    """The substitute for `min_p` and `top_k`: a `top_p`, unless that is refused too, or goes without a temperature only."""

    table: Parameters
    refused: bool
    alone: bool

    def top_p(self, name: str, values: Mapping[str, Any]) -> float | None:
        """Return the `top_p` that is about what was asked, or None if there is none."""
        if (
            self.refused
            or "top_p" in values
            or (self.alone and "temperature" in values)
            or not _is_number(values[name])
        ):
            return None
        if name == "min_p":
            return round(1 - float(values[name]), 4)
        steps = self.table.step if name == "top_k" else ()
        return next((step.top_p for step in steps if values[name] <= step.top_k), None)


def fit_parameters(request: Request, plan: ControlPlan, *, parameters: Parameters | None = None) -> Fitted:
    """Return `request` with nothing in it that the plan's target is known to refuse.

    The output limit is the plan's. Where a forced tool and thinking exclude each other, thinking gives way if it can be turned off, else
    the choice of tool does; the returned plan says which. Raises Unsupported where tools cannot be sent at all.
    """
    table = parameters or builtin_parameters()
    rules = _rules_of(plan, table)
    plan = _with_tools(request, plan)
    plan, choice, degraded = _forced(request, plan, rules)
    if request.max_output_tokens != plan.max_output_tokens:
        request = msgspec.structs.replace(request, max_output_tokens=plan.max_output_tokens)
    holding = [rule for rule in rules if _holds(rule, plan, request)]
    if not holding:
        return Fitted(_with_choice(request, choice), {}, plan, degraded)
    bench = _ParameterWork(request, foreign=request.dialect not in ("", plan.target.dialect))
    for rule in holding:
        _apply(rule, bench, holding, table)
    chosen = _with_choice(request, choice)
    if not bench.touched:
        return Fitted(chosen, {}, plan, degraded)
    return Fitted(_rebuilt(chosen, bench), bench.fields, plan, (*degraded, *bench.degraded))


def _rules_of(plan: ControlPlan, table: Parameters) -> tuple[ParameterRule, ...]:
    """Return the rules about the plan's model where it is served."""
    known = plan.known
    if known is None:
        return ()
    named = (known.row and known.row.rules) or ()
    owner = known.endpoint.owner or plan.target.provider
    return table.rules(owner, plan.target.dialect, known.found.id, named)


def _holds(rule: ParameterRule, plan: ControlPlan, request: Request) -> bool:
    """Whether a rule about the model holds for this call of it."""
    if rule.with_tools_or_json and not (request.tools or request.output_format):
        return False
    match rule.when:
        case "thinking":
            return plan.thinks is True
        case "budgeted":
            return plan.budget is not None
        case "level":
            return plan.level == rule.level
        case "cannot_think":
            return plan.known is not None and plan.known.control == ("none",) and plan.known.classified
    return True


def _apply(rule: ParameterRule, bench: _ParameterWork, holding: Sequence[ParameterRule], table: Parameters) -> None:
    for name, path in rule.rename.items():
        if name in bench.values:
            bench.move(name, path)
    foreign = rule.drop_foreign if bench.foreign else ()
    for name in (*rule.drop, *foreign):
        if name in bench.values:
            refused = any("top_p" in rule.drop or "top_p" in rule.within for rule in holding)
            stand_in = _Substitute(
                table, refused, alone=any("top_p" in names for rule in holding for names in rule.one_of)
            )
            _drop(name, bench, rule.why, stand_in)
    for name, (least, most) in rule.within.items():
        if name in bench.values and not (_is_number(bench.values[name]) and least <= bench.values[name] <= most):
            bench.lose(name, rule.why)
    for name, instead in rule.replace.items():
        value = bench.values.get(name)
        if isinstance(value, str) and value in instead:
            bench.change(name, instead[value], rule.why)
    _limit(rule, bench)
    for names in rule.one_of:
        for name in [name for name in names if name in bench.values][1:]:
            bench.lose(name, rule.why)


def _drop(name: str, bench: _ParameterWork, why: str, stand_in: _Substitute) -> None:
    top_p = stand_in.top_p(name, bench.values)
    if top_p is None or bench.values[name] == _DEFAULTS.get(name):
        bench.lose(name, why)
        return
    bench.lose(name, f"{why}; top_p stands in", sent={"top_p": top_p})
    bench.values["top_p"] = top_p


def _limit(rule: ParameterRule, bench: _ParameterWork) -> None:
    for name, (least, most) in rule.limits.items():
        value = bench.values.get(name)
        if _is_number(value) and not least <= value <= most:
            nearest = min(max(value, least), most)
            whole = isinstance(value, int) and nearest == int(nearest)
            span = f"the least here is {least:g}" if most == inf else f"the range here is {least:g} to {most:g}"
            bench.change(name, int(nearest) if whole else nearest, span)
    if rule.choices is not None and bench.values["choices"] > rule.choices:
        bench.change("choices", rule.choices, rule.why)
    stops = bench.values.get("stop", ())
    if rule.stops is not None and isinstance(stops, list | tuple) and len(stops) > rule.stops:
        bench.change("stop", stops[: rule.stops], rule.why)


def _is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a value can be compared: a field that the client's dialect does not know may hold anything, and its provider refuses it."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _with_tools(request: Request, plan: ControlPlan) -> ControlPlan:
    """Turn thinking off where its maker takes tools beside it in another dialect only."""
    row = plan.known and plan.known.row
    if not row or not row.tools_in or not request.tools or plan.thinks is not True or plan.known is None:
        return plan
    if plan.known.endpoint.owner != row.provider or plan.target.dialect == row.tools_in:
        return plan
    yielded = without_thinking(plan, f"tools go with thinking only in {row.tools_in}")
    if yielded is None:
        hint = f"reach it in the dialect {row.tools_in}"
        raise Unsupported(f"{plan.target.model} takes no tools in {plan.target.dialect}", hint=hint)
    return yielded


_NAMED = ("named", "named_not_thinking")
"""A tool can be forced by its name only."""


def _forced(
    request: Request, plan: ControlPlan, rules: Iterable[ParameterRule]
) -> tuple[ControlPlan, ToolChoice | None, tuple[Degradation, ...]]:
    """Settle a forced tool with a model that does not take one, or not while it thinks."""
    choice = request.tool_choice
    if choice is None or choice.mode not in ("required", "named"):
        return plan, choice, ()
    taken = (plan.known and plan.known.row and plan.known.row.forced_tool) or "yes"
    if taken in _NAMED and choice.mode == "required" and len(request.tools) == 1:
        choice = msgspec.structs.replace(choice, mode="named", name=request.tools[0].name)
    refused = any(rule.no_forced_tool for rule in rules) or taken == "never"
    refused = refused or (taken in _NAMED and choice.mode == "required")
    excluded = (taken in ("not_thinking", "named_not_thinking") and plan.thinks is True) or (
        taken == "not_budgeted" and plan.budget is not None
    )
    if not refused and not excluded:
        return plan, choice, ()
    if not refused and (yielded := without_thinking(plan, "a forced tool does not go with thinking here")) is not None:
        return yielded, choice, ()
    why = "this model cannot be made to call a tool" if refused else "a tool cannot be forced while the model thinks"
    asked = choice.name if choice.mode == "named" else choice.mode
    lost = Degradation("tool_choice", asked=asked, sent="auto", why=why)
    return plan, msgspec.structs.replace(choice, mode="auto", name=""), (lost,)


def _with_choice(request: Request, choice: ToolChoice | None) -> Request:
    return request if choice is request.tool_choice else msgspec.structs.replace(request, tool_choice=choice)


def _rebuilt(request: Request, bench: _ParameterWork) -> Request:
    values = bench.values
    sampling = Sampling(**{name: values[name] for name in _SAMPLING & values.keys() - request.extra.keys()})
    extra = {name: values.get(name) for name, value in request.extra.items() if value is None or name in values}
    for name in bench.elsewhere.keys() - values.keys():
        extra = chat_fields_elsewhere(request.dialect)[name].removed(extra)
    return msgspec.structs.replace(
        request,
        sampling=sampling,
        extra=extra,
        max_output_tokens=values.get("max_output_tokens"),
        choices=values["choices"],
    )


def _elsewhere(request: Request) -> dict[str, Any]:
    """Return the fields that rules name as Chat does, and that the client's dialect has in another place."""
    if not request.extra:
        return {}
    places = chat_fields_elsewhere(request.dialect)
    values = {name: place.value(request.extra) for name, place in places.items()}
    return {name: value for name, value in values.items() if value is not None and name not in request.extra}


def _name(name: str) -> str:
    return "n" if name == "choices" else name


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


CONTINUE = "Continue your answer from exactly where it ends. Repeat nothing of it."
"""The user's message behind an answer that the caller began, to a model that takes no such answer as the last message."""
_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def fit_messages(request: Request, plan: ControlPlan, facts: HistoryFacts) -> tuple[Request, tuple[Degradation, ...]]:
    """Return the request with messages that the target takes, and every difference. `facts` are those of its messages.

    A refused id of a call becomes the same id on every turn, since it is made of nothing but the id itself.
    """
    degraded: list[Degradation] = []
    named = bool(facts.calls or facts.results)
    for rule in _rules_of(plan, builtin_parameters()):
        names = named and rule.call_ids is not None
        of_messages = names or rule.no_thinking_back or rule.no_prefill or rule.trimmed_prefill
        if not of_messages or not _holds(rule, plan, request):
            continue
        if rule.no_thinking_back:
            request = _without_thinking(request, rule.why, degraded)
        if names and rule.call_ids is not None:
            request = _with_ids(request, rule, rule.call_ids, facts, degraded)
        if rule.no_prefill:
            request = _without_prefill(request, rule.why, degraded)
        if rule.trimmed_prefill:
            request = _with_trimmed_prefill(request, rule.why, degraded)
    return request, tuple(degraded)


def _without_thinking(request: Request, why: str, degraded: list[Degradation]) -> Request:
    if not any(isinstance(block, ReasoningBlock) for message in request.messages for block in message.blocks):
        return request
    degraded.append(Degradation("reasoning", asked="earlier thinking", why=why))
    return msgspec.structs.replace(request, messages=tuple(_thoughtless(message) for message in request.messages))


def _thoughtless(message: Message) -> Message:
    blocks = tuple(block for block in message.blocks if not isinstance(block, ReasoningBlock))
    return message if len(blocks) == len(message.blocks) else msgspec.structs.replace(message, blocks=blocks)


def _with_ids(
    request: Request, rule: ParameterRule, ids: CallIds, facts: HistoryFacts, degraded: list[Degradation]
) -> Request:
    taken = re.compile(ids.pattern).fullmatch
    used = {call.id for call in facts.calls} | {result.call_id for result in facts.results}
    if all(map(taken, used - {""})):
        return request
    changed: dict[str, str] = {}
    messages = tuple(_renamed(message, ids, changed) for message in request.messages)
    if not changed:
        return request
    first = next(iter(changed))
    degraded.append(Degradation("tool_call.id", asked=first, sent=changed[first], why=rule.why))
    return msgspec.structs.replace(request, messages=messages)


def _renamed(message: Message, ids: CallIds, changed: dict[str, str]) -> Message:
    blocks = [_with_id(block, ids, changed) for block in message.blocks]
    same = all(now is before for now, before in zip(blocks, message.blocks, strict=True))
    return message if same else msgspec.structs.replace(message, blocks=tuple(blocks))


def _with_id(block: Block, ids: CallIds, changed: dict[str, str]) -> Block:
    match block:
        case ToolCallBlock(id=before) if before:
            after = fitting_id(before, ids)
            if after != before:
                changed[before] = after
                return msgspec.structs.replace(block, id=after)
        case ToolResultBlock(call_id=before) if before:
            after = fitting_id(before, ids)
            if after != before:
                changed[before] = after
                return msgspec.structs.replace(block, call_id=after)
    return block


def fitting_id(call_id: str, ids: CallIds) -> str:
    """Return the id itself where it is taken, or else one made of it: two ids become the same by a chance of 1 in 10^16 (9 characters)."""
    if re.fullmatch(ids.pattern, call_id):
        return call_id
    number = int.from_bytes(hashlib.blake2b(call_id.encode("utf-8", "replace"), digest_size=32).digest())
    letters: list[str] = []
    for _ in range(ids.length):
        number, place = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[place])
    return ids.prefix + "".join(letters)


def _without_prefill(request: Request, why: str, degraded: list[Degradation]) -> Request:
    last = request.messages[-1] if request.messages else None
    # A turn that a provider's own tools interrupted is sent back as it came, and goes on from there.
    if last is None or last.role != "assistant" or not all(isinstance(block, TextBlock) for block in last.blocks):
        return request
    degraded.append(Degradation("prefill", asked=last.text[:80], sent=CONTINUE, why=why))
    return msgspec.structs.replace(request, messages=(*request.messages, Message("user", (TextBlock(CONTINUE),))))


def _with_trimmed_prefill(request: Request, why: str, degraded: list[Degradation]) -> Request:
    last = request.messages[-1] if request.messages else None
    text = last.blocks[-1] if last is not None and last.role == "assistant" and last.blocks else None
    if last is None or not isinstance(text, TextBlock) or text.text == (trimmed := text.text.rstrip()):
        return request
    degraded.append(Degradation("prefill", asked=text.text[-80:], sent=trimmed[-80:], why=why))
    blocks = (*last.blocks[:-1], *([msgspec.structs.replace(text, text=trimmed)] if trimmed else ()))
    begun = (msgspec.structs.replace(last, blocks=blocks),) if blocks else ()
    return msgspec.structs.replace(request, messages=(*request.messages[:-1], *begun))


_STEPS = "Think step by step before you answer."
_WORDS = {"off": "Answer directly, without explaining your reasoning.", "high": _STEPS, "xhigh": _STEPS, "max": _STEPS}
"""The words written for each level asked for; other levels need none."""
SENT = "words in the system prompt"


def in_words(plan: ControlPlan) -> ControlPlan:
    """Return the plan with words for the system prompt, where the model does not think and nothing else can be said to it."""
    known, policy = plan.known, plan.policy
    if known is None or policy is None or known.controllable or plan.thinks or plan.fields or plan.system_text:
        return plan
    words = _WORDS.get("off" if policy.mode == "off" else policy.effort or "")
    if not words:
        return plan
    told = Degradation("reasoning", asked=plan.intent, sent=SENT, why="this model has no control of its thinking")
    others = tuple(degradation for degradation in plan.degraded if degradation.what != "reasoning")
    return msgspec.structs.replace(plan, system_text=words, degraded=(told, *others))

"""Make a request's other parameters fit a model: what it refuses is taken out, brought into its limits, renamed or stood in for.

Each difference is a Degradation. A parameter at its default says nothing, so taking it out is no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple, TypeGuard

import msgspec

from bardo.catalog.fragments import at_path, merge_fields
from bardo.catalog.parameters import ParameterRule, Parameters, builtin_parameters
from bardo.catalog.shared_fields import chat_fields_elsewhere
from bardo.reasoning.control.off import without_thinking
from bardo.reasoning.control.plan import ControlPlan
from bardo.values.degradation import Degradation
from bardo.values.errors import Unsupported
from bardo.values.request import NEUTRAL, Request, Sampling, ToolChoice

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
    """What may stand in for `min_p` and `top_k`: a `top_p`, unless that is refused too, or goes without a temperature only."""

    table: Parameters
    refused: bool
    alone: bool

    def top_p(self, name: str, values: Mapping[str, Any]) -> float | None:
        """Return the `top_p` that is about what was asked, or None where there is none."""
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
    rules = rules_of(plan, table)
    plan = _with_tools(request, plan)
    plan, choice, degraded = _forced(request, plan, rules)
    if request.max_output_tokens != plan.max_output_tokens:
        request = msgspec.structs.replace(request, max_output_tokens=plan.max_output_tokens)
    holding = [rule for rule in rules if holds(rule, plan, request)]
    if not holding:
        return Fitted(_with_choice(request, choice), {}, plan, degraded)
    bench = _ParameterWork(request, foreign=request.dialect not in ("", plan.target.dialect))
    for rule in holding:
        _apply(rule, bench, holding, table)
    chosen = _with_choice(request, choice)
    if not bench.touched:
        return Fitted(chosen, {}, plan, degraded)
    return Fitted(_rebuilt(chosen, bench), bench.fields, plan, (*degraded, *bench.degraded))


def rules_of(plan: ControlPlan, table: Parameters) -> tuple[ParameterRule, ...]:
    """Return the rules about the plan's model where it is served."""
    known = plan.known
    if known is None:
        return ()
    named = (known.row and known.row.rules) or ()
    owner = known.endpoint.owner or plan.target.provider
    return table.rules(owner, plan.target.dialect, known.found.id, named)


def holds(rule: ParameterRule, plan: ControlPlan, request: Request) -> bool:
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

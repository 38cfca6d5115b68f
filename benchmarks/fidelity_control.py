"""Whether what a client asks of thinking reaches each model in the form that the collected facts give it, or is reported.

The expectation is computed from the facts alone, and the body is read here by the names of the fields: bardo's rows are used for neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.fidelity_requests import CLIENTS, LEVELS, LIMIT, Asked, with_thinking
from benchmarks.wire_facts import ModelFact, model_facts

ASKED: tuple[Asked, ...] = ("off", *LEVELS, 1024, 5000, 20000)
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 32768, "xhigh": 32768, "max": 32768}
_WORDS = ("reason", "think", "thought", "effort", "budget")


@dataclass(frozen=True, slots=True)
class ControlCase:
    """One client's wish for one model."""

    client: str
    known: ModelFact
    asked: Asked

    def __str__(self) -> str:
        return f"{self.client} → {self.known.provider}/{self.known.model}: {self.asked}"

    @property
    def provider(self) -> str:
        """The provider that is asked."""
        return self.known.provider

    @property
    def request(self) -> dict[str, Any] | None:
        """The client's body; None where its dialect cannot say so."""
        return with_thinking(self.client, self.known.model, self.asked)


def cases() -> Iterator[ControlCase]:
    """Return every client's every wish for every model of the facts."""
    for known in model_facts():
        for client in CLIENTS:
            for asked in ASKED:
                case = ControlCase(client, known, asked)
                if case.request is not None:
                    yield case


@dataclass(frozen=True, slots=True)
class Emitted:
    """What a body asks of thinking. `off` and `on` are switches."""

    off: bool = False
    on: bool = False
    levels: frozenset[str] = frozenset()
    budgets: frozenset[int] = frozenset()


def emitted(body: Mapping[str, Any]) -> Emitted:
    """Read a request's body by the names of the fields that providers document."""
    switches, levels, budgets = set[bool](), set[str](), set[int]()
    for name, value in _fields(body):
        if name in ("thinking.type", "reasoning_config"):
            switches.add(value != "disabled")
        elif isinstance(value, bool):
            switches.add(value)
        elif isinstance(value, int):
            budgets.add(value)
        elif isinstance(value, str):
            levels.add(value.lower())
    if 0 in budgets or "none" in levels:
        switches.add(False)
    return Emitted(
        False in switches, True in switches, frozenset(levels - {"none", "default"}), frozenset(budgets - {0})
    )


_PLACES = (
    "thinking.type", "thinking.budget_tokens", "thinking.token_budget", "output_config.effort", "reasoning.effort",
    "reasoning.max_tokens", "reasoning.enabled", "reasoning_effort", "think", "enable_thinking", "thinking_budget",
    "generationConfig.thinkingConfig.thinkingBudget", "generationConfig.thinkingConfig.thinkingLevel", "prompt_mode",
    "chat_template_kwargs.enable_thinking", "chat_template_kwargs.thinking", "thinking_token_budget",
)  # fmt: skip


def _fields(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for place in _PLACES:
        value: Any = body
        for part in place.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None:
            yield place, value


def problem_of(case: ControlCase, body: Mapping[str, Any], reported: list[str]) -> str:
    """Return what is wrong with what was sent for a case, empty where nothing is. `reported` are the names of the degradations."""
    told = any(word in what.lower() for what in reported for word in _WORDS)
    sent = emitted(body)
    if case.asked == "off":
        return _off_problem(case.known, sent, told=told)
    if isinstance(case.asked, int):
        return _budget_problem(case.known, case.asked, sent, told=told)
    return _level_problem(case.known, case.asked, sent, told=told)


def _off_problem(known: ModelFact, sent: Emitted, *, told: bool) -> str:
    if known.fact.get("efforts", ()) is None and "off" not in known.fact:
        return ""
    if known.can_be_off:
        return "" if sent.off and not told else f"off is possible: {sent}, reported: {told}"
    if "none" in known.control and "omit" not in known.fact:
        return ""
    if known.fact.get("omit") == "off" and not (sent.on or sent.levels or sent.budgets):
        return ""
    if sent.off:
        return f"off is refused by the model: {sent}"
    if not told:
        return "off is impossible, and nothing is reported"
    lowest = known.levels[:1]
    return "" if not lowest or not sent.levels or sent.levels == set(lowest) else f"{lowest} is the nearest: {sent}"


def _level_problem(known: ModelFact, level: str, sent: Emitted, *, told: bool) -> str:
    if sent.off:
        return f"thinking was turned off: {sent}"
    if known.levels:
        if level in known.levels:
            return "" if sent.levels == {level} else f"{level} is a level of the model: {sent}"
        if not sent.levels <= set(known.levels) or not sent.levels:
            return f"not one of {known.levels}: {sent}"
        return "" if told else f"{level} became {set(sent.levels)}, and nothing is reported"
    if "budget" in known.control:
        wanted = known.budget_for(_BUDGETS[level], LIMIT)
        near = sent.budgets and abs(next(iter(sent.budgets)) - wanted) <= wanted // 2
        return "" if near or (level == "minimal" and sent.budgets) else f"a budget near {wanted} says so: {sent}"
    return _switch_problem(known, sent, told=told)


def _budget_problem(known: ModelFact, tokens: int, sent: Emitted, *, told: bool) -> str:
    if sent.off:
        return f"thinking was turned off: {sent}"
    if "budget" in known.control:
        wanted = known.budget_for(tokens, LIMIT)
        if sent.budgets == {wanted}:
            return "" if wanted == tokens or told else f"{tokens} became {wanted}, and nothing is reported"
        if not known.levels:
            return f"the budget is {wanted}: {sent}"
    if known.levels:
        if not sent.levels or not sent.levels <= set(known.levels):
            return f"not one of {known.levels}: {sent}"
        return "" if told else f"{tokens} tokens became {set(sent.levels)}, and nothing is reported"
    return _switch_problem(known, sent, told=told)


def _switch_problem(known: ModelFact, sent: Emitted, *, told: bool) -> str:
    """Check a model that has neither levels nor a budget, or of which neither is known."""
    if known.fact.get("efforts", ()) is None or ("effort" in known.control and (sent.levels or told)):
        return ""
    if "none" in known.control and (sent.levels or sent.budgets or sent.on):
        return f"the model takes no control: {sent}"
    return "" if told else "the model has no such setting, and nothing is reported"

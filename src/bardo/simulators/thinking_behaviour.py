"""How a simulated model responds to settings of its thinking: it honours, flattens, ignores or refuses them.

It is for programs that measure which settings a model honours. How much it thinks depends on the question's length, on the setting, and on
seeded noise, so a run can be repeated.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from bardo.simulators.exchange import Exchange, Incoming, Refusal
from bardo.simulators.fields import Fields, at, number, rows, text
from bardo.simulators.turns import Turn

BehaviourKind: TypeAlias = Literal["honour", "flatten", "ignore", "refuse"]
THINKING_BEHAVIOURS: tuple[BehaviourKind, ...] = get_args(BehaviourKind)

_FACTORS = {"minimal": 0.25, "low": 0.5, "medium": 1.0, "high": 2.0, "xhigh": 3.0, "max": 4.0}
_EFFORTS = ("reasoning_effort", "effort", "thinkingLevel", "thinking_level", "think", "maxReasoningEffort")
_BUDGETS = (
    "budget_tokens",
    "thinkingBudget",
    "thinking_budget",
    "thinking_token_budget",
    "token_budget",
    "reasoning_budget_tokens",
    "thinking_budget_tokens",
)  # fmt: skip
_OBJECTS = ("reasoning", "thinking", "thinkingConfig", "thinking_config", "reasoningConfig", "enable_thinking")
_AMOUNTS = frozenset((*_EFFORTS, *_BUDGETS, "max_tokens"))
_NOT_SETTINGS = ("messages", "contents", "input", "system", "tools")
_TOKENS_PER_CHARACTER = 8
_LEAST, _MOST = 64, 6000
_FILLING = "Let me look at it once more. "


@dataclass(frozen=True, slots=True)
class ThinkingBehaviour:
    """`noise` is the spread of the tokens around the intended number, as a share."""

    kind: BehaviourKind = "honour"
    seed: int = 0
    noise: float = 0.1

    def apply(self, exchange: Exchange, *, off: bool) -> Exchange:
        """Return the exchange with as much reasoning as the settings lead to; `off` is what the provider understood. Raises Refusal."""
        asked = dict(_thinking_settings(exchange.body))
        if self.kind == "refuse" and asked:
            name = next(iter(asked))
            message = f"Unsupported parameter: '{name}' is not supported with this model."
            raise Refusal("bad_value", message, parameter=name)
        tokens = round(self._wanted_tokens(exchange, asked, off=off) * self._noise(exchange.seed))
        turn = exchange.turn.without_reasoning() if tokens == 0 else _thinking(exchange.turn, tokens)
        usage = replace(turn.count_usage(exchange.conversation.characters), reasoning_tokens=tokens)
        return replace(exchange, turn=replace(turn, usage=usage), usage=usage)

    def _wanted_tokens(self, exchange: Exchange, asked: Fields, *, off: bool) -> float:
        usual = min(_MOST, max(_LEAST, _TOKENS_PER_CHARACTER * len(exchange.conversation.question)))
        if self.kind == "ignore":
            return usual
        if off:
            return 0
        return usual if self.kind == "flatten" else _honoured_tokens(asked, usual)

    def _noise(self, seed: str) -> float:
        return random.Random(f"{self.seed}/{seed}").uniform(1 - self.noise, 1 + self.noise)


def _honoured_tokens(asked: Fields, usual: float) -> float:
    budgets = [tokens for given in asked.values() if (tokens := number(given)) is not None]
    if budgets:
        return min(budgets[0], usual * 2)
    levels = [word for given in asked.values() if (word := text(given))]
    return usual * _FACTORS.get(levels[0], 1.0) if levels else usual


def _thinking_settings(body: object, under: str = "") -> Iterator[tuple[str, object]]:
    """Yield the fields of a request that are settings of thinking, wherever they stand."""
    if not isinstance(body, dict):
        return
    for name, value in body.items():
        if name in _NOT_SETTINGS:
            continue
        if isinstance(value, dict):
            switched = name in _OBJECTS and not _AMOUNTS & value.keys()
            yield from [(name, None)] if switched else []
            yield from _thinking_settings(value, name)
        elif name in _AMOUNTS - {"max_tokens"} or name in _OBJECTS or (under, name) == ("reasoning", "max_tokens"):
            yield name, value


def _thinking(turn: Turn, tokens: int) -> Turn:
    """Return the turn with a text of so many tokens, so that one who counts characters finds them too."""
    length = tokens * 4
    begin = turn.reasoning or _FILLING
    return replace(turn, reasoning=(begin + _FILLING * (length // len(_FILLING) + 1))[:length])


_DEEPSEEK = "The `reasoning_content` in the thinking mode must be passed back to the API."
_MOONSHOT = "thinking is enabled but reasoning_content is missing in assistant tool call message at index {place}"


def check_deepseek(incoming: Incoming) -> None:
    """Refuse a call without the field; it may be empty. Source: api-docs.deepseek.com, Thinking mode.

    The field is the plain reasoning of every message that called tools, while the model thinks.
    """
    body = incoming.fields
    if at(body, "thinking.type") == "disabled" or body.get("reasoning_effort") == "none":
        return
    if any(not isinstance(message.get("reasoning_content"), str) for _, message in _calling(body)):
        raise Refusal("bad_value", _DEEPSEEK)


def check_moonshot(incoming: Incoming) -> None:
    """Refuse a call without the field, or with nothing in it. Source: issues that quote the refusal, as of 2026-06."""
    body = incoming.fields
    if at(body, "thinking.type") == "disabled" or text(body.get("model")).startswith("moonshot-v1"):
        return
    for index, message in _calling(body):
        if not text(message.get("reasoning_content")):
            raise Refusal("bad_value", _MOONSHOT.format(place=index))


def _calling(body: Fields) -> Iterator[tuple[int, Fields]]:
    for index, message in enumerate(rows(body.get("messages"))):
        if message.get("role") == "assistant" and rows(message.get("tool_calls")):
            yield index, message

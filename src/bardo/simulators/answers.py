"""The default script: a deterministic turn for any question.

Sums are worked out step by step, offered tools are called with arguments that follow their schema, a tool's result
is reported, an asked-for JSON Schema is filled, and every other question is given back.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable

from bardo.simulators.conversation import Conversation, Tool
from bardo.simulators.instances import instance_of
from bardo.simulators.turns import ToolCall, Turn

_SUM = re.compile(r"(-?\d{1,9})\s*(\*|×|x|times|\+|plus|-|−|minus)\s*(-?\d{1,9})", re.IGNORECASE)
_OPERATORS: dict[str, tuple[str, Callable[[int, int], int]]] = {
    **dict.fromkeys(("*", "×", "x", "times"), ("*", operator.mul)),
    **dict.fromkeys(("+", "plus"), ("+", operator.add)),
    **dict.fromkeys(("-", "−", "minus"), ("-", operator.sub)),
}


def answer(conversation: Conversation) -> Turn:
    """Return a turn for a question without a script."""
    if conversation.tool_results:
        return _report(conversation)
    if conversation.tools:
        return _call_tool(conversation)
    if conversation.schema is not None:
        return _fill(conversation)
    found = _SUM.search(conversation.question)
    return _calculate(int(found[1]), found[2], int(found[3])) if found else _echo(conversation)


def _report(conversation: Conversation) -> Turn:
    result = "; ".join(conversation.tool_results)
    return Turn(
        reasoning=f"The tool returned: {result}. That answers the question, so I report it.",
        text=f"The tool says: {result}",
    )


def _call_tool(conversation: Conversation) -> Turn:
    tool = _best_tool(conversation)
    arguments = instance_of(tool.schema, conversation.question)
    shown = arguments if isinstance(arguments, dict) else {}
    return Turn(
        reasoning=f"The question needs the tool {tool.name}. I call it with {json.dumps(shown)}.",
        tool_calls=(ToolCall(tool.name, shown),),
    )


def _best_tool(conversation: Conversation) -> Tool:
    """Return the tool that the request forces by name, else the one that shares most words with the question."""
    words = set(re.findall(r"[a-z]{3,}", conversation.question.lower()))

    def fit(tool: Tool) -> tuple[bool, int]:
        own = set(re.findall(r"[a-z]{3,}", f"{tool.name} {tool.description}".lower()))
        return tool.name == conversation.forced_tool, len(words & own)

    return max(conversation.tools, key=fit)


def _fill(conversation: Conversation) -> Turn:
    value = instance_of(conversation.schema or {}, conversation.question)
    return Turn(
        reasoning="The answer has to follow the given schema, so I fill in each of its fields.",
        text=json.dumps(value, ensure_ascii=False),
    )


def _calculate(left: int, sign: str, right: int) -> Turn:
    symbol, work = _OPERATORS[sign.lower()]
    result = work(left, right)
    steps = [f"I need to work out {left} {symbol} {right}."]
    if symbol == "*" and abs(right) > 10 and right % 10:
        ones = right % 10
        steps += [
            f"First {left} * {right - ones} = {left * (right - ones)}.",
            f"Then {left} * {ones} = {left * ones}.",
            f"Together {left * (right - ones)} + {left * ones} = {result}.",
        ]
    return Turn(reasoning="\n".join([*steps, f"So the answer is {result}."]), text=str(result))


def _echo(conversation: Conversation) -> Turn:
    question = conversation.question.strip() or "nothing"
    return Turn(
        reasoning=f"The user says: {question}\nNo tool is offered, so a short and direct answer is best.",
        text=f"This is a simulated answer to: {question}",
    )

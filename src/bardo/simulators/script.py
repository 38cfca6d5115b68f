"""The answers of a simulated model: from a script, from the instances of a schema, or as the question asks."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from bardo.simulators.fields import Fields, at, fields, rows, text
from bardo.simulators.turns import Conversation, Tool, ToolCall, Turn

_DEEPEST = 12


def instance_of(schema: Fields, question: str) -> object:
    """Return a value for `schema`; numbers and names are taken from the question where it has some."""
    return _InstanceBuilder(schema, question).make(schema, 0)


class _InstanceBuilder:
    """Builds one value: each number of the question is used once, in order."""

    def __init__(self, root: Fields, question: str) -> None:
        self._root = root
        self._numbers = [int(word) for word in re.findall(r"-?\d{1,15}", question)]
        # The words after its last preposition, else all of it.
        phrases = re.findall(r"\b(?:in|for|at|of|about)\s+([^?.!\n]{1,80})", question)
        self._phrase = (phrases[-1] if phrases else question).strip(" ?.!\n") or "example"

    def make(self, schema: Fields, depth: int) -> object:
        """Return a value for one part of the schema."""
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        choices = schema.get("enum")
        if isinstance(choices, list) and choices:
            return choices[0]
        for union in ("anyOf", "oneOf"):
            if members := rows(schema.get(union)):
                return self.make(members[0], depth + 1)
        return self._of_type(_type_of(schema), schema, depth)

    def _of_type(self, kind: str, schema: Fields, depth: int) -> object:
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        if kind in ("integer", "number"):
            return self._number(schema)
        return {"boolean": True, "null": None}.get(kind, self._phrase)

    def _object(self, schema: Fields, depth: int) -> Fields:
        if depth > _DEEPEST:
            return {}
        properties = fields(schema.get("properties"))
        wanted = schema.get("required")
        names = [name for name in wanted if name in properties] if isinstance(wanted, list) else list(properties)
        return {name: self.make(fields(properties[name]), depth + 1) for name in names}

    def _array(self, schema: Fields, depth: int) -> list[object]:
        items = fields(schema.get("items"))
        return [self.make(items, depth + 1)] if items and depth <= _DEEPEST else []

    def _number(self, schema: Fields) -> int | float:
        value: int | float = self._numbers.pop(0) if self._numbers else 1
        for bound, choose in (("minimum", max), ("maximum", min)):
            limit = schema.get(bound)
            if isinstance(limit, int | float):
                value = choose(value, limit)
        return value

    def _resolved(self, schema: Fields) -> Fields:
        for _ in range(_DEEPEST):
            reference = text(schema.get("$ref"))
            if not reference.startswith("#/"):
                return schema
            schema = fields(at(self._root, reference[2:].replace("/", ".")))
        return {}


def _type_of(schema: Fields) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((item for item in kind if item != "null"), "null")
    if isinstance(kind, str):
        return kind.lower()  # Gemini writes types in capitals.
    return "object" if "properties" in schema else "string"


_SUM = re.compile(r"(-?\d{1,9})\s*(\*|×|x|times|\+|plus|-|−|minus)\s*(-?\d{1,9})", re.IGNORECASE)
_OPERATORS: dict[str, tuple[str, Callable[[int, int], int]]] = {
    **dict.fromkeys(("*", "×", "x", "times"), ("*", operator.mul)),
    **dict.fromkeys(("+", "plus"), ("+", operator.add)),
    **dict.fromkeys(("-", "−", "minus"), ("-", operator.sub)),
}


def answer(conversation: Conversation) -> Turn:
    """Return a turn for a question without a script."""
    if conversation.tool_results:
        result = "; ".join(conversation.tool_results)
        return Turn(
            reasoning=f"The tool returned: {result}. That answers the question, so I report it.",
            text=f"The tool says: {result}",
        )
    if conversation.tools:
        tool = _best_tool(conversation)
        arguments = instance_of(tool.schema, conversation.question)
        shown = arguments if isinstance(arguments, dict) else {}
        return Turn(
            reasoning=f"The question needs the tool {tool.name}. I call it with {json.dumps(shown)}.",
            tool_calls=(ToolCall(tool.name, shown),),
        )
    if conversation.schema is not None:
        value = instance_of(conversation.schema or {}, conversation.question)
        return Turn(
            reasoning="The answer has to follow the given schema, so I fill in each of its fields.",
            text=json.dumps(value, ensure_ascii=False),
        )
    match = _SUM.search(conversation.question)
    return _calculate(int(match[1]), match[2], int(match[3])) if match else _echo(conversation)


def _best_tool(conversation: Conversation) -> Tool:
    """Return the tool that the request forces by name, else the one that shares most words with the question."""
    words = set(re.findall(r"[a-z]{3,}", conversation.question.lower()))

    def fit(tool: Tool) -> tuple[bool, int]:
        own = set(re.findall(r"[a-z]{3,}", f"{tool.name} {tool.description}".lower()))
        return tool.name == conversation.forced_tool, len(words & own)

    return max(conversation.tools, key=fit)


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


TOOL_RESULT = "{tool_result}"
"""Where a turn's text or reasoning holds this, the tool's result is put."""


@dataclass(frozen=True, slots=True)
class Script:
    """Turns in order, the last one for ever. Without turns, `otherwise` answers any question.

    A turn that calls tools is passed over when the request offers none, as a real model could not have called them.
    """

    turns: tuple[Turn, ...] = ()
    otherwise: Callable[[Conversation], Turn] = answer
    in_order: bool = False

    def turn(self, conversation: Conversation, *, asked: int = 0) -> Turn:
        """Choose the turn for this request, before which the model was `asked` so many times."""
        if not self.turns:
            return self.otherwise(conversation)
        index = min(asked if self.in_order else conversation.rounds, len(self.turns) - 1)
        turn = self._playable(index, conversation)
        result = "\n".join(conversation.tool_results)
        return replace(
            turn, text=turn.text.replace(TOOL_RESULT, result), reasoning=turn.reasoning.replace(TOOL_RESULT, result)
        )

    def _playable(self, index: int, conversation: Conversation) -> Turn:
        if conversation.tools:
            return self.turns[index]
        later = (turn for turn in self.turns[index:] if not turn.tool_calls)
        return next(later, self.turns[index])

"""What a request says of thinking: the control it was given, and beside it what the caller said in this dialect and no other knows.

Bedrock hands Claude the same object, so Converse writes it here too.
"""

from __future__ import annotations

from typing import Any

from bardo.dialects.anthropic_messages.constants import NAME
from bardo.dialects.wire import without
from bardo.values.blocks import fields_for
from bardo.values.degradation import Degradation
from bardo.values.request import Request


def control_fields(request: Request) -> dict[str, Any]:
    """Return the fragment of the body that the control is."""
    return request.control.fields if request.control is not None else {}


def own_words(request: Request) -> dict[str, Any]:
    """Return what the caller said in `thinking` beside the mode and the budget: a `display`, a `block_binding`."""
    policy = request.reasoning
    if policy is None or request.dialect != NAME:
        return {}
    read = without(policy.raw_fields.get("thinking", {}), "type", "budget_tokens")
    return {**read, **fields_for(NAME, policy.carried).get("thinking", {})}


def with_thinking(
    fields: dict[str, Any], settings: dict[str, Any], *, lacks_thinking: bool
) -> tuple[dict[str, Any], tuple[Degradation, ...]]:
    """Return `fields` with the words `settings` in their `thinking`, and what had to differ.

    `lacks_thinking`: tools are answered that were called in a turn without its thinking, which is refused beside a budget.
    """
    thinking = fields.get("thinking")
    if not isinstance(thinking, dict):
        why = "nothing is said of thinking here"
        return fields, tuple(Degradation(f"thinking.{name}", asked=value, why=why) for name, value in settings.items())
    degraded: tuple[Degradation, ...] = ()
    if lacks_thinking and "budget_tokens" in thinking:
        why = "the thinking that led to the tool calls is not at hand"
        degraded = (Degradation("reasoning", asked=thinking, sent="off", why=why),)
        thinking = {"type": "disabled"}
    # Thinking that is off has no display.
    kept = without(settings, "display") if thinking.get("type") == "disabled" else settings
    return {**fields, "thinking": {**thinking, **kept}}, degraded

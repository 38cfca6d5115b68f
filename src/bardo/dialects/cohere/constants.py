"""The words of the Cohere dialect that more than one of its files needs."""

from __future__ import annotations

from bardo.values.events import Finish, FinishReason

NAME = "cohere"
TITLE = "Cohere"
THINKING = "thinking"
"""The format of thinking in content blocks."""
PLAN = "cohere-tool-plan"
"""The format of `tool_plan`: what the model says to itself before its calls, which Cohere calls a chain of thought."""

REASONS: dict[str, FinishReason] = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "MAX_TOKENS": "length",
    "TOOL_CALL": "tool_calls",
    "ERROR": "error",
    "TIMEOUT": "error",
}
"""The dialect's finish reasons in our words."""

_FINISH_REASONS: dict[FinishReason, str] = {"length": "MAX_TOKENS", "tool_calls": "TOOL_CALL", "error": "ERROR"}


def encode_finish(finish: Finish, *, calls: bool) -> str:
    """Return the word a Cohere client knows: the provider's own where it is one of this dialect.

    Clients run their tools on `TOOL_CALL`, and some providers call a tool and say that they just stopped.
    """
    if finish.raw in REASONS:
        return finish.raw
    word = _FINISH_REASONS.get(finish.reason, "COMPLETE")
    if word != "COMPLETE":
        return word
    return "TOOL_CALL" if calls else "COMPLETE" if finish.stop_sequence is None else "STOP_SEQUENCE"


SAMPLING = {
    "temperature": "temperature",
    "top_p": "p",
    "top_k": "k",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
    "stop": "stop_sequences",
}
"""The sampling parameters by their names here."""

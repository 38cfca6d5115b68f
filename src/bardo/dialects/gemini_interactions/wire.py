"""The words of the Interactions dialect that more than one of its files needs."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.dialects.gemini.wire import FORMAT
from bardo.dialects.shared.states import unseal
from bardo.values.blocks import Opaque
from bardo.values.events import Finish, FinishReason

NAME = "gemini_interactions"
TITLE = "Gemini Interactions"

REASONS: dict[str, FinishReason] = {
    "completed": "stop",
    "requires_action": "tool_calls",
    "incomplete": "length",
    "budget_exceeded": "length",
    "requires_continuation": "pause",
    "queued": "pause",
    "in_progress": "pause",
    "cancelled": "error",
    "failed": "error",
}
"""The statuses of an interaction in our words."""

_STATUSES: dict[FinishReason, str] = {
    "length": "incomplete",
    "pause": "incomplete",
    "tool_calls": "requires_action",
    "error": "failed",
}


def finish_of(status: str, *, called: bool) -> Finish:
    """Return how a reply ended. `called`: it ends with a call that waits for its result."""
    reason = REASONS.get(status, "unknown")
    return Finish("tool_calls" if reason == "stop" and called else reason, status)


def status_of(finish: Finish, *, called: bool) -> str:
    """Return the status a client knows: the provider's own where it is one of this dialect.

    OpenAI's Responses ends replies with calls by the same word, `completed`, and clients of this dialect run no tool after it.
    """
    if (
        finish.raw in REASONS
        and not (called and finish.raw == "completed")
        and finish_of(finish.raw, called=called).reason == finish.reason
    ):
        return finish.raw
    word = _STATUSES.get(finish.reason, "completed")
    return "requires_action" if called and word == "completed" else word


def states_of(signature: str) -> Sequence[Opaque]:
    """Return the state in a `signature`: what bardo sealed there, or Gemini's own."""
    if not signature:
        return ()
    # Typed clients may write bytes in base64's other alphabet.
    sealed = unseal(signature.replace("-", "+").replace("_", "/"))
    return (Opaque("signature", signature, FORMAT),) if sealed is None else sealed


SAMPLING = {
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "stop": "stop_sequences",
}
"""The sampling parameters by their names here."""

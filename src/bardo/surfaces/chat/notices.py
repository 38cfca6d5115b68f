"""What a bot says itself: of errors, limits and commands, in plain words. No sentence holds what a provider said, which may be a secret."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.surfaces.chat.text import is_blank
from bardo.values.errors import (
    BardoError,
    ContextOverflow,
    OperatorError,
    OverBudget,
    ProviderError,
    RateLimited,
    Unavailable,
    UnknownModel,
    UpstreamRefused,
    UpstreamTimeout,
)
from bardo.values.response import Response

NEW = "This is a new conversation."
BUSY = "I am still answering your earlier questions here. Please wait for them."
STOPPED = "(bardo was stopped before the answer was complete.)"
NO_TEXT = "I can read text and pictures only."
TOO_LARGE = "One picture is too large for me, and I left it out."
NOT_A_PICTURE = "One file is no picture that I can read, and I left it out."
NOT_KEPT = "The reasoning of this answer is no longer kept."
NOT_ALLOWED = "You may not use this bot."
UNREADABLE = "I could not read your message. Please send it again."
HELP = "Ask me anything. /new begins a new conversation, /model shows or changes the model that answers."
SHARED_NEW = "Mention me to begin a new conversation, and reply to my answers to go on with one."


def error_text(problem: BardoError) -> str:
    """Return what a user is told of an error."""
    sentence = _sentence(problem)
    return (
        f"{sentence} (Request {problem.request_id})" if problem.request_id and _is_for_operator(problem) else sentence
    )


def _sentence(problem: BardoError) -> str:
    match problem:
        case RateLimited():
            return f"You have asked as often as you may for now. Try again in {_span(problem.retry_after)}."
        case OverBudget():
            return f"Your budget for today is used up. It starts again in {_span(problem.retry_after)}."
        case ContextOverflow():
            return "This conversation is longer than the model can read. Begin a new one with /new."
        case UpstreamRefused() if problem.overflow is not None:
            return "This conversation is longer than the model can read. Begin a new one with /new."
        case UpstreamRefused() if problem.status == 429:
            return "The model is asked too often just now. Try again in a minute."
        case UpstreamTimeout():
            return "The model took too long to answer. Try again."
        case UnknownModel():
            return "This model cannot be asked. /model shows which can."
        case ProviderError() | Unavailable():
            return "The model cannot be reached just now. Try again in a moment."
        case OperatorError():
            return "This bot is not set up completely. Please tell whoever runs it."
        case _:
            return "This could not be answered. Please tell whoever runs this bot."


def _is_for_operator(problem: BardoError) -> bool:
    return not isinstance(problem, RateLimited | OverBudget | ContextOverflow)


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} minutes" if minutes < 90 else f"{round(minutes / 60)} hours"


def finish_notice(response: Response) -> str:
    """Return what is said below an answer that is not a whole one; empty below others."""
    if response.finish.reason == "length":
        return "(The answer is cut: the model reached its output limit.)"
    if is_blank(response.text) and is_blank(response.refusal):
        return "(The model gave no answer.)"
    return ""


def model_list(current: str, choices: Sequence[str]) -> str:
    """Return which model answers and which may be chosen."""
    if not choices:
        return f"{current} answers."
    return "\n".join([f"{current} answers. You may choose:", *(f"/model {name}" for name in choices)])

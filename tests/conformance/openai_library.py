"""OpenAI's library, Chat Completions and Responses, streams by its own accumulators."""

from __future__ import annotations

from functools import cache
from typing import Any

import openai

from bardo.values.events import FinishReason
from conformance.heard import Counts, Heard, answer, http, plain

_CHAT_FINISHES: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "refusal",
}


@cache
def _openai() -> openai.OpenAI:
    return openai.OpenAI(api_key="k", base_url="http://bardo.test/v1", http_client=http(), max_retries=0)


def chat(body: bytes, *, stream: bool, status: int = 200) -> Heard:
    """Chat Completions."""
    answer(body, stream=stream, status=status)
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    if not stream:
        return _chat(_openai().chat.completions.create(**asked))
    with _openai().chat.completions.stream(**asked, stream_options={"include_usage": True}) as events:
        # `get_final_completion` raises where a reply was cut short; the accumulator has it all the same.
        return _chat(events.until_done().current_completion_snapshot)


def _chat(whole: Any) -> Heard:
    [choice] = whole.choices
    message = choice.message
    calls = [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()]
    return Heard(
        text=message.content or "",
        refusal=message.refusal or "",
        thinking=getattr(message, "reasoning_content", None) or "",
        calls=calls,
        finish=_CHAT_FINISHES[choice.finish_reason],
        counts=_chat_counts(whole.usage),
        id=whole.id,
        model=whole.model,
        turn=lambda: {"model": "m", "messages": [_chat_turn(message)]},
    )


def _chat_turn(message: Any) -> dict[str, Any]:
    turn = plain(message, exclude={"parsed"})
    for call in turn.get("tool_calls") or ():
        call["function"].pop("parsed_arguments", None)
    return turn


def _chat_counts(usage: Any) -> Counts:
    if usage is None:
        return Counts()
    output, into = usage.completion_tokens_details, usage.prompt_tokens_details
    return Counts(
        input=usage.prompt_tokens,
        output=usage.completion_tokens,
        reasoning=output.reasoning_tokens if output else None,
        cached=into.cached_tokens if into else None,
    )


def responses(body: bytes, *, stream: bool, status: int = 200) -> Heard:
    """Responses. Its accumulator gives only a completed reply, so the last event's is taken where it was cut short."""
    answer(body, stream=stream, status=status)
    if not stream:
        return _responses(_openai().responses.create(model="m", input="hi"))
    with _openai().responses.stream(model="m", input="hi") as events:
        last = list(events)[-1]
    return _responses(last.response)  # type: ignore[union-attr]


def _responses(whole: Any) -> Heard:
    thoughts = [item for item in whole.output if item.type == "reasoning"]
    messages = [item for item in whole.output if item.type == "message"]
    calls = [item for item in whole.output if item.type == "function_call"]
    refusals = [part.refusal for item in messages for part in item.content if part.type == "refusal"]
    shown = [part.text for item in thoughts for part in (*(item.content or ()), *item.summary)]
    return Heard(
        text=whole.output_text,
        refusal="".join(refusals),
        thinking="\n\n".join(shown),
        calls=[(item.call_id, item.name, item.arguments) for item in calls],
        finish=_responses_finish(whole, called=bool(calls)),
        counts=_responses_counts(whole.usage),
        id=whole.id,
        model=whole.model,
        turn=lambda: {"model": "m", "input": [_item(item) for item in whole.output]},
    )


def _item(item: Any) -> dict[str, Any]:
    # What the library's stream helper added for its own user is not sent.
    sent = plain(item)
    sent.pop("parsed_arguments", None)
    for part in sent.get("content") or ():
        part.pop("parsed", None)
    return sent


def _responses_finish(whole: Any, *, called: bool) -> FinishReason:
    if whole.status == "completed":
        return "tool_calls" if called else "stop"
    if whole.status != "incomplete":
        return "unknown"
    return "refusal" if whole.incomplete_details.reason == "content_filter" else "length"


def _responses_counts(usage: Any) -> Counts:
    if usage is None:
        return Counts()
    return Counts(
        input=usage.input_tokens,
        output=usage.output_tokens,
        # An estimate is marked, since the library's types demand a number.
        reasoning=None
        if getattr(usage.output_tokens_details, "tokens_approx", False)
        else usage.output_tokens_details.reasoning_tokens,
        cached=usage.input_tokens_details.cached_tokens,
    )
